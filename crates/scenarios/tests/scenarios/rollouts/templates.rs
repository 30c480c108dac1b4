//! Rollouts of add-ons that are made from templates: the hub makes their works, each from what its cluster was given.

use std::collections::BTreeMap;

use drover_api::{
    addon::{AddOnDeploymentConfig, AddOnTemplate, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::ManagedCluster,
    names::{AVAILABLE, GIVEN, PAUSE_ANNOTATION, SET_ANNOTATION},
    work::{ManifestWork, ManifestWorkSpec},
};
use drover_hub::{EPOCH, Hub, Options};
use drover_testkit::{World, objects, play::Behaviour, wait};
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};

use super::{ADDON, Field, behind, config, killed::writes_a_day_later, rolling, said, start, update_all};
use crate::{
    life::Life,
    running::{change, create, options},
};

drover_testkit::scenarios! {
    Own {
        a_new_template_over_half_of_the_fleet_moves_that_half,
        an_edit_in_place_reaches_nobody_before_its_turn_whatever_else_happens,
        what_never_gets_ready_proves_nothing_though_the_old_still_runs,
        a_daemon_set_or_stateful_set_that_is_stuck_proves_nothing,
        a_later_drover_writes_no_work_before_its_turn,
        a_later_drover_begins_nothing_of_what_an_earlier_one_was_rolling_out,
        what_is_set_on_one_cluster_is_rendered_there_alone,
        a_hub_that_is_killed_after_every_write_deploys_everything,
        a_hub_that_is_restarted_finds_its_works_as_they_are,
    }
}

/// What a template deploys: an agent of this image.
fn deploying(image: &str) -> Value {
    let pod = json!({
        "metadata": { "labels": { "app": "agent" } },
        "spec": { "containers": [{ "name": "agent", "image": image, "args": ["--cluster={{CLUSTER_NAME}}"] }] },
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "agent", "namespace": "open-cluster-management-agent-addon" },
        "spec": { "selector": { "matchLabels": { "app": "agent" } }, "template": pod },
    });
    json!({ "addonName": ADDON, "agentSpec": { "workload": { "manifests": [deployment] } } })
}

/// A placement with a template.
fn from_template(placement: &str, template: &str, strategy: &Value) -> Value {
    let configs = [config("addontemplates", template)];
    json!({ "name": placement, "namespace": "default", "configs": configs, "rolloutStrategy": strategy })
}

fn image_of(work: &ManifestWork) -> Option<&str> {
    work.spec.manifests().first()?.pointer("/spec/template/spec/containers/0/image")?.as_str()
}

impl Field {
    /// Makes a template that deploys an image, or changes it.
    pub(super) async fn deploying(&self, name: &str, image: &str) {
        let templates = Api::<AddOnTemplate>::all(self.world.client());
        if templates.get_opt(name).await.expect("templates can be read").is_some() {
            change(&templates, name, json!({ "spec": deploying(image) })).await;
        } else {
            let spec = serde_json::from_value(deploying(image)).expect("a valid template");
            create(&templates, AddOnTemplate::new(name, spec)).await;
        }
    }

    fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.world.client(), cluster)
    }

    /// The only work of a cluster.
    async fn work(&self, cluster: &str) -> ManifestWork {
        self.works(cluster).get(&work_name()).await.expect("the work is there")
    }

    /// Waits until the only work of a cluster deploys this image, and its agent has answered.
    pub(super) async fn deploys(&self, cluster: &str, image: &str) -> ManifestWork {
        let what = format!("{cluster} deploys {image}");
        wait::until(&self.works(cluster), &work_name(), &what, |work| image_of(work) == Some(image)).await
    }

    /// What the works of clusters apply, and what they are marked with.
    async fn applied(&self, clusters: &[&str]) -> BTreeMap<String, Applied> {
        let mut applied = BTreeMap::new();
        for cluster in clusters {
            let work = self.work(cluster).await;
            let (labels, annotations) = (work.labels().clone(), work.annotations().clone());
            applied.insert((*cluster).to_owned(), Applied { labels, annotations, spec: work.spec });
        }
        applied
    }

    /// Waits until c1 has answered to an image, and c2, which begins to answer only then, has proven it: so what c1 has answered was noted too.
    async fn outlasted(&self, image: &str) -> ManagedClusterAddOn {
        let answered = |work: &ManifestWork| {
            let current = work.metadata.generation;
            let conditions = work.status.iter().flat_map(|status| &status.conditions);
            image_of(work) == Some(image) && conditions.into_iter().all(|said| said.observed_generation == current)
        };
        wait::until(&self.works("c1"), &work_name(), "it is answered", answered).await;
        self.behave(&["c2"], Behaviour::Well);
        let given = self.on("c2").get(ADDON).await.expect("it is there");
        let set = given_set(&given).expect("it was given something").to_owned();
        wait::until(&self.on("c2"), ADDON, "it has proven the new set", |addon| {
            let conditions = addon.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|said| said.reason == "Proven" && said.message == set)
        })
        .await;
        self.is_noted("c1", "Moving").await
    }

    /// Ends the hub, and starts one that renders otherwise.
    async fn upgrade_hub(self) -> Self {
        self.hub.stop().await;
        let controllers = "addon".parse().expect("a controller");
        let options = Options { controllers, epoch: EPOCH + 1, ..options() };
        let hub = Hub::start(self.client.clone(), &options, self.clock.clock()).await.expect("the hub starts");
        Self { hub, ..self }
    }
}

/// What a work applies, and what it is marked with.
#[derive(Debug, PartialEq)]
struct Applied {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    spec: ManifestWorkSpec,
}

fn work_name() -> String {
    format!("addon-{ADDON}-deploy-0")
}

fn given_set(addon: &ManagedClusterAddOn) -> Option<&str> {
    let conditions = &addon.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == GIVEN).map(|condition| condition.message.as_str())
}

async fn a_new_template_over_half_of_the_fleet_moves_that_half(world: World) {
    let field = Field::new(world).await;
    let (half, rest) = (["a1", "a2"], ["b1", "b2"]);
    field.clusters(&half).await;
    field.clusters(&rest).await;
    field.deploying("agent-v1", "agent:1").await;
    field.deploying("agent-v2", "agent:2").await;
    field.select("aws-placement", &half).await;
    let defaults = json!({ "defaultConfigs": [config("addontemplates", "agent-v1")] });
    let spec = serde_json::from_value(defaults).expect("a valid add-on");
    create(&field.addons(), ClusterManagementAddOn::new(ADDON, spec)).await;
    for cluster in half.iter().chain(&rest) {
        field.install_by_hand(cluster).await;
        field.says_on(cluster, "False/InstallSucceed: install completed with no errors.").await;
        field.deploys(cluster, "agent:1").await;
    }
    let before = field.applied(&rest).await;

    field.list(&[from_template("aws-placement", "agent-v2", &update_all())]).await;

    // Nothing was ever applied by this placement before.
    field.says("aws-placement", "False/InstallSucceed: 2/2 install completed with no errors.").await;
    for cluster in half {
        field.deploys(cluster, "agent:2").await;
    }
    assert_eq!(field.applied(&rest).await, before);
    field.hub.stop().await;
}

async fn an_edit_in_place_reaches_nobody_before_its_turn_whatever_else_happens(world: World) {
    let field = Field::new(world).await;
    let gated = ["a1", "a2", "a3"];
    let list = [
        from_template("aws-placement", "agent", &behind("canary-placement", "100%")),
        from_template("canary-placement", "agent", &rolling("100%")),
    ];
    field.deploying("agent", "agent:1").await;
    field.with_canaries(&gated, &["c1"], &list).await;
    let before = field.applied(&gated).await;

    field.behave(&["c1"], Behaviour::Silent);
    field.deploying("agent", "agent:2").await;
    field.deploys("c1", "agent:2").await;
    // All are rendered anew by a hub that was started again, and by other events.
    let field = field.restart().await;
    let annotated = json!({ "metadata": { "annotations": { "addon.open-cluster-management.io/x": "y" } } });
    change(&Api::<ManagedCluster>::all(field.world.client()), "a2", annotated).await;
    wait::until(&field.on("a2"), ADDON, "it has the annotation", |addon| !addon.annotations().is_empty()).await;
    let removed = field.work("a1").await;
    field.works("a1").delete(&work_name(), &DeleteParams::default()).await.expect("a work can be deleted");
    wait::until(&field.works("a1"), &work_name(), "it is back", |work| work.uid() != removed.uid()).await;
    let tampered = json!({ "spec": { "workload": { "manifests": [objects::config_map("other")] } } });
    change(&field.works("a3"), &work_name(), tampered).await;
    field.deploys("a3", "agent:1").await;
    assert_eq!(field.applied(&gated).await, before);

    field.behave(&["c1"], Behaviour::Well);
    field.says("aws-placement", "False/UpgradeSucceed: 3/3 upgrade completed with no errors.").await;
    for cluster in gated {
        field.deploys(cluster, "agent:2").await;
    }
    field.hub.stop().await;
}

