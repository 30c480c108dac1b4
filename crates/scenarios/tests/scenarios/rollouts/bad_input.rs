//! What users get wrong: each mistake is told where they look, holds up nobody else, uninstalls nothing, and is over once it is corrected.

use drover_api::{
    addon::{AddOnHubConfig, ClusterManagementAddOn},
    drover::{AddOnRollout, ConfigRevision},
};
use drover_testkit::{World, wait};
use k8s_openapi::{
    api::rbac::v1::ClusterRole, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{ADDON, Field, behind, config, placement, progress_of, rolling, said_on, update_all};
use crate::running::{NAMESPACE, change, create};

drover_testkit::scenarios! {
    Own {
        a_configuration_that_is_missing,
        a_configuration_that_is_deleted,
        a_type_that_there_is_not_and_then_may_not_be_read,
        a_type_that_only_the_manager_of_the_add_on_may_read,
        a_placement_that_is_missing,
        an_override_that_is_not_supported,
        an_override_that_names_nothing,
        canaries_that_are_not_there,
        canaries_that_wait_for_each_other,
        annotations_that_make_no_sense,
        a_set_whose_content_is_lost,
    }
}

const INSTALLED: &str = "False/InstallSucceed: install completed with no errors.";
const ALL_INSTALLED: &str = "False/InstallSucceed: 1/1 install completed with no errors.";
const UPGRADED: &str = "False/UpgradeSucceed: upgrade completed with no errors.";

/// The longest that the hub takes to find out what nobody tells it.
const PATIENCE: std::time::Duration = std::time::Duration::from_mins(1);

impl Field {
    /// Two clusters, each in a placement of its own.
    async fn in_two_parts(world: World) -> Self {
        let field = Self::new(world).await;
        field.clusters(&["b1", "s1"]).await;
        field.select("broken", &["b1"]).await;
        field.select("sound", &["s1"]).await;
        field.hub_config("there", "v1").await;
        field
    }

    /// Waits until the condition of what remembers the rollouts says this.
    async fn refuses(&self, complaint: &str) {
        let says = |rollout: &AddOnRollout| {
            let conditions = rollout.status.iter().flat_map(|status| &status.conditions);
            let mut accepted = conditions.filter(|condition| condition.type_ == "Accepted");
            accepted.any(|condition| (condition.reason.as_str(), condition.message.as_str()) == ("Refused", complaint))
        };
        wait::until(&self.rollouts(), ADDON, &format!("it refuses: {complaint}"), says).await;
    }

    /// Waits until nothing is refused.
    async fn accepts(&self) {
        let says = |rollout: &AddOnRollout| {
            let conditions = rollout.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|condition| condition.type_ == "Accepted" && condition.status == "True")
        };
        wait::until(&self.rollouts(), ADDON, "everything is accepted", says).await;
    }

    /// What the add-on on a cluster was given, and whether it is still the one that was made first.
    async fn uid(&self, cluster: &str) -> Option<String> {
        self.on(cluster).get(ADDON).await.expect("nothing is uninstalled").metadata.uid
    }

    async fn ask_for_configs(&self, cluster: &str, configs: &[Value]) {
        change(&self.on(cluster), ADDON, json!({ "spec": { "configs": configs } })).await;
    }
}

async fn a_configuration_that_is_missing(world: World) {
    let field = Field::in_two_parts(world).await;
    field.list(&[placement("broken", "missing", update_all()), placement("sound", "there", update_all())]).await;
    field.says("sound", ALL_INSTALLED).await;
    let problem = "the config addonhubconfigs missing does not exist: create it, or refer to another";
    field.says("broken", &format!("True/Installing: 0/1 installing... {problem}")).await;
    field.says_on("b1", &format!("True/Installing: installing... {problem}")).await;
    field.reports(&format!("default/broken: {problem}")).await;
    field.refuses(problem).await;

    field.hub_config("missing", "v1").await;
    field.says_on("b1", INSTALLED).await;
    field.says("broken", ALL_INSTALLED).await;
    field.accepts().await;
    field.hub.stop().await;
}

