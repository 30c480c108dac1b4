//! The agent and the add-on manager that testkit plays do their work through the API, and no more than their permissions allow.

use drover_api::{addon::ManagedClusterAddOn, work::ManifestWork};
use drover_testkit::{
    World, objects,
    play::{AddOnManager, Agent},
    wait,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::running::{as_hub, start};

drover_testkit::scenarios! {
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
    let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), &cluster);
    addons.create(&PostParams::default(), &objects::addon_on(&cluster, &addon)).await.expect("an add-on can be made");
    let given = json!({ "status": { "configReferences": [{
        "group": "addon.open-cluster-management.io",
        "resource": "addonhubconfigs",
        "name": "hub-config",
        "desiredConfig": { "name": "hub-config", "specHash": hash },
    }] } });
    addons.patch_status(&addon, &PatchParams::default(), &Patch::Merge(given)).await.expect("a status can be written");

    let work = manager.deploy(&cluster, [objects::config_map("agent")]).await;

    let works = Api::<ManifestWork>::namespaced(world.client(), &cluster);
    let name = work.metadata.name.as_deref().expect("a work has a name");
    let reported = wait::until(&works, name, "it is available", |work| holds(work, "Available")).await;
    assert!(holds(&reported, "Applied"));
    let stamp =
        reported.metadata.annotations.unwrap_or_default()["open-cluster-management.io/config-spec-hash"].clone();
    assert_eq!(stamp, json!({ "addonhubconfigs.addon.open-cluster-management.io//hub-config": hash }).to_string());
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

fn holds(work: &ManifestWork, type_: &str) -> bool {
    let conditions = work.status.iter().flat_map(|status| &status.conditions);
    let current = work.metadata.generation;
    conditions.into_iter().any(|c| c.type_ == type_ && c.status == "True" && c.observed_generation == current)
}

fn is_forbidden(error: kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_forbidden())
}
