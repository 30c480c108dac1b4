//! Pieces of OpenAPI schema that the derived ones can not express.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The longest name that Kubernetes gives to an object, and the bound of every name that a rule reads: without
/// bounds the API server refuses the rule as too expensive.
pub(crate) const MAX_NAME: u32 = 253;
/// The most placements one add-on may list.
pub(crate) const MAX_PLACEMENTS: u32 = 100;
/// The most configurations one place may list.
pub(crate) const MAX_CONFIGS: u32 = 64;
/// The most versions of one add-on that are listed.
pub(crate) const MAX_VERSIONS: u32 = 1000;

/// The form of a label's, taint's or condition's name: a name with an optional DNS prefix.
pub(crate) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// The form of a namespace's name.
pub(crate) const NAMESPACE_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Rules that the API server checks in CEL, each with the message that a user sees when it does not hold.
pub(crate) fn rules<const N: usize>(rules: [(&str, &str); N]) -> Value {
    rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message })).collect()
}

/// A string that obeys one rule.
pub(crate) fn text(max_length: u32, rule: &str, message: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": max_length,
        "x-kubernetes-validations": rules([(rule, message)]),
    })
}

/// Any string.
pub(crate) fn string() -> Schema {
    json_schema!({ "type": "string" })
}

/// An integer or a string that obeys one rule.
pub(crate) fn int_or_string(rule: &str, message: &str) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 16,
        "x-kubernetes-validations": rules([(rule, message)]),
    })
}

/// A list of conditions of which there is one per type.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = atomic_conditions(generator);
    schema.insert("x-kubernetes-list-type".into(), json!("map"));
    schema.insert("x-kubernetes-list-map-keys".into(), json!(["type"]));
    schema
}

/// A list of conditions that is replaced as a whole, as OCM has it for cluster sets and their bindings.
pub(crate) fn atomic_conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": condition() })
}

fn condition() -> Schema {
    json_schema!({
        "description": "One aspect of the object's state.",
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": {
                "description": "Which aspect this is about, such as Available.",
                "type": "string",
                "maxLength": 316,
                "pattern": QUALIFIED_NAME,
            },
            "status": {
                "description": "Whether it holds: True, False or Unknown.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "description": "One word for programs that says why.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "description": "A sentence for people that says why.",
                "type": "string",
                "maxLength": 32768,
            },
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "observedGeneration": {
                "description": "The generation of the object that this was found for.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
        },
    })
}

/// A label selector as Kubernetes has it everywhere.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that have to be there with exactly these values.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": selector_requirements(),
        },
    })
}

/// A label selector of a kind that is ours alone, and may be stricter than Kubernetes' schemas are.
pub(crate) fn strict_label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = label_selector(generator);
    let requirements = strict_requirements(generator).to_value();
    schema
        .pointer_mut("/properties")
        .and_then(Value::as_object_mut)
        .map(|properties| properties.insert("matchExpressions".into(), requirements));
    schema
}

/// The requirements of a selector over claims, which OCM keeps in a list that is not marked as atomic.
pub(crate) fn claim_requirements(_: &mut SchemaGenerator) -> Schema {
    let mut schema = selector_requirements();
    schema.remove("x-kubernetes-list-type");
    schema
}

/// The requirements of a selector of a kind that is ours alone, and may be stricter than Kubernetes' schemas are.
pub(crate) fn strict_requirements(_: &mut SchemaGenerator) -> Schema {
    let mut schema = selector_requirements();
    schema.insert("maxItems".into(), json!(MAX_CONFIGS));
    schema
        .pointer_mut("/items/properties/operator")
        .and_then(Value::as_object_mut)
        .map(|operator| operator.insert("enum".into(), json!(["In", "NotIn", "Exists", "DoesNotExist"])));
    schema.pointer_mut("/items").and_then(Value::as_object_mut).map(|items| {
        let rule = (
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "In and NotIn need values, Exists and DoesNotExist take none: change the operator or the values",
        );
        items.insert("x-kubernetes-validations".into(), rules([rule]))
    });
    schema
}

fn selector_requirements() -> Schema {
    json_schema!({
        "description": "Requirements that all have to hold.",
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": {
            "description": "One requirement.",
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": { "description": "The key that is looked at.", "type": "string" },
                "operator": {
                    "description": "How the key's value relates to the values: In, NotIn, Exists or DoesNotExist.",
                    "type": "string",
                },
                "values": {
                    "description": "The values for In and NotIn; left out for Exists and DoesNotExist.",
                    "type": "array",
                    "x-kubernetes-list-type": "atomic",
                    "items": { "type": "string" },
                },
            },
        },
    })
}

/// Amounts of resources by name, such as `cpu: 500m`.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        },
    })
}

/// Manifests: whole Kubernetes objects of any kind, of which each has a kind and a name.
pub(crate) fn manifests(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "One Kubernetes object, whole, with its apiVersion, kind and metadata.name.",
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": rules([(
                "has(self.metadata) && has(self.metadata.name) && self.metadata.name != ''",
                "name the manifest: set metadata.name",
            )]),
        },
    })
}

/// A moment in time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Bytes in base64.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}
