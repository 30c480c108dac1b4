//! What writes say.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::json;

use super::*;

fn config(value: &str) -> ConfigMap {
    let object = json!({ "metadata": { "namespace": "home", "name": "a", "uid": "u", "resourceVersion": "7" },
        "data": { "x": value } });
    serde_json::from_value(object).expect("a valid object")
}

fn unchanged() -> Precondition {
    Precondition::Unchanged { uid: "u".to_owned(), resource_version: "7".to_owned() }
}

#[test]
fn update_is_a_patch_for_the_state_that_was_read() {
    let write = Write::update(&config("1"), &config("2")).expect("they differ");
    assert_eq!(write.to_string(), "Patch ConfigMap home/a");
    assert_eq!((write.verb(), write.subresource(), write.precondition()), (Verb::Patch, None, &unchanged()));
    assert_eq!(write.kind(), &Kind::of::<ConfigMap>());
    let patch = json!({ "metadata": { "uid": "u", "resourceVersion": "7" }, "data": { "x": "2" } });
    assert_eq!(write.body(), Some(patch));
    assert_eq!(Write::update(&config("1"), &config("1")), None);
}

#[test]
fn merge_patch_is_sent_as_it_is() {
    let patch = json!({ "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "a": null } } });
    let write = Write::merge(&config("1"), patch.clone());
    assert_eq!((write.verb(), write.subresource(), write.precondition()), (Verb::Patch, None, &unchanged()));
    assert_eq!(write.body(), Some(patch.clone()));
    let WriteOperation::Patch { patch: body, .. } = write.operation() else { panic!("it is a patch") };
    assert_eq!(serde_json::to_string(body).expect("JSON"), patch.to_string());
}

#[test]
fn ensure_creates_what_is_missing() {
    let write = Write::ensure(None, config("1")).expect("it is missing");
    assert_eq!((write.verb(), write.precondition()), (Verb::Create, &Precondition::Absent));
    assert_eq!(write, Write::create(config("1")));
    assert_ne!(write, Write::create(config("2")));
    assert_eq!(Write::ensure(Some(&config("1")), config("1")), None);
}

#[test]
fn object_that_is_known_by_name_alone_is_deleted_in_any_state() {
    assert_eq!(Write::delete(&config("1")).precondition(), &unchanged());
    let mut named = Namespace::default();
    named.metadata.name = Some("a".to_owned());
    let write = Write::delete(&named);
    assert_eq!((write.to_string().as_str(), write.precondition()), ("Delete Namespace a", &Precondition::None));
    assert_eq!(write.body(), None);
}

#[test]
fn statuses_and_approvals_are_written_by_themselves() {
    let namespace = |phase: &str| -> Namespace {
        serde_json::from_value(json!({ "metadata": { "name": "a" }, "status": { "phase": phase } })).expect("valid")
    };
    let [stored, wanted] = ["Active", "Terminating"].map(namespace);
    let part = |write: Option<Write>| write.and_then(|write| write.subresource());
    assert_eq!(part(Write::status(&stored, &wanted)), Some(Subresource::Status));
    assert_eq!(part(Write::approval(&stored, &wanted)), Some(Subresource::Approval));
    assert_eq!(Write::update(&stored, &wanted), None);
}
