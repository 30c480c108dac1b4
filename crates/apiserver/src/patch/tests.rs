//! What patches do, as a Kubernetes API server does it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{json as json_patch, merge, strategic};
use crate::{failure::Failure, schema::Schema};

fn patched(object: &Value, operations: &Value) -> Result<Value, Failure> {
    json_patch(object, operations.to_string().as_bytes())
}

#[test]
fn operations_are_done_one_after_another() {
    let object = json!({"a": {"b": [1, 2]}, "c/d": 1});
    let operations = json!([
        {"op": "test", "path": "/a/b/0", "value": 1},
        {"op": "add", "path": "/a/b/-", "value": 3},
        {"op": "add", "path": "/a/b/0", "value": 0},
        {"op": "remove", "path": "/a/b/-1"},
        {"op": "copy", "from": "/a/b", "path": "/e"},
        {"op": "move", "from": "/c~1d", "path": "/f"},
        {"op": "replace", "path": "/a/b/1", "value": "x"},
    ]);
    let expected = json!({"a": {"b": [0, "x", 2]}, "e": [0, 1, 2], "f": 1});
    assert_eq!(patched(&object, &operations).unwrap(), expected);
}

#[test]
fn what_is_not_there_can_be_replaced_and_is_null() {
    let object = json!({"a": 1});
    let operations = json!([{"op": "test", "path": "/b", "value": null}, {"op": "replace", "path": "/b", "value": 2}]);
    assert_eq!(patched(&object, &operations).unwrap(), json!({"a": 1, "b": 2}));
}

#[test]
fn what_can_not_be_done_is_refused_without_a_reason() {
    for operation in [
        json!({"op": "test", "path": "/a", "value": 2}),
        json!({"op": "remove", "path": "/b"}),
        json!({"op": "add", "path": "/b/c", "value": 1}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "add", "path": "/l/9", "value": 1}),
        json!({"op": "replace", "path": "/l/x", "value": 1}),
        json!({"op": "odd", "path": "/a"}),
        json!({"path": "/a"}),
        json!({"op": "add"}),
    ] {
        let failure = patched(&json!({"a": 1, "l": []}), &json!([operation])).unwrap_err();
        assert_eq!((failure.code, failure.reason), (422, "Invalid"), "{operation}");
        assert_eq!(failure.message, "the server rejected our request due to an error in our request");
        assert_eq!(failure.details, Some(Box::default()));
    }
}

#[test]
fn what_is_no_list_of_operations_is_a_bad_request() {
    for (patch, message) in [
        ("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ("[{\"op\":1}]", "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ("[", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
    ] {
        let failure = json_patch(&json!({}), patch.as_bytes()).unwrap_err();
        assert_eq!((failure.code, failure.message), (400, format!("error decoding patch: {message}")));
    }
}

#[test]
fn too_many_operations_are_too_large() {
    let operation = json!({"op": "add", "path": "/a", "value": 1});
    assert!(patched(&json!({}), &json!(vec![operation.clone(); 10_000])).is_ok());
    let failure = patched(&json!({}), &json!(vec![operation; 10_001])).unwrap_err();
    assert_eq!((failure.code, failure.reason), (413, "RequestEntityTooLarge"));
    let expected = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(failure.message, expected);
}

#[test]
fn copying_does_not_go_on_for_ever() {
    let operations: Vec<Value> = (0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
    assert_eq!(patched(&json!({"a": ["x"]}), &json!(operations)).unwrap_err().code, 422);
}

#[test]
fn a_merge_patch_sets_and_deletes_fields() {
    let object = json!({"a": {"b": 1, "c": 2}, "l": [{"x": 1}], "s": 1});
    let patch = json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [{"y": null}], "s": {"t": null}, "n": null});
    let expected = json!({"a": {"c": 2, "d": {"f": 1}}, "l": [{}], "s": {}});
    assert_eq!(merge(&object, &patch).unwrap(), expected);
}

#[test]
fn what_is_no_map_is_no_merge_patch() {
    assert_eq!(merge(&json!({}), &Value::Null), Err(Failure::bad_request("Invalid JSON Patch")));
    let failure = merge(&json!({}), &json!([])).unwrap_err();
    let expected = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!((failure.code, failure.message.as_str()), (400, expected));
}

fn pod() -> Schema {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"name": text, "image": text, "args": {"type": "array", "items": text}}});
    let schema = json!({"type": "object", "properties": {
        "finalizers": {"type": "array", "items": text, "x-kubernetes-patch-strategy": "merge"},
        "labels": {"type": "object", "additionalProperties": text},
        "containers": {
            "type": "array", "items": item,
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
        },
        "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys", "properties": {"type": text, "rolling": text}},
    }});
    Schema::read(&schema, &|_| None)
}

