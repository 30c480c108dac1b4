//! Sets of works: one work for each cluster that placements select, changed in waves, and counted.

mod bad_input;
mod completion;
mod deletion;
mod invalid_status;
mod killed;
mod naming;
mod selection;
mod waves;

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    names::{MANIFESTWORK_APPLIED, PLACEMENT_ROLLED_OUT, PLACEMENT_VERIFIED, REPLICA_SET_LABEL},
    work::{ManifestWork, ManifestWorkReplicaSet, ManifestWorkReplicaSetStatus, ReplicaSetSummary},
};
use drover_engine::work::replica_set::naming::work_name;
use drover_hub::{Hub, Options};
use drover_runtime::clock::ManualClock;
use drover_testkit::{
    World, objects,
    play::{Agent, Behaviour, Crowd},
    wait,
};
use futures_util::{StreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    documents::repository,
    running::{as_hub, change, condition, create, hub_clock, options, reach, select, start as start_whole_hub},
};

drover_testkit::scenarios! {
    Own {
        every_selected_cluster_gets_a_work_and_is_counted,
        the_example_works_with_placements_and_agents_of_a_whole_hub,
        what_somebody_has_changed_is_put_right,
        labels_of_a_set_come_to_its_works,
    }
}

/// The name of the set in most scenarios.
const SET: &str = "hello";
/// Its namespace.
const HOME: &str = "default";

/// A hub that looks after works only, so that a scenario decides itself which clusters placements select and which can be reached.
struct Field {
    world: World,
    client: Client,
    hub: Hub,
    clock: ManualClock,
    crowd: Crowd,
}

impl Field {
    async fn new(world: World) -> Self {
        let clock = hub_clock();
        let client = as_hub(&world).await;
        let hub = start(client.clone(), &clock).await;
        let crowd = Crowd::of_agents(world.client(), REPLICA_SET_LABEL);
        Self { world, client, hub, clock, crowd }
    }

    /// Clusters of one placement, all of which run the first version.
    async fn of_one_placement(world: World, clusters: &[&str], strategy: Value) -> Self {
        let field = Self::new(world).await;
        field.clusters(clusters).await;
        field.select("all", clusters).await;
        field.make(SET, json!([{ "name": "all", "rolloutStrategy": strategy }]), "v1").await;
        field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
        field
    }

    /// Ends the hub, and starts another one.
    async fn restart(self) -> Self {
        self.hub.stop().await;
        Self { hub: start(self.client.clone(), &self.clock).await, ..self }
    }

    fn sets(&self) -> Api<ManifestWorkReplicaSet> {
        Api::namespaced(self.world.client(), HOME)
    }

