use serde_json::json;

use drover_api::work::ManifestWorkSpec;

use super::*;
use crate::work::fixtures::{owner, owner_reference, target};

fn version() -> Target {
    target(
        "clusterversions",
        &json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": { "name": "version" },
        }),
    )
}

fn selectively(rule: &Value) -> DeleteOption {
    let option =
        json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": { "orphaningRules": [rule] } });
    serde_json::from_value(option).unwrap()
}

fn applied(resource: &str, namespace: Option<&str>, name: &str) -> AppliedResource {
    AppliedResource {
        version: "v1".into(),
        resource: resource.into(),
        name: name.into(),
        namespace: namespace.map(Into::into),
        ..AppliedResource::default()
    }
}

#[test]
fn the_hash_of_a_hub_is_that_of_its_url() {
    assert_eq!(hub_hash("https://hub:6443"), "9f63aa51ee73742847a1dd584c640c8b579dc14418ab416e3dd716fbe9362d31");
    assert_eq!(applied_work_name("hash", "work"), "hash-work");
}

#[test]
fn an_applied_work_is_made_with_the_labels_of_its_work_and_a_finalizer() {
    let mut work = ManifestWork::new("work", ManifestWorkSpec::default());
    work.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let made = applied_work(&work, "hash", None);
    assert_eq!((made.name_any().as_str(), made.spec.manifest_work_name.as_str()), ("hash-work", "work"));
    assert_eq!(made.spec.agent_id.as_deref(), Some("hash"));
    assert_eq!(made.labels(), work.labels());
    assert_eq!(made.finalizers(), [APPLIED_WORK_FINALIZER]);
    assert_eq!(applied_work(&work, "hash", Some("me")).spec.agent_id.as_deref(), Some("me"));
}

#[test]
fn objects_are_removed_unless_the_work_says_otherwise() {
    assert_eq!(fate(None, &version()), Fate::Removed);
    assert_eq!(fate(Some(&DeleteOption::default()), &version()), Fate::Removed);
    let orphan = DeleteOption { propagation_policy: DeletePropagationPolicy::Orphan, ..DeleteOption::default() };
    assert_eq!(fate(Some(&orphan), &version()), Fate::Orphaned);
    assert_eq!(fate_of_applied(Some(&orphan), &applied("secrets", None, "a")), Fate::Orphaned);
}

#[test]
fn rules_keep_exactly_what_they_name() {
    let applied =
        AppliedResource { group: Some("config.openshift.io".into()), ..applied("clusterversions", None, "version") };
    for (rule, expected) in [
        (json!({ "group": "config.openshift.io", "resource": "clusterversions", "name": "version" }), Fate::Orphaned),
        (json!({ "resource": "ClusterVersion.config.openshift.io", "name": "version" }), Fate::Orphaned),
        (json!({ "resource": "ClusterVersion.config.openshift.io", "name": "other" }), Fate::Removed),
        (json!({ "resource": "ClusterVersion.example.com", "name": "version" }), Fate::Removed),
        (json!({ "resource": "Console.config.openshift.io", "name": "version" }), Fate::Removed),
        (json!({ "resource": "clusterversions", "name": "version" }), Fate::Removed),
        (json!({ "group": "config.openshift.io", "resource": "clusterversions", "name": "*" }), Fate::Removed),
        (
            json!({ "group": "config.openshift.io", "resource": "clusterversions", "name": "version", "namespace": "a" }),
            Fate::Removed,
        ),
    ] {
        assert_eq!(fate(Some(&selectively(&rule)), &version()), expected, "{rule}");
        assert_eq!(fate_of_applied(Some(&selectively(&rule)), &applied), expected, "{rule}");
    }
}

#[test]
fn an_owner_is_added_once_and_taken_away_alone() {
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "theirs" });
    let both = [other.clone(), owner_reference()];
    assert_eq!(owner().references(Fate::Removed, std::slice::from_ref(&other)), both);
    assert_eq!(owner().references(Fate::Removed, &both), both);
    assert_eq!(owner().references(Fate::Orphaned, &both), [other]);
}

#[test]
fn an_object_is_shared_with_other_works_only() {
    let with = |owners: Value| json!({ "metadata": { "ownerReferences": owners } });
    let other =
        json!({ "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "uid": "theirs" });
    assert!(is_shared(&with(json!([owner_reference(), other])), &owner()));
    assert!(!is_shared(
        &with(json!([owner_reference(), { "apiVersion": "v1", "kind": "Node", "uid": "n" }])),
        &owner()
    ));
}

#[test]
fn a_patch_of_owners_fails_where_the_object_has_changed() {
    let live = json!({ "metadata": { "uid": "1", "resourceVersion": "7" } });
    let expected =
        json!({ "metadata": { "uid": "1", "resourceVersion": "7", "ownerReferences": [owner_reference()] } });
    assert_eq!(owner().patch(Fate::Removed, &live), Some(expected));
    assert_eq!(owner().patch(Fate::Orphaned, &live), None);
}

#[test]
fn what_is_there_is_listed_and_what_nobody_knows_stays_listed() {
    let meta = |name: &str| ManifestResourceMeta {
        version: Some("v2".into()),
        resource: Some("gadgets".into()),
        name: Some(name.into()),
        ..ManifestResourceMeta::default()
    };
    let recorded =
        [applied("gadgets", None, "silent"), applied("gadgets", None, "gone"), applied("gadgets", None, "pending")];
    let seen = [
        (meta("there"), Presence::There { uid: "1".into() }),
        (meta("gone"), Presence::Gone),
        (meta("silent"), Presence::Unknown),
        (meta("new"), Presence::Unknown),
    ];
    let there = AppliedResource { version: "v2".into(), uid: Some("1".into()), ..applied("gadgets", None, "there") };
    let expected = [recorded[2].clone(), recorded[0].clone(), there];
    assert_eq!(applied_resources(&recorded, &seen, &recorded[2..]), expected);
}

#[test]
fn what_is_about_to_be_applied_is_listed_before_it_is() {
    let meta = |name: &str| {
        let manifest =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" } });
        target("configmaps", &manifest).resource_meta()
    };
    let known = AppliedResource { uid: Some("uid".into()), ..applied("configmaps", Some("default"), "b") };
    let listed = before_applying(std::slice::from_ref(&known), [meta("a"), meta("b")]);
    assert_eq!(listed, Some(vec![applied("configmaps", Some("default"), "a"), known.clone()]));
    assert_eq!(before_applying(std::slice::from_ref(&known), [meta("b")]), None);
    let nowhere = ManifestResourceMeta { resource: None, ..meta("c") };
    assert_eq!(before_applying(&[], [nowhere]), None, "nobody knows where it will be");

    let seen = [(meta("b"), Presence::Gone)];
    assert_eq!(unseen(std::slice::from_ref(&known), &seen), []);
    assert_eq!(unseen(std::slice::from_ref(&known), &[]), [known]);
}