async fn a_configuration_that_is_deleted(world: World) {
    let field = Field::in_two_parts(world).await;
    field.hub_config("passing", "v1").await;
    field.list(&[placement("broken", "passing", update_all()), placement("sound", "there", update_all())]).await;
    field.says("broken", ALL_INSTALLED).await;
    let (uid, given) = (field.uid("b1").await, field.given().await);

    let configs = Api::<AddOnHubConfig>::all(field.world.client());
    configs.delete("passing", &DeleteParams::default()).await.expect("a configuration can be deleted");
    let problem = "the config addonhubconfigs passing does not exist: create it, or refer to another";
    field.reports(&format!("default/broken: {problem}")).await;
    // Who has it keeps it, and who is new gets what is known to be good.
    field.clusters(&["b2"]).await;
    field.select("broken", &["b1", "b2"]).await;
    field.says_on("b2", INSTALLED).await;
    field.says_on("b1", INSTALLED).await;
    assert_eq!((field.uid("b1").await, &field.given().await["b1"]), (uid.clone(), &given["b1"]));

    field.hub_config("passing", "v2").await;
    field.says_on("b1", UPGRADED).await;
    field.says_on("b2", UPGRADED).await;
    assert_eq!(field.uid("b1").await, uid);
    field.accepts().await;
    field.hub.stop().await;
}

fn definition() -> CustomResourceDefinition {
    let spec = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let definition = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Thing", "plural": "things" },
            "scope": "Cluster",
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    serde_json::from_value(definition).expect("a definition")
}

