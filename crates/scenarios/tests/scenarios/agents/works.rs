//! What an agent makes of works.

use drover_api::work::{AppliedManifestWork, ManifestWork};
use drover_runtime::clock::Clock;
use drover_testkit::{World, objects, wait};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PatchParams},
};
use serde_json::{Value, json};

use super::{CLUSTER, Pair, config_map, manifest_says, says};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        what_a_work_says_is_made_and_kept,
        what_a_work_loses_is_removed,
        what_a_work_loses_goes_in_its_turn,
        a_kind_that_is_gone_holds_up_nothing,
        a_work_goes_with_what_it_has_made,
        what_is_orphaned_stays,
        an_object_of_two_works_stays_until_both_are_gone,
        a_kind_and_its_objects_are_applied_together,
        one_manifest_that_is_refused_holds_up_no_other,
        values_are_reported_when_they_change,
        an_object_is_made_once_and_left_alone,
        fields_are_taken_from_others_only_by_force,
        an_account_gives_no_more_than_it_has,
        what_a_lost_work_has_left_is_removed_after_a_while,
        an_agent_at_rest_writes_nothing,
    }
}

fn maps(pair: &Pair) -> Api<ConfigMap> {
    Api::namespaced(pair.managed.client(), "default")
}

fn data(map: &ConfigMap, key: &str) -> Option<String> {
    map.data.as_ref()?.get(key).cloned()
}

async fn until_data(pair: &Pair, name: &str, key: &str, value: Option<&str>) {
    wait::until(&maps(pair), name, &format!("{key} is {value:?}"), |map| data(map, key).as_deref() == value).await;
}

async fn what_a_work_says_is_made_and_kept(world: World) {
    let pair = Pair::new(world).await;
    let work = pair.apply("w", json!([config_map("a", &json!({ "colour": "red", "size": "1" }))])).await;
    assert_eq!(work.finalizers(), ["cluster.open-cluster-management.io/manifest-work-cleanup"]);
    let status = work.status.as_ref().and_then(|status| status.resource_status.clone()).expect("manifests are told of");
    let meta = serde_json::to_value(&status.manifests[0].resource_meta).expect("JSON");
    let expected = json!({ "ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "name": "a", "namespace": "default" });
    assert_eq!(meta, expected);
    let owner = maps(&pair).get("a").await.expect("it is there").owner_references()[0].clone();
    assert_eq!((owner.kind.as_str(), owner.controller), ("AppliedManifestWork", None));

    // Drift is repaired, and what somebody adds stays.
    change(&maps(&pair), "a", json!({ "data": { "colour": "blue", "more": "mine" } })).await;
    until_data(&pair, "a", "colour", Some("red")).await;
    until_data(&pair, "a", "more", Some("mine")).await;
    maps(&pair).delete("a", &DeleteParams::default()).await.expect("it can be deleted");
    until_data(&pair, "a", "colour", Some("red")).await;

    // A change reaches it, and what the manifest does not say any more goes.
    let changed = json!({ "spec": { "workload": { "manifests": [config_map("a", &json!({ "colour": "green" }))] } } });
    change(&pair.works(), "w", changed).await;
    until_data(&pair, "a", "colour", Some("green")).await;
    until_data(&pair, "a", "size", None).await;
    pair.until_applied("w").await;
    pair.end().await;
}

async fn what_a_work_loses_is_removed(world: World) {
    let pair = Pair::new(world).await;
    pair.apply("w", json!([config_map("a", &json!({})), config_map("b", &json!({}))])).await;
    let changed = json!({ "spec": { "workload": { "manifests": [config_map("b", &json!({}))] } } });
    change(&pair.works(), "w", changed).await;
    wait::gone(&maps(&pair), "a").await;
    let work = pair.until_applied("w").await;
    assert_eq!(work.status.and_then(|status| status.resource_status).map(|status| status.manifests.len()), Some(1));
    let applied = Api::<AppliedManifestWork>::all(pair.managed.client());
    let list = applied.list(&ListParams::default()).await.expect("it can be listed").items;
    let names = |work: &AppliedManifestWork| {
        let resources = work.status.iter().flat_map(|status| &status.applied_resources);
        resources.map(|resource| resource.name.clone()).collect::<Vec<_>>()
    };
    wait::until(&applied, &list[0].name_any(), "it is not recorded any more", |work| names(work) == ["b"]).await;
    pair.end().await;
}

async fn what_a_work_loses_goes_in_its_turn(world: World) {
    let pair = Pair::new(world).await;
    let mut held = config_map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "made" } });
    pair.apply("w", json!([namespace, held, config_map("kept", &json!({}))])).await;
    let changed = json!({ "spec": { "workload": { "manifests": [config_map("kept", &json!({}))] } } });
    change(&pair.works(), "w", changed).await;
    wait::until(&maps(&pair), "held", "it is to go", |map| map.metadata.deletion_timestamp.is_some()).await;
    pair.until_applied("w").await;
    let namespaces = Api::<Namespace>::all(pair.managed.client());
    assert!(namespaces.get("made").await.expect("it is there").metadata.deletion_timestamp.is_none());
    change(&maps(&pair), "held", json!({ "metadata": { "finalizers": null } })).await;
    wait::gone(&namespaces, "made").await;
    pair.end().await;
}

