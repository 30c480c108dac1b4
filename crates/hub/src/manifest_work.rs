//! ManifestWorks as the hub caches them: one informer for all controllers, and of each work what
//! they need.

use drover_api::{names::CLEANUP_PRIORITY_ANNOTATION, work::ManifestWork};
use drover_engine::{
    is_view_of_work,
    manifestwork::{WorkMetadata, identity},
    template::AddOnWork,
    upgrade::upgrade_work::UpgradeWork,
    work::{completion::TimeToLive, invalid_status, replica_set::placed_work::PlacedWork},
};
use drover_runtime::{
    cache::Tracks,
    decode::Damaged,
    store::{Change, Store},
};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer};

use crate::cache::{Cache, Queues};

/// What is cached of a work. Hardly any has more than one owner, and so more than one of the views.
#[derive(Clone, Debug)]
pub(crate) struct CachedWork {
    /// With finalizers, and the annotation by which a leaving cluster orders the removal of its
    /// works.
    metadata: WorkMetadata,
    pub(crate) addon: Option<Box<AddOnWork>>,
    pub(crate) placed: Option<Box<PlacedWork>>,
    pub(crate) upgrade: Option<Box<UpgradeWork>>,
    pub(crate) time_to_live: Option<TimeToLive>,
}

is_view_of_work!(CachedWork);

impl CachedWork {
    /// A work of which only the metadata are known.
    fn bare(metadata: &ObjectMeta) -> Self {
        let metadata = WorkMetadata::new(kept(metadata));
        Self { metadata, addon: None, placed: None, upgrade: None, time_to_live: None }
    }

    /// The same work with other metadata.
    fn with_metadata(&self, metadata: &ObjectMeta) -> Self {
        let mut work = self.clone();
        let metadata = kept(metadata);
        let views = [
            work.addon.as_deref_mut().map(Resource::meta_mut),
            work.placed.as_deref_mut().map(Resource::meta_mut),
            work.upgrade.as_deref_mut().map(Resource::meta_mut),
        ];
        for view in views.into_iter().flatten() {
            *view = metadata.clone();
        }
        work.metadata = WorkMetadata::new(metadata);
        work
    }
}

/// What is kept of metadata besides what the views keep.
fn kept(metadata: &ObjectMeta) -> ObjectMeta {
    let priority = metadata.annotations.as_ref().and_then(|all| all.get_key_value(CLEANUP_PRIORITY_ANNOTATION));
    ObjectMeta {
        finalizers: metadata.finalizers.clone(),
        annotations: priority.map(|(key, value)| [(key.clone(), value.clone())].into()),
        ..identity(metadata)
    }
}

impl From<ManifestWork> for CachedWork {
    fn from(work: ManifestWork) -> Self {
        let metadata = WorkMetadata::new(kept(&work.metadata));
        Self {
            addon: AddOnWork::of(&work, &metadata).map(Box::new),
            placed: PlacedWork::of(&work, &metadata).map(Box::new),
            upgrade: UpgradeWork::of(&work, &metadata).map(Box::new),
            time_to_live: TimeToLive::of(&work),
            metadata,
        }
    }
}

impl<'de> Deserialize<'de> for CachedWork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ManifestWork::deserialize(deserializer).map(Self::from)
    }
}

impl Tracks<CachedWork> for Cache {
    fn store(&mut self) -> &mut Store<CachedWork> {
        &mut self.works
    }

    /// A work whose status cannot be parsed, as one that is not applied.
    fn salvage(damaged: &Damaged<CachedWork>) -> Option<CachedWork> {
        damaged.with_status(&invalid_status(&damaged.metadata, &damaged.defect.to_string()))
    }

    /// A work whose spec cannot be parsed is still one that has to go before its cluster can.
    fn fall_back(damaged: &Damaged<CachedWork>, known: Option<&CachedWork>) -> Option<CachedWork> {
        let Some(known) = known else { return Some(CachedWork::bare(&damaged.metadata)) };
        // Its generation stays, because its spec does.
        let metadata = ObjectMeta { generation: known.metadata.generation, ..damaged.metadata.clone() };
        Some(known.with_metadata(&metadata))
    }

    fn changed(&mut self, change: &Change<CachedWork>, queues: &Queues) {
        self.mark_leaving(&change.key.namespace, queues);
        self.addon_work_changed(change, queues);
        self.placed_work_changed(change, queues);
        self.upgrade_work_changed(change, queues);
        queues.mark_completion(change);
    }
}

#[cfg(test)]
mod tests {
    use drover_api::names::{ADDON_NAME_LABEL, REPLICA_SET_LABEL};
    use drover_runtime::{cache::SharedCache, clock::ManualClock, decode::Decoded, store::ObjectKey};
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn work(version: &str, labels: &Value, spec: &Value) -> String {
        let metadata = json!({ "namespace": "one", "name": "w", "uid": "u", "resourceVersion": version, "labels": labels,
            "annotations": { CLEANUP_PRIORITY_ANNOTATION: "7", "other": "x" }, "finalizers": ["f"] });
        json!({ "metadata": metadata, "spec": spec }).to_string()
    }

    fn receive(cache: &SharedCache<Cache>, text: &str) -> CachedWork {
        cache.receive(Decoded::<CachedWork>::parse(text).expect("it has a name"));
        let key = ObjectKey::namespaced("one", "w");
        CachedWork::clone(cache.read().works.get(&key).expect("it is cached"))
    }

    fn cache() -> SharedCache<Cache> {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH).clock();
        SharedCache::new(Cache::new(clock.clone()), Queues::new(&clock))
    }

    #[test]
    fn work_of_two_owners_has_two_views() {
        let labels = json!({ ADDON_NAME_LABEL: "hello", REPLICA_SET_LABEL: "default.set" });
        let work = receive(&cache(), &work("1", &labels, &json!({})));
        assert!(work.addon.is_some() && work.placed.is_some() && work.upgrade.is_none());
        let annotations = work.meta().annotations.clone().unwrap_or_default();
        assert_eq!(annotations.keys().map(String::as_str).collect::<Vec<_>>(), [CLEANUP_PRIORITY_ANNOTATION]);
        assert_eq!(work.meta().finalizers.as_deref(), Some(&["f".to_owned()][..]));
    }

    #[test]
    fn work_whose_spec_cannot_be_parsed_is_there_with_the_last_valid_spec() {
        let (cache, labels) = (cache(), json!({ ADDON_NAME_LABEL: "hello" }));
        let damaged = |version: &str| work(version, &labels, &json!({ "workload": 7 }));
        assert!(receive(&cache, &damaged("1")).addon.is_none(), "nothing is known of it");
        assert!(receive(&cache, &work("2", &labels, &json!({}))).addon.is_some());
        let kept = receive(&cache, &damaged("3"));
        let version = |meta: &ObjectMeta| meta.resource_version.clone();
        let of_view = kept.addon.as_ref().and_then(|view| version(view.meta()));
        assert_eq!((version(kept.meta()).as_deref(), of_view.as_deref()), (Some("3"), Some("3")));
    }
}
