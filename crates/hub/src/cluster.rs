//! The cluster controller: lets clusters in, keeps what belongs to them on the hub, says whether they are there, and sees them out.
//!
//! Watches clusters and what belongs to them. Its key is a cluster. It writes the cluster's set label, taints, finalizer and conditions, its
//! namespace, its lease, and what its agent may do. A renewal of a lease by itself costs no decision: the cluster is looked at when it would
//! have been silent for too long.

mod belongings;
mod removal;
mod requests;
mod signing_request;
mod status;

use drover_api::{
    cluster::ManagedCluster,
    names::{CLUSTER_LEASE, CLUSTER_NAME_LABEL, WORK_BINDING_FINALIZER},
    reference::ClusterName,
};
use drover_engine::{
    cluster::{
        acceptance::{self, Acceptance, Hindrance},
        access::{self, Extent, Part},
        marks::{Feature, has_finalizer, labelled, marked},
    },
    plan::{NoAction, Plan, Write},
};
use drover_runtime::{controller::Reconciler, decode::Defect, store::ObjectKey};
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::Namespace,
        rbac::v1::RoleBinding,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::ResourceExt;

pub(crate) use self::{
    belongings::{Belongings, is_binding_for_addons, is_binding_for_agents, is_for_agents, leases},
    requests::{requests, trim_request},
    signing_request::{SigningRequests, decide},
};
use crate::cache::Cache;

pub(crate) struct Clusters;

impl Reconciler<Cache> for Clusters {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;

    const NAME: &'static str = "drover-cluster";

    fn plan(&self, cache: &Cache, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let name = ClusterName::from(&*key.name);
        match cache.clusters.get(key) {
            Some(cluster) if cluster.metadata.deletion_timestamp.is_some() => removal::plan(cache, &name, cluster, now),
            Some(cluster) => keep(cache, &name, cluster, now),
            // Whatever became of the cluster, its agent has lost its place. One that can not be read is still there.
            None if !cache.clusters.has(key) => removal::end_access(cache, &name).into_iter().collect(),
            None => Plan::default(),
        }
    }
}

/// What has to be written for a cluster that is to stay.
fn keep(cache: &Cache, name: &ClusterName, cluster: &ManagedCluster, now: Timestamp) -> Plan {
    let namespace = cache.belongings.namespace(name);
    let acceptance = acceptance::judge(cluster, namespace, cache.belongings.access(name));
    let said = status::say(cache, name, cluster, acceptance::conditions_of(cluster, &acceptance, now), now);
    // Of a spec that cannot be parsed not all taints are known, and a list is written as a whole.
    let is_outside_of_spec = |defect: &Defect| defect.is_in_status() || defect.is_in_metadata();
    let is_known = cache.clusters.defect(&ObjectKey::of(cluster)).is_none_or(is_outside_of_spec);
    let marks = is_known
        .then(|| Write::update(cluster, &with_features(cache, marked(cluster, &acceptance, said.available, now))))
        .flatten();
    let belongings = match &acceptance {
        Acceptance::Accepted => let_in(cache, name, cluster, namespace, now),
        Acceptance::Hindered(Hindrance::NamespaceTerminating(_)) => finish_namespace(cache, name).into_iter().collect(),
        Acceptance::Denied | Acceptance::Hindered(_) => shut_out(cache, name),
        Acceptance::Awaited => Vec::new(),
    };
    // A cluster can not be written twice in one step. Its finalizer goes before all else; otherwise what is said goes before what
    // follows from it, such as taints.
    let is_held = acceptance != Acceptance::Accepted || has_finalizer(cluster);
    match marks {
        Some(marks) if !is_held || said.plan.ordered.is_empty() => {
            let writes = std::iter::once(marks).chain(belongings).collect();
            Plan { ordered: writes, wake: said.plan.wake, ..Plan::default() }
        }
        _ => said.plan.after(belongings),
    }
}

/// The cluster with labels that say how its add-ons are.
fn with_features(cache: &Cache, cluster: ManagedCluster) -> ManagedCluster {
    let name = cluster.name_any();
    let addons = cache.addons.mcas.in_namespace(&name);
    labelled(cluster, addons.filter_map(|(key, addon)| Some((&*key.name, Feature::of(addon)?))))
}

fn namespace_of(name: &ClusterName) -> Namespace {
    let mut metadata = ObjectMeta { name: Some(name.to_string()), ..ObjectMeta::default() };
    metadata.labels.get_or_insert_default().insert(CLUSTER_NAME_LABEL.to_owned(), name.to_string());
    Namespace { metadata, ..Namespace::default() }
}

