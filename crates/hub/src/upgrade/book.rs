//! What is kept of each upgrade, so that a change of one cluster is a look at one cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use drover_api::{cluster::ManagedClustersUpgrade, reference::ClusterName};
use drover_engine::{
    plan::{PlanPart, PlanStep, Subresource, Write, WriteResult},
    presence::Absence,
    tracker::{Dirty, Rejections, StatusThrottle},
    upgrade::{member::Act, plan},
};
use drover_runtime::{clock::after, controller::KeyState};
use k8s_openapi::jiff::Timestamp;

/// About how many clusters something is done in one step. What comes of it is known before the next.
pub(super) const AT_ONCE: usize = 256;
/// How long an upgrade that is under way goes without a look at everybody.
const PATIENCE: Duration = Duration::from_mins(5);
/// Who has not looked for so long has missed something, or time has jumped.
const INATTENTION: Duration = Duration::from_mins(15);

/// What is kept of one upgrade.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The clusters, by how they stand.
    pub(super) index: plan::Fleet,
    /// What all clusters were looked at by.
    context: Option<Context>,
    /// The clusters about which something is to be done, or was tried.
    pub(super) unfinished: BTreeSet<ClusterName>,
    /// The last about which something was done, so that the others get their turn too.
    attended_last: Option<ClusterName>,
    /// The clusters that are part of the upgrade although nothing selects them, and since when that is known.
    pub(super) absent: BTreeMap<ClusterName, Option<Absence>>,
    /// Those of them of which nobody can tell yet whether they are left out.
    pub(super) unsure: BTreeSet<ClusterName>,
    /// Whether all placements agreed with their decisions when somebody last asked.
    is_confirmed: bool,
    /// The clusters that are selected as canaries and are not upgraded.
    pub(super) outside: BTreeSet<ClusterName>,
    /// When clusters want attention though nothing has changed.
    wakes: BTreeSet<(Timestamp, ClusterName)>,
    wake_of: BTreeMap<ClusterName, Timestamp>,
    /// When the status was last written.
    pub(super) throttle: StatusThrottle,
    /// What the server has rejected.
    pub(super) rejections: Rejections,
    dirty: Dirty,
    /// When anybody was last looked at.
    attended: Option<Timestamp>,
    /// Since when clusters are looked at without interruption.
    attentive_since: Timestamp,
    /// When everybody was last looked at.
    looked: Option<Timestamp>,
}

/// What every cluster of an upgrade is looked at by. If it changes, all of them are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Context {
    /// The generation of the upgrade.
    pub(super) generation: Option<i64>,
    /// The sets that its selector takes clusters from.
    pub(super) sets: BTreeSet<String>,
    /// Of each placement, whether it says whom it selects.
    pub(super) are_clear: Vec<bool>,
    pub(super) may_upgrade_hub: bool,
    pub(super) retried: Option<Timestamp>,
    pub(super) is_at_rest: bool,
}

impl KeyState for Pages {
    type Payload = Dirty;

    fn mark(&mut self, dirty: Dirty) {
        self.dirty.merge(dirty);
    }

    fn is_empty(&self) -> bool {
        self.context.is_none()
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            index: plan::Fleet::default(),
            context: None,
            unfinished: BTreeSet::new(),
            attended_last: None,
            absent: BTreeMap::new(),
            unsure: BTreeSet::new(),
            is_confirmed: false,
            outside: BTreeSet::new(),
            wakes: BTreeSet::new(),
            wake_of: BTreeMap::new(),
            throttle: StatusThrottle::default(),
            rejections: Rejections::default(),
            dirty: Dirty::All,
            attended: None,
            attentive_since: Timestamp::UNIX_EPOCH,
            looked: None,
        }
    }
}

