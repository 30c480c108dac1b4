//! Clusters, from their application to their removal: what the hub gives them, what it says of them, and what their agents may do.

pub(crate) mod invalid_values;

use std::{collections::BTreeSet, time::Duration};

use drover_api::{
    addon::ManagedClusterAddOn,
    cluster::{ManagedCluster, Placement, PlacementSpec, Taint},
    names::{
        CLUSTER_AVAILABLE, CLUSTER_CLOCK_SYNCED, CLUSTER_DELETING, CLUSTER_FINALIZER, CLUSTER_LEASE,
        CLUSTER_NAME_LABEL, CLUSTER_SET_LABEL, FEATURE_LABEL_PREFIX, HUB_ACCEPTED, UNREACHABLE_TAINT,
    },
    work::ManifestWork,
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::{Clock, after};
use drover_testkit::{
    World,
    objects::{self, Described as _},
    play::{Agent, Applicant, ask},
    wait,
};
use k8s_openapi::{
    api::{
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::Namespace,
        events::v1::Event,
        rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::running::{
    as_hub, bound_namespace, change, condition, create, hub_clock, make_cluster, options, selected, start, start_at,
};

drover_testkit::scenarios! {
    Own {
        a_cluster_is_let_in_when_it_is_accepted,
        certificates_are_for_those_whose_they_are,
        a_cluster_that_is_no_longer_accepted_sees_that_and_nothing_else,
        a_silent_cluster_is_unreachable_until_its_agent_is_back,
        an_agent_that_speaks_before_it_renews_is_heard,
        a_lease_from_the_future_keeps_no_cluster_alive,
        a_namespace_of_somebody_else_is_not_given_away,
        what_was_taken_from_an_agent_comes_back,
        a_cluster_is_removed_in_order,
        a_dead_cluster_is_removed_by_force,
        a_cluster_is_labelled_with_how_its_add_ons_are,
        one_cluster_that_can_not_be_read_holds_up_nobody,
        a_hub_leaves_alone_what_it_is_not_to_do,
    }
}

fn clusters(world: &World) -> Api<ManagedCluster> {
    Api::all(world.client())
}

fn conditions(cluster: &ManagedCluster) -> &[Condition] {
    cluster.status.as_ref().map_or(&[], |status| &status.conditions)
}

fn says(cluster: &ManagedCluster, type_: &str, status: &str, reason: &str) -> bool {
    condition(conditions(cluster), type_) == Some((status, reason))
}

fn message(cluster: &ManagedCluster, type_: &str) -> String {
    conditions(cluster).iter().find(|condition| condition.type_ == type_).map(|c| c.message.clone()).unwrap_or_default()
}

fn taint<'a>(cluster: &'a ManagedCluster, key: &str) -> Option<&'a Taint> {
    cluster.spec.taints.iter().find(|taint| taint.key == key)
}

async fn accept(world: &World, cluster: &str, accepted: bool) {
    change(&clusters(world), cluster, json!({ "spec": { "hubAcceptsClient": accepted } })).await;
}

async fn until(world: &World, cluster: &str, what: &str, holds: impl Fn(&ManagedCluster) -> bool) -> ManagedCluster {
    wait::until(&clusters(world), cluster, what, holds).await
}

async fn until_accepted(world: &World, cluster: &str) -> ManagedCluster {
    until(world, cluster, "it is let in", |cluster| says(cluster, HUB_ACCEPTED, "True", "HubClusterAdminAccepted"))
        .await
}

/// A cluster that has joined and that the hub knows to be well, and its agent.
async fn well(world: &World, cluster: &str) -> Agent {
    let agent = Agent::join(world, cluster).await;
    until(world, cluster, "it is well", |cluster| cluster.spec.taints.is_empty()).await;
    agent
}

/// Waits until the hub has told of something that happened to a cluster. It does so after it has written it.
async fn until_told(world: &World, cluster: &ManagedCluster, reason: &str) {
    let events = Api::<Event>::namespaced(world.client(), "default");
    let regarding = format!("regarding.uid={},reason={reason}", cluster.uid().unwrap_or_default());
    wait::some(&events, &regarding).await;
}

fn is_forbidden<T: std::fmt::Debug>(result: kube::Result<T>) -> Result<(), String> {
    match result {
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

async fn a_cluster_is_let_in_when_it_is_accepted(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    let applicant = Applicant::new(&world, "one").await;
    let waiting = until(&world, "one", "the hub has seen it", |one| taint(one, UNREACHABLE_TAINT).is_some()).await;
    assert_eq!(waiting.labels().get(CLUSTER_SET_LABEL).map(String::as_str), Some("default"));
    assert!(taint(&waiting, UNREACHABLE_TAINT).is_some_and(|taint| taint.time_added.is_some()));
    assert!(waiting.finalizers().is_empty() && conditions(&waiting).is_empty());
    let requests = Api::<CertificateSigningRequest>::all(world.client());
    let request = requests.get(applicant.request()).await.expect("the request is there");
    assert_eq!(request.status.and_then(|status| status.conditions), None, "nobody has accepted the cluster");

    accept(&world, "one", true).await;
    let agent = applicant.join(&world).await;

    let joined = until(&world, "one", "it is no longer tainted", |one| one.spec.taints.is_empty()).await;
    assert_eq!(joined.finalizers(), [CLUSTER_FINALIZER]);
    assert!(says(&joined, "ManagedClusterJoined", "True", "ManagedClusterJoined"));
    let namespace = Api::<Namespace>::all(world.client()).get("one").await.expect("the cluster has a namespace");
    assert_eq!(namespace.labels().get(CLUSTER_NAME_LABEL).map(String::as_str), Some("one"));
    clock.advance(Duration::from_mins(1));
    agent.renew_lease_at(clock.clock().now()).await;
    until(&world, "one", "the clocks are compared", |one| {
        says(one, CLUSTER_CLOCK_SYNCED, "True", "ManagedClusterClockSynced")
    })
    .await;
    hub.stop().await;
}

async fn certificates_are_for_those_whose_they_are(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let one = Agent::join(&world, "c1").await;
    let ten = Agent::join(&world, "c10").await;
    let requests = Api::<CertificateSigningRequest>::all(world.client());

    let renewal = ask(&world, one.client(), "c1").await;
    wait::until(&requests, &renewal, "it is signed", |request| {
        request.status.as_ref().is_some_and(|status| status.certificate.is_some())
    })
    .await;
    for (somebody, cluster) in [(&ten, "c1"), (&one, "c10")] {
        let foreign = ask(&world, somebody.client(), cluster).await;
        let denied = wait::until(&requests, &foreign, "it is denied", |request| decision(request).is_some()).await;
        let (type_, message) = decision(&denied).expect("it was waited for");
        assert!(type_ == "Denied" && message.contains("asks for the certificate of another agent"), "{message}");
    }

    // Whoever brings clusters in does not get the certificate of one that has joined, unless somebody wants it to join again.
    let newcomer = world.certified("newcomer", &["system:bootstrappers:managedcluster"]).await;
    let again = ask(&world, newcomer, "c1").await;
    until_told(&world, &clusters(&world).get("c1").await.expect("the cluster is there"), "RequestWaits").await;
    assert_eq!(decision(&requests.get(&again).await.expect("the request is there")), None);
    change(&clusters(&world), "c1", json!({ "metadata": { "annotations": { "drover.dev/rejoin": "true" } } })).await;
    wait::until(&requests, &again, "it is approved", |request| {
        decision(request).is_some_and(|(type_, _)| type_ == "Approved")
    })
    .await;
    hub.stop().await;
}

/// Whether a request was approved or denied, and why.
fn decision(request: &CertificateSigningRequest) -> Option<(String, String)> {
    let condition = request.status.as_ref()?.conditions.as_ref()?.first()?;
    Some((condition.type_.clone(), condition.message.clone().unwrap_or_default()))
}

async fn a_cluster_that_is_no_longer_accepted_sees_that_and_nothing_else(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let agent = Agent::join(&world, "one").await;

    // What the agent says of its acceptance makes no difference.
    let none = json!({ "status": { "conditions": null } });
    clusters(&world)
        .patch_status("one", &PatchParams::default(), &Patch::Merge(none))
        .await
        .expect("a status is changed");
    accept(&world, "one", false).await;
    until(&world, "one", "it is denied", |one| says(one, HUB_ACCEPTED, "False", "HubClusterAdminDenied")).await;
    for part in ["registration", "work"] {
        let bindings = Api::<RoleBinding>::namespaced(world.client(), "one");
        wait::gone(&bindings, &format!("open-cluster-management:managedcluster:one:{part}")).await;
    }
    let own = Api::<ManagedCluster>::all(agent.client());
    own.get("one").await.expect("an agent sees whether it is accepted");
    // The server learns of what was taken away a moment later.
    let list = async || agent.works().list(&ListParams::default()).await;
    let report = async || own.patch_status("one", &PatchParams::default(), &Patch::Merge(json!({}))).await;
    wait::attempt("it may no longer see its works", async || is_forbidden(list().await)).await;
    wait::attempt("it may no longer report", async || is_forbidden(report().await)).await;

    accept(&world, "one", true).await;
    until_accepted(&world, "one").await;
    wait::attempt("it sees its works again", async || list().await.map_err(|error| error.to_string())).await;
    hub.stop().await;
}

async fn a_silent_cluster_is_unreachable_until_its_agent_is_back(world: World) {
    let clock = hub_clock();
    let client = as_hub(&world).await;
    let hub = start_at(client.clone(), None, clock.clock()).await;
    let agent = well(&world, "one").await;
    clock.advance(Duration::from_mins(4));
    agent.renew_lease_at(clock.clock().now()).await;
    until(&world, "one", "the hub has seen the renewal", |one| {
        conditions(one).iter().any(|c| c.type_ == CLUSTER_CLOCK_SYNCED)
    })
    .await;
    until(&world, "one", "it is well", |one| one.spec.taints.is_empty()).await;

    // A renewal puts it off: nine minutes after the first, and five after the second.
    clock.advance(Duration::from_secs(299));
    create(&clusters(&world), objects::cluster("marker")).await;
    until_accepted(&world, "marker").await;
    let well = clusters(&world).get("one").await.expect("the cluster is there");
    assert!(says(&well, CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable"), "{well:?}");
    clock.advance(Duration::from_secs(1));
    let silent = until(&world, "one", "it is tainted", |one| taint(one, UNREACHABLE_TAINT).is_some()).await;
    assert!(says(&silent, CLUSTER_AVAILABLE, "Unknown", "ManagedClusterLeaseUpdateStopped"), "{silent:?}");
    until_told(&world, &silent, "AvailableUnknown").await;
    let added = taint(&silent, UNREACHABLE_TAINT).and_then(|taint| taint.time_added.clone()).expect("it has a time");
    assert_eq!(added.0.as_second(), clock.clock().now().as_second());

    // Another hub, later, finds the same and leaves it as it is.
    hub.stop().await;
    clock.advance(Duration::from_hours(1));
    let hub = start_at(client, None, clock.clock()).await;
    create(&clusters(&world), objects::cluster("second-marker")).await;
    until_accepted(&world, "second-marker").await;
    let still = clusters(&world).get("one").await.expect("the cluster is there");
    assert_eq!(still.metadata.resource_version, silent.metadata.resource_version);

    agent.renew_lease_at(clock.clock().now()).await;
    agent.report_available().await;
    until(&world, "one", "it is well again", |one| one.spec.taints.is_empty()).await;
    hub.stop().await;
}

async fn an_agent_that_speaks_before_it_renews_is_heard(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    let agent = well(&world, "one").await;
    clock.advance(Duration::from_mins(5));
    until(&world, "one", "it is unreachable", |one| taint(one, UNREACHABLE_TAINT).is_some()).await;

    // The connection is back. An agent reports at once, and renews its lease when it is time to.
    agent.report_available().await;
    let back = until(&world, "one", "it is well", |one| one.spec.taints.is_empty()).await;
    create(&clusters(&world), objects::cluster("marker")).await;
    until_accepted(&world, "marker").await;
    let still = clusters(&world).get("one").await.expect("the cluster is there");
    assert_eq!(still.metadata.resource_version, back.metadata.resource_version, "the hub does not contradict");
    // A report does for so long as a renewal, and no longer.
    clock.advance(Duration::from_mins(5));
    until(&world, "one", "it is unreachable again", |one| taint(one, UNREACHABLE_TAINT).is_some()).await;
    hub.stop().await;
}

async fn a_lease_from_the_future_keeps_no_cluster_alive(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    let agent = well(&world, "one").await;
    agent.renew_lease_at(after(clock.clock().now(), Duration::from_hours(10))).await;

    let ahead = until(&world, "one", "the clocks differ", |one| {
        says(one, CLUSTER_CLOCK_SYNCED, "False", "ManagedClusterClockOutOfSync")
    })
    .await;
    let told = message(&ahead, CLUSTER_CLOCK_SYNCED);
    assert!(told.contains("ahead of the hub's"), "{told}");
    clock.advance(Duration::from_mins(5));
    until(&world, "one", "it is unreachable", |one| taint(one, UNREACHABLE_TAINT).is_some()).await;
    hub.stop().await;
}

async fn a_namespace_of_somebody_else_is_not_given_away(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    world.namespace_named("taken").await;
    for cluster in ["taken", "kube-system", "with.dots"] {
        create(&clusters(&world), objects::cluster(cluster)).await;
    }

    for (cluster, reason, hint) in [
        ("taken", "NamespaceNotOwned", "label it open-cluster-management.io/cluster-name=taken"),
        ("kube-system", "NameNotUsable", "register the cluster under another one"),
        ("with.dots", "NameNotUsable", "at most 63 lower-case letters"),
    ] {
        let refused = until(&world, cluster, "it says why not", |it| says(it, HUB_ACCEPTED, "False", reason)).await;
        let told = message(&refused, HUB_ACCEPTED);
        assert!(told.contains(hint), "{told}");
        let roles = Api::<ClusterRole>::all(world.client());
        let role = roles.get_opt(&format!("open-cluster-management:managedcluster:{cluster}")).await;
        assert_eq!(role.expect("roles can be read"), None, "the agent gets nothing");
    }
    create(&clusters(&world), objects::cluster("other")).await;
    until_accepted(&world, "other").await;

    let namespaces = Api::<Namespace>::all(world.client());
    change(&namespaces, "taken", json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: "taken" } } })).await;
    until_accepted(&world, "taken").await;
    // A label that is lost later is put back: the cluster has been let in with it.
    change(&namespaces, "taken", json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: null } } })).await;
    wait::until(&namespaces, "taken", "it is labelled again", |namespace| {
        namespace.labels().contains_key(CLUSTER_NAME_LABEL)
    })
    .await;
    hub.stop().await;
}

