//! What the hub says of a cluster, and the events that tell of what is new in it.

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_AVAILABLE, CLUSTER_CLOCK_SYNCED, CLUSTER_DELETING, HUB_ACCEPTED},
    reference::ClusterName,
};
use drover_engine::{
    cluster::{availability, available, conditions},
    condition::Holds,
    plan::{Event, Plan, Write},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use crate::cache::Cache;

/// What the hub says of a cluster.
pub(super) struct Said {
    /// Whether the cluster answers.
    pub(super) available: Holds,
    /// What makes it be said.
    pub(super) plan: Plan,
}

/// Makes these the conditions of a cluster, with what its lease says, and tells what is new.
pub(super) fn say(
    cache: &Cache,
    name: &ClusterName,
    cluster: &ManagedCluster,
    conditions: Vec<Condition>,
    now: Timestamp,
) -> Said {
    let mut wanted = cluster.clone();
    set_conditions(&mut wanted, conditions);
    let judgement = availability::judge(&wanted, cache.belongings.signs(name, now), now);
    set_conditions(&mut wanted, judgement.conditions);
    let writes = Write::status(cluster, &wanted).into_iter().collect();
    let plan =
        Plan { ordered: writes, wake: judgement.look_again, ..Plan::default() }.with_events(news(cluster, &wanted));
    Said { available: available(&wanted), plan }
}

/// A cluster of which there is nothing to say has no status.
fn set_conditions(cluster: &mut ManagedCluster, conditions: Vec<Condition>) {
    if cluster.status.is_some() || !conditions.is_empty() {
        cluster.status.get_or_insert_default().conditions = conditions;
    }
}

/// What is new in the conditions that the hub writes.
fn news(before: &ManagedCluster, after: &ManagedCluster) -> Vec<Event> {
    let is_new = |condition: &&Condition| {
        let former = conditions(before).iter().find(|former| former.type_ == condition.type_);
        former.is_none_or(|former| (&former.status, &former.reason) != (&condition.status, &condition.reason))
    };
    conditions(after).iter().filter(is_new).filter_map(|condition| event(after, condition)).collect()
}

/// What a condition that has changed tells, if it is worth telling.
fn event(cluster: &ManagedCluster, condition: &Condition) -> Option<Event> {
    let note = condition.message.as_str();
    match (condition.type_.as_str(), condition.status.as_str()) {
        (HUB_ACCEPTED, "True") => Some(Event::normal(cluster, "Accepted", note)),
        (HUB_ACCEPTED, _) => Some(Event::warning(cluster, "NotAccepted", note)),
        (CLUSTER_AVAILABLE, "Unknown") => Some(Event::warning(cluster, "AvailableUnknown", note)),
        (CLUSTER_CLOCK_SYNCED, "False") => Some(Event::warning(cluster, "ClockOutOfSync", note)),
        (CLUSTER_DELETING, _) => Some(Event::normal(cluster, "Deleting", note)),
        _ => None,
    }
}
