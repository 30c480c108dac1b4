//! A cluster that stays selected is in some slice at every moment, however its slices change.
//!
//! Two readers look on: one follows a watch, which tells of every state that there was, and one lists over and over, as
//! somebody does who starts or resynchronises.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use drover_api::{
    cluster::{
        DecisionGroupStatus, ManagedCluster, ManagedClusterSet, ManagedClusterSetSpec, Placement, PlacementDecision,
        PlacementDecisionSpec,
    },
    names::{CLUSTER_SET_LABEL, PLACEMENT_LABEL},
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::Clock;
use drover_testkit::{
    World,
    objects::{self, Described as _},
    wait,
};
use futures_util::{StreamExt as _, stream::BoxStream};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{label, listed, of, placement, placements};
use crate::running::{as_hub, bound_namespace, change, create, options};

drover_testkit::scenarios! {
    Own { a_cluster_that_moves_between_slices_is_never_missing }
}

/// How many clusters are selected throughout. Those with an even number are in the first wave.
const STAYING: usize = 250;
/// How many clusters come and go in front of them.
const PASSING: usize = 30;
/// How the name of a slice ends that the scenario makes itself: when it is seen, what was written before has been read.
const MARKER: &str = "-marker";
/// How often decisions are listed at the least.
const LISTS: usize = 50;

type Slices = BTreeMap<String, BTreeSet<String>>;

/// Who reads the decisions of one placement while they change.
struct Readers {
    slices: Api<PlacementDecision>,
    placement: &'static str,
    watching: JoinHandle<Journal>,
    listing: JoinHandle<()>,
    lists: Arc<AtomicUsize>,
}

/// In which slices each cluster was seen.
type Journal = BTreeMap<String, BTreeSet<String>>;

fn clusters_of(slice: &PlacementDecision) -> BTreeSet<String> {
    listed(slice).into_iter().map(str::to_owned).collect()
}

/// Fails if a cluster is in none of the slices that is to be in one.
fn nobody_is_missing(staying: &BTreeSet<String>, slices: &Slices, reader: &str) {
    let seen: BTreeSet<_> = slices.values().flatten().collect();
    let missing: Vec<_> = staying.iter().filter(|cluster| !seen.contains(cluster)).collect();
    let sizes: BTreeMap<_, _> = slices.iter().map(|(slice, clusters)| (slice, clusters.len())).collect();
    assert!(missing.is_empty(), "{reader}: {missing:?} are in no slice; the slices and their sizes are {sizes:?}");
}

impl Readers {
    async fn start(world: &World, namespace: &str, placement: &'static str, staying: &BTreeSet<String>) -> Self {
        let slices = Api::<PlacementDecision>::namespaced(world.client(), namespace);
        let first = slices.list(&ListParams::default().labels(&of(placement))).await.expect("decisions can be read");
        let version = first.metadata.resource_version.clone().unwrap_or_default();
        let known: Slices = first.iter().map(|slice| (slice.name_any(), clusters_of(slice))).collect();
        nobody_is_missing(staying, &known, "before anything changes");
        let params = WatchParams::default().labels(&of(placement));
        let events = slices.watch(&params, &version).await.expect("decisions can be watched").boxed();
        let watching = tokio::spawn(follow(events, known, staying.clone()));
        let lists = Arc::new(AtomicUsize::new(0));
        let listing = tokio::spawn(list(slices.clone(), placement, staying.clone(), Arc::clone(&lists)));
        Self { slices, placement, watching, listing, lists }
    }

    /// What was read, when all that was written so far has been.
    async fn finish(self) -> Journal {
        let marker = PlacementDecision::new(&format!("{}{MARKER}", self.placement), PlacementDecisionSpec {});
        create(&self.slices, marker.labelled(PLACEMENT_LABEL, self.placement)).await;
        let journal = self.watching.await.expect("nobody is missing in the watch");
        self.listing.abort();
        let aborted = self.listing.await.is_err_and(|end| end.is_cancelled());
        assert!(aborted, "nobody is missing in the lists");
        let lists = self.lists.load(Ordering::Relaxed);
        assert!(lists >= LISTS, "{}: decisions were listed only {lists} times", self.placement);
        journal
    }
}