/// Gives a cluster a namespace, and its agent what it needs.
fn let_in(
    cache: &Cache,
    name: &ClusterName,
    cluster: &ManagedCluster,
    namespace: Option<&Namespace>,
    now: Timestamp,
) -> Vec<Write> {
    let mut writes: Vec<_> = Write::ensure(namespace, namespace_of(name)).into_iter().collect();
    writes.extend(give_access(cache, name));
    if !cache.belongings.leases.has(&ObjectKey::namespaced(name.as_str(), CLUSTER_LEASE)) {
        writes.push(Write::create(lease_of(name, cluster, now)));
    }
    writes
}

/// Gives a cluster's agent what it may do.
fn give_access(cache: &Cache, name: &ClusterName) -> Vec<Write> {
    let bindings = Part::ALL.map(|part| bind(cache.belongings.binding(name, part), access::binding(name, part)));
    own_role(cache, name, Extent::Full).into_iter().chain(bindings.into_iter().flatten()).collect()
}

/// Gives agents their place in a namespace.
fn bind(stored: Option<&RoleBinding>, mut wanted: RoleBinding) -> Option<Write> {
    let Some(stored) = stored else { return Some(Write::create(wanted)) };
    // A binding can not be given another role, and one that is on its way out does not come back.
    if stored.metadata.deletion_timestamp.is_some() || stored.role_ref != wanted.role_ref {
        return end_binding(stored);
    }
    let foreign: Vec<_> =
        stored.finalizers().iter().filter(|finalizer| !wanted.finalizers().contains(finalizer)).cloned().collect();
    wanted.finalizers_mut().extend(foreign);
    Write::ensure(Some(stored), wanted)
}

/// Takes from a cluster's agent everything that it has, but for a look at whether it is accepted again.
fn shut_out(cache: &Cache, name: &ClusterName) -> Vec<Write> {
    let bindings = Part::ALL.into_iter().filter_map(|part| cache.belongings.binding(name, part));
    let mut writes: Vec<_> = bindings.filter_map(end_binding).collect();
    match cache.belongings.role(name) {
        Some(_) => writes.extend(own_role(cache, name, Extent::Look)),
        None => writes.extend(cache.belongings.role_binding(name).map(Write::delete)),
    }
    writes
}

fn own_role(cache: &Cache, name: &ClusterName, extent: Extent) -> Vec<Write> {
    let belongings = &cache.belongings;
    let wanted = access::role_binding(name);
    let binding = match belongings.role_binding(name) {
        Some(stored) if stored.role_ref != wanted.role_ref => Some(Write::delete(stored)),
        stored => Write::ensure(stored, wanted),
    };
    Write::ensure(belongings.role(name), access::role(name, extent)).into_iter().chain(binding).collect()
}

/// Lets a namespace that is being deleted go, once the agent has finished its works.
fn finish_namespace(cache: &Cache, name: &ClusterName) -> Option<Write> {
    let has_works = cache.works.in_namespace(name.as_str()).next().is_some();
    let binding = cache.belongings.binding(name, Part::Work)?;
    (!has_works && binding.metadata.deletion_timestamp.is_some()).then(|| end_binding(binding)).flatten()
}

/// Removes a binding: first the finalizer that holds it, then the binding.
fn end_binding(stored: &RoleBinding) -> Option<Write> {
    let mut free = stored.clone();
    free.finalizers_mut().retain(|finalizer| finalizer != WORK_BINDING_FINALIZER);
    let is_going = stored.metadata.deletion_timestamp.is_some();
    Write::update(stored, &free).or_else(|| (!is_going).then(|| Write::delete(stored)))
}

/// A lease that the agent has from now on to renew.
fn lease_of(name: &ClusterName, cluster: &ManagedCluster, now: Timestamp) -> Lease {
    let mut metadata =
        ObjectMeta { name: Some(CLUSTER_LEASE.to_owned()), namespace: Some(name.to_string()), ..ObjectMeta::default() };
    metadata.labels.get_or_insert_default().insert(CLUSTER_NAME_LABEL.to_owned(), name.to_string());
    let spec = LeaseSpec {
        lease_duration_seconds: Some(cluster.spec.lease_duration_seconds),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    };
    Lease { metadata, spec: Some(spec) }
}
