use serde_json::json;

use super::*;

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// What is said of a value at `spec.x`.
#[track_caller]
fn assert_said(openapi: &Value, value: &Value, expected: &[&str]) {
    let openapi =
        json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "x": openapi } } } });
    let errors = validate(&json!({ "spec": { "x": value } }), None, &Schema::read(&openapi, &|_| None));
    assert_eq!(told(&errors), expected);
}

#[test]
fn values_are_of_their_type() {
    let integer = json!({ "type": "integer" });
    assert_said(
        &integer,
        &json!("a"),
        &[r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#],
    );
    assert_said(
        &integer,
        &json!(null),
        &[r#"spec.x: Invalid value: "null": spec.x in body must be of type integer: "null""#],
    );
    assert_said(
        &integer,
        &json!(1.5),
        &[
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x"#,
        ],
    );
    assert_said(&integer, &json!(1.0), &[]);
    assert_said(&json!({ "type": "number" }), &json!(1), &[]);
    assert_said(&json!({ "type": "string", "nullable": true }), &json!(null), &[]);
    let either = json!({ "x-kubernetes-int-or-string": true });
    assert_said(&either, &json!("50%"), &[]);
    assert_said(
        &either,
        &json!(true),
        &[r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#],
    );
}

#[test]
fn formats_hold() {
    let time = json!({ "type": "string", "format": "date-time" });
    assert_said(&time, &json!("2024-01-01T00:00:00Z"), &[]);
    assert_said(
        &time,
        &json!("now"),
        &[r#"spec.x: Invalid value: "now": spec.x in body must be of type date-time: "now""#],
    );
    assert_said(
        &time,
        &json!(1),
        &[r#"spec.x: Invalid value: "int64": spec.x in body must be of type date-time: "int64""#],
    );
    let small = json!({ "type": "integer", "format": "int32" });
    assert_said(
        &small,
        &json!(3_000_000_000_u64),
        &[r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#],
    );
    assert_said(&json!({ "type": "string", "format": "quantity" }), &json!("?"), &[]);
}

#[test]
fn numbers_are_within_their_limits() {
    let limits = json!({ "type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2 });
    assert_said(&limits, &json!(0), &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"]);
    assert_said(
        &limits,
        &json!(11),
        &[
            "spec.x: Invalid value: 11: spec.x in body should be a multiple of 2",
            "spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10",
        ],
    );
    let excluded =
        json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 0.5, "exclusiveMaximum": true });
    assert_said(&excluded, &json!(0.5), &["spec.x: Invalid value: 0.5: spec.x in body should be less than 0.5"]);
    // Limits of numbers that are written without a point lose what is after theirs, in Kubernetes too.
    assert_said(
        &excluded,
        &json!(0),
        &[
            "spec.x: Invalid value: 0: spec.x in body should be greater than 0",
            "spec.x: Invalid value: 0: spec.x in body should be less than 0",
        ],
    );
}

#[test]
fn texts_are_as_long_as_they_may_be_and_match() {
    let text = json!({ "type": "string", "maxLength": 3, "minLength": 1, "pattern": "^a" });
    assert_said(&text, &json!("abcd"), &["spec.x: Too long: may not be more than 3 bytes"]);
    assert_said(&text, &json!(""), &[r#"spec.x: Invalid value: "": spec.x in body should be at least 1 chars long"#]);
    assert_said(&text, &json!("b"), &[r#"spec.x: Invalid value: "b": spec.x in body should match '^a'"#]);
    let allowed = json!({ "type": "string", "enum": ["a", "b"] });
    assert_said(&allowed, &json!("c"), &[r#"spec.x: Unsupported value: "c": supported values: "a", "b""#]);
}

#[test]
fn lists_and_maps_are_as_large_as_they_may_be() {
    let list = json!({ "type": "array", "maxItems": 1, "items": { "type": "string" } });
    assert_said(
        &list,
        &json!(["a", 1]),
        &[
            r#"spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer""#,
            "spec.x: Too many: 2: must have at most 1 item",
        ],
    );
    assert_said(
        &json!({ "type": "array", "minItems": 1, "items": {} }),
        &json!([]),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
    );
    let map = json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "string" } });
    assert_said(
        &map,
        &json!({ "k": 1 }),
        &[
            "spec.x: Invalid value: 1: spec.x in body should have at least 2 properties",
            r#"spec.x.k: Invalid value: "integer": spec.x.k in body must be of type string: "integer""#,
        ],
    );
}

#[test]
fn what_is_required_is_there() {
    let openapi = json!({ "type": "object", "required": ["spec"], "properties": { "spec": { "type": "object", "required": ["a"] } } });
    let schema = Schema::read(&openapi, &|_| None);
    assert_eq!(told(&validate(&json!({}), None, &schema)), ["spec: Required value"]);
    assert_eq!(told(&validate(&json!({ "spec": {} }), None, &schema)), ["spec.a: Required value"]);
}

#[test]
fn of_several_schemas_the_closest_is_told_about() {
    let any = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    assert_said(
        &any,
        &json!({}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
            "spec.x.a: Required value",
        ],
    );
    let mut one = any.clone();
    one["oneOf"] = one["anyOf"].take();
    one.as_object_mut().unwrap().remove("anyOf");
    assert_said(
        &one,
        &json!({ "a": "", "b": "" }),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    assert_said(
        &one,
        &json!({}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.x.a: Required value",
        ],
    );
    let all = json!({ "type": "string", "allOf": [{ "minLength": 2 }, { "pattern": "^a" }] });
    assert_said(
        &all,
        &json!("a"),
        &[
            r#"spec.x: Invalid value: "a": spec.x in body should be at least 2 chars long"#,
            r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ],
    );
    let not = json!({ "type": "string", "not": { "enum": ["a"] } });
    assert_said(&not, &json!("a"), &[r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#]);
}

#[test]
fn items_are_told_apart() {
    let set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    assert_said(&set, &json!(["a", "b", "a", "a"]), &[r#"spec.x[2]: Duplicate value: "a""#]);
    let map = json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
        "items": { "type": "object", "properties": { "name": { "type": "string" }, "port": { "type": "integer" } } } });
    assert_said(
        &map,
        &json!([{ "name": "a", "port": 1 }, { "name": "a", "port": 1 }, { "name": "a" }]),
        &[r#"spec.x[1]: Duplicate value: {"name":"a","port":1}"#],
    );
}

#[test]
fn resources_inside_say_what_they_are() {
    let openapi = json!({ "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true });
    assert_said(&openapi, &json!({ "apiVersion": "v1", "kind": "ConfigMap" }), &[]);
    assert_said(
        &openapi,
        &json!({ "apiVersion": "a/b/c" }),
        &[
            "spec.x.kind: Required value",
            r#"spec.x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
        ],
    );
}

fn ratcheting() -> Schema {
    let item = json!({ "type": "object", "properties": { "name": { "type": "string" }, "n": { "type": "integer", "maximum": 1 } } });
    let openapi = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "a": { "type": "string", "maxLength": 1 }, "b": { "type": "string" },
        "atomic": { "type": "array", "items": { "type": "integer", "maximum": 1 } },
        "keyed": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
    } } } });
    Schema::read(&openapi, &|_| None)
}

#[test]
fn what_was_wrong_before_does_not_count() {
    let schema = ratcheting();
    let update =
        |old: Value, new: Value| told(&validate(&json!({ "spec": new }), Some(&json!({ "spec": old })), &schema));
    assert_eq!(update(json!({ "a": "long" }), json!({ "a": "long", "b": "new" })), Vec::<String>::new());
    assert_eq!(
        update(json!({ "a": "long" }), json!({ "a": "other" })),
        ["spec.a: Too long: may not be more than 1 bytes".replace("bytes", "byte")]
    );
    assert_eq!(update(json!({ "atomic": [2] }), json!({ "atomic": [2], "b": "" })), Vec::<String>::new());
    assert_eq!(update(json!({ "atomic": [2] }), json!({ "atomic": [2, 1] })).len(), 1);
    let keyed = json!([{ "name": "a", "n": 2 }, { "name": "b", "n": 1 }]);
    let moved = json!([{ "name": "c", "n": 1 }, { "name": "a", "n": 2 }]);
    assert_eq!(update(json!({ "keyed": keyed }), json!({ "keyed": moved })), Vec::<String>::new());
    assert_eq!(update(json!({ "set": ["a", "a"] }), json!({ "set": ["a", "a", "b", "b"] })), Vec::<String>::new());
    assert_eq!(update(json!({ "set": ["a"] }), json!({ "set": ["a", "a"] })).len(), 1);
}

#[test]
fn the_order_of_items_with_keys_is_no_change() {
    let item = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let openapi = json!({ "type": "object", "properties": { "list": { "type": "array", "maxItems": 1,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item } } });
    let list = |names: [&str; 2]| json!({ "list": names.map(|name| json!({ "name": name })) });
    let update = |new| validate(&new, Some(&list(["a", "b"])), &Schema::read(&openapi, &|_| None));
    assert_eq!(told(&update(list(["b", "a"]))), Vec::<String>::new());
    assert_eq!(told(&update(list(["a", "c"]))), ["list: Too many: 2: must have at most 1 item"]);
}

#[test]
fn of_a_status_only_that_is_checked() {
    let openapi = json!({ "type": "object", "required": ["spec"], "properties": {
        "spec": { "type": "object" }, "status": { "type": "object", "required": ["a"], "properties": { "n": { "type": "integer" } } },
    } });
    let validator = Validator::new(&Schema::read(&openapi, &|_| None));
    let errors = validator.check_status(&json!({ "status": { "n": "x" } }), &json!({}));
    assert_eq!(
        told(&errors),
        [
            r#"status.n: Invalid value: "string": n in body must be of type integer: "string""#,
            "status.a: Required value",
        ]
    );
}