fn containers(names: &[&str]) -> Value {
    json!({"containers": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
}

fn merged(object: &Value, patch: &Value) -> Value {
    strategic(object, patch, &pod()).unwrap()
}

#[test]
fn lists_are_merged_by_their_key_and_others_replaced() {
    let object = json!({"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b"}]});
    let patch = json!({"containers": [{"name": "a", "image": "2", "args": ["y"]}, {"name": "c"}]});
    let expected = json!({"containers": [{"name": "a", "image": "2", "args": ["y"]}, {"name": "c"}, {"name": "b"}]});
    assert_eq!(merged(&object, &patch), expected);
}

#[test]
fn a_patch_says_what_to_delete_and_to_replace() {
    let object = json!({"labels": {"a": "1"}, "containers": [{"name": "a", "image": "1"}, {"name": "b"}]});
    let deleted = json!({"labels": {"$patch": "delete"}, "containers": [{"name": "b", "$patch": "delete"}]});
    assert_eq!(merged(&object, &deleted), json!({"labels": {}, "containers": [{"name": "a", "image": "1"}]}));
    let replaced =
        json!({"labels": {"$patch": "replace", "b": "2"}, "containers": [{"$patch": "replace"}, {"name": "c"}]});
    assert_eq!(merged(&object, &replaced), json!({"labels": {"b": "2"}, "containers": [{"name": "c"}]}));
    let gone = json!({"labels": null});
    assert_eq!(merged(&object, &gone).get("labels"), None);
}

#[test]
fn plain_lists_grow_and_say_what_to_delete() {
    let object = json!({"finalizers": ["a", "b"]});
    assert_eq!(merged(&object, &json!({"finalizers": ["c", "a"]})), json!({"finalizers": ["c", "a", "b"]}));
    let deleted = json!({"$deleteFromPrimitiveList/finalizers": ["a", "z"]});
    assert_eq!(merged(&object, &deleted), json!({"finalizers": ["b"]}));
}

#[test]
fn a_patch_says_the_order() {
    let object = containers(&["a", "b", "c"]);
    let order = json!([{"name": "c"}, {"name": "x"}, {"name": "a"}]);
    let patch = json!({"$setElementOrder/containers": order, "containers": [{"name": "x"}]});
    assert_eq!(merged(&object, &patch), containers(&["b", "c", "x", "a"]));
}

#[test]
fn only_the_keys_that_a_patch_retains_stay() {
    let object = json!({"strategy": {"type": "Rolling", "rolling": "1"}});
    let patch = json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}});
    assert_eq!(merged(&object, &patch), json!({"strategy": {"type": "Recreate"}}));
}

#[test]
fn patches_that_make_no_sense_are_refused() {
    let object = json!({"labels": {"a": "1"}, "containers": [{"name": "a"}], "strategy": {"type": "x"}});
    for (patch, code, message) in [
        (json!({"labels": {"$patch": "odd"}}), 500, "unknown patch type: odd in map: map[$patch:odd]"),
        (json!({"containers": [{"image": "1"}]}), 500, "map: map[image:1] does not contain declared merge key: name"),
        (json!({"strategy": {"$retainKeys": "x"}}), 400, "invalid patch format of retainKeys"),
        (json!({"strategy": {"$retainKeys": [], "type": "y"}}), 400, "invalid patch format of retainKeys"),
        (json!({"$deleteFromPrimitiveList": []}), 400, "invalid patch format of primitive list"),
        (json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list"),
        (
            json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
            500,
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        ),
        (json!([]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        let failure = strategic(&object, &patch, &pod()).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (code, message));
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), (0..3i64).prop_map(Value::from), "[ab]".prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(0..3i64, 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-d]", inner, 0..3).prop_map(|it| json!(it)),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-d]", value(), 0..4).prop_map(|it| json!(it))
}

proptest! {
    #[test]
    fn merging_twice_is_merging_once(object in object(), patch in object()) {
        let once = merge(&object, &patch).unwrap();
        prop_assert_eq!(merge(&once, &patch).unwrap(), once);
    }

    #[test]
    fn what_is_added_can_be_tested_and_removed(object in object(), value in value()) {
        let add = json!({"op": "add", "path": "/new", "value": value});
        let test = json!({"op": "test", "path": "/new", "value": value});
        let remove = json!({"op": "remove", "path": "/new"});
        prop_assert_eq!(patched(&object, &json!([add, test, remove])).unwrap(), object);
    }
}

/// A value of so many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }))
}

