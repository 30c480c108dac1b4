//! The table. The objects that are changed, and everybody's roles, are in `crates/cli/tests/policies.yaml` and in
//! `docs/security.md`.

use serde_json::{Value, json};

use super::attempt::{
    Act, Outcome, Row,
    Who::{self, Admin, AgentOfC1, AgentOfC10, Deployer, Newcomer, Trusted, User},
};

const ACCEPT: &str = "accept-cluster";
const BIND: &str = "bind-cluster-set";
const DESCRIBE: &str = "describe-cluster";
const EXECUTE: &str = "name-executor";
const JOIN: &str = "join-cluster-set";
const PLACE: &str = "use-placement";

const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";

/// All rows.
pub(super) fn rows() -> Vec<Row> {
    let parts = [
        accepting(),
        describing_as_a_newcomer(),
        describing_as_an_agent(),
        moving(),
        binding(),
        naming_an_executor(),
        naming_an_executor_for_the_hub(),
        upgrading_a_placement(),
        installing_on_a_placement(),
        meddling(AgentOfC1, "c10"),
        meddling(AgentOfC10, "c1"),
        working_as_an_agent(),
    ];
    parts.into_iter().flatten().collect()
}

/// A ManagedCluster with those fields in its metadata and spec.
fn cluster(name: &str, mut metadata: Value, spec: Value) -> Value {
    metadata["name"] = name.into();
    object("cluster.open-cluster-management.io/v1", "ManagedCluster", metadata, spec)
}

fn object(api_version: &str, kind: &str, metadata: Value, spec: Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind });
    object["metadata"] = metadata;
    object["spec"] = spec;
    object
}

fn accepting() -> Vec<Row> {
    let accepted = |name| cluster(name, json!({}), json!({ "hubAcceptsClient": true }));
    let not_accepted = |name| cluster(name, json!({}), json!({ "hubAcceptsClient": false }));
    let right = "changing spec.hubAcceptsClient needs the right to update managedclusters/accept";
    let agent = "leave spec.hubAcceptsClient as it is";
    vec![
        Newcomer.creates(accepted("new")).refused(ACCEPT, right),
        Newcomer.creates(not_accepted("new")).allowed(),
        Newcomer.changes(accepted("west-1")).forbidden(cannot(Act::Change, "managedclusters")),
        User.creates(accepted("new")).refused(ACCEPT, right),
        User.creates(not_accepted("new")).allowed(),
        User.changes(accepted("west-1")).refused(ACCEPT, right),
        User.changes(not_accepted("c1")).refused(ACCEPT, right),
        User.changes(accepted("c1")).allowed(),
        Trusted.changes(accepted("west-1")).allowed(),
        Trusted.changes(accepted("east-1")).refused(ACCEPT, "for \"east-1\": leave the field as it is"),
        Admin.creates(accepted("new")).allowed(),
        AgentOfC1.changes(not_accepted("c1")).refused_twice([(ACCEPT, right), (DESCRIBE, agent)]),
        AgentOfC10.changes(not_accepted("c10")).refused(DESCRIBE, agent),
        AgentOfC10.creates(accepted("new")).refused(DESCRIBE, agent),
        AgentOfC10.creates(not_accepted("new")).allowed(),
    ]
}

fn describing_as_a_newcomer() -> Vec<Row> {
    let meta = |metadata| Newcomer.creates(cluster("new", metadata, json!({})));
    let spec = |spec| Newcomer.creates(cluster("new", json!({}), spec));
    let labels = "leave metadata.labels out, or ask for the right to update managedclusters";
    let join = "putting a cluster into the set \"team-a\" needs the right";
    vec![
        meta(json!({ "annotations": { "agent.open-cluster-management.io/arn": "new" } })).allowed(),
        spec(addresses()).allowed(),
        meta(json!({ "labels": { "region": "east" } })).refused(DESCRIBE, labels),
        meta(json!({ "labels": { SET_LABEL: "team-a" } })).refused_twice([(DESCRIBE, labels), (JOIN, join)]),
        meta(json!({ "annotations": { "note": "mine" } })).refused(DESCRIBE, "leave metadata.annotations out"),
        meta(json!({ "finalizers": ["drover.dev/kept"] })).refused(DESCRIBE, "leave metadata.finalizers out"),
        meta(owned()).refused(DESCRIBE, "leave metadata.ownerReferences out"),
        spec(taint("NoSelect")).refused(DESCRIBE, "leave spec.taints out"),
        spec(json!({ "leaseDurationSeconds": 3600 })).refused(DESCRIBE, "leave spec.leaseDurationSeconds out"),
    ]
}

