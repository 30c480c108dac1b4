//! The end of an upgrade that is deleted: what it has made goes, its clusters are let go, and none of them is interrupted.

use drover_api::{
    cluster::{ManagedCluster, ManagedClustersUpgrade},
    names::{UPGRADE_FINALIZER, UPGRADED_BY_ANNOTATION},
    reference::ClusterName,
};
use drover_engine::{
    plan::{Plan, Write},
    tracker::BATCH,
    upgrade::naming::Part,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::blueprint::Blueprint;
use crate::cache::Cache;

/// Has an upgrade wait for its clusters to be let go when it is deleted; nothing if it does.
pub(super) fn guarded(upgrade: &ManagedClustersUpgrade) -> Option<Write> {
    let mut wanted = upgrade.clone();
    if !upgrade.finalizers().iter().any(|finalizer| finalizer == UPGRADE_FINALIZER) {
        wanted.finalizers_mut().push(UPGRADE_FINALIZER.to_owned());
    }
    Write::update(upgrade, &wanted)
}

/// Removes what an upgrade has made, lets its clusters go, and then the upgrade itself. It does not wait for agents: a work that is on its way
/// out goes when its agent has seen it, be that tomorrow.
pub(super) fn removal(cache: &Cache, upgrade: &ManagedClustersUpgrade, blueprint: &Blueprint, now: Timestamp) -> Plan {
    let works: Vec<_> =
        cache.upgrades.clusters_of(&blueprint.part_name).flat_map(|at| works(cache, blueprint, at)).collect();
    if !works.is_empty() {
        return some(works, now);
    }
    let claims: Vec<_> = cache.clusters.iter().filter_map(|(_, cluster)| released(cluster, &blueprint.owner)).collect();
    if !claims.is_empty() {
        return some(claims, now);
    }
    let records = cache.upgrades.clusters_of(&blueprint.part_name);
    let records = records.filter_map(|cluster| cache.upgrades.record(&blueprint.part_name, cluster));
    let records = records.filter(|record| record.metadata.deletion_timestamp.is_none());
    let records: Vec<_> = records.map(Write::delete).collect();
    if !records.is_empty() {
        return some(records, now);
    }
    let mut wanted = upgrade.clone();
    wanted.finalizers_mut().retain(|finalizer| finalizer != UPGRADE_FINALIZER);
    Write::update(upgrade, &wanted).into_iter().collect()
}

fn some(mut writes: Vec<Write>, now: Timestamp) -> Plan {
    writes.truncate(BATCH);
    Plan { parallel: writes, wake: Some(now), ..Plan::default() }
}

fn works(cache: &Cache, blueprint: &Blueprint, cluster: &ClusterName) -> Vec<Write> {
    let name = &blueprint.part_name;
    let works = Part::ALL.into_iter().filter_map(|part| cache.upgrades.work(name, part, cluster));
    let own = works.filter(|work| work.part_name() == Some(name) && work.metadata.deletion_timestamp.is_none());
    own.map(Write::delete).collect()
}

fn released(cluster: &ManagedCluster, owner: &str) -> Option<Write> {
    cluster.annotations().get(UPGRADED_BY_ANNOTATION).filter(|by| *by == owner)?;
    let mut wanted = cluster.clone();
    wanted.annotations_mut().remove(UPGRADED_BY_ANNOTATION);
    Write::update(cluster, &wanted)
}