async fn a_kind_that_is_gone_holds_up_nothing(world: World) {
    let pair = Pair::new(world).await;
    super::make(&pair.managed.client(), definition()).await;
    pair.apply("w", json!([widget(), config_map("other", &json!({}))])).await;
    let definitions = Api::<CustomResourceDefinition>::all(pair.managed.client());
    definitions.delete("widgets.agents.example", &DeleteParams::default()).await.expect("it can be deleted");
    wait::gone(&definitions, "widgets.agents.example").await;
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "w").await;
    wait::gone(&maps(&pair), "other").await;
    pair.end().await;
}

async fn a_work_goes_with_what_it_has_made(world: World) {
    let pair = Pair::new(world).await;
    let mut held = config_map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "made" } });
    pair.apply("w", json!([namespace, held, config_map("free", &json!({}))])).await;
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&maps(&pair), "free").await;
    pair.until_work("w", "it waits for what is held", |work| {
        work.status
            .iter()
            .flat_map(|status| &status.conditions)
            .any(|said| said.type_ == "Deleting" && said.reason == "WorkDeleting")
    })
    .await;
    // What was made first goes last: the namespace waits for what is in no namespace of its own too.
    let namespaces = Api::<Namespace>::all(pair.managed.client());
    assert!(namespaces.get("made").await.expect("it is there").metadata.deletion_timestamp.is_none());
    change(&maps(&pair), "held", json!({ "metadata": { "finalizers": null } })).await;
    wait::gone(&pair.works(), "w").await;
    wait::gone(&namespaces, "made").await;
    let applied = Api::<AppliedManifestWork>::all(pair.managed.client());
    assert_eq!(applied.list(&ListParams::default()).await.expect("it can be listed").items.len(), 0);
    pair.end().await;
}

async fn what_is_orphaned_stays(world: World) {
    let pair = Pair::new(world).await;
    let rules = json!([{ "group": "", "resource": "configmaps", "namespace": "default", "name": "kept" }]);
    let spec = json!({
        "workload": { "manifests": [config_map("kept", &json!({})), config_map("gone", &json!({}))] },
        "deleteOption": { "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": { "orphaningRules": rules } },
    });
    pair.make_work("w", spec).await;
    pair.until_applied("w").await;
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "w").await;
    wait::gone(&maps(&pair), "gone").await;
    assert!(maps(&pair).get("kept").await.expect("it stays").owner_references().is_empty());
    pair.end().await;
}

async fn an_object_of_two_works_stays_until_both_are_gone(world: World) {
    let pair = Pair::new(world).await;
    pair.apply("one", json!([config_map("shared", &json!({}))])).await;
    pair.apply("two", json!([config_map("shared", &json!({}))])).await;
    wait::until(&maps(&pair), "shared", "both own it", |map| map.owner_references().len() == 2).await;
    pair.works().delete("one", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "one").await;
    assert_eq!(maps(&pair).get("shared").await.expect("it stays").owner_references().len(), 1);
    pair.works().delete("two", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&maps(&pair), "shared").await;
    pair.end().await;
}

fn definition() -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "widgets.agents.example" },
        "spec": {
            "group": "agents.example", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

fn widget() -> Value {
    let metadata = json!({ "namespace": "default", "name": "w" });
    json!({ "apiVersion": "agents.example/v1", "kind": "Widget", "metadata": metadata, "spec": { "size": 1 } })
}

async fn a_kind_and_its_objects_are_applied_together(world: World) {
    let mut pair = Pair::without_agent(world).await;
    create(&pair.clusters(), objects::cluster(CLUSTER)).await;
    // Nobody tells when a server has taken up a definition: it says so a little before it serves the kind. So time has to pass.
    pair.start_with(pair.managed.client(), Clock::system());
    pair.apply("w", json!([widget(), definition()])).await;
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "w").await;

    // A kind that there is not is told, and applied when it is defined.
    pair.make_work("early", json!({ "workload": { "manifests": [widget()] } })).await;
    let work = pair.until_work("early", "it is told", |work| says(work, "Applied", "False")).await;
    let (_, reason, message) = manifest_says(&work, 0, "Applied").expect("it is told of");
    assert_eq!(reason, "AppliedManifestFailed");
    assert!(message.contains("the server doesn't have a resource type"), "{message}");
    super::make(&pair.managed.client(), definition()).await;
    pair.until_applied("early").await;
    pair.end().await;
}

