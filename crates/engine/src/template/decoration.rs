//! What is added to every pod of an add-on: who it is, where its credentials are, and what the settings say about pods.

use drover_api::addon::{ContainerResourceRequirements, ImageMirror, NodePlacement};
use serde_json::{Map, Value, json};

use super::{
    credential::{Credential, is_for_hub},
    flaw::Fault,
    images::mirrored,
    manifest::{Object, items},
    pod::pod_of,
    proxy,
    render::Inputs,
    resources::resources_of,
    variables::{CLUSTER_NAME, HUB_KUBECONFIG, INSTALL_NAMESPACE, Variables},
};

/// Who may read the files of a volume: the default of Kubernetes, in decimal.
const MODE: i32 = 420;

/// What is added to every pod of an add-on on one cluster.
#[derive(Clone, Debug)]
pub(super) struct Decoration<'a> {
    environment: Vec<Value>,
    volumes: Vec<Volume>,
    placement: Option<&'a NodePlacement>,
    mirrors: &'a [ImageMirror],
    requirements: &'a [ContainerResourceRequirements],
}

/// A volume of a pod, and where its containers have it.
#[derive(Clone, Debug)]
struct Volume {
    volume: Value,
    mount: Value,
}

impl Volume {
    fn of_credential(credential: &Credential, addon: &str) -> Self {
        let Credential { volume, path, .. } = credential;
        let secret = json!({ "secretName": credential.secret_of(addon), "defaultMode": MODE });
        Self {
            volume: json!({ "name": volume, "secret": secret }),
            mount: json!({ "name": volume, "mountPath": path }),
        }
    }

    fn of_certificates(addon: &str) -> Self {
        let config_map = json!({ "name": proxy::config_map_name(addon), "defaultMode": MODE });
        Self {
            volume: json!({ "name": proxy::VOLUME, "configMap": config_map }),
            mount: json!({ "name": proxy::VOLUME, "mountPath": proxy::FOLDER }),
        }
    }
}

impl<'a> Decoration<'a> {
    /// What is added on one cluster.
    pub(super) fn new(inputs: &Inputs<'a>, variables: &Variables<'_>, has_certificates: bool) -> Self {
        let addon = inputs.addon();
        let proxy = inputs.settings.and_then(|settings| settings.proxy_config.as_ref());
        let mut environment = own_environment(inputs, variables);
        let of_proxy = proxy.into_iter().flat_map(proxy::environment);
        environment.extend(of_proxy.map(|(name, value)| variable(name, value)));
        let credentials = inputs.blueprint.credentials();
        let mut volumes: Vec<_> = credentials.iter().map(|one| Volume::of_credential(one, addon)).collect();
        if has_certificates {
            let (name, file) = proxy::certificates_variable();
            environment.push(variable(name, &file));
            volumes.push(Volume::of_certificates(addon));
        }
        Self {
            environment,
            volumes,
            placement: inputs.settings.and_then(|settings| settings.node_placement.as_ref()),
            mirrors: inputs.mirrors(),
            requirements: inputs.settings.map_or(&[], |settings| &settings.resource_requirements),
        }
    }

    /// Adds it to the pods of an object, if it has some.
    pub(super) fn put_on(&self, object: &Object, manifest: &mut Value) -> Result<(), Fault> {
        let Some(pod) = pod_of(object, manifest) else { return Ok(()) };
        self.place(pod);
        put_all(pod, "volumes", "name", self.volumes.iter().map(|volume| &volume.volume))?;
        for kind in ["initContainers", "containers"] {
            if pod.get(kind).is_none_or(Value::is_null) {
                continue;
            }
            for container in items(pod, kind)? {
                let form = || Fault::Form { field: kind.to_owned(), form: "a list of containers" };
                self.put_on_container(object, container.as_object_mut().ok_or_else(form)?)?;
            }
        }
        Ok(())
    }

    /// Says on which nodes the pod runs.
    fn place(&self, pod: &mut Map<String, Value>) {
        let Some(NodePlacement { node_selector, tolerations }) = self.placement else { return };
        if !node_selector.is_empty() {
            pod.insert("nodeSelector".to_owned(), json!(node_selector));
        }
        if !tolerations.is_empty() {
            pod.insert("tolerations".to_owned(), json!(tolerations));
        }
    }

    fn put_on_container(&self, object: &Object, container: &mut Map<String, Value>) -> Result<(), Fault> {
        put_all(container, "env", "name", &self.environment)?;
        put_all(container, "volumeMounts", "mountPath", self.volumes.iter().map(|volume| &volume.mount))?;
        let image = container.get("image").and_then(Value::as_str);
        if let Some(mirrored) = image.and_then(|image| mirrored(image, self.mirrors)) {
            container.insert("image".to_owned(), mirrored.into());
        }
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Some(resources) = resources_of(self.requirements, object, name) {
            container.insert("resources".to_owned(), json!(resources));
        }
        Ok(())
    }
}

/// The variables that say who the agent is, in the order of the specification's example.
fn own_environment(inputs: &Inputs<'_>, variables: &Variables<'_>) -> Vec<Value> {
    let hub = is_for_hub(inputs.blueprint.registrations()).then_some(HUB_KUBECONFIG);
    let names = hub.into_iter().chain([CLUSTER_NAME, INSTALL_NAMESPACE]);
    names.filter_map(|name| Some(variable(name, variables.get(name)?))).collect()
}

fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// Puts items into a list, each in the place of what goes by the same key, or at the end.
fn put_all<'v>(
    of: &mut Map<String, Value>,
    list: &str,
    key: &str,
    added: impl IntoIterator<Item = &'v Value>,
) -> Result<(), Fault> {
    let mut added = added.into_iter().peekable();
    if added.peek().is_none() {
        return Ok(());
    }
    let list = items(of, list)?;
    for item in added {
        let is_same = |other: &Value| other.get(key) == item.get(key);
        let place = list.iter().position(is_same).unwrap_or(list.len());
        list.retain(|other| !is_same(other));
        list.insert(place, item.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
