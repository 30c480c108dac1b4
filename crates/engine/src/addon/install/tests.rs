//! Where add-ons are installed, in small fleets.

use std::time::Duration;

use drover_api::{
    cluster::{ManagedClusterSpec, PlacementDecisionStatus, PlacementStatus},
    names::{CLUSTER_AVAILABLE, UNREACHABLE_TAINT},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, LabelSelectorRequirement, Time};
use serde_json::{Value, json};

use super::*;

fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn after(seconds: u64) -> Timestamp {
    noon().checked_add(Duration::from_secs(seconds)).expect("a time")
}

/// A fleet with an add-on.
struct Fleet {
    addon: ClusterManagementAddOn,
    placements: BTreeMap<String, Known<Placement>>,
    slices: BTreeMap<String, Vec<PlacementDecision>>,
    unreadable_slice: bool,
    clusters: BTreeMap<String, Known<ManagedCluster>>,
    without_room: BTreeSet<String>,
    installed: Vec<ManagedClusterAddOn>,
    unreadable_on: BTreeSet<String>,
    sees_clusters_out: bool,
    absent: BTreeMap<String, Absence>,
}

impl Facts for Fleet {
    fn placement(&self, placement: &PlacementRef) -> Known<&Placement> {
        as_ref(self.placements.get(&placement.name))
    }

    fn slices(&self, placement: &PlacementRef) -> Known<Vec<&PlacementDecision>> {
        if self.unreadable_slice {
            return Known::Unreadable;
        }
        self.slices.get(&placement.name).map_or(Known::Missing, |slices| Known::There(slices.iter().collect()))
    }

    fn clusters(&self) -> impl Iterator<Item = &ManagedCluster> {
        self.clusters.values().filter_map(|cluster| match cluster {
            Known::There(cluster) => Some(cluster),
            _ => None,
        })
    }

    fn cluster(&self, name: &str) -> Known<&ManagedCluster> {
        as_ref(self.clusters.get(name))
    }

    fn has_room(&self, cluster: &ClusterName) -> bool {
        !self.without_room.contains(cluster.as_str())
    }

    fn installed(&self) -> impl Iterator<Item = &ManagedClusterAddOn> {
        self.installed.iter()
    }

    fn is_on(&self, cluster: &ClusterName) -> bool {
        let is_here = |on_cluster: &ManagedClusterAddOn| on_cluster.namespace().as_deref() == Some(cluster.as_str());
        self.installed.iter().any(is_here) || self.unreadable_on.contains(cluster.as_str())
    }

    fn leaves_with_cluster(&self, _: &ManagedClusterAddOn) -> bool {
        self.sees_clusters_out
    }

    fn absence(&self, cluster: &str) -> Option<Absence> {
        self.absent.get(cluster).copied()
    }
}

fn as_ref<T>(known: Option<&Known<T>>) -> Known<&T> {
    match known {
        Some(Known::There(object)) => Known::There(object),
        Some(Known::Unreadable) => Known::Unreadable,
        Some(Known::Missing) | None => Known::Missing,
    }
}

/// What was decided, by the names of clusters.
#[derive(Debug, PartialEq)]
struct Outcome {
    create: Vec<String>,
    delete: Vec<String>,
}

fn outcome<const C: usize, const D: usize>(create: [&str; C], delete: [&str; D]) -> Outcome {
    Outcome { create: create.map(str::to_owned).into(), delete: delete.map(str::to_owned).into() }
}

