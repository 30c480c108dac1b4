mod types;

use serde_json::json;

use super::*;

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn rules(spec: &Value) -> Rules {
    let openapi = json!({ "type": "object", "properties": { "spec": spec } });
    Rules::compile(&openapi).unwrap_or_else(|errors| panic!("{:?}", told(&errors)))
}

#[track_caller]
fn assert_said(spec: &Value, new: &Value, old: Option<&Value>, expected: &[&str]) {
    let old = old.map(|old| json!({ "spec": old }));
    assert_eq!(told(&rules(spec).check(&json!({ "spec": new }), old.as_ref())), expected);
}

#[test]
fn what_is_broken_is_told_with_its_message() {
    let spec = |rule: Value| {
        json!({ "type": "object", "x-kubernetes-validations": [rule],
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } })
    };
    let object = json!({ "a": 2, "b": 1 });
    assert_said(
        &spec(json!({ "rule": "self.a < self.b", "message": "a first" })),
        &object,
        None,
        &["spec: Invalid value: a first"],
    );
    assert_said(
        &spec(json!({ "rule": "self.a < self.b" })),
        &object,
        None,
        &["spec: Invalid value: failed rule: self.a < self.b"],
    );
    let made = json!({ "rule": "self.a < self.b", "message": "no", "messageExpression": "'a is ' + string(self.a)" });
    assert_said(&spec(made), &object, None, &["spec: Invalid value: a is 2"]);
    let forbidden =
        json!({ "rule": "self.a < self.b", "message": "no", "reason": "FieldValueForbidden", "fieldPath": ".a" });
    assert_said(&spec(forbidden), &object, None, &["spec.a: Forbidden: no"]);
    assert_said(&spec(json!({ "rule": "self.a < 9" })), &object, None, &[]);
    let missing = spec(json!({ "rule": "self.a < self.b", "message": "m" }));
    assert_said(
        &missing,
        &json!({ "a": 1 }),
        None,
        &[r#"spec: Invalid value: "object": no such key: b evaluating rule: m"#],
    );
}

