use serde_json::{Value, json};

use super::{JsonPath, text};

fn object() -> Value {
    json!({
        "metadata": {"annotations": {"foo.bar/baz": "dotted"}},
        "spec": {"replicas": 3, "ratio": 1.5, "nothing": null, "ports": [80, 443, 8080]},
        "status": {"conditions": [
            {"type": "Joined", "status": "False"},
            {"type": "Ready", "status": "True", "since": 5},
        ]},
    })
}

fn found(path: &str) -> Vec<Value> {
    let path = JsonPath::parse(path).unwrap();
    path.find(&object()).unwrap().into_iter().cloned().collect()
}

fn lost(path: &str) -> String {
    JsonPath::parse(path).unwrap().find(&object()).unwrap_err().to_string()
}

#[test]
fn a_path_leads_through_fields() {
    assert_eq!(found(".spec.replicas"), [json!(3)]);
    assert_eq!(found("$.spec.replicas"), [json!(3)]);
    assert_eq!(found(".spec['replicas']"), [json!(3)]);
}

#[test]
fn what_is_missing_is_left_out() {
    assert_eq!(found(".spec.missing.deeper"), [] as [Value; 0]);
    assert_eq!(found(".spec.nothing"), [Value::Null]);
    assert_eq!(found(".spec.nothing.deeper"), [] as [Value; 0]);
}

#[test]
fn a_backslash_keeps_a_dot_in_a_key() {
    assert_eq!(found(r".metadata.annotations.foo\.bar/baz"), [json!("dotted")]);
    assert_eq!(found(r".metadata.annotations['foo\.bar/baz']"), [json!("dotted")]);
    assert_eq!(found(".metadata.annotations['foo.bar/baz']"), [] as [Value; 0]);
}

#[test]
fn conditions_are_found_by_their_type() {
    assert_eq!(found(r#".status.conditions[?(@.type=="Ready")].status"#), [json!("True")]);
    assert_eq!(found(".status.conditions[?(@.type=='Ready')].status"), [json!("True")]);
    assert_eq!(found(r#".status.conditions[?(@.type != "Ready")].status"#), [json!("False")]);
    assert_eq!(found(r#".status.conditions[?(@.type=="No)ne")].status"#), [] as [Value; 0]);
    assert_eq!(found(".status.conditions[?(@.since)].type"), [json!("Ready")]);
    assert_eq!(found(".status.conditions[?(@.since>4)].type"), [json!("Ready")]);
}

#[test]
fn what_differs_in_type_can_not_be_compared() {
    assert_eq!(lost(r#".status.conditions[?(@.since=="5")].type"#), "incompatible types for comparison");
    assert_eq!(lost(".status.conditions[?(@.since==5.0)].type"), "incompatible types for comparison");
}

#[test]
fn lists_are_sliced() {
    assert_eq!(found(".spec.ports[*]"), [json!(80), json!(443), json!(8080)]);
    assert_eq!(found(".spec.ports[0]"), [json!(80)]);
    assert_eq!(found(".spec.ports[-1:]"), [json!(8080)]);
    assert_eq!(found(".spec.ports[-1]"), [json!(8080)]);
    assert_eq!(found(".spec.ports[0:3:2]"), [json!(80), json!(8080)]);
    assert_eq!(found(".spec.ports[0,2]"), [json!(80), json!(8080)]);
    assert_eq!(found(".spec.ports[1:1]"), [] as [Value; 0]);
}

#[test]
fn an_index_that_is_too_large_is_an_error() {
    assert_eq!(lost(".spec.ports[3]"), "array index out of bounds: index 3, length 3");
}

#[test]
fn the_first_of_an_empty_list_is_an_error_and_all_of_it_is_nothing() {
    let list = json!({"a": []});
    assert!(JsonPath::parse(".a[0]").unwrap().find(&list).is_err());
    assert_eq!(JsonPath::parse(".a[*]").unwrap().find(&list), Ok(vec![]));
}

#[test]
fn wildcards_and_descents_find_everything_below() {
    assert_eq!(found(".metadata.annotations.*"), [json!("dotted")]);
    assert_eq!(found("..since"), [json!(5)]);
}

#[test]
fn what_is_no_path_is_not_read() {
    let wrong = |path| JsonPath::parse(path).unwrap_err().to_string();
    assert_eq!(wrong(".a[0"), "unterminated array");
    assert_eq!(wrong(".a[x]"), "invalid array index x");
    assert_eq!(wrong(".a[?(@.b"), "unterminated filter");
    assert_eq!(wrong(".a[?(@.b)"), "unclosed array expect ]");
    assert_eq!(wrong(".a....b"), "invalid multiple recursive descent");
    assert_eq!(wrong("!"), "unrecognized character in action: U+0021 '!'");
    assert_eq!(lost("spec.replicas"), "unrecognized identifier spec");
}

#[test]
fn values_are_told_as_go_tells_them() {
    assert_eq!(text(&json!("a")), "a");
    assert_eq!(text(&json!(3)), "3");
    assert_eq!(text(&json!(1.5)), "1.5");
    assert_eq!(text(&json!(1_234_567.0)), "1.234567e+06");
    assert_eq!(text(&json!(0.000_01)), "1e-05");
    assert_eq!(text(&json!(100_000.0)), "100000");
    assert_eq!(text(&json!(true)), "true");
    assert_eq!(text(&json!(null)), "<no value>");
    assert_eq!(text(&json!({"a": ["<b>"]})), r#"{"a":["\u003cb\u003e"]}"#);
}