impl Fleet {
    /// A fleet of the clusters a, b, c and d, and an add-on with this strategy.
    fn with(strategy: &Value) -> Self {
        let addon = json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "metadata": { "name": "hello", "uid": "uid" }, "spec": { "installStrategy": strategy } });
        let cluster = |name: &str| (name.to_owned(), Known::There(cluster(name)));
        Self {
            addon: serde_json::from_value(addon).expect("an add-on"),
            placements: BTreeMap::new(),
            slices: BTreeMap::new(),
            unreadable_slice: false,
            clusters: ["a", "b", "c", "d"].map(cluster).into(),
            without_room: BTreeSet::new(),
            installed: Vec::new(),
            unreadable_on: BTreeSet::new(),
            sees_clusters_out: false,
            absent: BTreeMap::new(),
        }
    }

    /// A fleet whose add-on is installed by the placements x and y, which select these clusters.
    fn placed<const X: usize, const Y: usize>(x: [&str; X], y: [&str; Y]) -> Self {
        let entry = |name: &str| json!({ "namespace": "default", "name": name });
        let mut fleet = Self::with(&json!({ "type": "Placements", "placements": [entry("x"), entry("y")] }));
        fleet.select("x", &[&x]);
        fleet.select("y", &[&y]);
        fleet
    }

    /// Has a placement select the clusters of these slices, and say that it does.
    fn select(&mut self, placement: &str, slices: &[&[&str]]) {
        self.slice(placement, slices);
        let count = slices.iter().map(|slice| slice.len()).sum::<usize>();
        self.count(placement, i32::try_from(count).expect("a small number"));
    }

    fn slice(&mut self, placement: &str, slices: &[&[&str]]) {
        let slice = |clusters: &&[&str]| {
            let decisions = clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
            let decisions: Vec<Value> = decisions;
            let status = serde_json::from_value::<PlacementDecisionStatus>(json!({ "decisions": decisions }));
            PlacementDecision { status: Some(status.expect("a status")), ..PlacementDecision::default() }
        };
        self.slices.insert(placement.to_owned(), slices.iter().map(slice).collect());
    }

    fn count(&mut self, placement: &str, number_of_selected_clusters: i32) {
        let status = Some(PlacementStatus { number_of_selected_clusters, ..PlacementStatus::default() });
        let found = Placement { status, ..Placement::default() };
        self.placements.insert(placement.to_owned(), Known::There(found));
    }

    /// The add-on, as the hub made it on these clusters.
    fn installed<const N: usize>(mut self, clusters: [&str; N]) -> Self {
        for name in clusters {
            let mut made = made_for(&cluster(name), &self.addon, None);
            made.metadata.uid = Some(format!("uid-{name}"));
            self.installed.push(made);
        }
        self
    }

    /// The add-on, as somebody made it by hand on these clusters.
    fn by_hand<const N: usize>(self, clusters: [&str; N]) -> Self {
        let mut fleet = self.installed(clusters);
        for on_cluster in fleet.installed.iter_mut().rev().take(N) {
            on_cluster.annotations_mut().clear();
        }
        fleet
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut ManagedCluster)) {
        if let Some(Known::There(cluster)) = self.clusters.get_mut(name) {
            change(cluster);
        }
    }

    fn available(&mut self, name: &str, status: &str) {
        let condition = Condition {
            type_: CLUSTER_AVAILABLE.to_owned(),
            status: status.to_owned(),
            reason: String::new(),
            message: String::new(),
            last_transition_time: Time(noon()),
            observed_generation: None,
        };
        self.change(name, |cluster| cluster.status.get_or_insert_default().conditions = vec![condition]);
    }

    fn plan(&self, now: Timestamp) -> Installation<'_> {
        plan(Some(&self.addon), &Choice::of(&self.addon), self, now)
    }

    /// Decides, and remembers what has to be remembered.
    fn decide(&mut self, now: Timestamp) -> Outcome {
        let plan = self.plan(now);
        let outcome = Outcome {
            create: plan.create.iter().map(|(cluster, _)| cluster.to_string()).collect(),
            delete: plan.delete.iter().filter_map(|on_cluster| on_cluster.namespace()).collect(),
        };
        self.absent = plan.absent;
        outcome
    }

    fn decided(mut self) -> Outcome {
        self.decide(noon())
    }
}

fn cluster(name: &str) -> ManagedCluster {
    let mut cluster = ManagedCluster::new(name, ManagedClusterSpec::default());
    cluster.spec.hub_accepts_client = true;
    cluster
}

fn leave(cluster: &mut ManagedCluster) {
    cluster.metadata.deletion_timestamp = Some(Time(noon()));
}

#[test]
fn an_add_on_is_made_where_a_placement_selects_and_removed_where_none_does() {
    let fleet = Fleet::placed(["a", "b"], ["b", "c"]).installed(["b", "d"]);
    assert_eq!(fleet.decided(), outcome(["a", "c"], ["d"]));
}

#[test]
fn what_somebody_made_by_hand_stays_inside_and_outside() {
    let mut fleet = Fleet::placed(["a"], []).by_hand(["a", "d"]);
    let not_ours: Vec<_> = fleet.plan(noon()).not_ours.iter().filter_map(|addon| addon.namespace()).collect();
    assert_eq!(not_ours, ["a"], "this is what would be adopted");
    assert_eq!(fleet.decide(noon()), outcome([], []));
}

