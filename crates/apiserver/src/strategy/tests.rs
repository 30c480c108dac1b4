use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::*;
use crate::{
    kind::{Scope, Subresources},
    schema::Schema,
};

fn kind(group: &str, plural: &str, name: &str, status: bool) -> Kind {
    let version = Version {
        name: "v1".to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::new(Schema::default()),
        openapi: Arc::new(Value::Null),
        columns: Vec::new(),
        subresources: Subresources { status, ..Subresources::default() },
        selectable_fields: Vec::new(),
    };
    let is_cluster = plural.starts_with("cluster") || matches!(plural, "namespaces" | "certificatesigningrequests");
    Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: name.to_lowercase(),
        kind: name.to_owned(),
        list_kind: format!("{name}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: if is_cluster { Scope::Cluster } else { Scope::Namespaced },
        versions: vec![version],
        origin: if group == "example.com" { Origin::Custom } else { Origin::BuiltIn },
    }
}

fn object(kind: &Kind, rest: Value) -> Value {
    let mut object = rest;
    object["apiVersion"] = json!(kind.api_version("v1"));
    object["kind"] = json!(kind.kind);
    object["metadata"]["name"] = json!("a");
    object["metadata"]["uid"] = json!("u");
    object["metadata"]["resourceVersion"] = json!("1");
    if kind.scope == Scope::Namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

fn created(kind: &Kind, rest: Value) -> Value {
    let mut object = object(kind, rest);
    prepare_create(kind, &mut object, &User::default());
    object
}

fn updated(kind: &Kind, part: Part, new: &Value, old: &Value) -> Value {
    let mut new = new.clone();
    prepare_update(kind, part, &mut new, old, "now");
    new
}

fn problems(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for error in validate(kind, Part::Whole, new, old) {
        let text = error.to_string();
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told
}

fn deployments() -> Kind {
    kind("apps", "deployments", "Deployment", true)
}

fn deployment() -> Value {
    json!({ "spec": {
        "selector": { "matchLabels": { "app": "a" } },
        "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [
            { "name": "c", "image": "nginx", "ports": [{ "containerPort": 80 }], "livenessProbe": { "httpGet": { "port": 80 } } },
        ], "volumes": [{ "name": "v", "secret": { "secretName": "s" } }, { "name": "e" }], "serviceAccountName": "robot" } },
    }, "status": { "replicas": 7 } })
}