#[test]
fn plain_values_are_shown() {
    let spec = json!({ "type": "object", "properties": { "a": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self > 1", "message": "more" }] } } });
    assert_said(&spec, &json!({ "a": 1 }), None, &["spec.a: Invalid value: 1: more"]);
}

#[test]
fn rules_about_changes_need_something_before() {
    let spec = json!({ "type": "object", "properties": { "a": { "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "stays" }] } } });
    assert_said(&spec, &json!({ "a": "x" }), None, &[]);
    assert_said(&spec, &json!({ "a": "x" }), Some(&json!({})), &[]);
    assert_said(&spec, &json!({ "a": "x" }), Some(&json!({ "a": "y" })), &[r#"spec.a: Invalid value: "x": stays"#]);
    let optional = json!({ "type": "string", "x-kubernetes-validations": [
        { "rule": "oldSelf.hasValue() || self == 'first'", "message": "begin", "optionalOldSelf": true }] });
    assert_said(&optional, &json!("x"), None, &[r#"spec: Invalid value: "x": begin"#]);
    assert_said(&optional, &json!("x"), Some(&json!("y")), &[]);
}

#[test]
fn items_are_compared_by_their_keys() {
    let item = json!({ "type": "object", "properties": { "name": { "type": "string" }, "n": { "type": "integer" } },
        "x-kubernetes-validations": [{ "rule": "self.n >= oldSelf.n", "message": "grows" }] });
    let spec = json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item });
    let old = json!([{ "name": "a", "n": 1 }, { "name": "b", "n": 5 }]);
    assert_said(
        &spec,
        &json!([{ "name": "b", "n": 4 }, { "name": "c", "n": 0 }]),
        Some(&old),
        &["spec[0]: Invalid value: grows"],
    );
}

#[test]
fn what_was_broken_before_does_not_count() {
    let spec = json!({ "type": "object", "properties": {
        "a": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self < 2", "message": "small" }] }, "b": { "type": "string" } } });
    assert_said(&spec, &json!({ "a": 3, "b": "new" }), Some(&json!({ "a": 3 })), &[]);
    assert_said(&spec, &json!({ "a": 4 }), Some(&json!({ "a": 3 })), &["spec.a: Invalid value: 4: small"]);
}

#[test]
fn items_that_were_broken_before_do_not_count() {
    let item = json!({ "type": "object", "properties": { "name": { "type": "string" }, "n": { "type": "integer" } },
        "x-kubernetes-validations": [{ "rule": "self.n < 2", "message": "small" }] });
    let keyed = json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item });
    let atomic = json!({ "type": "array", "items": item });
    let (old, moved) = (json!([{ "name": "a", "n": 5 }]), json!([{ "name": "b", "n": 1 }, { "name": "a", "n": 5 }]));
    assert_said(&keyed, &moved, Some(&old), &[]);
    assert_said(&atomic, &moved, Some(&old), &["spec[1]: Invalid value: small"]);
    assert_said(&atomic, &old, Some(&old), &[]);
}

#[test]
fn rules_see_values_as_their_schema_has_them() {
    let spec = json!({ "type": "object", "properties": {
        "namespace": { "type": "string" }, "ratio": { "type": "number" }, "since": { "type": "string", "format": "date-time" },
        "for": { "type": "string", "format": "duration" }, "data": { "type": "string", "format": "byte" },
        "map": { "type": "object", "additionalProperties": { "type": "string" } }, "a-b": { "type": "string" },
        "missing": { "type": "string" }, "nothing": { "type": "string", "nullable": true },
        "set": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
        "port": { "x-kubernetes-int-or-string": true }, "host": { "x-kubernetes-int-or-string": true },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "template": { "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
    }, "x-kubernetes-validations": [
        { "rule": "self.__namespace__ == 'a' && self.a__dash__b == 'b'" },
        { "rule": "self.ratio < 1.5" },
        { "rule": "self.since < timestamp('2030-01-01T00:00:00Z') && self.__for__ == duration('1h')" },
        { "rule": "self.data == b'a'" },
        { "rule": "self.map['x-y'] == 'z' && self.map.all(k, k.startsWith('x'))" },
        { "rule": "self.?missing.orValue('none') == 'none'" },
        { "rule": "!has(self.missing) && !has(self.nothing)" },
        { "rule": "!!has(self.ratio)" },
        { "rule": "self.set == ['b', 'a'] && self.set + ['a', 'c'] == ['a', 'b', 'c']" },
        { "rule": "self.port == 1 && self.host == 'a' && type(self.port) == int && type(self.host) == string" },
        { "rule": "self.open == self.open && self.template.metadata.name == 't' && self.template.kind == 'T'" },
    ] });
    let object = json!({ "namespace": "a", "a-b": "b", "ratio": 1, "since": "2024-01-01T00:00:00Z", "for": "1h", "data": "YQ==", "map": { "x-y": "z" },
        "nothing": null, "set": ["a", "b"], "port": 1, "host": "a", "open": { "a": 1 }, "template": { "kind": "T", "metadata": { "name": "t" } } });
    assert_said(&spec, &object, None, &[]);
}

#[test]
fn of_a_resource_its_name_is_seen() {
    let openapi = json!({ "type": "object", "x-kubernetes-validations": [{ "rule": "self.metadata.name == 'a' && !has(self.metadata.generateName)", "message": "name" }] });
    let rules = Rules::compile(&openapi).unwrap();
    let object = |name: &str| json!({ "metadata": { "name": name, "labels": {} } });
    assert_eq!(told(&rules.check(&object("a"), None)), Vec::<String>::new());
    assert_eq!(told(&rules.check(&object("b"), None)), ["<nil>: Invalid value: name"]);
}

#[test]
fn what_can_not_be_compiled_is_told_with_its_place() {
    let compile = |rule: Value| {
        let openapi = json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "string", "x-kubernetes-validations": [rule] } } } });
        Rules::compile(&openapi).unwrap_err()
    };
    for (rule, detail) in [
        (json!({ "rule": "self ==" }), "compilation failed: "),
        (json!({ "rule": "self == other" }), "compilation failed: ERROR: <input>:1:9: undeclared reference to 'other'"),
        (
            json!({ "rule": "self.frobnicate()" }),
            "compilation failed: ERROR: <input>:1:16: undeclared reference to 'frobnicate'",
        ),
        (json!({ "rule": "'a'" }), "cel expression must evaluate to a bool"),
        (
            json!({ "rule": "self == oldSelf" }),
            "oldSelf cannot be used on the uncorrelatable portion of the schema within properties[a]",
        ),
    ] {
        let printed = format!("{}: ", rule::as_kubernetes_prints(&rule));
        let errors = compile(rule);
        assert_eq!(errors[0].field, "properties[a].items.x-kubernetes-validations[0].rule");
        let told = errors[0].detail.trim_start_matches(&printed);
        assert!(told.starts_with(detail), "{told}");
    }
}

#[test]
fn deep_rules_neither_overflow_nor_panic() {
    let rule = format!("{}self{} == 1", "(1 + ".repeat(60), ")".repeat(60));
    let spec = json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": rule, "message": "sum" }] });
    assert_said(&spec, &json!(2), None, &["spec: Invalid value: 2: sum"]);
    for endless in [
        format!("{}self{}", "(".repeat(5000), ")".repeat(5000)),
        "!".repeat(4000) + "self",
        "self && ".repeat(1000) + "self",
        "1 + ".repeat(2000) + "1 == self",
    ] {
        let openapi = json!({ "type": "boolean", "x-kubernetes-validations": [{ "rule": endless }] });
        if let Ok(rules) = Rules::compile(&openapi) {
            assert_eq!(told(&rules.check(&json!(true), None)), Vec::<String>::new());
        }
    }
}

#[test]
fn deep_loops_are_evaluated() {
    let deep = format!("{}self > 0{}", "[1].all(x, ".repeat(240), ")".repeat(240));
    let spec = json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": deep, "message": "more" }] });
    assert_said(&spec, &json!(1), None, &[]);
    assert_said(&spec, &json!(0), None, &["spec: Invalid value: 0: more"]);
}

fn list_with(rules: &Value) -> Value {
    json!({ "type": "array", "items": { "type": "integer" }, "x-kubernetes-validations": rules })
}

#[test]
fn a_rule_may_cost_only_so_much() {
    let spec = list_with(&json!([
        { "rule": "self.all(a, self.all(b, self.all(c, a + b + c < 0))) || true", "message": "all" },
        { "rule": "false", "message": "never asked" },
    ]));
    let numbers = |count: usize| json!(vec![-1; count]);
    let said = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: all";
    assert_said(&spec, &numbers(10), None, &["spec: Invalid value: never asked"]);
    assert_said(&spec, &numbers(200), None, &[&format!("spec: Invalid value: \"array\": {said}")]);
}

#[test]
fn all_rules_may_cost_only_so_much() {
    let costly = json!({ "rule": "self.all(a, self.all(b, a + b < 0))", "message": "costly" });
    let spec = list_with(&json!([
        costly, costly, costly, costly, costly, costly, costly, costly, costly, costly, costly, costly, costly, costly,
        costly
    ]));
    let said = r#"spec: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run"#;
    assert_said(&spec, &json!(vec![-1; 350]), None, &[said]);
    assert_said(&spec, &json!(vec![-1; 30]), None, &[]);
}

#[test]
fn a_message_may_cost_only_so_much() {
    let message = "self.all(a, self.all(b, self.all(c, a + b + c < 0))) ? 'a' : 'b'";
    let spec = list_with(&json!([{ "rule": "false", "messageExpression": message }]));
    let said = format!(
        r#"no further validation rules will be run due to call cost exceeds limit for messageExpression: "{message}""#
    );
    assert_said(&spec, &json!(vec![-1; 200]), None, &[&format!("spec: Invalid value: \"array\": {said}")]);
}

#[test]
fn broken_objects_are_not_asked() {
    let required = FieldError::bare(ErrorKind::Required, &Path::Root.field("a"), "");
    let expected = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    assert_eq!(blocked(&[required]).unwrap().to_string(), expected);
    assert_eq!(blocked(&[FieldError::new(ErrorKind::Invalid, &Path::Root, "", "")]), None);
}