#[test]
fn an_add_on_that_is_installed_by_hand_or_managed_by_somebody_else_is_left_alone() {
    let by_hand = Fleet::with(&json!({ "type": "Manual" })).installed(["a"]);
    assert_eq!(by_hand.decided(), outcome([], []));
    for manager in ["self", ""] {
        let mut elsewhere = Fleet::placed(["a"], []).installed(["d"]);
        let annotations = elsewhere.addon.annotations_mut();
        annotations.insert(drover_api::names::LIFECYCLE_ANNOTATION.to_owned(), manager.to_owned());
        assert_eq!(elsewhere.decided(), outcome([], []), "{manager:?}");
    }
    let mut going = Fleet::placed(["a"], []).installed(["d"]);
    going.addon.metadata.deletion_timestamp = Some(Time(noon()));
    assert_eq!(going.decided(), outcome([], []));
}

#[test]
fn nothing_is_made_on_a_cluster_that_leaves_is_not_accepted_not_known_or_has_no_room() {
    let mut fleet = Fleet::placed(["a", "b", "c", "d", "e", "f"], []);
    fleet.change("a", leave);
    fleet.change("b", |cluster| cluster.spec.hub_accepts_client = false);
    fleet.clusters.insert("c".to_owned(), Known::Unreadable);
    fleet.without_room.insert("d".to_owned());
    fleet.clusters.insert("f".to_owned(), Known::There(cluster("f")));
    assert_eq!(fleet.decided(), outcome(["f"], []), "e is nobody's name");
}

#[test]
fn what_can_not_be_read_is_there_all_the_same() {
    let mut fleet = Fleet::placed(["a", "b"], []);
    fleet.unreadable_on.insert("a".to_owned());
    assert_eq!(fleet.decided(), outcome(["b"], []));
}

#[test]
fn every_add_on_of_a_cluster_that_leaves_is_removed_unless_somebody_else_sees_it_out() {
    for strategy in [json!({ "type": "Manual" }), json!({ "type": "ClusterLabelSelector", "labelSelector": {} })] {
        let mut fleet = Fleet::with(&strategy).installed(["a", "b"]).by_hand(["c", "d"]);
        fleet.available("a", "Unknown");
        for name in ["a", "c"] {
            fleet.change(name, leave);
        }
        assert_eq!(fleet.decide(noon()), outcome([], []));
        fleet.sees_clusters_out = true;
        assert_eq!(fleet.decide(noon()), outcome([], ["a", "c"]));
        let installed: Vec<_> = plan(None, &Choice::ByHand, &fleet, noon()).delete;
        assert_eq!(installed.len(), 2, "also when there is no such add-on any more");
    }
}

#[test]
fn an_add_on_that_is_on_its_way_out_is_left_alone() {
    let mut fleet = Fleet::placed(["a"], []).installed(["a", "d"]);
    for on_cluster in &mut fleet.installed {
        on_cluster.metadata.deletion_timestamp = Some(Time(noon()));
    }
    fleet.change("d", leave);
    fleet.sees_clusters_out = true;
    assert_eq!(fleet.decide(noon()), outcome([], []));
}

#[test]
fn an_add_on_stays_on_a_cluster_that_does_not_answer() {
    for status in ["False", "Unknown"] {
        let mut fleet = Fleet::placed([], []).installed(["a", "b"]);
        fleet.available("a", status);
        fleet.available("b", "True");
        assert_eq!(fleet.decide(noon()), outcome([], ["b"]));
        assert_eq!(fleet.decide(after(3600)), outcome([], ["b"]), "for however long");
    }
}

#[test]
fn a_cluster_that_is_back_is_given_time_to_be_selected_again() {
    let mut fleet = Fleet::placed([], []).installed(["a"]);
    fleet.available("a", "Unknown");
    assert_eq!(fleet.decide(noon()), outcome([], []));
    // It answers, and is tainted as if it did not.
    fleet.available("a", "True");
    let taint = json!({ "key": UNREACHABLE_TAINT, "effect": "NoSelect" });
    fleet.change("a", |cluster| cluster.spec.taints = vec![serde_json::from_value(taint).expect("a taint")]);
    assert_eq!(fleet.decide(after(100)), outcome([], []));
    fleet.change("a", |cluster| cluster.spec.taints.clear());
    assert_eq!(fleet.decide(after(200)), outcome([], []));
    assert_eq!(fleet.plan(after(200)).look_again, Some(after(210)));
    assert_eq!(fleet.decide(after(210)), outcome([], ["a"]));
}

