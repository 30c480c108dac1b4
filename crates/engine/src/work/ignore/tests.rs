use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": { "annotations": { "a.b/c": "d" } },
        "spec": { "replicas": 3, "containers": [{ "name": "web", "image": "a" }, { "name": "log", "image": "b" }] },
    })
}

fn without(ignored: &Value) -> Result<Value, IgnoreFieldsError> {
    without_present(&object(), &[serde_json::from_value(ignored.clone()).unwrap()])
}

/// What is left after something was removed from the object.
fn object_without(pointers: &[(&str, &str)]) -> Value {
    let mut object = object();
    for (parent, field) in pointers {
        object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(*field).unwrap();
    }
    object
}

#[test]
fn fields_are_left_out_by_json_path() {
    assert_eq!(without(&json!({ "jsonPaths": [".spec.replicas"] })), Ok(object_without(&[("/spec", "replicas")])));
    assert_eq!(without(&json!({ "jsonPaths": ["spec.replicas"] })), Ok(object_without(&[("/spec", "replicas")])));
    let annotation = json!({ "jsonPaths": [r".metadata.annotations.a\.b/c"] });
    assert_eq!(without(&annotation), Ok(object_without(&[("/metadata/annotations", "a.b/c")])));
    let log = json!({ "jsonPaths": [".spec.containers[?(@.name=='log')].image"] });
    assert_eq!(without(&log), Ok(object_without(&[("/spec/containers/1", "image")])));
    let all = [("/spec/containers/0", "image"), ("/spec/containers/1", "image")];
    assert_eq!(without(&json!({ "jsonPaths": [".spec.containers[*].image"] })), Ok(object_without(&all)));
}

#[test]
fn fields_are_left_out_by_pointer_and_by_jq() {
    assert_eq!(without(&json!({ "jsonPointers": ["/spec/replicas"] })), Ok(object_without(&[("/spec", "replicas")])));
    let annotation = json!({ "jsonPointers": ["/metadata/annotations/a.b~1c"] });
    assert_eq!(without(&annotation), Ok(object_without(&[("/metadata/annotations", "a.b/c")])));
    let image = json!({ "jqPathExpressions": [r#".spec.containers[] | select(.name == "web") | .image"#] });
    assert_eq!(without(&image), Ok(object_without(&[("/spec/containers/0", "image")])));
}

#[test]
fn items_of_lists_are_left_out_from_the_back() {
    let both = json!({ "jqPathExpressions": [".spec.containers[]"] });
    assert_eq!(without(&both).unwrap()["spec"]["containers"], json!([]));
    let first = json!({ "jsonPointers": ["/spec/containers/0"] });
    assert_eq!(without(&first).unwrap()["spec"]["containers"], json!([{ "name": "log", "image": "b" }]));
}

#[test]
fn what_is_not_there_is_no_error() {
    let ignored = json!({
        "jsonPaths": [".spec.none.deeper", ".spec.containers[9].image"],
        "jsonPointers": ["/spec/none", "/spec/containers/9", "/spec/replicas/0"],
        "jqPathExpressions": [".spec.none[]"],
    });
    assert_eq!(without(&ignored), Ok(object()));
}

#[test]
fn what_only_holds_until_a_change_is_kept() {
    assert_eq!(without(&json!({ "condition": "OnSpokeChange", "jsonPaths": [".spec.replicas"] })), Ok(object()));
}

#[test]
fn what_can_not_be_read_is_told() {
    let problem = |ignored: &Value| without(ignored).unwrap_err().to_string();
    assert!(problem(&json!({ "jsonPaths": [".spec["] })).contains("\".spec[\" can not be read"));
    assert!(problem(&json!({ "jsonPaths": [".spec.containers[0]"] })).contains("does not end in a field"));
    assert!(problem(&json!({ "jsonPointers": ["spec"] })).contains("does not begin with a slash"));
    assert!(problem(&json!({ "jqPathExpressions": [".a | length"] })).contains("only paths are supported"));
}
