//! Revisions: the contents of configurations that are kept, so that a rollout can finish what it began.

use std::fmt::Write as _;

use drover_api::{
    addon::{AddOnConfig, ConfigGroupResource},
    drover::{ConfigRevision, ConfigRevisionSpec},
    grammar::SpecHash,
};
use sha2::{Digest, Sha256};

/// How many bytes of a digest are in a name: two contents never share one.
const BYTES: usize = 16;

/// Whether objects of a type may hold what nobody but their readers should see. Of these only hashes are kept.
#[must_use]
pub fn is_secret(group_resource: &ConfigGroupResource) -> bool {
    group_resource.group.is_empty() && group_resource.resource == "secrets"
}

/// The name of the revision with one content of a type: whoever wants to keep the same content finds it kept.
#[must_use]
pub fn name(group_resource: &ConfigGroupResource, hash: &SpecHash) -> String {
    let mut digest = Sha256::new();
    for part in [&group_resource.group, &group_resource.resource, &hash.to_string()] {
        digest.update(part);
        // No part contains this, so that no two read the same together.
        digest.update([0]);
    }
    let mut name = format!("{}-", group_resource.resource);
    for byte in &digest.finalize()[..BYTES] {
        // A text takes everything.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// The revision that keeps the content of a configuration; of a Secret it keeps only the hash.
#[must_use]
pub fn revision(config: &AddOnConfig, hash: SpecHash, content: Option<&str>) -> ConfigRevision {
    let AddOnConfig { group_resource, referent } = config.clone();
    let name = name(&group_resource, &hash);
    let content = content.filter(|_| !is_secret(&group_resource)).map(str::to_owned);
    ConfigRevision::new(&name, ConfigRevisionSpec { group_resource, source: referent, spec_hash: hash, content })
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ConfigReferent;

    use super::*;
    use crate::hash::spec_hash;

    fn type_(group: &str, resource: &str) -> ConfigGroupResource {
        ConfigGroupResource { group: group.to_owned(), resource: resource.to_owned() }
    }

    #[test]
    fn a_revision_is_named_by_its_type_and_content() {
        let hash = spec_hash("{}");
        let named = name(&type_("example.com", "things"), &hash);
        assert_eq!(named, "things-5ba6b9d915d2232a67f3a66d85d00ccb", "revisions that are kept would be lost");
        for other in [
            name(&type_("example.org", "things"), &hash),
            name(&type_("example.co", "mthings"), &hash),
            name(&type_("example.com", "things"), &spec_hash("[]")),
        ] {
            assert_ne!(other, named);
        }
    }

    #[test]
    fn the_content_of_a_secret_is_not_kept() {
        let referent = ConfigReferent { namespace: Some("default".to_owned()), name: "one".to_owned() };
        let kept = |group_resource| {
            let config = AddOnConfig { group_resource, referent: referent.clone() };
            let revision = revision(&config, spec_hash("{}"), Some("{}"));
            assert_eq!((&revision.spec.source, &revision.spec.spec_hash), (&referent, &spec_hash("{}")));
            revision.spec.content
        };
        assert_eq!(kept(type_("", "configmaps")).as_deref(), Some("{}"));
        assert_eq!(kept(type_("", "secrets")), None);
        assert_eq!(kept(type_("example.com", "secrets")).as_deref(), Some("{}"), "that is another type");
    }
}
