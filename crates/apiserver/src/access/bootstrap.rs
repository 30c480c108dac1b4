//! The roles and bindings that are there from the start, as on a fresh Kubernetes. Those of parts that are not in here, such as a
//! scheduler, are left out.

use serde_json::{Value, json};

use super::{AUTHENTICATED, MASTERS, RBAC, UNAUTHENTICATED, aggregation::aggregated};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Those roles and bindings.
#[must_use]
pub fn bootstrap() -> Vec<Value> {
    let mut objects = vec![
        role("cluster-admin", &[rule(&["*"], &["*"], &["*"]), addresses(&["*"], &["*"])]),
        role("system:discovery", &[addresses(&["get"], &discovery_addresses())]),
        role(
            "system:monitoring",
            &[addresses(&["get"], &monitoring_addresses()), rule(&["get"], &[""], &["nodes/metrics"])],
        ),
        role("system:basic-user", &basic_user_rules()),
        role("system:public-info-viewer", &[addresses(&["get"], &PUBLIC_ADDRESSES)]),
        role("system:service-account-issuer-discovery", &[addresses(&["get"], &ISSUER_ADDRESSES)]),
        role("system:auth-delegator", &auth_delegator_rules()),
        role(
            "system:node-bootstrapper",
            &[rule(&["create", "get", "list", "watch"], &[CERTIFICATES], &["certificatesigningrequests"])],
        ),
    ];
    objects.extend(certificate_roles());
    objects.extend(aggregated_roles());
    objects.extend([
        binding("cluster-admin", &[MASTERS]),
        binding("system:monitoring", &["system:monitoring"]),
        binding("system:discovery", &[AUTHENTICATED]),
        binding("system:basic-user", &[AUTHENTICATED]),
        binding("system:public-info-viewer", &[AUTHENTICATED, UNAUTHENTICATED]),
        binding("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
    ]);
    objects.extend(signing_controller());
    objects
}

/// The signers that Kubernetes has, in its domain.
const SIGNERS: [&str; 4] =
    ["legacy-unknown", "kubelet-serving", "kube-apiserver-client", "kube-apiserver-client-kubelet"];

const PUBLIC_ADDRESSES: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

const ISSUER_ADDRESSES: [&str; 4] =
    ["/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks", "/openid/v1/jwks/"];

fn discovery_addresses() -> Vec<&'static str> {
    let documents = ["/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"];
    PUBLIC_ADDRESSES.into_iter().chain(documents).collect()
}

fn monitoring_addresses() -> Vec<&'static str> {
    let states = ["/livez", "/readyz", "/healthz", "/livez/*", "/readyz/*", "/healthz/*"];
    ["/metrics", "/metrics/slis", "/flagz", "/statusz"].into_iter().chain(states).collect()
}

fn basic_user_rules() -> [Value; 2] {
    [
        rule(&["create"], &[AUTHORIZATION], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        rule(&["create"], &[AUTHENTICATION], &["selfsubjectreviews"]),
    ]
}

fn auth_delegator_rules() -> [Value; 2] {
    [
        rule(&["create"], &[AUTHENTICATION], &["tokenreviews"]),
        rule(&["create"], &[AUTHORIZATION], &["subjectaccessreviews"]),
    ]
}

/// Whose certificates who holds the role may approve.
fn certificate_roles() -> Vec<Value> {
    let approver = |signer: &str| {
        let mut approve = rule(&["approve"], &[CERTIFICATES], &["signers"]);
        approve["resourceNames"] = json!([format!("kubernetes.io/{signer}")]);
        role(&format!("system:{CERTIFICATES}:{signer}-approver"), &[approve])
    };
    let requester = |part: &str| {
        let create = rule(&["create"], &[CERTIFICATES], &[&format!("certificatesigningrequests/{part}")]);
        role(&format!("system:{CERTIFICATES}:certificatesigningrequests:{part}"), &[create])
    };
    SIGNERS.map(approver).into_iter().chain(["nodeclient", "selfnodeclient"].map(requester)).collect()
}

/// What lets the server's own signer sign. Whoever has another one takes its binding away.
fn signing_controller() -> [Value; 2] {
    let requests = "certificatesigningrequests";
    let parts = ["certificatesigningrequests/approval", "certificatesigningrequests/status"];
    let named = |verb: &str, signers: &[&str]| {
        let mut rule = rule(&[verb], &[CERTIFICATES], &["signers"]);
        rule["resourceNames"] = signers.iter().map(|signer| format!("kubernetes.io/{signer}")).collect();
        rule
    };
    let mut signers = SIGNERS;
    signers.sort_unstable();
    let rules = [
        rule(&["delete", "get", "list", "watch"], &[CERTIFICATES], &[requests]),
        rule(&["update"], &[CERTIFICATES], &parts),
        named("approve", &["kube-apiserver-client-kubelet"]),
        named("sign", &signers),
        rule(&["create"], &[AUTHORIZATION], &["subjectaccessreviews"]),
        rule(&["create", "patch", "update"], &["", "events.k8s.io"], &["events"]),
    ];
    let name = "system:controller:certificate-controller";
    let mut binding = binding(name, &[]);
    binding["subjects"] =
        json!([{ "kind": "ServiceAccount", "name": "certificate-controller", "namespace": "kube-system" }]);
    [role(name, &rules), binding]
}

/// The roles for the people of one namespace, each of which has what the one before has.
fn aggregated_roles() -> Vec<Value> {
    let mut roles = vec![
        labelled(role("system:aggregate-to-view", &view_rules()), "view"),
        labelled(role("system:aggregate-to-edit", &edit_rules()), "edit"),
        labelled(role("system:aggregate-to-admin", &admin_rules()), "admin"),
    ];
    for (name, part_of) in [("view", Some("edit")), ("edit", Some("admin")), ("admin", None)] {
        let mut gathering = role(name, &[]);
        let labels = json!({ format!("{AGGREGATE}{name}"): "true" });
        gathering["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": labels }] });
        gathering["rules"] = json!(aggregated(&gathering, &roles));
        roles.push(match part_of {
            Some(larger) => labelled(gathering, larger),
            None => gathering,
        });
    }
    roles
}