#[test]
fn a_cluster_that_never_answered_does_not_keep_its_add_on() {
    assert_eq!(Fleet::placed([], []).installed(["a"]).decided(), outcome([], ["a"]));
    let mut gone = Fleet::placed([], []).installed(["a"]);
    gone.clusters.remove("a");
    assert_eq!(gone.decided(), outcome([], ["a"]));
    let mut unreadable = Fleet::placed([], []).installed(["a"]);
    unreadable.clusters.insert("a".to_owned(), Known::Unreadable);
    assert_eq!(unreadable.decided(), outcome([], []));
}

#[test]
fn a_placement_that_says_nothing_adds_nothing_and_keeps_everything() {
    let reference = PlacementRef { namespace: "default".to_owned(), name: "y".to_owned() };
    let undecided = Known::There(Placement::default());
    let mut leaving = Placement { status: Some(PlacementStatus::default()), ..Placement::default() };
    leaving.metadata.deletion_timestamp = Some(Time(noon()));
    for (placement, hindrance) in [
        (Known::Missing, Hindrance::Missing(reference.clone())),
        (Known::Unreadable, Hindrance::Unreadable(reference.clone())),
        (undecided, Hindrance::Undecided(reference.clone())),
        (Known::There(leaving), Hindrance::Leaving(reference.clone())),
    ] {
        let mut fleet = Fleet::placed(["a"], ["b"]).installed(["c"]);
        fleet.placements.insert("y".to_owned(), placement);
        assert_eq!(fleet.plan(noon()).hindrances, std::slice::from_ref(&hindrance));
        assert_eq!(fleet.decide(noon()), outcome(["a"], []), "{hindrance}");
        assert_eq!(fleet.decide(after(3600)), outcome(["a"], []), "{hindrance}");
    }
    let mut fleet = Fleet::placed(["a"], []).installed(["c"]);
    fleet.unreadable_slice = true;
    let both = ["x", "y"].map(|name| PlacementRef { name: name.to_owned(), ..reference.clone() });
    assert_eq!(fleet.plan(noon()).hindrances, both.map(Hindrance::UnreadableDecision));
    assert_eq!(fleet.decide(after(3600)), outcome([], []));
}

#[test]
fn a_cluster_that_moves_from_slice_to_slice_keeps_its_add_on() {
    let mut fleet = Fleet::placed([], []).installed(["a", "b", "c"]);
    fleet.select("x", &[&["a", "b"], &["c"]]);
    assert_eq!(fleet.decide(noon()), outcome([], []));
    // One slice has lost a cluster, and the other does not have it yet.
    fleet.slice("x", &[&["a"], &["c"]]);
    assert_eq!(fleet.decide(after(1)), outcome([], []));
    assert_eq!(fleet.plan(after(1)).look_again, Some(after(11)));
    assert_eq!(fleet.decide(after(10)), outcome([], []));
    fleet.slice("x", &[&["a"], &["b", "c"]]);
    assert_eq!(fleet.decide(after(11)), outcome([], []));
    // It is in two slices for a moment, which counts once.
    fleet.slice("x", &[&["a", "b"], &["b", "c"]]);
    assert_eq!(fleet.decide(after(12)), outcome([], []));
    assert!(fleet.absent.is_empty());
}

#[test]
fn an_absence_is_confirmed_by_the_count_or_by_time() {
    let mut fleet = Fleet::placed([], []).installed(["a", "b"]);
    fleet.select("x", &[&["a", "b"]]);
    fleet.slice("x", &[&["a"]]);
    assert_eq!(fleet.decide(noon()), outcome([], []), "it says that there are two");
    let mut counted = Fleet { absent: fleet.absent.clone(), ..Fleet::placed(["a"], []).installed(["a", "b"]) };
    assert_eq!(counted.decide(after(1)), outcome([], ["b"]), "it says that there is one");
    assert_eq!(fleet.decide(after(9)), outcome([], []));
    assert_eq!(fleet.decide(after(10)), outcome([], ["b"]), "it had time enough");
}

