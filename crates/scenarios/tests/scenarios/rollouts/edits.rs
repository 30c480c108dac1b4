//! Configurations that are edited in place, and the contents that are kept of them.

use std::collections::BTreeMap;

use drover_api::{
    addon::{AddOnHubConfig, ManagedClusterAddOn},
    drover::{AddOnRollout, ConfigRevision, RolloutState},
};
use drover_testkit::{World, play::Behaviour, wait};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{ADDON, Field, YYY, behind, placement, rolling, update_all};
use crate::running::{NAMESPACE, change, create};

drover_testkit::scenarios! {
    Own {
        an_edit_in_place_rolls_out_like_anything_else,
        what_nobody_needs_any_more_is_collected,
        a_config_map_is_kept_and_of_a_secret_only_its_hash,
        what_is_remembered_can_be_lost_and_left_behind,
    }
}

/// Longer than a revision is kept that nobody needs.
const LATER: std::time::Duration = std::time::Duration::from_mins(2);

impl Field {
    fn revisions(&self) -> Api<ConfigRevision> {
        Api::namespaced(self.world.client(), NAMESPACE)
    }

    /// What is kept, by hash.
    async fn kept(&self) -> BTreeMap<String, Option<String>> {
        let revisions = self.revisions().list(&ListParams::default()).await.expect("revisions can be listed");
        let kept = revisions.into_iter().map(|revision| revision.spec);
        kept.map(|spec| (spec.spec_hash.to_string(), spec.content)).collect()
    }

    /// What is kept after a while. When the hub has noticed that nobody needs a content, from when on it is kept for a minute, nobody can see.
    async fn kept_later(&self) -> BTreeMap<String, Option<String>> {
        self.pass(LATER);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        self.kept().await
    }

    /// Waits until a cluster runs something else than this hash, and returns that.
    async fn runs_other_than(&self, cluster: &str, hash: &str) -> String {
        let what = format!("{cluster} runs something other than {hash}");
        let addon = wait::until(&self.on(cluster), ADDON, &what, |addon| {
            runs(addon).is_some_and(|runs| !runs.is_empty() && runs != hash)
        })
        .await;
        runs(&addon).unwrap_or_default()
    }

    async fn edit(&self, name: &str, version: &str) {
        let configs = Api::<AddOnHubConfig>::all(self.world.client());
        change(&configs, name, json!({ "spec": { "desiredVersion": version } })).await;
    }
}

/// The hash of what last ran on a cluster.
fn runs(addon: &ManagedClusterAddOn) -> Option<String> {
    let reference = addon.status.as_ref()?.config_references.first()?;
    Some(reference.last_applied_config_spec_hash.as_ref()?.to_string())
}

