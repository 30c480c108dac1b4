//! The manager of an add-on that is not ours, as people build it on OCM's Go framework: it makes the works of its
//! add-on and says so on the add-on.

use drover_api::{
    addon::{ConfigReference, ManagedClusterAddOn},
    names::{ADDON_NAME_LABEL, CONFIG_SPEC_HASH_ANNOTATION, MANIFEST_APPLIED},
    work::ManifestWork,
};
use k8s_openapi::{api::rbac::v1::Subject, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};

use super::{conditions::holds, identity};
use crate::{
    World,
    objects::{self, Described},
};

/// A manager that acts as the service account `<add-on>-manager`.
pub struct AddOnManager {
    addon: String,
    client: Client,
}

impl AddOnManager {
    /// The manager of an add-on, running in `namespace`.
    pub async fn start(world: &World, namespace: &str, addon: &str) -> Self {
        let account = format!("{addon}-manager");
        identity::make_account(world, namespace, &account).await;
        let client = identity::by_token(world, namespace, &account).await;
        let subject = Subject {
            kind: "ServiceAccount".to_owned(),
            name: account.clone(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        };
        let addons = "addon.open-cluster-management.io";
        let rules = vec![
            identity::rule(addons, &["managedclusteraddons", "clustermanagementaddons"], &["get", "list", "watch"]),
            identity::rule(addons, &["managedclusteraddons/status", "clustermanagementaddons/status"], &["patch"]),
            identity::rule(
                "work.open-cluster-management.io",
                &["manifestworks"],
                &["get", "list", "watch", "create", "patch", "delete"],
            ),
        ];
        identity::allow_everywhere(world, subject, &account, rules).await;
        Self { addon: addon.to_owned(), client }
    }

    /// The manager's own client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Deploys the add-on to one cluster, with the configurations that it was given there.
    pub async fn deploy(&self, cluster: &str, manifests: impl IntoIterator<Item = Value>) -> ManifestWork {
        let addons = Api::<ManagedClusterAddOn>::namespaced(self.client(), cluster);
        let addon = addons.get(&self.addon).await.expect("the add-on is there");
        let name = format!("addon-{}-deploy-0", self.addon);
        let work = objects::work(cluster, &name, manifests)
            .labelled(ADDON_NAME_LABEL, &self.addon)
            .annotated(CONFIG_SPEC_HASH_ANNOTATION, &given_configs(&addon).to_string());
        let works = Api::<ManifestWork>::namespaced(self.client(), cluster);
        let work = works.create(&PostParams::default(), &work).await.expect("a manager makes works");
        let patch = json!({ "status": { "conditions": [manifests_applied()] } });
        addons
            .patch_status(&addon.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("a manager reports on its add-on");
        work
    }
}

/// What a manager reports when it has made its works.
pub(super) fn manifests_applied() -> Condition {
    holds(MANIFEST_APPLIED, "AddonManifestApplied", "manifests of addon are applied successfully", None)
}

/// The hashes of what an add-on was given, by configuration.
pub(super) fn given_configs(addon: &ManagedClusterAddOn) -> Value {
    let references = addon.status.as_ref().map(|status| status.config_references.as_slice()).unwrap_or_default();
    Value::Object(references.iter().filter_map(given_config).collect::<Map<_, _>>())
}

fn given_config(reference: &ConfigReference) -> Option<(String, Value)> {
    let desired = reference.desired_config.as_ref()?;
    let namespace = desired.referent.namespace.as_deref().unwrap_or_default();
    let key = format!("{}/{namespace}/{}", reference.group_resource, desired.referent.name);
    Some((key, desired.spec_hash.to_string().into()))
}
