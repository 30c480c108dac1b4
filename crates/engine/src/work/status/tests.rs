use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn moment(generation: i64, second: i64) -> Moment {
    Moment { generation, now: at(second), raw_json: RawJson::Refused }
}

fn meta(ordinal: i32, name: &str) -> ManifestResourceMeta {
    ManifestResourceMeta {
        ordinal,
        version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        resource: Some("configmaps".into()),
        name: Some(name.into()),
        namespace: Some("shop".into()),
        group: None,
    }
}

fn no_rules() -> &'static Rules {
    static NONE: std::sync::LazyLock<Rules> = std::sync::LazyLock::new(Rules::default);
    &NONE
}

fn fact<'a>(ordinal: i32, name: &str, applied: Applied, sight: Sight<'a>) -> Fact<'a> {
    Fact { meta: meta(ordinal, name), applied, sight, feedback: &[], rules: no_rules() }
}

/// A condition as it reads in a table: status, reason, message, when, and for which generation.
type Line = (String, String, String, i64, Option<i64>);

fn line(conditions: &[Condition], type_: &str) -> Line {
    let it = conditions.iter().find(|condition| condition.type_ == type_).unwrap_or_else(|| panic!("no {type_}"));
    let second = it.last_transition_time.0.as_second();
    (it.status.clone(), it.reason.clone(), it.message.clone(), second, it.observed_generation)
}

fn says(status: &str, reason: &str, message: &str, second: i64, generation: Option<i64>) -> Line {
    (status.into(), reason.into(), message.into(), second, generation)
}

fn manifests(status: &ManifestWorkStatus) -> &[ManifestStatus] {
    &status.resource_status.as_ref().unwrap().manifests
}

#[test]
fn what_became_of_manifests_is_told_in_their_order() {
    let live = json!({});
    let facts = [
        fact(2, "c", Applied::IgnoreFields("bad path".into()), Sight::Unknown("timeout".into())),
        fact(1, "b", Applied::Failed("refused".into()), Sight::Missing),
        fact(0, "a", Applied::Done, Sight::Live(&live)),
    ];
    let status = status(None, &facts, &moment(3, 5));
    let [a, b, c] = manifests(&status) else { panic!("three manifests") };
    let applied = |it: &ManifestStatus| line(&it.conditions, "Applied");
    let available = |it: &ManifestStatus| line(&it.conditions, "Available");
    assert_eq!(applied(a), says("True", "AppliedManifestComplete", "Apply manifest complete", 5, Some(3)));
    assert_eq!(applied(b), says("False", "AppliedManifestFailed", "Failed to apply manifest: refused", 5, Some(3)));
    let ignored =
        says("False", "AppliedManifestSSAIgnoreFieldError", "Failed to process ignoreFields: bad path", 5, Some(3));
    assert_eq!(applied(c), ignored);
    assert_eq!(available(a), says("True", "ResourceAvailable", "Resource is available", 5, None));
    assert_eq!(available(b), says("False", "ResourceNotAvailable", "Resource is not available", 5, None));
    assert_eq!(available(c), says("Unknown", "FetchingResourceFailed", "Failed to fetch resource: timeout", 5, None));
    assert_eq!(line(&a.conditions, "StatusFeedbackSynced"), says("True", "NoStatusFeedbackSynced", "", 5, None));
    let work = |type_| line(&status.conditions, type_);
    assert_eq!(
        work("Applied"),
        says("False", "AppliedManifestWorkFailed", "Failed to apply manifest work", 5, Some(3))
    );
    assert_eq!(
        work("Available"),
        says("False", "ResourcesNotAvailable", "1 of 3 resources are not available", 5, Some(3))
    );
}

#[test]
fn a_work_is_applied_and_there_if_all_of_it_is() {
    let live = json!({});
    let good = |sight| {
        status(
            None,
            &[fact(0, "a", Applied::Done, Sight::Live(&live)), fact(1, "b", Applied::Done, sight)],
            &moment(1, 5),
        )
    };
    let all = good(Sight::Live(&live));
    assert_eq!(
        line(&all.conditions, "Applied"),
        says("True", "AppliedManifestWorkComplete", "Apply manifest work complete", 5, Some(1))
    );
    assert_eq!(
        line(&all.conditions, "Available"),
        says("True", "ResourcesAvailable", "All resources are available", 5, Some(1))
    );
    let unknown = says("Unknown", "ResourcesStatusUnknown", "1 of 2 resources have unknown status", 5, Some(1));
    assert_eq!(line(&good(Sight::Unknown("x".into())).conditions, "Available"), unknown);
}

#[test]
fn an_object_that_was_not_found_in_the_api_is_unknown() {
    let live = json!({});
    let mut incomplete = fact(0, "a", Applied::Failed("no such kind".into()), Sight::Live(&live));
    incomplete.meta.resource = None;
    let status = status(None, &[incomplete], &moment(1, 5));
    let available = line(&manifests(&status)[0].conditions, "Available");
    assert_eq!(available, says("Unknown", "IncompleteResourceMeta", "Resource meta is incomplete", 5, None));
}

#[test]
fn the_same_facts_give_the_same_status() {
    let live = json!({});
    let facts =
        [fact(0, "a", Applied::Done, Sight::Live(&live)), fact(1, "b", Applied::Failed("x".into()), Sight::Missing)];
    let first = status(None, &facts, &moment(1, 5));
    assert_eq!(status(Some(&first), &facts, &moment(1, 500)), first);
}

