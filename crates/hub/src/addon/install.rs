//! The install controller: makes add-ons on the clusters that their strategy chooses, and removes what it has made elsewhere.
//!
//! Watches add-ons, placements with their decisions, clusters and their namespaces. Its key is an add-on. It creates and deletes
//! ManagedClusterAddOns, many at a time, and changes none, but for the mark on those that it is to take over.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement, PlacementDecision},
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    addon::install::{self, Choice, Facts, Hindrance, Installation},
    cluster::removal::{self, Remains, Removal},
    plan::{NoAction, Plan, Write},
    presence::{Absence, FleetFacts, Known},
};
use drover_runtime::{
    clock::after,
    controller::{KeyState, Reconciler},
    metrics::Metrics,
    store::ObjectKey,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use tracing::{info, warn};

use super::inventory::placement_key;
use crate::{cache::Cache, fleet_facts::known, placement::slices_of};

/// How many add-ons are made or removed in one step.
const BATCH: usize = 256;

/// How long it takes until a strategy that could not be followed is looked at again. What can not be read does not tell that it is
/// something else now.
const PATIENCE: Duration = Duration::from_mins(1);

/// Decides where add-ons are installed.
pub(crate) struct Installs {
    adoption: Mutex<Adoption>,
    metrics: Metrics,
}

/// Whether add-ons that somebody else has made are taken over: those that are where they should be when the hub begins.
enum Adoption {
    /// When the first add-on is looked at, which is when the whole fleet is known.
    Begins,
    /// Of these add-ons, or of those that are left of them.
    Of(BTreeSet<ObjectKey>),
}

/// What is kept of an add-on from one plan to the next.
#[derive(Default, PartialEq)]
pub(crate) struct Memory {
    /// The clusters that it is on although nothing chooses them.
    absent: BTreeMap<String, Absence>,
    /// What was told that hinders it, so that it is told once.
    told: Vec<Hindrance>,
    /// The cluster at which the last step ended, if there was more to do: the next begins after it, so that clusters which
    /// can not be dealt with do not hold up the others.
    reached: Option<String>,
}

impl Installs {
    /// A controller that takes over what is there, or does not.
    pub(crate) fn new(adopts: bool, metrics: Metrics) -> Self {
        let adoption = if adopts { Adoption::Begins } else { Adoption::Of(BTreeSet::new()) };
        Self { adoption: Mutex::new(adoption), metrics }
    }

    /// The add-on's clusters that are to be taken over; nothing if that is done.
    fn to_adopt<'a>(
        &self,
        cache: &Cache,
        key: &ObjectKey,
        installation: &Installation<'a>,
    ) -> Option<Vec<&'a ManagedClusterAddOn>> {
        let mut adoption = self.adoption.lock();
        if matches!(*adoption, Adoption::Begins) {
            *adoption = Adoption::Of(cache.addons.cmas.iter().map(|(key, _)| key.clone()).collect());
        }
        let Adoption::Of(addons) = &mut *adoption else { return None };
        if installation.not_ours.is_empty() {
            addons.remove(key);
        }
        addons.contains(key).then(|| installation.not_ours.clone())
    }
}

impl KeyState for Memory {
    type Payload = ();

