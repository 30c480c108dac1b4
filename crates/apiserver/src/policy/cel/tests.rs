use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::*;
use crate::{
    access::{Resource, Rules},
    user::User,
};

struct World<'a> {
    object: &'a Json,
    rules: &'a Rules,
    user: &'a User,
}

impl<'a> Names<'a> for World<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        match name {
            "object" => Some(Value::from(self.object)),
            "oldObject" => Some(Value::Null),
            "authorizer" => {
                let request = Resource { resource: "secrets", namespace: "default", ..Resource::default() };
                Some(Value::Check(Rc::new(Check::new(self.rules, self.user, request))))
            }
            _ => None,
        }
    }

    fn variable(&self, name: &str) -> Result<Value<'a>> {
        error(format!("no such key: {name}"))
    }
}

fn object() -> Json {
    json!({
        "metadata": { "name": "c1", "labels": { "env": "prod" }, "annotations": null },
        "spec": { "replicas": 3, "ratio": 0.5, "taints": [{ "key": "a" }, { "key": "b", "value": "x" }] },
        "time": "2026-01-01T00:00:00Z",
    })
}

fn rules() -> Rules {
    let mut rules = Rules::default();
    let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"] });
    rules.apply("ClusterRole", &json!({ "metadata": { "name": "r" }, "rules": [rule] }));
    let subjects = json!([{ "kind": "User", "name": "jane" }]);
    let reference = json!({ "kind": "ClusterRole", "name": "r" });
    rules.apply(
        "ClusterRoleBinding",
        &json!({ "metadata": { "name": "b" }, "roleRef": reference, "subjects": subjects }),
    );
    rules
}

fn outcome(source: &str) -> std::result::Result<bool, String> {
    let (object, rules) = (object(), rules());
    let user = User { name: "jane".into(), ..User::default() };
    let expression = Expression::compile(source, &["object", "oldObject", "authorizer"]).map_err(|error| error.0)?;
    let names = World { object: &object, rules: &rules, user: &user };
    match expression.evaluate(&names, &Budget::new(10_000_000)) {
        Ok(Value::Bool(truth)) => Ok(truth),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.0),
    }
}

fn assert_holds(sources: &[&str]) {
    for source in sources {
        assert_eq!(outcome(source), Ok(true), "{source}");
    }
}

#[test]
fn whole_numbers_are_signed_and_equal_across_types() {
    assert_holds(&[
        "object.spec.replicas == 3",
        "object.spec.replicas == 3.0 && 3u == 3 && object.spec.ratio < 1",
        "object.spec.replicas / 2 == 1 && object.spec.replicas % 2 == 1 && -object.spec.replicas == -3",
    ]);
}

#[test]
fn an_optional_stays_one_wherever_it_goes() {
    assert_holds(&[
        "[object.?spec, object.?nothing].filter(part, part.hasValue()).size() == 1",
        "[object.?spec, object.?nothing].map(part, part.?replicas).exists(r, r.hasValue() && r.value() == 3)",
        "object.?spec.?replicas == optional.of(3)",
        "object.?nothing == object.?nothing && object.?spec != object.?nothing",
        "object.?spec in [object.?metadata, object.?spec] && !(object.?spec in [])",
        "object.?spec.replicas.orValue(0) == 3",
        "object.metadata.?labels[?'env'].orValue('') == 'prod'",
        "object.?nothing.labels[?'env'].orValue('none') == 'none'",
        "object.?nothing.or(object.?spec).hasValue()",
        "object.?spec.optMap(s, s.replicas + 1).value() == 4 && !object.?nothing.optMap(s, s).hasValue()",
        "[?object.?nothing, ?object.?spec].size() == 1 && {?'a': object.?nothing} == {}",
        "!optional.ofNonZeroValue('').hasValue()",
    ]);
}

#[test]
fn what_has_no_fields_has_none_that_are_optional() {
    assert_holds(&[
        "!oldObject.?spec.hasValue() && !object.metadata.annotations.?x.hasValue()",
        "has(object.metadata.annotations) && object.metadata.annotations == null && !has(object.metadata.name.x)",
    ]);
    assert_eq!(outcome("oldObject.spec == 1"), Err("no such key: spec".into()));
    assert_eq!(outcome("object.metadata.name.first == 1"), Err("no such key: first".into()));
}