async fn what_never_gets_ready_proves_nothing_though_the_old_still_runs(world: World) {
    let field = Field::new(world).await;
    let list = [
        from_template("aws-placement", "agent", &behind("canary-placement", "100%")),
        from_template("canary-placement", "agent", &rolling("100%")),
    ];
    field.deploying("agent", "agent:1").await;
    field.with_canaries(&["a1"], &["c1", "c2"], &list).await;

    field.behave(&["c1"], Behaviour::Stuck);
    field.behave(&["c2"], Behaviour::Silent);
    field.deploying("agent", "agent:2").await;
    let stuck = field.outlasted("agent:2").await;
    let conditions = &stuck.status.as_ref().expect("it has a status").conditions;
    let available = conditions.iter().find(|condition| condition.type_ == AVAILABLE).expect("it says how it is");
    assert_eq!(available.status, "True", "the old one still runs");
    field.reports("default/aws-placement: 1 of 2 canaries is not done: c1").await;
    assert_eq!(image_of(&field.work("a1").await), Some("agent:1"));

    field.behave(&["c1"], Behaviour::Well);
    field.deploys("a1", "agent:2").await;
    field.hub.stop().await;
}

async fn a_daemon_set_or_stateful_set_that_is_stuck_proves_nothing(world: World) {
    let field = Field::new(world).await;
    let list = [
        from_template("aws-placement", "agent", &behind("canary-placement", "100%")),
        from_template("canary-placement", "agent", &rolling("100%")),
    ];
    field.deploying("agent", "agent:1").await;
    let of_kind = async |kind: &str, image: &str| {
        let mut spec = deploying(image);
        spec["agentSpec"]["workload"]["manifests"][0]["kind"] = json!(kind);
        change(&Api::<AddOnTemplate>::all(field.world.client()), "agent", json!({ "spec": spec })).await;
    };
    of_kind("DaemonSet", "agent:1").await;
    field.with_canaries(&["a1"], &["c1", "c2"], &list).await;
    for (kind, before, image) in [("DaemonSet", "agent:1", "agent:2"), ("StatefulSet", "agent:2", "agent:3")] {
        field.behave(&["c1"], Behaviour::Stuck);
        field.behave(&["c2"], Behaviour::Silent);
        of_kind(kind, image).await;
        field.outlasted(image).await;
        field.reports("default/aws-placement: 1 of 2 canaries is not done: c1").await;
        assert_eq!(image_of(&field.work("a1").await), Some(before), "{kind}");
        field.behave(&["c1"], Behaviour::Well);
        field.deploys("a1", image).await;
    }
    field.hub.stop().await;
}

