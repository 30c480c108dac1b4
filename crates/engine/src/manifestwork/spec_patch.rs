//! The merge patch that makes the spec of a work equal to another one, whatever it is now.

use std::sync::Arc;

use drover_api::work::{ManifestWorkSpec, ManifestsTemplate};
use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

/// The spec that a work has from now on. Optional fields without a value are null, which removes
/// them: a merge patch leaves fields alone that it does not name.
pub(super) struct SpecPatch(pub(super) Arc<ManifestWorkSpec>);

/// The optional fields of objects in a spec, by the paths of the objects. Lists are always
/// replaced.
const OPTIONAL: [(&str, &[&str]); 4] = [
    ("/deleteOption", &["selectivelyOrphans", "ttlSecondsAfterFinished"]),
    ("/deleteOption/selectivelyOrphans", &["orphaningRules"]),
    ("/executor", &["subject"]),
    ("/executor/subject", &["serviceAccount"]),
];

impl Serialize for SpecPatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ManifestWorkSpec { workload, delete_option, manifest_configs, executor } = &*self.0;
        let mut spec = serializer.serialize_struct("ManifestWorkSpec", 4)?;
        spec.serialize_field("workload", &workload.as_ref().map(WorkloadPatch))?;
        spec.serialize_field("deleteOption", &complete("/deleteOption", delete_option))?;
        let configs = (!manifest_configs.is_empty()).then_some(manifest_configs);
        spec.serialize_field("manifestConfigs", &configs)?;
        spec.serialize_field("executor", &complete("/executor", executor))?;
        spec.end()
    }
}

struct WorkloadPatch<'a>(&'a ManifestsTemplate);

impl Serialize for WorkloadPatch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ManifestsTemplate { manifests } = self.0;
        let mut workload = serializer.serialize_struct("ManifestsTemplate", 1)?;
        workload.serialize_field("manifests", &(!manifests.is_empty()).then_some(manifests))?;
        workload.end()
    }
}

/// An object with nulls for its optional fields without a value.
fn complete(path: &str, object: &impl Serialize) -> Value {
    // It consists of texts, numbers and lists, which can all be serialised.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    for (inside, optional) in OPTIONAL.iter().filter_map(|(of, fields)| Some((of.strip_prefix(path)?, fields))) {
        if let Some(Value::Object(fields)) = value.pointer_mut(inside) {
            for field in *optional {
                fields.entry(*field).or_insert(Value::Null);
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: &Value) -> ManifestWorkSpec {
        serde_json::from_value(value.clone()).expect("a spec")
    }

    /// RFC 7386.
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(changes) = patch else { return *target = patch.clone() };
        if !target.is_object() {
            *target = json!({});
        }
        let fields = target.as_object_mut().expect("an object");
        for (field, change) in changes {
            if change.is_null() {
                fields.remove(field);
            } else {
                merge(fields.entry(field.clone()).or_insert(Value::Null), change);
            }
        }
    }

    #[test]
    fn spec_is_the_wanted_one_whatever_it_was() {
        let rule = json!({ "resource": "configmaps", "name": "a" });
        let account = json!({ "namespace": "a", "name": "b" });
        let config = json!({ "resourceIdentifier": { "resource": "configmaps", "name": "a" } });
        let specs = [
            json!({}),
            json!({ "workload": {} }),
            json!({ "workload": { "manifests": [{ "kind": "ConfigMap" }] }, "manifestConfigs": [config] }),
            json!({ "deleteOption": { "propagationPolicy": "Orphan" } }),
            json!({ "deleteOption": { "propagationPolicy": "SelectivelyOrphan", "ttlSecondsAfterFinished": 3,
                "selectivelyOrphans": { "orphaningRules": [rule] } } }),
            json!({ "deleteOption": { "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {} } }),
            json!({ "executor": {} }),
            json!({ "executor": { "subject": { "type": "ServiceAccount" } } }),
            json!({ "executor": { "subject": { "type": "ServiceAccount", "serviceAccount": account } } }),
        ];
        for stored in &specs {
            for wanted in specs.iter().map(spec) {
                let mut result = stored.clone();
                let patch = serde_json::to_value(SpecPatch(Arc::new(wanted.clone()))).expect("JSON");
                merge(&mut result, &patch);
                assert_eq!(spec(&result), wanted, "{stored} {patch}");
            }
        }
    }

    /// Walks over the objects of a schema, and collects the fields that are not required.
    fn optional(path: &str, schema: &Value, found: &mut Vec<(String, String)>) {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (field, inside) in schema["properties"].as_object().into_iter().flatten() {
            if !required.contains(&field.as_str()) && inside.get("default").is_none() {
                found.push((path.to_owned(), field.clone()));
            }
            optional(&format!("{path}/{field}"), inside, found);
        }
    }

    #[test]
    fn every_optional_field_of_the_schema_is_named() {
        let crd =
            serde_json::to_value(<drover_api::work::ManifestWork as kube::CustomResourceExt>::crd()).expect("JSON");
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut found = Vec::new();
        optional("", schema, &mut found);
        let known = |path: &str, field: &str| {
            OPTIONAL.iter().any(|(of, fields)| *of == path && fields.contains(&field))
                || path.is_empty()
                || (path, field) == ("/workload", "manifests")
        };
        let unknown: Vec<_> = found.iter().filter(|(path, field)| !known(path, field)).collect();
        assert!(unknown.is_empty() && found.len() > 5, "name them in OPTIONAL: {unknown:?}");
    }
}