fn describing_as_an_agent() -> Vec<Row> {
    let meta = |metadata| AgentOfC1.changes(cluster("c1", metadata, json!({})));
    let spec = |spec| AgentOfC1.changes(cluster("c1", json!({}), spec));
    let labels = "leave metadata.labels as it is, or have an administrator change it";
    let annotations = "leave metadata.annotations as it is";
    let taints = "leave spec.taints as it is";
    let unset_time = json!({ "taints": [{ "key": "maintenance", "effect": "NoSelect", "timeAdded": null }] });
    vec![
        meta(json!({ "annotations": { "agent.open-cluster-management.io/arn": "two" } })).allowed(),
        meta(json!({ "annotations": { "agent.open-cluster-management.io/new": "one" } })).allowed(),
        meta(json!({ "annotations": { "agent.open-cluster-management.io/arn": null } })).allowed(),
        spec(addresses()).allowed(),
        spec(unset_time).allowed(),
        spec(json!({})).allowed(),
        meta(json!({ "labels": { "region": "east" } })).refused(DESCRIBE, labels),
        meta(json!({ "labels": { "more": "yes" } })).refused(DESCRIBE, labels),
        meta(json!({ "labels": { "region": null } })).refused(DESCRIBE, labels),
        meta(json!({ "annotations": { "note": "theirs" } })).refused(DESCRIBE, annotations),
        meta(json!({ "annotations": { "note": null } })).refused(DESCRIBE, annotations),
        meta(json!({ "annotations": { "agent.open-cluster-management.io": "x" } })).refused(DESCRIBE, annotations),
        meta(json!({ "finalizers": [] })).refused(DESCRIBE, "leave metadata.finalizers as it is"),
        meta(owned()).refused(DESCRIBE, "leave metadata.ownerReferences as it is"),
        spec(json!({ "taints": [] })).refused(DESCRIBE, taints),
        spec(taint("PreferNoSelect")).refused(DESCRIBE, taints),
        spec(json!({ "leaseDurationSeconds": 3600 })).refused(DESCRIBE, "leave spec.leaseDurationSeconds as it is"),
        User.changes(cluster("c1", json!({ "labels": { "region": "east" } }), taint("PreferNoSelect"))).allowed(),
    ]
}

fn addresses() -> Value {
    json!({ "managedClusterClientConfigs": [{ "url": "https://new.example.com:6443" }] })
}

fn taint(effect: &str) -> Value {
    json!({ "taints": [{ "key": "maintenance", "effect": effect }] })
}

fn owned() -> Value {
    json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Namespace", "name": "team", "uid": "1" }] })
}

