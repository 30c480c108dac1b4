//! The table. The objects that are changed, and everybody's roles, are in `crates/scenarios/tests/policies.yaml` and in
//! `docs/security.md`.

use drover_api::names::{CLUSTER_AVAILABLE, CLUSTER_NAME_LABEL, HUB_ACCEPTED, TEMPLATE_BINDING_LABEL};
use serde_json::{Value, json};

use super::attempt::{
    Act, By, Outcome, Row,
    Who::{self, Admin, AgentOfC1, AgentOfC10, Deployer, Hub, Newcomer, Trusted, User},
};

const ACCEPT: &str = "accept-cluster";
const BIND: &str = "bind-cluster-set";
const BIND_ROLE: &str = "bind-template-role";
const DESCRIBE: &str = "describe-cluster";
const EXECUTE: &str = "name-executor";
const JOIN: &str = "join-cluster-set";
const NAME: &str = "name-cluster";
const PLACE: &str = "use-placement";
const REPORT: &str = "report-cluster";
const REPORT_ADDON: &str = "report-addon";
const REPORT_WORK: &str = "report-work";

const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";

/// All rows.
pub(super) fn rows() -> Vec<Row> {
    let parts = [
        naming_a_cluster(),
        accepting(),
        describing_as_a_newcomer(),
        describing_as_an_agent(),
        moving(),
        binding(),
        giving_a_role_as_the_hub(),
        giving_a_role_as_somebody_else(),
        naming_an_executor(),
        changing_what_an_executor_applies(),
        naming_an_executor_for_the_hub(),
        changing_what_an_executor_applies_for_the_hub(),
        upgrading_a_placement(),
        installing_on_a_placement(),
        meddling(AgentOfC1, "c10"),
        meddling(AgentOfC10, "c1"),
        reporting_on_a_cluster(),
        reporting_on_an_addon(),
        marking_a_work(),
    ];
    let rows = parts.into_iter().flatten().flat_map(Row::in_every_way);
    rows.chain(working_as_an_agent()).chain(leaving_out_what_the_hub_says()).collect()
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

fn naming_a_cluster() -> Vec<Row> {
    let named = |name| cluster(name, json!({}), json!({}));
    let taken = ["managed-clusters", "registration", "work"];
    let everybody = [Admin, Newcomer, User, AgentOfC10];
    let refused = everybody.into_iter().flat_map(|who| taken.map(|name| who.creates(named(name)))).map(|attempt| {
        attempt.refused(
            NAME,
            "because a group or a role of all agents is called so: register the cluster under another name",
        )
    });
    refused.chain([Admin.creates(named("workshop")).allowed()]).collect()
}

fn accepting() -> Vec<Row> {
    let accepted = |name| cluster(name, json!({}), json!({ "hubAcceptsClient": true }));
    let not_accepted = |name| cluster(name, json!({}), json!({ "hubAcceptsClient": false }));
    let right = "changing spec.hubAcceptsClient needs the right to update managedclusters/accept";
    let agent = "leave spec.hubAcceptsClient as it is";
    vec![
        Newcomer.creates(accepted("new")).refused(ACCEPT, right),
        Newcomer.creates(not_accepted("new")).allowed(),
        Newcomer.changes(accepted("west-1")).forbidden(cannot(Act::Change(By::Update), "managedclusters")),
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

/// A binding of a role in a namespace, with these fields in its metadata, as the hub makes them for agents of add-ons.
fn role_binding(namespace: &str, (kind, role): (&str, &str), mut metadata: Value) -> Value {
    metadata["name"] = metadata.get("name").cloned().unwrap_or_else(|| "new".into());
    metadata["namespace"] = namespace.into();
    let rbac = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{rbac}/v1"),
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": { "apiGroup": rbac, "kind": kind, "name": role },
        "subjects": [{ "apiGroup": rbac, "kind": "Group", "name": "system:open-cluster-management:cluster:c1:addon:hello" }],
    })
}

/// The metadata of a binding for the agents of c1.
fn of_a_template() -> Value {
    json!({ "labels": { TEMPLATE_BINDING_LABEL: "", CLUSTER_NAME_LABEL: "c1" } })
}

/// RBAC lets the hub give away whatever it has; the policy lets it give away, by a template, what it may bind.
fn giving_a_role_as_the_hub() -> Vec<Row> {
    let tokens = ("ClusterRole", "drover-hub-addon-tokens");
    let gives = |namespace, role, metadata| Hub.creates(role_binding(namespace, role, metadata));
    vec![
        gives("c1", tokens, of_a_template())
            .refused(BIND_ROLE, "the ClusterRole \"drover-hub-addon-tokens\" to agents"),
        gives("c1", ("ClusterRole", "drover-hub"), of_a_template()).refused(BIND_ROLE, "needs the right to bind it"),
        gives("c1", tokens, json!({})).allowed(),
        gives("open-cluster-management-hub", ("Role", "drover-hub"), of_a_template()).refused(
            BIND_ROLE,
            "giving the Role \"drover-hub\" to agents of add-ons needs the right to bind-elsewhere it",
        ),
        // This it may bind for agents of clusters; that no template can name it is up to the hub.
        gives("c1", ("ClusterRole", "open-cluster-management:managedcluster:work"), of_a_template()).allowed(),
    ]
}

fn giving_a_role_as_somebody_else() -> Vec<Row> {
    let role = ("ClusterRole", "cm-admin");
    let new = |role| role_binding("c1", role, of_a_template());
    let changed = |name: &str, mut labels: Value| {
        labels[CLUSTER_NAME_LABEL] = "c1".into();
        let mut binding = role_binding("c1", role, json!({ "name": name, "labels": labels }));
        binding["subjects"][0]["name"] = "owners".into();
        binding
    };
    let regiven = |name: &str, labels: Value| {
        let mut binding = changed(name, labels);
        binding["subjects"][0]["name"] = "others".into();
        binding
    };
    let right = "giving the ClusterRole \"cm-admin\" to agents of add-ons needs the right to bind it";
    vec![
        User.creates(new(role)).refused(BIND_ROLE, right),
        User.creates(role_binding("c1", role, json!({}))).allowed(),
        User.changes(changed("given", json!({ "seen": "yes" }))).allowed(),
        User.changes(changed("given", json!({ TEMPLATE_BINDING_LABEL: null }))).allowed(),
        User.changes(regiven("given", json!({}))).refused(BIND_ROLE, right),
        User.changes(regiven("given", json!({ TEMPLATE_BINDING_LABEL: null }))).refused(BIND_ROLE, right),
        User.changes(changed("ours", json!({ TEMPLATE_BINDING_LABEL: "" }))).refused(BIND_ROLE, right),
        User.changes(regiven("ours", json!({}))).allowed(),
        Trusted.creates(new(role)).allowed(),
        Trusted
            .creates(role_binding("c10", role, of_a_template()))
            .refused(BIND_ROLE, "needs the right to bind-elsewhere it in the namespace \"c10\""),
        Trusted.creates(role_binding("team", role, of_a_template())).allowed(),
        Trusted.changes(regiven("given", json!({}))).allowed(),
        Trusted.creates(new(("Role", "cm-admin"))).refused(BIND_ROLE, "giving the Role \"cm-admin\""),
        Trusted.creates(new(("ClusterRole", "cm-other"))).refused(BIND_ROLE, "giving the ClusterRole \"cm-other\""),
        Admin.creates(new(role)).allowed(),
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

/// What an agent reads that changes what its work says.
const SPEC_LEFT_ALONE: &str = "leave spec and metadata.ownerReferences of the ManifestWork as they are";

fn work(cluster: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({ "name": name, "namespace": cluster });
    object("work.open-cluster-management.io/v1", "ManifestWork", metadata, spec)
}

fn naming_an_executor() -> Vec<Row> {
    let new = |cluster, executor| work(cluster, "new", work_spec(executor));
    let kept = |cluster| work(cluster, "kept", work_spec(Some("deployer")));
    let on_c1 = "saying what is applied as system:serviceaccount:apps:deployer needs the right to execute-as on manifestworks \
                 of that name in the namespace \"c1\"";
    let on_c10 = "of that name in the namespace \"c10\": leave";
    let owner = "saying what is applied as system:serviceaccount:apps:owner needs the right";
    vec![
        User.creates(new("c1", None)).allowed(),
        User.creates(new("c1", Some("deployer"))).refused(EXECUTE, on_c1),
        User.changes(kept("c1")).refused(EXECUTE, on_c1),
        User.changes(kept("c10")).refused(EXECUTE, on_c10),
        User.changes(work("c10", "kept", work_spec(None))).allowed(),
        User.changes(work("c1", "kept", json!({ "executor": null }))).allowed(),
        Trusted.creates(new("c1", Some("deployer"))).allowed(),
        Trusted.changes(kept("c1")).allowed(),
        Trusted.creates(new("c1", Some("owner"))).refused(EXECUTE, owner),
        Trusted.creates(new("c10", Some("deployer"))).refused(EXECUTE, on_c10),
        Deployer.creates(new("c10", Some("deployer"))).allowed(),
        AgentOfC1.changes(kept("c1")).refused_twice([(EXECUTE, on_c1), (REPORT_WORK, SPEC_LEFT_ALONE)]),
    ]
}

/// The work `kept` has the executor `owner`, and `large` has `deployer`.
fn changing_what_an_executor_applies() -> Vec<Row> {
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    let labelled = |name| {
        let mut labelled = work("c1", name, json!({}));
        labelled["metadata"]["labels"] = json!({ "seen": "yes" });
        labelled
    };
    let finalized = |name| {
        let mut finalized = work("c1", name, json!({}));
        finalized["metadata"]["finalizers"] = json!(["cluster.open-cluster-management.io/manifest-work-cleanup"]);
        finalized
    };
    let stripped = json!({ "executor": null, "workload": work_spec(None)["workload"] });
    let owner = "saying what is applied as system:serviceaccount:apps:owner needs the right to execute-as on manifestworks of that \
                 name in the namespace \"c1\": leave what is applied as it is, take the executor out, or ask for that right";
    let deployer = "saying what is applied as system:serviceaccount:apps:deployer needs the right";
    vec![
        User.changes(work("c1", "kept", work_spec(None))).refused(EXECUTE, owner),
        User.changes(work("c1", "kept", orphan.clone())).refused(EXECUTE, owner),
        User.changes(work("c1", "kept", stripped)).allowed(),
        User.changes(labelled("kept")).allowed(),
        Trusted.changes(work("c1", "kept", work_spec(None))).refused(EXECUTE, owner),
        AgentOfC1
            .changes(work("c1", "kept", work_spec(None)))
            .refused_twice([(EXECUTE, owner), (REPORT_WORK, SPEC_LEFT_ALONE)]),
        AgentOfC1.changes(finalized("kept")).allowed(),
        Admin.changes(work("c1", "kept", work_spec(None))).allowed(),
        User.changes(work("c1", "large", orphan.clone())).refused(EXECUTE, deployer),
        User.changes(labelled("large")).allowed(),
        Trusted.changes(work("c1", "large", orphan)).allowed(),
        AgentOfC1.changes(finalized("large")).allowed(),
    ]
}

const EVERYWHERE: &str = "saying what is applied as system:serviceaccount:apps:deployer needs the right to execute-as on \
                          manifestworks of that name in all namespaces";

fn naming_an_executor_for_the_hub() -> Vec<Row> {
    let owner = "saying what is applied as system:serviceaccount:apps:owner needs the right";
    let cases = [
        (User, None, Outcome::Allowed),
        (User, Some("deployer"), Outcome::Refused(EXECUTE, EVERYWHERE)),
        (Trusted, Some("deployer"), Outcome::Refused(EXECUTE, EVERYWHERE)),
        (Deployer, Some("deployer"), Outcome::Allowed),
        (Deployer, Some("owner"), Outcome::Refused(EXECUTE, owner)),
    ];
    let rows = cases.into_iter().flat_map(|(who, executor, outcome)| {
        sources_of_works("new", &work_spec(executor)).map(|source| who.creates(source).ends(outcome.clone()))
    });
    rows.collect()
}

/// Those called `acting` have the executor `deployer`.
fn changing_what_an_executor_applies_for_the_hub() -> Vec<Row> {
    let mut rows = Vec::new();
    for source in sources_of_works("acting", &work_spec(None)) {
        rows.push(User.changes(source.clone()).refused(EXECUTE, EVERYWHERE));
        rows.push(Trusted.changes(source.clone()).refused(EXECUTE, EVERYWHERE));
        rows.push(Deployer.changes(source).allowed());
    }
    for mut source in sources_of_works("acting", &json!({})) {
        source["spec"] = json!({});
        source["metadata"]["labels"] = json!({ "seen": "yes" });
        rows.push(User.changes(source).allowed());
    }
    let metadata = json!({ "name": "acting", "namespace": "team" });
    let elsewhere = json!({ "placementRefs": [{ "name": "elsewhere" }] });
    let elsewhere = object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", metadata, elsewhere);
    let other_version = upgrade("acting", json!({ "clusterVersion": { "version": "4.12.1" } }));
    rows.extend([elsewhere, other_version].map(|source| User.changes(source).allowed()));
    rows
}

/// What the hub makes works of, with a work of that spec.
fn sources_of_works(name: &str, work: &Value) -> [Value; 4] {
    let replica_set = json!({ "manifestWorkTemplate": work, "placementRefs": [{ "name": "ours" }] });
    let template = json!({ "addonName": name, "agentSpec": work });
    let upgrade_with = |action: &str| {
        let mut upgrade = upgrade_of(name, "team", "ours");
        upgrade["spec"][action] = json!({ "manifestWork": work });
        upgrade
    };
    let metadata = json!({ "name": name, "namespace": "team" });
    [
        object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", metadata, replica_set),
        object("addon.open-cluster-management.io/v1alpha1", "AddOnTemplate", json!({ "name": name }), template),
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

const WAYS: [By; 3] = [By::Update, By::Patch, By::Apply];

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
        rows.extend([Act::Get, Act::List, Act::Create, Act::Delete].map(|act| forbidden(act, resource)));
        rows.extend(WAYS.map(|by| forbidden(Act::Change(by), resource)));
        if ["ManifestWork", "ManagedClusterAddOn"].contains(&kind) {
            rows.extend(WAYS.map(|by| forbidden(Act::Report(by), &format!("{resource}/status"))));
        }
    }
    let forbidden =
        |act, resource| agent.attempts(act, cluster(other, json!({}), json!({}))).forbidden(cannot(act, resource));
    rows.extend([Act::Get, Act::Delete].map(|act| forbidden(act, "managedclusters")));
    rows.extend(WAYS.map(|by| forbidden(Act::Change(by), "managedclusters")));
    rows.extend(WAYS.map(|by| forbidden(Act::Report(by), "managedclusters/status")));
    rows
}

fn working_as_an_agent() -> Vec<Row> {
    let mut cluster = cluster("c1", json!({}), json!({}));
    cluster["status"] = json!({ "version": { "kubernetes": "v1.36.4" } });
    let metadata = json!({ "name": "kept", "namespace": "c1" });
    let addon = object("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", metadata, json!({}));
    let metadata = json!({ "name": "managed-cluster-lease", "namespace": "c1" });
    let lease = object("coordination.k8s.io/v1", "Lease", metadata, json!({ "holderIdentity": "agent" }));
    vec![
        AgentOfC1.reports(cluster).allowed(),
        AgentOfC1.reports(work("c1", "kept", json!({}))).allowed(),
        AgentOfC1.reports(addon.clone()).allowed(),
        AgentOfC1.changes(addon).forbidden(cannot(Act::Change(By::Update), "managedclusteraddons")),
        AgentOfC1.changes(lease).allowed(),
    ]
}

/// A ManagedCluster with those conditions, each with its status and reason.
fn conditioned(name: &str, conditions: &[(&str, &str, &str)]) -> Value {
    let conditions = conditions.iter().map(|(type_, status, reason)| {
        json!({
            "type": type_,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    });
    let mut cluster = cluster(name, json!({}), json!({}));
    cluster["status"] = json!({ "conditions": conditions.collect::<Value>() });
    cluster
}

const ACCEPTED: (&str, &str, &str) = (HUB_ACCEPTED, "True", "HubClusterAdminAccepted");
const AVAILABLE: (&str, &str, &str) = (CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable");
const LEFT_ALONE: &str = "leave the condition HubAcceptedManagedCluster in status.conditions as it is";

fn reporting_on_a_cluster() -> Vec<Row> {
    let denied = (HUB_ACCEPTED, "False", "HubClusterAdminDenied");
    let otherwise = (HUB_ACCEPTED, "True", "Otherwise");
    vec![
        AgentOfC1.reports(conditioned("c1", &[ACCEPTED, AVAILABLE])).allowed(),
        AgentOfC1.reports(conditioned("c1", &[denied, AVAILABLE])).refused(REPORT, LEFT_ALONE),
        AgentOfC1.reports(conditioned("c1", &[otherwise, AVAILABLE])).refused(REPORT, LEFT_ALONE),
        AgentOfC1.reports(conditioned("c1", &[])).refused(REPORT, LEFT_ALONE),
        AgentOfC10.reports(conditioned("west-1", &[ACCEPTED])).refused(REPORT, LEFT_ALONE),
        AgentOfC10.reports(conditioned("west-1", &[AVAILABLE])).allowed(),
        Admin.reports(conditioned("c1", &[denied])).allowed(),
    ]
}

/// An add-on on c1, with those conditions.
fn reported(name: &str, conditions: &[(&str, &str, &str)]) -> Value {
    let metadata = json!({ "name": name, "namespace": "c1" });
    let mut addon = object("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", metadata, json!({}));
    addon["status"] = conditioned("", conditions)["status"].take();
    addon
}

const WELL: (&str, &str, &str) = ("Available", "True", "Lease");
const GIVEN: (&str, &str, &str) = ("drover.dev/Given", "True", "Given");
const THE_HUBS: &str = "leave the conditions in status.conditions whose type begins with drover.dev/ as they are";

/// The add-on `given`, on which the hub has noted down something.
pub(super) fn given() -> Value {
    let mut addon = reported("given", &[GIVEN]);
    addon["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T12:00:00.5Z".into();
    addon
}

fn reporting_on_an_addon() -> Vec<Row> {
    let with = |field: &str, value: &str| {
        let mut addon = given();
        addon["status"]["conditions"][0][field] = value.into();
        addon
    };
    let configured = |hash: &str| {
        let mut addon = reported("kept", &[WELL]);
        let desired = json!({ "name": "hello", "specHash": hash });
        addon["status"]["configReferences"] = json!([{ "group": "addon.open-cluster-management.io",
            "resource": "addontemplates", "name": "hello", "desiredConfig": desired }]);
        addon
    };
    let at = |time| AgentOfC1.reports(with("lastTransitionTime", time));
    let saying = |field, value| AgentOfC1.reports(with(field, value));
    vec![
        AgentOfC1.reports(reported("kept", &[WELL])).allowed(),
        AgentOfC1.reports(reported("kept", &[WELL, GIVEN])).refused(REPORT_ADDON, THE_HUBS),
        Admin.reports(reported("kept", &[WELL, GIVEN])).allowed(),
        AgentOfC1.reports(given()).allowed(),
        at("2026-01-01T12:00:00Z").allowed(),
        at("2026-01-01T13:00:00+01:00").allowed(),
        at("2026-01-01T11:59:59.9Z").refused(REPORT_ADDON, THE_HUBS),
        at("2026-01-01T12:00:01Z").refused(REPORT_ADDON, THE_HUBS),
        at("2026-01-01T12:00:00+01:00").refused(REPORT_ADDON, THE_HUBS),
        saying("message", "0123456789abcdef").refused(REPORT_ADDON, THE_HUBS),
        saying("status", "False").refused(REPORT_ADDON, THE_HUBS),
        saying("reason", "Other").refused(REPORT_ADDON, THE_HUBS),
        Admin.reports(with("status", "False")).allowed(),
        AgentOfC1
            .reports(configured("0123"))
            .refused(REPORT_ADDON, "leave the configurations that status.configReferences"),
        Admin.reports(configured("0123")).allowed(),
    ]
}

fn marking_a_work() -> Vec<Row> {
    let marked = |metadata: Value| {
        let mut work = work("c10", "kept", json!({}));
        work["metadata"].as_object_mut().expect("metadata").extend(metadata.as_object().expect("metadata").clone());
        work
    };
    let noted = || marked(json!({ "annotations": { "drover.dev/proven": "0123456789abcdef 2026-01-01T00:00:00Z" } }));
    let labelled = || marked(json!({ "labels": { "work.open-cluster-management.io/manifestworkreplicaset": "a.b" } }));
    let finalizers = json!({ "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"] });
    let left_alone = "leave metadata.labels and metadata.annotations of the ManifestWork as they are";
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1" });
    let owned = marked(json!({ "ownerReferences": [owner] }));
    let other_spec = work("c10", "kept", json!({ "deleteOption": { "propagationPolicy": "Orphan" } }));
    vec![
        AgentOfC10.changes(noted()).refused(REPORT_WORK, left_alone),
        AgentOfC10.changes(labelled()).refused(REPORT_WORK, left_alone),
        AgentOfC10.changes(owned).refused(REPORT_WORK, SPEC_LEFT_ALONE),
        AgentOfC10.changes(other_spec).refused(REPORT_WORK, SPEC_LEFT_ALONE),
        AgentOfC10.changes(marked(finalizers)).allowed(),
        Admin.changes(noted()).allowed(),
    ]
}

/// An update and a merge patch say all conditions, and so remove those that they leave out. An apply does not.
fn leaving_out_what_the_hub_says() -> Vec<Row> {
    let available_alone = |by| AgentOfC1.attempts(Act::Report(by), conditioned("c1", &[AVAILABLE]));
    vec![
        available_alone(By::Update).refused(REPORT, LEFT_ALONE),
        available_alone(By::Patch).refused(REPORT, LEFT_ALONE),
        available_alone(By::Apply).allowed(),
        AgentOfC1.attempts(Act::Report(By::Update), reported("given", &[WELL])).refused(REPORT_ADDON, THE_HUBS),
        AgentOfC1.attempts(Act::Report(By::Patch), reported("given", &[WELL])).refused(REPORT_ADDON, THE_HUBS),
    ]
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn cannot(act: Act, resource: &str) -> String {
    format!("cannot {} resource \"{resource}\"", act.verb())
}
