//! A key, and the certificate that a hub makes for it.

use std::collections::BTreeMap;

use drover_api::addon::Subject;
use drover_engine::join::MAX_REQUESTS;
use drover_runtime::{clock::Clock, decode::Decoded, pace::answered};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, ObjectMeta, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use p256::{
    ecdsa::{DerSignature, SigningKey},
    elliptic_curve::Generate as _,
    pkcs8::{EncodePrivateKey as _, LineEnding},
};
use x509_cert::{
    builder::{Builder as _, RequestBuilder},
    der::{EncodePem as _, asn1::Ia5String},
    ext::pkix::{SubjectAltName, name::GeneralName},
    name::Name,
};

const USAGES: [&str; 3] = ["digital signature", "key encipherment", "client auth"];

/// A certificate that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// What the name of the request begins with.
    pub(crate) prefix: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) signer: String,
    pub(crate) subject: Subject,
    /// The name of a host that is asked for besides.
    pub(crate) host: Option<String>,
    pub(crate) expiration_seconds: Option<i32>,
}

/// What a hub has made of a wish, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotIssued {
    #[error("{0}")]
    Hub(#[from] kube::Error),
    #[error(
        "{MAX_REQUESTS} requests of this agent are on the hub already, and none was answered: approve or delete them there"
    )]
    TooMany,
    #[error("the hub denied the request {name}: {reason}")]
    Denied { name: String, reason: String },
    #[error("the request {0} is gone from the hub, and was not answered")]
    Gone(String),
    #[error("a request can not be made for the subject {subject}: {reason}")]
    Unwritable { subject: String, reason: String },
}

impl Wish {
    /// Makes a key, asks for its certificate, and waits until there is one: an administrator may have to approve it first.
    pub(crate) async fn fulfil(&self, hub: Client, clock: &Clock) -> Result<Issued, NotIssued> {
        let requests = Api::<CertificateSigningRequest>::all(hub.clone());
        let decoded = Api::<Decoded<CertificateSigningRequest>>::all(hub);
        self.check_room(&decoded, clock).await?;
        let key = SigningKey::generate();
        let request = self.request(&key)?;
        let made = answered(clock, requests.create(&PostParams::default(), &request)).await?;
        let certificate = answer(&decoded, &made.name_any()).await?;
        let key = key.to_pkcs8_pem(LineEnding::LF).map_err(|error| self.unwritable(&error))?;
        Ok(Issued { certificate, key: key.as_bytes().to_vec() })
    }

    /// Makes sure that there are not too many unanswered requests already. Who may not look goes on.
    async fn check_room(
        &self,
        requests: &Api<Decoded<CertificateSigningRequest>>,
        clock: &Clock,
    ) -> Result<(), NotIssued> {
        let labels: Vec<_> = self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let ours = ListParams::default().labels(&labels.join(","));
        let there = match answered(clock, requests.list(&ours)).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(()),
            there => there?,
        };
        let is_open = |request: &&CertificateSigningRequest| {
            let status = request.status.as_ref();
            let is_ours = request.metadata.generate_name.as_deref() == Some(&self.prefix);
            is_ours && status.is_none_or(|status| status.certificate.is_none())
        };
        // A request that cannot be parsed is none of this agent.
        let readable = there.iter().filter_map(|request| request.0.as_ref().ok());
        if readable.filter(is_open).count() < MAX_REQUESTS { Ok(()) } else { Err(NotIssued::TooMany) }
    }

    fn request(&self, key: &SigningKey) -> Result<CertificateSigningRequest, NotIssued> {
        let metadata = ObjectMeta {
            generate_name: Some(self.prefix.clone()),
            labels: Some(self.labels.clone()),
            ..ObjectMeta::default()
        };
        let spec = CertificateSigningRequestSpec {
            request: ByteString(self.encoded(key)?),
            signer_name: self.signer.clone(),
            usages: Some(USAGES.map(str::to_owned).to_vec()),
            expiration_seconds: self.expiration_seconds,
            ..CertificateSigningRequestSpec::default()
        };
        Ok(CertificateSigningRequest { metadata, spec, status: None })
    }

    /// The request itself, in PEM.
    fn encoded(&self, key: &SigningKey) -> Result<Vec<u8>, NotIssued> {
        let encode = || -> Result<Vec<u8>, x509_cert::builder::Error> {
            let mut request = RequestBuilder::new(self.name()?)?;
            if let Some(host) = &self.host {
                request.add_extension(&SubjectAltName(vec![GeneralName::DnsName(Ia5String::new(host)?)]))?;
            }
            let request = request.build::<_, DerSignature>(key)?;
            Ok(request.to_pem(LineEnding::LF)?.into_bytes())
        };
        encode().map_err(|error| self.unwritable(&error))
    }

    /// The subject, with all groups in one part, as Go's library writes them.
    fn name(&self) -> Result<Name, x509_cert::der::Error> {
        let escaped = |value: &str| {
            let special = |c: char| matches!(c, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=' | '#');
            value.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect::<String>()
        };
        let several = |kind: &str, values: &[String]| {
            let parts: Vec<_> = values.iter().map(|value| format!("{kind}={}", escaped(value))).collect();
            Some(parts.join("+")).filter(|parts| !parts.is_empty())
        };
        let user = self.subject.user.iter().map(|user| format!("CN={}", escaped(user)));
        let groups = several("O", &self.subject.groups);
        let units = several("OU", self.subject.units());
        user.chain(groups).chain(units).collect::<Vec<_>>().join(",").parse()
    }

    fn unwritable(&self, error: &impl ToString) -> NotIssued {
        let subject = self.subject.user.clone().unwrap_or_default();
        NotIssued::Unwritable { subject, reason: error.to_string() }
    }
}