fn admin_rules() -> Vec<Value> {
    vec![
        rule(&["create"], &[AUTHORIZATION], &["localsubjectaccessreviews"]),
        rule(READ_WRITE, &[RBAC], &["roles", "rolebindings"]),
    ]
}

fn edit_rules() -> Vec<Value> {
    let into_pods = ["pods/attach", "pods/proxy", "pods/exec", "pods/portforward"];
    let workloads =
        ["daemonsets", "deployments", "deployments/scale", "deployments/rollback", "replicasets", "replicasets/scale"];
    let core = [
        "replicationcontrollers",
        "replicationcontrollers/scale",
        "serviceaccounts",
        "services",
        "services/proxy",
        "persistentvolumeclaims",
        "configmaps",
        "secrets",
    ];
    vec![
        rule(READ, &[""], &[&into_pods[..], &["secrets", "services/proxy"]].concat()),
        rule(&["impersonate"], &[""], &["serviceaccounts"]),
        rule(WRITE, &[""], &[&["pods"], &into_pods[..]].concat()),
        rule(&["create"], &[""], &["pods/eviction"]),
        rule(WRITE, &[""], &core),
        rule(&["create"], &[""], &["serviceaccounts/token"]),
        rule(WRITE, &["", "events.k8s.io"], &["events"]),
        rule(WRITE, &["apps"], &[&["statefulsets", "statefulsets/scale"], &workloads[..]].concat()),
        rule(WRITE, &["autoscaling"], &["horizontalpodautoscalers"]),
        rule(WRITE, &["batch"], &["jobs", "cronjobs"]),
        rule(
            WRITE,
            &["extensions"],
            &[&["ingresses", "networkpolicies", "replicationcontrollers/scale"], &workloads[..]].concat(),
        ),
        rule(WRITE, &["policy"], &["poddisruptionbudgets"]),
        rule(WRITE, &["networking.k8s.io"], &["networkpolicies", "ingresses"]),
        rule(READ_WRITE, &["coordination.k8s.io"], &["leases"]),
        rule(WRITE, &["resource.k8s.io"], &["resourceclaims", "resourceclaimtemplates"]),
    ]
}

fn view_rules() -> Vec<Value> {
    let core = [
        "pods",
        "replicationcontrollers",
        "replicationcontrollers/scale",
        "serviceaccounts",
        "services",
        "services/status",
        "endpoints",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "configmaps",
    ];
    let states = [
        "limitranges",
        "resourcequotas",
        "bindings",
        "pods/status",
        "resourcequotas/status",
        "namespaces/status",
        "replicationcontrollers/status",
        "pods/log",
    ];
    let workloads = [
        "daemonsets",
        "daemonsets/status",
        "deployments",
        "deployments/status",
        "deployments/scale",
        "replicasets",
        "replicasets/status",
        "replicasets/scale",
    ];
    let sets = ["controllerrevisions", "statefulsets", "statefulsets/status", "statefulsets/scale"];
    let network = ["networkpolicies", "ingresses", "ingresses/status"];
    vec![
        rule(READ, &[""], &core),
        rule(READ, &[""], &states),
        rule(READ, &[""], &["namespaces"]),
        rule(READ, &["", "events.k8s.io"], &["events"]),
        rule(READ, &["discovery.k8s.io"], &["endpointslices"]),
        rule(READ, &["apps"], &[&sets[..], &workloads].concat()),
        rule(READ, &["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
        rule(READ, &["batch"], &["jobs", "cronjobs", "cronjobs/status", "jobs/status"]),
        rule(READ, &["extensions"], &[&["replicationcontrollers/scale"], &network[..], &workloads].concat()),
        rule(READ, &["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
        rule(READ, &["networking.k8s.io"], &network),
        rule(READ, &["resource.k8s.io"], &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]),
    ]
}

fn sorted(list: &[&str]) -> Vec<String> {
    let mut list: Vec<_> = list.iter().map(ToString::to_string).collect();
    list.sort();
    list
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({ "verbs": sorted(verbs), "apiGroups": sorted(groups), "resources": sorted(resources) })
}

fn addresses(verbs: &[&str], urls: &[&str]) -> Value {
    json!({ "verbs": sorted(verbs), "nonResourceURLs": sorted(urls) })
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": metadata(name), "rules": rules })
}

fn labelled(mut role: Value, part_of: &str) -> Value {
    role["metadata"]["labels"][format!("{AGGREGATE}{part_of}")] = "true".into();
    role
}

fn binding(name: &str, groups: &[&str]) -> Value {
    let subjects = groups.iter().map(|group| json!({ "apiGroup": RBAC, "kind": "Group", "name": group }));
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": metadata(name),
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
        "subjects": subjects.collect::<Value>(),
    })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    })
}
