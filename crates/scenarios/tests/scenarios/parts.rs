//! The agent and the add-on manager that testkit plays do their work through the API, and no more than their permissions allow. A
//! crowd of clusters does both parts, as it is told.

use std::time::Duration;

use drover_api::{addon::ManagedClusterAddOn, work::ManifestWork};
use drover_testkit::{
    World, objects,
    play::{AddOnManager, Agent, Behaviour, Crowd},
    wait,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::running::{as_hub, start};

drover_testkit::scenarios! {
    Shared {
        a_crowd_deploys_what_was_given_and_answers_as_it_is_told,
        a_crowd_deploys_again_what_was_removed,
    }
    Own {
        what_a_manager_deploys_is_reported_by_the_agent,
        an_agent_touches_only_what_is_its_own,
    }
}

async fn what_a_manager_deploys_is_reported_by_the_agent(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let (cluster, addon) = (world.unique("cluster"), world.unique("addon"));
    let agent = Agent::join(&world, &cluster).await;
    let obeying = agent.obey();
    let manager = AddOnManager::start(&world, &world.namespace("managers").await, &addon).await;
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), &cluster);
    addons.create(&PostParams::default(), &objects::addon_on(&cluster, &addon)).await.expect("an add-on can be made");
    let given = json!({ "status": { "configReferences": [{
        "group": "addon.open-cluster-management.io",
        "resource": "addonhubconfigs",
        "name": "hub-config",
        "desiredConfig": { "name": "hub-config", "specHash": HASH },
    }] } });
    addons.patch_status(&addon, &PatchParams::default(), &Patch::Merge(given)).await.expect("a status can be written");

    let work = manager.deploy(&cluster, [objects::config_map("agent")]).await;

    let works = Api::<ManifestWork>::namespaced(world.client(), &cluster);
    let name = work.metadata.name.as_deref().expect("a work has a name");
    let reported = wait::until(&works, name, "it is available", |work| holds(work, "Available")).await;
    assert!(holds(&reported, "Applied"));
    let stamp =
        reported.metadata.annotations.unwrap_or_default()["open-cluster-management.io/config-spec-hash"].clone();
    assert_eq!(stamp, json!({ "addonhubconfigs.addon.open-cluster-management.io//hub-config": HASH }).to_string());
    obeying.abort();
    hub.stop().await;
}

async fn an_agent_touches_only_what_is_its_own(world: World) {
    let hub = start(as_hub(&world).await, None).await;
    let (own, other) = (world.unique("cluster"), world.unique("cluster"));
    let agent = Agent::join(&world, &own).await;
    Agent::join(&world, &other).await;

    agent.renew_lease().await;
    agent.works().list(&ListParams::default()).await.expect("an agent reads its own works");

    let others = Api::<ManifestWork>::namespaced(agent.client(), &other).list(&ListParams::default()).await;
    assert!(is_forbidden(others.expect_err("an agent does not read another's works")));
    let made =
        agent.works().create(&PostParams::default(), &objects::work(&own, "own", [objects::config_map("x")])).await;
    assert!(is_forbidden(made.expect_err("an agent does not make works")));
    hub.stop().await;
}

