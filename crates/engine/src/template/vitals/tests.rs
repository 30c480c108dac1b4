use drover_api::work::{FeedbackValue, FieldValue, FieldValueType, StatusFeedback};

use super::*;

fn set() -> SetFingerprint {
    "0123456789abcdef".parse().expect("a fingerprint")
}

fn value(name: &str, integer: Option<i64>, string: Option<&str>) -> FeedbackValue {
    let kind = if integer.is_some() { FieldValueType::Integer } else { FieldValueType::String };
    let string = string.map(str::to_owned);
    FeedbackValue {
        name: name.to_owned(),
        field_value: FieldValue { kind, integer, string, boolean: None, json_raw: None },
    }
}

fn status(kind: &str, values: Vec<FeedbackValue>) -> ManifestStatus {
    let text = |text: &str| Some(text.to_owned());
    let resource_meta = ManifestResourceMeta {
        ordinal: 3,
        group: text("apps"),
        version: text("v1"),
        kind: text(kind),
        resource: text("somethings"),
        name: text("agent"),
        namespace: text("ns"),
    };
    ManifestStatus { resource_meta, status_feedback: Some(StatusFeedback { values }), conditions: Vec::new() }
}

/// A workload that says these numbers: generation, observed, wanted, total, updated, available.
fn saying(kind: &str, numbers: [Option<i64>; 6]) -> Vitals {
    let names = [GENERATION, OBSERVED, WANTED, TOTAL, UPDATED, AVAILABLE];
    let numbers = names.into_iter().zip(numbers).filter(|(_, number)| number.is_some());
    let mut values: Vec<_> = numbers.map(|(name, number)| value(name, number, None)).collect();
    values.push(value(SET, None, Some(set().as_str())));
    Vitals::read(&status(kind, values)).expect("a workload")
}

const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

#[test]
fn a_workload_proves_a_set_when_all_its_pods_run_it() {
    let lag = |numbers: [i64; 6]| saying("Deployment", numbers.map(Some)).lag(&set());
    assert_eq!(lag([2, 2, 3, 3, 3, 3]), None);
    assert_eq!(lag([2, 3, 3, 3, 3, 3]), None);
    assert_eq!(lag([2, 2, 0, 0, 0, 0]), None);
    assert_eq!(lag([2, 2, 3, 4, 4, 4]), None);
    assert_eq!(lag([2, 1, 3, 3, 3, 3]), Some(Lag::Unobserved));
    assert_eq!(lag([2, 2, 3, 3, 2, 3]), Some(Lag::Updating { updated: 2, wanted: 3 }));
    assert_eq!(lag([2, 2, 3, 4, 3, 3]), Some(Lag::Old(1)));
    assert_eq!(lag([2, 2, 3, 3, 3, 2]), Some(Lag::Starting { available: 2, wanted: 3 }));
}

#[test]
fn another_stamp_proves_nothing() {
    let vitals = saying("Deployment", [2, 2, 1, 1, 1, 1].map(Some));
    let other = "fedcba9876543210".parse().expect("a fingerprint");
    assert_eq!(vitals.lag(&other), Some(Lag::OtherSet("0123456789abcdef".to_owned())));
    for kind in KINDS {
        let silent = Vitals::read(&status(kind, Vec::new())).expect("a workload");
        assert_eq!(silent.lag(&set()), Some(Lag::Unstamped));
    }
}

#[test]
fn what_a_status_leaves_out_is_none_of_it() {
    let said = |kind, wanted| saying(kind, [Some(2), Some(2), wanted, None, None, None]).lag(&set());
    for kind in ["Deployment", "StatefulSet"] {
        assert_eq!(said(kind, None), Some(Lag::Updating { updated: 0, wanted: 1 }));
        assert_eq!(said(kind, Some(0)), None);
    }
    assert_eq!(said("DaemonSet", None), None);
    assert_eq!(said("DaemonSet", Some(2)), Some(Lag::Updating { updated: 0, wanted: 2 }));
    assert_eq!(saying("DaemonSet", [Some(2), None, None, None, None, None]).lag(&set()), Some(Lag::Unobserved));
    assert_eq!(saying("DaemonSet", [None, Some(2), None, None, None, None]).lag(&set()), Some(Lag::Unobserved));
}

#[test]
fn a_deployment_says_itself_whether_it_is_well() {
    let said = |condition: Option<&str>| {
        let condition = condition.map(|status| value(CONDITION, None, Some(status)));
        Vitals::read(&status("Deployment", condition.into_iter().collect())).expect("a workload").ailment()
    };
    assert_eq!(said(Some("True")), None);
    assert_eq!(said(Some("False")), Some(Ailment::Unavailable("False".to_owned())));
    assert_eq!(said(Some("Unknown")), Some(Ailment::Unavailable("Unknown".to_owned())));
    assert_eq!(said(None), Some(Ailment::Silent));
}

#[test]
fn the_others_are_well_with_all_their_pods() {
    for kind in ["StatefulSet", "DaemonSet"] {
        let with = |available| saying(kind, [Some(1), Some(1), Some(2), Some(2), Some(0), available]).ailment();
        assert_eq!(with(Some(2)), None);
        assert_eq!(with(Some(1)), Some(Ailment::TooFew { available: 1, wanted: 2 }));
        assert_eq!(with(None), Some(Ailment::TooFew { available: 0, wanted: 2 }));
        let silent = Vitals::read(&status(kind, Vec::new())).expect("a workload");
        assert_eq!(silent.ailment(), Some(Ailment::Silent));
    }
}

#[test]
fn what_a_workload_says_is_found_by_its_name() {
    let workload = |kind, namespace: &str, name: &str| Workload {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        is_stamped: true,
    };
    let vitals = saying("StatefulSet", [None; 6]);
    assert!(vitals.is_of(&workload(WorkloadKind::StatefulSet, "ns", "agent")));
    assert!(!vitals.is_of(&workload(WorkloadKind::Deployment, "ns", "agent")));
    assert!(!vitals.is_of(&workload(WorkloadKind::StatefulSet, "other", "agent")));
    assert!(!vitals.is_of(&workload(WorkloadKind::StatefulSet, "ns", "other")));
    assert_eq!(workload(WorkloadKind::StatefulSet, "ns", "agent").to_string(), "the StatefulSet ns/agent");
}

#[test]
fn other_kinds_say_nothing() {
    let mut other = status("Job", Vec::new());
    assert_eq!(Vitals::read(&other), None);
    other = status("Deployment", Vec::new());
    other.resource_meta.group = Some("example.com".to_owned());
    assert_eq!(Vitals::read(&other), None);
    assert_eq!(Vitals::read(&ManifestStatus::default()), None);
}

#[test]
fn every_path_is_read_again() {
    for kind in [WorkloadKind::Deployment, WorkloadKind::DaemonSet, WorkloadKind::StatefulSet] {
        let read = |without: &str| {
            let paths = paths(kind).into_iter().filter(|path| path.name != without);
            Vitals::read(&status(kind.as_str(), paths.map(|path| value(&path.name, Some(1), Some("1"))).collect()))
        };
        for path in paths(kind) {
            assert_ne!(read(&path.name), read(""), "{}", path.name);
            assert!(path.path.starts_with('.'), "{}", path.path);
        }
    }
    let stamp = format!(".metadata.annotations.{}", drover_api::names::SET_ANNOTATION.replace('.', r"\."));
    assert_eq!(paths(WorkloadKind::Deployment)[0].path, stamp);
    assert!(paths(WorkloadKind::DaemonSet).iter().all(|path| !path.path.starts_with(".spec")));
}
