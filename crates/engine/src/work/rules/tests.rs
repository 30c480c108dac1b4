use serde_json::json;

use super::*;

fn verdicts(rules: &Value, live: &Value) -> Vec<Verdict> {
    let rules: Vec<ConditionRule> = serde_json::from_value(rules.clone()).unwrap();
    Rules::compile(&rules).evaluate(live)
}

/// What one rule of CEL says of a gadget.
fn verdict(rule: &Value) -> Verdict {
    let mut whole = json!({ "type": "CEL", "condition": "Ready" });
    whole.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
    let live =
        json!({ "kind": "Gadget", "status": { "phase": "Good", "conditions": [{ "type": "A", "status": "True" }] } });
    verdicts(&json!([whole]), &live).pop().unwrap()
}

fn said(rule: &Value) -> (Holds, &'static str, String) {
    let Verdict { holds, reason, message, .. } = verdict(rule);
    (holds, reason, message)
}

fn well_known_of(live: &Value) -> Option<Holds> {
    let rule = json!([{ "type": "WellKnownConditions", "condition": "Complete" }]);
    verdicts(&rule, live).pop().map(|verdict| verdict.holds)
}

#[test]
fn all_expressions_have_to_hold() {
    let both = |second: &str| json!({ "celExpressions": ["object.status.phase == 'Good'", second] });
    let yes = (Holds::Yes, "ConditionRuleEvaluated", "Manifest is Ready".to_owned());
    let no = (Holds::No, "ConditionRuleEvaluated", "Manifest is not Ready".to_owned());
    assert_eq!(said(&both("hasConditions(object.status)")), yes);
    assert_eq!(said(&both("object.kind == 'Other'")), no);
    assert_eq!(said(&json!({ "celExpressions": ["false", "object.missing == 1"] })), no, "nobody asks any further");
}

#[test]
fn a_message_is_made_or_given_or_the_usual_one() {
    let message = |rule: Value| {
        let mut rule = rule;
        rule["celExpressions"] = json!(["object.status.phase == 'Good'"]);
        said(&rule).2
    };
    let made = json!({ "messageExpression": "result ? object.kind + ' is good' : 'bad'", "message": "given" });
    assert_eq!(message(made), "Gadget is good");
    assert_eq!(message(json!({ "message": "given" })), "given");
    assert_eq!(message(json!({ "messageExpression": "''", "message": "given" })), "given");
    assert_eq!(message(json!({})), "Manifest is Ready");
    let unknown = message(json!({ "messageExpression": "badcel", "message": "given" }));
    assert!(unknown.starts_with("the messageExpression uses \"badcel\", which there is not"), "{unknown}");
    assert!(message(json!({ "messageExpression": "1" })).contains("expected string result, got int"));
}

#[test]
fn what_is_wrong_with_an_expression_is_told() {
    let error = |source: &str| said(&json!({ "celExpressions": [source], "message": "given" }));
    for (source, problem) in [
        ("object.missing", "no such key: missing"),
        ("object.status.phase", "expected bool result, got string"),
        ("object.", "is not a CEL expression"),
        ("result", "uses \"result\", which there is not: the object is `object`"),
        ("lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))", "costs more than is allowed"),
    ] {
        let (holds, reason, message) = error(source);
        assert_eq!((holds, reason), (Holds::No, "ConditionRuleExpressionError"), "{source}");
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn a_rule_without_expressions_is_no_rule() {
    let (holds, reason, _) = said(&json!({ "celExpressions": [] }));
    assert_eq!((holds, reason), (Holds::Unknown, "ConditionRuleInvalid"));
}

#[test]
fn jobs_and_pods_are_known_to_end() {
    let job = |type_: &str, status: &str| json!({ "apiVersion": "batch/v1", "kind": "Job", "status": { "conditions": [{ "type": type_, "status": status }] } });
    assert_eq!(well_known_of(&job("Complete", "True")), Some(Holds::Yes));
    assert_eq!(well_known_of(&job("Failed", "True")), Some(Holds::Yes));
    assert_eq!(well_known_of(&job("Failed", "False")), Some(Holds::No));
    assert_eq!(well_known_of(&job("Suspended", "True")), Some(Holds::No));
    assert_eq!(well_known_of(&json!({ "apiVersion": "batch/v1", "kind": "Job" })), Some(Holds::No));
    let pod = |phase: &str| json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": phase } });
    assert_eq!(well_known_of(&pod("Succeeded")), Some(Holds::Yes));
    assert_eq!(well_known_of(&pod("Failed")), Some(Holds::Yes));
    assert_eq!(well_known_of(&pod("Running")), Some(Holds::No));
}

#[test]
fn what_nothing_is_known_for_says_nothing() {
    assert_eq!(well_known_of(&json!({ "apiVersion": "v1", "kind": "Gadget" })), None);
    let rule = json!([{ "type": "WellKnownConditions", "condition": "Ready" }]);
    assert_eq!(verdicts(&rule, &json!({ "apiVersion": "v1", "kind": "Pod" })), []);
}

#[test]
fn a_known_rule_can_have_a_message_of_its_own() {
    let rule = json!([{ "type": "WellKnownConditions", "condition": "Complete", "messageExpression": "result ? 'done' : 'running'" }]);
    let running = json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": "Running" } });
    assert_eq!(verdicts(&rule, &running)[0].message, "running");
}

#[test]
fn what_is_no_type_of_conditions_can_not_be_told() {
    for type_ in ["Ready", "a", "example.com/Ready", "A.b_c-d"] {
        assert!(is_type(type_), "{type_}");
    }
    for type_ in ["", "not valid", "-a", "a.", "Example.com/Ready", "/a", "a/", "A/b/c", "a..b/c", &"a".repeat(317)] {
        assert!(!is_type(type_), "{type_}");
    }
}

#[test]
fn rules_do_not_say_what_the_agent_says() {
    let rules = json!([
        { "type": "CEL", "condition": "Applied", "celExpressions": ["true"] },
        { "type": "CEL", "condition": "StatusFeedbackSynced", "celExpressions": ["true"] },
    ]);
    assert_eq!(verdicts(&rules, &json!({})), []);
}
