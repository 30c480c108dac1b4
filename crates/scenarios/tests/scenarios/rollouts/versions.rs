//! The lifecycle of an add-on by version: its stories, its examples, and what decides which version is wanted.

use drover_api::{
    addon::{AddOnHubConfig, AddOnTemplate, ManagedClusterAddOn},
    names::{ADDON_VERSION_LABEL, ASSIGNED_VERSION_ANNOTATION, SUPPORTED_VERSIONS_ANNOTATION},
    work::ManifestWork,
};
use drover_testkit::{
    World,
    objects::{self, Described as _},
    play::Behaviour,
    wait,
};
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};

use super::{ADDON, Field, config, said_on, update_all};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own {
        a_fresh_install_is_of_the_default_version,
        an_add_on_is_upgraded_when_a_higher_version_appears,
        an_upgrade_is_tried_by_a_second_placement,
        a_version_that_there_is_not_changes_nothing,
        an_add_on_is_rolled_back_to_an_earlier_version,
        a_user_installs_upgrades_and_rolls_back_one_cluster,
        what_a_user_has_written_is_never_touched,
        templates_make_the_versions,
        a_template_that_comes_or_goes_moves_nobody_who_did_not_ask,
        the_higher_place_decides_between_a_template_and_a_version,
        a_version_and_a_configuration_move_as_one,
        a_hub_configuration_asks_for_a_version_and_says_which_there_are,
    }
}

const DONE: &str = "False/Succeed: install completed with no errors.";

/// A placement, as the examples have it.
pub(super) fn of_version(name: &str, version: Option<&str>, settings: &str) -> Value {
    let template = json!({ "installVersion": version, "configs": [config("addondeploymentconfigs", settings)] });
    json!({ "name": name, "namespace": "default", "addonTemplate": template, "rolloutStrategy": update_all() })
}

/// What an add-on on a cluster publishes of its versions.
fn versions(addon: &ManagedClusterAddOn) -> Value {
    let status = addon.status.clone().unwrap_or_default();
    json!({
        "installVersion": addon.spec.install_version,
        "assigned": addon.annotations().get(ASSIGNED_VERSION_ANNOTATION),
        "lastVersion": status.last_version,
        "currentVersion": status.current_version,
        "progressing": said_on(addon),
    })
}

/// What an add-on publishes where a placement gives it the default version.
fn by_default(last: Option<&str>, current: &str, progressing: &str) -> Value {
    json!({
        "installVersion": null, "assigned": null,
        "lastVersion": last, "currentVersion": current, "progressing": progressing,
    })
}

/// What an add-on publishes where a placement gives it a version.
fn by_placement(version: &str, last: Option<&str>, current: &str, progressing: &str) -> Value {
    json!({
        "installVersion": version, "assigned": version,
        "lastVersion": last, "currentVersion": current, "progressing": progressing,
    })
}

/// What an add-on publishes where a user has written a version.
fn by_user(version: &str, last: Option<&str>, current: &str, progressing: &str) -> Value {
    json!({
        "installVersion": version, "assigned": null,
        "lastVersion": last, "currentVersion": current, "progressing": progressing,
    })
}

impl Field {
    /// An add-on whose manager can do these versions, on clusters of one placement.
    pub(super) async fn with_versions(world: World, versions: &str, clusters: &[&str]) -> Self {
        let field = Self::new(world).await;
        field.clusters(clusters).await;
        field.select("global-placement", clusters).await;
        field.settings("global-config", "global").await;
        field.settings("canary-config", "canary").await;
        // It has to be known which versions there are before somebody is given one.
        create(&field.addons(), objects::addon(ADDON).annotated(SUPPORTED_VERSIONS_ANNOTATION, versions)).await;
        field
    }

    /// Waits until an add-on on a cluster publishes exactly this of its versions.
    async fn has(&self, cluster: &str, expected: Value) -> ManagedClusterAddOn {
        let what = format!("the versions on {cluster} are {expected}");
        wait::until(&self.on(cluster), ADDON, &what, |addon| versions(addon) == expected).await
    }

