//! Somebody who watches all works, and sees every state of them that there was.

use drover_api::work::ManifestWork;
use drover_testkit::{World, objects};
use futures_util::StreamExt as _;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::running::create;

/// The name of the work that tells the observer that it has seen all, and of its namespace.
const LAST: &str = "observer";

/// What was seen of a work.
#[derive(Debug)]
pub(crate) enum Sight {
    /// It is there, and looks like this.
    There(Box<ManifestWork>),
    /// It is gone.
    Gone(Box<ManifestWork>),
}

/// Somebody who watches all works.
pub(crate) struct Observer {
    works: Api<ManifestWork>,
    watching: JoinHandle<Vec<Sight>>,
}

impl Observer {
    pub(crate) async fn start(world: &World) -> Self {
        world.namespace_named(LAST).await;
        let works = Api::<ManifestWork>::all(world.client());
        let first = works.list(&ListParams::default()).await.expect("works can be listed");
        let version = first.metadata.resource_version.unwrap_or_default();
        let watching = tokio::spawn(watch(works, version));
        Self { works: Api::namespaced(world.client(), LAST), watching }
    }

    /// Everything that there was to see, in its order.
    pub(crate) async fn finish(self) -> Vec<Sight> {
        let spec = json!({ "workload": { "manifests": [objects::config_map("last")] } });
        create(&self.works, ManifestWork::new(LAST, serde_json::from_value(spec).expect("a work"))).await;
        self.watching.await.expect("it has seen all")
    }
}

async fn watch(works: Api<ManifestWork>, mut version: String) -> Vec<Sight> {
    let mut sights = Vec::new();
    loop {
        let events = works.watch(&WatchParams::default(), &version).await.expect("works can be watched");
        let mut events = events.boxed();
        // A server ends a watch after a while; what follows is seen by the next one.
        while let Some(event) = events.next().await {
            let sight = match event.expect("the watch is readable") {
                WatchEvent::Added(work) if work.name_any() == LAST => return sights,
                WatchEvent::Added(work) | WatchEvent::Modified(work) => Sight::There(Box::new(work)),
                WatchEvent::Deleted(work) => Sight::Gone(Box::new(work)),
                WatchEvent::Bookmark(_) => continue,
                event @ WatchEvent::Error(_) => panic!("an event that was not expected: {event:?}"),
            };
            let (Sight::There(work) | Sight::Gone(work)) = &sight;
            version = work.resource_version().unwrap_or_default();
            sights.push(sight);
        }
    }
}
