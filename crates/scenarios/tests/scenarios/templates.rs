//! Add-ons that are made from templates: what is deployed, on a real server, under the hub's own role.

use std::time::Duration;

use drover_api::{
    addon::{AddOnTemplate, ClusterManagementAddOn, HealthCheckMode, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    names::{
        ADDON_NAME_LABEL, ADDON_NAMESPACE_LABEL, AVAILABLE, CONFIG_SPEC_HASH_ANNOTATION, HOLDS_ANNOTATION,
        MANIFEST_APPLIED, PROGRESSING, SET_ANNOTATION,
    },
    work::ManifestWork,
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::ManualClock;
use drover_testkit::{
    World, objects,
    play::{Behaviour, Crowd},
    wait,
};
use k8s_openapi::{
    api::{core::v1::ConfigMap, rbac::v1::ClusterRole},
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery,
};
use serde_json::{Value, json};

use crate::{
    documents::{read, repository},
    running::{as_hub, change, create, hub_clock, options, reach},
};

drover_testkit::scenarios! {
    Own {
        the_example_deploys_what_is_expected_and_a_server_stores_it,
        what_can_not_be_made_is_said_and_nothing_of_it_is_deployed,
        a_template_that_is_missing_or_another_add_ons_is_told_where_it_is_asked_for,
        an_add_on_is_as_well_as_what_it_deploys_and_as_its_cluster_is_heard_of,
        works_go_with_their_add_on,
        what_somebody_takes_from_a_work_is_put_back_and_what_is_added_stays,
        an_object_that_moves_to_another_work_is_held_until_it_is_applied_there,
        a_template_that_is_too_large_is_refused_or_told,
        a_work_that_the_server_does_not_take_is_told_and_tried_again,
    }
}

/// The add-on of the example.
const ADDON: &str = "hello-template";

/// A hub that looks after add-ons only, with a crowd of clusters whose agents answer.
struct Site {
    world: World,
    /// The hub's own client.
    client: Client,
    hub: Hub,
    clock: ManualClock,
    crowd: Crowd,
}

impl Site {
    async fn new(world: World, clusters: &[&str]) -> Self {
        let options = Options { controllers: "addon".parse().expect("a controller"), ..options() };
        let clock = hub_clock();
        let client = as_hub(&world).await;
        let hub = Hub::start(client.clone(), &options, clock.clock()).await.expect("the hub starts");
        let crowd = Crowd::gather(world.client(), ADDON);
        let site = Self { world, client, hub, clock, crowd };
        for cluster in clusters {
            site.cluster(cluster).await;
        }
        site
    }

    /// Makes a cluster that can be reached.
    async fn cluster(&self, name: &str) {
        self.world.namespace_named(name).await;
        create(&Api::all(self.world.client()), objects::cluster(name)).await;
        reach(&self.world, name, "True").await;
    }

    /// Applies files of the template example, as people do.
    async fn apply(&self, files: &[&str]) {
        for file in files {
            let path = repository().join("examples/template").join(file);
            let path = path.to_str().expect("a path is text");
            self.world.kubectl(["apply", "--server-side", "-f", path]).await.success();
        }
    }

    /// Makes the template of the add-on, or changes it.
    async fn template(&self, spec: &Value) {
        let templates = Api::<AddOnTemplate>::all(self.world.client());
        if templates.get_opt("agent").await.expect("templates can be read").is_some() {
            change(&templates, "agent", json!({ "spec": spec })).await;
        } else {
            create(&templates, AddOnTemplate::new("agent", parsed(spec))).await;
        }
    }

    /// Makes the add-on, with a default template, and installs it on a cluster.
    async fn install(&self, template: &str, cluster: &str) {
        let spec = json!({ "defaultConfigs": [config(template)] });
        create(&Api::all(self.world.client()), ClusterManagementAddOn::new(ADDON, parsed(&spec))).await;
        create(&self.on(cluster), ManagedClusterAddOn::new(ADDON, ManagedClusterAddOnSpec::default())).await;
    }

    fn on(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.world.client(), cluster)
    }

    fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.world.client(), cluster)
    }

    /// Waits until a condition of the add-on on a cluster has this status and reason.
    async fn says(&self, cluster: &str, type_: &str, status: &str, reason: &str) -> ManagedClusterAddOn {
        let what = format!("{type_} on {cluster} is {status}/{reason}");
        wait::until(&self.on(cluster), ADDON, &what, |addon| {
            find(addon, type_).is_some_and(|said| said.status == status && said.reason == reason)
        })
        .await
    }

    /// Waits until the add-on is like this, while time passes for the hub: nobody tells when a write was refused, after which it rests.
    async fn in_time(&self, what: &str, is_so: impl Fn(&ManagedClusterAddOn) -> bool) {
        wait::attempt(what, async || {
            self.clock.advance(Duration::from_secs(1));
            let addon = self.on("one").get(ADDON).await.expect("it is there");
            if is_so(&addon) { Ok(()) } else { Err(format!("{:?}", addon.status)) }
        })
        .await;
    }

    /// Waits until the hub has looked at the add-on on a cluster, more than once: it puts back the owner that is taken from it.
    async fn is_looked_at(&self, cluster: &str) {
        for _ in 0..2 {
            change(&self.on(cluster), ADDON, json!({ "metadata": { "ownerReferences": null } })).await;
            let is_back = |addon: &ManagedClusterAddOn| !addon.owner_references().is_empty();
            wait::until(&self.on(cluster), ADDON, "its owner is back", is_back).await;
        }
    }

    /// Waits until the first work of the add-on on a cluster is like this.
    async fn work(&self, cluster: &str, what: &str, is_so: impl Fn(&ManifestWork) -> bool) -> ManifestWork {
        wait::until(&self.works(cluster), &format!("addon-{ADDON}-deploy-0"), what, is_so).await
    }
}

