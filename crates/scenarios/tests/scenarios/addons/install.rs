//! Where add-ons are installed: the stories of the install strategy, and what may not happen on the way.

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    addon::ManagedClusterAddOn,
    cluster::{Placement, PlacementDecision},
    names::{
        CLEANUP_PRIORITY_ANNOTATION, COPIED_ANNOTATIONS_ANNOTATION, INSTALLED_ANNOTATION, LIFECYCLE_ANNOTATION,
        PLACEMENT_LABEL, TOKEN_INFRASTRUCTURE_READY,
    },
};
use drover_hub::{Hub, Options};
use drover_runtime::clock::Clock;
use drover_testkit::{
    World,
    objects::{self, Described as _, Installed as _},
    play::Agent,
    wait,
};
use futures_util::future::join_all;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    addons, by_placements, clusters, make_kept, offer, offers, placing, start_some, uid, until_noticed, until_off,
    until_on,
};
use crate::running::{
    as_hub, bound_namespace, change, condition, create, hub_clock, make_cluster, options, selected, start, start_at,
};

drover_testkit::scenarios! {
    Own {
        an_add_on_comes_and_goes_with_the_decisions_of_its_placement,
        several_placements_each_say_how_it_is_installed,
        labels_choose_the_clusters_of_an_add_on,
        a_manual_strategy_keeps_all_and_overrides_nothing_when_it_ends,
        what_somebody_made_by_hand_is_left_alone_inside_and_outside,
        a_cluster_that_is_being_deleted_loses_every_add_on_and_gets_none,
        a_cluster_that_does_not_answer_keeps_its_add_on,
        a_placement_that_is_missing_removes_nothing,
        a_cluster_in_no_slice_for_a_moment_keeps_its_add_on,
        an_add_on_that_is_deleted_goes_from_its_clusters,
        an_add_on_that_somebody_else_manages_is_left_alone,
        what_another_manager_installed_is_taken_over_when_asked,
        annotations_of_a_cluster_reach_its_add_ons,
        many_clusters_get_an_add_on_at_one_time,
        a_cluster_without_room_holds_up_no_other,
        an_agent_that_uses_tokens_gets_an_account,
    }
}

async fn label(world: &World, cluster: &str, key: &str, value: Option<&str>) {
    change(&clusters(world), cluster, json!({ "metadata": { "labels": { key: value } } })).await;
}

async fn until_installed_by(world: &World, cluster: &str, namespace: &str) {
    wait::until(&addons(world, cluster), "hello", &format!("it is installed in {namespace}"), |addon| {
        addon.spec.install_namespace.as_deref() == Some(namespace)
    })
    .await;
}

async fn an_add_on_comes_and_goes_with_the_decisions_of_its_placement(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["one", "two"] {
        make_cluster(&world, cluster, "default").await;
    }
    let namespace = placing(&world, ["aws"]).await;
    let addon = offer(&world, "hello", by_placements(&namespace, ["aws"])).await;

    label(&world, "one", "aws", Some("true")).await;
    let made = until_on(&world, "one", "hello").await;
    let owner = &made.owner_references()[0];
    assert_eq!(
        (Some(&owner.uid), owner.controller, owner.block_owner_deletion),
        (addon.uid().as_ref(), Some(true), Some(true))
    );
    assert_eq!(made.annotations().get(INSTALLED_ANNOTATION).map(String::as_str), Some("true"));
    assert_eq!(uid(&world, "two", "hello").await, None);

    label(&world, "two", "aws", Some("true")).await;
    until_on(&world, "two", "hello").await;
    label(&world, "one", "aws", None).await;
    until_off(&world, "one", "hello").await;
    until_on(&world, "two", "hello").await;
    hub.stop().await;
}