    fn mark(&mut self, (): ()) {}

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Reconciler<Cache> for Installs {
    type Key = ObjectKey;
    type State = Memory;
    type Action = NoAction;

    const NAME: &'static str = "drover-addon-install";

    fn plan(&self, cache: &Cache, key: &ObjectKey, memory: &mut Memory, now: Timestamp) -> Plan {
        let addon = cache.addons.cmas.get(key).map(|addon| &**addon);
        let absent = mem::take(&mut memory.absent);
        let case = Case { cache, key, absent: &absent };
        let choice = cache.addons.choice(key).unwrap_or(&Choice::ByHand);
        let installation = install::plan(addon, choice, &case, now);
        self.metrics.stepped(Self::NAME, "look", cache.addons.on_clusters(&key.name).count());
        tell(key, &memory.told, &installation.hindrances);

        let plan = match self.to_adopt(cache, key, &installation) {
            Some(not_ours) => adopt(&not_ours, now),
            None => steps(cache, addon, &installation, &mut memory.reached, now),
        };
        memory.absent = installation.absent;
        memory.told = installation.hindrances;
        let again = (!memory.told.is_empty()).then(|| after(now, PATIENCE));
        let wake = [plan.wake, installation.look_again, again].into_iter().flatten().min();
        Plan { wake, ..plan }
    }
}

/// Tells what hinders an add-on, when that is news.
fn tell(addon: &ObjectKey, before: &[Hindrance], now: &[Hindrance]) {
    for hindrance in now.iter().filter(|hindrance| !before.contains(hindrance)) {
        warn!(%addon, %hindrance, "an add-on can not be installed as its strategy says");
    }
    if now.is_empty() && !before.is_empty() {
        info!(%addon, "the add-on is installed as its strategy says again");
    }
}

/// Marks add-ons as the hub's own.
fn adopt(not_ours: &[&ManagedClusterAddOn], now: Timestamp) -> Plan {
    let marks = not_ours.iter().take(BATCH).filter_map(|it| Write::update(*it, &install::adopted(it)));
    batch(marks.collect(), not_ours.len(), now)
}

/// Writes that go together; if they are not all that there is to do, the rest follows at once.
fn batch(parallel: Vec<Write>, all: usize, now: Timestamp) -> Plan {
    let wake = (all > BATCH).then_some(now);
    Plan { parallel, wake, ..Plan::default() }
}

/// What is to be done on one cluster.
enum Step<'a> {
    /// The add-on is made, as that entry of its list says.
    Make(&'a ClusterName, Option<usize>),
    Remove(&'a ManagedClusterAddOn),
}

impl Step<'_> {
    fn cluster(&self) -> &str {
        match self {
            Self::Make(cluster, _) => cluster.as_str(),
            Self::Remove(on_cluster) => on_cluster.metadata.namespace.as_deref().unwrap_or_default(),
        }
    }

    fn write(&self, cache: &Cache, addon: Option<&ClusterManagementAddOn>) -> Option<Write> {
        Some(match self {
            Self::Make(cluster, entry) => Write::create(install::made_for(cache.cluster(cluster)?, addon?, *entry)),
            Self::Remove(on_cluster) => Write::delete(*on_cluster),
        })
    }
}

/// The next steps, beginning with the first cluster after the one that was reached last.
fn steps(
    cache: &Cache,
    addon: Option<&ClusterManagementAddOn>,
    installation: &Installation<'_>,
    reached: &mut Option<String>,
    now: Timestamp,
) -> Plan {
    let make = installation.create.iter().map(|(cluster, entry)| Step::Make(cluster, *entry));
    let mut steps: Vec<_> = make.chain(installation.delete.iter().map(|it| Step::Remove(it))).collect();
    steps.sort_by(|one, other| one.cluster().cmp(other.cluster()));
    let is_done = |step: &Step| reached.as_deref().is_some_and(|reached| step.cluster() <= reached);
    let first = steps.partition_point(is_done);
    steps.rotate_left(first);
    let all = steps.len();
    steps.truncate(BATCH);
    *reached = steps.last().filter(|_| all > BATCH).map(|step| step.cluster().to_owned());
    batch(steps.iter().filter_map(|step| step.write(cache, addon)).collect(), all, now)
}

/// An add-on, with everything that its installation is decided by.
struct Case<'a> {
    cache: &'a Cache,
    key: &'a ObjectKey,
    absent: &'a BTreeMap<String, Absence>,
}

impl Facts for Case<'_> {
    fn placement(&self, placement: &PlacementRef) -> Known<&Placement> {
        known(&self.cache.placements, &placement_key(placement))
    }

    fn slices(&self, placement: &PlacementRef) -> Known<Vec<&PlacementDecision>> {
        // Nobody knows whose slice it is that can not be read.
        if self.cache.decisions.unknown().any(|key| *key.namespace == *placement.namespace) {
            return Known::Unreadable;
        }
        Known::There(slices_of(self.cache, &placement_key(placement)))
    }

    fn clusters(&self) -> impl Iterator<Item = &ManagedCluster> {
        self.cache.clusters.iter().map(|(_, cluster)| &**cluster)
    }

    fn cluster(&self, name: &str) -> Known<&ManagedCluster> {
        known(&self.cache.clusters, &ObjectKey::cluster_wide(name))
    }

    fn has_room(&self, cluster: &ClusterName) -> bool {
        self.cache.has_namespace(cluster)
    }

    fn installed(&self) -> impl Iterator<Item = &ManagedClusterAddOn> {
        let addons = &self.cache.addons;
        addons.on_clusters(&self.key.name).filter_map(|key| addons.mcas.get(key)).map(|on_cluster| &**on_cluster)
    }

    fn is_on(&self, cluster: &ClusterName) -> bool {
        self.cache.addons.mcas.has(&ObjectKey::namespaced(cluster.as_str(), &self.key.name))
    }

    fn leaves_with_cluster(&self, on_cluster: &ManagedClusterAddOn) -> bool {
        !self.cache.keeps_clusters && has_its_turn(self.cache, on_cluster)
    }

    fn absence(&self, cluster: &str) -> Option<Absence> {
        self.absent.get(cluster).copied()
    }
}

/// Whether no other add-on on a cluster that leaves has to be gone before this one.
fn has_its_turn(cache: &Cache, on_cluster: &ManagedClusterAddOn) -> bool {
    let namespace = on_cluster.namespace().unwrap_or_default();
    let Some(cluster) = cache.cluster(&ClusterName::from(namespace.as_str())) else { return false };
    let addons = cache.addons.mcas.in_namespace(&namespace).map(|(_, addon)| &addon.metadata).collect();
    let is_it = |removal: &Removal| matches!(removal, Removal::Delete(it) if it.name == on_cluster.metadata.name);
    match removal::next(cluster, &Remains { addons, works: Vec::new() }) {
        removal::Step::Remove { turn, .. } => turn.iter().any(is_it),
        removal::Step::EndAccess => false,
    }
}

#[cfg(test)]
mod tests;
