use serde_json::{Value as Json, json};

use super::*;

struct World<'a> {
    object: &'a Json,
}

impl<'a> Names<'a> for World<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        match name {
            "object" => Some(Value::from(self.object)),
            "oldObject" => Some(Value::Null),
            _ => None,
        }
    }
}

fn object() -> Json {
    json!({
        "metadata": { "name": "c1", "labels": { "env": "prod" }, "annotations": null },
        "spec": { "replicas": 3, "ratio": 0.5, "taints": [{ "key": "a" }, { "key": "b", "value": "x" }] },
        "time": "2026-01-01T00:00:00Z",
    })
}

fn outcome(source: &str) -> std::result::Result<bool, String> {
    let object = object();
    let expression = Expression::compile(source, &["object", "oldObject"]).map_err(|error| error.0)?;
    match expression.evaluate(&World { object: &object }, &Budget::new(10_000_000)) {
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
    for (source, expected) in [
        ("[1][1] == 1", "index out of bounds: 1"),
        ("'a'.charAt(2) == ''", "index out of range: 2"),
        ("'a'.substring(1, 0) == ''", "invalid substring range. start: 1, end: 0"),
        ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
        ("[1].slice(-1, 2) == []", "cannot slice(-1, 2), negative indexes not supported"),
        ("int('a') == 1", "type conversion error from 'string' to 'int'"),
    ] {
        assert_eq!(outcome(source), Err(expected.into()));
    }
}

#[test]
fn loops_can_have_two_names() {
    assert_holds(&[
        "object.metadata.labels.all(key, value, key == 'env' && value == 'prod')",
        "object.spec.taints.exists(at, taint, at == 1 && taint.key == 'b')",
        "object.spec.taints.exists_one(at, taint, taint.key == 'b') && object.spec.taints.existsOne(at, t, at == 0)",
        "object.spec.taints.transformList(at, taint, string(at) + taint.key) == ['0a', '1b']",
        "object.spec.taints.transformList(at, taint, at > 0, taint.key) == ['b']",
        "object.spec.taints.transformMap(at, taint, taint.key) == {0: 'a', 1: 'b'}",
        "object.spec.taints.transformMap(at, taint, at > 0, taint.key) == {1: 'b'}",
        "object.spec.taints.transformMapEntry(at, taint, {taint.key: at}) == {'a': 0, 'b': 1}",
        "[3, 1, 2].sortBy(n, -n) == [3, 2, 1] && object.spec.taints.sortBy(t, t.key)[0].key == 'a'",
        "[optional.of(1), optional.none()].unwrapOpt() == [1] && bool('true')",
    ]);
    let twice = "['a', 'a'].transformMapEntry(at, text, {text: at}) == {}";
    assert_eq!(outcome(twice), Err("insert failed: key a already exists".into()));
    assert!(outcome("[1].all(a, a, true)").unwrap_err().contains("duplicate variable name: a"));
}

#[test]
fn long_lists_are_made_in_no_time() {
    let items = "lists.range(20000)";
    assert_holds(&[
        &format!("{items}.map(n, n * 2).filter(n, n % 4 == 0).size() == 10000"),
        &format!("{items}.transformMap(at, n, n).size() == 20000"),
    ]);
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
        "'abc'.split('') == ['a', 'b', 'c'] && 'a,b'.split(',') == ['a', 'b'] && string(true) == 'true'",
        "'äbc'.substring(1) == 'bc' && 'abc'.substring(1, 2) == 'b' && 'äbc'.charAt(0) == 'ä' && 'a'.charAt(1) == ''",
        "[1, 2, 3].slice(1, 3) == [2, 3] && optional.of(1).orValue([][0]) == 1",
        "--object.spec.replicas == 3 && 1--1 == 2 && (- -4) == 4 && 1 - --2 == -1",
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
    let exceeded = Err("operation cancelled: actual cost limit exceeded".to_owned());
    let numbers = format!("[{}]", vec!["1"; 200].join(","));
    assert_eq!(outcome(&format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a == b)))")), exceeded);
    assert_eq!(outcome(&format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a == b))) || true")), exceeded);
    let doubled = "[object.metadata.name]".to_owned() + &".map(x, x + x)".repeat(40) + ".size() == 1";
    assert_eq!(outcome(&doubled), exceeded);
    let long = "object.metadata.name.replace('', 'a'.replace('', lists.range(3000).map(n, 'abcdefghij').join('')))";
    assert_eq!(outcome(&format!("{long}.replace('', {long}).size() == 1")), exceeded);
    assert_eq!(outcome(&format!("lists.range(1000).map(n, 'a').join({long}).size() == 1")), exceeded);
    let nested = |depth| outcome(&format!("{}true{}", "!(".repeat(depth), ")".repeat(depth)));
    assert_eq!(nested(198), Ok(true));
    assert!(nested(500).is_err());
}
