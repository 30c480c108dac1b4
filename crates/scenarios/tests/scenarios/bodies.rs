//! Bodies that a server does not read to their end.

use std::collections::BTreeMap;

use drover_testkit::World;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};

drover_testkit::scenarios! {
    Shared { what_follows_a_body_that_is_too_large_is_answered }
}

async fn what_follows_a_body_that_is_too_large_is_answered(world: World) {
    let namespace = world.namespace("bodies").await;
    let maps = Api::<ConfigMap>::namespaced(world.client(), &namespace);
    let large = ConfigMap {
        metadata: ObjectMeta { name: Some("large".to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("text".to_owned(), "x".repeat(4 << 20))])),
        ..ConfigMap::default()
    };
    for _ in 0..10 {
        // A server may hang up while it is sent; what it says then is for others to try.
        assert!(maps.create(&PostParams::default(), &large).await.is_err());
        maps.list(&ListParams::default()).await.expect("the next request is answered");
    }
}