async fn a_crowd_deploys_what_was_given_and_answers_as_it_is_told(world: World) {
    let (addon, clusters) = (world.unique("addon"), [world.namespace("crowd").await, world.namespace("crowd").await]);
    let crowd = Crowd::gather(world.client(), &addon);
    crowd.behave(&clusters[1], Behaviour::Silent);
    for cluster in &clusters {
        give(&world, cluster, &addon, HASH).await;
    }
    let works = |cluster: &str| Api::<ManifestWork>::namespaced(world.client(), cluster);
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), &clusters[0]);
    let name = format!("addon-{addon}-deploy-0");
    let (first, second) = (works(&clusters[0]), works(&clusters[1]));

    let work = wait::until(&first, &name, "it is available", |work| holds(work, "Available")).await;
    assert_eq!(work.metadata.generation, Some(1));
    assert!(stamp(&work).contains(HASH));
    wait::until(&addons, &addon, "its manager has reported", |addon| reports(addon, "ManifestApplied", "True")).await;
    let silent = wait::until(&second, &name, "it is there", |_| true).await;
    assert_eq!(silent.status, None);

    crowd.behave(&clusters[1], Behaviour::Fails);
    wait::until(&second, &name, "it has failed", |work| says(work, "Applied", "False")).await;
    crowd.behave(&clusters[1], Behaviour::Slow(Duration::from_millis(1)));
    wait::until(&second, &name, "it is available", |work| holds(work, "Applied") && holds(work, "Available")).await;

    let other = HASH.replace('4', "5");
    give(&world, &clusters[0], &addon, &other).await;
    let work = wait::until(&first, &name, "it was applied again", |work| {
        work.metadata.generation == Some(2) && holds(work, "Applied")
    });
    assert!(stamp(&work.await).contains(&other));

    crowd.unhealthy(&clusters[0]);
    wait::until(&addons, &addon, "it is not available", |addon| reports(addon, "Available", "False")).await;
    crowd.healthy(&clusters[0]);
    wait::until(&addons, &addon, "it is available", |addon| reports(addon, "Available", "True")).await;
}

async fn a_crowd_deploys_again_what_was_removed(world: World) {
    let (addon, cluster) = (world.unique("addon"), world.namespace("crowd").await);
    let crowd = Crowd::gather(world.client(), &addon);
    give(&world, &cluster, &addon, HASH).await;
    let works = Api::<ManifestWork>::namespaced(world.client(), &cluster);
    let name = format!("addon-{addon}-deploy-0");
    let first = wait::until(&works, &name, "it is available", |work| holds(work, "Available")).await;

    works.delete(&name, &DeleteParams::default()).await.expect("a work can be deleted");

    wait::until(&works, &name, "there is another", |work| {
        work.metadata.uid != first.metadata.uid && holds(work, "Available")
    })
    .await;
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), &cluster);
    addons.delete(&addon, &DeleteParams::default()).await.expect("an add-on can be deleted");
    wait::gone(&works, &name).await;
    drop(crowd);
}

const HASH: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// Gives an add-on a configuration of this hash on a cluster, as a hub does.
async fn give(world: &World, cluster: &str, addon: &str, hash: &str) {
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), cluster);
    let apply = PatchParams::apply("scenario").force();
    let object = objects::addon_on(cluster, addon);
    addons.patch(addon, &apply, &Patch::Apply(&object)).await.expect("an add-on can be made");
    let configured = json!({ "type": "Configured", "status": "True", "reason": "ConfigurationsConfigured", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let status = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "ManagedClusterAddOn",
        "status": {
            "conditions": [configured],
            "configReferences": [{
                "group": "addon.open-cluster-management.io",
                "resource": "addonhubconfigs",
                "name": "hub-config",
                "desiredConfig": { "name": "hub-config", "specHash": hash },
            }],
        },
    });
    addons.patch_status(addon, &apply, &Patch::Apply(status)).await.expect("a status can be written");
}

fn stamp(work: &ManifestWork) -> &str {
    &work.annotations()["open-cluster-management.io/config-spec-hash"]
}

fn reports(addon: &ManagedClusterAddOn, type_: &str, status: &str) -> bool {
    let conditions = addon.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == type_ && condition.status == status)
}

fn holds(work: &ManifestWork, type_: &str) -> bool {
    says(work, type_, "True")
}

fn says(work: &ManifestWork, type_: &str, status: &str) -> bool {
    let conditions = work.status.iter().flat_map(|status| &status.conditions);
    let current = work.metadata.generation;
    conditions.into_iter().any(|c| c.type_ == type_ && c.status == status && c.observed_generation == current)
}

fn is_forbidden(error: kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_forbidden())
}