async fn one_manifest_that_is_refused_holds_up_no_other(world: World) {
    let pair = Pair::new(world).await;
    let homeless =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "nowhere", "name": "a" } });
    let refused = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": "Wrong_Name" } });
    let manifests = json!([homeless, refused, config_map("fine", &json!({}))]);
    pair.make_work("w", json!({ "workload": { "manifests": manifests } })).await;
    let work = pair.until_work("w", "it is told", |work| says(work, "Applied", "False")).await;
    let told = |ordinal| manifest_says(&work, ordinal, "Applied").expect("it is told of");
    assert!(told(0).2.contains("namespaces \"nowhere\" not found"), "{}", told(0).2);
    assert!(told(1).2.contains("Wrong_Name"), "{}", told(1).2);
    assert_eq!(told(2).0, "True");
    maps(&pair).get("fine").await.expect("it is applied");
    pair.end().await;
}

async fn values_are_reported_when_they_change(world: World) {
    let pair = Pair::new(world).await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "default", "name": "d" },
        "spec": { "selector": { "matchLabels": { "app": "d" } }, "template": {
            "metadata": { "labels": { "app": "d" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } },
    });
    let is_ready = "object.status.?readyReplicas.orValue(0) == object.spec.replicas";
    let config = json!({
        "resourceIdentifier": { "group": "apps", "resource": "deployments", "namespace": "default", "name": "d" },
        "feedbackRules": [{ "type": "WellKnownStatus" }, { "type": "JSONPaths", "jsonPaths": [{ "name": "image", "path": ".spec.template.spec.containers[0].image" }] }],
        "conditionRules": [{ "type": "CEL", "condition": "Ready", "celExpressions": [is_ready] }],
    });
    pair.make_work("w", json!({ "workload": { "manifests": [deployment] }, "manifestConfigs": [config] })).await;
    pair.until_work("w", "it is not ready", |work| says(work, "Ready", "False")).await;
    let deployments = Api::<Deployment>::namespaced(pair.managed.client(), "default");
    let status = json!({ "status": { "replicas": 1, "readyReplicas": 1, "availableReplicas": 1 } });
    deployments
        .patch_status("d", &PatchParams::default(), &kube::api::Patch::Merge(status))
        .await
        .expect("it has a status");
    let work = pair.until_work("w", "it is ready", |work| says(work, "Ready", "True")).await;
    let values =
        work.status.and_then(|status| status.resource_status).map(|status| status.manifests[0].status_feedback.clone());
    let values = serde_json::to_value(values).expect("JSON");
    let value = |name: &str| {
        let values = values["values"].as_array().cloned().unwrap_or_default();
        values.into_iter().find(|value| value["name"] == name).map(|value| value["fieldValue"].clone())
    };
    assert_eq!(value("ReadyReplicas"), Some(json!({ "type": "Integer", "integer": 1 })));
    assert_eq!(value("image"), Some(json!({ "type": "String", "string": "i" })));
    pair.end().await;
}

fn configured(name: &str, data: &Value, strategy: &Value) -> Value {
    json!({
        "workload": { "manifests": [config_map(name, data)] },
        "manifestConfigs": [{
            "resourceIdentifier": { "group": "", "resource": "configmaps", "namespace": "default", "name": name },
            "updateStrategy": strategy,
        }],
    })
}

async fn an_object_is_made_once_and_left_alone(world: World) {
    let pair = Pair::new(world).await;
    pair.make_work("once", configured("once", &json!({ "a": "1" }), &json!({ "type": "CreateOnly" }))).await;
    pair.make_work("read", configured("read", &json!({ "a": "1" }), &json!({ "type": "ReadOnly" }))).await;
    pair.until_applied("once").await;
    change(&maps(&pair), "once", json!({ "data": { "a": "mine" } })).await;
    // Nothing is made for the other, and it is told that there is nothing.
    pair.until_work("read", "there is nothing", |work| says(work, "Available", "False")).await;
    super::make(&pair.managed.client(), config_map("read", &json!({ "a": "other" }))).await;
    pair.until_applied("read").await;
    until_data(&pair, "once", "a", Some("mine")).await;
    until_data(&pair, "read", "a", Some("other")).await;
    pair.works().delete("read", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "read").await;
    maps(&pair).get("read").await.expect("it was never the work's");
    pair.end().await;
}

