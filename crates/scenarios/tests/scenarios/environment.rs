//! The test environment is a Kubernetes that scenarios can rely on: it collects garbage and empties namespaces. That it
//! signs certificates is shown by the agents in `parts`.

use drover_api::addon::{ClusterManagementAddOn, ManagedClusterAddOn};
use drover_testkit::{
    World,
    objects::{self, Installed as _},
    wait,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};

drover_testkit::scenarios! {
    Shared { an_addon_goes_with_its_owner, a_deleted_namespace_takes_its_objects_along }
    Own { a_server_of_its_own_is_empty }
}

async fn an_addon_goes_with_its_owner(world: World) {
    let namespace = world.namespace("cluster").await;
    let owners = Api::<ClusterManagementAddOn>::all(world.client());
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), &namespace);
    let owner = objects::addon(&world.unique("addon")).on_placement("default", "everywhere");
    let owner = owners.create(&PostParams::default(), &owner).await.expect("an add-on can be made");
    let mut addon = objects::addon_on(&namespace, &owner.name_any());
    addon.meta_mut().owner_references = Some(vec![owner.controller_owner_ref(&()).expect("it has a UID")]);
    addons.create(&PostParams::default(), &addon).await.expect("an add-on can be made");

    owners.delete(&owner.name_any(), &DeleteParams::default()).await.expect("an add-on can be deleted");

    wait::gone(&addons, &addon.name_any()).await;
}

async fn a_deleted_namespace_takes_its_objects_along(world: World) {
    let name = world.namespace("doomed").await;
    let works = Api::namespaced(world.client(), &name);
    let work = objects::work(&name, "work", [objects::config_map("something")]);
    works.create(&PostParams::default(), &work).await.expect("a work can be made");

    let namespaces = Api::<Namespace>::all(world.client());
    namespaces.delete(&name, &DeleteParams::default()).await.expect("a namespace can be deleted");

    wait::gone(&namespaces, &name).await;
    assert!(works.get_opt("work").await.expect("the server answers").is_none());
}

async fn a_server_of_its_own_is_empty(world: World) {
    let addons = Api::<ClusterManagementAddOn>::all(world.client()).list(&ListParams::default()).await;
    assert_eq!(addons.expect("Drover's kinds are served").items, []);
    let maps = Api::<ConfigMap>::namespaced(world.client(), "default").list(&ListParams::default()).await;
    assert_eq!(maps.expect("Kubernetes' kinds are served").items, []);
}
