//! Objects on the managed cluster, of whatever kind.

use std::fmt;

use drover_api::work::AppliedResource;
use drover_engine::work::{Step, Target};
use drover_runtime::store::ObjectKey;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::Value;

/// In whose name objects are written.
const MANAGER: &str = "work-agent";

/// A kind of objects, as it is found at its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    /// In lower case and plural.
    pub(crate) name: String,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) resource: Resource,
    pub(crate) key: ObjectKey,
}

impl Resource {
    /// How clients ask for it. Nobody asks for its kind.
    pub(crate) fn api_resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, "");
        ApiResource::from_gvk_with_plural(&kind, &self.name)
    }
}

impl Place {
    pub(crate) fn of(target: &Target) -> Self {
        let manifest = &target.manifest;
        let resource = Resource {
            group: manifest.group.clone(),
            version: manifest.version.clone(),
            name: target.resource.clone(),
        };
        Self { resource, key: ObjectKey::namespaced(&manifest.namespace, &manifest.name) }
    }

    pub(crate) fn of_applied(applied: &AppliedResource) -> Self {
        let resource = Resource {
            group: applied.group.clone().unwrap_or_default(),
            version: applied.version.clone(),
            name: applied.resource.clone(),
        };
        let namespace = applied.namespace.as_deref().unwrap_or_default();
        Self { resource, key: ObjectKey::namespaced(namespace, &applied.name) }
    }

    /// Those like it.
    pub(crate) fn api(&self, client: Client) -> Api<DynamicObject> {
        let resource = self.resource.api_resource();
        match &*self.key.namespace {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, namespace, &resource),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.key.name
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resource { group, name, .. } = &self.resource;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{name}{dot}{group} {}", self.key)
    }
}

/// How parts of an object are changed.
pub(crate) fn changing() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// The object, if it is there, without who owns its fields.
pub(crate) async fn read(api: &Api<DynamicObject>, name: &str) -> Result<Option<Value>, kube::Error> {
    Ok(api.get_opt(name).await?.map(as_value))
}

fn as_value(mut object: DynamicObject) -> Value {
    object.metadata.managed_fields = None;
    serde_json::to_value(object).unwrap_or_default()
}

/// Sends one step; the answer is the object as it is then, or nothing if there was nothing to send.
pub(crate) async fn send(api: &Api<DynamicObject>, name: &str, step: Step) -> Result<Option<Value>, kube::Error> {
    let object = |value: Value| serde_json::from_value::<DynamicObject>(value).map_err(kube::Error::SerdeError);
    let post = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let answer = match step {
        Step::Nothing => return Ok(None),
        Step::Create(value) => api.create(&post, &object(value)?).await?,
        Step::Replace(value) => api.replace(name, &post, &object(value)?).await?,
        Step::Owners(patch) => api.patch(name, &changing(), &Patch::Merge(patch)).await?,
        Step::Apply { object, field_manager, force } => {
            let params = PatchParams { field_manager: Some(field_manager), force, ..PatchParams::default() };
            api.patch(name, &params, &Patch::Apply(object)).await?
        }
    };
    Ok(Some(as_value(answer)))
}
