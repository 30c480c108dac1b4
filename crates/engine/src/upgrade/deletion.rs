//! The end of an upgrade that is deleted: its works are removed, its clusters are released, and none of
//! them is interrupted.

use drover_api::{
    cluster::{ManagedCluster, ManagedClustersUpgrade},
    names::{UPGRADE_FINALIZER, UPGRADED_BY_ANNOTATION},
    reference::ClusterName,
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{facts::UpgradeFacts, naming::Part, settings::UpgradeSettings};
use crate::{
    plan::{Plan, Write},
    tracker::BATCH,
};

/// Adds the finalizer to an upgrade; `None` if it has it.
pub(super) fn add_finalizer(upgrade: &ManagedClustersUpgrade) -> Option<Write> {
    let mut wanted = upgrade.clone();
    if !upgrade.finalizers().iter().any(|finalizer| finalizer == UPGRADE_FINALIZER) {
        wanted.finalizers_mut().push(UPGRADE_FINALIZER.to_owned());
    }
    Write::update(upgrade, &wanted)
}

/// Removes the works of an upgrade that is deleted, releases its clusters, and then the upgrade itself.
/// It does not wait for agents: a work that is being deleted is gone when its agent has seen it, which
/// may be much later.
pub(super) fn delete<F: UpgradeFacts>(
    facts: &F,
    upgrade: &ManagedClustersUpgrade,
    settings: &UpgradeSettings,
    now: Timestamp,
) -> Plan {
    let part_name = &settings.part_name;
    let works: Vec<_> =
        facts.clusters_with_parts(part_name).flat_map(|at| delete_works(facts, part_name, at)).collect();
    if !works.is_empty() {
        return batch(works, now);
    }
    let claims: Vec<_> = facts.clusters().filter_map(|cluster| release(cluster, &settings.owner)).collect();
    if !claims.is_empty() {
        return batch(claims, now);
    }
    let records = facts.clusters_with_parts(part_name).filter_map(|cluster| facts.record(part_name, cluster));
    let records = records.filter(|record| record.metadata.deletion_timestamp.is_none());
    let records: Vec<_> = records.map(Write::delete).collect();
    if !records.is_empty() {
        return batch(records, now);
    }
    let mut wanted = upgrade.clone();
    wanted.finalizers_mut().retain(|finalizer| finalizer != UPGRADE_FINALIZER);
    Write::update(upgrade, &wanted).into_iter().collect()
}

fn batch(mut writes: Vec<Write>, now: Timestamp) -> Plan {
    writes.truncate(BATCH);
    Plan { parallel: writes, wake: Some(now), ..Plan::default() }
}

fn delete_works<F: UpgradeFacts>(facts: &F, part_name: &str, cluster: &ClusterName) -> Vec<Write> {
    let works = Part::ALL.into_iter().filter_map(|part| facts.work(part_name, part, cluster));
    let own = works.filter(|work| work.part_name() == part_name && !work.is_leaving());
    own.map(Write::delete).collect()
}

fn release(cluster: &ManagedCluster, owner: &str) -> Option<Write> {
    cluster.annotations().get(UPGRADED_BY_ANNOTATION).filter(|by| *by == owner)?;
    let mut wanted = cluster.clone();
    wanted.annotations_mut().remove(UPGRADED_BY_ANNOTATION);
    Write::update(cluster, &wanted)
}