/// A reference to a template.
fn config(template: &str) -> Value {
    json!({ "group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": template })
}

fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("a valid spec")
}

/// A template of the add-on with these manifests.
fn of(manifests: &[Value]) -> Value {
    json!({ "addonName": ADDON, "agentSpec": { "workload": { "manifests": manifests } } })
}

/// A Deployment, as something that says how it is.
fn deployment() -> Value {
    let pod = json!({
        "metadata": { "labels": { "app": "agent" } },
        "spec": { "containers": [{ "name": "agent", "image": "agent:1" }] },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent", "namespace": "agents" },
        "spec": { "selector": { "matchLabels": { "app": "agent" } }, "template": pod },
    })
}

fn find<'a>(addon: &'a ManagedClusterAddOn, type_: &str) -> Option<&'a Condition> {
    addon.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether everything that is expected is there. Lists are as long as expected.
fn contains(there: &Value, expected: &Value) -> bool {
    match (there, expected) {
        (Value::Object(there), Value::Object(expected)) => {
            expected.iter().all(|(key, expected)| there.get(key).is_some_and(|there| contains(there, expected)))
        }
        (Value::Array(there), Value::Array(expected)) => {
            there.len() == expected.len()
                && there.iter().zip(expected).all(|(there, expected)| contains(there, expected))
        }
        (there, expected) => there == expected,
    }
}

async fn the_example_deploys_what_is_expected_and_a_server_stores_it(world: World) {
    let site = Site::new(world, &["cluster1"]).await;
    for namespace in ["open-cluster-management", "open-cluster-management-agent-addon"] {
        site.world.namespace_named(namespace).await;
    }
    site.apply(&["roles.yaml", "addon-template.yaml", "addon-deployment-config.yaml"]).await;
    site.apply(&["cluster-management-addon.yaml", "managed-cluster-addon.yaml"]).await;

    let addon = site.says("cluster1", PROGRESSING, "False", "InstallSucceed").await;
    let status = addon.status.as_ref().expect("it has a status");
    for (type_, reason) in [(AVAILABLE, "ProbeAvailable"), (MANIFEST_APPLIED, "AddonManifestApplied")] {
        site.says("cluster1", type_, "True", reason).await;
    }
    assert_eq!(status.namespace.as_deref(), Some("open-cluster-management-agent-addon"));
    assert_eq!(status.supported_configs.len(), 2);
    let mode = status.health_check.as_ref().and_then(|check| check.mode);
    assert_eq!(mode, Some(HealthCheckMode::Customized));
    assert_eq!(status.registrations.len(), 2);

    // The cluster is this server, so what its agent would apply can be looked at as a server stores it.
    let work = site.work("cluster1", "it is there", |_| true).await;
    let client = site.world.client();
    let deployment = apply(&client, &work.spec.manifests()[0]).await;
    let expected: Value = read(&repository().join("examples/template/expected/agent-deployment.yaml")).remove(0);
    let stored = serde_json::to_value(&deployment).expect("an object is JSON");
    assert!(contains(&stored, &expected), "{stored:#}\n\nlacks something of\n\n{expected:#}");
    assert_eq!(deployment.annotations()[SET_ANNOTATION].len(), 16);
    site.hub.stop().await;
}

