//! What a signing request asks for, and what is wrong with it whoever has made it.

use std::collections::BTreeSet;

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use x509_cert::{
    der::{
        Any, Decode,
        oid::{AssociatedOid, db::rfc4519},
        pem,
    },
    ext::{
        Extension,
        pkix::{
            SubjectAltName,
            name::{DirectoryString, GeneralName},
        },
    },
    name::Name,
    request::{CertReq, ExtensionReq},
};

/// Who signs certificates for clients of the API server.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// What an agent's certificate may be used for, and has to be for the last.
const USAGES: [&str; 3] = [DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH];
pub(super) const DIGITAL_SIGNATURE: &str = "digital signature";
pub(super) const KEY_ENCIPHERMENT: &str = "key encipherment";
const CLIENT_AUTH: &str = "client auth";

/// What is wrong with a request, whoever it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Nobody can read it.
    #[error("the request can not be read: it has to be one PKCS#10 request in PEM")]
    Unreadable,
    /// It asks for more than a subject.
    #[error(
        "the request asks for extensions, such as alternative names, which an agent has no use for: that of an add-on may ask for the one DNS \
         name <add-on>.addon.open-cluster-management.io, and nobody for anything else"
    )]
    Extensions,
    /// It is for other uses.
    #[error(
        "an agent's certificate is for client auth, and may be for digital signature and key encipherment; nothing else"
    )]
    Usages,
}

/// What a well-formed request asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Whom the certificate is for; nothing if there are parts in the subject that no agent has.
    subject: Option<Subject>,
    /// The name of a host that it is asked for besides.
    host: Option<String>,
    /// The subject, as it is encoded in the request.
    pub(super) name: Any,
    /// The public key, as it is encoded in the request.
    pub(super) key: Any,
}

impl Asked {
    /// Reads a request of an agent.
    pub(crate) fn read(spec: &CertificateSigningRequestSpec) -> Result<Self, Malformed> {
        let usages = spec.usages.as_deref().unwrap_or_default();
        let is_allowed = usages.iter().all(|usage| USAGES.contains(&&**usage));
        if !is_allowed || !usages.iter().any(|usage| usage == CLIENT_AUTH) {
            return Err(Malformed::Usages);
        }
        let encoded = encoded(&spec.request.0).ok_or(Malformed::Unreadable)?;
        let request = CertReq::from_der(&encoded).map_err(|_| Malformed::Unreadable)?;
        let host = host(&request)?;
        let (name, key) = parts(&encoded).ok_or(Malformed::Unreadable)?;
        Ok(Self { subject: Subject::of(&request.info.subject), host, name, key })
    }

    /// Whom the certificate is for; nothing if there are parts in the subject that no agent has. The name of a host may be asked for
    /// besides only if it is this one.
    pub(crate) fn subject(self, host: Option<&str>) -> Result<Option<Subject>, Malformed> {
        let is_allowed = self.host.is_none() || self.host.as_deref() == host;
        if is_allowed { Ok(self.subject) } else { Err(Malformed::Extensions) }
    }
}

/// The request itself. Of several, the signer might read another than this does, so there has to be exactly one.
fn encoded(pem: &[u8]) -> Option<Vec<u8>> {
    let text = str::from_utf8(pem).ok()?.trim();
    let (label, encoded) = pem::decode_vec(text.as_bytes()).ok()?;
    let is_one = text.starts_with("-----BEGIN ") && text.matches("-----BEGIN").count() == 1;
    (is_one && label == "CERTIFICATE REQUEST").then_some(encoded)
}

/// The subject and the public key, as they are encoded: read and written again, the parts of the subject could change places.
fn parts(request: &[u8]) -> Option<(Any, Any)> {
    let info = Vec::<Any>::from_der(request).ok()?.into_iter().next()?;
    let mut parts = info.decode_as::<Vec<Any>>().ok()?.into_iter().skip(1);
    parts.next().zip(parts.next())
}

/// The name of a host that a request asks for, as OCM's agents of add-ons do. There may be an empty list of extensions, which some
/// programs write; nothing else.
fn host(request: &CertReq) -> Result<Option<String>, Malformed> {
    let mut extensions = Vec::new();
    for attribute in request.info.attributes.iter() {
        if attribute.oid != ExtensionReq::OID {
            return Err(Malformed::Extensions);
        }
        for value in attribute.values.iter() {
            extensions.extend(value.decode_as::<ExtensionReq>().map_err(|_| Malformed::Extensions)?.0);
        }
    }
    match &*extensions {
        [] => Ok(None),
        [names] => only_name(names).map(Some).ok_or(Malformed::Extensions),
        _ => Err(Malformed::Extensions),
    }
}

/// The name of a host, if an extension asks for that as an alternative name and for no other.
fn only_name(extension: &Extension) -> Option<String> {
    if extension.extn_id != SubjectAltName::OID {
        return None;
    }
    let SubjectAltName(names) = SubjectAltName::from_der(extension.extn_value.as_bytes()).ok()?;
    match &*names {
        [GeneralName::DnsName(name)] => Some(name.to_string()),
        _ => None,
    }
}

/// A subject that has common names, organisations and units of them, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    /// The common names.
    pub(crate) names: Vec<String>,
    /// The organisations, however they are arranged.
    pub(crate) organisations: BTreeSet<String>,
    /// The units of the organisations.
    pub(crate) units: BTreeSet<String>,
}

impl Subject {
    pub(crate) fn of(name: &Name) -> Option<Self> {
        let mut subject = Self::default();
        for part in name.iter() {
            let text = DirectoryString::try_from(&part.value).ok()?.value().into_owned();
            match part.oid {
                rfc4519::COMMON_NAME => subject.names.push(text),
                rfc4519::ORGANIZATION_NAME => drop(subject.organisations.insert(text)),
                rfc4519::ORGANIZATIONAL_UNIT_NAME => drop(subject.units.insert(text)),
                _ => return None,
            }
        }
        Some(subject)
    }

    /// The common name, if there is exactly one.
    pub(crate) fn name(&self) -> Option<&str> {
        match &*self.names {
            [name] => Some(name),
            _ => None,
        }
    }
}

/// Whether somebody has approved or denied a request.
#[must_use]
pub fn is_decided(request: &CertificateSigningRequest) -> bool {
    says(request, "Approved") || says(request, "Denied")
}

/// Whether a request is approved, and waits for its certificate.
#[must_use]
pub fn awaits_certificate(request: &CertificateSigningRequest) -> bool {
    let has_certificate = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
    says(request, "Approved") && !says(request, "Denied") && !says(request, "Failed") && !has_certificate
}

fn says(request: &CertificateSigningRequest, type_: &str) -> bool {
    let conditions = request.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| conditions.iter().any(|condition| condition.type_ == type_))
}
