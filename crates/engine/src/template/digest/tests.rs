use drover_api::work::ManifestWork;
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::Index,
    test_runner::{Config, TestCaseError, TestRng, TestRunner},
};
use serde_json::json;

use super::*;

fn spec(spec: &Value) -> ManifestWorkSpec {
    serde_json::from_value(spec.clone()).expect("the spec of a work")
}

fn digest_of(value: &Value) -> String {
    digest(&spec(value))
}

/// A work with everything that a server fills in.
fn work() -> Value {
    json!({
        "workload": { "manifests": [
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "x": "1" } },
        ] },
        "deleteOption": { "ttlSecondsAfterFinished": 9 },
        "manifestConfigs": [{
            "resourceIdentifier": { "resource": "configmaps", "name": "a" },
            "updateStrategy": { "type": "ServerSideApply", "serverSideApply": { "force": true, "ignoreFields": [{ "jsonPaths": [".a"] }] } },
        }, {
            "resourceIdentifier": { "resource": "configmaps", "name": "b" },
            "updateStrategy": {},
        }],
    })
}

#[test]
fn what_a_server_fills_in_changes_nothing() {
    let mut stored = work();
    stored["deleteOption"]["propagationPolicy"] = json!("Foreground");
    stored["manifestConfigs"][0]["feedbackScrapeType"] = json!("Poll");
    stored["manifestConfigs"][1]["feedbackScrapeType"] = json!("Poll");
    stored["manifestConfigs"][1]["updateStrategy"]["type"] = json!("Update");
    let apply = &mut stored["manifestConfigs"][0]["updateStrategy"]["serverSideApply"];
    apply["fieldManager"] = json!("work-agent");
    apply["ignoreFields"][0]["condition"] = json!("OnSpokePresent");
    assert_eq!(digest_of(&stored), digest_of(&work()));
}

#[test]
fn what_says_nothing_changes_nothing() {
    let mut sent = work();
    sent["executor"] = Value::Null;
    sent["manifestConfigs"][0]["feedbackRules"] = json!([]);
    let manifest = &mut sent["workload"]["manifests"][0];
    manifest["metadata"]["creationTimestamp"] = Value::Null;
    manifest["metadata"]["labels"] = json!({});
    manifest["metadata"]["finalizers"] = json!([]);
    manifest["metadata"]["namespace"] = json!("");
    manifest["data"]["y"] = Value::Null;
    assert_eq!(digest_of(&sent), digest_of(&work()));
}

#[test]
fn what_says_something_changes_it() {
    for (pointer, value) in [
        ("/workload/manifests/0/data/x", json!("2")),
        ("/workload/manifests/0/data/x", json!("")),
        ("/workload/manifests/0/data", json!({})),
        ("/workload/manifests/0/data", json!([null])),
        ("/workload/manifests/0/metadata", json!({ "name": "a", "labels": { "a": "" } })),
        ("/workload/manifests", json!([])),
        ("/deleteOption", json!({ "propagationPolicy": "Orphan", "ttlSecondsAfterFinished": 9 })),
        ("/deleteOption/ttlSecondsAfterFinished", json!(8)),
        ("/manifestConfigs/0/updateStrategy/serverSideApply/force", json!(false)),
        ("/manifestConfigs/0/updateStrategy/serverSideApply/ignoreFields", json!([])),
        ("/manifestConfigs/1/updateStrategy", json!({ "type": "ReadOnly" })),
        ("/manifestConfigs/1", json!({ "resourceIdentifier": { "resource": "configmaps", "name": "b" } })),
    ] {
        let mut changed = work();
        *changed.pointer_mut(pointer).expect("it is there") = value;
        assert_ne!(digest_of(&changed), digest_of(&work()), "{pointer}");
    }
}

#[test]
fn a_digest_stays_what_it_is_in_the_next_release() {
    assert_eq!(digest_of(&work()), FIRST_EVER);
}

/// Works are compared by it: if it changes, every work of every fleet is written anew.
const FIRST_EVER: &str = "1715c93f9619dcad";

// ---- Properties

/// Values without anything that says nothing.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        "[a-z<&\"\\\\ü\n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), fields(inner).prop_map(|fields| fields)]
    })
}

fn fields(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    btree_map("[a-zü\"]{0,3}", inner, 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn with_manifest(data: &Value) -> ManifestWorkSpec {
    let mut value = work();
    value["workload"]["manifests"][0]["data"] = data.clone();
    spec(&value)
}

fn check<S: Strategy>(strategy: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases: 256, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng).run(strategy, property).expect("it holds");
}

#[test]
fn a_work_that_comes_back_has_the_same_digest() {
    check(&values(), |data| {
        let sent = ManifestWork { spec: with_manifest(&data), ..ManifestWork::default() };
        let text = serde_json::to_string(&sent).expect("it can be written");
        let back: ManifestWork = serde_json::from_str(&text).expect("it can be read");
        prop_assert_eq!(digest(&back.spec), digest(&sent.spec));
        Ok(())
    });
}

/// Every value in a value.
fn parts(value: &mut Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter_mut().map(parts).sum(),
        Value::Object(fields) => fields.values_mut().map(parts).sum(),
        _ => 0,
    }
}

/// Changes the value with this number.
fn change(value: &mut Value, number: &mut usize) {
    if *number == 0 {
        *value = json!({ "changed": [value.clone()] });
    }
    let before = *number;
    *number = before.wrapping_sub(1);
    if before == 0 {
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| change(item, number)),
        Value::Object(fields) => fields.values_mut().for_each(|field| change(field, number)),
        _ => {}
    }
}

#[test]
fn any_change_of_a_manifest_is_another_digest() {
    check(&(values(), any::<Index>()), |(data, index)| {
        let mut changed = data.clone();
        let mut number = index.index(parts(&mut changed));
        change(&mut changed, &mut number);
        prop_assert_ne!(&changed, &data);
        prop_assert_ne!(digest(&with_manifest(&changed)), digest(&with_manifest(&data)));
        Ok(())
    });
}