    /// Waits until an add-on says which versions there are, and which is the default.
    async fn offers(&self, supported: &[&str], default: &str) {
        let offers = |addon: &drover_api::addon::ClusterManagementAddOn| {
            let status = addon.status.clone().unwrap_or_default();
            json!([status.supported_versions, status.default_version]) == json!([supported, default])
        };
        wait::until(&self.addons(), ADDON, &format!("it offers {supported:?} and {default}"), offers).await;
    }

    /// Has a user ask for a version on a cluster.
    async fn ask(&self, cluster: &str, version: Option<&str>) {
        change(&self.on(cluster), ADDON, json!({ "spec": { "installVersion": version } })).await;
    }

    /// The version of the work on a cluster, as its label says.
    async fn work_version(&self, cluster: &str) -> Option<String> {
        let works = Api::<ManifestWork>::namespaced(self.world.client(), cluster);
        let work = works.get(&format!("addon-{ADDON}-deploy-0")).await.expect("there is a work");
        work.labels().get(ADDON_VERSION_LABEL).cloned()
    }

    fn silence(&self, clusters: &[&str]) {
        for cluster in clusters {
            self.crowd.behave(cluster, Behaviour::Silent);
        }
    }

    fn please(&self, clusters: &[&str]) {
        for cluster in clusters {
            self.crowd.behave(cluster, Behaviour::Well);
        }
    }
}

async fn a_fresh_install_is_of_the_default_version(world: World) {
    let field = Field::with_versions(world, "v1", &["c1"]).await;
    field.silence(&["c1"]);
    field.list(&[of_version("global-placement", None, "global-config")]).await;
    field.offers(&["v1"], "v1").await;
    field.has("c1", by_default(None, "unknown", "True/Installing: Installing addon to version v1.")).await;
    field.please(&["c1"]);
    field.has("c1", by_default(None, "v1", DONE)).await;
    assert_eq!(field.work_version("c1").await.as_deref(), Some("v1"));
    field.says("global-placement", "False/Succeed: 1/1 install completed with no errors.").await;
    field.hub.stop().await;
}

async fn an_add_on_is_upgraded_when_a_higher_version_appears(world: World) {
    let field = Field::with_versions(world, "v1", &["c1"]).await;
    field.list(&[of_version("global-placement", None, "global-config")]).await;
    field.has("c1", by_default(None, "v1", DONE)).await;
    field.silence(&["c1"]);
    field.annotate(SUPPORTED_VERSIONS_ANNOTATION, Some("v1,v2")).await;
    field.offers(&["v1", "v2"], "v2").await;
    field.has("c1", by_default(Some("v1"), "unknown", "True/Upgrading: Upgrading addon to version v2.")).await;
    field.please(&["c1"]);
    field.has("c1", by_default(Some("v1"), "v2", DONE)).await;
    assert_eq!(field.work_version("c1").await.as_deref(), Some("v2"));
    field.hub.stop().await;
}

/// The four steps of the example.
async fn an_upgrade_is_tried_by_a_second_placement(world: World) {
    let field = Field::with_versions(world, "v1", &["c1", "c2"]).await;
    let global = of_version("global-placement", Some("v1"), "global-config");
    field.list(std::slice::from_ref(&global)).await;
    for cluster in ["c1", "c2"] {
        field.has(cluster, by_placement("v1", None, "v1", DONE)).await;
    }

    field.annotate(SUPPORTED_VERSIONS_ANNOTATION, Some("v1,v2")).await;
    field.offers(&["v1", "v2"], "v2").await;

    field.silence(&["c1"]);
    field.select("canary-placement", &["c1"]).await;
    field.list(&[global, of_version("canary-placement", Some("v2"), "canary-config")]).await;
    field.has("c1", by_placement("v2", Some("v1"), "unknown", "True/Upgrading: Upgrading addon to version v2.")).await;
    field.please(&["c1"]);
    field.has("c1", by_placement("v2", Some("v1"), "v2", DONE)).await;
    field.has("c2", by_placement("v1", None, "v1", DONE)).await;
    assert_eq!(field.work_version("c2").await.as_deref(), Some("v1"));
    field.hub.stop().await;
}