/// Applies a manifest to the server, and returns what that has made of it.
async fn apply(client: &kube::Client, manifest: &Value) -> DynamicObject {
    let object: DynamicObject = serde_json::from_value(manifest.clone()).expect("a manifest is an object");
    let kind = object.types.as_ref().and_then(|types| kube::core::GroupVersionKind::try_from(types).ok());
    let (resource, _) = discovery::pinned_kind(client, &kind.expect("it has a kind")).await.expect("it is served");
    let namespace = object.namespace().expect("it has a namespace");
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    let params = PatchParams::apply("scenario").force();
    api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await.expect("it can be applied")
}

async fn what_can_not_be_made_is_said_and_nothing_of_it_is_deployed(world: World) {
    let site = Site::new(world, &["one"]).await;
    let mut asking = objects::config_map("asking");
    asking["data"] = json!({ "left": "{{ $labels.x }}", "filled": "{{CLUSTER_NAME}}", "not": "{{NOWHERE}}" });
    let mut large = objects::config_map("large");
    large["data"] = json!({ "text": "x".repeat(420_000) });
    let hook = json!({
        "apiVersion": "batch/v1", "kind": "Job", "spec": {},
        "metadata": { "name": "hook", "annotations": { "addon.open-cluster-management.io/addon-pre-delete": "" } },
    });
    let mut hosted = objects::config_map("hosted");
    hosted["metadata"]["annotations"] =
        json!({ "addon.open-cluster-management.io/hosted-manifest-location": "hosting" });
    // What is right beside it is not deployed either.
    let beside = |wrong: Value| of(&[objects::config_map("right"), wrong]);
    let rows = [
        (beside(asking), ["agent", "ConfigMap default/asking", "NOWHERE"]),
        (beside(large), ["agent", "ConfigMap default/large", "409600"]),
        (beside(hook), ["agent", "Job hook", "not supported"]),
        (beside(hosted), ["agent", "ConfigMap default/hosted", "not supported"]),
        (beside(objects::config_map("right")), ["agent", "ConfigMap default/right", "twice"]),
    ];
    site.template(&rows[0].0).await;
    site.install("agent", "one").await;
    for (template, words) in &rows {
        site.template(template).await;
        let what = format!("it says {words:?}");
        let addon = wait::until(&site.on("one"), ADDON, &what, |addon| {
            let said = find(addon, MANIFEST_APPLIED).filter(|said| said.status == "False");
            said.is_some_and(|said| words.iter().all(|word| said.message.contains(word)))
        })
        .await;
        assert_eq!(find(&addon, MANIFEST_APPLIED).map(|said| said.reason.as_str()), Some("ManifestWorkApplyFailed"));
        let works = site.works("one").list(&ListParams::default()).await.expect("works can be listed");
        assert!(works.items.is_empty(), "{words:?}: {works:?}");
    }

    site.template(&of(&[objects::config_map("right")])).await;
    site.says("one", MANIFEST_APPLIED, "True", "AddonManifestApplied").await;
    site.hub.stop().await;
}

