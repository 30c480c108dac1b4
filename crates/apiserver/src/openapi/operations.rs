//! The paths of a document, and what can be done there.

use serde_json::{Map, Value, json};

use super::{Definitions, Served, schemas};
use crate::kind::{Origin, Scope};

const NONE: &[(&str, &str)] = &[];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: &[(&str, &str)] = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// Something that can be done at a path.
struct Operation<'a> {
    action: &'a str,
    query: &'a [(&'a str, &'a str)],
    /// What is sent, and in which formats.
    body: Option<(Value, &'a [&'a str])>,
    answer: &'a Value,
    group_version_kind: &'a Value,
}

impl Operation<'_> {
    fn to_value(&self) -> Value {
        let content = |schema: &Value, types: &[&str]| {
            types.iter().map(|&type_| (type_.to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>()
        };
        let answer = content(self.answer, &["application/json", "application/yaml"]);
        let mut value = json!({
            "responses": {"200": {"description": "OK", "content": answer}, "401": {"description": "Unauthorized"}},
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": self.group_version_kind,
        });
        if !self.query.is_empty() {
            value["parameters"] = self.query.iter().map(|(name, type_)| parameter("query", name, type_)).collect();
        }
        if let Some((schema, types)) = &self.body {
            value["requestBody"] = json!({"content": content(schema, types)});
        }
        value
    }
}

fn parameter(place: &str, name: &str, type_: &str) -> Value {
    let mut parameter = json!({"name": name, "in": place, "schema": {"type": type_, "uniqueItems": true}});
    if place == "path" {
        parameter["required"] = json!(true);
    }
    parameter
}

/// The paths of a kind under the path of its group and version.
pub(super) fn paths(root: &str, served: Served<'_>, definitions: &Definitions) -> Vec<(String, Value)> {
    let Served { kind, version } = served;
    let own = served.group_version_kind(&kind.kind);
    let object = schemas::reference(&served.schema_name(&kind.kind, definitions));
    let at = Place { served, object: &object, group_version_kind: &own };
    let collection = match kind.scope {
        Scope::Cluster => format!("{root}/{}", kind.plural),
        Scope::Namespaced => format!("{root}/namespaces/{{namespace}}/{}", kind.plural),
    };
    if kind.origin == Origin::Review {
        return vec![path_item(&collection, vec![("post", at.create())])];
    }
    let list = schemas::reference(&served.schema_name(&kind.list_kind, definitions));
    let mut paths = Vec::new();
    if kind.scope == Scope::Namespaced {
        paths.push(path_item(&format!("{root}/{}", kind.plural), vec![("get", at.list(&list))]));
    }
    paths.push(path_item(
        &collection,
        vec![("get", at.list(&list)), ("post", at.create()), ("delete", at.delete("deletecollection"))],
    ));
    let one = format!("{collection}/{{name}}");
    let mut operations = at.change();
    operations.push(("delete", at.delete("delete")));
    paths.push(path_item(&one, operations));
    if version.subresources.status {
        paths.push(path_item(&format!("{one}/status"), at.change()));
    }
    if version.subresources.scale.is_some() {
        let scale = schemas::reference("io.k8s.api.autoscaling.v1.Scale");
        let scale_kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        let group_version_kind = if kind.origin == Origin::Custom { &own } else { &scale_kind };
        let at_scale = Place { served, object: &scale, group_version_kind };
        paths.push(path_item(&format!("{one}/scale"), at_scale.change()));
    }
    paths
}

/// A path with what can be done there.
fn path_item(path: &str, operations: Vec<Method>) -> (String, Value) {
    let in_path = ["name", "namespace"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let mut parameters: Vec<_> = in_path.map(|name| parameter("path", name, "string")).collect();
    parameters.push(parameter("query", "pretty", "string"));
    let mut value: Map<_, _> = operations.into_iter().map(|(method, it)| (method.to_owned(), it)).collect();
    value.insert("parameters".to_owned(), Value::Array(parameters));
    (path.to_owned(), Value::Object(value))
}

/// What is found at a path.
#[derive(Clone, Copy)]
struct Place<'a> {
    served: Served<'a>,
    object: &'a Value,
    group_version_kind: &'a Value,
}

type Method = (&'static str, Value);

impl Place<'_> {
    fn list(self, list: &Value) -> Value {
        let group_version_kind = self.group_version_kind;
        Operation { action: "list", query: LIST, body: None, answer: list, group_version_kind }.to_value()
    }

    fn create(self) -> Value {
        self.write("post", WRITE, Some((self.object.clone(), self.formats())))
    }

    fn change(self) -> Vec<Method> {
        let patches: &[&str] = match self.served.kind.origin {
            Origin::Custom => {
                &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
            }
            Origin::BuiltIn | Origin::Review => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ],
        };
        vec![
            ("get", self.write("get", NONE, None)),
            ("put", self.write("put", WRITE, Some((self.object.clone(), self.formats())))),
            ("patch", self.write("patch", PATCH, Some((schemas::meta("Patch"), patches)))),
        ]
    }

    fn write(self, action: &str, query: &[(&str, &str)], body: Option<(Value, &[&str])>) -> Value {
        let group_version_kind = self.group_version_kind;
        Operation { action, query, body, answer: self.object, group_version_kind }.to_value()
    }

    fn delete(self, action: &str) -> Value {
        let query = if action == "delete" { DELETE.to_vec() } else { [LIST, DELETE].concat() };
        let body = Some((schemas::meta("DeleteOptions"), ["*/*"].as_slice()));
        let (answer, group_version_kind) = (&schemas::meta("Status"), self.group_version_kind);
        Operation { action, query: &query, body, answer, group_version_kind }.to_value()
    }

    /// The formats that objects are sent in.
    fn formats(self) -> &'static [&'static str] {
        match self.served.kind.origin {
            Origin::Custom => &["application/json", "application/yaml"],
            Origin::BuiltIn | Origin::Review => &["*/*"],
        }
    }
}