async fn a_version_that_there_is_not_changes_nothing(world: World) {
    let field = Field::with_versions(world, "v1,v2", &["c1", "c2"]).await;
    field.select("canary-placement", &["c1"]).await;
    let list = async |version| {
        let global = of_version("global-placement", Some("v1"), "global-config");
        field.list(&[global, of_version("canary-placement", Some(version), "canary-config")]).await;
    };
    list("v1").await;
    field.has("c1", by_placement("v1", None, "v1", DONE)).await;
    field.has("c2", by_placement("v1", None, "v1", DONE)).await;

    list("v3").await;
    let words = "False/Failed: could not upgrade to invalid version v3";
    field.has("c1", by_placement("v1", Some("v1"), "unknown", words)).await;
    let problem = "version v3 is none of those that there are: v1, v2";
    field.reports(&format!("default/canary-placement: {problem}")).await;
    list("v0").await;
    // What was wanted before is not a version either.
    let words = "False/Failed: could not install invalid version v0";
    field.has("c1", by_placement("v1", Some("unknown"), "unknown", words)).await;
    field.has("c2", by_placement("v1", None, "v1", DONE)).await;
    assert_eq!(field.work_version("c1").await.as_deref(), Some("v1"));

    list("v1").await;
    field.has("c1", by_placement("v1", Some("unknown"), "v1", DONE)).await;

    // A user gets it as soon as there is one, though nothing else changes.
    field.ask("c2", Some("v3")).await;
    let words = "False/Failed: could not upgrade to invalid version v3";
    field.has("c2", by_user("v3", Some("v1"), "unknown", words)).await;
    field.annotate(SUPPORTED_VERSIONS_ANNOTATION, Some("v1,v2,v3")).await;
    field.has("c2", by_user("v3", Some("v1"), "v3", DONE)).await;
    field.has("c1", by_placement("v1", Some("unknown"), "v1", DONE)).await;
    field.hub.stop().await;
}

async fn an_add_on_is_rolled_back_to_an_earlier_version(world: World) {
    let field = Field::with_versions(world, "v1,v2", &["c1"]).await;
    let list = async |version| field.list(&[of_version("global-placement", Some(version), "global-config")]).await;
    list("v2").await;
    field.has("c1", by_placement("v2", None, "v2", DONE)).await;

    field.silence(&["c1"]);
    list("v1").await;
    let words = "True/Rollingback: Rollingback addon to version v1.";
    field.has("c1", by_placement("v1", Some("v2"), "unknown", words)).await;
    field.says("global-placement", "True/Rollingback: 1/1 rolling back...").await;
    field.please(&["c1"]);
    field.has("c1", by_placement("v1", Some("v2"), "v1", DONE)).await;

    list("v0").await;
    let words = "False/Failed: could not rollback to invalid version v0";
    field.has("c1", by_placement("v1", Some("v1"), "unknown", words)).await;
    list("v1").await;
    field.has("c1", by_placement("v1", Some("unknown"), "v1", DONE)).await;
    field.hub.stop().await;
}