fn moving() -> Vec<Row> {
    let to = |name, set: &str| cluster(name, json!({ "labels": { SET_LABEL: set } }), json!({}));
    let out = |name| cluster(name, json!({ "labels": { SET_LABEL: null } }), json!({}));
    let into_a = "putting a cluster into the set \"team-a\" needs the right to create managedclustersets/join for it";
    let into_b = "putting a cluster into the set \"team-b\" needs the right";
    let out_of_a =
        "taking a cluster out of the set \"team-a\" needs the right to create managedclustersets/join for it";
    let out_of_b = "taking a cluster out of the set \"team-b\" needs the right";
    let agent = "leave metadata.labels as it is";
    vec![
        User.creates(to("new", "team-a")).refused(JOIN, into_a),
        User.changes(to("west-1", "team-a")).refused(JOIN, into_a),
        User.changes(out("c1")).refused(JOIN, out_of_a),
        User.changes(to("c1", "")).refused(JOIN, out_of_a),
        User.changes(to("c1", "team-a")).allowed(),
        Trusted.creates(to("new", "team-a")).allowed(),
        Trusted.changes(to("west-1", "team-a")).allowed(),
        Trusted.changes(out("c1")).allowed(),
        Trusted.changes(to("c1", "team-b")).refused(JOIN, into_b),
        Trusted.changes(to("east-1", "team-a")).refused(JOIN, out_of_b),
        Admin.changes(to("east-1", "team-a")).allowed(),
        AgentOfC1.changes(out("c1")).refused_twice([(DESCRIBE, agent), (JOIN, out_of_a)]),
        AgentOfC10.changes(to("c10", "team-a")).refused(DESCRIBE, agent),
    ]
}

fn binding() -> Vec<Row> {
    let bound = |set: &str, labels: Value| {
        let metadata = json!({ "name": set, "namespace": "team", "labels": labels });
        let spec = json!({ "clusterSet": set });
        object("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding", metadata, spec)
    };
    let new = |set| bound(set, json!({}));
    let right = "binding the set \"team-a\" needs the right to create managedclustersets/bind for it";
    vec![
        User.creates(new("team-a")).refused(BIND, right),
        User.changes(bound("team-b", json!({ "seen": "yes" }))).allowed(),
        Trusted.creates(new("team-a")).allowed(),
        Trusted.creates(new("team-c")).refused(BIND, "binding the set \"team-c\" needs the right"),
        Admin.creates(new("team-a")).allowed(),
    ]
}

/// The spec of a work, with an executor of the namespace `apps` if one is named.
fn work_spec(executor: Option<&str>) -> Value {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "namespace": "apps" } });
    let mut spec = json!({ "workload": { "manifests": [manifest] } });
    if let Some(name) = executor {
        let account = json!({ "namespace": "apps", "name": name });
        spec["executor"] = json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account } });
    }
    spec
}

fn work(cluster: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({ "name": name, "namespace": cluster });
    object("work.open-cluster-management.io/v1", "ManifestWork", metadata, spec)
}

fn naming_an_executor() -> Vec<Row> {
    let new = |cluster, executor| work(cluster, "new", work_spec(executor));
    let kept = |cluster| work(cluster, "kept", work_spec(Some("deployer")));
    let on_c1 = "naming the executor system:serviceaccount:apps:deployer needs the right to execute-as on manifestworks of that \
                 name in the namespace \"c1\"";
    let on_c10 = "of that name in the namespace \"c10\": leave the executor out";
    let owner = "naming the executor system:serviceaccount:apps:owner needs the right";
    vec![
        User.creates(new("c1", None)).allowed(),
        User.creates(new("c1", Some("deployer"))).refused(EXECUTE, on_c1),
        User.changes(kept("c1")).refused(EXECUTE, on_c1),
        User.changes(kept("c10")).refused(EXECUTE, on_c10),
        User.changes(work("c1", "kept", work_spec(None))).allowed(),
        User.changes(work("c1", "kept", json!({ "executor": null }))).allowed(),
        Trusted.creates(new("c1", Some("deployer"))).allowed(),
        Trusted.changes(kept("c1")).allowed(),
        Trusted.creates(new("c1", Some("owner"))).refused(EXECUTE, owner),
        Trusted.creates(new("c10", Some("deployer"))).refused(EXECUTE, on_c10),
        Deployer.creates(new("c10", Some("deployer"))).allowed(),
        AgentOfC1.changes(kept("c1")).refused(EXECUTE, on_c1),
    ]
}

