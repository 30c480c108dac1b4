//! Add-ons: the credentials by which their agents are known to the hub, and whether those agents are alive.
//!
//! [`Roster`] is what the agent knows of its cluster's add-ons. What it wants of the cluster is [attended](attend) by one task for each Secret, which
//! [keeps](keep) the credentials in it good, and one for each Lease, which [watches](lease) it. What becomes of that is [reported](report) in the add-ons' status.

mod attend;
mod drawer;
mod keep;
mod lease;
mod report;

use std::{collections::BTreeMap, sync::Arc};

use drover_api::addon::ManagedClusterAddOn;
use drover_engine::registration::{
    enrolment::{Enrolment, Home, Keeper, Outcome, Place},
    health::{Lease, is_by_lease},
};
use drover_runtime::{
    clock::Clock,
    fleet::Tracks,
    queue::Queue,
    store::{Change, ObjectKey, Store},
};
use kube::ResourceExt as _;
use tokio::sync::watch;

pub(crate) use self::{
    attend::Attending,
    drawer::Imprint,
    keep::{Terms, Trade},
    report::Reports,
};

/// What the agent knows of the add-ons of its cluster.
pub(crate) struct Roster {
    pub(crate) keeper: Keeper,
    addons: Store<ManagedClusterAddOn>,
    /// What has become of the credentials that are wanted, as far as that is known.
    outcomes: BTreeMap<Place, Outcome>,
    /// The Leases of add-ons that were looked for.
    leases: BTreeMap<Post, Lease>,
    wanted: watch::Sender<Option<Wanted>>,
    pub(crate) queue: Arc<Queue<ObjectKey>>,
}

/// What add-ons need of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    enrolments: BTreeMap<Place, Enrolment>,
    /// The Leases that tell of an add-on, by its name.
    posts: BTreeMap<String, Post>,
}

/// Where the Lease of an add-on's agent is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Post {
    home: Home,
    namespace: String,
    addon: String,
}

impl Roster {
    pub(crate) fn new(keeper: Keeper, clock: &Clock) -> Self {
        Self {
            keeper,
            addons: Store::default(),
            outcomes: BTreeMap::new(),
            leases: BTreeMap::new(),
            wanted: watch::Sender::new(None),
            queue: Arc::new(Queue::new(clock.clone())),
        }
    }

    /// What add-ons need, whenever that changes; nothing before they are known.
    fn wanted(&self) -> watch::Receiver<Option<Wanted>> {
        self.wanted.subscribe()
    }

    /// Takes note of what has become of credentials.
    fn note(&mut self, place: &Place, addon: &str, outcome: Outcome) {
        if self.outcomes.get(place) != Some(&outcome) {
            self.outcomes.insert(place.clone(), outcome);
            self.mark(addon);
        }
    }

    /// Takes note of how a Lease is now.
    fn saw(&mut self, post: &Post, lease: Lease) {
        if self.leases.insert(post.clone(), lease) != Some(lease) {
            self.mark(&post.addon);
        }
    }

    fn mark(&self, addon: &str) {
        self.queue.mark(ObjectKey::namespaced(self.keeper.cluster.as_str(), addon));
    }

    fn post(&self, addon: &ManagedClusterAddOn) -> Option<Post> {
        let (home, namespace) = self.keeper.home(addon);
        is_by_lease(addon).then(|| Post { home, namespace, addon: addon.name_any() })
    }

    /// Brings what is wanted for one add-on up to date.
    fn want(&mut self, name: &str, addon: Option<&ManagedClusterAddOn>) {
        let enrolments = addon.map(|addon| self.keeper.enrolments(addon)).unwrap_or_default();
        let post = addon.and_then(|addon| self.post(addon));
        self.wanted.send_if_modified(|wanted| {
            // Until all add-ons are known, nobody can tell what is not wanted any more.
            let Some(wanted) = wanted else { return false };
            let former = wanted.clone();
            wanted.enrolments.retain(|_, enrolment| enrolment.addon != name);
            wanted.enrolments.extend(enrolments);
            wanted.posts.retain(|addon, _| addon != name);
            wanted.posts.extend(post.map(|post| (name.to_owned(), post)));
            *wanted != former
        });
        self.forget();
    }

    /// Forgets what became of what is not wanted any more.
    fn forget(&mut self) {
        let wanted = self.wanted.borrow();
        let Some(wanted) = wanted.as_ref() else { return };
        self.outcomes.retain(|place, _| wanted.enrolments.contains_key(place));
        self.leases.retain(|post, _| wanted.posts.get(&post.addon) == Some(post));
    }
}

impl Tracks<ManagedClusterAddOn> for Roster {
    fn store(&mut self) -> &mut Store<ManagedClusterAddOn> {
        &mut self.addons
    }

    fn changed(&mut self, change: &Change<ManagedClusterAddOn>) {
        self.want(&change.key.name, change.new.as_deref());
        self.queue.mark(change.key.clone());
    }

    fn listed(&mut self) {
        self.wanted.send_if_modified(|wanted| {
            let is_first = wanted.is_none();
            wanted.get_or_insert_default();
            is_first
        });
        let addons: Vec<_> = self.addons.iter().map(|(_, addon)| Arc::clone(addon)).collect();
        for addon in addons {
            self.want(&addon.name_any(), Some(&addon));
        }
    }
}