async fn a_user_installs_upgrades_and_rolls_back_one_cluster(world: World) {
    let field = Field::with_versions(world, "v1,v2,v3", &["c1", "c2"]).await;
    field.list(&[of_version("global-placement", None, "global-config")]).await;
    field.has("c1", by_default(None, "v3", DONE)).await;
    field.has("c2", by_default(None, "v3", DONE)).await;

    field.silence(&["c1"]);
    field.ask("c1", Some("v1")).await;
    let words = "True/Rollingback: Rollingback addon to version v1.";
    field.has("c1", by_user("v1", Some("v3"), "unknown", words)).await;
    field.please(&["c1"]);
    field.has("c1", by_user("v1", Some("v3"), "v1", DONE)).await;

    field.silence(&["c1"]);
    field.ask("c1", Some("v2")).await;
    field.has("c1", by_user("v2", Some("v1"), "unknown", "True/Upgrading: Upgrading addon to version v2.")).await;
    field.please(&["c1"]);
    field.has("c1", by_user("v2", Some("v1"), "v2", DONE)).await;

    // It keeps what it has, not what its placement would give it.
    field.ask("c1", Some("v7")).await;
    let words = "False/Failed: could not upgrade to invalid version v7";
    field.has("c1", by_user("v7", Some("v2"), "unknown", words)).await;
    assert_eq!(field.work_version("c1").await.as_deref(), Some("v2"));
    field.annotate(SUPPORTED_VERSIONS_ANNOTATION, Some("v1,v2,v3,v7-rc.1,v7")).await;
    field.has("c1", by_user("v7", Some("v2"), "v7", DONE)).await;
    field.has("c2", by_default(Some("v3"), "v7", DONE)).await;
    field.hub.stop().await;
}

async fn what_a_user_has_written_is_never_touched(world: World) {
    let field = Field::with_versions(world, "v1,v2,v3", &["c1", "c2"]).await;
    let list = async |version| field.list(&[of_version("global-placement", version, "global-config")]).await;
    list(Some("v1")).await;
    field.has("c1", by_placement("v1", None, "v1", DONE)).await;
    field.ask("c1", Some("v2")).await;
    field.has("c1", by_user("v2", Some("v1"), "v2", DONE)).await;

    list(Some("v3")).await;
    field.has("c2", by_placement("v3", Some("v1"), "v3", DONE)).await;
    field.has("c1", by_user("v2", Some("v1"), "v2", DONE)).await;
    list(None).await;
    field.has("c2", by_default(Some("v1"), "v3", DONE)).await;
    field.has("c1", by_user("v2", Some("v1"), "v2", DONE)).await;
    assert_eq!(field.work_version("c1").await.as_deref(), Some("v2"));

    // What is taken away again is the placement's.
    list(Some("v1")).await;
    field.has("c2", by_placement("v1", Some("v3"), "v1", DONE)).await;
    field.ask("c1", None).await;
    field.has("c1", by_placement("v1", Some("v2"), "v1", DONE)).await;
    field.hub.stop().await;
}

async fn templates_make_the_versions(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["c1"]).await;
    field.select("global-placement", &["c1"]).await;
    field.settings("global-config", "global").await;
    field.template("one", "v1").await;
    field.template("next", "v2-rc.1").await;
    field.list(&[of_version("global-placement", None, "global-config")]).await;
    field.offers(&["v1", "v2-rc.1"], "v1").await;
    let addon = field.has("c1", by_default(None, "v1", DONE)).await;
    assert_eq!(templates_on(&addon), ["one"]);

    field.template("two", "v2").await;
    let addon = field.has("c1", by_default(Some("v1"), "v2", DONE)).await;
    assert_eq!(templates_on(&addon), ["two"]);
    field.says("global-placement", "False/Succeed: 1/1 upgrade completed with no errors.").await;

    field.template("two-again", "v2").await;
    let problem = "the templates two and two-again are both version v2: give one of them another";
    field.says("global-placement", &format!("True/Upgrading: 1/1 upgrading... {problem}")).await;
    field.reports(&format!("default/global-placement: {problem}")).await;
    field.has("c1", by_default(Some("v1"), "v2", DONE)).await;
    let templates = Api::<AddOnTemplate>::all(field.world.client());
    change(&templates, "two-again", json!({ "spec": { "version": "v3" } })).await;
    let addon = field.has("c1", by_default(Some("v2"), "v3", DONE)).await;
    assert_eq!(templates_on(&addon), ["two-again"]);
    field.hub.stop().await;
}