async fn fields_are_taken_from_others_only_by_force(world: World) {
    let pair = Pair::new(world).await;
    let other = kube::api::Patch::Apply(config_map("shared", &json!({ "a": "theirs", "b": "theirs" })));
    maps(&pair).patch("shared", &PatchParams::apply("other"), &other).await.expect("it can be applied");
    let apply = |force: bool| json!({ "type": "ServerSideApply", "serverSideApply": { "force": force } });
    pair.make_work("w", configured("shared", &json!({ "a": "ours" }), &apply(false))).await;
    let work = pair.until_work("w", "there is a conflict", |work| says(work, "Applied", "False")).await;
    assert!(manifest_says(&work, 0, "Applied").is_some_and(|(_, _, message)| message.contains("conflict")));
    change(&pair.works(), "w", json!({ "spec": configured("shared", &json!({ "a": "ours" }), &apply(true)) })).await;
    pair.until_applied("w").await;
    until_data(&pair, "shared", "a", Some("ours")).await;
    until_data(&pair, "shared", "b", Some("theirs")).await;
    pair.end().await;
}

async fn an_account_gives_no_more_than_it_has(world: World) {
    let pair = Pair::new(world).await;
    let managed = pair.managed.client();
    let account = |name: &str| json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": "default", "name": name } });
    super::make(&managed, account("limited")).await;
    let verbs = ["get", "create", "update", "patch", "delete"];
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "namespace": "default", "name": "limited" },
        "rules": [
            { "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs },
            { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": verbs },
        ] });
    super::make(&managed, role).await;
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "namespace": "default", "name": "limited" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited" },
        "subjects": [{ "kind": "ServiceAccount", "namespace": "default", "name": "limited" }] });
    super::make(&managed, binding).await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "default", "name": "s" } });
    let more = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "namespace": "default", "name": "more" },
        "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }] });
    let executor = json!({ "subject": { "type": "ServiceAccount", "serviceAccount": { "namespace": "default", "name": "limited" } } });
    let spec =
        json!({ "workload": { "manifests": [config_map("allowed", &json!({})), secret, more] }, "executor": executor });
    pair.make_work("w", spec).await;
    let work = pair.until_work("w", "it is told", |work| says(work, "Applied", "False")).await;
    let told = |ordinal| manifest_says(&work, ordinal, "Applied").expect("it is told of");
    assert_eq!(told(0).0, "True");
    assert!(told(1).2.contains("system:serviceaccount:default:limited may not create it"), "{}", told(1).2);
    assert!(told(2).2.contains("can not give away rights"), "{}", told(2).2);
    let secrets = Api::<Secret>::namespaced(managed, "default");
    assert!(secrets.get_opt("s").await.expect("it can be looked for").is_none());
    pair.end().await;
}

async fn what_a_lost_work_has_left_is_removed_after_a_while(world: World) {
    let mut pair = Pair::new(world).await;
    pair.apply("w", json!([config_map("left", &json!({}))])).await;
    // As if the hub had been restored from a time before the work was made.
    pair.stop().await;
    change(&pair.works(), "w", json!({ "metadata": { "finalizers": null } })).await;
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "w").await;
    pair.start();
    let applied = Api::<AppliedManifestWork>::all(pair.managed.client());
    let name = applied.list(&ListParams::default()).await.expect("it can be listed").items[0].name_any();
    let is_stamped =
        |work: &AppliedManifestWork| work.status.as_ref().is_some_and(|status| status.eviction_start_time.is_some());
    wait::until(&applied, &name, "its work is missed", is_stamped).await;
    // The work comes back in time, and goes again.
    pair.apply("w", json!([config_map("left", &json!({}))])).await;
    wait::until(&applied, &name, "its work is back", |work| !is_stamped(work)).await;
    pair.stop().await;
    change(&pair.works(), "w", json!({ "metadata": { "finalizers": null } })).await;
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    pair.start();
    wait::until(&applied, &name, "its work is missed again", is_stamped).await;
    maps(&pair).get("left").await.expect("it stays for a while");
    pair.clock.advance(drover_agent::EVICTION_GRACE);
    wait::gone(&maps(&pair), "left").await;
    wait::gone(&applied, &name).await;
    pair.end().await;
}

async fn an_agent_at_rest_writes_nothing(world: World) {
    let mut pair = Pair::new(world).await;
    pair.apply("w", json!([config_map("a", &json!({ "a": "1" })), config_map("b", &json!({ "b": "1" }))])).await;
    let version = |work: &ManifestWork| work.resource_version();
    let before = pair.until_applied("w").await;
    let map = maps(&pair).get("a").await.expect("it is there").resource_version();
    pair.stop().await;
    pair.start();
    // Another work passes through everything that the first would have.
    pair.apply("later", json!([config_map("c", &json!({}))])).await;
    assert_eq!(version(&pair.until_applied("w").await), version(&before));
    assert_eq!(maps(&pair).get("a").await.expect("it is there").resource_version(), map);
    pair.end().await;
}
