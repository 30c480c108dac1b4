//! What is said of rules that do not fit their schema, held against what Kubernetes says.

use super::*;

fn schema(rule: &Value) -> Value {
    json!({ "type": "object", "x-kubernetes-validations": [rule], "properties": { "spec": { "type": "object", "properties": {
        "n": { "type": "integer" }, "s": { "type": "string" }, "d": { "type": "number" }, "b": { "type": "boolean" },
        "ios": { "x-kubernetes-int-or-string": true }, "any": { "x-kubernetes-preserve-unknown-fields": true },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "list": { "type": "array", "items": { "type": "string" } }, "ints": { "type": "array", "items": { "type": "integer" } },
        "objs": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" }, "n": { "type": "integer" } } } },
        "map": { "type": "object", "additionalProperties": { "type": "string" } },
        "time": { "type": "string", "format": "date-time" }, "for": { "type": "string", "format": "duration" },
        "data": { "type": "string", "format": "byte" }, "namespace": { "type": "string" }, "a-b": { "type": "string" },
        "null": { "type": "string", "nullable": true },
        "emb": { "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
    } } } })
}

/// What is said of a rule; nothing if it is accepted.
fn said_of(rule: &Value) -> String {
    let printed = format!("{}: ", rule::as_kubernetes_prints(rule));
    let said = |errors: Vec<FieldError>| errors[0].detail.strip_prefix(&printed).unwrap_or_default().to_owned();
    Rules::compile(&schema(rule)).map_or_else(said, |_| String::new())
}

#[test]
fn rules_are_judged_as_by_kubernetes() {
    let cases = include_str!("kubernetes.txt").split("\n> ").skip(1);
    let mut wrong = Vec::new();
    for case in cases {
        let (rule, expected) = case.split_once('\n').unwrap_or((case, ""));
        let said = said_of(&json!({ "rule": rule }));
        if said != expected.trim_end() {
            wrong.push(format!("{rule}\n  kubernetes: {}\n  here:       {said}", expected.trim_end()));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn messages_are_texts_with_the_same_types() {
    let with_message = |message: &str| said_of(&json!({ "rule": "true", "messageExpression": message }));
    assert_eq!(with_message("'n is ' + string(self.spec.n)"), "");
    assert_eq!(with_message("self.spec.n"), "messageExpression must evaluate to a string");
    let said = "messageExpression compilation failed: ERROR: <input>:1:10: undefined field 'none'\n | self.spec.none\n | .........^";
    assert_eq!(with_message("self.spec.none"), said);
    let both = json!({ "rule": "self.none", "messageExpression": "self.none" });
    assert_eq!(Rules::compile(&schema(&both)).unwrap_err().len(), 1);
}

#[test]
fn what_was_before_may_be_wrapped() {
    let wrapped = |rule: &str| said_of(&json!({ "rule": rule, "optionalOldSelf": true }));
    assert_eq!(wrapped("!oldSelf.hasValue() || oldSelf.value().spec.n == self.spec.n"), "");
    assert_eq!(wrapped("oldSelf.spec.n.orValue(1) == 1"), "");
    let said = wrapped("oldSelf.spec.n == self.spec.n");
    let overload = "found no matching overload for '_==_' applied to '(optional_type(int), int)'";
    assert!(said.starts_with(&format!("compilation failed: ERROR: <input>:1:16: {overload}")), "{said}");
}

#[test]
fn what_rules_can_not_see_they_can_not_be_about() {
    let openapi = json!({ "type": "object", "properties": { "a": { "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{ "rule": "true" }] } } });
    let said = "properties[a].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
    assert_eq!(told(&Rules::compile(&openapi).unwrap_err()), [said]);
}

#[test]
fn types_that_double_with_each_step_are_given_up() {
    let doubling = (0..60).fold("[1]".to_owned(), |list, _| format!("{list}.map(x, {{[x]: [x]}})"));
    assert_eq!(said_of(&json!({ "rule": format!("{doubling}.size() == 1") })), "");
}

#[test]
fn rules_are_repeated_as_go_prints_them() {
    let rule = json!({ "rule": "self.none < 1 && true", "reason": "FieldValueForbidden" });
    let said = r#"{"Rule":"self.none \u003c 1 \u0026\u0026 true","Message":"","MessageExpression":"","Reason":"FieldValueForbidden","FieldPath":"","OptionalOldSelf":null}: "#;
    assert!(Rules::compile(&schema(&rule)).unwrap_err()[0].detail.starts_with(said));
}