async fn what_was_taken_from_an_agent_comes_back(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let agent = Agent::join(&world, "one").await;
    let name = "open-cluster-management:managedcluster:one";
    let roles = Api::<ClusterRole>::all(world.client());
    let is_whole = |role: &ClusterRole| role.rules.as_ref().is_some_and(|rules| rules.len() == 4);
    change(&roles, name, json!({ "metadata": { "labels": null }, "rules": [] })).await;
    wait::until(&roles, name, "its rules are back", |role| is_whole(role) && !role.labels().is_empty()).await;
    let first = roles.delete(name, &DeleteParams::default()).await.expect("a role can be deleted");
    let first = first.left().and_then(|role| role.uid());
    wait::until(&roles, name, "it is made again", |role| role.uid() != first && is_whole(role)).await;
    let bindings = Api::<ClusterRoleBinding>::all(world.client());
    bindings.delete(name, &DeleteParams::default()).await.expect("a binding can be deleted");
    wait::until(&bindings, name, "it is made again", |_| true).await;
    let leases = Api::<Lease>::namespaced(world.client(), "one");
    leases.delete(CLUSTER_LEASE, &DeleteParams::default()).await.expect("a lease can be deleted");
    wait::until(&leases, CLUSTER_LEASE, "it is made again", |_| true).await;

    // A namespace that is deleted goes when the agent has finished its works, and a new one comes.
    create(&Api::namespaced(world.client(), "one"), held_work("one")).await;
    let namespaces = Api::<Namespace>::all(world.client());
    let before = namespaces.get("one").await.expect("the namespace is there").uid();
    namespaces.delete("one", &DeleteParams::default()).await.expect("a namespace can be deleted");
    until(&world, "one", "it says so", |one| says(one, HUB_ACCEPTED, "False", "NamespaceTerminating")).await;
    let works = agent.works();
    wait::until(&works, "work", "it is on its way out", |work| work.metadata.deletion_timestamp.is_some()).await;
    change(&works, "work", json!({ "metadata": { "finalizers": null } })).await;
    wait::until(&namespaces, "one", "there is a new one", |namespace| namespace.uid() != before).await;
    until_accepted(&world, "one").await;
    hub.stop().await;
}