#[test]
fn deployments_say_all_that_the_server_fills_in() {
    let object = created(&deployments(), deployment());
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(object["status"], json!({}));
    let expected = json!({
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" } },
        "selector": { "matchLabels": { "app": "a" } },
        "template": { "metadata": { "labels": { "app": "a" } }, "spec": {
            "containers": [{
                "name": "c", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
                "ports": [{ "containerPort": 80, "protocol": "TCP" }],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "livenessProbe": {
                    "httpGet": { "port": 80, "path": "/", "scheme": "HTTP" },
                    "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
                },
            }],
            "volumes": [{ "name": "v", "secret": { "secretName": "s", "defaultMode": 420 } }, { "name": "e", "emptyDir": {} }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30,
            "serviceAccountName": "robot", "serviceAccount": "robot",
        }},
    });
    assert_eq!(object["spec"], expected);
    assert_eq!(problems(&deployments(), &object, None), Vec::<String>::new());
}

#[test]
fn images_whose_tag_stays_are_pulled_once() {
    let policy = |image: &str| {
        let mut rest = deployment();
        rest["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        created(&deployments(), rest)["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"].clone()
    };
    assert_eq!(policy("host:5000/nginx:1.2"), "IfNotPresent");
    assert_eq!(policy("host:5000/nginx"), "Always");
    assert_eq!(policy("nginx:latest"), "Always");
    assert_eq!(policy("nginx@sha256:abc"), "IfNotPresent");
}

#[test]
fn deployments_select_their_own_pods() {
    let mut rest = deployment();
    rest["spec"]["template"]["metadata"]["labels"] = json!({ "app": "b" });
    let expected =
        "spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not match template `labels`";
    assert_eq!(problems(&deployments(), &created(&deployments(), rest), None), [expected]);
    let mut rest = deployment();
    rest["spec"]["selector"] = Value::Null;
    let told = problems(&deployments(), &created(&deployments(), rest), None);
    let unselected =
        "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`";
    assert_eq!(told, ["spec.selector: Required value", unselected]);
}

#[test]
fn what_a_deployment_selects_stays() {
    let old = created(&deployments(), deployment());
    let mut new = old.clone();
    new["spec"]["selector"]["matchLabels"] = json!({ "app": "b" });
    new["spec"]["template"]["metadata"]["labels"] = json!({ "app": "b" });
    let expected = "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable";
    assert_eq!(problems(&deployments(), &new, Some(&old)), [expected]);
}

#[test]
fn pods_are_checked_in_their_templates() {
    let mut rest = deployment();
    rest["spec"]["template"]["spec"] = json!({
        "containers": [
            { "name": "a", "volumeMounts": [{ "name": "missing", "mountPath": "/x" }] },
            { "name": "a", "image": "x", "ports": [{ "containerPort": 0 }] },
        ],
        "volumes": [{ "name": "v" }, { "name": "v" }],
        "restartPolicy": "Never",
    });
    let path = "spec.template.spec";
    let expected = [
        format!("{path}.volumes[1].name: Duplicate value: \"v\""),
        format!("{path}.containers[0].image: Required value"),
        format!("{path}.containers[0].volumeMounts[0].name: Not found: \"missing\""),
        format!("{path}.containers[1].ports[0].containerPort: Required value"),
        format!("{path}.containers[1].name: Duplicate value: \"a\""),
        format!("{path}.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""),
    ];
    assert_eq!(problems(&deployments(), &created(&deployments(), rest), None), expected);
    let told = problems(&deployments(), &created(&deployments(), json!({ "spec": {} })), None);
    let unselected = "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`";
    let expected = ["spec.selector: Required value", unselected, "spec.template.spec.containers: Required value"];
    assert_eq!(told, expected);
}

#[test]
fn what_is_wanted_is_counted_and_what_is_said_is_not() {
    let kind = deployments();
    let old = created(&kind, deployment());
    let mut new = old.clone();
    new["status"] = json!({ "replicas": 3 });
    new["metadata"]["labels"] = json!({ "a": "b" });
    let same = updated(&kind, Part::Whole, &new, &old);
    assert_eq!((same["metadata"]["generation"].as_i64(), &same["status"]), (Some(1), &json!({})));
    new["metadata"]["annotations"] = json!({ "a": "b" });
    assert_eq!(updated(&kind, Part::Whole, &new, &old)["metadata"]["generation"], 2);
    new["spec"]["replicas"] = json!(5);
    let reported = updated(&kind, Part::Status, &new, &old);
    assert_eq!(reported["status"], json!({ "replicas": 3 }));
    assert_eq!((&reported["spec"], reported["metadata"]["generation"].as_i64()), (&old["spec"], Some(1)));
    assert_eq!(reported["metadata"].get("labels"), None);
}

#[test]
fn custom_objects_keep_status_and_the_rest_apart() {
    let kind = kind("example.com", "foos", "Foo", true);
    let old = created(&kind, json!({ "spec": { "a": 1 }, "status": { "b": 1 } }));
    assert_eq!((old.get("status"), old["metadata"]["generation"].as_i64()), (None, Some(1)));
    let mut new = old.clone();
    new["spec"]["a"] = json!(2);
    new["status"] = json!({ "b": 2 });
    new["metadata"]["labels"] = json!({ "x": "y" });
    let whole = updated(&kind, Part::Whole, &new, &old);
    assert_eq!((whole.get("status"), whole["metadata"]["generation"].as_i64()), (None, Some(2)));
    let status = updated(&kind, Part::Status, &new, &old);
    let mut expected = old.clone();
    expected["status"] = json!({ "b": 2 });
    assert_eq!(status, expected);
}

#[test]
fn custom_objects_without_a_status_of_its_own_are_counted_as_a_whole() {
    let kind = kind("example.com", "foos", "Foo", false);
    let old = created(&kind, json!({ "status": { "b": 1 } }));
    let mut new = old.clone();
    new["status"]["b"] = json!(2);
    assert_eq!(updated(&kind, Part::Whole, &new, &old)["metadata"]["generation"], 2);
}

#[test]
fn custom_objects_are_of_their_kind() {
    let kind = kind("example.com", "foos", "Foo", false);
    let mut object = object(&kind, json!({}));
    object["kind"] = json!("Bar");
    assert_eq!(problems(&kind, &object, None), ["kind: Invalid value: \"Bar\": must be Foo"]);
}

#[test]
fn secrets_keep_texts_as_data() {
    let kind = kind("", "secrets", "Secret", false);
    let secret = created(&kind, json!({ "data": { "a": "YQ==" }, "stringData": { "b": "b" } }));
    assert_eq!(secret["data"], json!({ "a": "YQ==", "b": "Yg==" }));
    assert_eq!((secret.get("stringData"), secret["type"].as_str()), (None, Some("Opaque")));
    let mut new = secret.clone();
    new["type"] = json!("kubernetes.io/tls");
    let told = problems(&kind, &new, Some(&secret));
    let expected = [
        "type: Invalid value: \"kubernetes.io/tls\": field is immutable",
        "data[tls.crt]: Required value",
        "data[tls.key]: Required value",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_is_sealed_stays() {
    let kind = kind("", "configmaps", "ConfigMap", false);
    let old = created(&kind, json!({ "immutable": true, "data": { "a": "b" } }));
    let new = created(&kind, json!({ "data": { "a": "c", "b c": "d" } }));
    let expected = [
        "immutable: Forbidden: field is immutable when `immutable` is set",
        "data: Forbidden: field is immutable when `immutable` is set",
        "data[b c]: Invalid value: \"b c\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
         'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ];
    assert_eq!(problems(&kind, &new, Some(&old)), expected);
}

#[test]
fn namespaces_are_active_and_go_when_they_are_empty() {
    let kind = kind("", "namespaces", "Namespace", true);
    let namespace = created(&kind, json!({}));
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["status"], json!({ "phase": "Active" }));
    assert_eq!(namespace["metadata"]["labels"], json!({ "kubernetes.io/metadata.name": "a" }));
    let mut new = namespace.clone();
    new["spec"] = json!({});
    assert_eq!(updated(&kind, Part::Whole, &new, &namespace)["spec"], namespace["spec"]);
    assert_eq!(updated(&kind, Part::Finalize, &new, &namespace)["spec"], json!({}));
    new["status"]["phase"] = json!("Terminating");
    let errors = validate(&kind, Part::Status, &new, Some(&namespace));
    let expected = "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty";
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn bindings_bind_to_one_role() {
    let kind = kind("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", false);
    let rest = json!({ "roleRef": { "kind": "Role", "name": "r" }, "subjects": [{ "kind": "User", "name": "u" }] });
    let old = created(&kind, rest);
    assert_eq!(old["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(old["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io");
    let mut new = old.clone();
    new["roleRef"]["name"] = json!("other");
    let expected = "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"other\"}: cannot change roleRef";
    assert_eq!(problems(&kind, &new, Some(&old)), [expected]);
    new = old.clone();
    new["subjects"][0]["kind"] = json!("Robot");
    let expected =
        "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"";
    assert_eq!(problems(&kind, &new, Some(&old)), [expected]);
}

#[test]
fn roles_say_what_on_what() {
    let kind = kind("rbac.authorization.k8s.io", "roles", "Role", false);
    let role = created(&kind, json!({ "rules": [{}, { "verbs": ["get"], "nonResourceURLs": ["/x"] }] }));
    let expected = [
        "rules[0].verbs: Required value: verbs must contain at least one value",
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
    ];
    assert_eq!(problems(&kind, &role, None), expected);
}

#[test]
fn leases_last() {
    let kind = kind("coordination.k8s.io", "leases", "Lease", false);
    let lease = created(&kind, json!({ "spec": { "leaseDurationSeconds": 0, "leaseTransitions": -1 } }));
    let expected = [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ];
    assert_eq!(problems(&kind, &lease, None), expected);
    let lease = created(&kind, json!({ "spec": { "strategy": "x", "preferredHolder": "y" } }));
    assert_eq!(lease["spec"], json!({}));
    assert!(kind.allows_create_on_update() && !kind.allows_unconditional_update());
}

fn requests() -> Kind {
    kind("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", true)
}

#[test]
fn requests_say_who_made_them() {
    let extra = BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]);
    let user = User { name: "me".to_owned(), uid: String::new(), groups: vec!["g".to_owned()], extra };
    let mut request =
        object(&requests(), json!({ "spec": { "username": "other", "uid": "x", "signerName": "a.b/c" } }));
    prepare_create(&requests(), &mut request, &user);
    let expected = json!({ "username": "me", "groups": ["g"], "extra": { "k": ["v"] }, "signerName": "a.b/c" });
    assert_eq!((&request["spec"], &request["status"]), (&expected, &json!({})));
}

#[test]
fn requests_hold_something_to_sign() {
    let spec = json!({ "request": "bm9wZQ==", "usages": ["client auth", "fly", "client auth"], "signerName": "nope" });
    let told = problems(&requests(), &created(&requests(), json!({ "spec": spec })), None);
    assert_eq!(told[0], "spec.request: Invalid value: \"bm9wZQ==\": PEM block type must be CERTIFICATE REQUEST");
    assert!(
        told[1].starts_with("spec.usages[1]: Unsupported value: \"fly\": supported values: \"any\", \"cert sign\"")
    );
    assert_eq!(told[2], "spec.usages[2]: Duplicate value: \"client auth\"");
    let expected = "spec.signerName: Invalid value: \"nope\": must be a fully qualified domain and path of the form 'example.com/signer-name'";
    assert_eq!(told[3], expected);
}

#[test]
fn approvals_change_conditions_and_nothing_else() {
    let kind = requests();
    let old = created(&kind, json!({ "spec": { "signerName": "a.b/c" } }));
    let mut new = old.clone();
    new["spec"]["signerName"] = json!("x.y/z");
    new["status"] = json!({ "certificate": "YQ==", "conditions": [{ "type": "Approved", "status": "True" }] });
    let approved = updated(&kind, Part::Approval, &new, &old);
    assert_eq!(approved["spec"], old["spec"]);
    let condition =
        json!({ "type": "Approved", "status": "True", "lastUpdateTime": "now", "lastTransitionTime": "now" });
    assert_eq!(approved["status"], json!({ "conditions": [condition] }));
    assert_eq!(updated(&kind, Part::Whole, &new, &old)["status"], old["status"]);
    let errors = validate(&kind, Part::Status, &updated(&kind, Part::Status, &new, &old), Some(&old));
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let expected = "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"";
    assert!(told.contains(&expected.to_owned()), "{told:?}");
}

#[test]
fn jobs_select_their_own_pods() {
    let kind = kind("batch", "jobs", "Job", true);
    let container = json!({ "name": "c", "image": "i" });
    let template = json!({ "spec": { "restartPolicy": "Never", "containers": [container] } });
    let job = created(&kind, json!({ "spec": { "template": template } }));
    assert_eq!(job["spec"]["selector"], json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": "u" } }));
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "a");
    assert_eq!((&job["spec"]["completions"], &job["spec"]["backoffLimit"]), (&json!(1), &json!(6)));
    assert_eq!(problems(&kind, &job, None), Vec::<String>::new());
    let template = json!({ "spec": { "containers": [container] } });
    let told = problems(&kind, &created(&kind, json!({ "spec": { "template": template } })), None);
    assert_eq!(told, ["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""]);
}

#[test]
fn events_are_where_their_objects_are() {
    let kind = kind("", "events", "Event", false);
    let event = created(&kind, json!({ "involvedObject": { "namespace": "other" } }));
    let expected = "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace";
    assert_eq!(problems(&kind, &event, None), [expected]);
    let event = created(
        &kind,
        json!({ "involvedObject": { "namespace": "default" }, "eventTime": "2024-01-02T03:04:05.000000Z" }),
    );
    assert_eq!(about(&kind).to_string(), "Event");
    let told = problems(&kind, &event, None);
    assert_eq!(told[0], "reportingComponent: Required value");
    assert_eq!(told.last().unwrap(), "reason: Required value");
}

#[test]
fn policies_say_what_they_are_about() {
    let mut kind =
        kind("admissionregistration.k8s.io", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", true);
    kind.scope = Scope::Cluster;
    let policy =
        created(&kind, json!({ "spec": { "matchConstraints": { "resourceRules": [{ "operations": ["FLY"] }] } } }));
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
    assert_eq!(policy["spec"]["matchConstraints"]["namespaceSelector"], json!({}));
    let told = problems(&kind, &policy, None);
    let path = "spec.matchConstraints.resourceRules[0]";
    let supported = "supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"";
    let expected = [
        format!("{path}.operations[0]: Unsupported value: \"FLY\": {supported}"),
        format!("{path}.apiGroups: Required value"),
        format!("{path}.apiVersions: Required value"),
        format!("{path}.resources: Required value"),
        "spec.validations: Required value: validations or auditAnnotations must contain at least one item".to_owned(),
        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"
            .to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn errors_of_a_changed_object_are_found_as_often_as_they_are_looked_for() {
    let kind = kind("", "configmaps", "ConfigMap", false);
    let old = created(&kind, json!({}));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "a b": "c" });
    let errors = validate(&kind, Part::Whole, &new, Some(&old));
    assert_eq!(errors.len(), 4);
    let failure = crate::failure::Failure::invalid(kind.about(), "a", &errors);
    assert_eq!(failure.message.matches("metadata.labels").count(), 1);
    assert_eq!(failure.details.unwrap().causes.len(), 4);
}

#[test]
fn finalizers_of_the_first_kinds_have_a_domain() {
    let kind = kind("", "configmaps", "ConfigMap", false);
    let mut object = object(&kind, json!({ "metadata": { "finalizers": ["mine", "kubernetes", "a.b/c"] } }));
    prepare_create(&kind, &mut object, &User::default());
    let expected = "metadata.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified";
    assert_eq!(problems(&kind, &object, None), [expected]);
}

#[test]
fn a_proper_request_is_fine() {
    let pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIRk1HNENBUUF3RERFS01BZ0dBMVVFQXd3QmVEQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCRFJFTDQyeU5ISFZjRm01NzhjcFJtN1ZJU3J1RTR5WEFSUzFQMEVYZVBtS0thZHBZTTNPOEdrNEF2YzFKWjJVCjBVengxTmFCL2RkZjFBRFRpQmVFdEorZ0FEQUtCZ2dxaGtqT1BRUURBZ05IQURCRUFpQkhiVVRQSE45VzdrajgKNGR6U1F1Y0xjdFZnT2RDVkI5VndnNStSbVlVN0hnSWdJYkpnMGUzMHZ4eloxeVhheUxVSjJVbHp5SzZEKzlJTQpxcmVFeVozcUFDND0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
    let spec = json!({ "request": pem, "usages": ["client auth"], "signerName": "a.b/c" });
    let request = created(&requests(), json!({ "spec": spec }));
    assert_eq!(problems(&requests(), &request, None), Vec::<String>::new());
    let mut new = request.clone();
    new["status"] =
        json!({ "conditions": [{ "type": "Approved", "status": "True" }, { "type": "Denied", "status": "False" }] });
    let new = updated(&requests(), Part::Approval, &new, &request);
    let told: Vec<String> =
        validate(&requests(), Part::Approval, &new, Some(&request)).iter().map(ToString::to_string).collect();
    let expected = [
        "status.conditions[1].status: Unsupported value: \"False\": supported values: \"True\"",
        "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive",
    ];
    assert_eq!(told, expected);
}

#[test]
fn pods_request_what_they_are_limited_to() {
    let kind = kind("", "pods", "Pod", true);
    let container = json!({ "name": "c", "image": "nginx:1", "resources": { "limits": { "cpu": "1" } } });
    let pod = created(&kind, json!({ "spec": { "containers": [container] } }));
    assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], json!({ "cpu": "1" }));
    assert_eq!(pod["status"], json!({ "phase": "Pending", "qosClass": "Burstable" }));
    assert_eq!(pod["spec"]["enableServiceLinks"], true);
}
