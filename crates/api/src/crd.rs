//! The CustomResourceDefinitions that the types in this crate make.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{addon, cluster, drover, work};

/// Every CustomResourceDefinition that a hub or a managed cluster needs, in a fixed order.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        with_defaulted_spec(crd::<cluster::ManagedCluster>(), json!({})),
        with_defaulted_spec(
            crd::<cluster::ManagedClusterSet>(),
            json!({ "clusterSelector": { "selectorType": "ExclusiveClusterSetLabel" } }),
        ),
        crd::<cluster::ManagedClusterSetBinding>(),
        crd::<cluster::Placement>(),
        crd::<cluster::PlacementDecision>(),
        crd::<cluster::ManagedClustersUpgrade>(),
        crd::<cluster::ClusterClaim>(),
        crd::<cluster::AddOnPlacementScore>(),
        crd::<work::ManifestWork>(),
        crd::<work::AppliedManifestWork>(),
        crd::<work::ManifestWorkReplicaSet>(),
        also_as_v1beta1(crd::<addon::ClusterManagementAddOn>()),
        also_as_v1beta1(crd::<addon::ManagedClusterAddOn>()),
        also_as_v1beta1(crd::<addon::AddOnDeploymentConfig>()),
        crd::<addon::AddOnTemplate>(),
        crd::<addon::AddOnHubConfig>(),
        crd::<drover::ConfigRevision>(),
        crd::<drover::AddOnRollout>(),
        crd::<drover::ClusterUpgrade>(),
    ]
}

fn crd<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = K::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) = root_schema(version) {
            visit(schema, "", &mut |path, schema| {
                refuse_null(path, schema);
                unwrap_description(schema);
                say_int_or_string(schema);
            });
        }
    }
    crd
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
fn with_defaulted_spec(mut crd: CustomResourceDefinition, spec: serde_json::Value) -> CustomResourceDefinition {
    for schema in crd.spec.versions.iter_mut().filter_map(root_schema) {
        schema.required = None;
        if let Some(property) = schema.properties.as_mut().and_then(|properties| properties.get_mut("spec")) {
            property.default =
                Some(k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON(spec.clone()));
        }
    }
    crd
}

/// Drops the `nullable` that schema generation puts on every optional field: a field that is not set is left out.
///
/// The exception is a taint's time, for which OCM's Go clients write null.
fn refuse_null(path: &str, schema: &mut JSONSchemaProps) {
    schema.nullable = path.ends_with(".taints.timeAdded").then_some(true);
}

/// Joins the lines of a description: they are wrapped for readers of the source, not of `kubectl explain`.
fn unwrap_description(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        *description = description.replace('\n', " ");
    }
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