async fn several_placements_each_say_how_it_is_installed(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for (cluster, clouds) in [("aws-1", &["aws"][..]), ("gcp-1", &["gcp"]), ("both", &["aws", "gcp"]), ("late", &[])] {
        make_cluster(&world, cluster, "default").await;
        for cloud in clouds {
            label(&world, cluster, cloud, Some("true")).await;
        }
    }
    let namespace = placing(&world, ["aws", "gcp"]).await;
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    for placement in ["aws", "gcp"] {
        wait::until(&placements, placement, "it is decided", |it| selected(it) == Some(2)).await;
    }
    let entry = |cloud: &str| {
        let template = json!({ "installNamespace": format!("{cloud}-addon-ns"), "installVersion": "1.2.3" });
        json!({ "namespace": namespace, "name": cloud, "addonTemplate": template })
    };
    offer(&world, "hello", json!({ "type": "Placements", "placements": [entry("aws"), entry("gcp")] })).await;
    for (cluster, namespace) in [("aws-1", "aws-addon-ns"), ("gcp-1", "gcp-addon-ns"), ("both", "gcp-addon-ns")] {
        until_installed_by(&world, cluster, namespace).await;
    }

    // The template counts when an add-on is made. What a user sets is not reverted, whatever becomes of placements.
    change(&addons(&world, "aws-1"), "hello", json!({ "spec": { "installNamespace": "mine" } })).await;
    label(&world, "aws-1", "gcp", Some("true")).await;
    label(&world, "both", "gcp", None).await;
    label(&world, "late", "gcp", Some("true")).await;
    until_installed_by(&world, "late", "gcp-addon-ns").await;
    until_installed_by(&world, "aws-1", "mine").await;
    until_installed_by(&world, "both", "gcp-addon-ns").await;
    hub.stop().await;
}

async fn labels_choose_the_clusters_of_an_add_on(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["one", "two"] {
        make_cluster(&world, cluster, "default").await;
    }
    let mut denied = objects::cluster("denied").labelled("env", "prod");
    denied.spec.hub_accepts_client = false;
    create(&clusters(&world), denied).await;
    world.namespace_named("denied").await;
    let prod = json!({ "matchLabels": { "env": "prod" } });
    offer(&world, "hello", json!({ "type": "ClusterLabelSelector", "labelSelector": prod })).await;

    label(&world, "one", "env", Some("prod")).await;
    until_on(&world, "one", "hello").await;
    label(&world, "two", "env", Some("prod")).await;
    until_on(&world, "two", "hello").await;
    label(&world, "one", "env", Some("test")).await;
    until_off(&world, "one", "hello").await;
    assert_eq!(uid(&world, "denied", "hello").await, None, "who is not accepted gets nothing");
    change(&clusters(&world), "denied", json!({ "spec": { "hubAcceptsClient": true } })).await;
    until_on(&world, "denied", "hello").await;

    // All clusters, which come as they come.
    change(
        &offers(&world),
        "hello",
        json!({ "spec": { "installStrategy": { "labelSelector": { "matchLabels": null } } } }),
    )
    .await;
    until_on(&world, "one", "hello").await;
    make_cluster(&world, "three", "default").await;
    until_on(&world, "three", "hello").await;
    hub.stop().await;
}

async fn a_manual_strategy_keeps_all_and_overrides_nothing_when_it_ends(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["one", "two", "three", "four"] {
        make_cluster(&world, cluster, "default").await;
    }
    let namespace = placing(&world, ["chosen"]).await;
    for cluster in ["one", "two"] {
        label(&world, cluster, "chosen", Some("true")).await;
    }
    let placed = by_placements(&namespace, ["chosen"]);
    offer(&world, "hello", placed.clone()).await;
    until_on(&world, "one", "hello").await;
    until_on(&world, "two", "hello").await;

    change(
        &offers(&world),
        "hello",
        json!({ "spec": { "installStrategy": { "type": "Manual", "placements": null } } }),
    )
    .await;
    label(&world, "one", "chosen", None).await;
    label(&world, "three", "chosen", Some("true")).await;
    addons(&world, "two").delete("hello", &DeleteParams::default()).await.expect("an add-on can be deleted");
    let mut own = objects::addon_on("three", "hello");
    own.spec.install_namespace = Some("mine".to_owned());
    create(&addons(&world, "three"), own).await;
    let kept = uid(&world, "one", "hello").await;
    let own = uid(&world, "three", "hello").await;
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    wait::until(&placements, "chosen", "it is decided", |it| selected(it) == Some(2)).await;
    until_noticed(&world, "four").await;
    assert!(kept.is_some() && uid(&world, "one", "hello").await == kept, "all that was made is kept");
    assert_eq!(uid(&world, "two", "hello").await, None, "what is deleted stays deleted");

    change(&offers(&world), "hello", json!({ "spec": { "installStrategy": placed } })).await;
    until_on(&world, "two", "hello").await;
    until_off(&world, "one", "hello").await;
    let still = until_on(&world, "three", "hello").await;
    assert_eq!((still.uid(), still.spec.install_namespace.as_deref()), (own, Some("mine")));
    assert!(!still.annotations().contains_key(INSTALLED_ANNOTATION), "nothing is adopted");
    hub.stop().await;
}

