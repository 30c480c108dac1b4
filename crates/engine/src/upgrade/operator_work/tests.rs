//! What the work is made of, and how what is reported of it is read.

use drover_api::work::{FeedbackValue, ManifestResourceMeta, ManifestResourceStatus, StatusFeedback};

use super::*;
use crate::jsonpath;

fn drover() -> Approver {
    Approver::Drover { image: "example.com/drover:1".to_owned() }
}

fn oc() -> Approver {
    Approver::Oc { image: "example.com/oc:1".to_owned() }
}

fn listed(names: &[&str]) -> Vec<OperatorRef> {
    names.iter().map(|name| name.parse().expect("an operator")).collect()
}

fn some() -> OperatorUpgrades {
    OperatorUpgrades { approve_all_upgrades: None, include: listed(&["ns/a", "ns/b"]), exclude: listed(&["ns/c"]) }
}

fn all() -> OperatorUpgrades {
    OperatorUpgrades { approve_all_upgrades: Some(true), include: Vec::new(), exclude: listed(&["ns/c", "other/d"]) }
}

fn ten_minutes(operators: &OperatorUpgrades, approver: &Approver) -> ManifestWorkSpec {
    work(operators, Duration::from_mins(10), approver)
}

fn manifest<'a>(work: &'a ManifestWorkSpec, kind: &str) -> &'a Value {
    let mut of_kind = work.manifests().iter().filter(|manifest| manifest["kind"] == kind);
    let manifest = of_kind.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert!(of_kind.next().is_none(), "there are two of {kind}");
    manifest
}

fn container(work: &ManifestWorkSpec) -> &Value {
    &manifest(work, "Job")["spec"]["template"]["spec"]["containers"][0]
}

#[test]
fn operators_are_upgraded_only_if_some_are_asked_for() {
    assert!(wants_operators(&some()) && wants_operators(&all()));
    let none = OperatorUpgrades { exclude: listed(&["ns/c"]), ..OperatorUpgrades::default() };
    for none in [none.clone(), OperatorUpgrades { approve_all_upgrades: Some(false), ..none }] {
        assert!(!wants_operators(&none), "{none:?}");
    }
}

#[test]
fn drover_is_told_who_is_asked_for_and_when_to_end() {
    let work = ten_minutes(&some(), &drover());
    assert_eq!(container(&work)["command"], json!(["drover", "approve-operators"]));
    let record = "--record=installplan-approver/installplan-approver";
    let told = json!(["--include=ns/a", "--include=ns/b", "--exclude=ns/c", "--timeout=540s", record]);
    assert_eq!(container(&work)["args"], told);
    let work = ten_minutes(&all(), &drover());
    let told = json!(["--all", "--exclude=ns/c", "--exclude=other/d", "--timeout=540s", record]);
    assert_eq!(container(&work)["args"], told);
}

#[test]
fn the_script_is_told_who_is_asked_for_and_when_to_end() {
    let work = ten_minutes(&some(), &oc());
    assert_eq!(container(&work)["command"], json!(["/bin/bash", "-c", SCRIPT]));
    let told = json!([
        { "name": "APPROVEALL", "value": "false" },
        { "name": "INCLUDELIST", "value": "a,ns\nb,ns" },
        { "name": "EXCLUDELIST", "value": "c,ns" },
        { "name": "WAITTIME", "value": "540" },
    ]);
    assert_eq!(container(&work)["env"], told);
    assert_eq!(container(&ten_minutes(&all(), &oc()))["env"][0]["value"], "true");
}

#[test]
fn the_job_says_what_its_success_means() {
    let said =
        |approver: &Approver| manifest(&ten_minutes(&some(), approver), "Job")["metadata"]["annotations"].clone();
    assert!(said(&oc())[SUCCESS_ANNOTATION].as_str().is_some_and(|text| text.contains("not looked at")));
    assert!(said(&drover())[SUCCESS_ANNOTATION].as_str().is_some_and(|text| text.contains("run the versions")));
}

