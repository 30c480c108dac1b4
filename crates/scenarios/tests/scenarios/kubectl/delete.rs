//! Deleting objects, with what depends on them or without.

use drover_testkit::{World, wait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};

use super::Desk;

drover_testkit::scenarios! {
    Shared {
        what_depends_on_an_object_goes_after_it,
        what_depends_on_an_object_goes_before_it,
        what_depends_on_an_object_stays_as_an_orphan,
        objects_are_deleted_by_their_labels,
    }
}

impl Desk {
    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.world.client(), &self.namespace)
    }

    /// Makes two objects, one of which depends on the other.
    async fn family(&self) {
        self.says("create configmap owner").await;
        let uid = self.says("get cm owner -o jsonpath={.metadata.uid}").await;
        let text = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: dependent, ownerReferences: [
            {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}]}}}}"
        );
        self.feed("create -f -", &text).await.success();
    }

    fn deleted(&self, name: &str) -> String {
        format!("configmap \"{name}\" deleted from {} namespace\n", self.namespace)
    }
}

async fn what_depends_on_an_object_goes_after_it(world: World) {
    let desk = Desk::new(world).await;
    desk.family().await;
    assert_eq!(desk.says("delete cm owner --cascade=background").await, desk.deleted("owner"));
    wait::gone(&desk.config_maps(), "dependent").await;
}

async fn what_depends_on_an_object_goes_before_it(world: World) {
    let desk = Desk::new(world).await;
    desk.family().await;
    assert_eq!(desk.says("delete cm owner --cascade=foreground").await, desk.deleted("owner"));
    assert_eq!(desk.says("get cm -o name").await, "");
}

async fn what_depends_on_an_object_stays_as_an_orphan(world: World) {
    let desk = Desk::new(world).await;
    desk.family().await;
    assert_eq!(desk.says("delete cm owner --cascade=orphan").await, desk.deleted("owner"));
    let dependent = desk.config_maps().get("dependent").await.expect("it stays");
    assert_eq!(dependent.owner_references(), []);
}

async fn objects_are_deleted_by_their_labels(world: World) {
    let desk = Desk::new(world).await;
    for name in ["one", "two", "three"] {
        desk.says(&format!("create configmap {name}")).await;
    }
    desk.says("label cm one two tier=front").await;
    assert_eq!(desk.says("delete cm -l tier=front").await, desk.deleted("one") + &desk.deleted("two"));
    assert_eq!(desk.says("get cm -o name").await, "configmap/three\n");
    let absent = desk.complains("delete cm one").await;
    assert_eq!(absent, "Error from server (NotFound): configmaps \"one\" not found\n");
    assert_eq!(desk.says("delete cm one --ignore-not-found").await, "");
}
