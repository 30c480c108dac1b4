//! The hub, under the role that `deploy/` ships: sets and bindings, rest, and who leads.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use drover_api::{
    cluster::{
        ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSetSpec, Placement,
        PlacementDecision, PlacementSpec,
    },
    names::{CLUSTER_AVAILABLE, CLUSTER_LEASE, HUB_ACCEPTED},
};
use drover_runtime::clock::{ManualClock, after};
use drover_testkit::{World, wait};
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::Namespace,
        rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::running::{NAMESPACE, as_hub, bound_namespace, condition, create, make_cluster, selected, start, start_at};

drover_testkit::scenarios! {
    Own {
        sets_and_bindings_say_what_they_are,
        a_restarted_hub_at_rest_writes_nothing,
        another_hub_takes_over_when_the_leader_ends,
        another_hub_takes_over_when_the_leader_is_killed,
        a_leader_that_was_frozen_finds_that_it_leads_no_more,
        the_command_runs_the_hub_and_releases_the_lease,
        the_command_says_what_is_missing,
    }
}

async fn sets_and_bindings_say_what_they_are(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let sets = Api::<ManagedClusterSet>::all(world.client());
    let empty = |set: &ManagedClusterSet| set.status.clone().map(|status| status.conditions).unwrap_or_default();
    for set in ["default", "global"] {
        wait::until(&sets, set, "it is there and empty", |set| {
            condition(&empty(set), "ClusterSetEmpty") == Some(("True", "NoClusterMatched"))
        })
        .await;
    }

    make_cluster(&world, "one", "default").await;
    for set in ["default", "global"] {
        wait::until(&sets, set, "it has a cluster", |set| {
            condition(&empty(set), "ClusterSetEmpty") == Some(("False", "ClustersSelected"))
        })
        .await;
    }

    let namespace = bound_namespace(&world, "missing").await;
    let bindings = Api::<ManagedClusterSetBinding>::namespaced(world.client(), &namespace);
    let bound =
        |binding: &ManagedClusterSetBinding| binding.status.clone().map(|status| status.conditions).unwrap_or_default();
    wait::until(&bindings, "missing", "it is not bound", |binding| {
        condition(&bound(binding), "Bound") == Some(("False", "ClusterSetNotFound"))
    })
    .await;
    create(&sets, ManagedClusterSet::new("missing", ManagedClusterSetSpec::default())).await;
    wait::until(&bindings, "missing", "it is bound", |binding| {
        condition(&bound(binding), "Bound") == Some(("True", "ClusterSetBound"))
    })
    .await;

    let other =
        json!({ "spec": { "clusterSelector": { "selectorType": "ExclusiveClusterSetLabel", "labelSelector": null } } });
    sets.patch("global", &PatchParams::default(), &Patch::Merge(other)).await.expect("a set can be edited");
    wait::until(&sets, "global", "its selector is put back", |set| set.spec.cluster_selector.label_selector.is_some())
        .await;
    hub.stop().await;
}

