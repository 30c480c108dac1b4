//! The keys and certificates of a server: its own authority, what it shows to clients, its administrator's, and the key that signs tokens.
//!
//! The authority vouches for clients too, as it does in most clusters.

mod certificate;
mod folder;

use std::net::IpAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use p256::{
    ecdsa::SigningKey,
    elliptic_curve::Generate,
    pkcs8::{self, DecodePrivateKey, EncodePrivateKey, LineEnding},
};

use self::certificate::{Certified, Purpose};
pub use self::{
    certificate::Unwritable,
    folder::{Folder, FolderError, write_private},
};

/// For how long the authority is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// For how long the certificates of the server and of its administrator are. They are made anew at each start.
const SHORT_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The names under which pods and people expect a Kubernetes.
const NAMES: [&str; 5] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// A key and the certificate for it, both in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key, in PKCS#8.
    pub key: String,
}

/// All keys and certificates of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pki {
    /// The authority.
    pub authority: Pair,
    /// What the server shows to clients.
    pub serving: Pair,
    /// What its administrator shows to it.
    pub admin: Pair,
    /// The key that signs the tokens of service accounts, in PKCS#8 as PEM.
    pub tokens: String,
}

/// Where a server can be reached, as its certificate says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Its names, besides the usual ones.
    pub names: Vec<String>,
    /// Its addresses, besides loopback.
    pub addresses: Vec<IpAddr>,
}

/// What has to outlive a server, or its clients would not know it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// The authority.
    pub authority: Pair,
    /// The key that signs the tokens of service accounts.
    pub tokens: String,
}

impl Roots {
    /// New ones.
    pub fn new(now: Timestamp) -> Result<Self, Unwritable> {
        let authority = Certified::authority("drover", now, LIFETIME)?;
        Ok(Self { authority: authority.pair()?, tokens: pem(&SigningKey::generate())? })
    }
}

impl Pki {
    /// All that a server with these roots needs, which can be reached there.
    pub fn new(roots: Roots, hosts: &Hosts, now: Timestamp) -> Result<Self, Unwritable> {
        let Roots { authority, tokens } = roots;
        let signer = Certified::read(&authority)?;
        let serving = signer.certify("CN=drover", Purpose::Server(hosts), now, SHORT_LIFETIME)?;
        let admin = signer.certify("CN=admin,O=system:masters", Purpose::Client, now, SHORT_LIFETIME)?;
        Ok(Self { serving: serving.pair()?, admin: admin.pair()?, authority, tokens })
    }
}

impl Pki {
    /// The kubeconfig of the administrator of a server that is reached there.
    #[must_use]
    pub fn kubeconfig(&self, url: &str) -> String {
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        let (authority, admin) = (encoded(&self.authority.certificate), &self.admin);
        let (certificate, key) = (encoded(&admin.certificate), encoded(&admin.key));
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: drover\n  cluster:\n    server: {url}\n    certificate-authority-data: {authority}\n\
             contexts:\n- name: drover\n  context: {{cluster: drover, user: admin}}\ncurrent-context: drover\nusers:\n- name: admin\n  user:\n    \
             client-certificate-data: {certificate}\n    client-key-data: {key}\n"
        )
    }
}

fn pem(key: &SigningKey) -> Result<String, Unwritable> {
    Ok(key.to_pkcs8_pem(LineEnding::LF).map_err(Unwritable::new)?.to_string())
}

fn key_in(pem: &str) -> Result<SigningKey, pkcs8::Error> {
    SigningKey::from_pkcs8_pem(pem)
}

#[cfg(test)]
mod tests;