/// Applies one event after the other, and looks each time.
async fn follow(
    mut events: BoxStream<'static, kube::Result<WatchEvent<PlacementDecision>>>,
    mut slices: Slices,
    staying: BTreeSet<String>,
) -> Journal {
    let mut journal = Journal::new();
    loop {
        match events.next().await.expect("the watch goes on").expect("the watch is readable") {
            WatchEvent::Added(slice) | WatchEvent::Modified(slice) if !slice.name_any().ends_with(MARKER) => {
                for cluster in clusters_of(&slice) {
                    journal.entry(cluster).or_default().insert(slice.name_any());
                }
                slices.insert(slice.name_any(), clusters_of(&slice));
            }
            WatchEvent::Deleted(slice) => drop(slices.remove(&slice.name_any())),
            WatchEvent::Added(_) => return journal,
            // A watch that lasts for a minute gets one.
            WatchEvent::Bookmark(_) => continue,
            event => panic!("an event that was not expected: {event:?}"),
        }
        nobody_is_missing(&staying, &slices, "the watch");
    }
}

/// Lists all slices again and again, and looks each time.
async fn list(
    slices: Api<PlacementDecision>,
    placement: &'static str,
    staying: BTreeSet<String>,
    lists: Arc<AtomicUsize>,
) {
    loop {
        let found = slices.list(&ListParams::default().labels(&of(placement))).await.expect("decisions can be read");
        let found = found.iter().map(|slice| (slice.name_any(), clusters_of(slice))).collect();
        nobody_is_missing(&staying, &found, "a list");
        lists.fetch_add(1, Ordering::Relaxed);
    }
}

fn staying() -> Vec<String> {
    (0..STAYING).map(|number| format!("cluster-{number:03}")).collect()
}

/// Names that come before those of the clusters that stay.
fn passing() -> Vec<String> {
    (0..PASSING).map(|number| format!("at-front-{number:02}")).collect()
}

async fn make(world: &World, cluster: &str, wave: &str) {
    let cluster = objects::cluster(cluster).labelled(CLUSTER_SET_LABEL, "production").labelled("wave", wave);
    create(&Api::<ManagedCluster>::all(world.client()), cluster).await;
}

/// A hub that leaves clusters as the scenario makes them.
async fn start(client: Client) -> Hub {
    let options = Options { controllers: "*,-cluster".parse().expect("a valid list"), ..options() };
    Hub::start(client, &options, Clock::system()).await.expect("the hub starts")
}

/// Groups by wave, each with the wave that it takes, of at most so many clusters.
fn grouped(waves: [(&str, &str); 2], size: impl Into<Value>) -> Value {
    let size = size.into();
    let groups = waves.map(|(group, wave)| {
        let selector = json!({ "labelSelector": { "matchLabels": { "wave": wave } } });
        json!({ "groupName": group, "groupClusterSelector": selector })
    });
    json!({ "decisionStrategy": { "groupStrategy": { "decisionGroups": groups, "clustersPerDecisionGroup": size } } })
}

/// In the order of their scores, which nobody reports, so that their names decide: who comes in front shifts all.
fn in_order(size: impl Into<Value>) -> Value {
    let size = size.into();
    let unknown = json!({ "type": "AddOn", "addOn": { "resourceName": "none", "scoreName": "none" } });
    json!({
        "sortBy": "Score",
        "prioritizerPolicy": { "mode": "Exact", "configurations": [{ "scoreCoordinate": unknown }] },
        "decisionStrategy": { "groupStrategy": { "clustersPerDecisionGroup": size } },
    })
}

/// Two placements of the same clusters: one keeps clusters in their slices as long as it can, one goes by their order.
struct Scene {
    world: World,
    placements: Api<Placement>,
}

const GROUPED: &str = "grouped";
const IN_ORDER: &str = "in-order";

impl Scene {
    async fn edit(&self, name: &str, spec: Value) {
        change(&self.placements, name, json!({ "spec": spec })).await;
    }

    /// Waits until a placement has groups with these names and sizes.
    async fn until(&self, name: &str, groups: &[(&str, usize)]) {
        let expected: Vec<_> = groups.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        wait::until(&self.placements, name, &format!("it has the groups {groups:?}"), |placement| {
            let groups = placement.status.iter().flat_map(|status| &status.decision_groups);
            groups.map(name_and_size).eq(expected.iter().cloned())
        })
        .await;
    }

    /// Waits until each placement has so many groups.
    async fn until_groups(&self, grouped: usize, in_order: usize) {
        for (name, count) in [(GROUPED, grouped), (IN_ORDER, in_order)] {
            wait::until(&self.placements, name, &format!("it has {count} groups"), |placement| {
                placement.status.as_ref().is_some_and(|status| status.decision_groups.len() == count)
            })
            .await;
        }
    }

    async fn come_to_front(&self) {
        for cluster in passing() {
            make(&self.world, &cluster, "first").await;
        }
    }

    async fn leave_the_front(&self) {
        let clusters = Api::<ManagedCluster>::all(self.world.client());
        for cluster in passing() {
            clusters.delete(&cluster, &DeleteParams::default()).await.expect("a cluster can be deleted");
        }
    }
}