/// A work that the agent has not finished with.
fn held_work(cluster: &str) -> ManifestWork {
    let mut work = objects::work(cluster, "work", [objects::config_map("x")]);
    work.finalizers_mut().push("cluster.open-cluster-management.io/manifest-work-cleanup".to_owned());
    work
}

/// A cluster with an add-on and a work that both wait for somebody, on its way out.
async fn leaving(world: &World, cluster: &str) -> (Api<ManagedClusterAddOn>, Api<ManifestWork>) {
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), cluster);
    let works = Api::<ManifestWork>::namespaced(world.client(), cluster);
    let mut addon = objects::addon_on(cluster, "addon");
    addon.finalizers_mut().push("example.com/manager".to_owned());
    create(&addons, addon).await;
    create(&works, held_work(cluster)).await;
    clusters(world).delete(cluster, &DeleteParams::default()).await.expect("a cluster can be deleted");
    (addons, works)
}

async fn a_cluster_is_removed_in_order(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let agent = Agent::join(&world, "one").await;
    let (addons, works) = leaving(&world, "one").await;

    let is_going = |meta: &kube::api::ObjectMeta| meta.deletion_timestamp.is_some();
    wait::until(&addons, "addon", "it is removed first", |addon| is_going(&addon.metadata)).await;
    until(&world, "one", "it says what it waits for", |one| {
        says(one, CLUSTER_DELETING, "False", "ResourceRemaining")
            && message(one, CLUSTER_DELETING) == "waiting for the removal of 1 add-on (addon) and 1 work (work)"
    })
    .await;
    assert!(!is_going(&works.get("work").await.expect("the work is there").metadata), "works come after add-ons");
    change(&addons, "addon", json!({ "metadata": { "finalizers": null } })).await;
    wait::until(&works, "work", "it is removed next", |work| is_going(&work.metadata)).await;
    // Whoever is not accepted may not even finish, and may when it is accepted again.
    accept(&world, "one", false).await;
    until(&world, "one", "it says why nothing goes on", |one| {
        message(one, CLUSTER_DELETING).contains("accept it again until they are gone")
    })
    .await;
    let binding = "open-cluster-management:managedcluster:one:work";
    wait::gone(&Api::<RoleBinding>::namespaced(world.client(), "one"), binding).await;
    accept(&world, "one", true).await;
    wait::until(&Api::<RoleBinding>::namespaced(world.client(), "one"), binding, "it is back", |_| true).await;
    wait::attempt("the agent may finish its work", async || {
        agent.works().get("work").await.map_err(|error| error.to_string())
    })
    .await;
    // The agent still may, and does, finish its work.
    change(&agent.works(), "work", json!({ "metadata": { "finalizers": null } })).await;

    wait::gone(&clusters(&world), "one").await;
    assert_eq!(access(&world, "one").await, BTreeSet::new(), "nothing is left of what the agent could do");
    Api::<Namespace>::all(world.client()).get("one").await.expect("the namespace stays");
    hub.stop().await;
}