async fn what_somebody_made_by_hand_is_left_alone_inside_and_outside(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["inside", "outside", "marker"] {
        make_cluster(&world, cluster, "default").await;
        wait::until(&Api::<Namespace>::all(world.client()), cluster, "the cluster has a namespace", |_| true).await;
    }
    let mut by_hand = BTreeMap::new();
    for cluster in ["inside", "outside"] {
        let mut addon = objects::addon_on(cluster, "hello");
        addon.spec.install_namespace = Some("mine".to_owned());
        by_hand.insert(cluster, create(&addons(&world, cluster), addon).await.uid());
    }
    let namespace = placing(&world, ["chosen"]).await;
    label(&world, "inside", "chosen", Some("true")).await;
    offer(&world, "hello", by_placements(&namespace, ["chosen"])).await;
    let is_owned = |addon: &ManagedClusterAddOn| addon.owner_references().len() == 1;
    for cluster in ["inside", "outside"] {
        wait::until(&addons(&world, cluster), "hello", "it is owned", is_owned).await;
    }
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    wait::until(&placements, "chosen", "it is decided", |it| selected(it) == Some(1)).await;
    label(&world, "inside", "chosen", None).await;
    wait::until(&placements, "chosen", "it is decided again", |it| selected(it) == Some(0)).await;
    until_noticed(&world, "marker").await;
    for cluster in ["inside", "outside"] {
        let addon = addons(&world, cluster).get("hello").await.expect("it is left alone");
        assert_eq!((addon.uid(), addon.spec.install_namespace.as_deref()), (by_hand[cluster].clone(), Some("mine")));
    }
    hub.stop().await;
}

async fn a_cluster_that_is_being_deleted_loses_every_add_on_and_gets_none(world: World) {
    // Nobody else sees the cluster out.
    let hub = start_some(as_hub(&world).await, "*,-cluster", Clock::system()).await;
    for cluster in ["leaving", "marker"] {
        make_kept(&world, cluster).await;
    }
    let held = "example.com/held";
    let all = json!({ "type": "ClusterLabelSelector", "labelSelector": {} });
    offer(&world, "hello", all.clone()).await;
    offer(&world, "manual", json!({ "type": "Manual" })).await;
    until_on(&world, "leaving", "hello").await;
    let mut first = objects::addon_on("leaving", "manual");
    first.finalizers_mut().push(held.to_owned());
    create(&addons(&world, "leaving"), first).await;
    create(&addons(&world, "leaving"), objects::addon_on("leaving", "unknown")).await;
    let later = json!({ "metadata": { "annotations": { CLEANUP_PRIORITY_ANNOTATION: "10" } } });
    let hello = change(&addons(&world, "leaving"), "hello", later).await;

    change(&clusters(&world), "leaving", json!({ "metadata": { "finalizers": [held] } })).await;
    clusters(&world).delete("leaving", &DeleteParams::default()).await.expect("a cluster can be deleted");
    until_off(&world, "leaving", "unknown").await;
    wait::until(&addons(&world, "leaving"), "manual", "it is removed", |it| it.metadata.deletion_timestamp.is_some())
        .await;
    offer(&world, "late", all).await;
    until_on(&world, "marker", "late").await;
    assert_eq!(uid(&world, "leaving", "hello").await, hello.uid(), "its turn comes later");
    assert_eq!(uid(&world, "leaving", "late").await, None, "nothing comes to a cluster that leaves");
    change(&addons(&world, "leaving"), "manual", json!({ "metadata": { "finalizers": null } })).await;
    until_off(&world, "leaving", "hello").await;
    hub.stop().await;
}

