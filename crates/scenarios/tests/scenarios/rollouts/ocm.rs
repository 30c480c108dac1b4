//! A server whose definitions are OCM's own: the hub follows OCM's strategies there, in OCM's words, and fills in only OCM's fields.

#[path = "../../../../api/tests/api/ocm/definitions.rs"]
mod definitions;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use drover_api::{
    addon::{AddOnTemplate, ManagedClusterAddOn},
    drover::AddOnRollout,
    names::CONFIGURED,
};
use drover_hub::{Dialect, detect_dialect};
use drover_testkit::{World, play::Behaviour, wait};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use self::definitions::ocm_definitions;
use super::{ADDON, Field, config, killed::writes_a_day_later, said};
use crate::running::change;

drover_testkit::scenarios! {
    Bare {
        an_add_on_is_installed_and_upgraded_in_the_words_of_ocm,
        a_failure_is_told_in_the_words_of_ocm_and_tolerated_as_the_strategy_says,
        what_drover_s_definitions_refuse_is_told_and_moves_nobody,
        the_command_says_what_ocm_s_definitions_lack,
        a_template_is_deployed_and_registered_as_ocm_s_definitions_have_it,
    }
}

/// Gives a server OCM's definitions, and those of ours that do not concern OCM, as somebody does who has OCM's hub.
async fn define(world: &World) {
    // Of two definitions of a kind the later one has one more version.
    let mut definitions: BTreeMap<_, CustomResourceDefinition> = BTreeMap::new();
    for definition in ocm_definitions() {
        let known = definitions.get(&definition.metadata.name).map_or(0, |known| known.spec.versions.len());
        if definition.spec.versions.len() > known {
            definitions.insert(definition.metadata.name.clone(), definition);
        }
    }
    let apply = ["apply", "--server-side", "-f", "-"];
    let definitions: Vec<_> = definitions.into_values().collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": definitions }).to_string();
    world.kubectl_with_input(apply, list.as_bytes()).await.success();
    let own = drover(&["crds", "--group", "drover.dev"]).output().expect("drover can be run");
    world.kubectl_with_input(apply, &own.stdout).await.success();
    world.kubectl(["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await.success();
}

fn drover(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drover-under-test"));
    command.args(arguments);
    command
}

impl Field {
    /// A hub on a server with OCM's definitions, which it has recognised.
    async fn of_ocm(world: World) -> Self {
        define(&world).await;
        let dialect = detect_dialect(world.client()).await.expect("definitions can be read");
        assert_eq!(dialect, Dialect::Ocm);
        Self::speaking(world, dialect).await
    }

    /// The names of the fields in the status of an object, as the server has it.
    async fn fields_of(&self, kind: &str, namespace: Option<&str>) -> BTreeSet<String> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("addon.open-cluster-management.io", "v1alpha1", kind));
        let client = self.world.client();
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &kind),
            None => Api::all_with(client, &kind),
        };
        let object = api.get(ADDON).await.expect("it is there");
        let status = object.data["status"].as_object().expect("it has a status");
        status.keys().cloned().collect()
    }
}

fn placed(name: &str, settings: &str, strategy: &Value) -> Value {
    let configs = [config("addondeploymentconfigs", settings)];
    json!({ "name": name, "namespace": "default", "configs": configs, "rolloutStrategy": strategy })
}

fn progressive(settings: &Value) -> Value {
    json!({ "type": "Progressive", "progressive": settings })
}

/// What OCM's managers say of a placement.
fn counted(total: usize, given: usize, rest: &str) -> String {
    format!("selected clusters {total}. configured addons {given}/{total} {rest}")
}

