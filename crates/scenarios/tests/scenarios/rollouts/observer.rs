//! Somebody who watches the add-on on all clusters, and sees every state of it that there was.

use std::collections::BTreeMap;

use drover_api::{
    addon::{ManagedClusterAddOn, ManagedClusterAddOnSpec},
    names::{GIVEN, PROVEN},
};
use drover_testkit::World;
use futures_util::{StreamExt as _, stream::BoxStream};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, WatchEvent, WatchParams},
};
use tokio::task::JoinHandle;

use super::ADDON;
use crate::running::create;

/// The add-on that ends it all.
const MARKER: &str = "marker";

/// One state of the add-on on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) cluster: String,
    /// The set that it was given.
    pub(super) given: Option<String>,
    /// The set that it is measured by, and how it stands to it.
    pub(super) proof: Option<(String, String)>,
    /// The names of its configurations.
    pub(super) configs: Vec<String>,
    /// The version that it was given.
    pub(super) version: Option<String>,
}

impl Seen {
    fn of(addon: &ManagedClusterAddOn) -> Self {
        let status = addon.status.clone().unwrap_or_default();
        let condition = |type_| status.conditions.iter().find(|condition| condition.type_ == type_);
        Self {
            cluster: addon.namespace().unwrap_or_default(),
            given: condition(GIVEN).map(|given| given.message.clone()),
            proof: condition(PROVEN).map(|proof| (proof.message.clone(), proof.reason.clone())),
            configs: status.config_references.iter().filter_map(|reference| reference.name.clone()).collect(),
            version: status.wanted_version.map(|version| version.to_string()),
        }
    }

    /// Whether it was given something that it does not run yet.
    pub(super) fn is_moving(&self) -> bool {
        let runs = self.proof.as_ref().filter(|(_, verdict)| verdict == "Proven").map(|(set, _)| set);
        self.given.is_some() && self.given.as_ref() != runs
    }
}

/// All clusters at one moment, by name.
pub(super) type Moment = BTreeMap<String, Seen>;

pub(super) struct Observer {
    addons: Api<ManagedClusterAddOn>,
    watching: JoinHandle<Vec<Moment>>,
}

impl Observer {
    pub(super) async fn start(world: &World) -> Self {
        let addons = Api::<ManagedClusterAddOn>::all(world.client());
        let first = addons.list(&ListParams::default()).await.expect("add-ons can be listed");
        let version = first.metadata.resource_version.clone().unwrap_or_default();
        let known = first
            .iter()
            .filter(|addon| addon.name_any() == ADDON)
            .map(Seen::of)
            .map(|seen| (seen.cluster.clone(), seen))
            .collect();
        let events = addons.watch(&WatchParams::default(), &version).await.expect("add-ons can be watched").boxed();
        let watching = tokio::spawn(follow(events, known));
        Self { addons: Api::namespaced(world.client(), "default"), watching }
    }

    /// Every moment that there was, once all that was written so far has been seen.
    pub(super) async fn finish(self) -> Vec<Moment> {
        create(&self.addons, ManagedClusterAddOn::new(MARKER, ManagedClusterAddOnSpec::default())).await;
        self.watching.await.expect("all is seen")
    }
}

async fn follow(
    mut events: BoxStream<'static, kube::Result<WatchEvent<ManagedClusterAddOn>>>,
    mut known: Moment,
) -> Vec<Moment> {
    let mut moments = vec![known.clone()];
    loop {
        match events.next().await.expect("the watch goes on").expect("the watch is readable") {
            WatchEvent::Added(addon) if addon.name_any() == MARKER => return moments,
            WatchEvent::Added(addon) | WatchEvent::Modified(addon) | WatchEvent::Deleted(addon)
                if addon.name_any() != ADDON =>
            {
                continue;
            }
            WatchEvent::Added(addon) | WatchEvent::Modified(addon) => {
                let seen = Seen::of(&addon);
                known.insert(seen.cluster.clone(), seen);
            }
            WatchEvent::Deleted(addon) => drop(known.remove(&addon.namespace().unwrap_or_default())),
            WatchEvent::Bookmark(_) => continue,
            event @ WatchEvent::Error(_) => panic!("an event that was not expected: {event:?}"),
        }
        moments.push(known.clone());
    }
}
