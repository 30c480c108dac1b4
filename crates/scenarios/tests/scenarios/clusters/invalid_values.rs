//! Clusters and what belongs to them, with values that a server stores and the hub cannot parse.
//!
//! An agent can write such a value into its own status. What administrators ask for is done all the
//! same, also by a hub that never saw
//! the object without it.

use drover_engine::cluster::access::role_name;
use kube::{
    Client, Resource,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::Value;

use super::*;

drover_testkit::scenarios! {
    Own {
        cluster_with_an_invalid_status_is_rejected,
        cluster_with_an_invalid_status_is_removed_by_force,
        cluster_with_an_invalid_spec_is_rejected_and_removed,
        addon_with_an_invalid_status_is_unhealthy_and_removed,
        lease_at_the_end_of_time_keeps_no_cluster_alive,
        request_denied_at_the_end_of_time_is_not_approved,
    }
}

/// A time that Kubernetes accepts, and that is not RFC 3339.
pub(crate) const UNUSUAL: &str = "2026-01-01T00:00:00.1234567890Z";
/// A time that only a server without our schema accepts.
pub(crate) const INVALID: &str = "never";
/// A time as clients write it.
pub(crate) const VALID: &str = "2026-01-01T00:00:00Z";

const CLUSTERS: &str = "managedclusters.cluster.open-cluster-management.io";
const ADDONS: &str = "managedclusteraddons.addon.open-cluster-management.io";

/// The objects of a kind, as JSON.
fn raw<K: Resource<DynamicType = ()>>(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<K>(&()))
}

fn raw_in<K: Resource<DynamicType = ()>>(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &ApiResource::erase::<K>(&()))
}

/// Has a server store any text as the time of a condition.
pub(crate) async fn accept_any_time(world: &World, crd: &str) {
    let found = world.kubectl(["get", "crd", crd, "-o", "jsonpath={.spec.versions[*].name}"]).await.success();
    let versions = found.split_whitespace().count();
    let time = "properties/status/properties/conditions/items/properties/lastTransitionTime/format";
    let patch: Vec<_> = (0..versions)
        .map(|version| json!({ "op": "remove", "path": format!("/spec/versions/{version}/schema/openAPIV3Schema/{time}") }))
        .collect();
    world.kubectl(["patch", "crd", crd, "--type=json", "-p", &json!(patch).to_string()]).await.success();
}

/// Reports a condition that is true since that time. A server needs a moment until it accepts any
/// time.
pub(crate) async fn report_since(objects: &Api<DynamicObject>, name: &str, types: &[&str], time: &str) {
    wait::attempt("a condition is reported", async || {
        let mut object = objects.get(name).await.map_err(|error| error.to_string())?;
        let generation = object.metadata.generation;
        if !object.data["status"]["conditions"].is_array() {
            object.data["status"]["conditions"] = json!([]);
        }
        let conditions = object.data["status"]["conditions"].as_array_mut().expect("conditions are a list");
        conditions.retain(|there| !types.iter().any(|type_| there["type"] == **type_));
        conditions.extend(types.iter().map(|type_| {
            json!({ "type": type_, "status": "True", "reason": "Scenario", "message": "", "lastTransitionTime": time,
                "observedGeneration": generation })
        }));
        objects.replace_status(name, &PostParams::default(), &object).await.map_err(|error| error.to_string())
    })
    .await;
}

async fn patch(objects: &Api<DynamicObject>, name: &str, patch: Value) {
    objects.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("an object can be changed");
}

/// Waits until the hub has reported an object as invalid.
async fn until_reported_invalid(world: &World, namespace: &str, uid: &str) {
    let events = Api::<Event>::namespaced(world.client(), namespace);
    let event = wait::some(&events, &format!("regarding.uid={uid},reason=InvalidObject")).await;
    let note = event.note.unwrap_or_default();
    assert!(note.contains("lastTransitionTime"), "{note}");
}

/// A hub that runs while an object becomes invalid, or only starts after it.
#[derive(Clone, Copy, PartialEq)]
enum Sees {
    Change,
    Outcome,
}

/// Stops the hub, if it is not to see what changes next.
async fn stop_before(sees: Sees, hub: Hub) -> Option<Hub> {
    match sees {
        Sees::Change => Some(hub),
        Sees::Outcome => {
            hub.stop().await;
            None
        }
    }
}

async fn start_after(hub: Option<Hub>, client: &Client) -> Hub {
    match hub {
        Some(hub) => hub,
        None => start(client.clone(), None).await,
    }
}

