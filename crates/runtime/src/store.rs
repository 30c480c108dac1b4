//! The objects of one kind, as they were last seen.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

pub use drover_engine::plan::ObjectKey;
use kube::{Resource, api::ObjectMeta};

use crate::decode::Defect;

/// What happened to one object: what it was and what it is now.
#[derive(Debug)]
pub struct Change<K> {
    /// Which object.
    pub key: ObjectKey,
    /// What it was, if it was known: an object that goes may never have been readable.
    pub old: Option<Arc<K>>,
    /// What it is now; nothing if it is gone.
    pub new: Option<Arc<K>>,
}

/// The objects of one kind in the order of their keys.
///
/// Two sources tell of an object: the watch, and the answers to our own writes. Whichever comes later in the object's
/// history counts, so that an answer is never undone by an event that is older than it.
#[derive(Debug)]
pub struct Store<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    /// While everything is listed anew: what was there before, and has been seen by nobody since.
    unseen: BTreeSet<ObjectKey>,
    /// What is there and cannot be parsed completely, and why.
    defects: BTreeMap<ObjectKey, Defect>,
    graves: Graves,
}

/// What has gone lately, and when in its history: the answer to a write can come after the news that the object is gone.
#[derive(Debug, Default)]
struct Graves {
    revisions: BTreeMap<ObjectKey, u64>,
    order: VecDeque<ObjectKey>,
}

impl Graves {
    /// How many are remembered: far more than writes can be under way.
    const MANY: usize = 1024;

    fn bury(&mut self, key: &ObjectKey, last: &ObjectMeta) {
        let Some(revision) = revision(last) else { return };
        if self.revisions.insert(key.clone(), revision).is_none() {
            self.order.push_back(key.clone());
        }
        if self.order.len() > Self::MANY
            && let Some(oldest) = self.order.pop_front()
        {
            self.revisions.remove(&oldest);
        }
    }

    /// Whether this is a state from before the object went.
    fn hold(&self, key: &ObjectKey, candidate: &ObjectMeta) -> bool {
        self.revisions.get(key).is_some_and(|gone| revision(candidate).is_some_and(|revision| revision <= *gone))
    }
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), unseen: BTreeSet::new(), defects: BTreeMap::new(), graves: Graves::default() }
    }
}

impl<K: Resource> Store<K> {
    /// The object at a key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// How many objects are known.
    #[must_use]
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// Whether an object is there, be it readable or not.
    #[must_use]
    pub fn has(&self, key: &ObjectKey) -> bool {
        self.objects.contains_key(key) || self.defects.contains_key(key)
    }

    /// The objects that are there and are not known, because they can not be read.
    pub fn unknown(&self) -> impl Iterator<Item = &ObjectKey> {
        self.defects.keys().filter(|key| !self.objects.contains_key(*key))
    }

    /// Why an object cannot be parsed completely, if it cannot.
    #[must_use]
    pub fn defect(&self, key: &ObjectKey) -> Option<&Defect> {
        self.defects.get(key)
    }

