//! What the hub keeps of works is less than they are, and yet they are works to the server.

use drover_engine::work::invalid_status;
use drover_runtime::decode::Damaged;
use serde::de::DeserializeOwned;

/// A work whose status cannot be parsed, as one that is not applied.
pub(crate) fn salvage<K: DeserializeOwned>(damaged: &Damaged<K>) -> Option<K> {
    damaged.with_status(&invalid_status(&damaged.metadata, &damaged.defect.to_string()))
}

/// Makes what the hub keeps of a work be a work to the server.
macro_rules! is_a_manifest_work {
    ($view:ty) => {
        impl kube::Resource for $view {
            type DynamicType = ();
            type Scope = k8s_openapi::NamespaceResourceScope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                drover_api::work::ManifestWork::kind(&())
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                drover_api::work::ManifestWork::group(&())
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                drover_api::work::ManifestWork::version(&())
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                drover_api::work::ManifestWork::plural(&())
            }

            fn meta(&self) -> &kube::api::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