async fn a_template_that_is_missing_or_another_add_ons_is_told_where_it_is_asked_for(world: World) {
    let site = Site::new(world, &["one"]).await;
    site.install("agent", "one").await;
    let tells = async |words: &str| {
        wait::until(&site.on("one"), ADDON, &format!("it tells {words:?}"), |addon| {
            find(addon, PROGRESSING).is_some_and(|said| said.message.contains(words))
        })
        .await
    };
    tells("the config addontemplates agent does not exist").await;
    let mut foreign = of(&[deployment()]);
    foreign["addonName"] = json!("another");
    site.template(&foreign).await;
    tells("the template agent belongs to the add-on another").await;
    let works = site.works("one").list(&ListParams::default()).await.expect("works can be listed");
    assert!(works.items.is_empty(), "{works:?}");
    site.template(&of(&[deployment()])).await;
    site.says("one", PROGRESSING, "False", "InstallSucceed").await;
    // What is asked for on one cluster alone is told there, and the cluster keeps what it has.
    let own = json!({ "spec": { "configs": [config("nowhere")] } });
    change(&site.on("one"), ADDON, own).await;
    tells("the config addontemplates nowhere does not exist").await;
    site.work("one", "it is still there", |_| true).await;
    site.hub.stop().await;
}

async fn an_add_on_is_as_well_as_what_it_deploys_and_as_its_cluster_is_heard_of(world: World) {
    let site = Site::new(world, &["one"]).await;
    site.template(&of(&[deployment()])).await;
    site.install("agent", "one").await;
    site.says("one", AVAILABLE, "True", "ProbeAvailable").await;
    site.crowd.behave("one", Behaviour::Down);
    let ill = site.says("one", AVAILABLE, "False", "ProbeUnavailable").await;
    let message = &find(&ill, AVAILABLE).expect("it was waited for").message;
    assert!(message.contains("Deployment agents/agent"), "{message}");
    site.crowd.behave("one", Behaviour::Well);
    site.says("one", AVAILABLE, "True", "ProbeAvailable").await;
    reach(&site.world, "one", "Unknown").await;
    let lost = site.says("one", AVAILABLE, "Unknown", "ManagedClusterLeaseUpdateStopped").await;
    assert_eq!(find(&lost, AVAILABLE).map(|said| said.message.as_str()), Some("as the scenario says"));
    reach(&site.world, "one", "True").await;
    site.says("one", AVAILABLE, "True", "ProbeAvailable").await;

    // With a lease, the cluster's own agent says how the add-on is, and nobody else.
    let mut by_lease = of(&[deployment()]);
    by_lease["healthCheck"] = json!({ "mode": "Lease" });
    site.template(&by_lease).await;
    let addon = wait::until(&site.on("one"), ADDON, "its health is found out by a lease", |addon| {
        let check = addon.status.as_ref().and_then(|status| status.health_check.as_ref());
        check.and_then(|check| check.mode) == Some(HealthCheckMode::Lease)
    })
    .await;
    let mut conditions = addon.status.map(|status| status.conditions).expect("it has a status");
    let said = conditions.iter_mut().find(|said| said.type_ == AVAILABLE).expect("it says how it is");
    (said.status, said.reason) = ("False".to_owned(), "ManagedClusterAddOnLeaseUpdateStopped".to_owned());
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    site.on("one").patch_status(ADDON, &PatchParams::default(), &patch).await.expect("an agent can report");
    site.is_looked_at("one").await;
    site.says("one", AVAILABLE, "False", "ManagedClusterAddOnLeaseUpdateStopped").await;
    site.hub.stop().await;
}