async fn a_cluster_that_does_not_answer_keeps_its_add_on(world: World) {
    let clock = hub_clock();
    let hub = start_at(as_hub(&world).await, None, clock.clock()).await;
    let (silent, talking) = (Agent::join(&world, "silent").await, Agent::join(&world, "talking").await);
    let namespace = bound_namespace(&world, "default").await;
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    create(&placements, Placement::default().named("all")).await;
    offer(&world, "hello", by_placements(&namespace, ["all"])).await;
    let before = until_on(&world, "silent", "hello").await.uid();
    until_on(&world, "talking", "hello").await;

    clock.advance(Duration::from_mins(4));
    talking.renew_lease_at(clock.clock().now()).await;
    wait::until(&clusters(&world), "talking", "the hub has seen the renewal", |cluster| {
        cluster
            .status
            .iter()
            .any(|status| condition(&status.conditions, "ManagedClusterConditionClockSynced").is_some())
    })
    .await;
    clock.advance(Duration::from_mins(1));
    wait::until(&placements, "all", "it selects one", |it| selected(it) == Some(1)).await;
    until_noticed(&world, "talking").await;
    assert_eq!(uid(&world, "silent", "hello").await, before, "a network failure is not a deselection");

    silent.renew_lease_at(clock.clock().now()).await;
    silent.report_available().await;
    wait::until(&placements, "all", "it selects both again", |it| selected(it) == Some(2)).await;
    clock.advance(Duration::from_mins(1));
    until_noticed(&world, "talking").await;
    assert_eq!(uid(&world, "silent", "hello").await, before, "nor is its end");

    // It is deselected while it is away, and loses the add-on when it is back.
    clock.advance(Duration::from_mins(3));
    talking.renew_lease_at(clock.clock().now()).await;
    clock.advance(Duration::from_mins(2));
    wait::until(&placements, "all", "it selects one", |it| selected(it) == Some(1)).await;
    change(
        &clusters(&world),
        "silent",
        json!({ "spec": { "taints": [{ "key": "example.com/out", "effect": "NoSelect" }] } }),
    )
    .await;
    silent.renew_lease_at(clock.clock().now()).await;
    silent.report_available().await;
    wait::until(&clusters(&world), "silent", "it is well", |it| it.spec.taints.len() == 1).await;
    until_noticed(&world, "talking").await;
    clock.advance(Duration::from_secs(10));
    until_off(&world, "silent", "hello").await;
    hub.stop().await;
}

async fn a_placement_that_is_missing_removes_nothing(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["one", "two", "marker"] {
        make_cluster(&world, cluster, "default").await;
    }
    let namespace = placing(&world, ["here", "gone"]).await;
    label(&world, "one", "here", Some("true")).await;
    label(&world, "two", "gone", Some("true")).await;
    offer(&world, "hello", by_placements(&namespace, ["here", "gone"])).await;
    let before = [until_on(&world, "one", "hello").await.uid(), until_on(&world, "two", "hello").await.uid()];

    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    let slices = Api::<PlacementDecision>::namespaced(world.client(), &namespace);
    placements.delete("gone", &DeleteParams::default()).await.expect("a placement can be deleted");
    wait::gone(&slices, "gone-decision-1").await;
    label(&world, "one", "here", None).await;
    wait::until(&placements, "here", "it selects nobody", |it| selected(it) == Some(0)).await;
    until_noticed(&world, "marker").await;
    assert_eq!([uid(&world, "one", "hello").await, uid(&world, "two", "hello").await], before);
    label(&world, "marker", "here", Some("true")).await;
    until_on(&world, "marker", "hello").await;

    // It is taken off the list, and what it selected goes.
    change(&offers(&world), "hello", json!({ "spec": { "installStrategy": by_placements(&namespace, ["here"]) } }))
        .await;
    until_off(&world, "one", "hello").await;
    until_off(&world, "two", "hello").await;
    hub.stop().await;
}

