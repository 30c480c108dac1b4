use serde_json::json;

use super::*;
use crate::work::fixtures::{owner, owner_reference, target};

fn step_for(target: &Target, strategy: &Strategy<'_>, fate: Fate, live: Option<&Value>, known: &Known) -> Step {
    Wanted { target, strategy, owner: &owner(), fate }.step(live, known).unwrap()
}

fn update(target: &Target, live: &Value, known: &Known) -> Step {
    step_for(target, &Strategy::Update, Fate::Removed, Some(live), known)
}

fn written() -> Known {
    Known::Written { settled: None }
}

fn deployment() -> Target {
    target(
        "deployments",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "shop", "uid": "mine", "labels": { "app": "web", "old-": "" } },
            "spec": { "paused": false, "template": { "spec": { "containers": [{ "name": "web", "image": "a" }] } } },
        }),
    )
}

/// The deployment as a server has it: with defaults, the replicas of an autoscaler, and what others have added.
fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7", "generation": 2,
            "labels": { "app": "web", "theirs": "x" }, "finalizers": ["f"], "ownerReferences": [owner_reference()],
            "managedFields": [{ "manager": "a" }],
        },
        "spec": { "paused": false, "replicas": 5, "template": { "spec": {
            "restartPolicy": "Always", "containers": [{ "name": "web", "image": "a", "tty": false }],
        }}},
        "status": { "replicas": 5 },
    })
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    *object.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
}

/// The live object as it is sent: a server keeps who manages what.
fn sent(mut live: Value) -> Value {
    live["metadata"].as_object_mut().unwrap().remove("managedFields");
    live
}

#[test]
fn what_is_missing_is_created_with_its_owner() {
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "shop", "labels": { "app": "web" }, "ownerReferences": [owner_reference()] },
        "spec": { "paused": false, "template": { "spec": { "containers": [{ "name": "web", "image": "a" }] } } },
    });
    for strategy in [Strategy::Update, Strategy::CreateOnly] {
        for known in [Known::New, written()] {
            let step = step_for(&deployment(), &strategy, Fate::Removed, None, &known);
            assert_eq!(step, Step::Create(expected.clone()));
        }
    }
    let Step::Create(orphan) = step_for(&deployment(), &Strategy::Update, Fate::Orphaned, None, &Known::New) else {
        panic!("it is created");
    };
    assert_eq!(orphan["metadata"].get("ownerReferences"), None);
}

#[test]
fn a_new_manifest_replaces_the_content_and_keeps_what_others_say_of_the_object() {
    let mut had = live();
    had["metadata"]["labels"]["old"] = json!("gone soon");
    let mut expected = sent(live());
    set(&mut expected, "/spec", deployment().manifest.object["spec"].clone());
    // The manifest leaves it open, so an autoscaler may have chosen it.
    expected["spec"]["replicas"] = json!(5);
    assert_eq!(update(&deployment(), &had, &Known::New), Step::Replace(expected));
}

#[test]
fn a_new_manifest_that_changes_nothing_is_not_sent() {
    let mut had = live();
    set(&mut had, "/spec", deployment().manifest.object["spec"].clone());
    assert_eq!(update(&deployment(), &had, &Known::New), Step::Nothing);
}

#[test]
fn what_was_written_is_only_repaired_where_the_manifest_says_something() {
    assert_eq!(update(&deployment(), &live(), &written()), Step::Nothing);
    let mut had = live();
    set(&mut had, "/spec/template/spec/containers/0/image", json!("b"));
    assert_eq!(update(&deployment(), &had, &written()), Step::Replace(sent(live())));
}

#[test]
fn labels_and_owners_are_repaired_too() {
    let mut had = live();
    set(&mut had, "/metadata/labels", json!({ "theirs": "x", "old": "y" }));
    set(&mut had, "/metadata/ownerReferences", json!([{ "uid": "other" }]));
    let mut expected = sent(live());
    set(&mut expected, "/metadata/ownerReferences", json!([{ "uid": "other" }, owner_reference()]));
    assert_eq!(update(&deployment(), &had, &written()), Step::Replace(expected));
}

