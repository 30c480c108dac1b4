//! Signs the certificates of agents, with a CA from a Secret.
//!
//! What a certificate says is decided by the engine. The Secret is read when a certificate is signed, and the key is forgotten afterwards.

use drover_engine::certificate::{Algorithm, Authority, SigningFlaw, draft};
use drover_runtime::{store::ObjectKey, write::Write};
use k8s_openapi::{
    ByteString,
    api::{certificates::v1::CertificateSigningRequest, core::v1::Secret},
    jiff::{SignedDuration, Timestamp},
};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::SigningKey,
};

use crate::fleet::Fleet;

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
pub(crate) fn signing(request: &CertificateSigningRequest, ca: ObjectKey, now: Timestamp) -> Write<Fleet> {
    let approved = request.clone();
    Write::status_from(request, ca, move |secret: &Secret| {
        let mut wanted = approved.clone();
        let certificate = sign(secret, &approved, now)?;
        wanted.status.get_or_insert_default().certificate = Some(ByteString(certificate));
        Ok(wanted)
    })
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