    /// All objects, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter()
    }

    /// The objects of one namespace, in order.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<K>)> {
        let first = ObjectKey::namespaced(namespace, "");
        self.objects.range(first..).take_while(move |(key, _)| &*key.namespace == namespace)
    }

    /// Takes note of an object as it is now, unless something later is known already.
    pub fn apply(&mut self, object: K) -> Option<Change<K>> {
        let key = ObjectKey::of(&object);
        let change = self.insert(object);
        if change.is_some() {
            self.defects.remove(&key);
        }
        change
    }

    /// Takes note of an object with a defect, unless something later is known already. `object` is
    /// what counts of it; where nothing
    /// does, the object is there and not known.
    pub fn apply_damaged(&mut self, metadata: &ObjectMeta, object: Option<K>, defect: Defect) -> Option<Change<K>> {
        let key = ObjectKey::of_meta(metadata);
        let is_known = |known: &Arc<K>| !self.unseen.contains(&key) && is_later(known.meta(), metadata);
        if self.objects.get(&key).is_some_and(is_known) || self.graves.hold(&key, metadata) {
            return None;
        }
        self.defects.insert(key.clone(), defect);
        if let Some(object) = object {
            return self.insert(object);
        }
        self.unseen.remove(&key);
        let old = self.objects.remove(&key)?;
        Some(Change { key, old: Some(old), new: None })
    }

    fn insert(&mut self, object: K) -> Option<Change<K>> {
        let key = ObjectKey::of(&object);
        let is_listed = self.unseen.remove(&key);
        let is_known = |known: &Arc<K>| {
            if is_listed {
                // A list is newer than what was known when it was asked for, even if the server was set back and counts anew.
                known.meta().resource_version == object.meta().resource_version
            } else {
                !is_later(object.meta(), known.meta())
            }
        };
        if self.objects.get(&key).is_some_and(is_known) || self.graves.hold(&key, object.meta()) {
            return None;
        }
        let new = Arc::new(object);
        let old = self.objects.insert(key.clone(), Arc::clone(&new));
        Some(Change { key, old, new: Some(new) })
    }

    /// Takes note that an object cannot be parsed, and leaves it as it was last known.
    pub fn keep(&mut self, key: &ObjectKey, defect: Defect) {
        self.unseen.remove(key);
        self.defects.insert(key.clone(), defect);
    }

    /// Takes note that the object that last had this metadata is gone, unless it is known to have been made again since.
    pub fn delete(&mut self, last: &ObjectMeta) -> Option<Change<K>> {
        let key = ObjectKey::of_meta(last);
        self.unseen.remove(&key);
        if self.objects.get(&key).is_some_and(|known| is_later(known.meta(), last)) {
            return None;
        }
        self.graves.bury(&key, last);
        self.remove(key)
    }

    /// All objects are about to be listed anew.
    pub fn begin_list(&mut self) {
        self.unseen = self.objects.keys().chain(self.defects.keys()).cloned().collect();
        self.graves = Graves::default();
    }

    /// All objects have been listed: what nobody has seen since is gone.
    pub fn end_list(&mut self) -> Vec<Change<K>> {
        std::mem::take(&mut self.unseen).into_iter().filter_map(|key| self.remove(key)).collect()
    }

    fn remove(&mut self, key: ObjectKey) -> Option<Change<K>> {
        let was_damaged = self.defects.remove(&key).is_some();
        let old = self.objects.remove(&key);
        (old.is_some() || was_damaged).then_some(Change { key, old, new: None })
    }
}

/// Whether one state of an object comes after another. Resource versions are numbers that rise; where a server does
/// not keep to that, what was heard last counts.
fn is_later(candidate: &ObjectMeta, known: &ObjectMeta) -> bool {
    match (revision(candidate), revision(known)) {
        (Some(candidate), Some(known)) => candidate > known,
        _ => true,
    }
}

