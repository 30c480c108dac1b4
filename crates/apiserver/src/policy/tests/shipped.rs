//! The policies that Drover ships, on the rows that matter of the table that is tried on a real server.

use serde_json::{Value, json};

use super::{super::*, converted, kind};
use crate::{
    access::bootstrap,
    kind::Kind,
    user::{Part, User},
};

const SHIPPED: [&str; 11] = [
    include_str!("../../../../../deploy/policies/accept-cluster.yaml"),
    include_str!("../../../../../deploy/policies/bind-cluster-set.yaml"),
    include_str!("../../../../../deploy/policies/bind-template-role.yaml"),
    include_str!("../../../../../deploy/policies/describe-cluster.yaml"),
    include_str!("../../../../../deploy/policies/join-cluster-set.yaml"),
    include_str!("../../../../../deploy/policies/name-cluster.yaml"),
    include_str!("../../../../../deploy/policies/name-executor.yaml"),
    include_str!("../../../../../deploy/policies/report-addon.yaml"),
    include_str!("../../../../../deploy/policies/report-cluster.yaml"),
    include_str!("../../../../../deploy/policies/report-work.yaml"),
    include_str!("../../../../../deploy/policies/use-placement.yaml"),
];
const WORLD: &str = include_str!("../../../../scenarios/tests/policies.yaml");
const HUB: &str = include_str!("../../../../../deploy/hub/role.yaml");
const SECURITY: &str = include_str!("../../../../../docs/security.md");
const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
const TEMPLATE_LABEL: &str = "open-cluster-management.io/addon-template-name";
const CLUSTER_LABEL: &str = "open-cluster-management.io/cluster-name";

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).expect("it is YAML")
}

/// Everything that is there: the policies, the rights, and the objects.
struct World {
    policies: Policies,
    rules: Rules,
    objects: Vec<Value>,
}

impl World {
    fn new() -> Self {
        let mut world = Self { policies: Policies::default(), rules: Rules::default(), objects: Vec::new() };
        for object in SHIPPED.iter().flat_map(|yaml| documents(yaml)) {
            assert_eq!(flaws(&object), Vec::new());
            world.policies.apply(object["kind"].as_str().unwrap_or_default(), &object);
        }
        let roles = SECURITY.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let roles = roles.filter(|block| block.contains("rbac.authorization.k8s.io")).flat_map(documents);
        world.objects = documents(WORLD).into_iter().chain(bootstrap()).chain(documents(HUB)).chain(roles).collect();
        for object in &world.objects {
            world.rules.apply(object["kind"].as_str().unwrap_or_default(), object);
        }
        for cluster in world
            .objects
            .iter_mut()
            .filter(|object| object["metadata"]["name"] == "c1" && object["kind"] == "ManagedCluster")
        {
            cluster["spec"]["hubAcceptsClient"] = true.into();
            cluster["status"] = conditions(&[("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted")]);
        }
        world.objects.push(cluster("c10", &json!({}), &json!({ "hubAcceptsClient": true })));
        world
    }

    fn stored(&self, wanted: &Value) -> Value {
        let key = |object: &Value| {
            [object["kind"].clone(), object["metadata"]["name"].clone(), object["metadata"]["namespace"].clone()]
        };
        let found = self.objects.iter().find(|object| key(object) == key(wanted));
        found.unwrap_or_else(|| panic!("there is no {wanted}")).clone()
    }

    fn creates(&self, who: &str, object: &Value) -> Result<(), String> {
        self.attempt(who, Part::Whole, object, None)
    }

    fn changes(&self, who: &str, change: &Value) -> Result<(), String> {
        let old = self.stored(change);
        let mut object = old.clone();
        merge(&mut object, change);
        self.attempt(who, Part::Whole, &object, Some(&old))
    }

    fn reports(&self, who: &str, change: &Value) -> Result<(), String> {
        let old = self.stored(change);
        let mut object = old.clone();
        object["status"] = change["status"].clone();
        self.attempt(who, Part::Status, &object, Some(&old))
    }

