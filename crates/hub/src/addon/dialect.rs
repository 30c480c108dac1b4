//! In whose words the hub reports on add-ons: its own, or OCM's where the CRDs are OCM's.

pub use drover_engine::dialect::Dialect;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::{Api, Client};

/// The definition of add-ons.
const ADDONS: &str = "clustermanagementaddons.addon.open-cluster-management.io";
/// A field of a rollout strategy that OCM's definition of add-ons does not have.
const OWN_FIELD: [&str; 5] = ["spec", "installStrategy", "placements", "rolloutStrategy", "rollingUpdateWithCanary"];

/// Finds out whose the CRDs are.
pub async fn detect_dialect(client: Client) -> Result<Dialect, kube::Error> {
    let definition = Api::<CustomResourceDefinition>::all(client).get(ADDONS).await?;
    Ok(if has_own_field(&definition) { Dialect::Drover } else { Dialect::Ocm })
}

/// Whether every version that is served has a place for what Drover adds.
fn has_own_field(definition: &CustomResourceDefinition) -> bool {
    let served = definition.spec.versions.iter().filter(|version| version.served);
    served.into_iter().all(|version| {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        schema.is_some_and(|schema| field(schema, &OWN_FIELD).is_some())
    })
}

fn field<'a>(schema: &'a JSONSchemaProps, path: &[&str]) -> Option<&'a JSONSchemaProps> {
    let [first, rest @ ..] = path else { return Some(schema) };
    let inner = schema.properties.as_ref()?.get(*first)?;
    field(items(inner).unwrap_or(inner), rest)
}

/// What a list consists of.
fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(items) => Some(items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addons() -> CustomResourceDefinition {
        let definitions = drover_api::crds().into_iter();
        definitions
            .into_iter()
            .find(|definition| definition.metadata.name.as_deref() == Some(ADDONS))
            .expect("it is ours")
    }

    #[test]
    fn our_own_definitions_are_known_as_such() {
        assert!(has_own_field(&addons()));
    }

    #[test]
    fn a_definition_without_canaries_is_not_ours() {
        let text = serde_json::to_string(&addons()).expect("JSON").replace("rollingUpdateWithCanary", "other");
        assert!(!has_own_field(&serde_json::from_str(&text).expect("a definition")));
    }
}