fn revision(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;

    use super::*;

    fn map(name: &str, version: u64) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.namespace = Some("ns".to_owned());
        map.metadata.name = Some(name.to_owned());
        map.metadata.resource_version = Some(version.to_string());
        map
    }

    fn defect() -> Defect {
        Defect { path: "status".to_owned(), message: "invalid".to_owned() }
    }

    fn versions(store: &Store<ConfigMap>) -> Vec<String> {
        store.iter().map(|(key, map)| format!("{}@{}", key.name, map.resource_version().unwrap_or_default())).collect()
    }

    #[test]
    fn an_older_event_does_not_undo_the_answer_to_a_write() {
        let mut store = Store::default();
        assert!(store.apply(map("a", 5)).is_some());
        assert!(store.apply(map("a", 4)).is_none());
        assert!(store.apply(map("a", 5)).is_none());
        assert_eq!(versions(&store), ["a@5"]);
    }

    #[test]
    fn a_change_tells_what_was_and_what_is() {
        let mut store = Store::default();
        store.apply(map("a", 1));
        let change = store.apply(map("a", 2)).expect("it changed");
        let version = |map: Option<Arc<ConfigMap>>| map.and_then(|map| map.resource_version());
        assert_eq!((version(change.old).as_deref(), version(change.new).as_deref()), (Some("1"), Some("2")));
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut store = Store::default();
        store.apply(map("kept", 1));
        store.apply(map("gone", 2));
        store.begin_list();
        store.apply(map("kept", 1));
        let gone: Vec<_> = store.end_list().into_iter().map(|change| change.key.name.to_string()).collect();
        assert_eq!(gone, ["gone"]);
        assert_eq!(versions(&store), ["kept@1"]);
    }

    #[test]
    fn what_was_written_during_a_list_stays() {
        let mut store = Store::default();
        store.begin_list();
        store.apply(map("written", 9));
        assert!(store.end_list().is_empty());
        assert_eq!(versions(&store), ["written@9"]);
    }

    #[test]
    fn a_server_that_was_set_back_is_believed_when_it_is_listed() {
        let mut store = Store::default();
        store.apply(map("a", 9));
        store.apply(map("b", 9));
        store.begin_list();
        store.apply(map("b", 10));
        assert!(store.apply(map("a", 3)).is_some());
        assert!(store.apply(map("b", 4)).is_none(), "this was written since");
        assert_eq!(versions(&store), ["a@3", "b@10"]);
    }

    #[test]
    fn the_deletion_of_a_former_object_does_not_remove_the_one_made_since() {
        let mut store = Store::default();
        store.apply(map("a", 9));
        assert!(store.delete(&map("a", 7).metadata).is_none());
        assert!(store.delete(&map("a", 9).metadata).is_some());
        assert_eq!(versions(&store), Vec::<String>::new());
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_back_what_has_gone_since() {
        let mut store = Store::default();
        store.apply(map("a", 5));
        store.delete(&map("a", 7).metadata);
        assert!(store.apply(map("a", 6)).is_none());
        assert_eq!(versions(&store), Vec::<String>::new());
        assert!(store.apply(map("a", 8)).is_some(), "it was made again");
    }

    #[test]
    fn damaged_answer_to_a_write_leaves_no_defect_of_a_deleted_object() {
        let mut store = Store::default();
        let key = ObjectKey::namespaced("ns", "a");
        store.apply(map("a", 5));
        store.delete(&map("a", 7).metadata);
        assert!(store.apply_damaged(&map("a", 6).metadata, None, defect()).is_none());
        assert!(!store.has(&key) && store.defect(&key).is_none());
        assert!(
            store.apply_damaged(&map("a", 8).metadata, Some(map("a", 8)), defect()).is_some(),
            "it was created again"
        );
        assert!(store.defect(&key).is_some());
    }

    #[test]
    fn only_the_latest_graves_are_remembered() {
        let mut store = Store::default();
        for number in 0..=Graves::MANY {
            store.delete(&map(&format!("map-{number:04}"), 7).metadata);
        }
        assert_eq!((store.graves.order.len(), store.graves.revisions.len()), (Graves::MANY, Graves::MANY));
        assert!(store.apply(map("map-0000", 6)).is_some());
        assert!(store.apply(map("map-0001", 6)).is_none());
    }

    #[test]
    fn what_can_not_be_read_any_more_stays_as_it_was() {
        let mut store = Store::default();
        store.apply(map("a", 1));
        store.begin_list();
        store.keep(&ObjectKey::namespaced("ns", "a"), defect());
        assert!(store.end_list().is_empty());
        assert_eq!(versions(&store), ["a@1"]);
    }

    #[test]
    fn what_can_not_be_read_is_there_all_the_same() {
        let mut store = Store::<ConfigMap>::default();
        let key = ObjectKey::namespaced("ns", "a");
        store.keep(&key, defect());
        assert!(store.has(&key) && store.get(&key).is_none());
        store.begin_list();
        assert!(store.has(&key), "it is there until the list is complete without it");
        assert_eq!(store.end_list().len(), 1, "that it is gone is told");
        assert!(!store.has(&key));
    }

    #[test]
    fn a_namespace_is_a_range() {
        let mut store = Store::default();
        let mut other = map("a", 1);
        other.metadata.namespace = Some("nt".to_owned());
        store.apply(other);
        store.apply(map("b", 2));
        store.apply(map("a", 3));
        let names: Vec<_> = store.in_namespace("ns").map(|(key, _)| key.to_string()).collect();
        assert_eq!(names, ["ns/a", "ns/b"]);
    }
}
