use std::{path::PathBuf, sync::Arc};

use serde::Deserialize;

use super::*;
use crate::{
    kind::{Kind, Scope, Version},
    schema::{Schema, fill::fill_in_defaults, prune::prune, rules, rules::Rules, validate::Validator},
};

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The definitions that Drover brings.
fn ours() -> Vec<Value> {
    let files = std::fs::read_dir(repository().join("deploy/crds")).unwrap();
    let read = |path: PathBuf| serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    files.map(|file| read(file.unwrap().path())).collect()
}

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn widgets() -> Value {
    let mut crd = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": { "type": "object", "properties": { "color": { "type": "string" } } } },
            } } }],
        },
    });
    fill_in(&mut crd);
    crd
}

/// What is said of widgets with something changed.
#[track_caller]
fn assert_said(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let mut crd = widgets();
    change(&mut crd);
    assert_eq!(told(&validate(&crd, None)), expected);
}

#[track_caller]
fn assert_said_of_spec(openapi: Value, expected: &[&str]) {
    let place = "spec.validation.openAPIV3Schema.properties[spec]";
    let expected: Vec<_> = expected.iter().map(|text| format!("{place}{text}")).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    assert_said(
        |crd| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = openapi,
        &expected,
    );
}

#[test]
fn our_definitions_are_sound_and_bring_kinds() {
    for mut crd in ours() {
        fill_in(&mut crd);
        assert_eq!(told(&validate(&crd, None)), Vec::<String>::new(), "{}", crd["metadata"]["name"]);
        let kind = kind(&crd);
        assert!(kind.stored().is_some() && kind.versions[0].is_served);
        for version in &kind.versions {
            assert!(Rules::compile(&version.openapi).is_ok());
        }
    }
}

/// A case of `rules.yaml`.
#[derive(Deserialize)]
struct Case {
    rule: String,
    by: String,
    field: Option<String>,
    before: Option<Value>,
    refused: Option<Value>,
    accepted: Value,
}

/// What objects of one version of a kind are held against.
struct Judge {
    kind: String,
    api_version: String,
    schema: Arc<Schema>,
    validator: Validator,
    rules: Rules,
}

impl Judge {
    fn all() -> Vec<Self> {
        let kinds: Vec<Kind> = ours().iter().map(kind).collect();
        let of_version = |kind: &Kind, version: &Version| Self {
            kind: kind.kind.clone(),
            api_version: kind.api_version(&version.name),
            schema: version.schema.clone(),
            validator: Validator::new(&version.schema),
            rules: Rules::compile(&version.openapi).unwrap(),
        };
        kinds.iter().flat_map(|kind| kind.versions.iter().map(move |version| of_version(kind, version))).collect()
    }

    /// What a server says to writing an object over another.
    fn objections(judges: &[Self], object: &Value, before: Option<&Value>) -> Vec<FieldError> {
        let is_of = |judge: &&Self| object["kind"] == judge.kind && object["apiVersion"] == judge.api_version;
        let judge = judges.iter().find(is_of).unwrap();
        let prepared = |object: &Value| {
            let mut object = object.clone();
            assert_eq!(prune(&mut object, &judge.schema), Vec::<String>::new());
            fill_in_defaults(&mut object, &judge.schema);
            object
        };
        let (object, before) = (prepared(object), before.map(prepared));
        let mut errors = judge.validator.check(&object, before.as_ref());
        match rules::blocked(&errors) {
            Some(blocked) => errors.push(blocked),
            None => errors.extend(judge.rules.check(&object, before.as_ref())),
        }
        errors
    }
}

#[test]
fn our_rules_are_judged_as_their_cases_say() {
    let text = std::fs::read_to_string(repository().join("crates/api/tests/rules.yaml")).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_str(&text).unwrap();
    let judges = Judge::all();
    for case in cases {
        let before = case.before.as_ref();
        assert_eq!(told(&Judge::objections(&judges, &case.accepted, before)), Vec::<String>::new(), "{}", case.rule);
        let Some(refused) = &case.refused else { continue };
        let errors = Judge::objections(&judges, refused, before);
        let expected =
            |error: &FieldError| Some(&error.field) == case.field.as_ref() && error.body().contains(&case.rule);
        assert!(errors.iter().any(expected), "{}: {:?}", case.rule, told(&errors));
        assert!(errors.len() == 1 || case.by == "schema", "{}: {:?}", case.rule, told(&errors));
    }
}