/// The templates that an add-on was given.
fn templates_on(addon: &ManagedClusterAddOn) -> Vec<String> {
    let references = addon.status.iter().flat_map(|status| &status.config_references);
    let templates = references.filter(|reference| reference.group_resource.resource == "addontemplates");
    templates.filter_map(|reference| reference.name.clone()).collect()
}

async fn a_template_that_comes_or_goes_moves_nobody_who_did_not_ask(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["c1", "c2"]).await;
    field.select("asks", &["c1"]).await;
    field.select("refers", &["c2"]).await;
    field.settings("global-config", "global").await;
    field.template("one", "v1").await;
    let mut refers = of_version("refers", None, "global-config");
    refers["configs"] = json!([config("addontemplates", "one")]);
    field.list(&[of_version("asks", Some("v1"), "global-config"), refers]).await;
    let ones = async |last: Option<&str>| {
        field.has("c1", by_placement("v1", last, "v1", DONE)).await;
        let addon = field.on("c2").get(ADDON).await.expect("the add-on is there");
        assert_eq!(
            (templates_on(&addon), field.work_version("c2").await.as_deref()),
            (vec!["one".to_owned()], Some("v1"))
        );
    };
    field.says("refers", "False/Succeed: 1/1 install completed with no errors.").await;
    ones(None).await;

    field.template("two", "v2").await;
    field.offers(&["v1", "v2"], "v2").await;
    ones(None).await;

    // Even without any template, nobody is left with nothing.
    let templates = Api::<AddOnTemplate>::all(field.world.client());
    for name in ["two", "one"] {
        templates.delete(name, &DeleteParams::default()).await.expect("a template can be deleted");
    }
    let gone = "the config addontemplates one does not exist: create it, or refer to another";
    field.reports(&format!("default/asks: {gone}; default/refers: {gone}")).await;
    for cluster in ["c1", "c2"] {
        assert_eq!(field.work_version(cluster).await.as_deref(), Some("v1"));
        let addon = field.on(cluster).get(ADDON).await.expect("the add-on is there");
        assert_eq!(templates_on(&addon), ["one"]);
    }
    field.hub.stop().await;
}

async fn the_higher_place_decides_between_a_template_and_a_version(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["c1"]).await;
    field.select("global-placement", &["c1"]).await;
    field.settings("global-config", "global").await;
    field.template("one", "v1").await;
    field.template("two", "v2").await;
    field.list(&[of_version("global-placement", None, "global-config")]).await;
    let defaults = |name: &str| json!({ "spec": { "defaultConfigs": [config("addontemplates", name)] } });
    change(&field.addons(), ADDON, defaults("one")).await;
    let on = async |template: &str, version: &str| {
        let what = format!("{template} is there");
        wait::until(&field.on("c1"), ADDON, &what, |addon| {
            let current = addon.status.as_ref().and_then(|status| status.current_version.clone());
            templates_on(addon) == [template] && current.is_some_and(|current| current.as_str() == version)
        })
        .await;
    };
    on("one", "v1").await;

    // A placement's version goes before the default template, and a user's template before both.
    field.list(&[of_version("global-placement", Some("v2"), "global-config")]).await;
    on("two", "v2").await;
    change(&field.on("c1"), ADDON, json!({ "spec": { "configs": [config("addontemplates", "one")] } })).await;
    on("one", "v1").await;
    change(&field.on("c1"), ADDON, json!({ "spec": { "configs": [] } })).await;
    on("two", "v2").await;

    // In one place they have to agree.
    let mut torn = of_version("global-placement", Some("v2"), "global-config");
    torn["configs"] = json!([config("addontemplates", "one")]);
    field.list(std::slice::from_ref(&torn)).await;
    let problem = "the template one is version v1, and version v2 is asked for in the same place: keep one of them";
    field.reports(&format!("default/global-placement: {problem}")).await;
    on("two", "v2").await;
    torn["addonTemplate"]["installVersion"] = json!("v1");
    field.list(&[torn]).await;
    on("one", "v1").await;
    field.hub.stop().await;
}