#[test]
fn the_approver_ends_a_little_before_the_job_has_to() {
    for (timeout, deadline, patience) in [
        (Duration::from_mins(10), 600, 540),
        (Duration::from_hours(2), 7200, 7140),
        (Duration::from_mins(1), 60, 54),
        (Duration::from_millis(1500), 2, 1),
        (Duration::from_nanos(1), 1, 1),
    ] {
        let work = work(&some(), timeout, &drover());
        assert_eq!(manifest(&work, "Job")["spec"]["activeDeadlineSeconds"], deadline, "{timeout:?}");
        assert_eq!(container(&work)["args"][3], format!("--timeout={patience}s"), "{timeout:?}");
    }
}

#[test]
fn the_account_may_do_what_its_approver_needs_and_nothing_else() {
    let rules = |approver: &Approver, kind: &str| manifest(&ten_minutes(&all(), approver), kind)["rules"].clone();
    let group = json!(["operators.coreos.com"]);
    let expected = json!([
        { "apiGroups": group, "resources": ["installplans"], "verbs": ["get", "list", "watch", "patch"] },
        { "apiGroups": group, "resources": ["clusterserviceversions", "subscriptions"], "verbs": ["get", "list", "watch"] },
    ]);
    assert_eq!(rules(&drover(), "ClusterRole"), expected);
    let expected = json!([
        { "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get", "patch"] },
    ]);
    assert_eq!(rules(&drover(), "Role"), expected);
    let expected = json!([
        { "apiGroups": group, "resources": ["installplans"], "verbs": ["get", "patch"] },
        { "apiGroups": group, "resources": ["subscriptions"], "verbs": ["get", "list"] },
    ]);
    assert_eq!(rules(&oc(), "ClusterRole"), expected);
    assert!(ten_minutes(&all(), &oc()).manifests().iter().all(|manifest| manifest["kind"] != "Role"));
}

#[test]
fn roles_are_bound_to_the_account_that_the_job_runs_as() {
    let work = ten_minutes(&some(), &drover());
    let account = json!([{ "kind": "ServiceAccount", "name": NAME, "namespace": NAME }]);
    for (kind, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        let binding = manifest(&work, kind);
        assert_eq!((&binding["subjects"], &binding["roleRef"]["kind"]), (&account, &json!(role)));
        assert_eq!(binding["metadata"]["namespace"], manifest(&work, role)["metadata"]["namespace"]);
    }
    assert_eq!(manifest(&work, "Job")["spec"]["template"]["spec"]["serviceAccountName"], NAME);
    assert_eq!(manifest(&work, "ServiceAccount")["metadata"], json!({ "name": NAME, "namespace": NAME }));
}

#[test]
fn the_work_is_removed_whole_and_its_job_and_record_are_made_once() {
    let work = ten_minutes(&some(), &drover());
    let option = work.delete_option.expect("it says what happens");
    assert_eq!(option.propagation_policy, DeletePropagationPolicy::Foreground);
    for config in &work.manifest_configs {
        assert_eq!(config.update_strategy.as_ref().map(|strategy| strategy.kind), Some(UpdateStrategyType::CreateOnly));
    }
    let of = |approver: &Approver| -> Vec<_> {
        let configs = ten_minutes(&some(), approver).manifest_configs;
        configs
            .into_iter()
            .map(|config| (config.resource_identifier.resource, config.resource_identifier.name))
            .collect()
    };
    let (record, job) = (("configmaps".to_owned(), NAME.to_owned()), ("jobs".to_owned(), NAME.to_owned()));
    assert_eq!([of(&drover()), of(&oc())], [vec![record, job.clone()], vec![job]]);
}

/// The status of a work whose Job has this status.
fn reported(job: &Value) -> ManifestWorkStatus {
    let configs = ten_minutes(&some(), &drover()).manifest_configs;
    let config = configs.iter().find(|config| config.resource_identifier.resource == "jobs").expect("a Job");
    let paths = config.feedback_rules.iter().flat_map(|rule| &rule.json_paths);
    let values = paths.filter_map(|path| {
        let followed = jsonpath::JsonPath::parse(&path.path).expect("a valid path");
        let found = followed.find(job).ok()?;
        Some(FeedbackValue { name: path.name.clone(), field_value: value(found.first()?) })
    });
    with_feedback(values.collect())
}