/// Decisions that are made by hand.
struct ByHand<'a> {
    world: &'a World,
    namespace: String,
}

impl ByHand<'_> {
    /// Makes a slice of a placement list these clusters.
    async fn slice(&self, placement: &str, number: u8, clusters: &[&str]) {
        let slices = Api::<PlacementDecision>::namespaced(self.world.client(), &self.namespace);
        let name = format!("{placement}-decision-{number}");
        if slices.get_opt(&name).await.expect("decisions can be read").is_none() {
            let slice = PlacementDecision::default().named(&name).labelled(PLACEMENT_LABEL, placement);
            create(&slices, slice).await;
        }
        let decisions: Vec<_> = clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
        self.status(&slices, &name, json!({ "decisions": decisions })).await;
    }

    /// Makes a placement say that it has selected so many clusters.
    async fn count(&self, placement: &str, count: usize) {
        let placements = Api::<Placement>::namespaced(self.world.client(), &self.namespace);
        if placements.get_opt(placement).await.expect("placements can be read").is_none() {
            create(&placements, Placement::default().named(placement)).await;
        }
        self.status(&placements, placement, json!({ "numberOfSelectedClusters": count })).await;
    }

    async fn status<K: Clone + serde::de::DeserializeOwned + std::fmt::Debug>(
        &self,
        api: &Api<K>,
        name: &str,
        status: Value,
    ) {
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &PatchParams::default(), &patch).await.expect("a status can be written");
    }

    /// Waits until the hub has seen all decisions that were made before.
    async fn until_noticed(&self, cluster: &str) {
        let marker = self.world.unique("marker");
        self.slice(&marker, 1, &[cluster]).await;
        self.count(&marker, 1).await;
        offer(self.world, &marker, by_placements(&self.namespace, [&marker])).await;
        until_on(self.world, cluster, &marker).await;
    }
}

async fn a_cluster_in_no_slice_for_a_moment_keeps_its_add_on(world: World) {
    let clock = hub_clock();
    let hub = start_some(as_hub(&world).await, "*,-placement,-cluster", clock.clock()).await;
    for cluster in ["a", "b", "c"] {
        make_kept(&world, cluster).await;
    }
    let by_hand = ByHand { world: &world, namespace: world.namespace("placing").await };
    by_hand.slice("x", 1, &["a", "b"]).await;
    by_hand.slice("x", 2, &["c"]).await;
    by_hand.count("x", 3).await;
    offer(&world, "hello", by_placements(&by_hand.namespace, ["x"])).await;
    for cluster in ["a", "b", "c"] {
        until_on(&world, cluster, "hello").await;
    }
    let before = uid(&world, "b", "hello").await;

    by_hand.slice("x", 1, &["a"]).await;
    by_hand.until_noticed("a").await;
    assert_eq!(uid(&world, "b", "hello").await, before, "it is in no slice at the moment");
    by_hand.slice("x", 2, &["b", "c"]).await;
    by_hand.until_noticed("a").await;
    clock.advance(Duration::from_mins(1));
    by_hand.until_noticed("a").await;
    assert_eq!(uid(&world, "b", "hello").await, before, "it has moved");

    // The placement never says that it has one cluster less.
    by_hand.slice("x", 2, &["c"]).await;
    by_hand.until_noticed("a").await;
    clock.advance(Duration::from_secs(9));
    by_hand.until_noticed("a").await;
    assert_eq!(uid(&world, "b", "hello").await, before);
    clock.advance(Duration::from_secs(1));
    until_off(&world, "b", "hello").await;

    // It says so, and nobody has to wait.
    by_hand.slice("x", 2, &[]).await;
    by_hand.count("x", 1).await;
    until_off(&world, "c", "hello").await;
    until_on(&world, "a", "hello").await;
    hub.stop().await;
}