/// Waits until a request is answered.
async fn answer(requests: &Api<Decoded<CertificateSigningRequest>>, name: &str) -> Result<Vec<u8>, NotIssued> {
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut seen = watcher(requests.clone(), only).default_backoff().boxed();
    let mut was_there = false;
    loop {
        match seen.try_next().await {
            Ok(Some(watcher::Event::Apply(request) | watcher::Event::InitApply(request))) => {
                was_there = true;
                match request.0 {
                    Ok(request) => {
                        if let Some(answer) = read(name, &request) {
                            return answer;
                        }
                    }
                    Err(damaged) => tracing::warn!(request = name, defect = %damaged.defect, "cannot parse a request"),
                }
            }
            Ok(Some(watcher::Event::Delete(_)) | None) => return Err(NotIssued::Gone(name.to_owned())),
            Ok(Some(watcher::Event::InitDone)) if !was_there => return Err(NotIssued::Gone(name.to_owned())),
            Ok(Some(watcher::Event::Init)) => was_there = false,
            Ok(Some(watcher::Event::InitDone)) => {}
            // A watch that breaks is begun again, and waits longer and longer.
            Err(error) => match refusal(error) {
                Ok(refused) => return Err(NotIssued::Hub(refused)),
                Err(error) => tracing::debug!(request = name, %error, "the watch of a signing request broke"),
            },
        }
    }
}

/// That the hub does not let us look any more, if a watch broke for that: it will not the next time.
fn refusal(error: watcher::Error) -> Result<kube::Error, watcher::Error> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
            if [401, 403].contains(&status.code) =>
        {
            Ok(kube::Error::Api(status))
        }
        error => Err(error),
    }
}

/// What a request was answered; nothing if it was not yet.
fn read(name: &str, request: &CertificateSigningRequest) -> Option<Result<Vec<u8>, NotIssued>> {
    let status = request.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    if let Some(no) = conditions.find(|condition| matches!(condition.type_.as_str(), "Denied" | "Failed")) {
        let reason = no.message.clone().or_else(|| no.reason.clone()).unwrap_or_default();
        return Some(Err(NotIssued::Denied { name: name.to_owned(), reason }));
    }
    status.certificate.as_ref().map(|certificate| Ok(certificate.0.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_they_are() {
        let subject = Subject {
            user: Some("system:open-cluster-management:c1:a1".to_owned()),
            groups: vec!["a,b".to_owned(), "system:x".to_owned()],
            ..Subject::default()
        };
        let wish = Wish {
            prefix: "c1-".to_owned(),
            labels: BTreeMap::new(),
            signer: "example.com/signer".to_owned(),
            subject,
            host: Some("a.example.com".to_owned()),
            expiration_seconds: None,
        };
        let name = wish.name().expect("a valid subject").to_string();
        assert!(name.contains("CN=system:open-cluster-management:c1:a1") && name.contains(r"O=a\,b"), "{name}");
        let request = wish.request(&SigningKey::generate()).expect("a request can be made");
        assert!(request.spec.request.0.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----"));
    }
}
