//! What somebody asks for who wants a certificate. Whoever forges a request changes a part of what an agent would have asked for.

use std::{collections::BTreeMap, net::Ipv4Addr};

use drover_api::{
    addon::{RegistrationConfig, Subject},
    names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL},
};
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use kube::api::ObjectMeta;
use p256::{
    ecdsa::{DerSignature, SigningKey},
    pkcs8::LineEnding,
};
use x509_cert::{
    builder::{Builder, RequestBuilder},
    der::{
        EncodePem,
        asn1::{Ia5String, OctetString},
        oid::db::rfc5280::ID_KP_SERVER_AUTH,
    },
    ext::pkix::{ExtendedKeyUsage, SubjectAltName, name::GeneralName},
    name::Name,
};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const AGENTS: &str = "system:open-cluster-management";

/// A certificate that somebody wants.
#[derive(Clone, Debug)]
pub struct Wish {
    /// What the name of the request begins with.
    name: String,
    labels: BTreeMap<String, String>,
    signer: String,
    subject: Subject,
    usages: Vec<String>,
    names: Vec<GeneralName>,
    is_for_server: bool,
}

impl Wish {
    /// To be that user in those groups, to the API server.
    #[must_use]
    pub fn to_be(user: &str, groups: &[&str]) -> Self {
        Self {
            name: "identity".to_owned(),
            labels: BTreeMap::new(),
            signer: CLIENT_SIGNER.to_owned(),
            subject: Subject { user: Some(user.to_owned()), groups: texts(groups), ..Subject::default() },
            usages: texts(&["digital signature", "key encipherment", "client auth"]),
            names: Vec::new(),
            is_for_server: false,
        }
    }

    /// To be the agent of a cluster.
    #[must_use]
    pub fn of_cluster(cluster: &str) -> Self {
        let group = format!("{AGENTS}:{cluster}");
        let wish = Self::to_be(&format!("{group}:agent"), &[&group, &format!("{AGENTS}:managed-clusters")]);
        Self { name: cluster.to_owned(), ..wish.labelled(CLUSTER_NAME_LABEL, cluster) }
    }

    /// To be the agent of an add-on on a cluster, as it is told to register. The request has the name of a host besides, as those of OCM's
    /// agents have.
    #[must_use]
    pub fn of_addon(cluster: &str, addon: &str, registration: &RegistrationConfig) -> Self {
        let said = registration.subject.as_ref().expect("it is said who it is");
        let subject = Subject {
            user: said.user.clone(),
            groups: said.groups.clone(),
            organization_units: said.units().to_vec(),
            ..Subject::default()
        };
        let signer = registration.signer_name.clone().expect("it is said who signs");
        Self { name: format!("addon-{cluster}-{addon}"), signer, subject, ..Self::to_be("", &[]) }
            .labelled(CLUSTER_NAME_LABEL, cluster)
            .labelled(ADDON_NAME_LABEL, addon)
            .for_host(&format!("{addon}.addon.open-cluster-management.io"))
    }

    /// The same, with that label on the request.
    #[must_use]
    pub fn labelled(mut self, label: &str, value: &str) -> Self {
        self.labels.insert(label.to_owned(), value.to_owned());
        self
    }

    /// The same, of another signer.
    #[must_use]
    pub fn signed_by(mut self, signer: &str) -> Self {
        signer.clone_into(&mut self.signer);
        self
    }

    /// The same, for another user.
    #[must_use]
    pub fn called(mut self, user: &str) -> Self {
        self.subject.user = Some(user.to_owned());
        self
    }

    /// The same, in these groups.
    #[must_use]
    pub fn in_groups<T: AsRef<str>>(mut self, groups: &[T]) -> Self {
        self.subject.groups = texts(groups);
        self
    }

    /// The same, in one more group.
    #[must_use]
    pub fn also_in_group(mut self, group: &str) -> Self {
        self.subject.groups.push(group.to_owned());
        self
    }

    /// The same, in these units.
    #[must_use]
    pub fn in_units(mut self, units: &[&str]) -> Self {
        self.subject.organization_units = texts(units);
        self
    }

    /// The same, for these uses.
    #[must_use]
    pub fn used_for(mut self, usages: &[&str]) -> Self {
        self.usages = texts(usages);
        self
    }

    /// The same, and for a host of this name.
    #[must_use]
    pub fn for_host(mut self, host: &str) -> Self {
        self.names.push(GeneralName::DnsName(Ia5String::new(host).expect("a name of a host")));
        self
    }

    /// The same, and for a host of this address.
    #[must_use]
    pub fn for_address(mut self, address: Ipv4Addr) -> Self {
        self.names.push(GeneralName::IpAddress(OctetString::new(address.octets()).expect("an address")));
        self
    }

    /// The same, and for no host.
    #[must_use]
    pub fn for_no_host(mut self) -> Self {
        self.names.clear();
        self
    }

    /// The same, and asking for an extension that makes it a server's.
    #[must_use]
    pub fn for_server(mut self) -> Self {
        self.is_for_server = true;
        self
    }

    /// The groups that it is for.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.subject.groups
    }

    /// Whom it is for, as the request says it. All groups go into one multi-valued part, as Go's library does it.
    #[must_use]
    pub fn subject(&self) -> String {
        self.subject_name().to_string()
    }

    fn subject_name(&self) -> Name {
        let several = |kind: &str, values: &[String]| {
            let parts: Vec<_> = values.iter().map(|value| format!("{kind}={value}")).collect();
            Some(parts.join("+")).filter(|parts| !parts.is_empty())
        };
        let user = self.subject.user.iter().map(|user| format!("CN={user}"));
        let groups = several("O", &self.subject.groups);
        let units = several("OU", &self.subject.organization_units);
        let parts: Vec<_> = user.chain(groups).chain(units).collect();
        parts.join(",").parse().expect("a valid subject")
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The request of this name for the certificate of a key.
    pub(super) fn request(&self, name: &str, key: &SigningKey) -> CertificateSigningRequest {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(self.labels.clone()).filter(|labels| !labels.is_empty()),
            ..ObjectMeta::default()
        };
        let spec = CertificateSigningRequestSpec {
            request: ByteString(self.encoded(key)),
            signer_name: self.signer.clone(),
            usages: Some(self.usages.clone()),
            ..CertificateSigningRequestSpec::default()
        };
        CertificateSigningRequest { metadata, spec, status: None }
    }

    /// The request itself, in PEM.
    fn encoded(&self, key: &SigningKey) -> Vec<u8> {
        let mut request = RequestBuilder::new(self.subject_name()).expect("a request can be made");
        if !self.names.is_empty() {
            request.add_extension(&SubjectAltName(self.names.clone())).expect("a request can ask for names");
        }
        if self.is_for_server {
            request.add_extension(&ExtendedKeyUsage(vec![ID_KP_SERVER_AUTH])).expect("a request can ask for uses");
        }
        let request = request.build::<_, DerSignature>(key).expect("a request can be signed");
        request.to_pem(LineEnding::LF).expect("a request can be written as PEM").into_bytes()
    }
}

fn texts<T: AsRef<str>>(texts: &[T]) -> Vec<String> {
    texts.iter().map(|text| text.as_ref().to_owned()).collect()
}