async fn a_later_drover_begins_nothing_of_what_an_earlier_one_was_rolling_out(world: World) {
    let field = Field::new(world).await;
    let gated = ["a1", "a2", "a3"];
    let list = [
        from_template("aws-placement", "agent", &behind("canary-placement", "1")),
        from_template("canary-placement", "agent", &rolling("100%")),
    ];
    field.deploying("agent", "agent:1").await;
    field.with_canaries(&gated, &["c1"], &list).await;

    // One is on its way, stuck, though what it runs is well.
    field.behave(&gated, Behaviour::Stuck);
    field.deploying("agent", "agent:2").await;
    let moved = wait::attempt("one has begun", async || {
        for cluster in gated {
            if image_of(&field.work(cluster).await) == Some("agent:2") {
                return Ok(cluster);
            }
        }
        Err("nobody has begun".to_owned())
    })
    .await;
    let old = field.work("c1").await.annotations()[SET_ANNOTATION].clone();
    field.behave(&["c1"], Behaviour::Silent);

    let field = field.upgrade_hub().await;
    let is_new = |work: &ManifestWork| work.annotations()[SET_ANNOTATION] != old;
    wait::until(&field.works("c1"), &work_name(), "its turn has come", is_new).await;
    field.is_noted(moved, "Moving").await;
    field.behave(&[moved], Behaviour::Well);
    field.is_noted(moved, "Proven").await;
    field.reports("default/aws-placement: 1 of 1 canaries is not done: c1").await;
    for cluster in gated.into_iter().filter(|cluster| *cluster != moved) {
        assert_eq!(image_of(&field.work(cluster).await), Some("agent:1"), "{cluster}");
    }
    field.behave(&["c1", "a1", "a2", "a3"], Behaviour::Well);
    for cluster in gated {
        wait::until(&field.works(cluster), &work_name(), "its turn has come", |work| {
            is_new(work) && image_of(work) == Some("agent:2")
        })
        .await;
    }
    field.hub.stop().await;
}

async fn a_later_drover_writes_no_work_before_its_turn(world: World) {
    let field = Field::new(world).await;
    let clusters = ["a1", "a2", "c1"];
    let list = [
        from_template("aws-placement", "agent", &behind("canary-placement", "100%")),
        from_template("canary-placement", "agent", &rolling("100%")),
    ];
    field.deploying("agent", "agent:1").await;
    field.with_canaries(&["a1", "a2"], &["c1"], &list).await;
    let mut before = BTreeMap::new();
    for cluster in clusters {
        before.insert(cluster, field.work(cluster).await.resource_version());
    }
    let old = field.work("c1").await.annotations()[SET_ANNOTATION].clone();
    field.annotate(PAUSE_ANNOTATION, Some("true")).await;

    let field = field.upgrade_hub().await;
    field
        .remembers("another set is wanted", |status| {
            status.placements.iter().all(|known| known.progress.wanted.as_ref().is_some_and(|set| set.as_str() != old))
        })
        .await;
    for cluster in clusters {
        assert_eq!(field.work(cluster).await.resource_version(), before[cluster], "{cluster}");
    }

    // Who is new gets what is known to be good, though only the later Drover is there to make it.
    field.cluster("a3").await;
    field.select("aws-placement", &["a1", "a2", "a3"]).await;
    let newcomer = field.deploys("a3", "agent:1").await;
    assert_eq!(newcomer.annotations()[SET_ANNOTATION], old);

    field.behave(&["c1"], Behaviour::Silent);
    field.annotate(PAUSE_ANNOTATION, None).await;
    let is_new = |work: &ManifestWork| work.annotations()[SET_ANNOTATION] != old;
    wait::until(&field.works("c1"), &work_name(), "its turn has come", is_new).await;
    for cluster in ["a1", "a2"] {
        assert_eq!(field.work(cluster).await.resource_version(), before[cluster], "{cluster}");
    }
    field.behave(&["c1"], Behaviour::Well);
    for cluster in ["a1", "a2"] {
        wait::until(&field.works(cluster), &work_name(), "its turn has come", is_new).await;
    }
    field.hub.stop().await;
}

async fn what_is_set_on_one_cluster_is_rendered_there_alone(world: World) {
    let field = Field::new(world).await;
    let clusters = ["a1", "a2"];
    field.clusters(&clusters).await;
    field.deploying("agent", "quay.io/drover/agent:1").await;
    field.select("aws-placement", &clusters).await;
    field.list(&[from_template("aws-placement", "agent", &update_all())]).await;
    field.says("aws-placement", "False/InstallSucceed: 2/2 install completed with no errors.").await;
    let before = field.applied(&["a2"]).await;

    field.settings("own", "one").await;
    let own = json!({ "spec": { "configs": [config("addondeploymentconfigs", "own")] } });
    change(&field.on("a1"), ADDON, own).await;
    let configs = Api::<AddOnDeploymentConfig>::namespaced(field.world.client(), "default");
    let mirrors = json!({ "spec": { "registries": [{ "source": "quay.io/drover", "mirror": "mirror.example.com" }] } });
    change(&configs, "own", mirrors).await;

    field.deploys("a1", "mirror.example.com/agent:1").await;
    field.says_on("a1", "False/UpgradeSucceed: upgrade completed with no errors.").await;
    assert_eq!(field.applied(&["a2"]).await, before);
    field.hub.stop().await;
}