#[test]
fn one_side_that_decides_is_enough() {
    assert_holds(&[
        "true || object.nothing",
        "object.nothing || true",
        "!(object.nothing && false)",
        "object.spec.taints.exists(t, t.value == 'x')",
        "!object.spec.taints.all(t, t.value == 'y')",
        "object.spec.taints.exists_one(t, t.key == 'a')",
    ]);
    assert_eq!(outcome("object.spec.taints.exists(t, t.value == 'y')"), Err("no such key: value".into()));
    assert_eq!(outcome("object.spec.taints.exists_one(t, t.value == 'x')"), Err("no such key: value".into()));
    assert_eq!(outcome("object.nothing && true"), Err("no such key: nothing".into()));
}

#[test]
fn lists_and_maps_compare_by_what_is_in_them() {
    assert_holds(&[
        "object.spec.taints.map(t, {'key': t.key, 'value': t.?value.orValue('')}) == [{'key': 'a', 'value': ''}, {'value': 'x', 'key': 'b'}]",
        "object.metadata.labels == {'env': 'prod'} && 'env' in object.metadata.labels && !('x' in object.metadata.labels)",
        "object.metadata.labels.all(key, key.startsWith('e')) && [1, 2] + [3] == [1, 2, 3]",
        "{1: 'a'}[1] == 'a' && [1, 2][1] == 2",
        "object.spec.taints.map(t, t.key).join(', ') == 'a, b'",
        "object.spec.taints.filter(t, has(t.value)).size() == 1 && size('äb') == 2",
    ]);
    assert_eq!(outcome("[1][1] == 1"), Err("index out of bounds: 1".into()));
}

#[test]
fn libraries_are_there() {
    assert_holds(&[
        "timestamp(object.time) - timestamp('2025-12-31T23:59:59Z') <= duration('1s')",
        "timestamp(object.time) == timestamp(object.time)",
        "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "'a-b'.matches('^[a-z]-b$') && 'A'.lowerAscii() == 'a' && sets.contains([1, 2], [1])",
        "string(1) == '1' && int('2') == 2 && type(1) == int && dyn(1) == 1",
        "cel.bind(x, 2, x * x) == 4",
    ]);
}

#[test]
fn rights_can_be_asked_for() {
    let secrets = "authorizer.group('').resource('secrets')";
    assert_eq!(outcome(&format!("{secrets}.name('s').check('get').allowed()")), Ok(true));
    assert_eq!(outcome(&format!("{secrets}.name('s').namespace('x').check('get').allowed()")), Ok(true));
    assert_eq!(outcome(&format!("{secrets}.check('get').allowed()")), Ok(false));
    assert_eq!(outcome(&format!("{secrets}.subresource('x').name('s').check('get').allowed()")), Ok(false));
    assert_holds(&[
        "authorizer.group('').resource('secrets').name('s').check('get').reason().startsWith('RBAC: allowed by')",
        "!authorizer.path('/healthz').check('get').allowed() && !authorizer.path('/healthz').check('get').errored()",
        "!authorizer.serviceAccount('default', 'robot').group('').resource('secrets').name('s').check('get').allowed()",
        "!authorizer.requestResource.check('list').allowed()",
    ]);
}

#[test]
fn names_that_there_are_not_are_refused_when_compiled() {
    for source in
        ["x == 1", "true || frobnicate(1)", "object.frobnicate()", "[1].all(x, y == 1)", "", "object ==", "lib.f(1)"]
    {
        assert!(outcome(source).expect_err(source).starts_with("compilation failed: "), "{source}");
    }
}

#[test]
fn an_expression_has_a_cost() {
    let check = "authorizer.path('/x').check('get').allowed()";
    assert_eq!(outcome(&format!("!{check} && !{check}")), Ok(true));
    let exceeded = Err("operation cancelled: actual cost limit exceeded".to_owned());
    assert_eq!(outcome(&format!("!{check} && !{check} && !{check}")), exceeded);
    let numbers = format!("[{}]", vec!["1"; 200].join(","));
    assert_eq!(outcome(&format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a == b)))")), exceeded);
    let nested = |depth| outcome(&format!("{}true{}", "!(".repeat(depth), ")".repeat(depth)));
    assert_eq!(nested(198), Ok(true));
    assert!(nested(500).is_err());
}
