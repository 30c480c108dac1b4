//! Views of stored works.

use std::sync::Arc;

use kube::core::ObjectMeta;

/// The metadata of a stored work, shared by its views: which object it is, and in which state it
/// was read. Labels and annotations are read by each view, and not kept.
pub type WorkMetadata = Arc<ObjectMeta>;

/// Keeps of the metadata of a work what every view needs.
#[must_use]
pub fn identity(metadata: &ObjectMeta) -> ObjectMeta {
    let ObjectMeta { namespace, name, uid, resource_version, .. } = metadata.clone();
    ObjectMeta {
        namespace,
        name,
        uid,
        resource_version,
        generation: metadata.generation,
        creation_timestamp: metadata.creation_timestamp.clone(),
        deletion_timestamp: metadata.deletion_timestamp.clone(),
        ..ObjectMeta::default()
    }
}

/// Makes a view of works be a work to the server. Its field `metadata` is a `WorkMetadata`.
#[macro_export]
macro_rules! is_view_of_work {
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

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                std::sync::Arc::make_mut(&mut self.metadata)
            }
        }
    };
}
