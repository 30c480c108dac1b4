//! What marks a work as ours.

use serde_json::json;

use super::*;

/// A work that was made for an add-on.
fn made() -> ManifestWork {
    let metadata = json!({
        "name": "addon-hello-deploy-0", "namespace": "one",
        "labels": { ADDON_NAME_LABEL: "hello" },
        "annotations": { CONFIG_SPEC_HASH_ANNOTATION: "{}", SET_ANNOTATION: "0123456789abcdef" },
        "ownerReferences": [owner("ours", "hello")],
    });
    let work = json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": metadata, "spec": {} });
    serde_json::from_value(work).expect("a work")
}

fn owner(uid: &str, name: &str) -> OwnerReference {
    let owner = json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "name": name, "uid": uid, "controller": true });
    serde_json::from_value(owner).expect("an owner")
}

/// Whether these marks are on a work. One without the label is of no add-on.
fn are_on(marks: &Marks, work: &ManifestWork) -> bool {
    AddOnWork::of(work, &work.metadata.clone().into()).is_some_and(|work| marks.are_on(&work))
}

type Spoil = fn(&mut ManifestWork);

/// What somebody may do to the marks of a work.
const SPOILT: [(&str, Spoil); 6] = [
    ("its label", |work| drop(work.labels_mut().remove(ADDON_NAME_LABEL))),
    ("a version that it has not", |work| {
        work.labels_mut().insert(ADDON_VERSION_LABEL.to_owned(), "v9".to_owned());
    }),
    ("another namespace", |work| {
        work.labels_mut().insert(ADDON_NAMESPACE_LABEL.to_owned(), "two".to_owned());
    }),
    ("its hashes", |work| {
        work.annotations_mut().insert(CONFIG_SPEC_HASH_ANNOTATION.to_owned(), "x".to_owned());
    }),
    ("its set", |work| drop(work.annotations_mut().remove(SET_ANNOTATION))),
    ("its owner", |work| work.owner_references_mut().clear()),
];

#[test]
fn what_is_taken_from_the_marks_of_a_work_is_put_back() {
    let marks = Marks::of(&made());
    for (what, spoil) in SPOILT {
        let mut work = made();
        spoil(&mut work);
        assert!(!are_on(&marks, &work), "{what}");
        Marks::copy(&made(), &mut work);
        assert!(are_on(&marks, &work), "{what}");
    }
}

#[test]
fn what_others_have_added_stays_and_does_not_count() {
    let mut work = made();
    work.labels_mut().insert("team".to_owned(), "a".to_owned());
    work.annotations_mut().insert("note".to_owned(), "b".to_owned());
    work.owner_references_mut().push(OwnerReference { controller: None, ..owner("theirs", "other") });
    let before = work.clone();
    assert!(are_on(&Marks::of(&made()), &work));
    Marks::copy(&made(), &mut work);
    assert_eq!(work, before);
}

#[test]
fn who_goes_with_its_add_on_may_be_controlled_by_another() {
    let mut work = made();
    *work.owner_references_mut() = vec![owner("theirs", "other")];
    assert!(!are_on(&Marks::of(&made()), &work));
    Marks::copy(&made(), &mut work);
    assert_eq!(work.owner_references().len(), 2);
    assert!(are_on(&Marks::of(&made()), &work), "it is not written again for that");
}

#[test]
fn a_work_is_known_again_by_its_set_or_by_its_owner() {
    let mut without_set = made();
    without_set.annotations_mut().clear();
    without_set.labels_mut().clear();
    assert!(is_kin(&without_set, &made()), "it goes with the add-on, as those that OCM has made");
    let mut without_owner = made();
    without_owner.owner_references_mut().clear();
    assert!(is_kin(&without_owner, &made()));
    without_owner.annotations_mut().clear();
    assert!(!is_kin(&without_owner, &made()), "somebody has chosen the same name");
}
