//! What the agent knows of its works, and of what it has made of them on the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use drover_api::work::{AppliedManifestWork, ManifestWork};
use drover_engine::work::{self, Presence, RawJson};
use drover_runtime::{
    cache::{Enqueue, Tracks},
    caches,
    clock::Clock,
    decode::Damaged,
    queue::Queue,
    store::{Change, ObjectKey, Store},
};
use kube::ResourceExt as _;
use tokio::sync::watch;

use super::{
    course::{Course, Piece, WorkName},
    executor::Rights,
    index::Index,
    kinds::Kinds,
    object::{Place, Resource},
    packed::pack,
};

/// How an agent goes about works.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The hash of the hub's address.
    pub(crate) hub_hash: String,
    /// By which the agent tells what it has applied from what other agents have.
    pub(crate) agent_id: String,
    /// The namespace of the cluster on the hub.
    pub(crate) namespace: String,
    /// How long a work may be missing on the hub before what it has left is removed.
    pub(crate) grace: Duration,
    /// What is done with reported values that have no type of their own.
    pub(crate) raw_json: RawJson,
}

/// What is to be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    /// Works, about what is on the cluster.
    pub(crate) applying: Arc<Queue<ObjectKey>>,
    /// AppliedManifestWorks, about what is to go from the cluster.
    pub(crate) clearing: Arc<Queue<ObjectKey>>,
    /// Works, about what the hub is told.
    pub(crate) reporting: Arc<Queue<ObjectKey>>,
}

impl Queues {
    pub(crate) fn new(clock: &Clock) -> Self {
        let queue = || Arc::new(Queue::new(clock.clone()));
        Self { applying: queue(), clearing: queue(), reporting: queue() }
    }
}

/// The works of one hub, and what is on the cluster of them.
pub(crate) struct Site {
    pub(crate) settings: Settings,
    /// The works, with their manifests [packed](super::packed).
    pub(crate) works: Store<ManifestWork>,
    pub(crate) applied: Store<AppliedManifestWork>,
    pub(crate) kinds: Kinds,
    pub(crate) rights: Rights,
    courses: BTreeMap<WorkName, Course>,
    index: Index,
    clock: Clock,
}

impl Site {
    pub(crate) fn new(settings: Settings, clock: Clock) -> Self {
        Self {
            settings,
            works: Store::default(),
            applied: Store::default(),
            kinds: Kinds::default(),
            rights: Rights::default(),
            courses: BTreeMap::new(),
            index: Index::default(),
            clock,
        }
    }

