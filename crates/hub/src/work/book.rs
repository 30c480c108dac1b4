//! What is kept of each set of works, so that a change of one cluster is a look at one cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::{
    drover::{RolloutProgress, RolloutState},
    grammar::SetFingerprint,
    reference::ClusterName,
    work::ManifestWorkReplicaSet,
};
use drover_engine::{
    plan::{PlanPart, PlanStep, Subresource, Write, WriteResult},
    presence::Absence,
    rollout::{Course, Rollout},
    tracker::{Dirty, Rejections, StatusThrottle},
    work::replica_set::{revision::Template, tally::Tally},
};
use drover_runtime::{clock::after, controller::KeyState};
use k8s_openapi::jiff::Timestamp;

/// How long a rollout that is under way goes without a look at everybody.
const PATIENCE: Duration = Duration::from_mins(5);

/// What is kept of one set.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The clusters, by how they stand.
    pub(super) rollout: Rollout<Template>,
    /// The courses that were last set.
    pub(super) courses: Vec<Course<Template>>,
    /// What is remembered of each placement, by its name, as long as the template stays.
    pub(super) remembered: BTreeMap<String, RolloutProgress>,
    /// What all clusters were looked at by; nothing before the first look.
    pub(super) context: Option<Context>,
    /// The works that each placement decides for, counted.
    pub(super) sums: Vec<Tally>,
    /// All works, counted.
    pub(super) sum: Tally,
    /// What each cluster counts for, and for which placement.
    tallies: BTreeMap<ClusterName, (Option<usize>, Tally)>,
    /// The clusters that have a work although nothing selects them, and since when that is known.
    pub(super) absent: BTreeMap<ClusterName, Option<Absence>>,
    /// The clusters whose work may have to be labelled or noted on, or of which there may be too many.
    pub(super) untidy: BTreeSet<ClusterName>,
    /// When the status was last written.
    pub(super) throttle: StatusThrottle,
    /// What the server has rejected.
    pub(super) rejections: Rejections,
    dirty: Dirty,
    /// When everybody was last looked at.
    looked: Option<Timestamp>,
}

/// What every cluster of a set is looked at by. If it changes, all of them are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Context {
    /// The name of the template.
    pub(super) goal: SetFingerprint,
    /// The labels that works have from their set.
    pub(super) labels: BTreeMap<String, String>,
    /// Of each placement, whether it says whom it selects.
    pub(super) are_clear: Vec<bool>,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            rollout: Rollout::new(Vec::new()),
            courses: Vec::new(),
            remembered: BTreeMap::new(),
            context: None,
            sums: Vec::new(),
            sum: Tally::default(),
            tallies: BTreeMap::new(),
            absent: BTreeMap::new(),
            untidy: BTreeSet::new(),
            throttle: StatusThrottle::default(),
            rejections: Rejections::default(),
            dirty: Dirty::All,
            looked: None,
        }
    }
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

impl Pages {
    /// Records what a part of a plan came to.
    pub(super) fn sent<A: PlanStep>(&mut self, part: PlanPart<'_, A>, result: &WriteResult, now: Timestamp) {
        self.rejections.record(part, result);
        let is_status = |write: &Write| {
            write.kind().is::<ManifestWorkReplicaSet>() && write.subresource() == Some(Subresource::Status)
        };
        if matches!(part, PlanPart::Write(write) if is_status(write)) && *result == WriteResult::Done {
            self.throttle.written(now);
        }
    }

    /// Begins anew, with other placements or strategies.
    pub(super) fn begin(&mut self, rollout: Rollout<Template>) {
        self.sums = vec![Tally::default(); rollout.entries().len()];
        (self.sum, self.tallies) = (Tally::default(), BTreeMap::new());
        (self.rollout, self.courses) = (rollout, Vec::new());
        self.dirty = Dirty::All;
    }

    /// Takes note of what all clusters are looked at by.
    pub(super) fn look_by(&mut self, context: Context) {
        if self.context.as_ref() == Some(&context) {
            return;
        }
        if self.context.as_ref().is_some_and(|before| before.goal != context.goal) {
            self.remembered.clear();
        }
        self.context = Some(context);
        self.dirty = Dirty::All;
    }

    /// Who has to be looked at again: nobody from now on. Nothing means everybody.
    pub(super) fn take_stale(&mut self, now: Timestamp) -> Option<BTreeSet<ClusterName>> {
        if self.next_look().is_some_and(|time| time <= now) {
            self.dirty = Dirty::All;
        }
        match std::mem::take(&mut self.dirty) {
            Dirty::All => {
                self.looked = Some(now);
                None
            }
            Dirty::Members(members) => Some(members),
        }
    }

    /// When everybody is to be looked at again though nothing is heard of them, as long as a rollout is under way: progress does not
    /// depend on an event that may have been missed.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        let is_under_way = self.courses.iter().any(|course| course.progress.state != Some(RolloutState::Complete));
        self.looked.filter(|_| is_under_way).map(|looked| after(looked, PATIENCE))
    }

    /// Takes note of what a cluster counts for, and for which placement; nothing if it counts for nothing.
    pub(super) fn count(&mut self, cluster: &ClusterName, now: Option<(Option<usize>, Tally)>) {
        if let Some((entry, tally)) = self.tallies.remove(cluster) {
            self.sum -= tally;
            if let Some(sum) = entry.and_then(|entry| self.sums.get_mut(entry)) {
                *sum -= tally;
            }
        }
        let Some((entry, tally)) = now else { return };
        self.sum += tally;
        if let Some(sum) = entry.and_then(|entry| self.sums.get_mut(entry)) {
            *sum += tally;
        }
        self.tallies.insert(cluster.clone(), (entry, tally));
    }

    /// All clusters that count for something.
    pub(super) fn counted_clusters(&self) -> impl Iterator<Item = &ClusterName> {
        self.tallies.keys()
    }
}
