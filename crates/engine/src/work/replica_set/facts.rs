//! What is known of sets of works, and of their works.

use drover_api::{reference::ClusterName, work::ManifestWorkReplicaSet};

use super::{placed_work::PlacedWork, work_template::WorkTemplate};
use crate::{
    manifestwork::NewWork,
    plan::{ObjectKey, PlanStep},
    presence::FleetFacts,
    rollout::member::Group,
};

/// What decisions about sets of works are made from. The hub reads it from its cache.
pub trait ReplicaSetFacts: FleetFacts {
    /// The action that creates a work.
    type Action: PlanStep;

    /// A set.
    fn replica_set(&self, key: &ObjectKey) -> Option<&ManifestWorkReplicaSet>;

    /// The template of a set.
    fn work_template(&self, set: &ObjectKey) -> Option<&WorkTemplate>;

    /// The works of a set.
    fn works_of(&self, set: &ObjectKey) -> impl Iterator<Item = &PlacedWork>;

    /// The works of a set on a cluster.
    fn works_on(&self, set: &ObjectKey, cluster: &ClusterName) -> impl Iterator<Item = &PlacedWork>;

    /// The clusters on which a set has works.
    fn clusters_with_works(&self, set: &ObjectKey) -> impl Iterator<Item = &ClusterName>;

    /// The decision group in which a placement has selected a cluster; `None` if it has not.
    fn selection(&self, cluster: &ClusterName, placement: &ObjectKey) -> Option<&Group>;

    /// Creates a work, or adopts the one that exists.
    fn create(&self, work: NewWork) -> Self::Action;
}
