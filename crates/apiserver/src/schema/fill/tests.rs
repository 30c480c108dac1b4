use serde_json::json;

use super::*;

#[track_caller]
fn assert_filled(openapi: &Value, mut object: Value, expected: &Value) {
    fill_in_defaults(&mut object, &Schema::read(openapi, &|_| None));
    assert_eq!(object, *expected);
}

#[test]
fn what_is_missing_is_filled_in_where_something_is_around_it() {
    let openapi = json!({ "type": "object", "properties": {
        "a": { "type": "integer", "default": 1 },
        "b": { "type": "object", "properties": { "c": { "type": "string", "default": "x" } } },
        "d": { "type": "object", "default": {}, "properties": { "e": { "type": "boolean", "default": true } } },
    } });
    assert_filled(&openapi, json!({}), &json!({ "a": 1, "d": { "e": true } }));
    let said = json!({ "a": 2, "b": {}, "d": { "e": false } });
    assert_filled(&openapi, said, &json!({ "a": 2, "b": { "c": "x" }, "d": { "e": false } }));
}

#[test]
fn null_is_missing_unless_it_is_a_value() {
    let openapi = json!({ "type": "object", "properties": {
        "plain": { "type": "string", "default": "a" },
        "nullable": { "type": "string", "default": "a", "nullable": true },
        "list": { "type": "array", "items": { "type": "string", "default": "b" } },
        "map": { "type": "object", "additionalProperties": { "type": "string", "default": "c" } },
    } });
    let object = json!({ "plain": null, "nullable": null, "list": [null, "x"], "map": { "k": null } });
    assert_filled(
        &openapi,
        object,
        &json!({ "plain": "a", "nullable": null, "list": ["b", "x"], "map": { "k": "c" } }),
    );
}
