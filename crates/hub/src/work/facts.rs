//! Reads what decisions about sets of works are made from out of the cache.

use drover_api::{reference::ClusterName, work::ManifestWorkReplicaSet};
use drover_engine::{
    plan::ObjectKey,
    rollout::member::Group,
    work::replica_set::{WorkTemplate, facts::ReplicaSetFacts, placed_work::PlacedWork},
};

use crate::{
    adopt::{Adopt, CreateOrAdopt},
    cache::Cache,
};

impl ReplicaSetFacts for Cache {
    type Action = CreateOrAdopt<PlacedWork>;

    fn replica_set(&self, key: &ObjectKey) -> Option<&ManifestWorkReplicaSet> {
        self.work_sets.sets.get(key).map(|set| &**set)
    }

    fn work_template(&self, set: &ObjectKey) -> Option<&WorkTemplate> {
        self.work_sets.templates.get(set)
    }

    fn works_of(&self, set: &ObjectKey) -> impl Iterator<Item = &PlacedWork> {
        self.work_sets.works_of(set)
    }

    fn works_on(&self, set: &ObjectKey, cluster: &ClusterName) -> impl Iterator<Item = &PlacedWork> {
        self.work_sets.works_on(set, cluster)
    }

    fn clusters_with_works(&self, set: &ObjectKey) -> impl Iterator<Item = &ClusterName> {
        self.work_sets.clusters_of(set)
    }

    fn selection(&self, cluster: &ClusterName, placement: &ObjectKey) -> Option<&Group> {
        self.selections.get(cluster)?.get(placement).map(|chosen| &chosen.group)
    }

    fn create(&self, work: PlacedWork) -> Self::Action {
        CreateOrAdopt::new(work)
    }
}

impl Adopt for PlacedWork {
    fn adopted(there: &Self, wanted: &Self) -> Option<Self> {
        wanted.adopting(there)
    }
}