async fn an_add_on_is_installed_and_upgraded_in_the_words_of_ocm(world: World) {
    let field = Field::of_ocm(world).await;
    let clusters = ["a1", "a2", "a3", "a4", "a5"];
    field.clusters(&clusters).await;
    field.behave(&clusters, Behaviour::Silent);
    field.settings("settings", "first").await;
    field.select("aws", &clusters).await;
    let strategy = progressive(&json!({ "maxConcurrency": 2 }));
    field.list(&[placed("aws", "settings", &strategy)]).await;

    let progressing = |given| format!("True/Progressing: {}", counted(5, given, "progressing..., 0 failed 0 timeout."));
    let completed = format!("False/Completed: {}", counted(5, 5, "completed with no errors, 0 failed 0 timeout."));
    field.says("aws", &progressing(2)).await;
    let on_cluster = field.says_on("a1", "True/Progressing: progressing... work is not ready").await;
    assert_eq!(configured(&on_cluster), Some("ConfigurationsConfigured"));
    field.says_on("a2", "True/Progressing: progressing... work is not ready").await;
    for waits in ["a3", "a4", "a5"] {
        // It is made with the others, and each create is a request of its own.
        let on_cluster = wait::until(&field.on(waits), ADDON, "it is there", |_| true).await;
        assert_eq!(on_cluster.status.map(|status| status.config_references.len()).unwrap_or_default(), 0);
    }
    field.behave(&clusters, Behaviour::Well);
    let addon = field.says("aws", &completed).await;
    field.says_on("a5", "False/Completed: completed with no errors.").await;
    let first = hashes_of(&addon);
    assert_eq!((&first[0], &first[1]), (&first[1], &first[2]));

    // Changed in place, in the order of names.
    field.behave(&clusters, Behaviour::Silent);
    field.settings("settings", "second").await;
    let addon = field.says("aws", &progressing(2)).await;
    let second = hashes_of(&addon);
    assert_ne!(second[0], first[0]);
    assert_eq!(second[1..], first[1..]);
    let is_at = async |cluster: &str| {
        let status = field.on(cluster).get(ADDON).await.expect("it is there").status.expect("it was given something");
        status.config_references[0].desired_config.as_ref().expect("it has a hash").spec_hash.to_string()
    };
    assert_eq!((is_at("a1").await, is_at("a2").await), (second[0].clone(), second[0].clone()));
    assert_eq!(is_at("a3").await, first[0]);
    field.behave(&clusters, Behaviour::Well);
    let addon = field.says("aws", &completed).await;
    assert_eq!(hashes_of(&addon), [second[0].as_str(); 3]);

    assert_eq!(field.fields_of("ClusterManagementAddOn", None).await, names(&["installProgressions"]));
    assert_eq!(field.fields_of("ManagedClusterAddOn", Some("a1")).await, names(&["conditions", "configReferences"]));
    assert_eq!(writes_a_day_later(field).await, [""; 0], "what the server drops is not written again and again");
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

fn configured(addon: &ManagedClusterAddOn) -> Option<&str> {
    let conditions = &addon.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == CONFIGURED).map(|condition| condition.reason.as_str())
}

/// The hashes of what is desired, known to be good, and applied.
fn hashes_of(addon: &drover_api::addon::ClusterManagementAddOn) -> [String; 3] {
    let reference = &addon.status.as_ref().expect("it has a status").install_progressions[0].config_references[0];
    [&reference.desired_config, &reference.last_known_good_config, &reference.last_applied_config]
        .map(|config| config.as_ref().map(|config| config.spec_hash.to_string()).unwrap_or_default())
}

async fn a_failure_is_told_in_the_words_of_ocm_and_tolerated_as_the_strategy_says(world: World) {
    let field = Field::of_ocm(world).await;
    let clusters = ["a1", "a2", "a3"];
    field.clusters(&clusters).await;
    field.settings("settings", "first").await;
    field.select("aws", &clusters).await;
    let strategy = |failures: u32| {
        progressive(&json!({ "maxConcurrency": 1, "maxFailures": failures, "progressDeadline": "10m" }))
    };
    field.list(&[placed("aws", "settings", &strategy(0))]).await;
    field
        .says("aws", &format!("False/Completed: {}", counted(3, 3, "completed with no errors, 0 failed 0 timeout.")))
        .await;

    field.behave(&["a1"], Behaviour::Silent);
    field.settings("settings", "second").await;
    field.says("aws", &format!("True/Progressing: {}", counted(3, 1, "progressing..., 0 failed 0 timeout."))).await;
    field.pass(std::time::Duration::from_mins(11));
    let stopped = wait::until(&field.addons(), ADDON, "it has stopped", |addon| {
        said(addon, "aws").is_some_and(|words| words.contains("0 failed 1 timeout."))
    })
    .await;
    let words = said(&stopped, "aws").expect("it was waited for");
    assert!(words.starts_with("False/Failed: selected clusters 3. configured addons 1/3 stopped, "), "{words}");

    field.list(&[placed("aws", "settings", &strategy(1))]).await;
    field.says_on("a3", "False/Completed: completed with no errors.").await;
    field.behave(&["a1"], Behaviour::Well);
    field
        .says("aws", &format!("False/Completed: {}", counted(3, 3, "completed with no errors, 0 failed 0 timeout.")))
        .await;
    field.hub.stop().await;
}