    fn attempt(&self, who: &str, part: Part, object: &Value, old: Option<&Value>) -> Result<(), String> {
        let (kind, user) = (kind_of(object), user(who));
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let request = Request {
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            kind: &kind,
            version: api_version.rsplit('/').next().unwrap_or_default(),
            part,
            namespace: text("namespace"),
            name: if old.is_some() { text("name") } else { "" },
            user: &user,
            object: Some(object),
            old,
            namespace_object: None,
            options: None,
            is_dry_run: true,
            convert: &converted,
        };
        self.policies.admit(&request, &self.rules).map(|_| ()).map_err(|failure| failure.message)
    }
}

fn kind_of(object: &Value) -> Kind {
    let (group, _) = object["apiVersion"].as_str().unwrap_or_default().split_once('/').unwrap_or_default();
    let name = object["kind"].as_str().unwrap_or_default();
    kind(group, &format!("{}s", name.to_lowercase()), name, &["v1", "v1alpha1", "v1beta1", "v1beta2"])
}

fn user(who: &str) -> User {
    let agent = "system:open-cluster-management:";
    let (name, groups) = match who {
        "admin" => ("admin".to_owned(), vec!["system:masters".to_owned()]),
        "newcomer" => ("newcomer".to_owned(), vec!["system:bootstrappers:managedcluster".to_owned()]),
        "hub" => ("system:serviceaccount:open-cluster-management-hub:drover-hub".to_owned(), Vec::new()),
        "c1" | "c10" => {
            (format!("{agent}{who}:agent"), vec![format!("{agent}{who}"), format!("{agent}managed-clusters")])
        }
        _ => (who.to_owned(), vec!["team".to_owned()]),
    };
    User { name, groups, ..User::default() }
}

/// Puts the fields of `change` into `object`, as a JSON merge patch does.
fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    fields.remove(key);
                } else {
                    merge(fields.entry(key).or_insert(json!({})), change);
                }
            }
        }
        (object, change) => *object = change.clone(),
    }
}

fn cluster(name: &str, metadata: &Value, spec: &Value) -> Value {
    let mut cluster = json!({ "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": metadata, "spec": spec });
    cluster["metadata"]["name"] = name.into();
    cluster
}

fn conditions(conditions: &[(&str, &str, &str)]) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let one = |(type_, status, reason): &(&str, &str, &str)| json!({ "type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": time });
    json!({ "conditions": conditions.iter().map(one).collect::<Value>() })
}

#[track_caller]
fn refused(outcome: Result<(), String>, policy: &str, saying: &str) {
    let told = outcome.expect_err("it is let through");
    let by =
        format!("ValidatingAdmissionPolicy '{policy}.drover.dev' with binding '{policy}.drover.dev' denied request: ");
    let (_, sentence) = told.split_once(&by).unwrap_or_else(|| panic!("by another: {told}"));
    assert!(sentence.contains(saying), "{sentence}");
}

#[track_caller]
fn allowed(outcome: &Result<(), String>) {
    assert_eq!(*outcome, Ok(()));
}

#[test]
fn a_cluster_is_not_named_like_a_group_of_all() {
    let world = World::new();
    let named = |name| cluster(name, &json!({}), &json!({}));
    for who in ["admin", "newcomer", "user", "c10"] {
        for name in ["managed-clusters", "registration", "work"] {
            refused(world.creates(who, &named(name)), "name-cluster", "register the cluster under another name");
        }
    }
    allowed(&world.creates("admin", &named("workshop")));
}

#[test]
fn accepting_takes_a_right_of_its_own() {
    let world = World::new();
    let accepted = |name| cluster(name, &json!({}), &json!({ "hubAcceptsClient": true }));
    let not_accepted = |name| cluster(name, &json!({}), &json!({ "hubAcceptsClient": false }));
    let right = "changing spec.hubAcceptsClient needs the right to update managedclusters/accept";
    refused(world.creates("newcomer", &accepted("new")), "accept-cluster", right);
    allowed(&world.creates("newcomer", &not_accepted("new")));
    refused(world.creates("user", &accepted("new")), "accept-cluster", right);
    allowed(&world.creates("user", &not_accepted("new")));
    refused(world.changes("user", &accepted("west-1")), "accept-cluster", right);
    refused(world.changes("user", &not_accepted("c1")), "accept-cluster", right);
    allowed(&world.changes("user", &accepted("c1")));
    allowed(&world.changes("trusted", &accepted("west-1")));
    let east = "for \"east-1\": leave the field as it is, or ask for that right";
    refused(world.changes("trusted", &accepted("east-1")), "accept-cluster", east);
    allowed(&world.creates("admin", &accepted("new")));
    let agent = "leave spec.hubAcceptsClient as it is";
    refused(world.changes("c10", &not_accepted("c10")), "describe-cluster", agent);
    refused(world.creates("c10", &accepted("new")), "describe-cluster", agent);
    allowed(&world.creates("c10", &not_accepted("new")));
}

