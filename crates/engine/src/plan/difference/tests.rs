//! What a patch holds.

use k8s_openapi::api::core::v1::Namespace;

use super::*;

fn namespace(value: Value) -> Namespace {
    serde_json::from_value(value).expect("a valid namespace")
}

#[test]
fn equal_objects_need_no_patch() {
    let stored =
        namespace(json!({ "metadata": { "name": "a", "labels": { "x": "1" } }, "status": { "phase": "Active" } }));
    assert_eq!(difference_of(&stored, &stored.clone(), |_| true), None);
    let mut touched = stored.clone();
    touched.metadata.finalizers = Some(Vec::new());
    assert_eq!(difference_of(&stored, &touched, |_| true), None);
}

#[test]
fn patch_holds_the_difference_and_the_state_it_is_for() {
    let stored = json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7",
        "labels": { "kept": "1", "gone": "2", "new": "3" } } });
    let mut wanted = stored.clone();
    wanted["metadata"]["labels"] = json!({ "kept": "1", "new": "4" });
    let patch = difference_of(&namespace(stored), &namespace(wanted), |field| field != "status").expect("they differ");
    assert_eq!(
        patch,
        json!({ "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "gone": null, "new": "4" } } })
    );
}

#[test]
fn lack_leaves_other_fields_alone() {
    let stored =
        namespace(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "labels": { "x": "1" } } }));
    let wanted = |value| namespace(json!({ "metadata": { "name": "a", "labels": { "y": value } } }));
    let patch = lack_of(&stored, &wanted("2")).expect("the label is not there");
    assert_eq!(patch, json!({ "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "y": "2" } } }));
    let both = namespace(json!({ "metadata": { "name": "a", "labels": { "x": "1", "y": "2" } } }));
    assert_eq!(lack_of(&both, &wanted("2")), None);
}

#[test]
fn status_patch_holds_nothing_but_the_status() {
    let stored =
        namespace(json!({ "metadata": { "name": "a", "labels": { "x": "1" } }, "status": { "phase": "Active" } }));
    let wanted = namespace(json!({ "metadata": { "name": "a" }, "status": { "phase": "Terminating" } }));
    let patch = difference_of(&stored, &wanted, |field| field == "status").expect("they differ");
    assert_eq!(patch["status"], json!({ "phase": "Terminating" }));
    assert!(patch["metadata"].get("labels").is_none());
}