async fn an_add_on_that_is_deleted_goes_from_its_clusters(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    for cluster in ["one", "two"] {
        make_cluster(&world, cluster, "default").await;
        wait::until(&Api::<Namespace>::all(world.client()), cluster, "the cluster has a namespace", |_| true).await;
    }
    label(&world, "one", "env", Some("prod")).await;
    create(&addons(&world, "two"), objects::addon_on("two", "hello")).await;
    let prod = json!({ "matchLabels": { "env": "prod" } });
    offer(&world, "hello", json!({ "type": "ClusterLabelSelector", "labelSelector": prod })).await;
    until_on(&world, "one", "hello").await;
    wait::until(&addons(&world, "two"), "hello", "it is owned", |addon| addon.owner_references().len() == 1).await;
    offers(&world).delete("hello", &DeleteParams::default()).await.expect("an add-on can be deleted");
    until_off(&world, "one", "hello").await;
    until_off(&world, "two", "hello").await;
    hub.stop().await;
}

async fn an_add_on_that_somebody_else_manages_is_left_alone(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    make_cluster(&world, "one", "default").await;
    let mut addon = objects::addon("hello").annotated(LIFECYCLE_ANNOTATION, "self");
    let all = json!({ "type": "ClusterLabelSelector", "labelSelector": {} });
    addon.spec.install_strategy = serde_json::from_value(all).expect("a strategy");
    create(&offers(&world), addon).await;
    until_noticed(&world, "one").await;
    create(&addons(&world, "one"), objects::addon_on("one", "other")).await;
    create(&offers(&world), objects::addon("other").annotated(LIFECYCLE_ANNOTATION, "self")).await;
    until_noticed(&world, "one").await;
    assert_eq!(uid(&world, "one", "hello").await, None);
    let other = addons(&world, "one").get("other").await.expect("the add-on is there");
    assert!(other.owner_references().is_empty());

    let ours = json!({ "metadata": { "annotations": { LIFECYCLE_ANNOTATION: "addon-manager" } } });
    for addon in ["hello", "other"] {
        change(&offers(&world), addon, ours.clone()).await;
    }
    until_on(&world, "one", "hello").await;
    wait::until(&addons(&world, "one"), "other", "it is owned", |addon| addon.owner_references().len() == 1).await;
    hub.stop().await;
}

async fn what_another_manager_installed_is_taken_over_when_asked(world: World) {
    let client = as_hub(&world).await;
    let hub = start_some(client.clone(), "*,-addon", Clock::system()).await;
    for cluster in ["inside", "outside", "marker"] {
        make_cluster(&world, cluster, "default").await;
        wait::until(&Api::<Namespace>::all(world.client()), cluster, "the cluster has a namespace", |_| true).await;
    }
    let namespace = placing(&world, ["chosen"]).await;
    label(&world, "inside", "chosen", Some("true")).await;
    let placements = Api::<Placement>::namespaced(world.client(), &namespace);
    wait::until(&placements, "chosen", "it is decided", |it| selected(it) == Some(1)).await;
    create(&offers(&world), objects::addon("hello").on_placement(&namespace, "chosen")).await;
    for cluster in ["inside", "outside"] {
        create(&addons(&world, cluster), objects::addon_on(cluster, "hello")).await;
    }
    hub.stop().await;

    let options = Options { adopt_existing: true, ..options() };
    let hub = Hub::start(client, &options, Clock::system()).await.expect("the hub starts");
    let is_marked = |addon: &ManagedClusterAddOn| addon.annotations().contains_key(INSTALLED_ANNOTATION);
    wait::until(&addons(&world, "inside"), "hello", "it is taken over", is_marked).await;
    // What somebody makes from now on is his own.
    create(&addons(&world, "marker"), objects::addon_on("marker", "hello")).await;
    label(&world, "marker", "chosen", Some("true")).await;
    wait::until(&placements, "chosen", "it is decided again", |it| selected(it) == Some(2)).await;
    for cluster in ["inside", "marker"] {
        label(&world, cluster, "chosen", None).await;
    }
    until_off(&world, "inside", "hello").await;
    until_noticed(&world, "marker").await;
    for cluster in ["outside", "marker"] {
        assert!(!is_marked(&addons(&world, cluster).get("hello").await.expect("it stays")), "{cluster}");
    }
    hub.stop().await;
}

