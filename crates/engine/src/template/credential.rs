//! What an agent proves itself with: Secrets that its registrations bring to the cluster, and where containers find them.

use std::collections::BTreeSet;

use drover_api::addon::{RegistrationSpec, RegistrationType};

use crate::hash::spec_hash;

/// The file in the Secret for the hub's API server, as containers see it.
pub(super) const KUBECONFIG: &str = "/managed/hub-kubeconfig/kubeconfig";

/// The folder that all credentials are mounted in.
const FOLDER: &str = "/managed";
/// What the Secret for the hub's API server is called, after the add-on; its volume too.
const HUB: &str = "hub-kubeconfig";
/// How long the name of a volume may be.
const MAX_VOLUME: usize = 63;
/// How many digits tell volumes apart whose names would be too long, or the same.
const DIGITS: usize = 8;

/// One Secret that an agent proves itself with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credential {
    /// The name of the pods' volume.
    pub(super) volume: String,
    /// What the name of the Secret ends with, after the add-on's.
    secret: String,
    /// Where it is mounted.
    pub(super) path: String,
}

impl Credential {
    /// The Secrets of some registrations, each once.
    pub(super) fn of(registrations: &[RegistrationSpec]) -> Vec<Self> {
        let mut credentials: Vec<Self> = Vec::new();
        let mut volumes = BTreeSet::new();
        for credential in registrations.iter().filter_map(Self::of_one) {
            if credentials.iter().any(|other| other.secret == credential.secret) {
                continue;
            }
            let volume = unique(credential.volume, &credential.secret, &volumes);
            volumes.insert(volume.clone());
            credentials.push(Self { volume, ..credential });
        }
        credentials
    }

    fn of_one(registration: &RegistrationSpec) -> Option<Self> {
        match registration.kind {
            RegistrationType::KubeClient => {
                Some(Self { volume: HUB.to_owned(), secret: HUB.to_owned(), path: format!("{FOLDER}/{HUB}") })
            }
            RegistrationType::CustomSigner => {
                let signer = registration.custom_signer.as_ref()?.signer_name.replace('/', "-");
                Some(Self {
                    volume: format!("cert-{}", signer.replace('.', "-")),
                    path: format!("{FOLDER}/{signer}"),
                    secret: format!("{signer}-client-cert"),
                })
            }
        }
    }

    /// The name of the Secret.
    pub(super) fn secret_of(&self, addon: &str) -> String {
        format!("{addon}-{}", self.secret)
    }
}

/// Whether an agent registers with the hub's API server.
pub(super) fn is_for_hub(registrations: &[RegistrationSpec]) -> bool {
    registrations.iter().any(|registration| registration.kind == RegistrationType::KubeClient)
}

/// A name for a volume that fits, and that no other has.
fn unique(volume: String, secret: &str, others: &BTreeSet<String>) -> String {
    if volume.len() <= MAX_VOLUME && !others.contains(&volume) {
        return volume;
    }
    let digest = spec_hash(secret).to_string();
    let kept: String = volume.chars().take(MAX_VOLUME - DIGITS - 1).collect();
    format!("{}-{}", kept.trim_end_matches('-'), &digest[..DIGITS])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signers(names: &[&str]) -> Vec<Credential> {
        let signer = |name: &&str| json!({ "type": "CustomSigner", "customSigner": { "signerName": name, "signingCA": { "name": "ca" } } });
        let registrations: Vec<RegistrationSpec> =
            names.iter().map(|name| serde_json::from_value(signer(name)).expect("a registration")).collect();
        Credential::of(&registrations)
    }

    #[test]
    fn a_signer_has_a_volume_a_secret_and_a_folder() {
        let credentials = signers(&["example.com/signer-name", "example.com/signer-name"]);
        let [credential] = &credentials[..] else { panic!("{credentials:?}") };
        assert_eq!(credential.volume, "cert-example-com-signer-name");
        assert_eq!(credential.secret_of("hello"), "hello-example.com-signer-name-client-cert");
        assert_eq!(credential.path, "/managed/example.com-signer-name");
    }

    #[test]
    fn volumes_have_short_names_that_differ() {
        let long = format!("example.com/{}", "long-".repeat(20));
        let credentials = signers(&["ab.cd.com/e", "ab-cd.com/e", &format!("{long}a"), &format!("{long}b")]);
        let volumes: BTreeSet<_> = credentials.iter().map(|credential| credential.volume.as_str()).collect();
        assert_eq!(volumes.len(), 4, "{volumes:?}");
        for volume in volumes {
            assert!(volume.len() <= MAX_VOLUME && !volume.contains("--"), "{volume}");
        }
    }
}
