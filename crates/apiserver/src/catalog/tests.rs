use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    kind::{Origin, Scope, Subresources},
    schema::{ListKind, Schema, Type},
};

fn custom(group: &str, plural: &str, versions: &[&str]) -> Arc<Kind> {
    let version = |name: &&str| Version {
        name: (*name).to_owned(),
        is_served: true,
        is_stored: false,
        deprecation: None,
        schema: Arc::default(),
        openapi: Arc::default(),
        columns: Vec::new(),
        subresources: Subresources::default(),
        selectable_fields: Vec::new(),
    };
    Arc::new(Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: String::new(),
        kind: plural.to_uppercase(),
        list_kind: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Cluster,
        versions: versions.iter().map(version).collect(),
        origin: Origin::Custom,
    })
}

fn schema_of(kind: &str) -> Arc<Schema> {
    let kind = built_in().into_iter().find(|it| it.kind == kind).expect("there is such a kind");
    Arc::clone(&kind.versions[0].schema)
}

fn at<'a>(schema: &'a Arc<Schema>, path: &[&str]) -> &'a Arc<Schema> {
    path.iter().fold(schema, |schema, name| match *name {
        "[]" => schema.items.as_ref().expect("a list"),
        name => schema.field(name).unwrap_or_else(|| panic!("there is no {name}")),
    })
}

#[test]
fn every_kind_has_a_schema() {
    for kind in built_in() {
        let schema = &kind.versions[0].schema;
        assert_eq!(at(schema, &["metadata", "name"]).type_, Some(Type::String), "{}", kind.kind);
        assert_eq!(at(schema, &["metadata", "finalizers"]).list, ListKind::Set, "{}", kind.kind);
        assert!(kind.versions[0].openapi.get("x-kubernetes-group-version-kind").is_some(), "{}", kind.kind);
    }
}

#[test]
fn schemas_say_how_lists_are_merged() {
    let ports = schema_of("Service");
    let ports = at(&ports, &["spec", "ports"]);
    assert_eq!(ports.list, ListKind::Map(vec!["port".to_owned(), "protocol".to_owned()]));
    assert_eq!(ports.patch_merge_key.as_deref(), Some("port"));
    assert_eq!(at(ports, &["[]", "protocol"]).default, Some(json!("TCP")));
    assert!(at(ports, &["[]", "targetPort"]).int_or_string);
}

#[test]
fn only_what_is_not_known_may_be_anything() {
    let schemas = openapi::Schemas::new(definitions());
    let open: Vec<_> = definitions().keys().filter(|name| schemas.read(name).expect("it is there").is_open()).collect();
    let open: Vec<_> = open.iter().filter_map(|name| name.rsplit('.').next()).collect();
    let schema = "JSONSchemaProps";
    let expected = ["JSON", &format!("{schema}OrArray"), &format!("{schema}OrBool"), &format!("{schema}OrStringArray")];
    assert_eq!(open, [&expected[..], &["FieldsV1", "RawExtension"]].concat());
}

#[test]
fn a_schema_that_contains_itself_ends() {
    let definition = schema_of("CustomResourceDefinition");
    let mut schema = at(&definition, &["spec", "versions", "[]", "schema", "openAPIV3Schema"]);
    for _ in 0..8 {
        assert_eq!(at(schema, &["x-kubernetes-validations"]).list, ListKind::Map(vec!["rule".to_owned()]));
        schema = at(schema, &["properties", "any"]);
    }
    let deepest = at(schema, &["properties", "any"]);
    assert!(deepest.is_open() && deepest.properties.is_empty());
}

#[test]
fn kinds_are_found_by_either_name() {
    let kinds = Kinds::new();
    let (kind, version) = kinds.get("apps", "v1", "deployments").expect("it is built in");
    assert_eq!((kind.kind.as_str(), version.name.as_str()), ("Deployment", "v1"));
    assert_eq!(kinds.by_kind("", "v1", "ConfigMap").expect("it is built in").0.plural, "configmaps");
    assert!(kinds.get("", "v1", "deployments").is_none());
    assert!(kinds.get("apps", "v1beta1", "deployments").is_none());
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let mut kinds = Kinds::new();
    let before = kinds.clone();
    kinds.insert_custom(custom("example.com", "things", &["v1"]));
    let between = kinds.clone();
    kinds.remove_custom("example.com", "things");
    let has = |kinds: &Kinds| kinds.get("example.com", "v1", "things").is_some();
    assert_eq!([has(&before), has(&between), has(&kinds)], [false, true, false]);
}

#[test]
fn built_in_kinds_can_neither_be_replaced_nor_removed() {
    let mut kinds = Kinds::new();
    kinds.insert_custom(custom("apps", "deployments", &["v1"]));
    kinds.remove_custom("apps", "deployments");
    assert_eq!(kinds.get("apps", "v1", "deployments").expect("it is built in").0.origin, Origin::BuiltIn);
}

#[test]
fn an_event_is_the_same_in_both_groups() {
    let event =
        json!({ "apiVersion": "v1", "kind": "Event", "message": "It is.", "involvedObject": {}, "reason": "Is" });
    let expected =
        json!({ "apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "It is.", "regarding": {}, "reason": "Is" });
    let mut fields = event.as_object().expect("it is an object").clone();
    new_event(&mut fields);
    assert_eq!(json!(fields), expected);
    core_event(&mut fields);
    assert_eq!(json!(fields), event);
}