#[test]
fn newcomers_describe_nothing_but_their_addresses() {
    let world = World::new();
    let meta = |metadata: Value| world.creates("newcomer", &cluster("new", &metadata, &json!({})));
    let spec = |spec: Value| world.creates("newcomer", &cluster("new", &json!({}), &spec));
    allowed(&meta(json!({ "annotations": { "agent.open-cluster-management.io/arn": "new" } })));
    allowed(&spec(json!({ "managedClusterClientConfigs": [{ "url": "https://new.example.com:6443" }] })));
    let labels = "leave metadata.labels out, or ask for the right to update managedclusters";
    refused(meta(json!({ "labels": { "region": "east" } })), "describe-cluster", labels);
    refused(meta(json!({ "annotations": { "note": "mine" } })), "describe-cluster", "leave metadata.annotations out");
    refused(meta(json!({ "finalizers": ["a"] })), "describe-cluster", "leave metadata.finalizers out");
    refused(
        meta(json!({ "ownerReferences": [{ "name": "a" }] })),
        "describe-cluster",
        "leave metadata.ownerReferences out",
    );
    refused(
        spec(json!({ "taints": [{ "key": "m", "effect": "NoSelect" }] })),
        "describe-cluster",
        "leave spec.taints out",
    );
    refused(spec(json!({ "leaseDurationSeconds": 3600 })), "describe-cluster", "leave spec.leaseDurationSeconds out");
    allowed(&spec(json!({ "leaseDurationSeconds": 60 })));
    refused(spec(json!({ "later": 1 })), "describe-cluster", "leave the rest of spec out");
}

#[test]
fn agents_describe_nothing_but_their_addresses() {
    let world = World::new();
    let meta = |metadata: Value| world.changes("c1", &cluster("c1", &metadata, &json!({})));
    let spec = |spec: Value| world.changes("c1", &cluster("c1", &json!({}), &spec));
    for key in ["arn", "new"] {
        allowed(&meta(json!({ "annotations": { format!("agent.open-cluster-management.io/{key}"): "two" } })));
    }
    allowed(&meta(json!({ "annotations": { "agent.open-cluster-management.io/arn": null } })));
    allowed(&spec(json!({ "taints": [{ "key": "maintenance", "effect": "NoSelect", "timeAdded": null }] })));
    allowed(&spec(json!({})));
    let labels = "leave metadata.labels as it is, or have an administrator change it";
    for change in [json!({ "region": "east" }), json!({ "more": "yes" }), json!({ "region": null })] {
        refused(meta(json!({ "labels": change })), "describe-cluster", labels);
    }
    for change in
        [json!({ "note": "theirs" }), json!({ "note": null }), json!({ "agent.open-cluster-management.io": "x" })]
    {
        refused(meta(json!({ "annotations": change })), "describe-cluster", "leave metadata.annotations as it is");
    }
    refused(meta(json!({ "finalizers": [] })), "describe-cluster", "leave metadata.finalizers as it is");
    refused(spec(json!({ "taints": [] })), "describe-cluster", "leave spec.taints as it is");
    let taint = json!({ "taints": [{ "key": "maintenance", "effect": "PreferNoSelect" }] });
    refused(spec(taint.clone()), "describe-cluster", "leave spec.taints as it is");
    refused(
        spec(json!({ "leaseDurationSeconds": 3600 })),
        "describe-cluster",
        "leave spec.leaseDurationSeconds as it is",
    );
    allowed(&world.changes("user", &cluster("c1", &json!({ "labels": { "region": "east" } }), &taint)));
}

