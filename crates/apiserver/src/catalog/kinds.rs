//! The register of everything that is served.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use super::built_in;
use crate::kind::{Kind, Origin, Version};

/// Everything that is served at a moment. A clone is cheap, and stays as it is while the original changes.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// By group, and then by the name in addresses.
    groups: Arc<BTreeMap<String, BTreeMap<String, Arc<Kind>>>>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self::new()
    }
}

impl Kinds {
    /// The built-in kinds only.
    #[must_use]
    pub fn new() -> Self {
        static BUILT_IN: OnceLock<Kinds> = OnceLock::new();
        BUILT_IN.get_or_init(|| Self { groups: Arc::new(grouped(built_in())) }).clone()
    }

    /// The kind with this name in addresses, in a version that is served.
    #[must_use]
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<(Arc<Kind>, &Version)> {
        let kind = self.groups.get(group)?.get(plural)?;
        Some((Arc::clone(kind), kind.version(version)?))
    }

    /// The kind with this name in objects, in a version that is served.
    #[must_use]
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<(Arc<Kind>, &Version)> {
        let mut named = self.groups.get(group)?.values().filter(|it| it.kind == kind);
        named.find_map(|kind| Some((Arc::clone(kind), kind.version(version)?)))
    }

    /// Serves a custom kind from now on, instead of the one with the same name. Built-in kinds stay what they are.
    pub fn insert_custom(&mut self, kind: Arc<Kind>) {
        if self.has_built_in(&kind.group, &kind.plural) {
            return;
        }
        let group = Arc::make_mut(&mut self.groups).entry(kind.group.clone()).or_default();
        group.insert(kind.plural.clone(), kind);
    }

    /// Serves a custom kind no longer.
    pub fn remove_custom(&mut self, group: &str, plural: &str) {
        if self.has_built_in(group, plural) {
            return;
        }
        let groups = Arc::make_mut(&mut self.groups);
        if let Some(kinds) = groups.get_mut(group) {
            kinds.remove(plural);
            if kinds.is_empty() {
                groups.remove(group);
            }
        }
    }

    fn has_built_in(&self, group: &str, plural: &str) -> bool {
        let there = self.groups.get(group).and_then(|kinds| kinds.get(plural));
        there.is_some_and(|kind| kind.origin != Origin::Custom)
    }

    /// All kinds, by group and by their names in addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.groups.values().flat_map(BTreeMap::values)
    }
}

fn grouped(kinds: Vec<Kind>) -> BTreeMap<String, BTreeMap<String, Arc<Kind>>> {
    let mut groups = BTreeMap::<_, BTreeMap<_, _>>::new();
    for kind in kinds {
        groups.entry(kind.group.clone()).or_default().insert(kind.plural.clone(), Arc::new(kind));
    }
    groups
}