#[test]
fn one_placement_that_is_not_settled_is_enough_to_wait() {
    let mut fleet = Fleet::placed(["a"], []).installed(["a", "b"]);
    fleet.count("y", 1);
    assert_eq!(fleet.decide(noon()), outcome([], []));
}

#[test]
fn labels_choose_clusters_that_are_accepted() {
    let mut fleet =
        Fleet::with(&json!({ "type": "ClusterLabelSelector", "labelSelector": { "matchLabels": { "env": "prod" } } }))
            .installed(["c", "d"]);
    for name in ["a", "b", "c"] {
        fleet.change(name, |cluster| drop(cluster.labels_mut().insert("env".to_owned(), "prod".to_owned())));
    }
    fleet.change("b", |cluster| cluster.spec.hub_accepts_client = false);
    assert_eq!(fleet.decide(noon()), outcome(["a"], ["d"]));
    let everywhere = Fleet::with(&json!({ "type": "ClusterLabelSelector", "labelSelector": {} }));
    assert_eq!(everywhere.decided(), outcome(["a", "b", "c", "d"], []));
}

#[test]
fn a_list_without_placements_moves_nobody() {
    let mut fleet = Fleet::with(&json!({ "type": "Placements" })).installed(["d"]);
    assert_eq!(fleet.plan(noon()).hindrances, [Hindrance::NoPlacements]);
    assert_eq!(fleet.decide(noon()), outcome([], []));
}

#[test]
fn a_selector_that_makes_no_sense_moves_nobody() {
    let requirement = LabelSelectorRequirement {
        key: "env".to_owned(),
        operator: "in".to_owned(),
        values: Some(vec!["prod".to_owned()]),
    };
    let wrong = LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None };
    for (selector, told) in [(Some(wrong), "the operator \"in\""), (None, "write a selector")] {
        let mut fleet = Fleet::with(&json!({ "type": "ClusterLabelSelector" })).installed(["d"]);
        fleet.addon.spec.install_strategy.as_mut().expect("it has one").label_selector = selector;
        let hindrances = fleet.plan(noon()).hindrances;
        assert!(hindrances[0].to_string().contains(told), "{hindrances:?}");
        assert_eq!(fleet.decide(noon()), outcome([], []));
    }
}

#[test]
fn what_is_made_has_what_its_placement_says_and_comes_with_its_owner() {
    let entry = |name: &str, namespace: &str| {
        let template = json!({ "installNamespace": namespace, "installVersion": "1.2.3",
            "configs": [{ "resource": "configmaps", "name": "x" }] });
        json!({ "namespace": "default", "name": name, "addonTemplate": template })
    };
    let mut fleet =
        Fleet::with(&json!({ "type": "Placements", "placements": [entry("x", "in-x"), entry("y", "in-y")] }));
    fleet.select("x", &[&["a", "b"]]);
    fleet.select("y", &[&["b"]]);
    let create = fleet.plan(noon()).create;
    assert_eq!(create, [(ClusterName::from("a"), Some(0)), (ClusterName::from("b"), Some(1))]);

    let mut cluster = cluster("b");
    cluster.annotations_mut().insert("addon.open-cluster-management.io/on".to_owned(), "b".to_owned());
    let made = made_for(&cluster, &fleet.addon, Some(1));
    assert_eq!((made.name_any(), made.namespace()), ("hello".to_owned(), Some("b".to_owned())));
    let spec = ManagedClusterAddOnSpec { install_namespace: Some("in-y".to_owned()), ..Default::default() };
    assert_eq!(made.spec, spec, "versions and configurations come by the rollout");
    let annotations: Vec<_> = made.annotations().iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(
        annotations,
        [
            "addon.open-cluster-management.io/on=b",
            "drover.dev/copied-annotations=addon.open-cluster-management.io/on",
            "drover.dev/installed=true"
        ]
    );
    let owner = &made.owner_references()[0];
    assert_eq!((owner.uid.as_str(), owner.controller, owner.block_owner_deletion), ("uid", Some(true), Some(true)));
}

#[test]
fn what_is_adopted_counts_as_made_by_the_hub() {
    let mut fleet = Fleet::placed([], []).by_hand(["a"]);
    fleet.installed[0] = adopted(&fleet.installed[0]);
    assert_eq!(fleet.decide(noon()), outcome([], ["a"]));
}