#[test]
fn another_generation_is_a_new_matter() {
    let live = json!({});
    let facts = [fact(0, "a", Applied::Done, Sight::Live(&live))];
    let first = status(None, &facts, &moment(1, 5));
    let second = status(Some(&first), &facts, &moment(2, 9));
    let applied = line(&manifests(&second)[0].conditions, "Applied");
    assert_eq!((applied.3, applied.4), (9, Some(2)));
    assert_eq!(line(&manifests(&second)[0].conditions, "Available").3, 5);
    assert_eq!(line(&second.conditions, "Applied").3, 5, "the work was applied all the time");
    assert!(was_applied(Some(&second), &meta(0, "a"), 2) && !was_applied(Some(&second), &meta(0, "a"), 1));
    assert!(!was_applied(None, &meta(0, "a"), 1) && !was_applied(Some(&second), &meta(0, "b"), 2));
}

#[test]
fn an_object_that_has_moved_in_its_work_is_still_the_same() {
    let live = json!({});
    let there = |ordinal, name| fact(ordinal, name, Applied::Done, Sight::Live(&live));
    let first = status(None, &[there(0, "a"), there(1, "b")], &moment(1, 5));
    let moved = status(Some(&first), &[there(0, "new"), there(1, "a"), there(2, "b")], &moment(1, 9));
    let times: Vec<_> = manifests(&moved).iter().map(|it| line(&it.conditions, "Available").3).collect();
    assert_eq!(times, [9, 5, 5]);
    assert_eq!(manifests(&moved)[1].resource_meta.ordinal, 1);
    let twice = status(None, &[there(0, "a"), there(1, "a")], &moment(1, 5));
    let moved = status(Some(&twice), &[there(2, "a"), there(1, "a")], &moment(1, 9));
    let times: Vec<_> = manifests(&moved).iter().map(|it| line(&it.conditions, "Available").3).collect();
    assert_eq!(times, [5, 9], "of two nobody knows which has moved");
}

#[test]
fn what_ocm_wrote_is_known_again() {
    let live = json!({});
    let facts = [fact(0, "a", Applied::Done, Sight::Live(&live))];
    let mut first = status(None, &facts, &moment(1, 5));
    let meta = &mut first.resource_status.as_mut().unwrap().manifests[0].resource_meta;
    meta.group = Some(String::new());
    assert_eq!(line(&manifests(&status(Some(&first), &facts, &moment(1, 9)))[0].conditions, "Applied").3, 5);
}

#[test]
fn what_is_reported_is_timed_by_its_last_change() {
    let rules: Vec<FeedbackRule> =
        serde_json::from_value(json!([{ "type": "JSONPaths", "jsonPaths": [{ "name": "a", "path": ".status.a" }] }]))
            .unwrap();
    let told = |former: Option<&ManifestWorkStatus>, sight, second| {
        let fact = Fact { feedback: &rules, ..fact(0, "a", Applied::Kept, sight) };
        status(former, &[fact], &moment(1, second))
    };
    let (one, two, bad) =
        (json!({ "status": { "a": 1 } }), json!({ "status": { "a": 2 } }), json!({ "status": { "a": {} } }));
    let synced = |status: &ManifestWorkStatus| line(&manifests(status)[0].conditions, "StatusFeedbackSynced");
    let values = |status: &ManifestWorkStatus| {
        manifests(status)[0].status_feedback.as_ref().map(|it| it.values[0].field_value.integer)
    };
    let first = told(None, Sight::Live(&one), 1);
    assert_eq!((synced(&first), values(&first)), (says("True", "StatusFeedbackSynced", "", 1, None), Some(Some(1))));
    assert_eq!(told(Some(&first), Sight::Live(&one), 2), first);
    let second = told(Some(&first), Sight::Live(&two), 3);
    assert_eq!((synced(&second).3, values(&second)), (3, Some(Some(2))));
    let missing = told(Some(&second), Sight::Missing, 4);
    assert_eq!((synced(&missing).3, values(&missing)), (3, Some(Some(2))), "what is known stays");
    let failed = told(Some(&second), Sight::Live(&bad), 5);
    assert_eq!(
        (synced(&failed).0, synced(&failed).1, values(&failed)),
        ("False".into(), "StatusFeedbackSyncFailed".into(), None)
    );
    assert!(synced(&failed).2.starts_with("Sync status feedback failed with error the path .status.a of a"));
}

#[test]
fn what_was_not_tried_is_as_it_was() {
    let live = json!({});
    let first = status(None, &[fact(0, "a", Applied::Done, Sight::Live(&live))], &moment(1, 5));
    let kept = status(Some(&first), &[fact(0, "a", Applied::Kept, Sight::Live(&live))], &moment(2, 9));
    assert_eq!(line(&manifests(&kept)[0].conditions, "Applied").4, Some(1));
    assert_eq!(line(&kept.conditions, "Applied").4, Some(1), "the new form was never applied");
    assert_eq!(line(&kept.conditions, "Available").4, Some(2));
}

#[test]
fn long_messages_are_cut() {
    let told = status(None, &[fact(0, "a", Applied::Failed("ü".repeat(5000)), Sight::Missing)], &moment(1, 5));
    let message = line(&manifests(&told)[0].conditions, "Applied").2;
    assert!(message.ends_with("ü…") && message.chars().count() == LONGEST_MESSAGE + 1);
}

#[test]
fn a_work_on_its_way_out_says_so() {
    let going = deleting(None, 4, at(7));
    let expected = says("True", "WorkDeleting", "ManifestWork is being deleted", 7, Some(4));
    assert_eq!(line(&going.conditions, "Deleting"), expected);
    assert_eq!(deleting(Some(&going), 4, at(9)), going);
}
