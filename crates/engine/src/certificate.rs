//! Certificates for agents: what a request asks for, and what the certificate says that is made of it.
//!
//! Whether somebody gets one is decided elsewhere: for agents of clusters in [`crate::cluster::signing_request`], for those of add-ons in
//! [`crate::registration::request`].

pub mod authority;
pub mod draft;
pub mod request;

pub use self::{
    authority::Authority,
    draft::{Algorithm, Draft, draft},
    request::{CLIENT_SIGNER, Malformed},
};

use k8s_openapi::jiff::Timestamp;

/// Why a certificate can not be signed, in words for who looks after the CA.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningFlaw {
    /// There is no CA.
    #[error(
        "it has neither tls.crt and tls.key nor ca.crt and ca.key: put the CA's certificate and key there, both in PEM"
    )]
    NoPair,
    /// The CA's certificate is none.
    #[error("its certificate can not be read: it has to be an X.509 certificate in PEM")]
    CertificateUnreadable,
    /// The certificate is not that of a CA.
    #[error(
        "its certificate is not that of a CA: the basic constraints have to say CA:TRUE, and the key usages, if there are any, keyCertSign"
    )]
    NotAnAuthority,
    /// The CA's time has not come.
    #[error("its certificate is not valid before {0}: wait, or put another CA there")]
    NotYetValid(Timestamp),
    /// The CA's time is over.
    #[error("its certificate has expired on {0}: put a new CA there")]
    Expired(Timestamp),
    /// The CA's key is none, or none that can be used.
    #[error(
        "its key can not be used: it has to be one in PEM that is not encrypted, RSA with 2048 to 4096 bits (PKCS#1 or PKCS#8), ECDSA P-256 or \
         P-384 (SEC1 or PKCS#8), or Ed25519 (PKCS#8)"
    )]
    KeyUnusable,
    /// The CA's key is another's.
    #[error("its key does not belong to its certificate: put the two there that were made together")]
    Mismatch,
    /// The request can not be read.
    #[error(transparent)]
    Request(#[from] Malformed),
    /// The certificate can not be written down.
    #[error("the certificate can not be written down: {0}")]
    Unwritable(String),
}
