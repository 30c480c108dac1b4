//! Reads what decisions about sets of works are made from out of the cache.

use drover_api::{reference::ClusterName, work::ManifestWorkReplicaSet};
use drover_engine::{
    manifestwork::NewWork,
    plan::ObjectKey,
    rollout::member::Group,
    work::replica_set::{WorkTemplate, facts::ReplicaSetFacts, placed_work::PlacedWork},
};

use crate::{
    adopt::{CreateOrAdopt, WorkOwner},
    cache::Cache,
};

impl ReplicaSetFacts for Cache {
    type Action = CreateOrAdopt;

    fn replica_set(&self, key: &ObjectKey) -> Option<&ManifestWorkReplicaSet> {
        self.work_sets.sets.get(key).map(|set| &**set)
    }

    fn work_template(&self, set: &ObjectKey) -> Option<&WorkTemplate> {
        self.work_sets.templates.get(set)
    }

    fn works_of(&self, set: &ObjectKey) -> impl Iterator<Item = &PlacedWork> {
        self.placed_works_of(set)
    }

    fn works_on(&self, set: &ObjectKey, cluster: &ClusterName) -> impl Iterator<Item = &PlacedWork> {
        self.placed_works_on(set, cluster)
    }

    fn clusters_with_works(&self, set: &ObjectKey) -> impl Iterator<Item = &ClusterName> {
        self.work_sets.clusters_of(set)
    }

    fn selection(&self, cluster: &ClusterName, placement: &ObjectKey) -> Option<&Group> {
        self.selections.get(cluster)?.get(placement).map(|chosen| &chosen.group)
    }

    fn create(&self, work: NewWork) -> Self::Action {
        CreateOrAdopt::new(work, WorkOwner::ReplicaSet)
    }
}
