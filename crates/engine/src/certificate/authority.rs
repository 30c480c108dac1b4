//! A CA, as its certificate describes it.

use k8s_openapi::jiff::Timestamp;
use x509_cert::{
    Certificate, Version,
    der::{Any, Decode, Tagged, asn1::OctetString},
    ext::pkix::{BasicConstraints, KeyUsage, SubjectKeyIdentifier},
    spki::SubjectPublicKeyInfoOwned,
    time::Time,
};

use super::SigningFlaw;

/// Who signs certificates.
#[derive(Clone, Debug)]
pub struct Authority {
    /// Its name, as it is encoded in its certificate.
    pub(super) name: Any,
    /// What tells its key from others.
    pub(super) key_identifier: Option<OctetString>,
    /// From when it may sign.
    pub(super) not_before: Timestamp,
    /// Until when.
    pub(super) not_after: Timestamp,
    key: SubjectPublicKeyInfoOwned,
}

impl Authority {
    /// Reads a CA's certificate, which is encoded as DER.
    pub fn read(certificate: &[u8]) -> Result<Self, SigningFlaw> {
        let read = Certificate::from_der(certificate).map_err(|_| SigningFlaw::CertificateUnreadable)?;
        if !may_sign(&read).ok_or(SigningFlaw::CertificateUnreadable)? {
            return Err(SigningFlaw::NotAnAuthority);
        }
        let contents = read.tbs_certificate();
        let identifier = contents.get_extension::<SubjectKeyIdentifier>();
        let (_, identifier) = identifier.map_err(|_| SigningFlaw::CertificateUnreadable)?.unzip();
        Ok(Self {
            name: name_in(certificate).ok_or(SigningFlaw::CertificateUnreadable)?,
            key_identifier: identifier.map(|identifier| identifier.0),
            not_before: timestamp(contents.validity().not_before),
            not_after: timestamp(contents.validity().not_after),
            key: contents.subject_public_key_info().clone(),
        })
    }

    /// Whether this is its public key, which is encoded as DER with what kind of key it is.
    #[must_use]
    pub fn has_key(&self, key: &[u8]) -> bool {
        // How the kind is written down differs between programs; what is signed with the key is told apart by its bits.
        SubjectPublicKeyInfoOwned::from_der(key).is_ok_and(|key| {
            key.algorithm.oid == self.key.algorithm.oid && key.subject_public_key == self.key.subject_public_key
        })
    }
}

/// Whether a certificate may sign others; nothing if what it says can not be read. Those of the first version could not say, and are taken for
/// CAs; of all others nobody accepts what they have signed unless they say that they are.
fn may_sign(certificate: &Certificate) -> Option<bool> {
    let contents = certificate.tbs_certificate();
    let constraints = contents.get_extension::<BasicConstraints>().ok()?;
    let usages = contents.get_extension::<KeyUsage>().ok()?;
    let is_ca = constraints.map_or(contents.version() == Version::V1, |(_, constraints)| constraints.ca);
    Some(is_ca && usages.is_none_or(|(_, usages)| usages.key_cert_sign()))
}

/// The name of whom a certificate is for, as it is encoded: those who check who has signed compare it byte by byte.
fn name_in(certificate: &[u8]) -> Option<Any> {
    let contents = Vec::<Any>::from_der(certificate).ok()?.into_iter().next()?;
    let parts = contents.decode_as::<Vec<Any>>().ok()?;
    // The oldest certificates leave the version out. Then come the serial number, the algorithm, who has signed, and the validity.
    let has_version = parts.first()?.tag().is_context_specific();
    parts.into_iter().nth(usize::from(has_version) + 4)
}

/// The time, or the last that there is: some certificates are meant to be valid for ever.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
