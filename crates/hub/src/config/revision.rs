//! The revisions that are kept, and the controller that removes those that nobody needs.
//!
//! Watches revisions, rollouts and configurations. Its key is a revision. It deletes it once no rollout has a set with its
//! content, and no configuration has that content.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    addon::ConfigGroupResource,
    drover::{AddOnRollout, ConfigRevision, SetConfig},
    grammar::SpecHash,
};
use drover_engine::{
    addon::config_revision,
    plan::{NoAction, Plan, Write},
    revision::template_types,
};
use drover_runtime::{
    cache::Tracks,
    controller::Reconciler,
    store::{Change, ObjectKey, Store},
};
use k8s_openapi::jiff::Timestamp;

use crate::cache::{Cache, Queues};

/// The revisions that are kept, and the rollouts that need them.
pub(super) struct Kept {
    /// The hub's own namespace, where they are.
    namespace: Arc<str>,
    /// Without their contents, but for those that works are rendered from.
    revisions: Store<ConfigRevision>,
    /// The revisions of each content.
    of_content: Index,
    pub(super) rollouts: Store<AddOnRollout>,
    /// The rollouts that need each content.
    needed_by: Index,
}

/// Something by the content that it goes by.
type Index = BTreeMap<ConfigGroupResource, BTreeMap<SpecHash, BTreeSet<ObjectKey>>>;

/// A content of some type.
type Content<'a> = (&'a ConfigGroupResource, &'a SpecHash);

impl Kept {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            revisions: Store::default(),
            of_content: Index::new(),
            rollouts: Store::default(),
            needed_by: Index::new(),
        }
    }

    /// Marks the revisions of a content.
    pub(super) fn mark(&self, group_resource: &ConfigGroupResource, hash: &SpecHash, queues: &Queues) {
        for revision in at(&self.of_content, (group_resource, hash)) {
            queues.revisions.mark(revision.clone());
        }
    }

    /// Marks the rollouts that need a content which is not kept: it can be kept again, or not any more.
    pub(super) fn mark_who_misses(&self, group_resource: &ConfigGroupResource, hash: &SpecHash, queues: &Queues) {
        if self.keeps((group_resource, hash)) || self.has_unreadable_revision() {
            return;
        }
        for rollout in at(&self.needed_by, (group_resource, hash)) {
            queues.rollouts.mark(rollout.clone());
        }
    }

    /// Marks the revisions of a type.
    pub(super) fn mark_type(&self, group_resource: &ConfigGroupResource, queues: &Queues) {
        for revision in self.of_content.get(group_resource).into_iter().flat_map(BTreeMap::values).flatten() {
            queues.revisions.mark(revision.clone());
        }
    }

    fn revision_changed(&mut self, change: &Change<ConfigRevision>, queues: &Queues) {
        if let Some(old) = change.old.as_deref().map(content_of) {
            take(&mut self.of_content, old, &change.key);
        }
        if let Some(content) = change.new.as_deref().map(content_of) {
            put(&mut self.of_content, content, &change.key);
        }
        // One that is gone is not counted any more by who removes them.
        queues.revisions.mark(change.key.clone());
        // If somebody needs what is gone, it has to be made again while that can be done; what is back can be given again.
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let come_or_gone = old.xor(new).map(content_of);
        for rollout in come_or_gone.into_iter().flat_map(|content| at(&self.needed_by, content)) {
            queues.rollouts.mark(rollout.clone());
        }
    }

    fn rollout_changed(&mut self, change: &Change<AddOnRollout>, queues: &Queues) {
        let (old, new) = (contents_of(change.old.as_deref()), contents_of(change.new.as_deref()));
        for content in new.difference(&old) {
            put(&mut self.needed_by, *content, &change.key);
            self.mark(content.0, content.1, queues);
        }
        for content in old.difference(&new) {
            take(&mut self.needed_by, *content, &change.key);
            self.mark(content.0, content.1, queues);
        }
        // What is gone is made again; what was made, or has another owner, is decided on.
        let owners =
            |rollout: &Option<Arc<AddOnRollout>>| rollout.as_ref().map(|it| it.metadata.owner_references.clone());
        if owners(&change.old) != owners(&change.new) {
            queues.rollouts.mark(change.key.clone());
        }
        // As long as it could not be read, it might have needed any of them.
        if change.old.is_none() {
            for (revision, _) in self.revisions.iter() {
                queues.revisions.mark(revision.clone());
            }
        }
    }

    /// Whether a ConfigRevision exists that cannot be parsed.
    pub(super) fn has_unreadable_revision(&self) -> bool {
        self.revisions.unknown().next().is_some()
    }

    /// A content that is kept, of a type that works are rendered from.
    pub(super) fn content(&self, group_resource: &ConfigGroupResource, hash: &SpecHash) -> Option<Arc<str>> {
        let mut revisions = at(&self.of_content, (group_resource, hash)).filter_map(|key| self.revisions.get(key));
        revisions.find_map(|revision| revision.spec.content.as_deref().map(Arc::from))
    }

    /// Whether a content is known to be kept.
    pub(super) fn keeps(&self, content: Content<'_>) -> bool {
        at(&self.of_content, content).next().is_some()
    }

    /// Whether a rollout is known to need a content.
    pub(super) fn is_recorded(&self, content: Content<'_>) -> bool {
        at(&self.needed_by, content).next().is_some()
    }
}