async fn what_somebody_takes_from_a_work_is_put_back_and_what_is_added_stays(world: World) {
    let site = Site::new(world, &["one"]).await;
    site.template(&of(&[deployment()])).await;
    site.install("agent", "one").await;
    site.says("one", PROGRESSING, "False", "InstallSucceed").await;
    let made = site.work("one", "it is there", |_| true).await;
    let name = made.name_any();
    let added = json!({ "labels": { "team": "a" }, "annotations": { "note": "b" } });
    change(&site.works("one"), &name, json!({ "metadata": added })).await;
    let config_map = ConfigMap {
        metadata: ObjectMeta { name: Some("theirs".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let theirs = create(&Api::namespaced(site.world.client(), "one"), config_map).await.uid();
    let theirs =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": theirs, "controller": true });
    // Without the first, and with the second, the hub does not see it any more among those of the add-on.
    let rows = [
        json!({ "labels": { ADDON_NAME_LABEL: null } }),
        json!({ "labels": { ADDON_NAMESPACE_LABEL: "two" } }),
        json!({ "labels": { ADDON_NAME_LABEL: "another" } }),
        json!({ "annotations": { SET_ANNOTATION: null, CONFIG_SPEC_HASH_ANNOTATION: "{}" } }),
        json!({ "ownerReferences": [theirs] }),
    ];
    for taken in rows {
        change(&site.works("one"), &name, json!({ "metadata": taken })).await;
        let back = site
            .work("one", &format!("it is as it was made before {taken}"), |work| {
                let marks = |work: &ManifestWork| {
                    let (mut labels, mut annotations) = (work.labels().clone(), work.annotations().clone());
                    labels.remove("team");
                    annotations.remove("note");
                    (labels, annotations)
                };
                let ours = &made.owner_references()[0].uid;
                marks(work) == marks(&made) && work.owner_references().iter().any(|owner| owner.uid == *ours)
            })
            .await;
        assert_eq!((&back.metadata.uid, &back.spec), (&made.metadata.uid, &made.spec), "it is the same");
        assert!(back.labels().contains_key("team") && back.annotations().contains_key("note"), "what was added stays");
    }
    let last = site.work("one", "it is there", |_| true).await;
    assert_eq!(last.owner_references().len(), 2, "another owner stays, and controls it");
    site.is_looked_at("one").await;
    let now = site.work("one", "it is there", |_| true).await;
    assert_eq!(now.resource_version(), last.resource_version(), "it is not written again and again");
    site.hub.stop().await;
}

/// A ConfigMap of about so many bytes.
fn large(name: &str, size: usize) -> Value {
    let mut manifest = objects::config_map(name);
    manifest["data"] = json!({ "text": "x".repeat(size) });
    manifest
}

/// The names of the objects of a work.
fn names(work: &ManifestWork) -> Vec<&str> {
    work.spec.manifests().iter().filter_map(|manifest| manifest["metadata"]["name"].as_str()).collect()
}

async fn an_object_that_moves_to_another_work_is_held_until_it_is_applied_there(world: World) {
    let site = Site::new(world, &["one"]).await;
    let [a, b, c] = ["a", "b", "c"].map(|name| large(name, 190_000));
    site.template(&of(&[a.clone(), b.clone(), c.clone(), deployment()])).await;
    site.install("agent", "one").await;
    site.says("one", PROGRESSING, "False", "InstallSucceed").await;
    let second = async |what: &str, wanted: &[&str]| {
        let name = format!("addon-{ADDON}-deploy-1");
        wait::until(&site.works("one"), &name, what, |work| names(work) == wanted).await
    };
    site.work("one", "it has the first", |work| names(work) == ["a", "b"]).await;
    second("it has the rest", &["c", "agent"]).await;

    site.crowd.behave("one", Behaviour::Silent);
    site.template(&of(&[large("new", 100_000), a, b, c, deployment()])).await;
    second("it gains an object", &["b", "c", "agent"]).await;
    let holding = site.work("one", "it holds what the other gains", |work| names(work) == ["new", "a", "b"]).await;
    assert!(holding.annotations().contains_key(HOLDS_ANNOTATION));

    site.crowd.behave("one", Behaviour::Well);
    let last = site.work("one", "it lets go of it", |work| names(work) == ["new", "a"]).await;
    assert!(!last.annotations().contains_key(HOLDS_ANNOTATION));
    site.says("one", PROGRESSING, "False", "UpgradeSucceed").await;

    // What is left of a template that shrinks is in one work, and the other one goes.
    site.template(&of(&[deployment()])).await;
    site.work("one", "it has what is left", |work| names(work) == ["agent"]).await;
    wait::gone(&site.works("one"), &format!("addon-{ADDON}-deploy-1")).await;
    site.hub.stop().await;
}

async fn works_go_with_their_add_on(world: World) {
    let site = Site::new(world, &["one"]).await;
    site.template(&of(&[deployment()])).await;
    site.install("agent", "one").await;
    let work = site.work("one", "it is there", |_| true).await;
    site.on("one").delete(ADDON, &DeleteParams::default()).await.expect("an add-on can be deleted");
    wait::gone(&site.works("one"), &work.name_any()).await;
    site.hub.stop().await;
}

async fn a_template_that_is_too_large_is_refused_or_told(world: World) {
    let site = Site::new(world, &["one"]).await;
    let with_quotes = |count: usize| {
        let manifests = ["x", "y", "z"].map(|name| {
            let mut manifest = objects::config_map(name);
            manifest["data"] = json!({ "text": "\"".repeat(count) });
            manifest
        });
        of(&manifests)
    };
    let templates = Api::<AddOnTemplate>::all(site.world.client());
    let refused =
        templates.create(&PostParams::default(), &AddOnTemplate::new("agent", parsed(&with_quotes(600_000)))).await;
    assert!(refused.expect_err("no server takes it").to_string().contains("too large"));

    // This one is taken, but what is kept of it, a text in which every quote is escaped once more, is not.
    site.template(&with_quotes(140_000)).await;
    site.install("agent", "one").await;
    site.in_time("it says why it is not rolled out", |addon| {
        find(addon, PROGRESSING).is_some_and(|said| said.message.contains("can not be written down"))
    })
    .await;
    site.template(&with_quotes(1)).await;
    site.in_time("it is installed", |addon| {
        find(addon, PROGRESSING).is_some_and(|said| said.reason == "InstallSucceed")
    })
    .await;

    // What is no object at all is refused by its name.
    let mut nothing = objects::config_map("nothing");
    nothing.as_object_mut().expect("an object").remove("kind");
    let template = AddOnTemplate::new("other", parsed(&of(&[nothing])));
    let refused = templates.create(&PostParams::default(), &template).await.expect_err("it has no kind");
    assert!(refused.to_string().contains("kind"), "{refused}");
    site.hub.stop().await;
}

async fn a_work_that_the_server_does_not_take_is_told_and_tried_again(world: World) {
    let site = Site::new(world, &["one"]).await;
    let account = json!({ "namespace": "agents", "name": "deployer" });
    let mut template = of(&[deployment()]);
    template["agentSpec"]["executor"] = json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account } });
    let mut work = objects::work("one", "attempt", [deployment()]);
    work.spec.executor = parsed(&template["agentSpec"]["executor"]);
    let try_it = PostParams { dry_run: true, ..PostParams::default() };
    wait::attempt("the policy about executors is in force", async || {
        match Api::<ManifestWork>::namespaced(site.client.clone(), "one").create(&try_it, &work).await {
            Err(_) => Ok(()),
            Ok(_) => Err("the hub may act as anybody".to_owned()),
        }
    })
    .await;
    site.template(&template).await;
    site.install("agent", "one").await;
    site.in_time("it says that the work was not taken, and why", |addon| {
        find(addon, MANIFEST_APPLIED).is_some_and(|said| {
            said.reason == "ManifestWorkApplyFailed" && said.message.contains("addon-hello-template-deploy-0")
        })
    })
    .await;

    // An administrator lets the hub act as that account. There may be no controller here that collects the rules of labelled roles.
    let rules = json!([{ "apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"],
        "resourceNames": ["system:serviceaccount:agents:deployer"], "verbs": ["execute-as"] }]);
    let labels = json!({ "drover.dev/hub-executes-as": "true" });
    let role = json!({ "metadata": { "name": "acts-as-deployer", "labels": labels }, "rules": rules });
    create(&Api::all(site.world.client()), parsed::<ClusterRole>(&role)).await;
    change(&Api::<ClusterRole>::all(site.world.client()), "drover-hub-executors", json!({ "rules": rules })).await;
    site.in_time("it is installed", |addon| {
        find(addon, PROGRESSING).is_some_and(|said| said.reason == "InstallSucceed")
    })
    .await;
    site.says("one", MANIFEST_APPLIED, "True", "AddonManifestApplied").await;

    // On another cluster than its own, an add-on that is made from a template can not run.
    let hosted =
        json!({ "metadata": { "annotations": { "addon.open-cluster-management.io/hosting-cluster-name": "two" } } });
    change(&site.on("one"), ADDON, hosted).await;
    let addon = site.says("one", MANIFEST_APPLIED, "False", "ManifestWorkApplyFailed").await;
    let said = &find(&addon, MANIFEST_APPLIED).expect("it was waited for").message;
    assert!(said.contains("runs on its own cluster"), "{said}");
    site.work("one", "it stays", |_| true).await;
    site.hub.stop().await;
}