/// What is there of a cluster's roles and bindings.
async fn access(world: &World, cluster: &str) -> BTreeSet<String> {
    let labelled = ListParams::default().labels(&format!("{CLUSTER_NAME_LABEL}={cluster}"));
    let client = world.client();
    let roles = Api::<ClusterRole>::all(client.clone()).list(&labelled).await.expect("roles can be read");
    let everywhere =
        Api::<ClusterRoleBinding>::all(client.clone()).list(&labelled).await.expect("bindings can be read");
    let bindings = Api::<RoleBinding>::all(client).list(&labelled).await.expect("bindings can be read");
    let names = roles.iter().map(ResourceExt::name_any).chain(everywhere.iter().map(ResourceExt::name_any));
    names.chain(bindings.iter().map(ResourceExt::name_any)).collect()
}

async fn a_dead_cluster_is_removed_by_force(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    well(&world, "dead").await;
    clock.advance(Duration::from_mins(5));
    until(&world, "dead", "it is unreachable", |dead| taint(dead, UNREACHABLE_TAINT).is_some()).await;
    let (addons, _) = leaving(&world, "dead").await;
    change(&addons, "addon", json!({ "metadata": { "finalizers": null } })).await;
    let stuck = until(&world, "dead", "it says how to go on", |dead| {
        message(dead, CLUSTER_DELETING).contains("waiting for the removal of 1 work (work)")
    })
    .await;
    assert!(message(&stuck, CLUSTER_DELETING).contains("drover.dev/force-delete=true"), "{stuck:?}");

    change(&clusters(&world), "dead", json!({ "metadata": { "annotations": { "drover.dev/force-delete": "true" } } }))
        .await;

    wait::gone(&clusters(&world), "dead").await;
    assert_eq!(access(&world, "dead").await, BTreeSet::new());
    hub.stop().await;
}