fn content_of(revision: &ConfigRevision) -> Content<'_> {
    (&revision.spec.group_resource, &revision.spec.spec_hash)
}

/// The contents in all sets of a rollout.
fn contents_of(rollout: Option<&AddOnRollout>) -> BTreeSet<Content<'_>> {
    let sets = rollout.and_then(|rollout| rollout.status.as_ref()).into_iter().flat_map(|status| &status.sets);
    sets.flat_map(|set| &set.configs).map(|config| (&config.group_resource, &config.config.spec_hash)).collect()
}

fn at<'a>(index: &'a Index, (group_resource, hash): Content<'_>) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
    index.get(group_resource).and_then(|contents| contents.get(hash)).into_iter().flatten()
}

fn put(index: &mut Index, (group_resource, hash): Content<'_>, key: &ObjectKey) {
    index.entry(group_resource.clone()).or_default().entry(hash.clone()).or_default().insert(key.clone());
}

fn take(index: &mut Index, (group_resource, hash): Content<'_>, key: &ObjectKey) {
    let Some(contents) = index.get_mut(group_resource) else { return };
    crate::cache::remove_from(contents, hash, key);
    if contents.is_empty() {
        index.remove(group_resource);
    }
}

impl Tracks<ConfigRevision> for Cache {
    fn store(&mut self) -> &mut Store<ConfigRevision> {
        &mut self.configs.kept.revisions
    }

    fn trim(revision: &mut ConfigRevision) {
        if !template_types().contains(&revision.spec.group_resource) {
            revision.spec.content = None;
        }
    }

    fn changed(&mut self, change: &Change<ConfigRevision>, queues: &Queues) {
        self.configs.kept.revision_changed(change, queues);
    }
}

impl Tracks<AddOnRollout> for Cache {
    fn store(&mut self) -> &mut Store<AddOnRollout> {
        &mut self.configs.kept.rollouts
    }

    fn changed(&mut self, change: &Change<AddOnRollout>, queues: &Queues) {
        self.configs.kept.rollout_changed(change, queues);
        self.mark_readers_of(change, queues);
    }
}

/// Removes revisions that nobody needs.
pub(crate) struct Revisions;

impl Reconciler<Cache> for Revisions {
    type Key = ObjectKey;
    /// Since when nothing needs the revision, as far as this process has seen.
    type State = Option<Timestamp>;
    type Action = NoAction;

    const NAME: &'static str = "drover-config-revision";

    fn plan(&self, cache: &Cache, key: &ObjectKey, unused_since: &mut Option<Timestamp>, now: Timestamp) -> Plan {
        let configs = &cache.configs;
        let sources = |revision: &ConfigRevision| {
            let (group_resource, hash) = content_of(revision);
            configs.sources(group_resource, hash)
        };
        config_revision::plan(configs.kept.revisions.get(key).map(|revision| &**revision), sources, unused_since, now)
    }
}

/// What has to be written so that the contents of a set are kept, as far as there still is what has them.
pub(crate) fn missing<'a>(cache: &Cache, configs: impl IntoIterator<Item = &'a SetConfig>) -> Vec<Write> {
    let kept = &cache.configs.kept;
    let configs = configs.into_iter();
    let lacking = configs.filter(|config| !kept.keeps((&config.group_resource, &config.config.spec_hash)));
    config_revision::create_missing(lacking.filter_map(|config| revision_of(cache, config)), |key| {
        kept.revisions.has(key)
    })
}

/// The revision of a content, if some configuration still has it.
fn revision_of(cache: &Cache, config: &SetConfig) -> Option<ConfigRevision> {
    let (source, live) = cache.configs.with_content(config)?;
    let mut revision = config_revision::revision(&source, live.hash.clone(), live.content.as_deref());
    revision.metadata.namespace = Some(cache.configs.kept.namespace.to_string());
    Some(revision)
}
