//! Signs the certificates of agents, with a CA from a Secret.
//!
//! What a certificate says is decided by the engine. The Secret is read when a certificate is signed, and the key is forgotten afterwards.

use std::{borrow::Cow, fmt, sync::Arc};

use drover_engine::{
    certificate::{Algorithm, Authority, SigningFlaw, draft},
    plan::{PlanStep, Verb, Write},
};
use drover_runtime::{
    execute::{ActionError, Execute},
    pace::result_of,
    store::ObjectKey,
    write::Writer,
};
use k8s_openapi::{
    ByteString,
    api::{certificates::v1::CertificateSigningRequest, core::v1::Secret},
    jiff::{SignedDuration, Timestamp},
};
use kube::{Api, Resource};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::SigningKey,
};

use crate::cache::Cache;

/// The names of a certificate and its key in a Secret. Where there are two pairs, `ca.crt` may be who has signed the other.
const PAIRS: [(&str, &str); 2] = [("tls.crt", "tls.key"), ("ca.crt", "ca.key")];

/// How certificates are signed. Each kind of key has one way.
const ALGORITHMS: [(SignatureScheme, Algorithm); 4] = [
    (SignatureScheme::RSA_PKCS1_SHA256, Algorithm::RsaSha256),
    (SignatureScheme::ECDSA_NISTP256_SHA256, Algorithm::EcdsaSha256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, Algorithm::EcdsaSha384),
    (SignatureScheme::ED25519, Algorithm::Ed25519),
];

/// How long a certificate is valid at most. Agents renew theirs well before.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// Gives an approved request its certificate, signed with the CA in a Secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sign {
    pub(crate) request: Arc<CertificateSigningRequest>,
    /// The Secret.
    pub(crate) ca: ObjectKey,
    /// The certificate is valid from then on.
    pub(crate) now: Timestamp,
}

impl PlanStep for Sign {
    fn verb(&self) -> Verb {
        Verb::Patch
    }

    fn kind_name(&self) -> Cow<'_, str> {
        CertificateSigningRequest::kind(&())
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::of(&*self.request)
    }
}

impl Execute<Cache> for Sign {
    async fn execute(&self, writer: Writer<Cache>) -> Result<(), ActionError> {
        let Self { request, ca, now } = self;
        let secrets = Api::<Secret>::namespaced(writer.client.clone(), &ca.namespace);
        let secret = secrets.get(&ca.name).await.map_err(|error| self.unread(error))?;
        let certificate = sign(&secret, request, *now).map_err(|flaw| self.unusable(&flaw))?;
        let mut wanted = CertificateSigningRequest::clone(request);
        wanted.status.get_or_insert_default().certificate = Some(ByteString(certificate));
        match Write::status(&**request, &wanted) {
            Some(write) => Ok(writer.send(&write).await?),
            None => Ok(()),
        }
    }
}

impl Sign {
    /// What it means that the Secret was not read. That the Secret is missing must not be taken for
    /// an answer that the request is.
    fn unread(&self, error: kube::Error) -> ActionError {
        match result_of(&error).objection() {
            Some(why) => self.unusable(&format!(
                "{why}; it has to be there with the CA, and the hub needs a Role that lets it get it"
            )),
            None => error.into(),
        }
    }

    fn unusable(&self, why: &impl fmt::Display) -> ActionError {
        ActionError::Impossible(format!("the Secret {} is of no use: {why}", self.ca))
    }
}

/// The certificate that an approved request gets from the CA in a Secret, in PEM.
fn sign(secret: &Secret, request: &CertificateSigningRequest, now: Timestamp) -> Result<Vec<u8>, SigningFlaw> {
    let (certificate, key) = pair(secret).ok_or(SigningFlaw::NoPair)?;
    let certificate = CertificateDer::from_pem_slice(certificate).map_err(|_| SigningFlaw::CertificateUnreadable)?;
    let authority = Authority::read(&certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| SigningFlaw::KeyUnusable)?;
    let key = any_supported_type(&key).map_err(|_| SigningFlaw::KeyUnusable)?;
    if !key.public_key().is_some_and(|public| authority.has_key(&public)) {
        return Err(SigningFlaw::Mismatch);
    }
    sign_with(&*key, &authority, request, now)
}

fn sign_with(
    key: &dyn SigningKey,
    authority: &Authority,
    request: &CertificateSigningRequest,
    now: Timestamp,
) -> Result<Vec<u8>, SigningFlaw> {
    let signer = key.choose_scheme(&ALGORITHMS.map(|(scheme, _)| scheme)).ok_or(SigningFlaw::KeyUnusable)?;
    let chosen = ALGORITHMS.iter().find(|(scheme, _)| *scheme == signer.scheme());
    let (_, algorithm) = chosen.ok_or(SigningFlaw::KeyUnusable)?;
    let draft = draft(request, authority, *algorithm, LIFETIME, now)?;
    let signature = signer.sign(draft.to_be_signed()).map_err(|_| SigningFlaw::KeyUnusable)?;
    draft.signed(&signature).map(String::into_bytes)
}

/// The CA's certificate and its key, of the first pair that is complete.
fn pair(secret: &Secret) -> Option<(&[u8], &[u8])> {
    let data = secret.data.as_ref()?;
    let part = |name: &str| data.get(name).map(|part| &*part.0).filter(|part| !part.is_empty());
    PAIRS.iter().find_map(|(certificate, key)| part(certificate).zip(part(key)))
}

#[cfg(test)]
mod tests;