fn pointer(levels: usize) -> String {
    "/a".repeat(levels)
}

#[test]
fn operations_can_not_nest_an_object_deeper_than_it_may() {
    let limit = crate::depth::MAX_DEPTH;
    let add = |levels: usize, value: Value| json!({ "op": "add", "path": pointer(levels), "value": value });
    let outcome = |operations: Vec<Value>| patched(&json!({ "a": 1 }), &operations.into()).map_err(|it| it.code);
    assert!(outcome(vec![add(1, nested(limit - 1))]).is_ok());
    assert_eq!(outcome(vec![add(1, nested(limit))]), Err(422));
    // A few levels at a time.
    let slowly = |times: usize| (0..times).map(|time| add(1 + 9 * time, nested(9))).collect();
    assert!(outcome(slowly(11)).is_ok());
    assert_eq!(outcome(slowly(12)), Err(422));
    assert_eq!(outcome(slowly(1000)), Err(422));
    // Nearly twice as many each time.
    let grown = |times: usize| {
        let depths = std::iter::successors(Some(9), |depth| Some(2 * depth - 1)).take(times);
        let copies = depths.map(|depth| json!({ "op": "copy", "from": "/a", "path": pointer(depth) }));
        [add(1, nested(8))].into_iter().chain(copies).collect()
    };
    assert!(outcome(grown(3)).is_ok());
    for times in [4, 5, 20] {
        assert_eq!(outcome(grown(times)), Err(422));
    }
    let failure = patched(&json!({ "a": 1 }), &json!([add(1, nested(limit))])).unwrap_err();
    assert!(failure.message.contains("objects nest at most 100 levels"), "{}", failure.message);
}

#[test]
fn moves_can_not_chain_an_object_deeper_than_it_may() {
    let chains = 1000;
    let object: Value = (0..chains).map(|at| (format!("c{at}"), nested(90))).collect();
    let operations: Vec<Value> = (1..chains)
        .map(|at| json!({ "op": "move", "from": format!("/c{}", at - 1), "path": format!("/c{at}{}", pointer(89)) }))
        .collect();
    assert_eq!(patched(&object, &operations.into()).unwrap_err().code, 422);
}

/// A bound of the depth is kept, not the depth: what moves about without getting deeper is allowed
/// for a long time.
#[test]
fn moves_that_do_not_nest_deeper_are_done() {
    let there_and_back =
        [json!({ "op": "move", "from": "/a", "path": "/b/c" }), json!({ "op": "move", "from": "/b/c", "path": "/a" })];
    let operations: Vec<Value> = there_and_back.iter().cycle().take(1000).cloned().collect();
    let object = json!({ "a": nested(50), "b": {} });
    assert_eq!(patched(&object, &operations.into()).unwrap(), object);
}

/// An item that is added at the front of a list moves all others.
#[test]
fn operations_can_not_move_too_many_items() {
    let to_the_front = |items: usize, times: usize| {
        let operations: Vec<Value> = (0..times).map(|_| json!({ "op": "add", "path": "/a/0", "value": 1 })).collect();
        patched(&json!({ "a": vec![0; items] }), &operations.into()).map(drop).map_err(|failure| failure.code)
    };
    assert_eq!(to_the_front(1000, 1000), Ok(()));
    assert_eq!(to_the_front(200_000, 1000), Err(422));
}

#[test]
fn operations_that_nest_too_deeply_are_not_read() {
    for levels in [200, 8000, 500_000] {
        let patch = format!(r#"[{{"op":"add","path":"/a","value":{}{}}}]"#, "[".repeat(levels), "]".repeat(levels));
        let failure = json_patch(&json!({}), patch.as_bytes()).unwrap_err();
        let message = "error decoding patch: exceeded max depth: objects nest at most 100 levels";
        assert_eq!(failure, Failure::bad_request(message));
    }
}