#[test]
fn moving_a_cluster_takes_a_right_on_both_sets() {
    let world = World::new();
    let to = |name, set: Value| cluster(name, &json!({ "labels": { SET_LABEL: set } }), &json!({}));
    let into_a = "putting a cluster into the set \"team-a\" needs the right to create managedclustersets/join for it";
    let out_of_a = "taking a cluster out of the set \"team-a\" needs the right";
    refused(world.creates("user", &to("new", json!("team-a"))), "join-cluster-set", into_a);
    refused(world.changes("user", &to("west-1", json!("team-a"))), "join-cluster-set", into_a);
    refused(world.changes("user", &to("c1", json!(null))), "join-cluster-set", out_of_a);
    refused(world.changes("user", &to("c1", json!(""))), "join-cluster-set", out_of_a);
    allowed(&world.changes("user", &to("c1", json!("team-a"))));
    allowed(&world.creates("trusted", &to("new", json!("team-a"))));
    allowed(&world.changes("trusted", &to("west-1", json!("team-a"))));
    allowed(&world.changes("trusted", &to("c1", json!(null))));
    refused(world.changes("trusted", &to("c1", json!("team-b"))), "join-cluster-set", "into the set \"team-b\"");
    refused(world.changes("trusted", &to("east-1", json!("team-a"))), "join-cluster-set", "out of the set \"team-b\"");
    allowed(&world.changes("admin", &to("east-1", json!("team-a"))));
    refused(world.changes("c10", &to("c10", json!("team-a"))), "describe-cluster", "leave metadata.labels as it is");
}

#[test]
fn binding_a_set_takes_a_right_on_it() {
    let world = World::new();
    let bound = |set: &str, labels: Value| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": { "name": set, "namespace": "team", "labels": labels },
            "spec": { "clusterSet": set },
        })
    };
    let right = "binding the set \"team-a\" needs the right to create managedclustersets/bind for it";
    refused(world.creates("user", &bound("team-a", json!({}))), "bind-cluster-set", right);
    allowed(&world.changes("user", &bound("team-b", json!({ "seen": "yes" }))));
    allowed(&world.creates("trusted", &bound("team-a", json!({}))));
    refused(world.creates("trusted", &bound("team-c", json!({}))), "bind-cluster-set", "binding the set \"team-c\"");
    allowed(&world.creates("admin", &bound("team-a", json!({}))));
}

#[test]
fn giving_roles_to_agents_takes_the_right_to_bind_them() {
    let world = World::new();
    let rbac = "rbac.authorization.k8s.io";
    let giving = |namespace: &str, name: &str, (kind, role): (&str, &str), mut labels: Value, to: &str| {
        labels[CLUSTER_LABEL] = "c1".into();
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "RoleBinding",
            "metadata": { "name": name, "namespace": namespace, "labels": labels },
            "roleRef": { "apiGroup": rbac, "kind": kind, "name": role },
            "subjects": [{ "apiGroup": rbac, "kind": "Group", "name": to }],
        })
    };
    let template = json!({ TEMPLATE_LABEL: "" });
    let none = json!({ TEMPLATE_LABEL: null });
    let role = ("ClusterRole", "cm-admin");
    let right = "giving the ClusterRole \"cm-admin\" to agents of add-ons needs the right to bind it";
    let new = |role| giving("c1", "new", role, template.clone(), "agents");
    refused(world.creates("user", &new(role)), "bind-template-role", right);
    allowed(&world.creates("user", &giving("c1", "new", role, json!({}), "agents")));
    allowed(&world.changes("user", &giving("c1", "given", role, json!({ "seen": "yes" }), "owners")));
    allowed(&world.changes("user", &giving("c1", "given", role, none.clone(), "owners")));
    refused(world.changes("user", &giving("c1", "given", role, json!({}), "others")), "bind-template-role", right);
    refused(world.changes("user", &giving("c1", "given", role, none, "others")), "bind-template-role", right);
    refused(
        world.changes("user", &giving("c1", "ours", role, template.clone(), "owners")),
        "bind-template-role",
        right,
    );
    allowed(&world.changes("user", &giving("c1", "ours", role, json!({}), "others")));
    allowed(&world.creates("trusted", &new(role)));
    let elsewhere = giving("c10", "new", role, template.clone(), "agents");
    let far = "needs the right to bind-elsewhere it in the namespace \"c10\"";
    refused(world.creates("trusted", &elsewhere), "bind-template-role", far);
    refused(world.creates("trusted", &new(("Role", "cm-admin"))), "bind-template-role", "giving the Role \"cm-admin\"");
    refused(world.creates("trusted", &new(("ClusterRole", "cm-other"))), "bind-template-role", "\"cm-other\"");
    allowed(&world.creates("admin", &new(role)));
    refused(
        world.creates("hub", &new(("ClusterRole", "drover-hub"))),
        "bind-template-role",
        "needs the right to bind it",
    );
    allowed(&world.creates("hub", &new(("ClusterRole", "open-cluster-management:managedcluster:work"))));
}

