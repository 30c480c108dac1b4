use serde_json::json;

use super::*;
use crate::work::fixtures::{owner, owner_reference};

fn applied(resource: &str, name: &str) -> AppliedResource {
    AppliedResource {
        version: "v1".into(),
        resource: resource.into(),
        name: name.into(),
        namespace: Some("shop".into()),
        uid: Some("1".into()),
        ..AppliedResource::default()
    }
}

/// A manifest whose object nobody could ask for.
fn seen(resource: Option<&str>, name: Option<&str>) -> (ManifestResourceMeta, Presence) {
    let meta = ManifestResourceMeta {
        version: Some("v2".into()),
        resource: resource.map(Into::into),
        name: name.map(Into::into),
        namespace: Some("shop".into()),
        ..ManifestResourceMeta::default()
    };
    (meta, Presence::Unknown)
}

fn live(owners: &[Value]) -> Value {
    json!({ "metadata": { "uid": "1", "resourceVersion": "7", "ownerReferences": owners } })
}

fn other_work() -> Value {
    json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "name": "b", "uid": "theirs" })
}

fn asked(live: Option<&Value>) -> Removal {
    removal(&applied("secrets", "a"), live, &owner(), Fate::Removed)
}

#[test]
fn what_was_taken_out_of_a_work_is_removed_in_reverse_order() {
    let recorded = [applied("secrets", "a"), applied("deployments", "b"), applied("secrets", "c")];
    let left = leftovers(&recorded, &[seen(Some("secrets"), Some("c"))], true);
    assert_eq!(left, [recorded[1].clone(), recorded[0].clone()]);
}

#[test]
fn another_version_is_the_same_object() {
    assert_eq!(leftovers(&[applied("secrets", "a")], &[seen(Some("secrets"), Some("a"))], true), []);
}

#[test]
fn what_was_found_in_another_group_is_the_same_object() {
    let mut moved = seen(Some("ingresses"), Some("a"));
    moved.0.group = Some("networking.k8s.io".into());
    moved.1 = Presence::There { uid: "1".into() };
    let recorded = [AppliedResource { group: Some("extensions".into()), ..applied("ingresses", "a") }];
    assert_eq!(leftovers(&recorded, std::slice::from_ref(&moved), true), []);
    moved.1 = Presence::There { uid: "2".into() };
    assert_eq!(leftovers(&recorded, &[moved], true), recorded);
}

#[test]
fn nothing_is_removed_before_the_hub_knows_the_work_as_applied() {
    assert_eq!(leftovers(&[applied("secrets", "a")], &[], false), []);
}

#[test]
fn what_could_not_be_found_or_read_was_not_taken_out() {
    let recorded = [applied("gadgets", "a")];
    assert_eq!(leftovers(&recorded, &[seen(None, Some("a"))], true), []);
    assert_eq!(leftovers(&recorded, &[seen(None, Some("b"))], true), recorded);
    assert_eq!(leftovers(&recorded, &[seen(None, None)], true), [], "it may be this one");
    let cluster_wide = [AppliedResource { namespace: None, ..applied("gadgets", "a") }];
    assert_eq!(leftovers(&cluster_wide, &[seen(None, Some("a"))], true), [], "the namespace may be one too many");
}

#[test]
fn only_what_belongs_to_the_work_alone_is_deleted() {
    assert_eq!(asked(None), Removal::Forget);
    assert_eq!(asked(Some(&live(&[]))), Removal::Leave);
    assert_eq!(asked(Some(&live(&[other_work()]))), Removal::Leave);
    assert_eq!(asked(Some(&live(&[owner_reference()]))), Removal::Delete { uid: "1".into() });
    let some_owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "x" });
    assert_eq!(asked(Some(&live(&[owner_reference(), some_owner]))), Removal::Delete { uid: "1".into() });
}

#[test]
fn what_other_works_need_only_loses_its_owner() {
    let patch = live(&[other_work()]);
    assert_eq!(asked(Some(&live(&[owner_reference(), other_work()]))), Removal::DropOwner(patch));
}

#[test]
fn what_is_to_stay_only_loses_its_owner() {
    let orphan = |live: &Value| removal(&applied("secrets", "a"), Some(live), &owner(), Fate::Orphaned);
    assert_eq!(orphan(&live(&[owner_reference()])), Removal::DropOwner(live(&[])));
    assert_eq!(orphan(&live(&[])), Removal::Leave);
}

#[test]
fn another_object_of_the_same_name_is_not_deleted() {
    let mut another = live(&[owner_reference()]);
    another["metadata"]["uid"] = json!("2");
    assert_eq!(asked(Some(&another)), Removal::Forget);
    let unrecorded = AppliedResource { uid: None, ..applied("secrets", "a") };
    assert_eq!(removal(&unrecorded, Some(&another), &owner(), Fate::Removed), Removal::Delete { uid: "2".into() });
}

#[test]
fn what_is_on_its_way_out_is_waited_for() {
    let mut going = live(&[owner_reference()]);
    going["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    assert_eq!(asked(Some(&going)), Removal::Await);
}
