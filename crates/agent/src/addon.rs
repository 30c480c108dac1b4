//! Add-ons: the credentials by which their agents are known to the hub, and whether those agents are alive.
//!
//! [`Roster`] is what the agent knows of its cluster's add-ons. What it wants of the cluster is [attended](attend) by one task for each Secret, which
//! [keeps](keep) the credentials in it good, and one for each Lease, which [watches](lease) it. What becomes of that is [reported](report) in the add-ons' status.

mod attend;
mod drawer;
mod keep;
mod lease;
mod report;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use drover_api::addon::ManagedClusterAddOn;
use drover_engine::registration::{
    enrolment::{Enrolment, Home, Keeper, Outcome, Place},
    health::{Lease, is_by_lease},
};
use drover_runtime::{
    cache::Tracks,
    caches,
    queue::Queue,
    store::{Change, ObjectKey, Store},
};
use kube::ResourceExt as _;
use tokio::sync::watch;

pub(crate) use self::{
    attend::Attending,
    keep::{Terms, Trade},
    report::Reports,
};

/// What the agent knows of the add-ons of its cluster.
pub(crate) struct Roster {
    keeper: Keeper,
    addons: Store<ManagedClusterAddOn>,
    is_listed: bool,
    /// What has become of the credentials that are wanted, as far as that is known.
    outcomes: BTreeMap<Place, Outcome>,
    /// The Leases of add-ons, as far as they are known.
    leases: BTreeMap<Post, Lease>,
    /// Whether the hub has heard of the cluster lately, so that it believes what is said of its add-ons.
    is_heard: bool,
    wanted: watch::Sender<Option<Wanted>>,
}

/// What add-ons need of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    enrolments: BTreeMap<Place, Enrolment>,
    /// The Leases that tell of an add-on, by its name.
    posts: BTreeMap<String, Post>,
    /// Whether that is all: not while there are add-ons that can not be read.
    is_whole: bool,
}

/// Where the Lease of an add-on's agent is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Post {
    home: Home,
    namespace: String,
    addon: String,
}

impl Roster {
    pub(crate) fn new(keeper: Keeper) -> Self {
        Self {
            keeper,
            addons: Store::default(),
            is_listed: false,
            outcomes: BTreeMap::new(),
            leases: BTreeMap::new(),
            is_heard: false,
            wanted: watch::Sender::new(None),
        }
    }

    /// What add-ons need, whenever that changes; nothing before they are known.
    fn wanted(&self) -> watch::Receiver<Option<Wanted>> {
        self.wanted.subscribe()
    }

    /// Takes note of whether the hub has heard of the cluster lately.
    pub(crate) fn heard(&mut self, is_heard: bool, queue: &Queue<ObjectKey>) {
        if std::mem::replace(&mut self.is_heard, is_heard) != is_heard {
            self.addons.iter().for_each(|(key, _)| queue.mark(key.clone()));
        }
    }

    /// Takes note of what has become of credentials.
    fn note(&mut self, place: &Place, addon: &str, outcome: Outcome, queue: &Queue<ObjectKey>) {
        if self.outcomes.get(place) != Some(&outcome) {
            self.outcomes.insert(place.clone(), outcome);
            queue.mark(self.key(addon));
        }
    }

    /// Takes note of how a Lease is now; nothing if nobody can tell.
    fn saw(&mut self, post: &Post, lease: Option<Lease>, queue: &Queue<ObjectKey>) {
        let former = match lease {
            Some(lease) => self.leases.insert(post.clone(), lease),
            None => self.leases.remove(post),
        };
        if former != lease {
            queue.mark(self.key(&post.addon));
        }
    }

    fn key(&self, addon: &str) -> ObjectKey {
        ObjectKey::namespaced(self.keeper.cluster.as_str(), addon)
    }

    fn post(&self, addon: &ManagedClusterAddOn) -> Option<Post> {
        let (home, namespace) = self.keeper.home(addon);
        is_by_lease(addon).then(|| Post { home, namespace, addon: addon.name_any() })
    }

    /// What has become of the credentials of an add-on, as far as that is known.
    fn outcomes(&self, addon: &ManagedClusterAddOn) -> Vec<(Enrolment, Outcome)> {
        let wanted = self.wanted.borrow();
        let holder = |place: &Place| wanted.as_ref()?.enrolments.get(place).map(|holder| &holder.addon);
        let outcome = |place: Place, enrolment: Enrolment| match holder(&place) {
            Some(other) if *other != enrolment.addon => {
                let why = format!("the Secret {place} is that of the add-on {other}: call this one otherwise");
                Some((enrolment, Outcome::Failed(why)))
            }
            _ => Some((enrolment, self.outcomes.get(&place)?.clone())),
        };
        let enrolments = self.keeper.enrolments(addon).into_iter();
        enrolments.filter_map(|(place, enrolment)| outcome(place, enrolment)).collect()
    }

    /// Brings what is wanted up to date, all of it at once: what is not in it is removed.
    fn want(&mut self) {
        if !self.is_listed {
            return;
        }
        let mut wanted = Wanted {
            enrolments: BTreeMap::new(),
            posts: BTreeMap::new(),
            is_whole: self.addons.unknown().next().is_none(),
        };
        for (_, addon) in self.addons.iter() {
            for (place, enrolment) in self.keeper.enrolments(addon) {
                // If two add-ons mean one Secret, it is that of the first.
                if let Entry::Vacant(place) = wanted.enrolments.entry(place) {
                    place.insert(enrolment);
                }
            }
            wanted.posts.extend(self.post(addon).map(|post| (addon.name_any(), post)));
        }
        self.outcomes.retain(|place, _| wanted.enrolments.contains_key(place));
        self.leases.retain(|post, _| wanted.posts.get(&post.addon) == Some(post));
        self.wanted.send_if_modified(|former| former.replace(wanted.clone()).as_ref() != Some(&wanted));
    }
}

caches!(Roster => Arc<Queue<ObjectKey>>; ManagedClusterAddOn);

impl Tracks<ManagedClusterAddOn> for Roster {
    fn store(&mut self) -> &mut Store<ManagedClusterAddOn> {
        &mut self.addons
    }

    fn changed(&mut self, change: &Change<ManagedClusterAddOn>, queue: &Arc<Queue<ObjectKey>>) {
        self.want();
        queue.mark(change.key.clone());
    }

    fn listed(&mut self, _: &Arc<Queue<ObjectKey>>) {
        self.is_listed = true;
        self.want();
    }
}
