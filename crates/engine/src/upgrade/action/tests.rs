//! How it is told that an action is done.

use drover_api::{grammar::SetFingerprint, work::ManifestWork};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::{upgrade::naming::Part, workreport::Note};

fn action(work: &Value) -> Action {
    let written = serde_json::from_value(json!({ "manifestWork": work })).expect("an action");
    Action::of(&written, Duration::from_hours(2))
}

fn job(name: &str) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "ops" } })
}

fn note() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "note", "namespace": "ops" } })
}

/// How far an action is of whose work this is said.
fn doing(action: &Action, said: &[(&str, &str)]) -> Doing {
    let condition = |(type_, status): &(&str, &str)| {
        json!({ "type": type_, "status": status, "reason": "", "message": format!("{type_} {status}"),
            "observedGeneration": 1, "lastTransitionTime": "2027-01-15T08:00:00Z" })
    };
    let conditions: Vec<_> = said.iter().map(condition).collect();
    let object =
        json!({ "metadata": { "name": "work", "generation": 1 }, "spec": {}, "status": { "conditions": conditions } });
    let work: ManifestWork = serde_json::from_value(object).expect("a work");
    let sent = Note { set: SetFingerprint::of([0; 8]), since: Timestamp::UNIX_EPOCH };
    action.doing(&PartWork::of(&work, Part::PreAction, sent))
}

/// The rules of each object, by name.
fn rules(action: &Action) -> Vec<(&str, Vec<&str>)> {
    let conditions = |config| -> Vec<_> {
        let config: &ManifestConfig = config;
        config.condition_rules.iter().map(|rule| rule.condition.as_str()).collect()
    };
    let configs = action.order.spec.manifest_configs.iter();
    configs.map(|config| (config.resource_identifier.name.as_str(), conditions(config))).collect()
}

#[test]
fn jobs_are_given_rules_and_nothing_else_is() {
    let two = action(&json!({ "workload": { "manifests": [job("backup"), note(), job("drain")] } }));
    assert_eq!(rules(&two), [("backup", vec!["Complete", "Degraded"]), ("drain", vec!["Complete", "Degraded"])]);
    let plain = action(&json!({ "workload": { "manifests": [note()] } }));
    assert_eq!(rules(&plain), []);
    let other =
        json!({ "apiVersion": "example.com/v1", "kind": "Job", "metadata": { "name": "other", "namespace": "ops" } });
    assert_eq!(rules(&action(&json!({ "workload": { "manifests": [other] } }))), []);
}

#[test]
fn rules_that_are_there_are_kept() {
    let identifier = json!({ "group": "batch", "resource": "jobs", "name": "backup", "namespace": "ops" });
    let own = |condition: &str| json!({ "type": "CEL", "condition": condition, "celExpressions": ["true"] });
    let with = |rules: &[Value]| {
        let config = json!({ "resourceIdentifier": identifier, "conditionRules": rules });
        action(&json!({ "workload": { "manifests": [job("backup")] }, "manifestConfigs": [config] }))
    };
    let kept = with(&[own("Complete")]);
    assert_eq!(rules(&kept), [("backup", vec!["Complete", "Degraded"])]);
    let first = &kept.order.spec.manifest_configs[0].condition_rules[0];
    assert_eq!(
        (first.kind, first.cel_expressions.as_slice()),
        (ConditionRuleType::Cel, ["true".to_owned()].as_slice())
    );
    let both = with(&[own("Degraded"), own("Complete")]);
    assert_eq!(rules(&both), [("backup", vec!["Degraded", "Complete"])]);
}

#[test]
fn what_says_when_it_is_done_is_done_then() {
    let (applied, available) = (("Applied", "True"), ("Available", "True"));
    let backup = action(&json!({ "workload": { "manifests": [job("backup")] } }));
    let cases: [(&[(&str, &str)], Doing); 7] = [
        (&[], Doing::Sent),
        (&[applied, available], Doing::Progressing),
        (&[applied, available, ("Complete", "False"), ("Degraded", "False")], Doing::Progressing),
        (&[applied, ("Complete", "True"), ("Degraded", "False")], Doing::Available),
        // What has done its work need not be there for ever.
        (&[applied, ("Available", "False"), ("Complete", "True")], Doing::Available),
        (&[applied, available, ("Degraded", "True")], Doing::Degraded(Some("Degraded True".to_owned()))),
        (&[("Applied", "False")], Doing::Degraded(Some("Applied False".to_owned()))),
    ];
    for (said, expected) in cases {
        assert_eq!(doing(&backup, said), expected, "{said:?}");
    }
    // Nothing says of a ConfigMap when it is done, so that it is when it is there.
    let plain = action(&json!({ "workload": { "manifests": [note()] } }));
    assert_eq!(doing(&plain, &[applied]), Doing::Progressing);
    assert_eq!(doing(&plain, &[applied, available]), Doing::Available);
}

#[test]
fn an_action_has_a_time_of_its_own_or_that_of_clusters() {
    assert_eq!(action(&json!({ "workload": { "manifests": [note()] } })).limit, Duration::from_hours(2));
    let written = json!({ "manifestWork": { "workload": { "manifests": [note()] } }, "timeout": "5m" });
    let written = serde_json::from_value(written).expect("an action");
    assert_eq!(Action::of(&written, Duration::from_hours(2)).limit, Duration::from_mins(5));
}
