//! `kubectl explain` has something to say about every field.

use crate::schema::{fields, versions};

#[test]
fn every_field_is_described_in_a_sentence() {
    for (kind, version, schema) in versions() {
        for field in fields(&schema) {
            let is_plain_item = field.path.ends_with("[]") || field.path.ends_with("{}");
            if is_plain_item && !field.schema["properties"].is_object() {
                continue;
            }
            let description = field.schema["description"].as_str().unwrap_or_default();
            let at = format!("{kind} {version} {}", field.path);
            assert!(description.ends_with(['.', ')']), "{at} needs a description that is a sentence: {description:?}");
            assert!(!description.contains("Auto-generated"), "{at} needs a description of its own");
        }
    }
}

#[test]
fn every_kind_shows_its_age_and_can_be_listed_with_the_others() {
    for crd in drover_api::crds() {
        let kind = &crd.spec.names.kind;
        assert_eq!(crd.spec.names.categories.as_deref(), Some(["drover".to_owned()].as_slice()), "{kind}");
        for version in &crd.spec.versions {
            let columns = version.additional_printer_columns.as_deref().unwrap_or_default();
            assert!(columns.iter().any(|column| column.name == "Age"), "{kind} has no column for its age");
        }
    }
}

#[test]
fn no_two_kinds_share_a_short_name() {
    let mut seen = std::collections::BTreeMap::new();
    for crd in drover_api::crds() {
        let names = &crd.spec.names;
        for name in names.short_names.iter().flatten().chain([&names.plural]) {
            if let Some(other) = seen.insert(name.clone(), names.kind.clone()) {
                panic!("{name} is a name of both {other} and {}", names.kind);
            }
        }
    }
}
