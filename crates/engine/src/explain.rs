//! Views over the states of clusters: one cluster, clusters grouped by state and blocker, failures
//! grouped by cause.
//!
//! There are two sources: the snapshot of a tracker, and the published status of an add-on. Both
//! give the same values.

mod groups;
mod published;

use drover_api::{
    addon::ManagedClusterAddOn,
    grammar::SetFingerprint,
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

pub use self::{
    groups::{FailureGroup, MemberGroup, group_failures, group_members},
    published::{PublishedAddOn, PublishedMember},
};
use crate::{
    addon::words,
    member::{Cause, MemberState},
    revision::{
        Set,
        markers::{Given, Proof},
    },
    rollout::Snapshot,
};

/// Where a cluster is in a rollout, and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterExplanation {
    /// The placement that decides for the cluster.
    pub placement: Option<PlacementRef>,
    /// The revision that the cluster has verified.
    pub runs: Option<SetFingerprint>,
    /// The revision that the cluster is assigned.
    pub assigned: Option<SetFingerprint>,
    /// The revision that the cluster should run in the end.
    pub target: Option<SetFingerprint>,
    /// The state, with what the cluster waits for or why it failed.
    pub state: MemberState,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// Explains a cluster from the snapshot of a tracker. `on_cluster` is the add-on on the cluster.
#[must_use]
pub fn explain_cluster(
    snapshot: &Snapshot<Set>,
    on_cluster: Option<&ManagedClusterAddOn>,
    cluster: &ClusterName,
) -> ClusterExplanation {
    let member = Judged {
        placement: snapshot.entry(cluster).and_then(|entry| entry.source.placement()),
        target: snapshot.course(cluster).and_then(|course| course.progress.wanted.as_ref()),
        state: snapshot.state(cluster),
    };
    member.explain(on_cluster, cluster)
}

/// The state of a cluster, as its source knows it.
struct Judged<'a> {
    placement: Option<&'a PlacementRef>,
    target: Option<&'a SetFingerprint>,
    state: MemberState,
}

impl Judged<'_> {
    /// Adds what the add-on on the cluster reports.
    fn explain(self, on_cluster: Option<&ManagedClusterAddOn>, cluster: &ClusterName) -> ClusterExplanation {
        let conditions = conditions_of(on_cluster);
        let (given, proof) = (Given::read(conditions), Proof::read(conditions));
        let state = match self.state {
            MemberState::Failed(cause) => MemberState::Failed(reported(cause, conditions, cluster)),
            state => state,
        };
        let since = match &state {
            MemberState::Waiting(blocker) => blocker.since,
            MemberState::Updating { .. } => given.as_ref().map(|given| given.since),
            MemberState::Soaking { .. } | MemberState::Updated | MemberState::Failed(_) => {
                proof.as_ref().map(|proof| proof.since)
            }
            _ => None,
        };
        ClusterExplanation {
            placement: self.placement.cloned(),
            runs: proof.filter(|proof| proof.verdict.has_run()).map(|proof| proof.set),
            assigned: given.map(|given| given.set),
            target: self.target.cloned(),
            state,
            since,
        }
    }
}

/// The cause with what the cluster has reported of it.
fn reported(cause: Cause, conditions: &[Condition], cluster: &ClusterName) -> Cause {
    match words::failed_of(conditions) {
        Some(message) => Cause::reported(cause.failure, message, cluster),
        None => cause,
    }
}

fn conditions_of(on_cluster: Option<&ManagedClusterAddOn>) -> &[Condition] {
    on_cluster.and_then(|addon| addon.status.as_ref()).map_or(&[], |status| &status.conditions)
}