fn value(value: &Value) -> FieldValue {
    let none = FieldValue { kind: FieldValueType::String, integer: None, string: None, boolean: None, json_raw: None };
    match value {
        Value::Number(number) => FieldValue { kind: FieldValueType::Integer, integer: number.as_i64(), ..none },
        Value::String(text) => FieldValue { string: Some(text.clone()), ..none },
        Value::Bool(truth) => FieldValue { kind: FieldValueType::Boolean, boolean: Some(*truth), ..none },
        other => FieldValue { kind: FieldValueType::JsonRaw, json_raw: Some(other.to_string()), ..none },
    }
}

fn with_feedback(values: Vec<FeedbackValue>) -> ManifestWorkStatus {
    let job = ManifestResourceMeta {
        ordinal: 6,
        group: Some("batch".to_owned()),
        version: Some("v1".to_owned()),
        kind: Some("Job".to_owned()),
        resource: Some("jobs".to_owned()),
        name: Some(NAME.to_owned()),
        namespace: Some(NAME.to_owned()),
    };
    let status =
        ManifestStatus { resource_meta: job, status_feedback: Some(StatusFeedback { values }), conditions: Vec::new() };
    let manifests = vec![ManifestStatus::default(), status];
    ManifestWorkStatus { resource_status: Some(ManifestResourceStatus { manifests }), ..ManifestWorkStatus::default() }
}

#[test]
fn the_outcome_is_what_the_job_says() {
    let condition = |type_: &str, status: &str| json!([{ "type": type_, "status": status }]);
    for (status, outcome) in [
        (json!({}), Outcome::Unknown),
        (json!({ "active": 1 }), Outcome::Running),
        (json!({ "active": 1, "failed": 1 }), Outcome::Running),
        // A pod failed, and is about to be tried again.
        (json!({ "failed": 1 }), Outcome::Running),
        (json!({ "succeeded": 1, "failed": 2, "conditions": condition("Complete", "True") }), Outcome::Succeeded),
        (json!({ "failed": 4, "conditions": condition("Failed", "True") }), Outcome::Failed),
        (json!({ "conditions": condition("Failed", "True") }), Outcome::Failed),
        (json!({ "active": 1, "conditions": condition("Failed", "False") }), Outcome::Running),
        (json!({ "succeeded": 0, "active": 0 }), Outcome::Unknown),
        (json!({ "succeeded": 1, "conditions": condition("Failed", "True") }), Outcome::Unknown),
        // What is of the wrong type says nothing.
        (json!({ "succeeded": "1" }), Outcome::Unknown),
        (json!({ "succeeded": true }), Outcome::Unknown),
        (json!({ "succeeded": 1, "active": "no" }), Outcome::Unknown),
        (json!({ "failed": { "count": 1 }, "conditions": condition("Failed", "True") }), Outcome::Unknown),
        (json!({ "conditions": [{ "type": "Failed", "status": true }] }), Outcome::Unknown),
    ] {
        assert_eq!(Outcome::read(&reported(&json!({ "status": status }))), outcome, "{status}");
    }
}

#[test]
fn nothing_is_known_of_a_job_that_is_not_reported() {
    assert_eq!(Outcome::read(&ManifestWorkStatus::default()), Outcome::Unknown);
    let succeeded = FeedbackValue { name: SUCCEEDED.to_owned(), field_value: value(&json!(1)) };
    let mut status = with_feedback(vec![succeeded]);
    assert_eq!(Outcome::read(&status), Outcome::Succeeded);
    let job = &mut status.resource_status.as_mut().expect("it is there").manifests[1];
    job.resource_meta.name = Some("another".to_owned());
    assert_eq!(Outcome::read(&status), Outcome::Unknown);
    let mut empty = with_feedback(Vec::new());
    assert_eq!(Outcome::read(&empty), Outcome::Unknown);
    empty.resource_status.as_mut().expect("it is there").manifests[1].status_feedback = None;
    assert_eq!(Outcome::read(&empty), Outcome::Unknown);
}
