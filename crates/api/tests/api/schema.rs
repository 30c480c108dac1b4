//! A walk over the schemas of all CustomResourceDefinitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion;
use serde_json::Value;

/// One field of a custom resource: where it is, and its schema.
pub(crate) struct Field<'a> {
    /// The names that lead to it, such as `.spec.taints[].key`; `[]` for a list's items, `{}` for a map's values.
    pub(crate) path: String,
    pub(crate) schema: &'a Value,
}

/// Every version of every CustomResourceDefinition, as kind, version's name and root schema.
pub(crate) fn versions() -> Vec<(String, String, Value)> {
    let crds = drover_api::crds();
    let versions = crds.iter().flat_map(|crd| crd.spec.versions.iter().map(|version| (&crd.spec.names.kind, version)));
    versions.map(|(kind, version)| (kind.clone(), version.name.clone(), root(version))).collect()
}

/// The root schema of one version.
pub(crate) fn root(version: &CustomResourceDefinitionVersion) -> Value {
    let validation = version.schema.as_ref().expect("a version has a schema");
    serde_json::to_value(&validation.open_api_v3_schema).expect("a schema is JSON")
}

/// All fields under `schema`, itself first.
pub(crate) fn fields(schema: &Value) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect<'a>(schema: &'a Value, path: &str, found: &mut Vec<Field<'a>>) {
    found.push(Field { path: path.to_owned(), schema });
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(property, &format!("{path}.{name}"), found);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], &format!("{path}[]"), found);
    }
    if schema["additionalProperties"].is_object() {
        collect(&schema["additionalProperties"], &format!("{path}{{}}"), found);
    }
}