    /// The key of a work.
    pub(crate) fn work_key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&self.settings.namespace, name)
    }

    /// The key of what is recorded of a work.
    pub(crate) fn applied_key(&self, work: &str) -> ObjectKey {
        ObjectKey::cluster_wide(&work::applied_work_name(&self.settings.hub_hash, work))
    }

    /// How far the agent is with a work, as it is now.
    pub(crate) fn course(&self, work: &str) -> Option<&Course> {
        self.courses.get(work)
    }

    /// Changes how far the agent is with one state of a work; nothing where the work has changed meanwhile.
    pub(crate) fn progress<T>(
        &mut self,
        work: &ManifestWork,
        queues: &Queues,
        change: impl FnOnce(&mut Course) -> T,
    ) -> Option<T> {
        let name = work.name_any();
        let course = self.courses.get_mut(&*name).filter(|course| course.is_of(work))?;
        let changed = change(course);
        queues.reporting.mark(self.work_key(&name));
        Some(changed)
    }

    /// The kinds of objects that works have, whenever they change.
    pub(crate) fn resources(&self) -> watch::Receiver<BTreeSet<Resource>> {
        self.index.resources()
    }

    /// Takes note of which objects a work has now.
    pub(crate) fn index(&mut self, work: &str) {
        let places = self.places(work);
        self.index.note(&work.into(), places);
    }

    /// The objects of a work: those of its manifests, and those that were recorded.
    fn places(&self, work: &str) -> BTreeSet<Place> {
        let pieces = self.courses.get(work).into_iter().flat_map(|course| &course.pieces);
        let recorded = self.applied.get(&self.applied_key(work)).and_then(|applied| applied.status.as_ref());
        let recorded = recorded.into_iter().flat_map(|status| &status.applied_resources).map(Place::of_applied);
        pieces.filter_map(|piece| piece.place.clone()).chain(recorded).collect()
    }

    /// Takes note of an object in the state of that version, or that it is gone.
    pub(crate) fn saw(&mut self, place: &Place, version: Option<&str>, queues: &Queues) {
        let now = self.clock.now();
        let works: Vec<_> = self.index.works(place).cloned().collect();
        for work in works {
            let is_news = self.courses.get_mut(&work).is_some_and(|course| {
                let own = course.pieces.iter_mut().filter(|piece| piece.place.as_ref() == Some(place));
                let news = own.filter(|piece| piece.seen.as_deref() != version);
                news.map(|piece| piece.hear(version, now)).count() > 0
            });
            if is_news {
                queues.applying.mark(self.work_key(&work));
            }
            if version.is_none() {
                if let Some(course) = self.courses.get_mut(&work) {
                    course.leftovers.stir();
                }
                queues.clearing.mark(self.applied_key(&work));
                queues.applying.mark(self.work_key(&work));
            }
        }
    }

    /// Whether an object is of a work.
    pub(crate) fn has(&self, place: &Place) -> bool {
        self.index.works(place).next().is_some()
    }

    /// The objects of a kind that works have.
    pub(crate) fn of_kind(&self, resource: &Resource) -> Vec<Place> {
        self.index.of_kind(resource).cloned().collect()
    }

    /// Takes note that the definitions of a group have changed: kinds may be served that were not.
    pub(crate) fn redefined(&mut self, group: &str, queues: &Queues) {
        self.kinds.forget(group);
        let now = self.clock.now();
        let mut waiting = BTreeSet::new();
        for (work, course) in &mut self.courses {
            let is_of_group = |piece: &&mut Piece| {
                piece.meta.group.as_deref() == Some(group)
                    && (piece.place.is_none() || piece.presence == Presence::Unknown)
            };
            if course.pieces.iter_mut().filter(is_of_group).map(|piece| piece.stir(now)).count() > 0 {
                waiting.insert(Arc::clone(work));
            }
        }
        for work in waiting {
            queues.applying.mark(self.work_key(&work));
        }
    }

    fn mark(&self, work: &str, queues: &Queues) {
        queues.applying.mark(self.work_key(work));
        queues.reporting.mark(self.work_key(work));
        queues.clearing.mark(self.applied_key(work));
    }
}

caches!(Site => Queues; ManifestWork, AppliedManifestWork);

impl Enqueue for Queues {}

impl Tracks<ManifestWork> for Site {
    fn store(&mut self) -> &mut Store<ManifestWork> {
        &mut self.works
    }

    /// The agent writes anew what is missing in the status.
    fn salvage(damaged: &Damaged<ManifestWork>) -> Option<ManifestWork> {
        damaged.without_defects()
    }

    fn trim(work: &mut ManifestWork) {
        pack(work);
    }

    fn changed(&mut self, change: &Change<ManifestWork>, queues: &Queues) {
        let name: WorkName = Arc::clone(&change.key.name);
        match &change.new {
            None => drop(self.courses.remove(&name)),
            Some(work) => {
                // A hub that was restored may have another content under a number that was used before.
                let is_same = change.old.as_ref().is_some_and(|old| old.spec == work.spec);
                let is_known = self.courses.get(&name).is_some_and(|course| course.is_of(work)) && is_same;
                if !is_known {
                    let former = self.courses.get(&name).zip(change.old.as_deref());
                    let course = Course::new(work, former);
                    self.courses.insert(Arc::clone(&name), course);
                }
            }
        }
        self.index(&name);
        self.mark(&name, queues);
    }
}

impl Tracks<AppliedManifestWork> for Site {
    fn store(&mut self) -> &mut Store<AppliedManifestWork> {
        &mut self.applied
    }

    fn changed(&mut self, change: &Change<AppliedManifestWork>, queues: &Queues) {
        let either = change.new.as_ref().or(change.old.as_ref());
        if let Some(applied) = either.filter(|applied| applied.spec.hub_hash == self.settings.hub_hash) {
            let work = applied.spec.manifest_work_name.clone();
            let (owner, now) = (change.new.as_ref().and_then(|applied| applied.uid()), self.clock.now());
            if let Some(course) = self.courses.get_mut(&*work).filter(|_| owner.is_some()) {
                course.owned_by(owner, now);
            }
            self.index(&work);
            self.mark(&work, queues);
        }
        let name = either.map(|applied| applied.name_any()).unwrap_or_default();
        queues.clearing.mark(ObjectKey::cluster_wide(&name));
    }
}