async fn a_restarted_hub_at_rest_writes_nothing(world: World) {
    let client = as_hub(&world).await;
    let hub = start(client.clone(), None).await;
    let namespace = bound_namespace(&world, "default").await;
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    create(&placements, Placement::new("all", PlacementSpec::default())).await;
    for number in 0..5 {
        make_cluster(&world, &format!("cluster-{number}"), "default").await;
    }
    wait::until(&placements, "all", "it selects all", |placement| selected(placement) == Some(5)).await;
    let sets = Api::<ManagedClusterSet>::all(world.client());
    for set in ["default", "global"] {
        wait::until(&sets, set, "it counts all", |set| {
            set.status.iter().flat_map(|status| &status.conditions).any(|condition| condition.message.starts_with("5 "))
        })
        .await;
    }
    let bindings = Api::<ManagedClusterSetBinding>::namespaced(world.client(), &namespace);
    wait::until(&bindings, "default", "it is bound", |binding| {
        binding.status.iter().flat_map(|status| &status.conditions).any(|condition| condition.status == "True")
    })
    .await;
    let clusters = Api::<ManagedCluster>::all(world.client());
    for number in 0..5 {
        wait::until(&clusters, &format!("cluster-{number}"), "it is let in and well", is_at_rest).await;
    }
    hub.stop().await;

    // A day later, so that whatever depends on the time alone would show. The agents have gone on renewing their leases.
    let clock = ManualClock::at(after(Timestamp::now(), Duration::from_hours(24)));
    for number in 0..5 {
        let leases = Api::<Lease>::namespaced(world.client(), &format!("cluster-{number}"));
        let renewed = json!({ "spec": { "renewTime": MicroTime(clock.clock().now()) } });
        leases.patch(CLUSTER_LEASE, &PatchParams::default(), &Patch::Merge(renewed)).await.expect("a lease is renewed");
    }
    let before = everything(&world).await;
    let hub = start_at(client, None, clock.clock()).await;
    // The hub has settled when it has acted on what came after everything else.
    create(&sets, ManagedClusterSet::new("marker", ManagedClusterSetSpec::default())).await;
    create(&placements, Placement::new("marker", PlacementSpec::default())).await;
    make_cluster(&world, "marker", "marker").await;
    wait::until(&sets, "marker", "the hub has seen it", |set| set.status.is_some()).await;
    wait::until(&placements, "marker", "the hub has seen it", |placement| placement.status.is_some()).await;
    wait::until(&clusters, "marker", "the hub has let it in", is_at_rest).await;
    hub.stop().await;

    let mut after = everything(&world).await;
    after.retain(|object| !object.contains("marker"));
    // The marker is one of all clusters.
    let but_global = |objects: BTreeSet<String>| -> BTreeSet<String> {
        objects.into_iter().filter(|object| !object.starts_with("/global@")).collect()
    };
    assert_eq!(but_global(after), but_global(before));
}

/// Whether a cluster is let in and well, and the hub has said all that there is to say.
fn is_at_rest(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let holds = |type_| condition(conditions, type_).is_some_and(|(status, _)| status == "True");
    cluster.spec.taints.is_empty() && [HUB_ACCEPTED, CLUSTER_AVAILABLE].into_iter().all(holds)
}

/// Every object that the hub writes, with its version.
async fn everything(world: &World) -> BTreeSet<String> {
    async fn of<K>(client: Client) -> Vec<String>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let objects = Api::<K>::all(client).list(&ListParams::default()).await.expect("objects can be read");
        objects
            .iter()
            .map(|object| {
                let (namespace, version) = (object.namespace(), object.resource_version());
                format!("{}/{}@{}", namespace.unwrap_or_default(), object.name_any(), version.unwrap_or_default())
            })
            .collect()
    }
    let client = world.client();
    let mut all = of::<ManagedCluster>(client.clone()).await;
    all.extend(of::<Namespace>(client.clone()).await);
    all.extend(of::<ClusterRole>(client.clone()).await);
    all.extend(of::<ClusterRoleBinding>(client.clone()).await);
    all.extend(of::<RoleBinding>(client.clone()).await);
    all.extend(of::<Lease>(client.clone()).await);
    all.extend(of::<ManagedClusterSet>(client.clone()).await);
    all.extend(of::<ManagedClusterSetBinding>(client.clone()).await);
    all.extend(of::<Placement>(client.clone()).await);
    all.extend(of::<PlacementDecision>(client).await);
    all.into_iter().collect()
}

async fn another_hub_takes_over_when_the_leader_ends(world: World) {
    let client = as_hub(&world).await;
    let leases = Api::<Lease>::namespaced(world.client(), NAMESPACE);
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    let first = start(client.clone(), Some("first")).await;
    wait::until(&leases, "drover-hub", "the first hub leads", |lease| holder(lease).as_deref() == Some("first")).await;
    let second = start(client, Some("second")).await;
    let sets = Api::<ManagedClusterSet>::all(world.client());
    wait::until(&sets, "global", "the leader acts", |set| set.status.is_some()).await;

    first.stop().await;
    wait::until(&leases, "drover-hub", "the second hub leads", |lease| holder(lease).as_deref() == Some("second"))
        .await;

    create(&sets, ManagedClusterSet::new("later", ManagedClusterSetSpec::default())).await;
    wait::until(&sets, "later", "the new leader acts", |set| set.status.is_some()).await;
    second.stop().await;
}

