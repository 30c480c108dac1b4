//! Works that can not be applied as they are: what is wrong is told of the manifest that it is wrong with, and the others proceed.

use drover_api::work::{AppliedManifestWork, AppliedManifestWorkSpec, ManifestWork};
use drover_testkit::{World, wait};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, PatchParams},
};
use serde_json::{Value, json};

use super::{Pair, config_map, make, manifest_says, says};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        a_manifest_that_is_too_large_is_told,
        a_namespace_that_is_going_is_told,
        what_another_agent_owns_stays_its_own,
        a_path_that_leads_nowhere_is_told,
        a_rule_that_is_none_is_told,
    }
}

fn maps(pair: &Pair) -> Api<ConfigMap> {
    Api::namespaced(pair.managed.client(), "default")
}

/// What is told of a manifest's application, by which object it is about.
fn told(work: &ManifestWork, ordinal: usize, name: &str) -> (String, String, String) {
    named(work, ordinal, name);
    manifest_says(work, ordinal, "Applied").expect("it is told of")
}

/// Asserts that what is said of a manifest names its object.
fn named(work: &ManifestWork, ordinal: usize, name: &str) {
    let status =
        work.status.as_ref().and_then(|status| status.resource_status.as_ref()).expect("manifests are told of");
    let meta = &status.manifests[ordinal].resource_meta;
    assert_eq!((meta.ordinal, meta.name.as_deref()), (i32::try_from(ordinal).ok().unwrap_or_default(), Some(name)));
}

async fn a_manifest_that_is_too_large_is_told(world: World) {
    let pair = Pair::new(world).await;
    // The hub takes it, and the cluster does not: the data of a ConfigMap is limited to 1 MiB.
    let large = config_map("large", &json!({ "large": "x".repeat(1100 * 1024) }));
    let manifests = json!([large, config_map("fine", &json!({}))]);
    pair.make_work("w", json!({ "workload": { "manifests": manifests } })).await;
    let work = pair.until_work("w", "it is told", |work| says(work, "Applied", "False")).await;
    let (status, reason, message) = told(&work, 0, "large");
    assert_eq!((&*status, &*reason), ("False", "AppliedManifestFailed"));
    assert!(message.contains("Too long: may not be more than 1048576 bytes"), "{message}");
    assert!(message.len() < 3000, "what the server says can be as long as the manifest");
    assert_eq!(told(&work, 1, "fine").0, "True");
    maps(&pair).get("fine").await.expect("it is applied");

    // It is applied as soon as it can be.
    let manifests = json!([config_map("large", &json!({})), config_map("fine", &json!({}))]);
    change(&pair.works(), "w", json!({ "spec": { "workload": { "manifests": manifests } } })).await;
    pair.until_applied("w").await;
    pair.end().await;
}

async fn a_namespace_that_is_going_is_told(world: World) {
    let pair = Pair::new(world).await;
    let namespaces = Api::<Namespace>::all(pair.managed.client());
    pair.managed.namespace_named("going").await;
    let in_it = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "going", "name": name } });
    let mut held = in_it("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    make(&pair.managed.client(), held).await;
    namespaces.delete("going", &DeleteParams::default()).await.expect("a namespace can be deleted");
    let manifests = json!([in_it("late"), config_map("fine", &json!({}))]);
    pair.make_work("w", json!({ "workload": { "manifests": manifests } })).await;
    let work = pair.until_work("w", "it is told", |work| says(work, "Applied", "False")).await;
    let (_, reason, message) = told(&work, 0, "late");
    assert_eq!(reason, "AppliedManifestFailed");
    assert!(message.contains("namespace going because it is being terminated"), "{message}");
    assert_eq!(told(&work, 1, "fine").0, "True");
    maps(&pair).get("fine").await.expect("it is applied");

    // When the namespace is gone, and there again, so is what belongs there.
    let inside = Api::<ConfigMap>::namespaced(pair.managed.client(), "going");
    change(&inside, "held", json!({ "metadata": { "finalizers": null } })).await;
    wait::gone(&namespaces, "going").await;
    pair.managed.namespace_named("going").await;
    pair.clock.advance(std::time::Duration::from_mins(5));
    pair.until_applied("w").await;
    inside.get("late").await.expect("it is applied");
    pair.end().await;
}

