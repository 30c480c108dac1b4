//! Watches of what was applied: one for each kind, of metadata alone, and nothing is kept of objects that are not ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use drover_runtime::{
    cache::SharedCache,
    clock::Clock,
    informer::{Freshness, Informer, Observer, Sighting},
    metrics::Metrics,
    store::ObjectKey,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client, ResourceExt as _,
    api::{DynamicObject, PartialObjectMeta},
    runtime::watcher,
};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::task::AbortOnDropHandle;

use super::{
    object::{Place, Resource},
    site::Site,
};

/// After how long a kind is tried again that can not be watched, and its objects are looked at meanwhile.
const PATIENCE: Duration = Duration::from_mins(1);

/// Who keeps the watches.
#[derive(Clone)]
pub(crate) struct Watching {
    pub(crate) managed: Client,
    pub(crate) site: SharedCache<Site>,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Clock,
}

impl Watching {
    /// Watches what works have, for ever.
    pub(crate) async fn run(self) {
        let definitions = Informer::<PartialObjectMeta<CustomResourceDefinition>>::new(
            self.managed.clone(),
            watcher::Config::default(),
            &Freshness::default(),
            &self.metrics,
        );
        let definitions = AbortOnDropHandle::new(tokio::spawn(definitions.run(Definitions(self.site.clone()))));
        let mut wanted = self.site.read().resources();
        let mut running = BTreeMap::<Resource, AbortOnDropHandle<()>>::new();
        loop {
            let now = wanted.borrow_and_update().clone();
            running.retain(|resource, _| now.contains(resource));
            for resource in now {
                running.entry(resource.clone()).or_insert_with(|| {
                    let watch = KindWatch { with: self.clone(), resource, listed: Mutex::default() };
                    AbortOnDropHandle::new(tokio::spawn(watch.run()))
                });
            }
            // It ends with the site, which this holds.
            if wanted.changed().await.is_err() {
                drop(definitions);
                return;
            }
        }
    }
}

/// The watch of one kind.
struct KindWatch {
    with: Watching,
    resource: Resource,
    /// What has been seen of ours since a list began.
    listed: Mutex<BTreeSet<ObjectKey>>,
}

impl KindWatch {
    async fn run(self) {
        let Watching { managed, metrics, clock, .. } = &self.with;
        let member = Arc::new(Freshness::default().join(&self.resource.name));
        let informer = Informer::<PartialObjectMeta<DynamicObject>>::of(
            managed.clone(),
            &self.resource.api_resource(),
            member,
            metrics,
        );
        loop {
            informer.run_until_refused(&self).await;
            // Nobody tells what becomes of them, so they are looked at from time to time.
            clock.sleep(PATIENCE).await;
            for place in self.ours() {
                self.saw(&place, Some("unwatched"));
            }
        }
    }

    fn place(&self, key: ObjectKey) -> Place {
        Place { resource: self.resource.clone(), key }
    }

    fn saw(&self, place: &Place, version: Option<&str>) {
        self.with.site.update(|site, queues| site.saw(place, version, queues));
    }

    /// The objects of the kind that works have.
    fn ours(&self) -> Vec<Place> {
        self.with.site.read().of_kind(&self.resource)
    }

    /// Takes note that an object is there. Of those that are not ours, nothing is kept.
    fn list(&self, place: Place) {
        if self.with.site.read().has(&place) {
            self.listed().insert(place.key);
        }
    }

    fn listed(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.listed.lock()
    }
}

impl Observer<PartialObjectMeta<DynamicObject>> for KindWatch {
    fn observe(&self, sighting: Sighting<PartialObjectMeta<DynamicObject>>) {
        match sighting {
            Sighting::ListBegins => self.listed().clear(),
            Sighting::Object(object) => {
                let place = self.place(ObjectKey::of_meta(&object.metadata));
                self.saw(&place, object.metadata.resource_version.as_deref());
                self.list(place);
            }
            Sighting::Damaged(damaged) => self.list(self.place(ObjectKey::of_meta(&damaged.metadata))),
            Sighting::Gone(last) => self.saw(&self.place(ObjectKey::of_meta(&last)), None),
            Sighting::ListEnds => {
                let listed = std::mem::take(&mut *self.listed());
                for place in self.ours().iter().filter(|place| !listed.contains(&place.key)) {
                    self.saw(place, None);
                }
            }
            Sighting::Broken | Sighting::Refused(_) => {}
        }
    }
}

/// What is to be done when definitions change.
struct Definitions(SharedCache<Site>);

impl Observer<PartialObjectMeta<CustomResourceDefinition>> for Definitions {
    fn observe(&self, sighting: Sighting<PartialObjectMeta<CustomResourceDefinition>>) {
        let name = match sighting {
            Sighting::Object(definition) => definition.name_any(),
            Sighting::Gone(last) => last.name.unwrap_or_default(),
            _ => return,
        };
        if let Some((_, group)) = name.split_once('.') {
            self.0.update(|site, queues| site.redefined(group, queues));
        }
    }
}
