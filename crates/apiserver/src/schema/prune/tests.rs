use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{fill::fill_in_defaults, validate::validate};

fn schema(openapi: &Value) -> Schema {
    Schema::read(openapi, &|_| None)
}

#[track_caller]
fn assert_pruned(openapi: &Value, mut object: Value, expected: &Value, dropped: &[&str]) {
    let found = prune(&mut object, &schema(openapi));
    assert_eq!(object, *expected);
    assert_eq!(found, dropped);
}

#[test]
fn what_a_schema_does_not_know_goes() {
    let openapi = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } },
        "map": { "type": "object", "additionalProperties": { "type": "object", "properties": { "a": {} } } },
        "any": { "type": "object", "additionalProperties": true },
    } } } });
    let object = json!({
        "apiVersion": "v1", "kind": "A", "metadata": { "strange": 1 }, "status": 1,
        "spec": { "b": 1, "list": [{}, { "a": "", "b": { "c": 1 } }], "map": { "k": { "b": 1 } }, "any": { "x": { "y": 1 }, "z": 1 } },
    });
    let expected = json!({
        "apiVersion": "v1", "kind": "A", "metadata": { "strange": 1 },
        "spec": { "list": [{}, { "a": "" }], "map": { "k": {} }, "any": { "x": {}, "z": 1 } },
    });
    let dropped = ["spec.any.x.y", "spec.b", "spec.list[1].b", "spec.map.k.b", "status"];
    assert_pruned(&openapi, object, &expected, &dropped);
}

#[test]
fn what_is_to_be_kept_stays_but_known_fields_in_it_are_pruned() {
    let openapi = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "known": { "type": "object", "properties": {} },
        "list": { "type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": { "type": "object" } },
    } });
    let object = json!({ "free": { "a": 1 }, "known": { "a": 1 }, "list": [{ "a": 1 }] });
    assert_pruned(&openapi, object, &json!({ "free": { "a": 1 }, "known": {}, "list": [{ "a": 1 }] }), &["known.a"]);
}

#[test]
fn resources_inside_keep_what_they_are_and_tidy_metadata() {
    let openapi = json!({ "type": "object", "properties": { "template": {
        "type": "object", "x-kubernetes-embedded-resource": true, "properties": { "spec": { "type": "object" } },
    } } });
    let metadata = json!({ "name": "a", "creationTimestamp": null, "labels": {}, "strange": 1 });
    let object = json!({ "template": { "apiVersion": "v1", "kind": "A", "metadata": metadata, "data": 1 } });
    let expected = json!({ "template": { "apiVersion": "v1", "kind": "A", "metadata": { "name": "a" } } });
    assert_pruned(&openapi, object, &expected, &["template.data", "template.metadata.strange"]);
}

#[test]
fn nulls_go_where_they_mean_nothing() {
    let openapi = json!({ "type": "object", "properties": {
        "plain": { "type": "string" },
        "nullable": { "type": "string", "nullable": true },
        "filled": { "type": "string", "default": "a" },
        "map": { "type": "object", "additionalProperties": { "type": "string" } },
        "list": { "type": "array", "items": { "type": "string" } },
    } });
    let object = json!({ "plain": null, "nullable": null, "filled": null, "map": { "a": null }, "list": [null] });
    assert_pruned(&openapi, object, &json!({ "nullable": null, "filled": null, "map": {}, "list": [null] }), &[]);
}

/// Schemas of a few levels, with all that has to do with what is kept and filled in.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "string", "nullable": true })),
        Just(json!({ "type": "string", "default": "filled" })),
        Just(json!({ "type": "integer", "default": 3, "maximum": 5 })),
        Just(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })),
        Just(json!({ "x-kubernetes-int-or-string": true })),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            inner.clone().prop_map(|entry| json!({ "type": "object", "additionalProperties": entry })),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|properties| json!({ "type": "object", "properties": properties, "default": {} })),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..9_i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abcd]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_is_left_to_be_pruned_or_filled_in(openapi in any_schema(), mut object in any_value()) {
        let schema = schema(&openapi);
        prune(&mut object, &schema);
        let pruned = object.clone();
        prop_assert_eq!(prune(&mut object, &schema), Vec::<String>::new());
        prop_assert_eq!(&object, &pruned);

        fill_in_defaults(&mut object, &schema);
        let filled = object.clone();
        fill_in_defaults(&mut object, &schema);
        prop_assert_eq!(&object, &filled);

        let errors = validate(&object, None, &schema);
        prop_assert_eq!(prune(&mut object, &schema), Vec::<String>::new());
        fill_in_defaults(&mut object, &schema);
        prop_assert_eq!(&object, &filled);
        prop_assert_eq!(validate(&object, None, &schema), errors);
    }
}
