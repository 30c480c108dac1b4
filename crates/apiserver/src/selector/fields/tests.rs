use std::sync::Arc;

use serde_json::{Value, json};

use super::Fields;
use crate::{
    kind::{Kind, Origin, Scope, Subresources, Version},
    schema::Schema,
};

fn kind(group: &str, plural: &str, origin: Origin, selectable: &[&str]) -> Kind {
    let version = Version {
        name: "v1".to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::new(Schema::default()),
        openapi: Arc::new(Value::Null),
        columns: Vec::new(),
        subresources: Subresources::default(),
        selectable_fields: selectable.iter().map(|&path| path.to_owned()).collect(),
    };
    Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: String::new(),
        kind: String::new(),
        list_kind: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: vec![version],
        origin,
    }
}

fn parse(kind: &Kind, text: &str) -> Result<Fields, String> {
    Fields::parse(kind, &kind.versions[0], text).map_err(|failure| {
        assert_eq!((failure.code, failure.reason), (400, "BadRequest"));
        failure.message
    })
}

fn built_in(plural: &str) -> Kind {
    kind("", plural, Origin::BuiltIn, &[])
}

#[test]
fn name_and_namespace_select_everywhere() {
    let object = json!({"metadata": {"name": "a", "namespace": "b"}});
    let selector = parse(&built_in("configmaps"), "metadata.name=a,metadata.namespace!=c").unwrap();
    assert!(selector.matches(&object));
    assert_eq!(selector.name(), Some("a"));
    assert!(!parse(&built_in("configmaps"), "metadata.name!=a").unwrap().matches(&object));
    assert_eq!(parse(&built_in("configmaps"), "metadata.name!=a").unwrap().name(), None);
    assert!(parse(&built_in("configmaps"), "").unwrap().is_everything());
}

#[test]
fn a_field_of_another_kind_can_not_be_selected_by() {
    assert_eq!(
        parse(&built_in("configmaps"), "type=x").unwrap_err(),
        "\"type\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    assert_eq!(parse(&built_in("secrets"), "spec.x=y").unwrap_err(), "field label not supported: spec.x");
    assert_eq!(
        parse(&kind("batch", "jobs", Origin::BuiltIn, &[]), "spec.x=y").unwrap_err(),
        "field label \"spec.x\" not supported for Job"
    );
    let custom = kind("example.com", "colours", Origin::Custom, &[]);
    assert_eq!(parse(&custom, "spec.color=red").unwrap_err(), "field label not supported: spec.color");
}

#[test]
fn a_selector_that_makes_no_sense_is_refused_as_kubernetes_does() {
    let secrets = built_in("secrets");
    assert_eq!(parse(&secrets, "type").unwrap_err(), "invalid selector: 'type'; can't understand 'type'");
    assert_eq!(parse(&secrets, "type=a=b").unwrap_err(), "invalid field selector: unescaped character in value: 61");
    assert_eq!(parse(&secrets, r"type=a\b").unwrap_err(), r"invalid field selector: invalid escape sequence: \b");
}

#[test]
fn a_backslash_makes_commas_part_of_the_value() {
    let selector = parse(&built_in("secrets"), r"type=a\,b\=c").unwrap();
    assert!(selector.matches(&json!({"type": "a,b=c"})));
}

#[test]
fn events_are_selected_in_either_of_their_forms() {
    let (old, new) = (built_in("events"), kind("events.k8s.io", "events", Origin::BuiltIn, &[]));
    let event = json!({"involvedObject": {"kind": "Pod", "uid": "1"}, "reportingComponent": "kubelet"});
    assert!(parse(&old, "involvedObject.kind==Pod,source=kubelet").unwrap().matches(&event));
    assert!(parse(&new, "regarding.kind=Pod,reportingController=kubelet").unwrap().matches(&event));
    assert!(parse(&new, "involvedObject.kind=Pod").is_err());
    assert!(parse(&new, "regarding.uid=1").unwrap().matches(&json!({"regarding": {"uid": "1"}})));
}

#[test]
fn what_is_not_said_is_what_it_stands_for() {
    assert!(parse(&built_in("nodes"), "spec.unschedulable=false").unwrap().matches(&json!({})));
    assert!(parse(&built_in("pods"), "spec.hostNetwork!=true").unwrap().matches(&json!({"spec": {}})));
    assert!(parse(&kind("batch", "jobs", Origin::BuiltIn, &[]), "status.successful=0").unwrap().matches(&json!({})));
}

#[test]
fn custom_kinds_say_what_they_can_be_selected_by() {
    let custom = kind("example.com", "colours", Origin::Custom, &[".spec.color", ".spec.count"]);
    let selector = parse(&custom, "spec.color=red,spec.count=3").unwrap();
    assert!(selector.matches(&json!({"spec": {"color": "red", "count": 3}})));
    assert!(!selector.matches(&json!({"spec": {"color": "red"}})));
    assert!(parse(&custom, "spec.color=").unwrap().matches(&json!({"spec": {}})));
}
