//! The CustomResourceDefinitions that the types in this crate make.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use kube::{
    CustomResourceExt,
    core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter},
};
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{AddNullable, RecursiveTransform},
};
use serde_json::{Value, json};

use crate::{addon, cluster, drover, work};

/// Every CustomResourceDefinition that a hub or a managed cluster needs, in a fixed order.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        with_defaulted_spec(crd::<cluster::ManagedCluster>(), &json!({})),
        with_defaulted_spec(
            crd::<cluster::ManagedClusterSet>(),
            &json!({ "clusterSelector": { "selectorType": "ExclusiveClusterSetLabel" } }),
        ),
        crd::<cluster::ManagedClusterSetBinding>(),
        crd::<cluster::Placement>(),
        crd::<cluster::PlacementDecision>(),
        crd::<cluster::ManagedClustersUpgrade>(),
        crd::<cluster::ClusterClaim>(),
        crd::<cluster::AddOnPlacementScore>(),
        with_spec_rule(
            crd::<work::ManifestWork>(),
            &json!({
                "rule": "has(self.workload) && has(self.workload.manifests) && size(self.workload.manifests) > 0",
                "message": "give the work something to apply: list at least one manifest under spec.workload.manifests",
                "fieldPath": ".workload.manifests",
            }),
        ),
        crd::<work::AppliedManifestWork>(),
        with_spec_rule(
            crd::<work::ManifestWorkReplicaSet>(),
            &json!({
                "rule": "has(self.manifestWorkTemplate) && has(self.manifestWorkTemplate.workload) && has(self.manifestWorkTemplate.workload.manifests) && size(self.manifestWorkTemplate.workload.manifests) > 0",
                "message": "give the works something to apply: list at least one manifest under spec.manifestWorkTemplate.workload.manifests",
                "fieldPath": ".manifestWorkTemplate.workload.manifests",
            }),
        ),
        also_as_v1beta1(crd::<addon::ClusterManagementAddOn>()),
        also_as_v1beta1(crd::<addon::ManagedClusterAddOn>()),
        also_as_v1beta1(crd::<addon::AddOnDeploymentConfig>()),
        crd::<addon::AddOnTemplate>(),
        crd::<addon::AddOnHubConfig>(),
        crd::<drover::ConfigRevision>(),
        crd::<drover::AddOnRollout>(),
        with_root_rule(
            crd::<drover::ClusterUpgrade>(),
            &json!({
                "rule": "self.spec.target == oldSelf.spec.target || !has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase in ['Waiting', 'Complete', 'Failed']",
                "message": "the target of a cluster under way never changes: edit the ManagedClustersUpgrade, and the cluster follows when it is done",
                "fieldPath": ".spec.target",
            }),
        ),
    ]
}

fn crd<K: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    let mut crd = K::crd();
    for schema in crd.spec.versions.iter_mut().filter_map(root_schema) {
        *schema = schema_of::<K>();
    }
    crd
}

/// The schema of a kind. kube generates it in the same way, but drops what an enum's values mean.
fn schema_of<K: JsonSchema>() -> JSONSchemaProps {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = settings
        .with_transform(RecursiveTransform(describe))
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .into_generator();
    let schema = generator.into_root_schema_for::<K>().to_value();
    let mut schema = serde_json::from_value(schema).expect("a schema of ours is a schema of Kubernetes'");
    visit(&mut schema, "", &mut |path, schema| {
        drop_nullable(path, schema);
        say_int_or_string(schema);
    });
    schema
}

/// Joins the lines of a description, which are wrapped for readers of the source, and lists below it what the values
/// of an enum mean.
fn describe(schema: &mut Schema) {
    let choices = choices(schema);
    let Some(Value::String(description)) = schema.get_mut("description") else { return };
    *description = description.replace('\n', " ") + &choices;
    // What stands at a field of an optional enum goes before what stands at the enum itself.
    if let Some(Value::Object(of_type)) = schema.get_mut("anyOf").and_then(|any_of| any_of.get_mut(0)) {
        of_type.remove("description");
    }
}