async fn annotations_of_a_cluster_reach_its_add_ons(world: World) {
    const A: &str = "addon.open-cluster-management.io/a";
    const B: &str = "addon.open-cluster-management.io/b";
    let hub = start(as_hub(&world).await, None).await;
    make_cluster(&world, "one", "default").await;
    let annotate = async |annotations: Value| {
        change(&clusters(&world), "one", json!({ "metadata": { "annotations": annotations } })).await;
    };
    let until = async |addon: &str, wanted: &[(&str, &str)]| {
        wait::until(&addons(&world, "one"), addon, &format!("it has {wanted:?}"), |found| {
            let annotations =
                found.annotations().iter().filter(|(key, _)| key.contains('a') && *key != INSTALLED_ANNOTATION);
            annotations.map(|(key, value)| (key.as_str(), value.as_str())).eq(wanted.iter().copied())
        })
        .await;
    };
    annotate(json!({ A: "1", "other": "x" })).await;
    offer(&world, "hello", json!({ "type": "ClusterLabelSelector", "labelSelector": {} })).await;
    until("hello", &[(A, "1"), (COPIED_ANNOTATIONS_ANNOTATION, A)]).await;
    create(&offers(&world), objects::addon("manual")).await;
    create(&addons(&world, "one"), objects::addon_on("one", "manual")).await;

    annotate(json!({ A: "2", B: "3" })).await;
    let both = format!("{A},{B}");
    until("hello", &[(A, "2"), (B, "3"), (COPIED_ANNOTATIONS_ANNOTATION, &both)]).await;
    annotate(json!({ A: null })).await;
    until("hello", &[(B, "3"), (COPIED_ANNOTATIONS_ANNOTATION, B)]).await;
    // A user's own stays, whatever the cluster has.
    change(&addons(&world, "one"), "hello", json!({ "metadata": { "annotations": { A: "mine" } } })).await;
    annotate(json!({ A: "4", B: null })).await;
    until("hello", &[(A, "mine")]).await;
    until("manual", &[]).await;
    hub.stop().await;
}

async fn many_clusters_get_an_add_on_at_one_time(world: World) {
    const MANY: usize = 260;
    /// How many are dealt with in one step.
    const STEP: usize = 256;
    let client = as_hub(&world).await;
    let names: Vec<_> = (0..MANY).map(|number| format!("cluster-{number:03}")).collect();
    for some in names.chunks(20) {
        join_all(some.iter().map(|cluster| async {
            create(&clusters(&world), objects::cluster(cluster)).await;
            world.namespace_named(cluster).await;
        }))
        .await;
    }
    let hub = start_some(client, "addon", Clock::system()).await;
    offer(&world, "hello", json!({ "type": "ClusterLabelSelector", "labelSelector": {} })).await;
    // When the second step is begun, all of the first are answered.
    for cluster in &names[STEP..] {
        until_on(&world, cluster, "hello").await;
    }
    let everywhere = Api::<ManagedClusterAddOn>::all(world.client());
    let count = async || everywhere.list(&ListParams::default()).await.expect("add-ons can be read").items.len();
    assert_eq!(count().await, MANY);
    let nobody = json!({ "matchLabels": { "no": "one" } });
    change(&offers(&world), "hello", json!({ "spec": { "installStrategy": { "labelSelector": nobody } } })).await;
    for cluster in &names[STEP..] {
        until_off(&world, cluster, "hello").await;
    }
    assert_eq!(count().await, 0);
    hub.stop().await;
}