#[test]
fn what_is_to_be_orphaned_loses_its_owner() {
    let step = step_for(&deployment(), &Strategy::Update, Fate::Orphaned, Some(&live()), &written());
    let Step::Replace(replaced) = step else { panic!("it is replaced") };
    assert_eq!(replaced["metadata"].get("ownerReferences"), None);
    let step = step_for(&deployment(), &Strategy::CreateOnly, Fate::Orphaned, Some(&live()), &written());
    assert!(matches!(step, Step::Owners(patch) if patch["metadata"]["ownerReferences"] == json!([])));
}

#[test]
fn what_a_webhook_has_made_of_it_is_left_alone() {
    let mut had = live();
    set(&mut had, "/spec/template/spec/containers/0/image", json!("mirror/a"));
    let settled = Known::Written { settled: Some(digest(&had)) };
    assert_eq!(update(&deployment(), &had, &settled), Step::Nothing);
    let mut changed = had.clone();
    set(&mut changed, "/status/replicas", json!(1));
    set(&mut changed, "/metadata/resourceVersion", json!("8"));
    assert_eq!(update(&deployment(), &changed, &settled), Step::Nothing, "metadata and status do not count");
    set(&mut changed, "/spec/paused", json!(true));
    assert!(matches!(update(&deployment(), &changed, &settled), Step::Replace(_)));
    set(&mut had, "/metadata/labels", json!({}));
    let Step::Replace(replaced) = update(&deployment(), &had, &settled) else { panic!("the label is repaired") };
    assert_eq!(replaced["spec"], had["spec"]);
}

#[test]
fn create_only_changes_nothing_but_owners() {
    let mut had = live();
    set(&mut had, "/spec/paused", json!(true));
    let step = |live: &Value| step_for(&deployment(), &Strategy::CreateOnly, Fate::Removed, Some(live), &Known::New);
    assert_eq!(step(&had), Step::Nothing);
    set(&mut had, "/metadata/ownerReferences", json!([]));
    let patch = json!({ "metadata": { "uid": "1", "resourceVersion": "7", "ownerReferences": [owner_reference()] } });
    assert_eq!(step(&had), Step::Owners(patch));
}

#[test]
fn read_only_changes_nothing_ever() {
    for live in [None, Some(&live())] {
        assert_eq!(step_for(&deployment(), &Strategy::ReadOnly, Fate::Removed, live, &Known::New), Step::Nothing);
    }
}

/// What a manifest replaces the content of an object with, if with anything.
fn content_for(resource: &str, manifest: &Value, had: &Value) -> Option<Value> {
    let identity = json!({ "apiVersion": manifest["apiVersion"], "kind": manifest["kind"] });
    let with = |object: &Value, metadata: Value| {
        let mut whole = object.as_object().unwrap().clone();
        whole.extend(identity.as_object().unwrap().clone());
        whole.insert("metadata".to_owned(), metadata);
        Value::Object(whole)
    };
    let target = target(resource, &with(manifest, json!({ "name": "a", "namespace": "b" })));
    let live = with(had, json!({ "name": "a", "namespace": "b", "ownerReferences": [owner_reference()] }));
    match update(&target, &live, &Known::New) {
        Step::Replace(object) => Some(Value::Object(content_of(fields(&object)))),
        _ => None,
    }
}

#[test]
fn a_service_keeps_its_addresses_and_ports() {
    let manifest = json!({ "apiVersion": "v1", "kind": "Service", "spec": {
        "type": "NodePort", "selector": { "a": "c" }, "ports": [{ "port": 80 }, { "port": 81, "nodePort": 30081 }],
    }});
    let given = json!({ "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack" });
    let mut had = json!({ "spec": { "type": "NodePort", "selector": { "a": "b" }, "sessionAffinity": "None", "ports": [
        { "port": 80, "protocol": "UDP", "nodePort": 30000 },
        { "port": 80, "protocol": "TCP", "nodePort": 30001 }, { "port": 81, "protocol": "TCP", "nodePort": 30002 },
    ]}});
    had["spec"].as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    let mut expected = manifest["spec"].clone();
    expected.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    expected["ports"][0]["nodePort"] = json!(30001);
    assert_eq!(content_for("services", &manifest, &had), Some(json!({ "spec": expected })));

    let external =
        json!({ "apiVersion": "v1", "kind": "Service", "spec": { "type": "ExternalName", "externalName": "x" } });
    assert_eq!(content_for("services", &external, &had), Some(json!({ "spec": external["spec"] })));
}