fn name_and_size(group: &DecisionGroupStatus) -> (String, usize) {
    let size = usize::try_from(group.cluster_count).unwrap_or_default();
    (group.decision_group_name.clone().unwrap_or_default(), size)
}

const WAVES: [(&str, &str); 2] = [("canary", "first"), ("rest", "second")];
/// The groups have exchanged their clusters.
const EXCHANGED: [(&str, &str); 2] = [("canary", "second"), ("rest", "first")];

async fn a_cluster_that_moves_between_slices_is_never_missing(world: World) {
    let client = as_hub(&world).await;
    let mut hub = start(client.clone()).await;
    let sets = Api::<ManagedClusterSet>::all(world.client());
    create(&sets, ManagedClusterSet::new("production", ManagedClusterSetSpec::default())).await;
    for (number, cluster) in staying().iter().enumerate() {
        make(&world, cluster, if number % 2 == 0 { "first" } else { "second" }).await;
    }
    let namespace = bound_namespace(&world, "production").await;
    let scene = Scene { placements: placements(&world, &namespace), world };
    create(&scene.placements, placement(GROUPED, grouped(WAVES, "100%"))).await;
    create(&scene.placements, placement(IN_ORDER, in_order("100%"))).await;
    scene.until(GROUPED, &[("canary", 125), ("rest", 125)]).await;
    scene.until(IN_ORDER, &[("", 250)]).await;
    let all: BTreeSet<_> = staying().into_iter().collect();
    let readers = [
        Readers::start(&scene.world, &namespace, GROUPED, &all).await,
        Readers::start(&scene.world, &namespace, IN_ORDER, &all).await,
    ];

    clusters_change_their_group(&scene).await;
    slices_shift(&scene).await;
    groups_change_their_size(&scene).await;
    hub = groups_are_exchanged_while_the_hub_is_restarted(&scene, hub, client).await;

    for readers in readers {
        let placement = readers.placement;
        let journal = readers.finish().await;
        let moved = all.iter().filter(|cluster| journal.get(*cluster).is_some_and(|slices| slices.len() > 1)).count();
        assert!(moved > STAYING / 2, "{placement}: only {moved} clusters were seen to move, which shows nothing");
    }
    hub.stop().await;
}

async fn clusters_change_their_group(scene: &Scene) {
    for cluster in staying().iter().skip(1).step_by(4) {
        label(&scene.world, cluster, "wave", "first").await;
    }
    scene.until(GROUPED, &[("canary", 188), ("rest", 62)]).await;
    for cluster in staying().iter().step_by(2) {
        label(&scene.world, cluster, "wave", "second").await;
    }
    scene.until(GROUPED, &[("canary", 63), ("rest", 187)]).await;
}

async fn slices_shift(scene: &Scene) {
    scene.come_to_front().await;
    scene.until(IN_ORDER, &[("", 280)]).await;
    scene.edit(IN_ORDER, in_order(20)).await;
    scene.until(IN_ORDER, &[("", 20); 14]).await;
    scene.leave_the_front().await;
    scene.until(IN_ORDER, &[vec![("", 20); 12], vec![("", 10)]].concat()).await;
    scene.until(GROUPED, &[("canary", 63), ("rest", 187)]).await;
}

async fn groups_change_their_size(scene: &Scene) {
    // 63 and 187 clusters in groups of 40; then of a tenth, which is 25; then of 7; then of any size.
    for (size, grouped_into, in_order_into) in
        [(json!(40), 2 + 5, 7), (json!("10%"), 3 + 8, 10), (json!(7), 9 + 27, 36), (json!("100%"), 2, 1)]
    {
        scene.edit(GROUPED, grouped(WAVES, size.clone())).await;
        scene.edit(IN_ORDER, in_order(size)).await;
        scene.until_groups(grouped_into, in_order_into).await;
    }
}

async fn groups_are_exchanged_while_the_hub_is_restarted(scene: &Scene, hub: Hub, client: Client) -> Hub {
    scene.edit(GROUPED, grouped(EXCHANGED, "100%")).await;
    scene.until(GROUPED, &[("canary", 187), ("rest", 63)]).await;
    scene.come_to_front().await;
    scene.edit(GROUPED, grouped(WAVES, 7)).await;
    // It ends with whatever it has written until now, and the next one goes on from there.
    hub.stop().await;
    let hub = start(client).await;
    scene.until_groups(14 + 27, 1).await;
    scene.leave_the_front().await;
    scene.edit(GROUPED, grouped(EXCHANGED, "100%")).await;
    scene.until(GROUPED, &[("canary", 187), ("rest", 63)]).await;
    scene.until(IN_ORDER, &[("", 250)]).await;
    hub
}