async fn a_cluster_without_room_holds_up_no_other(world: World) {
    let hub = start_some(as_hub(&world).await, "*,-cluster", Clock::system()).await;
    make_cluster(&world, "nowhere", "default").await;
    make_kept(&world, "closing").await;
    let mut held = objects::work("closing", "held", [objects::config_map("x")]);
    held.finalizers_mut().push("example.com/held".to_owned());
    create(&Api::namespaced(world.client(), "closing"), held).await;
    let namespaces = Api::<Namespace>::all(world.client());
    namespaces.delete("closing", &DeleteParams::default()).await.expect("a namespace can be deleted");
    make_kept(&world, "fine").await;
    offer(&world, "hello", json!({ "type": "ClusterLabelSelector", "labelSelector": {} })).await;
    until_on(&world, "fine", "hello").await;
    world.namespace_named("nowhere").await;
    until_on(&world, "nowhere", "hello").await;
    make_kept(&world, "late").await;
    until_on(&world, "late", "hello").await;
    assert_eq!(uid(&world, "closing", "hello").await, None);
    hub.stop().await;
}

async fn an_agent_that_uses_tokens_gets_an_account(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let agent = Agent::join(&world, "one").await;
    offer(&world, "hello", json!({ "type": "ClusterLabelSelector", "labelSelector": {} })).await;
    until_on(&world, "one", "hello").await;
    let own = Api::<ManagedClusterAddOn>::namespaced(agent.client(), "one");
    let driver = async |driver: &str| {
        let registrations = json!([{ "type": "kubeClient", "kubeClient": { "driver": driver } }]);
        let patch = Patch::Merge(json!({ "status": { "registrations": registrations } }));
        own.patch_status("hello", &PatchParams::default(), &patch).await.expect("an agent reports on its add-ons");
    };
    let ready = |addon: &ManagedClusterAddOn| {
        let conditions = addon.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        conditions.into_iter().find(|condition| condition.type_ == TOKEN_INFRASTRUCTURE_READY)
    };
    driver("token").await;
    let addon = wait::until(&own, "hello", "its agent can ask for tokens", |addon| {
        ready(addon).is_some_and(|condition| condition.status == "True")
    })
    .await;
    let accounts = Api::<ServiceAccount>::namespaced(world.client(), "one");
    let account = accounts.get("hello-agent").await.expect("the account is there");
    let told = ready(&addon).map(|condition| condition.message).unwrap_or_default();
    assert_eq!(told, format!("ServiceAccount one/hello-agent (UID: {}) is ready", account.uid().unwrap_or_default()));

    // The agent may ask for tokens of this account, and of no other.
    let ask = async |account: &str| {
        let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
        let accounts = Api::<ServiceAccount>::namespaced(agent.client(), "one");
        accounts.create_token_request(account, &PostParams::default(), &request).await
    };
    wait::attempt("the agent gets a token", async || ask("hello-agent").await.map_err(|error| error.to_string())).await;
    let refused = ask("default").await.expect_err("it is not its account");
    assert!(refused.to_string().contains("cannot create resource"), "{refused}");

    // What is taken away comes back, with another account another UID.
    accounts.delete("hello-agent", &DeleteParams::default()).await.expect("an account can be deleted");
    wait::until(&own, "hello", "there is another account", |addon| {
        ready(addon).is_some_and(|condition| condition.status == "True" && condition.message != told)
    })
    .await;

    driver("csr").await;
    wait::gone(&accounts, "hello-agent").await;
    wait::until(&own, "hello", "nothing is said of tokens", |addon| ready(addon).is_none()).await;
    let (roles, bindings) =
        (Api::<Role>::namespaced(world.client(), "one"), Api::<RoleBinding>::namespaced(world.client(), "one"));
    assert_eq!(roles.list(&ListParams::default()).await.expect("roles can be read").items.len(), 0);
    let role = "hello-token-role";
    assert_eq!(bindings.get_opt(role).await.expect("bindings can be read"), None);

    // Whoever may not give away the right for tokens says so.
    world.kubectl(["delete", "clusterrolebinding", "drover-hub-addon-tokens"]).await.success();
    driver("token").await;
    let failed = wait::until(&own, "hello", "it says why not", |addon| {
        ready(addon).is_some_and(|condition| condition.reason == "TokenInfrastructureApplyFailed")
    })
    .await;
    let told = ready(&failed).map(|condition| condition.message).unwrap_or_default();
    assert!(told.contains("could not Create ServiceAccount one/hello-agent") && told.contains("forbidden"), "{told}");
    hub.stop().await;
}
