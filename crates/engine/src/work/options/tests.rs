use serde_json::{Value, json};

use super::*;
use crate::work::fixtures::target;

fn configs(value: Value) -> Vec<ManifestConfig> {
    serde_json::from_value(value).unwrap()
}

fn deployment() -> Target {
    target(
        "deployments",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "shop" },
        }),
    )
}

fn identifier(name: &str, namespace: &str) -> Value {
    json!({ "group": "apps", "resource": "deployments", "name": name, "namespace": namespace })
}

#[test]
fn without_configurations_an_object_is_updated_and_nothing_reported() {
    let options = options(&[], &deployment());
    assert_eq!(options.strategy, Strategy::Update);
    assert_eq!((options.feedback.len(), options.conditions.len()), (0, 0));
}

#[test]
fn the_first_to_say_something_wins() {
    let configs = configs(json!([
        { "resourceIdentifier": identifier("*", "shop"), "updateStrategy": { "type": "CreateOnly" } },
        { "resourceIdentifier": identifier("web", "shop"), "updateStrategy": { "type": "ReadOnly" },
          "feedbackRules": [{ "type": "WellKnownStatus" }] },
        { "resourceIdentifier": identifier("web", "*"), "feedbackRules": [{ "type": "JSONPaths" }, { "type": "JSONPaths" }],
          "conditionRules": [{ "condition": "Ready", "type": "WellKnownConditions" }] },
    ]));
    let options = options(&configs, &deployment());
    assert_eq!(options.strategy, Strategy::CreateOnly);
    assert_eq!((options.feedback.len(), options.conditions.len()), (1, 1));
}

#[test]
fn configurations_are_about_their_own_objects() {
    for other in [
        json!({ "resource": "deployments", "name": "web", "namespace": "shop" }),
        json!({ "group": "apps", "resource": "daemonsets", "name": "web", "namespace": "shop" }),
        identifier("web", ""),
        identifier("web-*", "shop"),
        identifier("*", "shop-*"),
    ] {
        let configs = configs(json!([{ "resourceIdentifier": other, "updateStrategy": { "type": "ReadOnly" } }]));
        assert_eq!(options(&configs, &deployment()).strategy, Strategy::Update, "{configs:?}");
    }
}

#[test]
fn server_side_apply_has_defaults() {
    let configs = configs(json!([
        { "resourceIdentifier": identifier("web", "shop"), "updateStrategy": { "type": "ServerSideApply" } },
    ]));
    let expected = Apply { force: false, field_manager: "work-agent", ignored: &[] };
    assert_eq!(options(&configs, &deployment()).strategy, Strategy::Apply(expected));
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text) in
        [("*", ""), ("*", "a"), ("a*", "a"), ("*a", "ba"), ("a*c", "abc"), ("a*b*c", "a-b-b-c"), ("*b*", "abc")]
    {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [("", "a"), ("a", "ab"), ("a*", "ba"), ("a*a", "a"), ("a*b*c", "acb"), ("*b*b*", "abc")] {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}
