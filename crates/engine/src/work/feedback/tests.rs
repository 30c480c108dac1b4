use serde_json::json;

use super::*;

fn rules(value: &Value) -> Vec<FeedbackRule> {
    serde_json::from_value(value.clone()).unwrap()
}

fn well_known_of(live: &Value) -> Feedback {
    feedback(&rules(&json!([{ "type": "WellKnownStatus" }])), live, RawJson::Refused)
}

/// What a path leads to, in an object with a bit of everything.
fn at(path: &str, raw: RawJson) -> Result<Option<FieldValue>, FeedbackProblem> {
    let live = json!({ "apiVersion": "example.com/v2", "kind": "Gadget", "status": {
        "count": 3, "phase": "Good", "ready": true, "nothing": null, "load": 0.5, "parts": ["a", "b"], "deep": { "a": 1 },
    }});
    let rule = json!([{ "type": "JSONPaths", "jsonPaths": [{ "name": "it", "path": path }] }]);
    let Feedback { mut values, mut problems } = feedback(&rules(&rule), &live, raw);
    match problems.pop() {
        Some(problem) => Err(problem),
        None => Ok(values.pop().map(|value| value.field_value)),
    }
}

fn raw(text: &str) -> FieldValue {
    let json_raw = Some(text.to_owned());
    FieldValue { kind: FieldValueType::JsonRaw, integer: None, string: None, boolean: None, json_raw }
}

fn named(feedback: &Feedback) -> Vec<(&str, Option<i64>, Option<&str>)> {
    let values = feedback.values.iter();
    values.map(|it| (it.name.as_str(), it.field_value.integer, it.field_value.string.as_deref())).collect()
}

#[test]
fn what_matters_is_known_for_some_kinds() {
    let status = json!({ "readyReplicas": 1, "replicas": 2, "availableReplicas": 3 });
    for kind in ["Deployment", "StatefulSet"] {
        let live = json!({ "apiVersion": "apps/v1", "kind": kind, "status": status });
        let expected =
            [("ReadyReplicas", Some(1), None), ("Replicas", Some(2), None), ("AvailableReplicas", Some(3), None)];
        assert_eq!(named(&well_known_of(&live)), expected);
    }
    let daemons = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet",
        "status": { "numberReady": 1, "desiredNumberScheduled": 2, "numberAvailable": 3 } });
    let expected =
        [("NumberReady", Some(1), None), ("DesiredNumberScheduled", Some(2), None), ("NumberAvailable", Some(3), None)];
    assert_eq!(named(&well_known_of(&daemons)), expected);
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job",
        "status": { "succeeded": 1, "conditions": [{ "type": "Complete", "status": "True" }] } });
    assert_eq!(named(&well_known_of(&job)), [("JobComplete", None, Some("True")), ("JobSucceeded", Some(1), None)]);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] } });
    assert_eq!(named(&well_known_of(&pod)), [("PodReady", None, Some("False")), ("PodPhase", None, Some("Running"))]);
}

#[test]
fn what_is_not_there_yet_is_not_reported() {
    let live = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "status": { "replicas": 2 } });
    let feedback = well_known_of(&live);
    assert_eq!(named(&feedback), [("Replicas", Some(2), None)]);
    assert_eq!(feedback.problems, []);
}

#[test]
fn nothing_is_known_for_other_kinds() {
    let problems = well_known_of(&json!({ "apiVersion": "apps/v2", "kind": "Deployment" })).problems;
    assert!(problems[0].to_string().starts_with("nothing is well known of the kind Deployment in apps/v2"));
}

#[test]
fn whole_numbers_texts_and_truths_are_reported() {
    let value = |path| at(path, RawJson::Refused).unwrap().unwrap();
    assert_eq!((value(".status.count").kind, value(".status.count").integer), (FieldValueType::Integer, Some(3)));
    assert_eq!(value(".status.phase").string.as_deref(), Some("Good"));
    assert_eq!(value(".status.ready").boolean, Some(true));
    assert_eq!(value(".kind").string.as_deref(), Some("Gadget"));
    assert_eq!(value(".status.parts[*]").string.as_deref(), Some("a"), "the first of several");
    assert_eq!(at(".status.none.deeper", RawJson::Refused), Ok(None));
    assert_eq!(at(".status.nothing", RawJson::Refused), Ok(None));
}

#[test]
fn everything_else_is_a_problem_or_json() {
    for (path, found) in [(".status.load", "a number"), (".status.parts", "a list"), (".status.deep", "an object")] {
        let problem = at(path, RawJson::Refused).unwrap_err().to_string();
        assert!(problem.contains(found), "{problem}");
    }
    let json = RawJson::UpTo(9);
    assert_eq!(at(".status.load", json), Ok(Some(raw("0.5"))));
    assert_eq!(at(".status.deep", json), Ok(Some(raw(r#"{"a":1}"#))));
    assert_eq!(at(".status.parts[*]", json), Ok(Some(raw(r#"["a","b"]"#))), "all of several");
    assert_eq!(at(".status.count", json).unwrap().unwrap().integer, Some(3));
    assert!(at(".status.deep", RawJson::UpTo(6)).unwrap_err().to_string().contains("7 bytes of JSON, and at most 6"));
}

#[test]
fn paths_that_lead_nowhere_are_named() {
    assert!(
        at(".status[", RawJson::Refused).unwrap_err().to_string().starts_with("the path .status[ of it leads nowhere")
    );
    assert!(at(".status.parts[5]", RawJson::Refused).is_err());
}

#[test]
fn a_path_may_be_for_one_version() {
    let live = json!({ "apiVersion": "example.com/v2", "status": { "a": 1 } });
    let path = |version: &str| json!([{ "type": "JSONPaths", "jsonPaths": [{ "name": "a", "version": version, "path": ".status.a" }] }]);
    let asked = |version| feedback(&rules(&path(version)), &live, RawJson::Refused);
    assert_eq!(asked("v2").values.len(), 1);
    assert_eq!(asked("").values.len(), 1);
    assert!(asked("v1").problems[0].to_string().contains("is for version v1, and the object is in version v2"));
}

#[test]
fn what_can_be_reported_is_though_something_else_can_not() {
    let live = json!({ "apiVersion": "v1", "kind": "Gadget", "status": { "a": 1, "b": [] } });
    let rule = json!([
        { "type": "WellKnownStatus" },
        { "type": "JSONPaths", "jsonPaths": [{ "name": "b", "path": ".status.b" }, { "name": "a", "path": ".status.a" }, { "name": "a", "path": ".kind" }] },
    ]);
    let feedback = feedback(&rules(&rule), &live, RawJson::Refused);
    assert_eq!(named(&feedback), [("a", Some(1), None)], "and once under each name");
    assert_eq!(feedback.problems.len(), 2);
}