/// The spec of a work, with an executor of the namespace `apps` if one is named.
fn work_spec(executor: Option<&str>) -> Value {
    let mut spec = json!({ "workload": { "manifests": [{ "kind": "ConfigMap" }] } });
    if let Some(name) = executor {
        spec["executor"] =
            json!({ "subject": { "type": "ServiceAccount", "serviceAccount": { "namespace": "apps", "name": name } } });
    }
    spec
}

fn work(cluster: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": { "name": name, "namespace": cluster }, "spec": spec })
}

#[test]
fn naming_an_executor_takes_a_right_on_it() {
    let world = World::new();
    let new = |cluster, executor| work(cluster, "new", &work_spec(executor));
    let kept = |cluster| work(cluster, "kept", &work_spec(Some("deployer")));
    let on_c1 = "saying what is applied as system:serviceaccount:apps:deployer needs the right to execute-as on manifestworks \
                 of that name in the namespace \"c1\"";
    allowed(&world.creates("user", &new("c1", None)));
    refused(world.creates("user", &new("c1", Some("deployer"))), "name-executor", on_c1);
    refused(world.changes("user", &kept("c1")), "name-executor", on_c1);
    refused(world.changes("user", &kept("c10")), "name-executor", "in the namespace \"c10\": leave");
    allowed(&world.changes("user", &work("c10", "kept", &work_spec(None))));
    allowed(&world.changes("user", &work("c1", "kept", &json!({ "executor": null }))));
    allowed(&world.creates("trusted", &new("c1", Some("deployer"))));
    allowed(&world.changes("trusted", &kept("c1")));
    refused(world.creates("trusted", &new("c1", Some("owner"))), "name-executor", "system:serviceaccount:apps:owner");
    refused(
        world.creates("trusted", &new("c10", Some("deployer"))),
        "name-executor",
        "in the namespace \"c10\": leave",
    );
    allowed(&world.creates("deployer", &new("c10", Some("deployer"))));
    refused(world.changes("c1", &kept("c1")), "name-executor", on_c1);
    let owner = "needs the right to execute-as on manifestworks of that name in the namespace \"c1\": leave what is applied as it is, \
                 take the executor out, or ask for that right";
    refused(world.changes("user", &work("c1", "kept", &work_spec(None))), "name-executor", owner);
    let mut labelled = work("c1", "kept", &json!({}));
    labelled["metadata"]["labels"] = json!({ "seen": "yes" });
    allowed(&world.changes("user", &labelled));
}

#[test]
fn naming_an_executor_for_the_hub_takes_a_right_everywhere() {
    let world = World::new();
    let sources = |name: &str, work: &Value| {
        let metadata = json!({ "name": name, "namespace": "team" });
        let placement = json!([{ "namespace": "team", "name": "ours" }]);
        let upgrade = |action: &str| {
            json!({ "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "ManagedClustersUpgrade",
                "metadata": metadata, "spec": { "placement": placement, action: { "manifestWork": work } } })
        };
        [
            json!({ "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
                "metadata": metadata, "spec": { "manifestWorkTemplate": work } }),
            json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
                "metadata": { "name": name }, "spec": { "agentSpec": work } }),
            upgrade("preUpgradeAction"),
            upgrade("postUpgradeAction"),
        ]
    };
    let everywhere = "saying what is applied as system:serviceaccount:apps:deployer needs the right to execute-as on manifestworks of \
                      that name in all namespaces";
    for source in sources("new", &work_spec(Some("deployer"))) {
        refused(world.creates("user", &source), "name-executor", everywhere);
        refused(world.creates("trusted", &source), "name-executor", everywhere);
        allowed(&world.creates("deployer", &source));
    }
    for source in sources("acting", &work_spec(None)) {
        refused(world.changes("user", &source), "name-executor", everywhere);
        allowed(&world.changes("deployer", &source));
    }
    for mut source in sources("acting", &json!({})) {
        source["spec"] = json!({});
        source["metadata"]["labels"] = json!({ "seen": "yes" });
        allowed(&world.changes("user", &source));
    }
}

