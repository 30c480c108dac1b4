//! What is left of an object of a built-in kind when it is read into a record and written again.

use serde_json::Value;

use crate::{
    field::Path,
    schema::{Additional, Schema, Type},
};

/// The most bytes of paths that are shown. One name can be as long as a body.
const MAX_SHOWN: usize = 256 << 10;

/// Drops what the kind does not have and what says nothing. The fields that the kind does not have are told, as errors.
pub fn trim(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut found = Found::default();
    drop_unknown(object, schema, &Path::Root, &mut found);
    fill_texts(object, schema);
    drop_empty(object, schema);
    found.paths.into_iter().map(|path| super::unknown_field(&path)).collect()
}

/// Where fields were that the schema does not have.
#[derive(Default)]
pub(super) struct Found {
    pub(super) paths: Vec<String>,
    shown: usize,
}

impl Found {
    fn add(&mut self, path: &Path<'_>) {
        if self.shown < MAX_SHOWN {
            let path = path.to_string();
            self.shown += path.len();
            self.paths.push(path);
        }
    }
}

/// Drops the fields that the schema does not have, and says where they were.
pub(super) fn drop_unknown(value: &mut Value, schema: &Schema, path: &Path<'_>, found: &mut Found) {
    match value {
        Value::Object(members) if !schema.properties.is_empty() => {
            members.retain(|name, member| {
                let path = path.field(name);
                let Some(inner) = schema.field(name) else {
                    if !schema.is_open() {
                        found.add(&path);
                    }
                    return schema.is_open();
                };
                drop_unknown(member, inner, &path, found);
                true
            });
        }
        Value::Object(members) => {
            let Some(Additional::Schema(inner)) = &schema.additional_properties else { return };
            for (name, member) in members {
                drop_unknown(member, inner, &path.field(name), found);
            }
        }
        Value::Array(items) => {
            let Some(inner) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                drop_unknown(item, inner, &path.index(index), found);
            }
        }
        _ => {}
    }
}

/// Makes empty texts of nulls in maps and lists of texts, as Go does.
pub(super) fn fill_texts(value: &mut Value, schema: &Schema) {
    let inner = match value {
        Value::Object(members) if !schema.properties.is_empty() => {
            for (name, member) in members {
                if let Some(inner) = schema.properties.get(name) {
                    fill_texts(member, inner);
                }
            }
            return;
        }
        Value::Object(_) => match &schema.additional_properties {
            Some(Additional::Schema(inner)) => inner,
            _ => return,
        },
        Value::Array(_) => match &schema.items {
            Some(inner) => inner,
            None => return,
        },
        _ => return,
    };
    let is_text = inner.type_ == Some(Type::String);
    let fill = |entry: &mut Value| match entry {
        Value::Null if is_text => *entry = Value::from(""),
        entry => fill_texts(entry, inner),
    };
    match value {
        Value::Object(members) => members.values_mut().for_each(fill),
        Value::Array(items) => items.iter_mut().for_each(fill),
        _ => {}
    }
}

/// Drops fields that need not be there and say nothing. What is in maps and in fields without a schema stays as it is.
fn drop_empty(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(members) if !schema.properties.is_empty() => {
            members.retain(|name, member| {
                let Some(inner) = schema.properties.get(name) else { return true };
                drop_empty(member, inner);
                // An empty list of who owns what means that nobody does.
                let is_needed = schema.limits.required.contains(name) || name == "managedFields";
                is_needed || !(says_nothing(member, inner) || (is_zero(member) && leaves_out_zero(schema, name)))
            });
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for item in items {
                    drop_empty(item, inner);
                }
            }
        }
        _ => {}
    }
}

fn says_nothing(value: &Value, schema: &Schema) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() && schema.limits.allowed.is_none(),
        Value::Array(items) => items.is_empty(),
        // An empty record may mean something, such as a volume without settings; an empty map does not.
        Value::Object(members) => {
            members.is_empty() && schema.properties.is_empty() && schema.definition.is_empty() && !schema.is_open()
        }
        _ => false,
    }
}

fn is_zero(value: &Value) -> bool {
    value == &Value::Bool(false) || value.as_i64() == Some(0)
}

/// The fields that are plain numbers and flags in all records.
const ALWAYS_PLAIN: &[&str] = &[
    "count",
    "currentReplicas",
    "deprecated",
    "deprecatedCount",
    "fullyLabeledReplicas",
    "generation",
    "healthCheckNodePort",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "numberAvailable",
    "numberUnavailable",
    "observedGeneration",
    "paused",
    "preserveUnknownFields",
    "publishNotReadyAddresses",
    "readyReplicas",
    "stdin",
    "stdinOnce",
    "tty",
    "unavailableReplicas",
    "unschedulable",
    "updatedNumberScheduled",
    "updatedReplicas",
];

/// Whether the real server can not tell zero from nothing in a field of a record. Where it can, zero stays.
fn leaves_out_zero(record: &Schema, field: &str) -> bool {
    let record = record.definition.rsplit('.').next().unwrap_or_default();
    match field {
        "failureThreshold" | "periodSeconds" | "successThreshold" | "timeoutSeconds" => record == "Probe",
        "readOnly" => !matches!(record, "AzureDiskVolumeSource" | "CSIVolumeSource"),
        "replicas" => record == "DeploymentStatus",
        "availableReplicas" => record != "StatefulSetStatus",
        "active" | "failed" | "succeeded" => record == "JobStatus",
        "priority" => record == "CustomResourceColumnDefinition",
        "exclusiveMaximum" | "exclusiveMinimum" | "nullable" | "uniqueItems" => record == "JSONSchemaProps",
        other => ALWAYS_PLAIN.contains(&other),
    }
}