impl Pages {
    /// Records what a part of a plan came to.
    pub(super) fn sent<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp) {
        self.rejections.record(part, result);
        let is_status = |write: &Write| {
            write.kind().is::<ManagedClustersUpgrade>() && write.subresource() == Some(Subresource::Status)
        };
        if matches!(part, PlanPart::Write(write) if is_status(write)) && *result == WriteResult::Done {
            self.throttle.written(now);
        }
    }

    /// Takes note of the time, and says since when clusters are looked at without interruption.
    pub(super) fn attend(&mut self, now: Timestamp) -> Timestamp {
        let is_interrupted = self.attended.is_none_or(|attended| after(attended, INATTENTION) < now || attended > now);
        if is_interrupted {
            self.attentive_since = now;
            self.dirty = Dirty::All;
        }
        self.attended = Some(now);
        self.attentive_since
    }

    /// Takes note of what all clusters are looked at by.
    pub(super) fn look_by(&mut self, context: Context) {
        if self.context.as_ref() != Some(&context) {
            self.context = Some(context);
            self.dirty = Dirty::All;
        }
    }

    /// Takes note of whether all placements agree with their decisions. Whether somebody is left out is known when they do, which is told of
    /// none of their clusters.
    pub(super) fn confirmed(&mut self, is_confirmed: bool) -> bool {
        if self.is_confirmed != is_confirmed {
            self.is_confirmed = is_confirmed;
            let unsure: Vec<_> = self.unsure.iter().cloned().collect();
            self.dirty.merge(Dirty::from_iter(unsure));
        }
        is_confirmed
    }

    /// Who has to be looked at: those who have changed, who want it, or who are not done with. Nothing means everybody.
    pub(super) fn take_stale(&mut self, now: Timestamp) -> Option<BTreeSet<ClusterName>> {
        if self.next_look().is_some_and(|time| time <= now) {
            self.dirty = Dirty::All;
        }
        let due: Vec<_> =
            self.wakes.iter().take_while(|(time, _)| *time <= now).map(|(_, name)| name.clone()).collect();
        self.dirty.merge(Dirty::from_iter(due));
        let unfinished = self.in_turn(&self.unfinished);
        self.dirty.merge(Dirty::from_iter(unfinished));
        match std::mem::take(&mut self.dirty) {
            Dirty::All => {
                self.looked = Some(now);
                None
            }
            Dirty::Members(members) => Some(members),
        }
    }

    /// As many of these as can be attended to in one step, from where the last one ended.
    fn in_turn(&self, clusters: &BTreeSet<ClusterName>) -> Vec<ClusterName> {
        let Some(last) = &self.attended_last else { return clusters.iter().take(AT_ONCE).cloned().collect() };
        let after = clusters.range::<ClusterName, _>((Bound::Excluded(last), Bound::Unbounded));
        let before = clusters.range::<ClusterName, _>((Bound::Unbounded, Bound::Included(last)));
        after.chain(before).take(AT_ONCE).cloned().collect()
    }

    /// Takes those of the acts that are done in one step.
    pub(super) fn next(&mut self, mut acts: BTreeMap<ClusterName, Act>) -> Vec<(ClusterName, Act)> {
        let names = self.in_turn(&acts.keys().cloned().collect());
        if acts.len() > AT_ONCE {
            self.attended_last = names.last().cloned();
        }
        names.into_iter().filter_map(|name| acts.remove_entry(&name)).collect()
    }

    /// Takes note of when a cluster wants attention though nothing has changed.
    pub(super) fn wake(&mut self, cluster: &ClusterName, time: Option<Timestamp>) {
        if let Some(former) = self.wake_of.remove(cluster) {
            self.wakes.remove(&(former, cluster.clone()));
        }
        if let Some(time) = time {
            self.wakes.insert((time, cluster.clone()));
            self.wake_of.insert(cluster.clone(), time);
        }
    }

    /// When the first cluster wants attention.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(time, _)| *time)
    }

    /// When everybody is to be looked at again though nothing is heard of them, as long as something is to happen yet: progress does not
    /// depend on an event that may have been missed.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        let is_under_way = self.index.tally().restless > 0;
        self.looked.filter(|_| is_under_way).map(|looked| after(looked, PATIENCE))
    }
}