#[test]
fn using_placements_of_others_takes_the_right_to_read_them() {
    let world = World::new();
    let addon = |name: &str, placements: Value| {
        json!({ "apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn", "metadata": { "name": name },
            "spec": { "installStrategy": { "type": "Placements", "placements": placements } } })
    };
    let fleet = |name: &str| json!({ "namespace": "fleet", "name": name });
    let behind = |name: &str, canary: &str| {
        let strategy = json!({ "rollingUpdateWithCanary": { "placement": fleet(canary) } });
        json!({ "namespace": "fleet", "name": name, "rolloutStrategy": strategy })
    };
    let many = |count: u32| (0..count).map(|at| fleet(&format!("p{at}"))).collect::<Value>();
    let may_not = "ask for the right to get these placements: fleet/everywhere";
    refused(world.creates("user", &addon("new", json!([fleet("everywhere")]))), "use-placement", may_not);
    let both = json!([fleet("canaries"), fleet("everywhere")]);
    refused(world.changes("user", &addon("kept", both)), "use-placement", may_not);
    refused(world.changes("user", &addon("kept", json!([behind("canaries", "everywhere")]))), "use-placement", may_not);
    let at_once = json!([{ "namespace": "fleet", "name": "canaries", "rolloutStrategy": { "type": "UpdateAll" } }]);
    allowed(&world.changes("user", &addon("kept", at_once)));
    allowed(&world.creates("trusted", &addon("new", json!([fleet("everywhere")]))));
    allowed(&world.changes("trusted", &addon("kept", json!([behind("everywhere", "canaries")]))));
    let two = "placements: fleet/everywhere, fleet/p1";
    refused(world.creates("trusted", &addon("new", json!([behind("everywhere", "p1")]))), "use-placement", two);
    refused(world.creates("trusted", &addon("new", many(16))), "use-placement", "these placements: fleet/p0, fleet/p1");
    refused(world.creates("trusted", &addon("new", many(17))), "use-placement", "at most 16 new placements");
    allowed(&world.creates("admin", &addon("new", many(100))));
}

#[test]
fn agents_leave_alone_what_the_hub_reports() {
    let world = World::new();
    let accepted = ("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted");
    let available = ("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable");
    let denied = ("HubAcceptedManagedCluster", "False", "HubClusterAdminDenied");
    let reported = |conditions_: &[(&str, &str, &str)]| {
        let mut cluster = cluster("c1", &json!({}), &json!({}));
        cluster["status"] = conditions(conditions_);
        cluster
    };
    let left_alone = "leave the condition HubAcceptedManagedCluster in status.conditions as it is";
    allowed(&world.reports("c1", &reported(&[accepted, available])));
    refused(world.reports("c1", &reported(&[denied, available])), "report-cluster", left_alone);
    refused(world.reports("c1", &reported(&[])), "report-cluster", left_alone);
    allowed(&world.reports("admin", &reported(&[denied])));
    let addon = |conditions_: &[(&str, &str, &str)]| {
        json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": { "name": "kept", "namespace": "c1" }, "status": conditions(conditions_) })
    };
    let (well, given) = (("Available", "True", "Lease"), ("drover.dev/Given", "True", "Given"));
    allowed(&world.reports("c1", &addon(&[well])));
    let the_hubs = "leave the conditions in status.conditions whose type begins with drover.dev/ as they are";
    refused(world.reports("c1", &addon(&[well, given])), "report-addon", the_hubs);
    allowed(&world.reports("admin", &addon(&[well, given])));
}

#[test]
fn times_of_what_the_hub_reports_may_be_rounded() {
    let mut world = World::new();
    let reported = |time: &str| {
        let given = json!([{ "type": "drover.dev/Given", "status": "True", "reason": "Given", "message": "", "lastTransitionTime": time }]);
        json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": { "name": "noted", "namespace": "c1" }, "status": { "conditions": given } })
    };
    world.objects.push(reported("2026-01-01T00:00:00.5Z"));
    allowed(&world.reports("c1", &reported("2026-01-01T00:00:00Z")));
    refused(world.reports("c1", &reported("2026-01-01T00:00:02Z")), "report-addon", "leave the conditions");
}
