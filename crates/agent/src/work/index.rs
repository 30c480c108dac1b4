//! Whose the objects on the cluster are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_runtime::store::ObjectKey;
use tokio::sync::watch;

use super::{
    course::WorkName,
    object::{Place, Resource},
};

/// Which objects each work has, and which works each object is of.
#[derive(Debug)]
pub(crate) struct Index {
    objects: BTreeMap<WorkName, BTreeSet<Place>>,
    works: BTreeMap<Place, BTreeSet<WorkName>>,
    /// The kinds of all objects.
    resources: watch::Sender<BTreeSet<Resource>>,
}

impl Default for Index {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), works: BTreeMap::new(), resources: watch::Sender::new(BTreeSet::new()) }
    }
}

impl Index {
    /// Takes note of the objects that a work has now.
    pub(crate) fn note(&mut self, work: &WorkName, objects: BTreeSet<Place>) {
        let former = self.objects.remove(work).unwrap_or_default();
        for place in former.difference(&objects) {
            self.drop(place, work);
        }
        for place in objects.difference(&former) {
            self.works.entry(place.clone()).or_default().insert(Arc::clone(work));
            self.resources.send_if_modified(|resources| resources.insert(place.resource.clone()));
        }
        if !objects.is_empty() {
            self.objects.insert(Arc::clone(work), objects);
        }
    }

    fn drop(&mut self, place: &Place, work: &WorkName) {
        if let Some(works) = self.works.get_mut(place) {
            works.remove(work);
            if works.is_empty() {
                self.works.remove(place);
            }
        }
        if self.of_kind(&place.resource).next().is_none() {
            self.resources.send_if_modified(|resources| resources.remove(&place.resource));
        }
    }

    /// The works that an object is of.
    pub(crate) fn works(&self, place: &Place) -> impl Iterator<Item = &WorkName> {
        self.works.get(place).into_iter().flatten()
    }

    /// The objects of a kind.
    pub(crate) fn of_kind(&self, resource: &Resource) -> impl Iterator<Item = &Place> {
        let first = Place { resource: resource.clone(), key: ObjectKey::cluster_wide("") };
        self.works.range(first..).map(|(place, _)| place).take_while(move |place| place.resource == *resource)
    }

    /// The kinds of all objects, whenever they change.
    pub(crate) fn resources(&self) -> watch::Receiver<BTreeSet<Resource>> {
        self.resources.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(resource: &str, name: &str) -> Place {
        let resource = Resource { group: String::new(), version: "v1".to_owned(), name: resource.to_owned() };
        Place { resource, key: ObjectKey::namespaced("default", name) }
    }

    #[test]
    fn a_kind_is_watched_as_long_as_a_work_has_an_object_of_it() {
        let mut index = Index::default();
        let (one, two): (WorkName, WorkName) = ("one".into(), "two".into());
        let (map, secret) = (place("configmaps", "a"), place("secrets", "a"));
        index.note(&one, [map.clone(), secret.clone()].into());
        index.note(&two, [map.clone()].into());
        assert_eq!(index.works(&map).count(), 2);
        index.note(&one, BTreeSet::new());
        assert_eq!(index.works(&map).collect::<Vec<_>>(), [&two]);
        assert_eq!(index.works(&secret).count(), 0);
        assert_eq!(*index.resources().borrow(), [map.resource.clone()].into());
        assert_eq!(index.of_kind(&map.resource).collect::<Vec<_>>(), [&map]);
    }
}
