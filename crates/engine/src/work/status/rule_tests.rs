//! Conditions that rules have made, of manifests and of works.

use drover_api::work::ConditionRule;
use serde_json::json;

use super::*;

fn rules(value: &Value) -> Rules {
    let rules: Vec<ConditionRule> = serde_json::from_value(value.clone()).unwrap();
    Rules::compile(&rules)
}

/// A rule that makes a condition what the object's field of that name says.
fn rule(condition: &str) -> Value {
    json!({ "type": "CEL", "condition": condition, "celExpressions": [format!("object.{condition}")] })
}

fn moment(generation: i64, second: i64) -> Moment {
    Moment { generation, now: Timestamp::from_second(second).unwrap(), raw_json: RawJson::Refused }
}

fn facts<'a>(rules: &'a Rules, lives: &'a [Option<Value>]) -> Vec<Fact<'a>> {
    let fact = |(ordinal, live): (usize, &'a Option<Value>)| Fact {
        meta: ManifestResourceMeta {
            ordinal: i32::try_from(ordinal).unwrap(),
            version: Some("v1".into()),
            resource: Some("gadgets".into()),
            name: Some(ordinal.to_string()),
            ..ManifestResourceMeta::default()
        },
        applied: Applied::Done,
        sight: live.as_ref().map_or(Sight::Missing, Sight::Live),
        feedback: &[],
        rules,
    };
    lives.iter().enumerate().map(fact).collect()
}

/// The status, the reason and the message of a condition, if there is one.
fn said(conditions: &[Condition], type_: &str) -> Option<(String, String, String)> {
    let it = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((it.status.clone(), it.reason.clone(), it.message.clone()))
}

/// What is said of a work whose objects have this in the field of a condition.
fn work_says(condition: &str, values: &[Value]) -> Option<(String, String, String)> {
    let lives: Vec<_> = values.iter().map(|value| Some(json!({ condition: value }))).collect();
    let rules = rules(&json!([rule(condition)]));
    said(&status(None, &facts(&rules, &lives), &moment(1, 5)).conditions, condition)
}

fn summed_up(status: &str, message: &str) -> (String, String, String) {
    (status.into(), "ConditionRulesAggregated".into(), message.into())
}

#[test]
fn what_holds_of_all_manifests_holds_of_the_work() {
    assert_eq!(work_says("Ready", &[json!(true)]), Some(summed_up("True", "Manifest is Ready")));
    assert_eq!(work_says("Ready", &[json!(true), json!(true)]), Some(summed_up("True", "2 of 2 manifests are Ready")));
    assert_eq!(
        work_says("Ready", &[json!(true), json!(false)]),
        Some(summed_up("False", "1 of 2 manifests are not Ready"))
    );
    assert_eq!(work_says("Ready", &[]), None);
}

#[test]
fn a_change_goes_on_as_long_as_one_manifest_changes() {
    assert_eq!(
        work_says("Progressing", &[json!(true), json!(false)]),
        Some(summed_up("True", "1 of 2 manifests are Progressing"))
    );
    assert_eq!(
        work_says("Progressing", &[json!(false), json!(false)]),
        Some(summed_up("False", "2 of 2 manifests are not Progressing"))
    );
}

#[test]
fn what_does_not_hold_outweighs_what_nobody_knows_and_that_what_holds() {
    let (good, empty) = (rules(&json!([rule("Ready")])), rules(&json!([{ "type": "CEL", "condition": "Ready" }])));
    let lives = [true, false, true].map(|ready| Some(json!({ "Ready": ready })));
    let mut facts = facts(&good, &lives);
    facts[2].rules = &empty;
    let all = status(None, &facts, &moment(1, 5));
    assert_eq!(said(&all.conditions, "Ready"), Some(summed_up("False", "1 of 3 manifests are not Ready")));
    facts.remove(1);
    let some = status(None, &facts, &moment(1, 5));
    assert_eq!(
        said(&some.conditions, "Ready"),
        Some(summed_up("Unknown", "1 of 2 manifests have an unknown Ready condition"))
    );
}

#[test]
fn what_a_rule_has_said_goes_with_it() {
    let both = rules(&json!([rule("Ready"), rule("Shiny")]));
    let one = rules(&json!([rule("Ready")]));
    let lives = [Some(json!({ "Ready": true, "Shiny": true }))];
    let first = status(None, &facts(&both, &lives), &moment(1, 5));
    assert!(said(&first.conditions, "Shiny").is_some());
    let second = status(Some(&first), &facts(&one, &lives), &moment(2, 9));
    assert_eq!(said(&second.conditions, "Shiny"), None);
    assert_eq!(said(&second.resource_status.as_ref().unwrap().manifests[0].conditions, "Shiny"), None);
    let ready = second.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!((ready.last_transition_time.0.as_second(), ready.observed_generation), (5, Some(2)));
    assert_eq!(status(Some(&second), &facts(&one, &lives), &moment(2, 99)), second);
}

#[test]
fn what_was_done_stays_done_when_the_object_is_cleaned_up() {
    let rules = rules(&json!([rule("Complete"), rule("Ready")]));
    let lives = [Some(json!({ "Complete": true, "Ready": true }))];
    let first = status(None, &facts(&rules, &lives), &moment(1, 5));
    let meta = &facts(&rules, &lives)[0].meta;
    assert!(is_manifest_complete(Some(&first), meta) && !is_manifest_complete(None, meta));
    let gone = status(Some(&first), &facts(&rules, &[None]), &moment(2, 9));
    assert_eq!(said(&gone.conditions, "Complete"), Some(summed_up("True", "Manifest is Complete")));
    assert_eq!(said(&gone.conditions, "Ready"), None, "that was true of a former form");
    assert!(is_manifest_complete(Some(&gone), meta));
    let dropped = status(Some(&gone), &facts(&Rules::default(), &[None]), &moment(3, 12));
    assert_eq!(said(&dropped.conditions, "Complete"), None);
}

#[test]
fn a_rule_can_say_whether_an_object_is_there_and_is_not_contradicted() {
    let rules = rules(&json!([rule("Available")]));
    let lives = [Some(json!({ "Available": false }))];
    let first = status(None, &facts(&rules, &lives), &moment(1, 5));
    let manifest = &first.resource_status.as_ref().unwrap().manifests[0];
    assert_eq!(said(&manifest.conditions, "Available").unwrap().1, "ConditionRuleEvaluated");
    assert_eq!(said(&first.conditions, "Available").unwrap().1, "ResourcesNotAvailable");
    assert_eq!(status(Some(&first), &facts(&rules, &lives), &moment(1, 99)), first);
}