async fn what_another_agent_owns_stays_its_own(world: World) {
    let pair = Pair::new(world).await;
    // The record and the object of another hub's agent on the same cluster.
    pair.apply("first", json!([config_map("first", &json!({}))])).await;
    let records = Api::<AppliedManifestWork>::all(pair.managed.client());
    let spec = AppliedManifestWorkSpec {
        hub_hash: "another".to_owned(),
        agent_id: Some("another".to_owned()),
        manifest_work_name: "theirs".to_owned(),
    };
    let record = create(&records, AppliedManifestWork::new("another-theirs", spec)).await;
    let mut theirs = config_map("theirs", &json!({ "a": "theirs", "b": "theirs" }));
    theirs["metadata"]["ownerReferences"] = json!([{ "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "name": record.name_any(), "uid": record.uid().unwrap_or_default() }]);
    make(&pair.managed.client(), theirs).await;

    let force = |force: bool| {
        json!([{ "resourceIdentifier": { "group": "", "resource": "configmaps", "namespace": "default", "name": "theirs" },
            "updateStrategy": { "type": "ServerSideApply", "serverSideApply": { "force": force } } }])
    };
    // Their agent owns the field that ours would change: it is told who does, and the rest of the work proceeds.
    let other = kube::api::Patch::Apply(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "theirs" }, "data": { "a": "theirs" } }),
    );
    maps(&pair).patch("theirs", &PatchParams::apply("another-agent").force(), &other).await.expect("it can be applied");
    let manifests = json!([config_map("theirs", &json!({ "a": "ours" })), config_map("fine", &json!({}))]);
    pair.make_work("w", json!({ "workload": { "manifests": manifests }, "manifestConfigs": force(false) })).await;
    let work = pair.until_work("w", "it is told", |work| says(work, "Applied", "False")).await;
    let (_, _, message) = told(&work, 0, "theirs");
    assert!(message.contains("conflicts with \"another-agent\""), "{message}");
    assert_eq!(told(&work, 1, "fine").0, "True");

    // By force it is taken over in that field; the other agent stays an owner, and what it has besides stays.
    change(&pair.works(), "w", json!({ "spec": { "manifestConfigs": force(true) } })).await;
    pair.until_applied("w").await;
    let map = maps(&pair).get("theirs").await.expect("it is there");
    assert_eq!(json!(map.data), json!({ "a": "ours", "b": "theirs" }));
    assert_eq!(map.owner_references().len(), 2, "{:?}", map.owner_references());
    pair.works().delete("w", &DeleteParams::default()).await.expect("a work can be deleted");
    wait::gone(&pair.works(), "w").await;
    wait::gone(&maps(&pair), "fine").await;
    let owners = maps(&pair).get("theirs").await.expect("it stays the other agent's").owner_references().to_vec();
    assert_eq!(owners.iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>(), ["another-theirs"]);
    records.get("another-theirs").await.expect("nobody touches their record");
    pair.end().await;
}

/// A work with two maps, of which one has these rules.
fn ruled(rules: &Value) -> Value {
    let mut config =
        json!({ "resourceIdentifier": { "group": "", "resource": "configmaps", "namespace": "default", "name": "a" } });
    config.as_object_mut().expect("an object").extend(rules.as_object().expect("rules").clone());
    let manifests = json!([config_map("a", &json!({ "key": "value" })), config_map("fine", &json!({}))]);
    json!({ "workload": { "manifests": manifests }, "manifestConfigs": [config] })
}

async fn a_path_that_leads_nowhere_is_told(world: World) {
    let pair = Pair::new(world).await;
    let paths = json!([{ "name": "bad", "path": ".data[" }, { "name": "good", "path": ".data.key" }]);
    pair.make_work("w", ruled(&json!({ "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": paths }] }))).await;
    let work = pair.until_applied("w").await;
    named(&work, 0, "a");
    let (status, reason, message) = manifest_says(&work, 0, "StatusFeedbackSynced").expect("it is told of");
    assert_eq!((&*status, &*reason), ("False", "StatusFeedbackSyncFailed"));
    assert!(message.contains("the path .data[ of bad leads nowhere"), "{message}");
    let status =
        work.status.as_ref().and_then(|status| status.resource_status.as_ref()).expect("manifests are told of");
    let values = serde_json::to_value(&status.manifests[0].status_feedback).expect("JSON");
    let expected = json!({ "values": [{ "name": "good", "fieldValue": { "type": "String", "string": "value" } }] });
    assert_eq!(values, expected, "the other value is reported");
    assert_eq!(manifest_says(&work, 1, "StatusFeedbackSynced").expect("it is told of").0, "True");
    pair.end().await;
}

async fn a_rule_that_is_none_is_told(world: World) {
    let pair = Pair::new(world).await;
    let rule = |condition: &str, expression: &str| json!({ "type": "CEL", "condition": condition, "celExpressions": [expression] });
    let rules = json!([
        rule("Broken", "object.data."),
        rule("Lost", "object.data.nothing == 'x'"),
        rule("Fine", "object.data.key == 'value'")
    ]);
    pair.make_work("w", ruled(&json!({ "conditionRules": rules }))).await;
    let work = pair.until_applied("w").await;
    named(&work, 0, "a");
    let told = |condition: &str| manifest_says(&work, 0, condition).expect("it is told of");
    let (status, reason, message) = told("Broken");
    assert_eq!((&*status, &*reason), ("False", "ConditionRuleExpressionError"));
    assert!(message.contains("the expression \"object.data.\": is not a CEL expression"), "{message}");
    let (status, reason, message) = told("Lost");
    assert_eq!((&*status, &*reason), ("False", "ConditionRuleExpressionError"));
    assert!(message.contains("nothing"), "{message}");
    assert_eq!(told("Fine").0, "True");
    assert!(says(&work, "Fine", "True"), "and so is it said of the whole work");
    assert_eq!(manifest_says(&work, 1, "Applied").expect("it is told of").0, "True");
    pair.end().await;
}