async fn cluster_with_an_invalid_status_is_rejected(world: World) {
    let client = as_hub(&world).await;
    accept_any_time(&world, CLUSTERS).await;
    let mut hub = start(client.clone(), None).await;
    for (cluster, time, sees) in [
        ("unusual", UNUSUAL, Sees::Change),
        ("unusual-before", UNUSUAL, Sees::Outcome),
        ("invalid", INVALID, Sees::Change),
        ("invalid-before", INVALID, Sees::Outcome),
    ] {
        let agent = Agent::join(&world, cluster).await;
        let uid = clusters(&world).get(cluster).await.expect("the cluster is there").uid().expect("it has a UID");
        let stopped = stop_before(sees, hub).await;
        let own = raw::<ManagedCluster>(agent.client());
        report_since(&own, cluster, &[CLUSTER_AVAILABLE], time).await;
        let renewal = if sees == Sees::Outcome { Some(ask(&world, agent.client(), cluster).await) } else { None };
        patch(&raw::<ManagedCluster>(world.client()), cluster, json!({ "spec": { "hubAcceptsClient": false } })).await;
        hub = start_after(stopped, &client).await;

        let bindings = Api::<RoleBinding>::namespaced(world.client(), cluster);
        for part in ["registration", "work"] {
            wait::gone(&bindings, &format!("open-cluster-management:managedcluster:{cluster}:{part}")).await;
        }
        let list = async || agent.works().list(&ListParams::default()).await;
        wait::attempt("it may no longer see its works", async || is_forbidden(list().await)).await;
        if let Some(renewal) = renewal {
            let events = Api::<Event>::namespaced(world.client(), "default");
            wait::some(&events, &format!("regarding.uid={uid},reason=RequestWaits")).await;
            let requests = Api::<CertificateSigningRequest>::all(world.client());
            assert_eq!(decision(&requests.get(&renewal).await.expect("the request is there")), None);
        }
        // What an administrator takes away stays away.
        let (roles, role) = (Api::<ClusterRole>::all(world.client()), role_name(&cluster.into()));
        roles.delete(&role, &DeleteParams::default()).await.expect("a role can be deleted");
        wait::gone(&Api::<ClusterRoleBinding>::all(world.client()), &role).await;
        assert_eq!(access(&world, cluster).await, BTreeSet::new());
        if time == INVALID {
            until_reported_invalid(&world, "default", &uid).await;
        }
    }
    hub.stop().await;
}

async fn cluster_with_an_invalid_status_is_removed_by_force(world: World) {
    let client = as_hub(&world).await;
    accept_any_time(&world, CLUSTERS).await;
    let mut hub = start(client.clone(), None).await;
    for (cluster, time) in [("unusual", UNUSUAL), ("invalid", INVALID)] {
        let agent = Agent::join(&world, cluster).await;
        hub.stop().await;
        report_since(&raw::<ManagedCluster>(agent.client()), cluster, &[CLUSTER_AVAILABLE], time).await;
        create(&Api::namespaced(world.client(), cluster), held_work(cluster)).await;
        let all = raw::<ManagedCluster>(world.client());
        all.delete(cluster, &DeleteParams::default()).await.expect("a cluster can be deleted");
        hub = start(client.clone(), None).await;
        let works = Api::<ManifestWork>::namespaced(world.client(), cluster);
        wait::until(&works, "work", "it is being removed", |work| work.metadata.deletion_timestamp.is_some()).await;

        // The agent goes on writing what cannot be parsed.
        report_since(&raw::<ManagedCluster>(agent.client()), cluster, &[CLUSTER_AVAILABLE], time).await;
        patch(&all, cluster, json!({ "metadata": { "annotations": { "drover.dev/force-delete": "true" } } })).await;
        wait::gone(&all, cluster).await;
        assert_eq!(access(&world, cluster).await, BTreeSet::new());
    }
    hub.stop().await;
}

async fn cluster_with_an_invalid_spec_is_rejected_and_removed(world: World) {
    let client = as_hub(&world).await;
    let mut hub = start(client.clone(), None).await;
    accept_any_lease_duration(&world).await;
    let all = raw::<ManagedCluster>(world.client());
    for (cluster, sees) in [("one", Sees::Change), ("two", Sees::Outcome)] {
        let agent = well(&world, cluster).await;
        let stopped = stop_before(sees, hub).await;
        let invalid = json!({ "spec": { "leaseDurationSeconds": "soon", "hubAcceptsClient": false,
            "taints": [{ "key": "kept", "effect": "NoSelect", "timeAdded": UNUSUAL }] } });
        wait::attempt("the spec is invalid", async || {
            let patch = Patch::Merge(invalid.clone());
            all.patch(cluster, &PatchParams::default(), &patch).await.map_err(|error| error.to_string())
        })
        .await;
        hub = start_after(stopped, &client).await;
        let bindings = Api::<RoleBinding>::namespaced(world.client(), cluster);
        for part in ["registration", "work"] {
            wait::gone(&bindings, &format!("open-cluster-management:managedcluster:{cluster}:{part}")).await;
        }
        let list = async || agent.works().list(&ListParams::default()).await;
        wait::attempt("it may no longer see its works", async || is_forbidden(list().await)).await;
        let spec = all.get(cluster).await.expect("the cluster is there").data["spec"].clone();
        assert_eq!((&spec["leaseDurationSeconds"], &spec["taints"][0]["key"]), (&json!("soon"), &json!("kept")));
        assert_eq!(spec["taints"].as_array().map(Vec::len), Some(1), "nothing of an unknown spec is written");

        all.delete(cluster, &DeleteParams::default()).await.expect("a cluster can be deleted");
        wait::gone(&all, cluster).await;
    }
    hub.stop().await;
}