async fn a_hub_that_is_killed_after_every_write_deploys_everything(world: World) {
    let field = Field::new(world).await;
    let clusters = ["a1", "a2", "c1"];
    field.clusters(&clusters).await;
    field.select("aws-placement", &["a1", "a2"]).await;
    field.select("canary-placement", &["c1"]).await;
    field.deploying("agent", "agent:1").await;
    field.hub.stop().await;

    let mut life = Life::of_one_write(&field.client);
    let mut field = Field { hub: start(life.client(), &field.clock, field.dialect).await, ..field };
    let list = [
        from_template("aws-placement", "agent", &behind("canary-placement", "100%")),
        from_template("canary-placement", "agent", &rolling("100%")),
    ];
    field.list(&list).await;
    let done = Some("False/InstallSucceed: 2/2 install completed with no errors.");
    loop {
        life.end().await;
        let addon = field.addons().get(ADDON).await.expect("the add-on is there");
        if said(&addon, "aws-placement").as_deref() == done {
            break;
        }
        life = Life::of_one_write(&field.client);
        // The one that was before is gone with this, whatever it was about to do.
        field.hub = start(life.client(), &field.clock, field.dialect).await;
    }
    // The last one too is dead, and would wait for ever for the answer to what it was about to write.
    field.hub = start(field.client.clone(), &field.clock, field.dialect).await;
    let mut sets = Vec::new();
    for cluster in clusters {
        let work = field.deploys(cluster, "agent:1").await;
        assert_eq!(work.metadata.generation, Some(1), "{cluster} was written once");
        sets.push(work.annotations()[SET_ANNOTATION].clone());
    }
    sets.dedup();
    assert_eq!(sets.len(), 1, "all run the same");
    field.hub.stop().await;
}

async fn a_hub_that_is_restarted_finds_its_works_as_they_are(world: World) {
    let field = Field::new(world).await;
    field.deploying("agent", "agent:1").await;
    // What a server fills in, drops or writes otherwise must not look like a change.
    let odd = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "odd", "namespace": "agents", "creationTimestamp": null, "labels": {}, "annotations": null },
        "spec": { "selector": {}, "number": 1.0, "large": 1e21, "nothing": null, "list": [null, {}], "empty": "",
            "template": { "spec": { "containers": [{ "name": "agent", "image": "agent:1", "env": [] }] } } },
    });
    let configs = json!([{ "resourceIdentifier": { "group": "apps", "resource": "daemonsets", "name": "*", "namespace": "*" },
        "updateStrategy": { "type": "ServerSideApply", "serverSideApply": { "ignoreFields": [{ "jsonPaths": ["$.spec.x"] }] } } }]);
    let mut spec = deploying("agent:1");
    spec["agentSpec"]["workload"]["manifests"].as_array_mut().expect("a list").push(odd);
    spec["agentSpec"]["manifestConfigs"] = configs;
    spec["agentSpec"]["deleteOption"] = json!({ "propagationPolicy": "SelectivelyOrphan" });
    change(&Api::<AddOnTemplate>::all(field.world.client()), "agent", json!({ "spec": spec })).await;
    field.clusters(&["a1", "a2"]).await;
    field.select("aws-placement", &["a1", "a2"]).await;
    field.list(&[from_template("aws-placement", "agent", &update_all())]).await;
    field.says("aws-placement", "False/InstallSucceed: 2/2 install completed with no errors.").await;
    assert_eq!(field.work("a1").await.metadata.generation, Some(1), "it was written once");
    assert_eq!(writes_a_day_later(field).await, [""; 0]);
}