fn naming_an_executor_for_the_hub() -> Vec<Row> {
    let everywhere = "naming the executor system:serviceaccount:apps:deployer needs the right to execute-as on manifestworks of \
                      that name in all namespaces";
    let owner = "naming the executor system:serviceaccount:apps:owner needs the right";
    let cases = [
        (User, None, Outcome::Allowed),
        (User, Some("deployer"), Outcome::Refused(EXECUTE, everywhere)),
        (Trusted, Some("deployer"), Outcome::Refused(EXECUTE, everywhere)),
        (Deployer, Some("deployer"), Outcome::Allowed),
        (Deployer, Some("owner"), Outcome::Refused(EXECUTE, owner)),
    ];
    let rows = cases.into_iter().flat_map(|(who, executor, outcome)| {
        sources_of_works(executor).map(|source| who.creates(source).ends(outcome.clone()))
    });
    rows.collect()
}

/// What the hub makes works of, with an executor if one is named.
fn sources_of_works(executor: Option<&str>) -> [Value; 4] {
    let replica_set = json!({ "manifestWorkTemplate": work_spec(executor), "placementRefs": [{ "name": "ours" }] });
    let template = json!({ "addonName": "new", "agentSpec": work_spec(executor) });
    let upgrade_with = |action: &str| {
        let mut upgrade = upgrade_of("new", "team", "ours");
        upgrade["spec"][action] = json!({ "manifestWork": work_spec(executor) });
        upgrade
    };
    let metadata = json!({ "name": "new", "namespace": "team" });
    [
        object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", metadata, replica_set),
        object("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", json!({ "name": "new" }), template),
        upgrade_with("preUpgradeAction"),
        upgrade_with("postUpgradeAction"),
    ]
}

fn upgrade(name: &str, spec: Value) -> Value {
    let metadata = json!({ "name": name, "namespace": "team" });
    object("cluster.open-cluster-management.io/v1beta1", "ManagedClustersUpgrade", metadata, spec)
}

fn upgrade_of(name: &str, namespace: &str, placement: &str) -> Value {
    let placement = json!([{ "namespace": namespace, "name": placement }]);
    upgrade(name, json!({ "placement": placement, "clusterVersion": { "version": "4.12.0" } }))
}

const MAY_NOT_USE: &str = "using placements of another namespace needs the right to get them: name others, or ask for the right \
                           to get these placements: fleet/everywhere";

fn upgrading_a_placement() -> Vec<Row> {
    let other_version = json!({ "clusterVersion": { "version": "4.12.1" } });
    vec![
        User.creates(upgrade_of("new", "team", "ours")).allowed(),
        User.creates(upgrade_of("new", "fleet", "everywhere")).refused(PLACE, MAY_NOT_USE),
        User.changes(upgrade_of("kept", "fleet", "everywhere")).refused(PLACE, MAY_NOT_USE),
        User.changes(upgrade("kept", other_version)).allowed(),
        Trusted.creates(upgrade_of("new", "fleet", "everywhere")).allowed(),
        Trusted.creates(upgrade_of("new", "fleet", "first")).refused(PLACE, "these placements: fleet/first"),
        Admin.creates(upgrade_of("new", "fleet", "first")).allowed(),
    ]
}

fn installing_on_a_placement() -> Vec<Row> {
    let addon = |name: &str, placements: Value| {
        let spec = json!({ "installStrategy": { "type": "Placements", "placements": placements } });
        object("addon.open-cluster-management.io/v1beta1", "ClusterManagementAddOn", json!({ "name": name }), spec)
    };
    let fleet = |name: &str| json!({ "namespace": "fleet", "name": name });
    let rolled_out =
        |name: &str, strategy: Value| json!({ "namespace": "fleet", "name": name, "rolloutStrategy": strategy });
    let behind = |name: &str, canary: &str| {
        let canary = json!({ "placement": fleet(canary) });
        rolled_out(name, json!({ "type": "RollingUpdateWithCanary", "rollingUpdateWithCanary": canary }))
    };
    let at_once = rolled_out("canaries", json!({ "type": "UpdateAll" }));
    let many = |count: u32| (0..count).map(|at| fleet(&format!("p{at}"))).collect::<Value>();
    vec![
        User.creates(addon("new", json!([fleet("everywhere")]))).refused(PLACE, MAY_NOT_USE),
        User.changes(addon("kept", json!([fleet("canaries"), fleet("everywhere")]))).refused(PLACE, MAY_NOT_USE),
        User.changes(addon("kept", json!([behind("canaries", "everywhere")]))).refused(PLACE, MAY_NOT_USE),
        User.changes(addon("kept", json!([at_once]))).allowed(),
        Trusted.creates(addon("new", json!([fleet("everywhere")]))).allowed(),
        Trusted.changes(addon("kept", json!([behind("everywhere", "canaries")]))).allowed(),
        Trusted
            .creates(addon("new", json!([behind("everywhere", "p1")])))
            .refused(PLACE, "placements: fleet/everywhere, fleet/p1"),
        Trusted.creates(addon("new", many(16))).refused(PLACE, "these placements: fleet/p0, fleet/p1"),
        Trusted
            .creates(addon("new", many(17)))
            .refused(PLACE, "at most 16 new placements of other namespaces at a time"),
        Admin.creates(addon("new", many(100))).allowed(),
    ]
}