async fn what_drover_s_definitions_refuse_is_told_and_moves_nobody(world: World) {
    let field = Field::of_ocm(world).await;
    field.clusters(&["b1", "s1"]).await;
    field.settings("settings", "first").await;
    field.select("broken", &["b1"]).await;
    field.select("sound", &["s1"]).await;
    let unreadable = progressive(&json!({ "progressDeadline": "1hanything" }));
    field
        .list(&[placed("broken", "settings", &unreadable), placed("sound", "settings", &progressive(&json!({})))])
        .await;
    field
        .says("sound", &format!("False/Completed: {}", counted(1, 1, "completed with no errors, 0 failed 0 timeout.")))
        .await;
    let told = wait::until(&field.addons(), ADDON, "the mistake is told", |addon| {
        said(addon, "broken").is_some_and(|words| words.contains("progressDeadline"))
    })
    .await;
    let words = said(&told, "broken").expect("it was waited for");
    assert!(
        words.starts_with("True/Progressing: selected clusters 1. configured addons 0/1 progressing..., "),
        "{words}"
    );
    assert!(words.contains("\"1hanything\" is not a duration"), "{words}");

    // A list without anything in it is taken for a mistake: nothing is uninstalled.
    let uid = field.on("s1").get(ADDON).await.expect("it is there").metadata.uid;
    change(&field.addons(), ADDON, json!({ "spec": { "installStrategy": { "placements": null } } })).await;
    wait::until(&field.rollouts(), ADDON, "the mistake is told", |rollout: &AddOnRollout| {
        let conditions = rollout.status.iter().flat_map(|status| &status.conditions);
        let mut refused = conditions.filter(|condition| condition.type_ == "Accepted" && condition.status == "False");
        refused.any(|condition| condition.message.contains("lists no placement"))
    })
    .await;
    assert_eq!(field.on("s1").get(ADDON).await.expect("it stays").metadata.uid, uid);

    // What is Drover's alone is refused by the server.
    let own = json!({ "spec": { "installStrategy": { "placements": [
        { "name": "sound", "namespace": "default", "rolloutStrategy": { "type": "RollingUpdate" } },
    ] } } });
    let refused = field.addons().patch(ADDON, &PatchParams::default(), &Patch::Merge(own)).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("Unsupported value: \"RollingUpdate\"")));
    field.hub.stop().await;
}

async fn a_template_is_deployed_and_registered_as_ocm_s_definitions_have_it(world: World) {
    let field = Field::of_ocm(world).await;
    field.clusters(&["a1", "a2"]).await;
    field.deploying("agent", "agent:1").await;
    let subject = json!({ "user": "user1", "groups": ["g1"], "organizationUnits": ["o1"] });
    let custom = json!({ "signerName": "example.com/signer", "subject": subject, "signingCA": { "name": "ca" } });
    let registration = json!([{ "type": "KubeClient" }, { "type": "CustomSigner", "customSigner": custom }]);
    let templates = Api::<AddOnTemplate>::all(field.world.client());
    change(&templates, "agent", json!({ "spec": { "registration": registration } })).await;
    field.select("aws", &["a1", "a2"]).await;
    let configs = [config("addontemplates", "agent")];
    let strategy = progressive(&json!({}));
    let entry = json!({ "name": "aws", "namespace": "default", "configs": configs, "rolloutStrategy": strategy });
    let supported = json!([{ "group": "addon.open-cluster-management.io", "resource": "addontemplates" }]);
    field.list(&[entry]).await;
    change(&field.addons(), ADDON, json!({ "spec": { "supportedConfigs": supported } })).await;
    field
        .says("aws", &format!("False/Completed: {}", counted(2, 2, "completed with no errors, 0 failed 0 timeout.")))
        .await;
    field.deploys("a1", "agent:1").await;
    let on_cluster = wait::until(&field.on("a1"), ADDON, "its agent can register", |addon: &ManagedClusterAddOn| {
        let conditions = addon.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|condition| condition.type_ == "RegistrationApplied" && condition.status == "True")
    })
    .await;
    let status = on_cluster.status.expect("it was waited for");
    let signers: Vec<_> = status.registrations.iter().map(|it| it.signer_name.clone().unwrap_or_default()).collect();
    assert_eq!(signers, ["kubernetes.io/kube-apiserver-client", "example.com/signer"]);
    assert_eq!(writes_a_day_later(field).await, [""; 0]);
}

async fn the_command_says_what_ocm_s_definitions_lack(world: World) {
    define(&world).await;
    world.namespace_named("open-cluster-management-hub").await;
    let mut command = drover(&["hub", "--health-listen", "127.0.0.1:0", "--controllers", "addon", "--kubeconfig"]);
    let mut hub =
        command.arg(world.kubeconfig()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it runs");
    let said = BufReader::new(hub.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let said = said.into_iter().find(|line| line.contains("reporting in OCM's words"));
    let _ = hub.kill();
    let _ = hub.wait();
    let said = said.expect("it says so");
    assert!(said.contains("the strategies UpdateAll, RollingUpdate and RollingUpdateWithCanary are off"), "{said}");
}