async fn an_edit_in_place_rolls_out_like_anything_else(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a1", "a2", "c1"]).await;
    field.hub_config("config", "v1").await;
    field.select("production", &["a1", "a2"]).await;
    field.select("canaries", &["c1"]).await;
    let list =
        [placement("production", "config", behind("canaries", "1")), placement("canaries", "config", rolling("1"))];
    field.list(&list).await;
    field.says("production", "False/InstallSucceed: 2/2 install completed with no errors.").await;
    let old = field.runs_other_than("a1", "").await;

    field.crowd.behave("c1", Behaviour::Silent);
    field.edit("config", "v2").await;
    field.says("production", "True/WaitingForCanary: waitingForCanary... 1 of 1 canaries is not done: c1").await;
    for cluster in ["a1", "a2"] {
        let addon = field.on(cluster).get(ADDON).await.expect("the add-on is there");
        let reference = &addon.status.expect("it has a status").config_references[0];
        assert_eq!(reference.desired_config_spec_hash.as_ref().map(ToString::to_string), Some(old.clone()));
    }
    // A newcomer gets what is known to be good, though no object has that content any more.
    field.clusters(&["a3"]).await;
    field.select("production", &["a1", "a2", "a3"]).await;
    assert_eq!(field.runs_other_than("a3", "").await, old);
    let kept = field.kept().await;
    assert_eq!(kept[&old].as_deref(), Some(r#"{"spec":{"desiredVersion":"v1"}}"#), "{kept:?}");

    // What is kept can not be changed.
    let revisions = field.revisions().list(&ListParams::default()).await.expect("revisions can be listed");
    let name = revisions.items[0].metadata.name.clone().expect("it has a name");
    let patch = Patch::Merge(json!({ "spec": { "content": "{}" } }));
    let refused = field.revisions().patch(&name, &PatchParams::default(), &patch).await.expect_err("it is refused");
    assert!(refused.to_string().contains("a revision never changes"), "{refused}");

    field.crowd.behave("c1", Behaviour::Well);
    let new = field.runs_other_than("c1", &old).await;
    for cluster in ["a1", "a2", "a3"] {
        assert_eq!(field.runs_other_than(cluster, &old).await, new);
    }
    field.says("production", "False/UpgradeSucceed: 3/3 upgrade completed with no errors.").await;
    assert_eq!(field.kept().await.len(), 2, "what was known to be good may be returned to");

    // Going back needs no canaries.
    field.crowd.behave("c1", Behaviour::Silent);
    field.edit("config", "v1").await;
    assert_eq!(field.runs_other_than("a1", &new).await, old);
    field.hub.stop().await;
}

async fn what_nobody_needs_any_more_is_collected(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["c1"]).await;
    field.hub_config("config", "v0").await;
    field.select("all", &["c1"]).await;
    field.list(&[placement("all", "config", update_all())]).await;
    let first = field.runs_other_than("c1", "").await;
    let mut last = first.clone();
    // Ten sets that can be trusted are remembered, and ten besides.
    for version in 1..=22 {
        field.pass(std::time::Duration::from_secs(1));
        field.edit("config", &format!("v{version}")).await;
        last = field.runs_other_than("c1", &last).await;
    }
    wait::attempt("the first is gone", async || {
        let kept = field.kept_later().await;
        if kept.contains_key(&first) { Err(format!("{kept:?}")) } else { Ok(()) }
    })
    .await;
    let kept = field.kept().await;
    assert!(kept.contains_key(&last) && kept.len() >= 10, "{kept:?}");

    // When the add-on has gone, only what its configuration still contains is of use.
    field.addons().delete(ADDON, &DeleteParams::default()).await.expect("an add-on can be deleted");
    let _ = field.rollouts().delete(ADDON, &DeleteParams::default()).await;
    wait::attempt("only the last is kept", async || {
        let kept = field.kept_later().await;
        if kept.keys().eq([&last]) { Ok(()) } else { Err(format!("{kept:?}")) }
    })
    .await;
    field.hub.stop().await;
}

/// Lets the hub read configurations of types that it does not know.
async fn grant(field: &Field, resources: &[&str]) {
    let labels = json!({ "drover.dev/hub-reads-configs": "true" });
    let rules = json!([{ "apiGroups": [""], "resources": resources, "verbs": ["get", "list", "watch"] }]);
    let roles = Api::<ClusterRole>::all(field.world.client());
    let role = json!({ "metadata": { "name": "configs", "labels": labels }, "rules": rules });
    create(&roles, serde_json::from_value(role).expect("a role")).await;
    // Kubernetes has a controller that collects the rules of labelled roles; there is none here, so this does it.
    change(&roles, "drover-hub-configs", json!({ "rules": rules })).await;
    let secrets = Api::<Secret>::all(field.world.service_account(NAMESPACE, "drover-hub").await);
    wait::attempt("the hub may read what was granted", async || {
        secrets.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

async fn a_config_map_is_kept_and_of_a_secret_only_its_hash(world: World) {
    let field = Field::new(world).await;
    grant(&field, &["configmaps", "secrets"]).await;
    field.clusters(&["m1", "s1"]).await;
    field.select("maps", &["m1"]).await;
    field.select("secrets", &["s1"]).await;
    let maps = Api::<ConfigMap>::namespaced(field.world.client(), "default");
    let map = json!({ "metadata": { "name": "map" }, "data": { "key": "shown" } });
    create(&maps, serde_json::from_value(map).expect("a ConfigMap")).await;
    let secrets = Api::<Secret>::namespaced(field.world.client(), "default");
    let secret = json!({ "metadata": { "name": "secret" }, "stringData": { "key": "hidden" } });
    create(&secrets, serde_json::from_value(secret).expect("a Secret")).await;
    let of = |name: &str, resource: &str, object: &str| -> Value {
        let configs = json!([{ "group": "", "resource": resource, "namespace": "default", "name": object }]);
        json!({ "name": name, "namespace": "default", "configs": configs })
    };
    field.list(&[of("maps", "configmaps", "map"), of("secrets", "secrets", "secret")]).await;
    let (map, secret) = (field.runs_other_than("m1", "").await, field.runs_other_than("s1", "").await);
    let kept = field.kept().await;
    assert_eq!(kept[&map].as_deref(), Some(r#"{"data":{"key":"shown"}}"#));
    assert_eq!(kept.get(&secret).cloned().flatten(), None, "{kept:?}");

    change(&maps, "map", json!({ "data": { "key": "other" } })).await;
    change(&secrets, "secret", json!({ "stringData": { "key": "hidden too" } })).await;
    let (map, secret) = (field.runs_other_than("m1", &map).await, field.runs_other_than("s1", &secret).await);
    let kept = field.kept().await;
    assert_eq!(kept[&map].as_deref(), Some(r#"{"data":{"key":"other"}}"#));
    assert_eq!(kept.get(&secret).cloned().flatten(), None, "{kept:?}");
    field.hub.stop().await;
}

async fn what_is_remembered_can_be_lost_and_left_behind(world: World) {
    let field = Field::of_one_placement(world, &["a1", "a2"], &rolling("1")).await;
    field.behave(&["a1", "a2"], Behaviour::Silent);
    field.list(&[placement("aws-placement", YYY, rolling("1"))]).await;
    field.says("aws-placement", "True/Upgrading: 1/2 upgrading...").await;

    // Who is on the way arrives, and the next one follows.
    field.rollouts().delete(ADDON, &DeleteParams::default()).await.expect("it can be deleted");
    field.remembers("it is made again", |status| status.state == Some(RolloutState::RollingOut)).await;
    field.behave(&["a1", "a2"], Behaviour::Well);
    for cluster in ["a1", "a2"] {
        field.is_given(cluster, YYY).await;
    }
    field.remembers("it is complete", |status| status.state == Some(RolloutState::Complete)).await;

    // An add-on that comes after another has what that one has left behind.
    field.addons().delete(ADDON, &DeleteParams::default()).await.expect("an add-on can be deleted");
    wait::gone(&field.addons(), ADDON).await;
    field.list(&[placement("aws-placement", YYY, rolling("1"))]).await;
    let addon = field.addons().get(ADDON).await.expect("it is there");
    wait::until(&field.rollouts(), ADDON, "it belongs to the add-on", |rollout: &AddOnRollout| {
        let owners = rollout.metadata.owner_references.iter().flatten().map(|owner| Some(&owner.uid));
        owners.eq([addon.metadata.uid.as_ref()])
    })
    .await;
    field.hub.stop().await;
}
