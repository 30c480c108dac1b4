//! Sets of fields are read and written as Kubernetes does.

use serde_json::json;

use super::super::set::FieldSet;

#[test]
fn a_set_is_written_as_it_was_read() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}, "v:\"x.io/a\"": {}}},
        "f:spec": {
            "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {}},
        },
    });
    assert_eq!(FieldSet::read(&fields).unwrap().write(), fields);
}

#[test]
fn steps_of_unknown_kinds_are_left_out_and_malformed_ones_refused() {
    assert_eq!(FieldSet::read(&json!({"z:new": {}, "f:a": {}})).unwrap().write(), json!({"f:a": {}}));
    assert!(FieldSet::read(&json!({"fa": {}})).is_err());
    assert!(FieldSet::read(&json!({"f": {}})).is_err());
    assert!(FieldSet::read(&json!({"v:{": {}})).is_err());
    assert!(FieldSet::read(&json!({"f:a": 1})).is_err());
}

#[test]
fn what_html_would_misread_is_escaped_in_keys() {
    let fields = json!({"f:l": {"k:{\"name\":\"a\\u0026b\"}": {}}});
    assert_eq!(FieldSet::read(&fields).unwrap().write(), fields);
}

#[test]
fn a_field_without_what_is_in_it_is_not_the_field_with_it() {
    let parent = FieldSet::of(["a"]);
    let child = FieldSet::of(["a.b"]);
    assert_eq!(parent.difference(&child), parent);
    assert_eq!(child.difference(&parent), child);
    assert!(child.recursive_difference(&parent).is_empty());
    assert!(parent.intersection(&child).is_empty());
    assert_eq!(parent.union(&child).write(), json!({"f:a": {".": {}, "f:b": {}}}));
}