async fn a_cluster_is_labelled_with_how_its_add_ons_are(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let agent = well(&world, "one").await;
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), "one");
    create(&addons, objects::addon_on("one", "hello")).await;
    let label = format!("{FEATURE_LABEL_PREFIX}hello");
    let of_agent = Api::<ManagedClusterAddOn>::namespaced(agent.client(), "one");
    for (status, expected) in [("True", "available"), ("False", "unhealthy"), ("Unknown", "unreachable")] {
        let said = json!({ "type": "Available", "status": status, "reason": "Test", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let report = Patch::Merge(json!({ "status": { "conditions": [said] } }));
        of_agent
            .patch_status("hello", &PatchParams::default(), &report)
            .await
            .expect("an agent reports on its add-ons");
        let is_labelled = |one: &ManagedCluster| one.labels().get(&label).is_some_and(|label| label == expected);
        until(&world, "one", expected, is_labelled).await;
    }
    addons.delete("hello", &DeleteParams::default()).await.expect("an add-on can be deleted");
    until(&world, "one", "its label is gone", |one| !one.labels().contains_key(&label)).await;
    hub.stop().await;
}

/// Has a server be less strict than ours, so that it stores what cannot be parsed.
async fn accept_any_lease_duration(world: &World) {
    let loose = json!([{ "op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/leaseDurationSeconds/type" },
        { "op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/leaseDurationSeconds/format" },
        { "op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/leaseDurationSeconds/x-kubernetes-preserve-unknown-fields", "value": true }]);
    let crd = "crd/managedclusters.cluster.open-cluster-management.io";
    world.kubectl(["patch", crd, "--type=json", "-p", &loose.to_string()]).await.success();
}

async fn one_cluster_that_can_not_be_read_holds_up_nobody(world: World) {
    let client = as_hub(&world).await;
    let hub = start(client.clone(), None).await;
    make_cluster(&world, "odd", "default").await;
    until_accepted(&world, "odd").await;
    let placements = Api::<Placement>::namespaced(world.client(), &bound_namespace(&world, "default").await);
    create(&placements, Placement::new("all", PlacementSpec::default())).await;
    wait::until(&placements, "all", "the cluster is selected", |placement| selected(placement) == Some(1)).await;
    hub.stop().await;
    let had = access(&world, "odd").await;
    assert_eq!(had.len(), 3, "{had:?}");
    accept_any_lease_duration(&world).await;
    let odd = r#"{"spec":{"leaseDurationSeconds":"soon"}}"#;
    world.kubectl(["patch", "managedcluster", "odd", "--type=merge", "-p", odd]).await.success();

    // A hub that never saw it readable.
    let hub = start(client, None).await;
    create(&clusters(&world), objects::cluster("plain")).await;
    until_accepted(&world, "plain").await;
    assert_eq!(access(&world, "odd").await, had, "what is there and can not be read is not gone");
    let is_misconfigured = |placement: &Placement, status: &str| {
        let conditions = placement.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|found| found.type_ == "PlacementMisconfigured" && found.status == status)
    };
    let kept =
        wait::until(&placements, "all", "it says what is wrong", |placement| is_misconfigured(placement, "True")).await;
    assert_eq!(selected(&kept), Some(1), "nobody is deselected because nobody can read about it");
    assert!(format!("{kept:?}").contains("the ManagedCluster odd can not be read"), "{kept:?}");
    let right = r#"{"spec":{"leaseDurationSeconds":60,"hubAcceptsClient":false}}"#;
    world.kubectl(["patch", "managedcluster", "odd", "--type=merge", "-p", right]).await.success();
    wait::until(&placements, "all", "it is decided on again", |placement| is_misconfigured(placement, "False")).await;
    until(&world, "odd", "the hub reads it again", |odd| says(odd, HUB_ACCEPTED, "False", "HubClusterAdminDenied"))
        .await;
    hub.stop().await;
}

async fn a_hub_leaves_alone_what_it_is_not_to_do(world: World) {
    let options = Options { controllers: "*,-cluster".parse().expect("a valid list"), ..options() };
    let hub = Hub::start(as_hub(&world).await, &options, Clock::system()).await.expect("the hub starts");
    create(&clusters(&world), objects::cluster("one").labelled(CLUSTER_SET_LABEL, "default")).await;
    let sets = Api::<drover_api::cluster::ManagedClusterSet>::all(world.client());
    wait::until(&sets, "default", "the hub has seen the cluster", |set| {
        set.status.iter().flat_map(|status| &status.conditions).any(|condition| condition.status == "False")
    })
    .await;
    hub.stop().await;
    let untouched = clusters(&world).get("one").await.expect("the cluster is there");
    assert!(untouched.status.is_none() && untouched.spec.taints.is_empty() && untouched.finalizers().is_empty());
}