async fn addon_with_an_invalid_status_is_unhealthy_and_removed(world: World) {
    let client = as_hub(&world).await;
    accept_any_time(&world, ADDONS).await;
    let mut hub = start(client.clone(), None).await;
    let agent = well(&world, "one").await;
    for (name, time, health) in [("unusual", UNUSUAL, "available"), ("invalid", INVALID, "unhealthy")] {
        let label = format!("{FEATURE_LABEL_PREFIX}{name}");
        let is_labelled = |one: &ManagedCluster| one.labels().get(&label).is_some_and(|label| label == health);
        let addon = create(&Api::namespaced(world.client(), "one"), objects::addon_on("one", name)).await;
        report_since(&raw_in::<ManagedClusterAddOn>(agent.client(), "one"), name, &["Available"], time).await;
        until(&world, "one", health, is_labelled).await;
        if time == INVALID {
            until_reported_invalid(&world, "one", &addon.uid().expect("it has a UID")).await;
        }

        hub.stop().await;
        hub = start(client.clone(), None).await;
        let all = raw_in::<ManagedClusterAddOn>(world.client(), "one");
        all.delete(name, &DeleteParams::default()).await.expect("an add-on can be deleted");
        until(&world, "one", "the add-on is gone", |one| !one.labels().contains_key(&label)).await;
    }
    // One that its manager holds is removed with its cluster.
    let mut held = objects::addon_on("one", "held");
    held.finalizers_mut().push("example.com/manager".to_owned());
    create(&Api::namespaced(world.client(), "one"), held).await;
    report_since(&raw_in::<ManagedClusterAddOn>(agent.client(), "one"), "held", &["Available"], INVALID).await;
    let force = json!({ "metadata": { "annotations": { "drover.dev/force-delete": "true" } } });
    patch(&raw::<ManagedCluster>(world.client()), "one", force).await;
    clusters(&world).delete("one", &DeleteParams::default()).await.expect("a cluster can be deleted");
    wait::gone(&clusters(&world), "one").await;
    wait::gone(&raw_in::<ManagedClusterAddOn>(world.client(), "one"), "held").await;
    hub.stop().await;
}

async fn lease_at_the_end_of_time_keeps_no_cluster_alive(world: World) {
    let clock = hub_clock();
    let client = as_hub(&world).await;
    let hub = start_at(client.clone(), None, clock.clock()).await;
    let agent = well(&world, "one").await;
    // Later than a Timestamp can be.
    let leases = raw_in::<Lease>(agent.client(), "one");
    let mut lease = leases.get(CLUSTER_LEASE).await.expect("the hub has made a lease");
    lease.data["spec"]["renewTime"] = json!("9999-12-31T23:59:59.999999Z");
    leases.replace(CLUSTER_LEASE, &PostParams::default(), &lease).await.expect("the lease can be renewed");
    until(&world, "one", "the clocks differ", |one| {
        says(one, CLUSTER_CLOCK_SYNCED, "False", "ManagedClusterClockOutOfSync")
    })
    .await;
    hub.stop().await;
    let hub = start_at(client, None, clock.clock()).await;
    create(&clusters(&world), objects::cluster("other")).await;
    until_accepted(&world, "other").await;
    clock.advance(Duration::from_mins(5));
    until(&world, "one", "it is unreachable", |one| taint(one, UNREACHABLE_TAINT).is_some()).await;
    hub.stop().await;
}

async fn request_denied_at_the_end_of_time_is_not_approved(world: World) {
    let client = as_hub(&world).await;
    let hub = start(client.clone(), None).await;
    let applicant = Applicant::new(&world, "one").await;
    let requests = raw::<CertificateSigningRequest>(world.client());
    let denied = json!({ "status": { "conditions": [{ "type": "Denied", "status": "True", "reason": "Scenario",
        "lastUpdateTime": "9999-12-31T23:59:59Z" }] } });
    let params = PatchParams::default();
    requests
        .patch_subresource("approval", applicant.request(), &params, &Patch::Merge(denied))
        .await
        .expect("a request can be denied");
    hub.stop().await;
    let hub = start(client, None).await;
    accept(&world, "one", true).await;
    until_accepted(&world, "one").await;
    let newcomer = world.certified("newcomer", &["system:bootstrappers:managedcluster"]).await;
    let other = ask(&world, newcomer, "one").await;
    wait::until(&Api::<CertificateSigningRequest>::all(world.client()), &other, "it is approved", |request| {
        decision(request).is_some_and(|(type_, _)| type_ == "Approved")
    })
    .await;
    let denied = requests.get(applicant.request()).await.expect("the request is there");
    let conditions = denied.data["status"]["conditions"].as_array().expect("conditions are a list");
    assert_eq!(conditions.iter().map(|condition| &condition["type"]).collect::<Vec<_>>(), [&json!("Denied")]);
    hub.stop().await;
}