#[test]
fn a_job_keeps_what_it_finds_its_pods_by() {
    let manifest = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "template": { "spec": { "a": 1 } } } });
    let labels = json!({ "controller-uid": "1", "job-name": "a", "batch.kubernetes.io/job-name": "a" });
    let had = json!({ "spec": {
        "selector": { "matchLabels": { "controller-uid": "1" } },
        "template": { "metadata": { "labels": labels }, "spec": { "a": 1 } },
    }});
    assert_eq!(content_for("jobs", &manifest, &had), None, "nothing differs");
}

#[test]
fn other_kinds_keep_what_was_filled_in_too() {
    for (resource, api_version, kind, manifest, had) in [
        (
            "persistentvolumeclaims",
            "v1",
            "PersistentVolumeClaim",
            json!({ "spec": { "a": 1 } }),
            json!({ "spec": { "a": 1, "volumeName": "v", "storageClassName": "fast" } }),
        ),
        (
            "persistentvolumes",
            "v1",
            "PersistentVolume",
            json!({ "spec": { "a": 1 } }),
            json!({ "spec": { "a": 1, "claimRef": { "name": "c" } } }),
        ),
        ("namespaces", "v1", "Namespace", json!({}), json!({ "spec": { "finalizers": ["kubernetes"] } })),
        (
            "serviceaccounts",
            "v1",
            "ServiceAccount",
            json!({ "secrets": [{ "name": "a" }] }),
            json!({ "secrets": [{ "name": "token" }, { "name": "a" }], "imagePullSecrets": [{ "name": "pull" }] }),
        ),
        (
            "clusterroles",
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            json!({ "aggregationRule": { "a": 1 }, "rules": [] }),
            json!({ "aggregationRule": { "a": 1 }, "rules": [{ "verbs": ["get"] }] }),
        ),
        (
            "validatingwebhookconfigurations",
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            json!({ "webhooks": [{ "name": "w", "clientConfig": { "url": "u", "caBundle": "" } }] }),
            json!({ "webhooks": [{ "name": "w", "clientConfig": { "url": "u", "caBundle": "Y2E=" } }] }),
        ),
        (
            "apiservices",
            "apiregistration.k8s.io/v1",
            "APIService",
            json!({ "spec": { "a": 1 } }),
            json!({ "spec": { "a": 1, "caBundle": "Y2E=" } }),
        ),
        (
            "customresourcedefinitions",
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "url": "u" } } } } }),
            json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "url": "u", "caBundle": "Y2E=" } } } } }),
        ),
    ] {
        let mut manifest = manifest;
        manifest["apiVersion"] = json!(api_version);
        manifest["kind"] = json!(kind);
        assert_eq!(content_for(resource, &manifest, &had), None, "{kind}");
    }
}

#[test]
fn a_pod_stays_as_it_was_created_but_for_its_images() {
    let manifest = json!({ "apiVersion": "v1", "kind": "Pod", "spec": {
        "containers": [{ "name": "web", "image": "b", "tty": true }], "nodeName": "other",
    }});
    let had = json!({ "spec": { "nodeName": "node", "containers": [{ "name": "web", "image": "a", "volumeMounts": [1] }, { "name": "side" }] } });
    let mut expected = had.clone();
    set(&mut expected, "/spec/containers/0/image", json!("b"));
    assert_eq!(content_for("pods", &manifest, &had), Some(expected.clone()));
    assert_eq!(content_for("pods", &manifest, &expected), None);
}

#[test]
fn the_texts_of_a_secret_count_as_its_data() {
    let secret = target(
        "secrets",
        &json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "namespace": "b" },
            "stringData": { "password": "x" }, "data": { "user": "eQ==" },
        }),
    );
    let data = json!({ "password": "eA==", "user": "eQ==" });
    let Step::Create(created) = step_for(&secret, &Strategy::Update, Fate::Removed, None, &Known::New) else {
        panic!("it is created");
    };
    assert_eq!((created.get("stringData"), &created["data"]), (None, &data));
    let mut had = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": { "name": "a", "namespace": "b", "ownerReferences": [owner_reference()] },
    });
    assert_eq!(update(&secret, &had, &written()), Step::Nothing);
    had["data"]["password"] = json!("eg==");
    assert!(matches!(update(&secret, &had, &written()), Step::Replace(object) if object["data"] == data));
}