/// The command, ended with the scenario if it has not ended before.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// The hub as a process of its own, once it is running.
    fn start(world: &World, identity: &str) -> Self {
        let mut hub = Command::new(env!("CARGO_BIN_EXE_drover-under-test"));
        hub.args(["hub", "--health-listen", "127.0.0.1:0", "--identity", identity]);
        hub.arg("--kubeconfig").arg(world.kubeconfig());
        let mut hub = Self(hub.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("drover can be run"));
        let mut line = String::new();
        let stdout = hub.0.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the hub says where it is");
        assert!(line.contains("health and metrics are at http://127.0.0.1:"), "{line}");
        hub
    }

    fn signal(&self, signal: &str) {
        let told = Command::new("kill").args([signal, &self.0.id().to_string()]).status().expect("kill can be run");
        assert!(told.success());
    }
}

fn leads(lease: &Lease, identity: &str) -> bool {
    lease.spec.as_ref().is_some_and(|spec| spec.holder_identity.as_deref() == Some(identity))
}

async fn another_hub_takes_over_when_the_leader_is_killed(world: World) {
    let client = as_hub(&world).await;
    let leases = Api::<Lease>::namespaced(world.client(), NAMESPACE);
    let leader = Process::start(&world, "leader");
    wait::until(&leases, "drover-hub", "the leader leads", |lease| leads(lease, "leader")).await;
    let standby = start(client, Some("standby")).await;

    leader.signal("-KILL");
    wait::until(&leases, "drover-hub", "the other takes over", |lease| leads(lease, "standby")).await;

    let sets = Api::<ManagedClusterSet>::all(world.client());
    create(&sets, ManagedClusterSet::new("later", ManagedClusterSetSpec::default())).await;
    wait::until(&sets, "later", "the new leader acts", |set| set.status.is_some()).await;
    standby.stop().await;
}

async fn a_leader_that_was_frozen_finds_that_it_leads_no_more(world: World) {
    let client = as_hub(&world).await;
    let leases = Api::<Lease>::namespaced(world.client(), NAMESPACE);
    let mut frozen = Process::start(&world, "frozen");
    wait::until(&leases, "drover-hub", "the first leads", |lease| leads(lease, "frozen")).await;
    let standby = start(client, Some("standby")).await;

    frozen.signal("-STOP");
    let taken = wait::until(&leases, "drover-hub", "the other takes over", |lease| leads(lease, "standby")).await;
    frozen.signal("-CONT");

    let version = taken.resource_version();
    let renewed =
        wait::until(&leases, "drover-hub", "somebody renews the lease", |lease| lease.resource_version() != version)
            .await;
    assert!(leads(&renewed, "standby"), "{renewed:?}");
    // It ends as a standby does: the lease is not its to release.
    frozen.signal("-TERM");
    assert!(frozen.0.wait().expect("the hub ends").success());
    assert!(leads(&leases.get("drover-hub").await.expect("the lease is there"), "standby"));
    standby.stop().await;
}

async fn the_command_runs_the_hub_and_releases_the_lease(world: World) {
    as_hub(&world).await;
    let mut hub = Process::start(&world, "command");
    let sets = Api::<ManagedClusterSet>::all(world.client());
    wait::until(&sets, "global", "the hub acts", |set| set.status.is_some()).await;

    hub.signal("-TERM");
    assert!(hub.0.wait().expect("the hub ends").success());
    let lease =
        Api::<Lease>::namespaced(world.client(), NAMESPACE).get("drover-hub").await.expect("the lease is there");
    assert_eq!(lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default(), "");
}

async fn the_command_says_what_is_missing(world: World) {
    let complaint = |kubeconfig: &Path| {
        let mut hub = Command::new(env!("CARGO_BIN_EXE_drover-under-test"));
        hub.args(["hub", "--health-listen", "127.0.0.1:0", "--kubeconfig"]).arg(kubeconfig);
        let output = hub.output().expect("drover can be run");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = complaint(world.kubeconfig());
    assert!(told.contains("there is no namespace open-cluster-management-hub"), "{told}");
    world.kubectl(["delete", "crd", "addonrollouts.drover.dev"]).await.success();
    let told = complaint(world.kubeconfig());
    assert!(told.contains("drover crds --group drover.dev | kubectl apply"), "{told}");
    world.kubectl(["delete", "crd", "placements.cluster.open-cluster-management.io"]).await.success();
    let told = complaint(world.kubeconfig());
    assert!(told.contains("this Kubernetes lacks Drover's API"), "{told}");
    let told = complaint(Path::new("missing.kubeconfig"));
    assert!(told.contains("could not read missing.kubeconfig"), "{told}");
}
