//! Revisions: the contents of configurations that are kept, so that a rollout can finish what it began.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use drover_api::{
    addon::{AddOnConfig, ConfigGroupResource},
    drover::{ConfigRevision, ConfigRevisionSpec},
    grammar::SpecHash,
};
use k8s_openapi::jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::configuration::Problem;
use crate::{
    plan::{ObjectKey, Plan, Write},
    time::after,
};

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

/// How long a ConfigRevision is kept that nothing needs. It is created before the rollout that needs
/// it says so, and a rollout that was lost may say so again.
const GRACE_PERIOD: Duration = Duration::from_mins(1);

/// What is known of a type of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeState {
    /// Nothing yet, or nothing any more.
    Unknown,
    /// All its configurations are.
    Listed,
    /// The server has no such type.
    Absent,
    /// The hub may not read it.
    Forbidden,
}

impl TypeState {
    /// Why the templates that exist are not known, if this is the state of their type and they are not.
    /// Where the type does not exist, there are none.
    #[must_use]
    pub fn why_templates_are_unknown(self) -> Option<Problem> {
        match self {
            Self::Listed | Self::Absent => None,
            Self::Unknown => Some(Problem::TemplatesNotYet),
            Self::Forbidden => Some(Problem::TemplatesForbidden),
        }
    }
}

/// Where a content exists.
#[derive(Clone, Copy, Debug)]
pub struct ContentSources {
    /// The state of its type; `None` if nothing refers to the type any more.
    pub type_state: Option<TypeState>,
    /// Whether a configuration is known to have it.
    pub is_live: bool,
    /// Whether a ConfigRevision has it.
    pub stored: Evidence,
    /// Whether an AddOnRollout needs it.
    pub recorded: Evidence,
}

/// What the objects of a kind show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// One of them has it.
    Found,
    /// One of them may have it, and cannot be parsed.
    Possible,
    /// None of them has it.
    Absent,
}

impl Evidence {
    /// What is known of objects of which one has it, or of which some cannot be parsed.
    #[must_use]
    pub fn of(is_found: bool, is_any_unreadable: impl FnOnce() -> bool) -> Self {
        if is_found {
            Self::Found
        } else if is_any_unreadable() {
            Self::Possible
        } else {
            Self::Absent
        }
    }
}

impl ContentSources {
    /// Whether nothing has the content any more. That is never said of a type that cannot be read.
    #[must_use]
    pub fn is_lost(self) -> bool {
        let may_be_live = match self.type_state {
            None => false,
            Some(TypeState::Unknown | TypeState::Forbidden) => true,
            Some(TypeState::Listed | TypeState::Absent) => self.is_live,
        };
        !may_be_live && self.stored == Evidence::Absent
    }

    /// Whether nothing needs a ConfigRevision with the content: no rollout, and no configuration that has
    /// it, from which a rollout may begin.
    fn is_unused(self) -> bool {
        self.recorded == Evidence::Absent && !self.is_live && self.type_state != Some(TypeState::Unknown)
    }
}

/// Deletes a ConfigRevision that is garbage. `unused_since` is when it was first found unused.
#[must_use]
pub fn plan(
    revision: Option<&ConfigRevision>,
    sources: impl FnOnce(&ConfigRevision) -> ContentSources,
    unused_since: &mut Option<Timestamp>,
    now: Timestamp,
) -> Plan {
    let Some(revision) = revision.filter(|revision| revision.metadata.deletion_timestamp.is_none()) else {
        *unused_since = None;
        return Plan::default();
    };
    match retention(sources(revision), unused_since, now) {
        Retention::Keep => Plan::default(),
        Retention::Until(time) => Plan { wake: Some(time), ..Plan::default() },
        Retention::Delete => Plan::from_iter([Write::delete(revision)]),
    }
}

/// Creates these ConfigRevisions, unless they exist. Configurations with one content share one.
pub fn create_missing(
    revisions: impl IntoIterator<Item = ConfigRevision>,
    exists: impl Fn(&ObjectKey) -> bool,
) -> Vec<Write> {
    let mut missing = BTreeMap::new();
    for revision in revisions {
        let key = ObjectKey::of(&revision);
        if !exists(&key) {
            missing.entry(key).or_insert(revision);
        }
    }
    missing.into_values().map(Write::create).collect()
}

/// What becomes of a ConfigRevision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retention {
    /// It stays.
    Keep,
    /// It is deleted at that time, if nothing needs it by then.
    Until(Timestamp),
    /// It is deleted.
    Delete,
}

/// Whether a ConfigRevision is garbage. `unused_since` is when it was first found unused.
fn retention(sources: ContentSources, unused_since: &mut Option<Timestamp>, now: Timestamp) -> Retention {
    if !sources.is_unused() {
        *unused_since = None;
        return Retention::Keep;
    }
    // A clock that was set back does not make it stay for longer.
    let since = unused_since.map_or(now, |since| since.min(now));
    *unused_since = Some(since);
    let due = after(since, GRACE_PERIOD);
    if now < due { Retention::Until(due) } else { Retention::Delete }
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

    /// A content that nothing has or needs, of a type that is listed.
    fn nowhere() -> ContentSources {
        ContentSources {
            type_state: Some(TypeState::Listed),
            is_live: false,
            stored: Evidence::Absent,
            recorded: Evidence::Absent,
        }
    }

    #[test]
    fn content_is_lost_only_when_its_type_was_listed_without_it() {
        let lost = |type_state, is_live, is_stored| {
            let stored = Evidence::of(is_stored, || false);
            ContentSources { type_state, is_live, stored, recorded: Evidence::Found }.is_lost()
        };
        assert!(lost(None, false, false) && lost(Some(TypeState::Absent), false, false));
        assert!(lost(Some(TypeState::Listed), false, false));
        assert!(!lost(Some(TypeState::Listed), true, false) && !lost(Some(TypeState::Listed), false, true));
        assert!(!lost(Some(TypeState::Unknown), false, false) && !lost(Some(TypeState::Forbidden), false, false));
        assert!(!ContentSources { stored: Evidence::Possible, ..nowhere() }.is_lost(), "that may have it");
    }

    #[test]
    fn unused_revision_is_deleted_after_the_grace_period() {
        let unused = ContentSources { stored: Evidence::Found, ..nowhere() };
        let (start, mut since) = (Timestamp::UNIX_EPOCH, None);
        let due = after(start, GRACE_PERIOD);
        assert_eq!(retention(unused, &mut since, start), Retention::Until(due));
        assert_eq!(
            retention(ContentSources { recorded: Evidence::Found, ..unused }, &mut since, start),
            Retention::Keep
        );
        assert_eq!(since, None, "the time starts over");
        let unreadable = ContentSources { recorded: Evidence::Possible, ..unused };
        assert_eq!(retention(unreadable, &mut since, due), Retention::Keep);
        retention(unused, &mut since, start);
        assert_eq!(retention(unused, &mut since, due), Retention::Delete);
        let unknown = ContentSources { type_state: Some(TypeState::Unknown), ..unused };
        assert_eq!(retention(unknown, &mut since, due), Retention::Keep);
    }
}