async fn a_type_that_there_is_not_and_then_may_not_be_read(world: World) {
    let field = Field::in_two_parts(world).await;
    let mut broken = placement("broken", "there", update_all());
    broken["configs"] = json!([{ "group": "example.com", "resource": "things", "name": "one" }]);
    field.list(&[broken, placement("sound", "there", update_all())]).await;
    field.says("sound", ALL_INSTALLED).await;
    let absent = "there is no resource things.example.com, which the config things one is of: \
        install its CustomResourceDefinition, or refer to another";
    field.says_on("b1", &format!("True/Installing: installing... {absent}")).await;

    create(&Api::all(field.world.client()), definition()).await;
    let forbidden = "the hub may not read things.example.com, which the config things one is of: \
        grant it with a ClusterRole that is labelled drover.dev/hub-reads-configs=true";
    field.says_on("b1", &format!("True/Installing: installing... {forbidden}")).await;
    field.reports(&format!("default/broken: {forbidden}")).await;

    let rules = json!([{ "apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get", "list", "watch"] }]);
    let labels = json!({ "drover.dev/hub-reads-configs": "true" });
    let role = json!({ "metadata": { "name": "reads-things", "labels": labels }, "rules": rules });
    let role: ClusterRole = serde_json::from_value(role).expect("a role");
    create(&Api::all(field.world.client()), role).await;
    // Kubernetes has a controller that collects the rules of labelled roles; there may be none here, so this does it.
    change(&Api::<ClusterRole>::all(field.world.client()), "drover-hub-configs", json!({ "rules": rules })).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Thing"));
    let as_hub = field.world.service_account(NAMESPACE, "drover-hub").await;
    let readable = Api::<DynamicObject>::all_with(as_hub, &kind);
    wait::attempt("the hub may read the type", async || {
        readable.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    field.pass(PATIENCE);
    let missing = "the config things one does not exist: create it, or refer to another";
    field.says_on("b1", &format!("True/Installing: installing... {missing}")).await;
    let things = Api::<DynamicObject>::all_with(field.world.client(), &kind);
    let thing = DynamicObject::new("one", &kind).data(json!({ "spec": { "size": 1 } }));
    things.create(&kube::api::PostParams::default(), &thing).await.expect("a thing can be made");
    field.says_on("b1", INSTALLED).await;
    field.hub.stop().await;
}

/// The hash that is listed for the thing that is asked for.
fn listed(addon: &ClusterManagementAddOn) -> Option<String> {
    let progressions = addon.status.iter().flat_map(|status| &status.install_progressions);
    let references = progressions.flat_map(|progression| &progression.config_references);
    let mut states = references.filter_map(|reference| reference.desired_config.as_ref());
    states.find(|state| state.referent.name == "one").map(|state| state.spec_hash.to_string())
}

async fn a_type_that_only_the_manager_of_the_add_on_may_read(world: World) {
    let field = Field::new(world).await;
    create(&Api::all(field.world.client()), definition()).await;
    field.clusters(&["b1"]).await;
    field.select("all", &["b1"]).await;
    let mut entry = placement("all", "none", update_all());
    entry["configs"] = json!([{ "group": "example.com", "resource": "things", "name": "one" }]);
    field.list(&[entry]).await;

    // It fills in what is listed, and nobody takes that back.
    let is_listed = |addon: &ClusterManagementAddOn| listed(addon).as_deref() == Some("");
    let addon = wait::until(&field.addons(), ADDON, "it is listed without a hash", is_listed).await;
    let mut progressions = addon.status.expect("it was waited for").install_progressions;
    let references = progressions.iter_mut().flat_map(|progression| &mut progression.config_references);
    for state in references.filter_map(|reference| reference.desired_config.as_mut()) {
        state.spec_hash = "found".parse().expect("any text is a hash");
    }
    let found = Patch::Merge(json!({ "status": { "installProgressions": progressions } }));
    field.addons().patch_status(ADDON, &PatchParams::default(), &found).await.expect("it may say so");
    let addon = field.says("all", ALL_INSTALLED).await;
    assert_eq!(listed(&addon).as_deref(), Some("found"));
    field.hub.stop().await;
}

async fn a_placement_that_is_missing(world: World) {
    let field = Field::in_two_parts(world).await;
    let list = [placement("late", "there", update_all()), placement("sound", "there", update_all())];
    field.list(&list).await;
    field.says("sound", ALL_INSTALLED).await;
    let problem =
        "there is no Placement default/late: create it, or remove it from the list; its clusters stay as they are";
    field.reports(&format!("default/late: {problem}")).await;
    field.refuses(problem).await;
    field.select("late", &["b1"]).await;
    field.says_on("b1", INSTALLED).await;
    field.accepts().await;

    // One that goes takes nothing with it.
    let uid = field.uid("b1").await;
    field.placements().delete("late", &DeleteParams::default()).await.expect("a placement can be deleted");
    field.refuses(problem).await;
    assert_eq!(field.uid("b1").await, uid);
    field.hub.stop().await;
}

async fn an_override_that_is_not_supported(world: World) {
    let field = Field::in_two_parts(world).await;
    let list = |config: &str| [placement("broken", config, update_all()), placement("sound", config, update_all())];
    field.list(&list("there")).await;
    field.says_on("b1", INSTALLED).await;
    // Until it is installed everywhere, all that follows is an installation too.
    field.says("broken", ALL_INSTALLED).await;
    field.says("sound", ALL_INSTALLED).await;
    field.ask_for_configs("b1", &[config("addondeploymentconfigs", "any")]).await;
    let problem = "Configuration with gvr addon.open-cluster-management.io/addondeploymentconfigs is not supported for this addon";
    field.says_on("b1", &format!("False/ConfigurationUnsupported: {problem}")).await;

    // It is not used, and nobody waits for it, not even this cluster.
    field.hub_config("next", "v2").await;
    field.list(&list("next")).await;
    field.says("broken", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    field.says("sound", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    assert_eq!(field.given().await["b1"], "next");
    field.ask_for_configs("b1", &[]).await;
    field.says_on("b1", UPGRADED).await;
    field.hub.stop().await;
}

async fn an_override_that_names_nothing(world: World) {
    let field = Field::in_two_parts(world).await;
    field.list(&[placement("broken", "there", update_all()), placement("sound", "there", update_all())]).await;
    field.says_on("b1", INSTALLED).await;
    field.says("broken", ALL_INSTALLED).await;
    field.says("sound", ALL_INSTALLED).await;
    // The add-on's manager says what can be configured on single clusters.
    let supported = json!([{ "group": "addon.open-cluster-management.io", "resource": "addonhubconfigs" }]);
    let status = Patch::Merge(json!({ "status": { "supportedConfigs": supported } }));
    field.on("b1").patch_status(ADDON, &PatchParams::default(), &status).await.expect("an add-on has a status");
    field.hub_config("own", "v5").await;
    field.ask_for_configs("b1", &[config("addonhubconfigs", "own")]).await;
    field.says_on("b1", UPGRADED).await;
    let is_given = async |name: &str| {
        let given = |addon: &drover_api::addon::ManagedClusterAddOn| {
            addon.status.as_ref().and_then(|status| status.config_references.first()?.name.clone())
        };
        let what = format!("it has {name} and is well");
        wait::until(&field.on("b1"), ADDON, &what, |addon| {
            given(addon).as_deref() == Some(name) && said_on(addon).as_deref() == Some(UPGRADED)
        })
        .await;
    };
    is_given("own").await;

    field.ask_for_configs("b1", &[config("addonhubconfigs", "nowhere")]).await;
    let problem = "the config addonhubconfigs nowhere does not exist: create it, or refer to another";
    field.says_on("b1", &format!("False/UpgradeFailed: {problem}")).await;
    assert_eq!(field.given().await["b1"], "own", "it keeps what it has");
    field.hub_config("nowhere", "v6").await;
    is_given("nowhere").await;
    field.ask_for_configs("b1", &[]).await;
    is_given("there").await;
    field.says_on("s1", INSTALLED).await;
    field.hub.stop().await;
}

async fn canaries_that_are_not_there(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a1", "c1"]).await;
    field.select("production", &["a1"]).await;
    field.hub_config("one", "v1").await;
    field.hub_config("two", "v2").await;
    let list = |config: &str| {
        [placement("production", config, behind("canaries", "1")), placement("canaries", config, rolling("1"))]
    };
    field.list(&list("one")).await;
    let missing = "there is no Placement default/canaries: create it, or name another canary placement";
    field.says("production", &format!("True/WaitingForCanary: waitingForCanary... {missing}")).await;
    field.says_on("a1", &format!("True/WaitingForCanary: waitingForCanary... {missing}")).await;
    field.select("canaries", &[]).await;
    let nobody = "the Placement default/canaries selects no cluster";
    field.says("production", &format!("True/WaitingForCanary: waitingForCanary... {nobody}")).await;
    field.select("canaries", &["c1"]).await;
    field.says("production", ALL_INSTALLED).await;

    // The same, with something to lose.
    let uid = field.uid("a1").await;
    field.select("canaries", &[]).await;
    field.list(&list("two")).await;
    field.says("production", &format!("True/WaitingForCanary: waitingForCanary... {nobody}")).await;
    assert_eq!((field.uid("a1").await, &*field.given().await["a1"]), (uid, "one"));
    field.select("canaries", &["c1"]).await;
    field.says("production", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    field.hub.stop().await;
}

async fn canaries_that_wait_for_each_other(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a1", "b1", "s1"]).await;
    field.select("first", &["a1"]).await;
    field.select("second", &["b1"]).await;
    field.select("sound", &["s1"]).await;
    field.hub_config("one", "v1").await;
    let list = |second| {
        [
            placement("first", "one", behind("second", "1")),
            placement("second", "one", second),
            placement("sound", "one", update_all()),
        ]
    };
    field.list(&list(behind("first", "1"))).await;
    let circle = |one: &str, other: &str| {
        format!(
            "True/WaitingForCanary: waitingForCanary... these placements wait for each other: \
             default/{one}, default/{other}; give one of them another strategy"
        )
    };
    field.says("first", &circle("first", "second")).await;
    field.says("second", &circle("second", "first")).await;
    field.says("sound", ALL_INSTALLED).await;
    field.list(&list(rolling("1"))).await;
    field.says("first", ALL_INSTALLED).await;
    field.hub.stop().await;
}

async fn annotations_that_make_no_sense(world: World) {
    let field = Field::in_two_parts(world).await;
    let list = |config: &str| [placement("broken", config, update_all()), placement("sound", config, update_all())];
    field.list(&list("there")).await;
    field.says("sound", ALL_INSTALLED).await;
    field.says("broken", ALL_INSTALLED).await;

    // Somebody wanted to stop something.
    field.annotate("drover.dev/pause", Some("broken")).await;
    let pause =
        "drover.dev/pause: \"broken\" is no placement: write true, or placements of the list such as default/canary";
    field.refuses(pause).await;
    field.hub_config("next", "v2").await;
    field.list(&list("next")).await;
    let paused =
        "True/Upgrading: 0/1 upgrading... paused by the annotation drover.dev/pause of the ClusterManagementAddOn";
    field.says("sound", paused).await;
    assert_eq!(field.given().await["s1"], "there");
    field.annotate("drover.dev/pause", Some("default/broken")).await;
    field.says("sound", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    field.says("broken", paused).await;
    field.accepts().await;
    field.annotate("drover.dev/pause", None).await;
    field.says("broken", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;

    // A pin that can not be read is ignored; one that names a set that nobody knows holds up its own placement.
    field.annotate("drover.dev/pin", Some("default/broken")).await;
    let pin = "drover.dev/pin: \"default/broken\" names no set: write pins such as default/canary=0123456789abcdef";
    field.refuses(pin).await;
    field.hub_config("last", "v3").await;
    field.list(&list("last")).await;
    for cluster in ["b1", "s1"] {
        wait::until(&field.on(cluster), ADDON, "it has the last", |addon| {
            let reference = addon.status.as_ref().and_then(|status| status.config_references.first().cloned());
            reference.and_then(|reference| reference.name).as_deref() == Some("last")
        })
        .await;
    }
    field.annotate("drover.dev/pin", Some("default/broken=0123456789abcdef")).await;
    let unknown = "drover.dev/pin names the set 0123456789abcdef, which is not known: \
        copy one from the AddOnRollout's status.sets, or remove the pin";
    field.refuses(unknown).await;
    field.reports(&format!("default/broken: {unknown}")).await;
    field.annotate("drover.dev/pin", None).await;
    field.accepts().await;
    assert_eq!(field.given().await["b1"], "last");
    field.hub.stop().await;
}

async fn a_set_whose_content_is_lost(world: World) {
    let field = Field::in_two_parts(world).await;
    let mut broken = placement("broken", "there", rolling("100%"));
    broken["configs"] = json!([config("addondeploymentconfigs", "settings")]);
    field.settings("settings", "first").await;
    field.list(&[broken, placement("sound", "there", update_all())]).await;
    field.says("broken", ALL_INSTALLED).await;
    let status = field.remembers("all is installed", |status| progress_of(status, "broken").finished.is_some()).await;
    let first = progress_of(&status, "broken").last_applied.clone().expect("it has run");
    field.settings("settings", "second").await;
    field.says("broken", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    let given = field.on("b1").get(ADDON).await.expect("it is there").status;

    let revisions = Api::<ConfigRevision>::namespaced(field.world.client(), NAMESPACE);
    let is_first = |revision: &&ConfigRevision| revision.spec.content.as_ref().is_some_and(|it| it.contains("first"));
    let kept = revisions.list(&ListParams::default()).await.expect("revisions can be listed");
    let lost = kept.iter().find(is_first).expect("it can be returned to").name_any();
    revisions.delete(&lost, &DeleteParams::default()).await.expect("a revision can be deleted");
    field.annotate("drover.dev/pin", Some(&format!("default/broken={first}"))).await;
    let problem = "the content of the config addondeploymentconfigs default/settings that this set is made of is not kept any more: nothing \
                   new is begun until something else is wanted, or the config has that content again";
    let problem = format!("held at the set {first} by drover.dev/pin, {problem}");
    field.says("broken", &format!("False/UpgradeFailed: 0/1 upgrade failed. {problem}")).await;
    field.reports(&format!("default/broken: {problem}")).await;
    field.says("sound", ALL_INSTALLED).await;
    assert_eq!(field.on("b1").get(ADDON).await.expect("it stays").status, given);

    field.settings("settings", "first").await;
    field.says("broken", "False/UpgradeSucceed: 1/1 upgrade completed with no errors.").await;
    field.hub.stop().await;
}
