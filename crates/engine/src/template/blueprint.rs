//! A template as it was kept, read and found to make sense.

use std::collections::BTreeSet;

use drover_api::{
    addon::{
        AddOnDeploymentConfigSpec, AddOnTemplateSpec, HealthCheckMode, HubPermission, HubPermissionType,
        RegistrationSpec, RegistrationType, RoleRef, TemplateHealthCheck,
    },
    work::ManifestWorkSpec,
};
use serde_json::Value;

use super::{
    credential::Credential,
    flaw::{Fault, Flaw},
    manifest::{Object, flaw},
    proxy,
    variables::has_variables,
    vitals::WorkloadKind,
};

/// A template that was read and found to make sense. Whatever is the same on all clusters is prepared here.
#[derive(Clone, Debug)]
pub struct Blueprint {
    name: String,
    addon: String,
    registrations: Vec<RegistrationSpec>,
    health: HealthCheckMode,
    credentials: Vec<Credential>,
    manifests: Vec<Draft>,
    namespaces: Vec<String>,
    frame: ManifestWorkSpec,
}

/// A manifest that variables may have to be filled in of.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) manifest: Value,
    pub(super) has_variables: bool,
}

impl Blueprint {
    /// Reads the content that was kept of a template.
    pub fn read(name: &str, content: &str) -> Result<Self, Flaw> {
        let read = |content| serde_json::from_value::<AddOnTemplateSpec>(spec(content)?);
        let unreadable =
            |error: serde_json::Error| Flaw::Template { template: name.to_owned(), error: error.to_string() };
        let AddOnTemplateSpec { addon_name, agent_spec: mut frame, registration, health_check, version: _ } =
            read(content).map_err(unreadable)?;
        let manifests = frame.workload.take().map(|workload| workload.manifests).unwrap_or_default();
        let objects = objects(name, &manifests)?;
        check_registrations(name, &registration)?;
        let draft = |manifest| Draft { has_variables: has_variables(&manifest), manifest };
        Ok(Self {
            name: name.to_owned(),
            addon: addon_name,
            credentials: Credential::of(&registration),
            registrations: registration,
            health: health_check.map_or(HealthCheckMode::Customized, |TemplateHealthCheck { mode }| mode),
            manifests: manifests.into_iter().map(draft).collect(),
            namespaces: workload_namespaces(&objects),
            frame,
        })
    }

    /// The template's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the add-on that the template is for.
    #[must_use]
    pub fn addon(&self) -> &str {
        &self.addon
    }

    /// How the add-on's agent registers with the hub.
    #[must_use]
    pub fn registrations(&self) -> &[RegistrationSpec] {
        &self.registrations
    }

    /// How the add-on's health is found out: by its workloads, unless the template asks for a lease.
    #[must_use]
    pub fn health(&self) -> HealthCheckMode {
        self.health
    }

    /// What the agent proves itself with.
    pub(super) fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    pub(super) fn manifests(&self) -> &[Draft] {
        &self.manifests
    }

    /// The namespaces of the template's workloads, as they are written there; those that make the best home for an agent first.
    pub(super) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// What the template says of works, but for the manifests.
    pub(super) fn frame(&self) -> &ManifestWorkSpec {
        &self.frame
    }
}

/// The settings of agents, read from the content that was kept of an AddOnDeploymentConfig.
pub fn settings(name: &str, content: &str) -> Result<AddOnDeploymentConfigSpec, Flaw> {
    let read = |content| match spec(content)? {
        Value::Null => Ok(AddOnDeploymentConfigSpec::default()),
        spec => serde_json::from_value(spec),
    };
    let unreadable = |error: serde_json::Error| Flaw::Settings { settings: name.to_owned(), error: error.to_string() };
    let settings = read(content).map_err(unreadable)?;
    proxy::certificates(&settings).map_err(|_| Flaw::CaBundle { settings: name.to_owned() })?;
    Ok(settings)
}

/// The spec in a content that was kept.
fn spec(content: &str) -> Result<Value, serde_json::Error> {
    let mut content: Value = serde_json::from_str(content)?;
    Ok(content.get_mut("spec").map(Value::take).unwrap_or_default())
}

/// The objects that the manifests are for, each once.
fn objects(template: &str, manifests: &[Value]) -> Result<Vec<Object>, Flaw> {
    if manifests.is_empty() {
        return Err(Flaw::NoManifests { template: template.to_owned() });
    }
    let mut seen = BTreeSet::new();
    let mut object = |(place, manifest): (usize, &Value)| {
        let flawed = |fault| flaw(template, place, manifest, fault);
        let object = Object::of(manifest).map_err(flawed)?;
        if seen.insert(object.clone()) { Ok(object) } else { Err(flawed(Fault::Twice)) }
    };
    manifests.iter().enumerate().map(&mut object).collect()
}

fn workload_namespaces(objects: &[Object]) -> Vec<String> {
    let kinds = [WorkloadKind::Deployment, WorkloadKind::DaemonSet, WorkloadKind::StatefulSet];
    let of_kind = |kind| objects.iter().filter(move |object| WorkloadKind::of(object) == Some(kind));
    let namespaces = kinds.into_iter().flat_map(of_kind).map(|object| object.namespace.clone());
    namespaces.filter(|namespace| !namespace.is_empty()).collect()
}

/// Whether every registration says all that it has to.
fn check_registrations(template: &str, registrations: &[RegistrationSpec]) -> Result<(), Flaw> {
    for (place, registration) in registrations.iter().enumerate() {
        if registration.kind == RegistrationType::CustomSigner && registration.custom_signer.is_none() {
            return Err(Flaw::NoSigner { template: template.to_owned(), registration: place });
        }
        let client = registration.kube_client.as_ref();
        let permissions = client.map_or(&[][..], |client| &client.hub_permissions);
        check_permissions(template, place, permissions)?;
    }
    Ok(())
}

fn check_permissions(template: &str, registration: usize, permissions: &[HubPermission]) -> Result<(), Flaw> {
    for (permission, spec) in permissions.iter().enumerate() {
        let template = template.to_owned();
        if !has_role(spec) {
            return Err(Flaw::NoRole { template, registration, permission });
        }
        if !has_place(spec) {
            return Err(Flaw::NoNamespace { template, registration, permission });
        }
    }
    Ok(())
}

/// Whether a permission names a role, in one of the places for it.
fn has_role(permission: &HubPermission) -> bool {
    let is_named = |role: Option<&RoleRef>| role.is_some_and(|role| !role.name.is_empty());
    is_named(permission.role_ref.as_ref())
        || match permission.kind {
            HubPermissionType::CurrentCluster => {
                permission.current_cluster.as_ref().is_some_and(|binding| !binding.cluster_role_name.is_empty())
            }
            HubPermissionType::SingleNamespace => {
                is_named(permission.single_namespace.as_ref().and_then(|binding| binding.role_ref.as_ref()))
            }
        }
}

/// Whether a permission says where it holds.
fn has_place(permission: &HubPermission) -> bool {
    match permission.kind {
        HubPermissionType::CurrentCluster => true,
        HubPermissionType::SingleNamespace => {
            permission.single_namespace.as_ref().is_some_and(|binding| !binding.namespace.is_empty())
        }
    }
}

#[cfg(test)]
mod tests;
