//! The schemas of a document: those of its kinds, and all that they refer to.

use serde_json::{Map, Value, json};

use super::{Definitions, Served};
use crate::kind::Origin;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const OBJECT_META: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_META: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// A reference to a schema of `meta/v1`.
pub(super) fn meta(kind: &str) -> Value {
    reference(&format!("{META}.{kind}"))
}

/// A reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Whether a schema says that it is that of a kind.
pub(super) fn is_of_kind(schema: &Value, group_version_kind: &Value) -> bool {
    let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.contains(group_version_kind))
}

/// All schemas of a document.
pub(super) fn all(served: &[Served<'_>], paths: &Map<String, Value>, definitions: &Definitions) -> Map<String, Value> {
    let mut schemas = Map::new();
    for &served in served {
        schemas.insert(served.schema_name(&served.kind.kind, definitions), object(served, definitions));
        if served.kind.origin != Origin::Review {
            let name = served.schema_name(&served.kind.list_kind, definitions);
            let list = definitions.get(&name).map_or_else(|| list(served, definitions), tidy);
            schemas.insert(name, list);
        }
    }
    let mut wanted = Vec::new();
    paths.values().chain(schemas.values()).for_each(|value| references(value, &mut wanted));
    while let Some(name) = wanted.pop() {
        if !schemas.contains_key(&name) {
            // What nobody knows may be anything.
            let schema = definitions.get(&name).map_or_else(|| json!({"type": "object"}), tidy);
            references(&schema, &mut wanted);
            schemas.insert(name, schema);
        }
    }
    schemas
}

/// The names of all schemas that a value refers to.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(reference) if key == "$ref" => found.push(last_part(reference).to_owned()),
                    value => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn last_part(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// A schema with references as they are in these documents: nothing beside them, and all to the same place.
fn tidy(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields: Map<_, _> = fields.iter().map(|(key, value)| (key.clone(), tidy(value))).collect();
            if let Some(Value::String(target)) = fields.remove("$ref") {
                let target = reference(last_part(&target));
                if fields.is_empty() {
                    return target;
                }
                fields.insert("allOf".to_owned(), json!([target]));
            }
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(tidy).collect(),
        other => other.clone(),
    }
}

/// The schema of a kind's objects.
fn object(served: Served<'_>, definitions: &Definitions) -> Value {
    let mut schema = tidy(&served.version.openapi);
    let has_schema = schema.as_object().is_some_and(|schema| !schema.is_empty());
    if !has_schema {
        schema = json!({"type": "object"});
    } else if served.kind.origin == Origin::Custom {
        add_metadata(&mut schema, definitions);
        add_to_embedded(&mut schema);
    }
    schema["x-kubernetes-group-version-kind"] = json!([served.group_version_kind(&served.kind.kind)]);
    add_selectable_fields(&mut schema, served);
    schema
}

fn list(served: Served<'_>, definitions: &Definitions) -> Value {
    let Served { kind, .. } = served;
    let items = reference(&served.schema_name(&kind.kind, definitions));
    let about_items = format!(
        "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
        kind.plural
    );
    let mut schema = json!({
        "type": "object",
        "description": format!("{} is a list of {}", kind.list_kind, kind.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": type_field("apiVersion", definitions),
            "kind": type_field("kind", definitions),
            "items": {"type": "array", "description": about_items, "items": items},
            "metadata": {"description": LIST_META, "allOf": [meta("ListMeta")]},
        },
        "x-kubernetes-group-version-kind": [served.group_version_kind(&kind.list_kind)],
    });
    add_selectable_fields(&mut schema, served);
    schema
}

fn add_selectable_fields(schema: &mut Value, served: Served<'_>) {
    let fields = served.version.selectable_fields.iter();
    let fields: Vec<_> = fields.map(|path| json!({"fieldPath": path.trim_start_matches('.')})).collect();
    if served.kind.origin == Origin::Custom && !fields.is_empty() {
        schema["x-kubernetes-selectable-fields"] = Value::Array(fields);
    }
}

/// What `apiVersion` or `kind` is, in the words of a kind that is always there.
fn type_field(name: &str, definitions: &Definitions) -> Value {
    let status = definitions.get(&format!("{META}.Status"));
    let field = status.and_then(|status| status.get("properties")?.get(name));
    field.map_or_else(|| json!({"type": "string"}), tidy)
}

fn add_metadata(schema: &mut Value, definitions: &Definitions) {
    schema["properties"]["apiVersion"] = type_field("apiVersion", definitions);
    schema["properties"]["kind"] = type_field("kind", definitions);
    schema["properties"]["metadata"] = json!({"description": OBJECT_META, "allOf": [meta("ObjectMeta")]});
}

/// Says of objects within objects that they have a version, a kind and metadata too.
fn add_to_embedded(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            add_to_embedded(inner);
        }
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(add_to_embedded);
    }
    if fields.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    let conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    let api_version = format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: {conventions}#resources"
    );
    let kind = format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: {conventions}#types-kinds"
    );
    schema["properties"]["apiVersion"] = json!({"type": "string", "description": api_version});
    schema["properties"]["kind"] = json!({"type": "string", "description": kind});
    schema["properties"]["metadata"] = json!({"description": OBJECT_META, "allOf": [meta("ObjectMeta")]});
    require(schema, &["kind", "apiVersion"]);
}

fn require(schema: &mut Value, names: &[&str]) {
    if !schema["required"].is_array() {
        schema["required"] = json!([]);
    }
    if let Some(required) = schema["required"].as_array_mut() {
        for name in names {
            if !required.iter().any(|it| it == name) {
                required.push(json!(name));
            }
        }
    }
}