/// What the values of an enum mean, in lines such as `- Manual: By hand.`; nothing for any other schema.
fn choices(schema: &Schema) -> String {
    let values = schema.get("oneOf").or_else(|| schema.get("anyOf")?.get(0)?.get("oneOf"));
    let values = values.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let lines = values.iter().filter_map(|value| {
        Some(format!("\n- {}: {}", value.get("enum")?.get(0)?.as_str()?, value.get("description")?.as_str()?))
    });
    lines.collect()
}

/// Serves the add-on group's shared kinds as `v1beta1` too. Both versions have one schema, the union of OCM's
/// two, so nothing has to be converted.
fn also_as_v1beta1(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let v1beta1: Vec<_> = crd.spec.versions.iter().map(as_v1beta1).collect();
    crd.spec.versions.extend(v1beta1);
    crd.spec.conversion = Some(CustomResourceConversion { strategy: "None".into(), webhook: None });
    crd
}

fn as_v1beta1(stored: &CustomResourceDefinitionVersion) -> CustomResourceDefinitionVersion {
    CustomResourceDefinitionVersion { name: "v1beta1".into(), storage: false, ..stored.clone() }
}

/// Makes an object without a spec mean one with this spec, as it does in OCM.
fn with_defaulted_spec(mut crd: CustomResourceDefinition, spec: &Value) -> CustomResourceDefinition {
    for schema in crd.spec.versions.iter_mut().filter_map(root_schema) {
        schema.required = None;
        if let Some(spec_schema) = spec_schema(schema) {
            spec_schema.default = Some(JSON(spec.clone()));
        }
    }
    crd
}

/// Adds a rule on the spec of one kind whose type other kinds use without it. It stands at the spec, so that an object
/// that was stored before there was the rule can still report a status and lose its finalizers.
fn with_spec_rule(mut crd: CustomResourceDefinition, rule: &Value) -> CustomResourceDefinition {
    let rule: ValidationRule = serde_json::from_value(rule.clone()).expect("a rule of ours is a rule of Kubernetes'");
    for schema in crd.spec.versions.iter_mut().filter_map(root_schema).filter_map(spec_schema) {
        schema.x_kubernetes_validations.get_or_insert_default().push(rule.clone());
    }
    crd
}

/// Adds a rule on the whole of a kind.
fn with_root_rule(mut crd: CustomResourceDefinition, rule: &Value) -> CustomResourceDefinition {
    let rule: ValidationRule = serde_json::from_value(rule.clone()).expect("a rule of ours is a rule of Kubernetes'");
    for schema in crd.spec.versions.iter_mut().filter_map(root_schema) {
        schema.x_kubernetes_validations.get_or_insert_default().push(rule.clone());
    }
    crd
}

fn spec_schema(root: &mut JSONSchemaProps) -> Option<&mut JSONSchemaProps> {
    root.properties.as_mut()?.get_mut("spec")
}

/// Drops the `nullable` that schema generation puts on every optional field: a field that is not set is left out.
///
/// The exception is a taint's time, for which OCM's Go clients write null.
fn drop_nullable(path: &str, schema: &mut JSONSchemaProps) {
    schema.nullable = path.ends_with(".taints.timeAdded").then_some(true);
}

/// States the two types of an int-or-string, which schema generation takes for an untagged enum and hollows out.
fn say_int_or_string(schema: &mut JSONSchemaProps) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        let of_type = |name: &str| JSONSchemaProps { type_: Some(name.into()), ..JSONSchemaProps::default() };
        schema.any_of = Some(vec![of_type("integer"), of_type("string")]);
    }
}

fn root_schema(version: &mut CustomResourceDefinitionVersion) -> Option<&mut JSONSchemaProps> {
    version.schema.as_mut()?.open_api_v3_schema.as_mut()
}

/// Calls `each` for a schema and all schemas in it, with the path of field names that leads there.
fn visit(schema: &mut JSONSchemaProps, path: &str, each: &mut impl FnMut(&str, &mut JSONSchemaProps)) {
    each(path, schema);
    for (name, property) in schema.properties.iter_mut().flatten() {
        visit(property, &format!("{path}.{name}"), each);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        visit(items, path, each);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        visit(values, path, each);
    }
}