/// Each kind that agents have to do with in a cluster's namespace: its version, kind and resource, and an object that is there.
const IN_A_CLUSTERS_NAMESPACE: [(&str, &str, &str, &str); 4] = [
    ("work.open-cluster-management.io/v1", "ManifestWork", "manifestworks", "kept"),
    ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", "managedclusteraddons", "kept"),
    ("coordination.k8s.io/v1", "Lease", "leases", "managed-cluster-lease"),
    ("v1", "Secret", "secrets", "kept"),
];

/// All that an agent might try on another cluster and in its namespace.
fn meddling(agent: Who, other: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (api_version, kind, resource, name) in IN_A_CLUSTERS_NAMESPACE {
        let metadata = json!({ "name": name, "namespace": other });
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        let forbidden = |act, resource: &str| {
            let saying = format!("in API group \"{}\" in the namespace \"{other}\"", group(api_version));
            agent.attempts(act, object.clone()).forbidden(format!("{} {saying}", cannot(act, resource)))
        };
        rows.extend([Act::Get, Act::List, Act::Create, Act::Change, Act::Delete].map(|act| forbidden(act, resource)));
        if ["ManifestWork", "ManagedClusterAddOn"].contains(&kind) {
            rows.push(forbidden(Act::Report, &format!("{resource}/status")));
        }
    }
    let forbidden =
        |act, resource| agent.attempts(act, cluster(other, json!({}), json!({}))).forbidden(cannot(act, resource));
    rows.extend([Act::Get, Act::Change, Act::Delete].map(|act| forbidden(act, "managedclusters")));
    rows.push(forbidden(Act::Report, "managedclusters/status"));
    rows
}

fn working_as_an_agent() -> Vec<Row> {
    let mut cluster = cluster("c1", json!({}), json!({}));
    cluster["status"] = json!({ "version": { "kubernetes": "v1.36.4" } });
    let metadata = json!({ "name": "kept", "namespace": "c1" });
    let addon = object("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", metadata, json!({}));
    let metadata = json!({ "name": "managed-cluster-lease", "namespace": "c1" });
    let lease = object("coordination.k8s.io/v1", "Lease", metadata, json!({ "holderIdentity": "agent" }));
    let mut finalized = work("c1", "kept", json!({}));
    finalized["metadata"]["finalizers"] = json!(["cluster.open-cluster-management.io/manifest-work-cleanup"]);
    vec![
        AgentOfC1.reports(cluster).allowed(),
        AgentOfC1.reports(work("c1", "kept", json!({}))).allowed(),
        AgentOfC1.changes(finalized).allowed(),
        AgentOfC1.reports(addon.clone()).allowed(),
        AgentOfC1.changes(addon).forbidden(cannot(Act::Change, "managedclusteraddons")),
        AgentOfC1.changes(lease).allowed(),
    ]
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn cannot(act: Act, resource: &str) -> String {
    format!("cannot {} resource \"{resource}\"", act.verb())
}
