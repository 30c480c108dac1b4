use serde_json::{Value, json};

use super::Labels;

fn object() -> Value {
    json!({"metadata": {"labels": {"env": "prod", "tier": "web", "size": "12", "empty": "", "in": "x"}}})
}

fn matches(selector: &str) -> bool {
    Labels::parse(selector).unwrap().matches(&object())
}

fn refused(selector: &str) -> String {
    let failure = Labels::parse(selector).unwrap_err();
    assert_eq!((failure.code, failure.reason), (400, "BadRequest"));
    failure.message
}

#[test]
fn every_requirement_has_to_hold() {
    for selector in [
        "",
        "env=prod",
        "env==prod",
        "env = prod, tier",
        "env!=dev",
        "missing!=dev",
        "env in (dev,prod)",
        "env notin (dev)",
        "missing notin (a)",
        "!missing",
        "size>11",
        "size<13",
        "empty=",
        "empty in ()",
        "in in (x)",
        "in=x",
        "empty",
        "empty in (a,,b)",
    ] {
        assert!(matches(selector), "{selector}");
    }
    for selector in [
        "env=dev",
        "env=prod,tier=db",
        "env!=prod",
        "env in (dev,test)",
        "env notin (prod)",
        "!env",
        "missing",
        "size>12",
        "env>1",
        "missing=",
        "missing in (a)",
    ] {
        assert!(!matches(selector), "{selector}");
    }
}

#[test]
fn an_object_without_labels_has_none() {
    assert!(Labels::parse("!env").unwrap().matches(&json!({"metadata": {}})));
    assert!(!Labels::parse("env").unwrap().matches(&json!({})));
}

#[test]
fn a_selector_that_makes_no_sense_is_refused_as_kubernetes_does() {
    assert_eq!(refused("a b"), "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    assert_eq!(refused("a,"), "found '', expected: identifier after ','");
    assert_eq!(refused(",a"), "found ',', expected: !, identifier, or 'end of string'");
    assert_eq!(refused("a in b"), "unable to parse requirement: found 'b' expected: '('");
    assert_eq!(refused("a in (b"), "unable to parse requirement: found '', expected: ',' or ')'");
    assert_eq!(refused("a in (=)"), "unable to parse requirement: found '=', expected: ',', ')' or identifier");
    assert_eq!(refused("a=b=c"), "found '=', expected: ',' or 'end of string'");
    assert_eq!(refused("a=!"), "unable to parse requirement: found '!', expected: identifier");
    assert_eq!(refused("!"), "unable to parse requirement: found '', expected: identifier");
    assert_eq!(
        refused("a=-"),
        "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be an empty string or consist of \
         alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
         'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    );
    assert_eq!(
        refused("-a"),
        "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', \
         '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
         regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    );
    assert_eq!(
        refused("a>b"),
        "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"
    );
}

#[test]
fn selectors_are_written_in_order() {
    let text = Labels::parse("z,!y,x in (b, a),w!=1,v==2,u>3").unwrap().to_string();
    assert_eq!(text, "u>3,v==2,w!=1,x in (a,b),!y,z");
}

#[test]
fn a_selector_in_an_object_is_a_selector() {
    let read = |selector: Value| Labels::read(Some(&selector));
    let selector = read(json!({
        "matchLabels": {"env": "prod"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["web", "db"]}, {"key": "x", "operator": "DoesNotExist"}],
    }))
    .unwrap();
    assert!(selector.matches(&object()));
    assert_eq!(selector.to_string(), "env=prod,tier in (db,web),!x");
    assert!(read(json!({})).unwrap().is_everything());
    assert_eq!(Labels::read(None), Ok(Labels::Nothing));
    assert!(!Labels::Nothing.matches(&object()));
    let refused = |expression: Value| read(json!({"matchExpressions": [expression]})).unwrap_err().to_string();
    assert_eq!(refused(json!({"key": "a", "operator": "Is"})), "\"Is\" is not a valid label selector operator");
    assert_eq!(
        refused(json!({"key": "a", "operator": "In"})),
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    );
}
