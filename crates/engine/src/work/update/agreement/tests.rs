use serde_json::json;

use super::*;

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn met(wanted: &Value, had: &Value) -> bool {
    agrees(&map(wanted), &map(had))
}

#[test]
fn only_what_the_manifest_sets_counts() {
    assert!(met(&json!({ "spec": { "a": 1 } }), &json!({ "spec": { "a": 1, "b": 2 }, "other": 3 })));
    assert!(!met(&json!({ "spec": { "a": 1 } }), &json!({ "spec": { "a": 2 } })));
    assert!(!met(&json!({ "spec": { "a": 1 } }), &json!({ "spec": {} })));
    assert!(!met(&json!({ "spec": { "a": 1 } }), &json!({})));
}

#[test]
fn lists_agree_item_by_item() {
    let wanted = json!({ "spec": { "containers": [{ "name": "web" }, { "name": "log" }] } });
    assert!(met(&wanted, &json!({ "spec": { "containers": [{ "name": "web", "tty": false }, { "name": "log" }] } })));
    assert!(!met(&wanted, &json!({ "spec": { "containers": [{ "name": "log" }, { "name": "web" }] } })));
    assert!(!met(&wanted, &json!({ "spec": { "containers": [{ "name": "web" }] } })));
    assert!(!met(
        &wanted,
        &json!({ "spec": { "containers": [{ "name": "web" }, { "name": "log" }, { "name": "new" }] } })
    ));
}

#[test]
fn nothing_at_all_can_be_written_in_several_ways() {
    assert!(met(&json!({ "a": null }), &json!({})));
    assert!(met(&json!({ "a": null }), &json!({ "a": 1 })), "the server has chosen");
    assert!(met(&json!({ "a": [] }), &json!({})));
    assert!(met(&json!({ "a": { "creationTimestamp": null } }), &json!({})));
    assert!(!met(&json!({ "a": {} }), &json!({})), "an empty folder is not no folder");
    assert!(!met(&json!({ "a": false }), &json!({})));
    assert!(!met(&json!({ "a": [] }), &json!({ "a": [1] })));
}

#[test]
fn numbers_and_amounts_are_compared_by_what_they_mean() {
    assert!(met(&json!({ "a": 1 }), &json!({ "a": 1.0 })));
    let limits = |cpu: Value| json!({ "spec": { "containers": [{ "resources": { "limits": { "cpu": cpu } } }] } });
    assert!(met(&limits(json!("1000m")), &limits(json!("1"))));
    assert!(met(&limits(json!(1)), &limits(json!("1"))));
    assert!(!met(&limits(json!("1")), &limits(json!("2"))));
    assert!(!met(&json!({ "spec": { "version": "1.0" } }), &json!({ "spec": { "version": "1" } })));
    assert!(!met(&json!({ "data": { "limits": "1000m" } }), &json!({ "data": { "limits": "1" } })), "this is text");
}

#[test]
fn sameness_goes_both_ways() {
    assert!(is_same(&map(&json!({ "a": 1, "b": null })), &map(&json!({ "a": 1, "c": [] }))));
    assert!(!is_same(&map(&json!({ "a": 1 })), &map(&json!({ "a": 1, "b": 2 }))));
}

fn repaired(wanted: &Value, had: &Value) -> Value {
    Value::Object(overlay(map(wanted), map(had)))
}

#[test]
fn what_is_wanted_is_set_and_the_rest_stays() {
    let had = json!({ "spec": { "replicas": 5, "paused": true, "containers": [{ "name": "web", "image": "b", "tty": false }] } });
    let wanted = json!({ "spec": { "paused": false, "containers": [{ "name": "web", "image": "a" }] } });
    let expected = json!({ "spec": { "replicas": 5, "paused": false, "containers": [{ "name": "web", "image": "a", "tty": false }] } });
    assert_eq!(repaired(&wanted, &had), expected);
}

#[test]
fn what_is_there_in_another_spelling_stays() {
    let had = json!({ "spec": { "limits": { "cpu": "1", "memory": "1Gi" } } });
    let wanted = json!({ "spec": { "limits": { "cpu": "1000m", "memory": "2Gi" } } });
    assert_eq!(repaired(&wanted, &had), json!({ "spec": { "limits": { "cpu": "1", "memory": "2Gi" } } }));
}

#[test]
fn lists_of_another_length_and_other_items_are_replaced() {
    let had = json!({ "env": [{ "name": "A", "valueFrom": { "a": 1 } }, { "name": "B", "value": "b" }] });
    let swapped = json!({ "env": [{ "name": "B", "value": "b" }, { "name": "A", "valueFrom": { "a": 1 } }] });
    assert_eq!(repaired(&swapped, &had), swapped, "no item has a bit of another");
    let fewer = json!({ "env": [{ "name": "B", "value": "b" }] });
    assert_eq!(repaired(&fewer, &had), fewer);
}