    fn works(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.world.client(), cluster)
    }

    /// Makes clusters that can be reached.
    async fn clusters(&self, names: &[&str]) {
        stream::iter(names)
            .for_each_concurrent(16, async |name| {
                self.world.namespace_named(name).await;
                create(&Api::all(self.world.client()), objects::cluster(name)).await;
                reach(&self.world, name, "True").await;
            })
            .await;
    }

    async fn select(&self, placement: &str, clusters: &[&str]) {
        select(&self.world, HOME, placement, clusters).await;
    }

    fn behave(&self, clusters: &[&str], behaviour: Behaviour) {
        for cluster in clusters {
            self.crowd.behave(cluster, behaviour);
        }
    }

    /// Makes a set with these placements, whose template is that version.
    async fn make(&self, name: &str, placements: Value, version: &str) -> ManifestWorkReplicaSet {
        let spec = json!({ "placementRefs": placements, "manifestWorkTemplate": template(version) });
        let set = ManifestWorkReplicaSet::new(name, serde_json::from_value(spec).expect("a valid set"));
        create(&self.sets(), set).await
    }

    /// Has the template of a set be that version.
    async fn roll_out(&self, version: &str) {
        change(&self.sets(), SET, json!({ "spec": { "manifestWorkTemplate": template(version) } })).await;
    }

    /// Waits until a condition of a set is like this: status/reason.
    async fn says(&self, set: &str, type_: &str, words: &str) -> ManifestWorkReplicaSetStatus {
        let what = format!("{type_} is {words}");
        self.has_status(set, &what, |status| said(status, type_).as_deref() == Some(words)).await
    }

    /// Waits until a condition of a set says this, while time passes: what was refused is tried again.
    async fn says_in_time(&self, set: &str, type_: &str, words: &str) {
        wait::attempt(&format!("{type_} is {words}"), async || {
            self.clock.advance(Duration::from_mins(1));
            let status = self.sets().get(set).await.expect("it is there").status.unwrap_or_default();
            if said(&status, type_).as_deref() == Some(words) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// Waits until the status of a set, of the set as it is now, is like this.
    async fn has_status(
        &self,
        set: &str,
        what: &str,
        is_so: impl Fn(&ManifestWorkReplicaSetStatus) -> bool,
    ) -> ManifestWorkReplicaSetStatus {
        let has = |set: &ManifestWorkReplicaSet| {
            let is_current = |status: &ManifestWorkReplicaSetStatus| {
                status.conditions.iter().all(|said| said.observed_generation == set.metadata.generation)
            };
            set.status.as_ref().is_some_and(|status| is_current(status) && is_so(status))
        };
        wait::until(&self.sets(), set, what, has).await.status.expect("it was waited for")
    }

    /// Waits until a set counts its works like this: desired, total, updated, applied, available, progressing, degraded.
    async fn counts(&self, set: &str, counts: [i64; 7]) -> ManifestWorkReplicaSetStatus {
        let what = format!("it counts {counts:?}");
        self.has_status(set, &what, |status| status.summary.as_ref().map(numbers) == Some(counts)).await
    }

    /// Waits until the work of a cluster is that version.
    async fn is_given(&self, cluster: &str, version: &str) -> ManifestWork {
        let what = format!("{cluster} is given {version}");
        let name = work_name(HOME, SET);
        wait::until(&self.works(cluster), &name, &what, |work| version_of(work).as_deref() == Some(version)).await
    }

    /// Has the agent of a cluster say this of its work as it is now, as type and status.
    async fn report(&self, cluster: &str, said: &[(&str, &str)]) {
        let name = work_name(HOME, SET);
        let work = self.works(cluster).get(&name).await.expect("the work is there");
        let conditions: Vec<_> = said
            .iter()
            .map(|(type_, status)| {
                json!({ "type": type_, "status": status, "reason": "Scenario", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": work.metadata.generation })
            })
            .collect();
        let status = Patch::Merge(json!({ "status": { "conditions": conditions } }));
        self.works(cluster).patch_status(&name, &PatchParams::default(), &status).await.expect("a work has a status");
    }

    /// Which version the works of sets are, by cluster and name.
    async fn versions(&self) -> BTreeMap<String, String> {
        let works = Api::<ManifestWork>::all(self.world.client());
        let works = works.list(&ListParams::default().labels(REPLICA_SET_LABEL)).await.expect("works can be listed");
        works
            .iter()
            .filter(|work| work.metadata.deletion_timestamp.is_none())
            .map(|work| (work.namespace().unwrap_or_default(), version_of(work).unwrap_or_default()))
            .collect()
    }

    /// The clusters whose work is that version.
    async fn clusters_on(&self, version: &str) -> Vec<String> {
        let versions = self.versions().await;
        versions.into_iter().filter(|(_, is)| is == version).map(|(cluster, _)| cluster).collect()
    }

    /// Waits until the hub has acted on what came after everything else.
    async fn settle(&self) {
        let name = self.world.unique("marker");
        self.make(&name, json!([{ "name": "nobody" }]), "v0").await;
        self.says(&name, PLACEMENT_VERIFIED, "False/PlacementDecisionNotFound").await;
    }
}

async fn start(client: Client, clock: &ManualClock) -> Hub {
    let options = Options { controllers: "work".parse().expect("a controller"), ..options() };
    Hub::start(client, &options, clock.clock()).await.expect("the hub starts")
}

/// A template of that version.
fn template(version: &str) -> Value {
    let mut map = objects::config_map("hello");
    map["data"] = json!({ "version": version });
    json!({ "workload": { "manifests": [map] } })
}

/// Which version a work is.
fn version_of(work: &ManifestWork) -> Option<String> {
    Some(work.spec.manifests().first()?["data"]["version"].as_str()?.to_owned())
}

fn said(status: &ManifestWorkReplicaSetStatus, type_: &str) -> Option<String> {
    condition(&status.conditions, type_).map(|(status, reason)| format!("{status}/{reason}"))
}

fn message(status: &ManifestWorkReplicaSetStatus, type_: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// Desired, total, updated, applied, available, progressing, degraded.
fn numbers(summary: &ReplicaSetSummary) -> [i64; 7] {
    let ReplicaSetSummary { total, desired_total, updated, applied, available, progressing, degraded } = summary;
    [desired_total, total, updated, applied, available, progressing, degraded].map(|count| count.unwrap_or(-1))
}

/// One cluster at a time.
fn one_at_a_time() -> Value {
    json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } })
}

async fn every_selected_cluster_gets_a_work_and_is_counted(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a", "b", "c"]).await;
    field.behave(&["c"], Behaviour::Silent);
    field.select("first", &["a"]).await;
    field.select("second", &["b", "c"]).await;
    field.make(SET, json!([{ "name": "first" }, { "name": "second" }]), "v1").await;

    let status = field.counts(SET, [3, 3, 3, 2, 2, 1, 0]).await;
    assert_eq!(said(&status, PLACEMENT_VERIFIED).as_deref(), Some("True/AsExpected"));
    assert_eq!(said(&status, PLACEMENT_ROLLED_OUT).as_deref(), Some("False/Progressing"));
    assert_eq!(said(&status, MANIFESTWORK_APPLIED).as_deref(), Some("False/Processing"));
    let placements: Vec<_> = status
        .placement_summary
        .iter()
        .map(|it| {
            (
                it.name.clone().unwrap_or_default(),
                it.summary.as_ref().map(numbers),
                it.available_decision_groups.clone(),
            )
        })
        .collect();
    let groups = |text: &str| Some(text.to_owned());
    assert_eq!(
        placements,
        [
            ("first".to_owned(), Some([1, 1, 1, 1, 1, 0, 0]), groups("0 (1 / 1 clusters applied)")),
            ("second".to_owned(), Some([2, 2, 2, 1, 1, 1, 0]), groups("0 (1 / 2 clusters applied)")),
        ]
    );
    field.behave(&["c"], Behaviour::Well);
    let status = field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    assert_eq!(status.summary.as_ref().map(numbers), Some([3, 3, 3, 3, 3, 0, 0]));
    assert_eq!(said(&status, MANIFESTWORK_APPLIED).as_deref(), Some("True/AsExpected"));
    let set = field.sets().get(SET).await.expect("the set is there");
    assert_eq!(set.finalizers(), ["work.open-cluster-management.io/manifest-work-cleanup"]);
    assert!(status.conditions.iter().all(|condition| condition.observed_generation == set.metadata.generation));
    let work = field.is_given("b", "v1").await;
    assert_eq!(work.labels()["work.open-cluster-management.io/manifestworkreplicaset"], "default.hello");
    assert_eq!(work.labels()["work.open-cluster-management.io/placementname"], "second");
    assert_eq!(Some(&work.spec), set.spec.manifest_work_template.as_ref());
    field.hub.stop().await;
}

/// Nothing here is played but the agent: clusters are let in and placed by the hub that makes their works.
async fn the_example_works_with_placements_and_agents_of_a_whole_hub(world: World) {
    let hub = start_whole_hub(as_hub(&world).await, None).await;
    let agent = Agent::join(&world, "cluster1").await;
    let obeying = agent.obey();
    for file in ["placement.yaml", "replica-set.yaml"] {
        let file = repository().join("examples/works").join(file);
        world.kubectl(["apply", "--server-side", "-f", file.to_str().expect("a path is text")]).await.success();
    }
    let sets = Api::<ManifestWorkReplicaSet>::namespaced(world.client(), HOME);
    let says = |set: &ManifestWorkReplicaSet, words: &str| {
        set.status.as_ref().and_then(|status| said(status, MANIFESTWORK_APPLIED)).as_deref() == Some(words)
    };
    let is_empty = |set: &ManifestWorkReplicaSet| says(set, "False/PlacementDecisionEmpty");
    wait::until(&sets, "banner", "nobody is selected", is_empty).await;
    world.kubectl(["label", "managedcluster", "cluster1", "environment=production", "canary=true"]).await.success();

    let is_well = |set: &ManifestWorkReplicaSet| says(set, "True/AsExpected");
    let status = wait::until(&sets, "banner", "all is applied", is_well).await.status.expect("it was waited for");
    assert_eq!(status.summary.as_ref().map(numbers), Some([1, 1, 1, 1, 1, 0, 0]));
    assert_eq!(status.placement_summary[0].available_decision_groups.as_deref(), Some("1 (1 / 1 clusters applied)"));
    let table = world.kubectl(["get", "manifestworkreplicasets", "--namespace", HOME]).await.success();
    let row: Vec<_> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[..6], ["banner", "AsExpected", "Complete", "True", "1", "1"]);

    world.kubectl(["label", "managedcluster", "cluster1", "environment-"]).await.success();
    wait::gone(&Api::<ManifestWork>::namespaced(world.client(), "cluster1"), &work_name(HOME, "banner")).await;
    obeying.abort();
    hub.stop().await;
}

async fn what_somebody_has_changed_is_put_right(world: World) {
    let field = Field::of_one_placement(world, &["a", "b"], json!({ "type": "All" })).await;
    let name = work_name(HOME, SET);

    change(&field.works("a"), &name, json!({ "spec": template("hacked") })).await;
    let again = field.is_given("a", "v1");
    assert_eq!(again.await.metadata.generation, Some(3));
    field.counts(SET, [2, 2, 2, 2, 2, 0, 0]).await;

    field.works("b").delete(&name, &DeleteParams::default()).await.expect("a work can be deleted");
    wait::until(&field.works("b"), &name, "it is made again", |work| work.metadata.deletion_timestamp.is_none()).await;
    field.counts(SET, [2, 2, 2, 2, 2, 0, 0]).await;

    // Without the label nobody sees that there is one already.
    let first = field.works("a").get(&name).await.expect("it is there");
    change(&field.works("a"), &name, json!({ "metadata": { "labels": { (REPLICA_SET_LABEL): null } } })).await;
    let is_labelled = |work: &ManifestWork| work.labels().contains_key(REPLICA_SET_LABEL);
    let again = wait::until(&field.works("a"), &name, "it is taken back", is_labelled).await;
    assert_eq!(again.metadata.uid, first.metadata.uid);
    field.hub.stop().await;
}

async fn labels_of_a_set_come_to_its_works(world: World) {
    let field = Field::of_one_placement(world, &["a", "b"], one_at_a_time()).await;
    change(&field.sets(), SET, json!({ "metadata": { "labels": { "team": "blue" } } })).await;
    let name = work_name(HOME, SET);
    for cluster in ["a", "b"] {
        let is_blue = |work: &ManifestWork| work.labels().get("team").map(String::as_str) == Some("blue");
        let work = wait::until(&field.works(cluster), &name, "it is labelled", is_blue).await;
        assert_eq!(work.metadata.generation, Some(1), "that disturbs nobody");
    }
    field.hub.stop().await;
}
