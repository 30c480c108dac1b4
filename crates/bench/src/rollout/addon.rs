//! The add-on that is rolled out, and what it is configured by.

use drover_api::{
    addon::{AddOnDeploymentConfig, AddOnTemplate, ClusterManagementAddOn},
    names::LIFECYCLE_ANNOTATION,
};
use drover_testkit::objects::Described as _;
use kube::Resource;
use serde_json::{Value, json};

use crate::setup::{example, named};

/// The name of the configuration that all clusters share.
pub(super) const CONFIG: &str = "config";

/// Who makes the works of the add-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// A manager of its own, which is played.
    Manager,
    /// The hub, from a template.
    Template,
}

/// What the add-on is on the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edition {
    /// What is installed.
    First,
    /// What it is upgraded to.
    Second,
}

impl Maker {
    /// The content of the configuration that all clusters share. Of a templated add-on it is not what changes.
    pub(super) fn content(self, edition: Edition) -> Value {
        match (self, edition) {
            (Self::Manager, Edition::First) => variable("STATE", "before"),
            (Self::Manager, Edition::Second) => variable("STATE", "after"),
            (Self::Template, _) => settings("4"),
        }
    }

    /// The templates of the add-on, one for each edition: those of the examples, whose agents do not register here.
    pub(super) fn templates(self, addon: &str) -> anyhow::Result<Vec<AddOnTemplate>> {
        if self == Self::Manager {
            return Ok(Vec::new());
        }
        let files = [
            (Edition::First, "template/addon-template.yaml"),
            (Edition::Second, "template/upgrade/addon-template-v2.yaml"),
        ];
        files.into_iter().map(|(edition, file)| template(addon, edition, example(file)?)).collect()
    }

    /// How the add-on gets to the clusters of the placement of its name, in the namespace of its name.
    pub(super) fn install_strategy(self, addon: &str, edition: Edition, rollout: &Value) -> Value {
        let mut configs = vec![reference::<AddOnDeploymentConfig>(Some(addon), CONFIG)];
        if self == Self::Template {
            configs.push(reference::<AddOnTemplate>(None, &template_name(addon, edition)));
        }
        let placement = json!({ "namespace": addon, "name": addon, "configs": configs, "rolloutStrategy": rollout });
        json!({ "type": "Placements", "placements": [placement] })
    }

    /// The add-on, for all clusters.
    pub(super) fn addon(self, addon: &str, rollout: &Value) -> anyhow::Result<ClusterManagementAddOn> {
        let mut supported = vec![type_of::<AddOnDeploymentConfig>()];
        if self == Self::Template {
            supported.push(type_of::<AddOnTemplate>());
        }
        let mut object = named::<ClusterManagementAddOn>(addon).annotated(LIFECYCLE_ANNOTATION, "addon-manager");
        object.spec = serde_json::from_value(json!({
            "supportedConfigs": supported,
            "installStrategy": self.install_strategy(addon, Edition::First, rollout),
        }))?;
        Ok(object)
    }
}

/// Settings of a templated add-on.
pub(super) fn settings(log_level: &str) -> Value {
    variable("LOG_LEVEL", log_level)
}

fn variable(name: &str, value: &str) -> Value {
    json!({ "customizedVariables": [{ "name": name, "value": value }] })
}

fn template_name(addon: &str, edition: Edition) -> String {
    match edition {
        Edition::First => format!("{addon}-v1"),
        Edition::Second => format!("{addon}-v2"),
    }
}

fn template(addon: &str, edition: Edition, mut example: Value) -> anyhow::Result<AddOnTemplate> {
    example["metadata"] = json!({ "name": template_name(addon, edition) });
    example["spec"]["addonName"] = addon.into();
    example["spec"]["registration"] = json!([]);
    Ok(serde_json::from_value(example)?)
}

fn type_of<K: Resource<DynamicType = ()>>() -> Value {
    json!({ "group": K::group(&()), "resource": K::plural(&()) })
}

/// A reference to a configuration.
pub(super) fn reference<K: Resource<DynamicType = ()>>(namespace: Option<&str>, name: &str) -> Value {
    let mut reference = type_of::<K>();
    reference["name"] = name.into();
    if let Some(namespace) = namespace {
        reference["namespace"] = namespace.into();
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(maker: Maker, edition: Edition) -> Vec<Value> {
        let strategy = maker.install_strategy("bench", edition, &json!({}));
        strategy["placements"][0]["configs"].as_array().unwrap().iter().map(|config| config["name"].clone()).collect()
    }

    #[test]
    fn an_upgrade_is_another_content_or_another_template() {
        assert_eq!(configs(Maker::Manager, Edition::First), configs(Maker::Manager, Edition::Second));
        assert_ne!(Maker::Manager.content(Edition::First), Maker::Manager.content(Edition::Second));
        assert_eq!(configs(Maker::Template, Edition::First), ["config", "bench-v1"]);
        assert_eq!(configs(Maker::Template, Edition::Second), ["config", "bench-v2"]);
        assert_eq!(Maker::Template.content(Edition::First), Maker::Template.content(Edition::Second));
    }

    #[test]
    fn the_templates_are_the_examples_without_registration() {
        let templates = Maker::Template.templates("bench").unwrap();
        let [first, second] = templates.as_slice() else { panic!("there are two") };
        for template in [first, second] {
            assert_eq!((template.spec.addon_name.as_str(), template.spec.registration.len()), ("bench", 0));
            let manifests = &template.spec.agent_spec.workload.as_ref().unwrap().manifests;
            let kinds: Vec<_> = manifests.iter().map(|manifest| json!(manifest)["kind"].clone()).collect();
            assert_eq!(kinds, ["Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
        }
        assert_ne!(first.spec, second.spec);
        assert!(Maker::Manager.templates("bench").unwrap().is_empty());
    }
}