async fn a_version_and_a_configuration_move_as_one(world: World) {
    let clusters = ["c1", "c2", "c3", "c4"];
    let field = Field::with_versions(world, "v1,v2", &clusters).await;
    let list = async |version, settings| {
        let mut placement = of_version("global-placement", Some(version), settings);
        placement["rolloutStrategy"] = super::rolling("1");
        field.list(&[placement]).await;
    };
    list("v1", "global-config").await;
    field.says("global-placement", "False/Succeed: 4/4 install completed with no errors.").await;
    field.silence(&clusters);
    list("v2", "canary-config").await;
    field.says("global-placement", "True/Upgrading: 1/4 upgrading...").await;
    let mut sets = Vec::new();
    for cluster in clusters {
        let addon = field.on(cluster).get(ADDON).await.expect("the add-on is there");
        let status = addon.status.clone().expect("it has a status");
        let version = status.wanted_version.map(|version| version.to_string()).unwrap_or_default();
        sets.push((version, status.config_references[0].name.clone().unwrap_or_default()));
    }
    sets.sort();
    let old = ("v1".to_owned(), "global-config".to_owned());
    assert_eq!(sets, [old.clone(), old.clone(), old, ("v2".to_owned(), "canary-config".to_owned())]);
    field.please(&clusters);
    for cluster in clusters {
        field.has(cluster, by_placement("v2", Some("v1"), "v2", DONE)).await;
    }
    field.hub.stop().await;
}

async fn a_hub_configuration_asks_for_a_version_and_says_which_there_are(world: World) {
    let field = Field::with_versions(world, "v1,v2", &["c1"]).await;
    field.hub_config("hub-config", "v1").await;
    field.list(&[super::placement("global-placement", "hub-config", update_all())]).await;
    // The words are those of configurations.
    let done = "False/InstallSucceed: install completed with no errors.";
    field.has("c1", by_default(None, "v1", done)).await;
    let configs = Api::<AddOnHubConfig>::all(field.world.client());
    let offers = async |expected: &[&str]| {
        wait::until(&configs, "hub-config", &format!("it offers {expected:?}"), |config| {
            let offered = config.status.clone().unwrap_or_default().supported_versions;
            json!(offered) == json!(expected)
        })
        .await
    };
    let config = offers(&["v1", "v2"]).await;

    // It goes before the version of the placement's add-ons.
    let mut both = super::placement("global-placement", "hub-config", update_all());
    both["addonTemplate"] = json!({ "installVersion": "v2" });
    field.list(&[both]).await;
    change(&configs, "hub-config", json!({ "spec": { "desiredVersion": "v3" } })).await;
    let problem = "version v3 is none of those that there are: v1, v2";
    field.reports(&format!("default/global-placement: {problem}")).await;
    let same = configs.get("hub-config").await.expect("it is there").status;
    assert_eq!(same, config.status, "what there is does not depend on what is asked for");
    field.annotate(SUPPORTED_VERSIONS_ANNOTATION, Some("v1,v2,v3")).await;
    offers(&["v1", "v2", "v3"]).await;
    wait::until(&field.on("c1"), ADDON, "it runs v3", |addon| {
        addon.status.as_ref().and_then(|status| status.current_version.as_ref()).is_some_and(|it| it.as_str() == "v3")
    })
    .await;

    // Another add-on that refers to it, and can only do some of them.
    let mut other = objects::addon("other").annotated(SUPPORTED_VERSIONS_ANNOTATION, "v3,v4");
    other.spec.default_configs =
        vec![serde_json::from_value(super::config("addonhubconfigs", "hub-config")).expect("a reference")];
    create(&field.addons(), other).await;
    offers(&["v3"]).await;
    field.hub.stop().await;
}