#[test]
fn what_is_not_said_is_filled_in() {
    let crd = widgets();
    assert_eq!(
        crd["spec"]["names"],
        json!({ "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" })
    );
    assert_eq!(crd["spec"]["conversion"], json!({ "strategy": "None" }));
    assert_eq!(told(&validate(&crd, None)), Vec::<String>::new());
}

#[test]
fn names_fit_together() {
    assert_said(
        |crd| crd["metadata"]["name"] = "other.example.com".into(),
        &[r#"metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group"#],
    );
    assert_said(
        |crd| crd["spec"]["scope"] = "Everywhere".into(),
        &[r#"spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced""#],
    );
    assert_said(
        |crd| crd["spec"]["names"]["listKind"] = "Widget".into(),
        &[r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#],
    );
    assert_said(
        |crd| crd["spec"]["names"]["shortNames"] = json!(["W"]),
        &[
            r#"spec.names.shortNames[0]: Invalid value: "W": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
}

#[test]
fn groups_of_the_community_need_approval() {
    let reason = r#"metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111"#;
    let move_group = |crd: &mut Value| {
        crd["spec"]["group"] = "widgets.k8s.io".into();
        crd["metadata"]["name"] = "widgets.widgets.k8s.io".into();
    };
    assert_said(move_group, &[reason]);
    assert_said(
        |crd| {
            move_group(crd);
            crd["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": "unapproved, for a test" });
        },
        &[],
    );
}

#[test]
fn one_version_is_stored() {
    let mut crd = widgets();
    crd["spec"]["versions"][0]["storage"] = false.into();
    let errors = told(&validate(&crd, None));
    assert!(errors[0].ends_with("must have exactly one version marked as storage version"), "{errors:?}");
    assert_eq!(errors[1], "status.storedVersions: Invalid value: null: must have at least one stored version");

    let mut crd = widgets();
    crd["status"] = json!({ "storedVersions": ["v1beta1", "v1"] });
    let errors = told(&validate(&crd, Some(&crd)));
    assert!(
        errors[0].starts_with(
            r#"status.storedVersions[0]: Invalid value: "v1beta1": missing from spec.versions; v1beta1 was"#
        ),
        "{errors:?}"
    );
}

#[test]
fn schemas_are_structural() {
    assert_said(
        |crd| crd["spec"]["versions"][0]["schema"] = Value::Null,
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    assert_said_of_spec(
        json!({ "properties": {} }),
        &[".type: Required value: must not be empty for specified object fields"],
    );
    assert_said_of_spec(json!({ "type": "array" }), &[".items: Required value: must be specified"]);
    assert_said_of_spec(
        json!({ "type": "string", "anyOf": [{ "type": "string", "description": "a" }] }),
        &[
            ".anyOf[0].description: Forbidden: must be empty to be structural",
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    assert_said_of_spec(
        json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
        &[],
    );
    assert_said(
        |crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["anyOf"] =
                json!([{ "properties": { "other": { "minLength": 1 } } }]);
        },
        &[
            "spec.validation.openAPIV3Schema.properties[other]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[other]",
        ],
    );
    assert_said(
        |crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] =
                json!({ "type": "object", "properties": { "labels": { "type": "object" } } });
        },
        &[
            "spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
}

#[test]
fn schemas_say_only_what_they_may() {
    assert_said_of_spec(
        json!({ "type": "text" }),
        &[
            r#".type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    );
    assert_said_of_spec(
        json!({ "type": "array", "uniqueItems": true, "items": { "type": "string" } }),
        &[".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
    );
    assert_said_of_spec(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": { "type": "string" } }),
        &[".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    );
    assert_said_of_spec(
        json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "properties": { "name": { "type": "string" } } } }),
        &[
            ".items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    assert_said_of_spec(json!({ "type": "string", "$ref": "#/a" }), &[".$ref: Forbidden: $ref is not supported"]);
    assert_said_of_spec(
        json!({ "type": "object", "x-kubernetes-validations": [{ "rule": "self.a", "fieldPath": ".b" }], "properties": { "a": { "type": "boolean" } } }),
        &[r#".x-kubernetes-validations[0].fieldPath: Invalid value: ".b": must be a valid path"#],
    );
}

#[test]
fn defaults_are_values_of_their_schema() {
    assert_said_of_spec(
        json!({ "type": "object", "default": { "b": 1 }, "properties": { "a": { "type": "integer", "default": "x" } } }),
        &[
            r#".default: Invalid value: {"b":1}: must not have unknown fields"#,
            r#".properties[a].default: Invalid value: "string":  in body must be of type integer: "string""#,
        ],
    );
}

#[test]
fn what_differs_between_versions_is_named_there() {
    assert_said(
        |crd| {
            let mut second = crd["spec"]["versions"][0].clone();
            second["name"] = "v2".into();
            second["storage"] = false.into();
            second["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({});
            crd["spec"]["versions"].as_array_mut().unwrap().push(second);
        },
        &[
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
        ],
    );
}

#[test]
fn columns_subresources_and_selectable_fields_make_sense() {
    let version = |crd: &mut Value, name: &str, value: Value| crd["spec"]["versions"][0][name] = value;
    assert_said(
        |crd| version(crd, "additionalPrinterColumns", json!([{ "name": "A", "type": "text", "jsonPath": "spec" }])),
        &[
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string"#,
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with ."#,
        ],
    );
    assert_said(
        |crd| version(crd, "subresources", json!({ "scale": { "specReplicasPath": ".status.replicas" } })),
        &[
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec"#,
            "spec.subresources.scale.statusReplicasPath: Required value",
        ],
    );
    assert_said(
        |crd| {
            version(
                crd,
                "selectableFields",
                json!([{ "jsonPath": ".spec.color" }, { "jsonPath": ".spec" }, { "jsonPath": ".spec.size" }]),
            );
        },
        &[
            r#"spec.selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."#,
            r#"spec.selectableFields[2].jsonPath: Invalid value: ".spec.size": is an invalid path: does not refer to a valid field"#,
        ],
    );
}

#[test]
fn some_things_can_not_be_changed() {
    let mut old = widgets();
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    assert_eq!(told(&validate(&new, Some(&old))), Vec::<String>::new());
    old["status"] = status(&old, &Taken::default(), "2026-01-01T00:00:00Z");
    assert_eq!(told(&validate(&new, Some(&old))), [r#"spec.scope: Invalid value: "Cluster": field is immutable"#]);
}

#[test]
fn a_definition_is_established_under_its_names() {
    let mut crd = widgets();
    let condition = |type_: &str, reason: &str, message: &str| json!({ "type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    crd["status"] = status(&crd, &Taken::default(), "2026-01-01T00:00:00Z");
    assert_eq!(
        crd["status"],
        json!({
            "acceptedNames": crd["spec"]["names"],
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "storedVersions": ["v1"],
        })
    );
    let mut taken = Taken::default();
    taken.add(&crd);
    assert_eq!(status(&crd, &taken, "2027-01-01T00:00:00Z"), crd["status"], "its own names are no conflict");
}

#[test]
fn names_that_are_taken_are_not_accepted() {
    let taken = Taken { resources: ["w".to_owned(), "x".to_owned()].into(), kinds: ["Widget".to_owned()].into() };
    let mut crd = widgets();
    crd["spec"]["names"]["shortNames"] = json!(["w", "x"]);
    crd["status"] = status(&crd, &taken, "2026-01-01T00:00:00Z");
    let said = |index: usize| {
        let condition = &crd["status"]["conditions"][index];
        ["type", "status", "reason", "message"].map(|name| condition[name].as_str().unwrap())
    };
    assert_eq!(said(0), ["NamesAccepted", "False", "KindConflict", "\"Widget\" is already in use"]);
    assert_eq!(said(1), ["Established", "False", "NotAccepted", "not all names are accepted"]);
    assert_eq!(
        crd["status"]["acceptedNames"],
        json!({ "plural": "widgets", "singular": "widget", "kind": "", "listKind": "WidgetList" })
    );
}

#[test]
fn versions_are_ranked() {
    let mut crd = widgets();
    let names = ["foo", "v1alpha2", "v11", "v2beta1", "v1", "v1beta3", "bar"];
    crd["spec"]["versions"] =
        names.iter().map(|name| json!({ "name": name, "served": true, "deprecated": *name == "v1beta3" })).collect();
    let kind = kind(&crd);
    let ranked: Vec<_> = kind.versions.iter().map(|version| version.name.as_str()).collect();
    assert_eq!(ranked, ["v11", "v1", "v2beta1", "v1beta3", "v1alpha2", "bar", "foo"]);
    assert_eq!(
        kind.versions[3].deprecation.as_deref(),
        Some("example.com/v1beta3 Widget is deprecated; use example.com/v11 Widget")
    );
    assert_eq!(kind.scope, Scope::Namespaced);
    assert_eq!(kind.versions[0].columns[0].path, ".metadata.creationTimestamp");
}
