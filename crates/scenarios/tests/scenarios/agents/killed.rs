//! An agent that is killed at any moment, again and again, as a process. What is left behind is what was wanted last, and nothing else.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
};

use drover_testkit::World;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::ListParams,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};

use super::{CLUSTER, Pair, config_map};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own { an_agent_that_is_killed_again_and_again_ends_with_what_is_wanted }
}

/// How often an agent is killed. By hand, many more: `DROVER_KILLS=200`.
const KILLS: usize = 10;
const WORKS: usize = 3;

/// An agent in a process of its own.
pub(super) struct Process(Child);

impl Process {
    fn start(pair: &Pair) -> Self {
        let kubeconfig = pair.managed.kubeconfig();
        Self::with(&[
            ("--cluster-name", Path::new(CLUSTER)),
            ("--kubeconfig", kubeconfig),
            ("--bootstrap-kubeconfig", &pair.bootstrap),
        ])
    }

    /// The agents of the clusters in a file, whose own objects are elsewhere.
    pub(super) fn of_several(clusters: &Path, management: &Path) -> Self {
        Self::with(&[("--clusters", clusters), ("--management-kubeconfig", management)])
    }

    fn with(options: &[(&str, &Path)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drover-under-test"));
        command.args(["agent", "--health-listen", "127.0.0.1:0"]);
        for (option, value) in options {
            command.arg(option).arg(value);
        }
        let child = command.env("RUST_LOG", "off").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(child.expect("drover can be run"))
    }
}

impl Drop for Process {
    /// Kills it, with no time to put anything in order.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Numbers that look like chance, and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The maps that a work is to have, by name: some of six, each with this value.
fn wanted(work: usize, value: &str, chance: &mut Chance) -> BTreeMap<String, String> {
    let chosen = (0..6).filter(|number| *number == 0 || chance.below(2) == 0);
    chosen.map(|number| (format!("of-{work}-{number}"), value.to_owned())).collect()
}

fn manifests(maps: &BTreeMap<String, String>) -> Value {
    let manifests: Vec<_> = maps.iter().map(|(name, value)| config_map(name, &json!({ "value": value }))).collect();
    json!({ "workload": { "manifests": manifests } })
}

async fn an_agent_that_is_killed_again_and_again_ends_with_what_is_wanted(world: World) {
    let pair = Pair::without_agent(world).await;
    create(&pair.clusters(), drover_testkit::objects::cluster(CLUSTER)).await;
    let kills = std::env::var("DROVER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let mut chance = Chance(7);
    let maps = Api::<ConfigMap>::namespaced(pair.managed.client(), "default");
    let mut changes = watcher(maps.clone(), watcher::Config::default()).default_backoff().touched_objects().boxed();
    let mut all = Vec::new();
    for work in 0..WORKS {
        all.push(wanted(work, "first", &mut chance));
        pair.make_work(&format!("w{work}"), manifests(&all[work])).await;
    }
    for round in 0..kills {
        let _process = Process::start(&pair);
        for (work, maps) in all.iter_mut().enumerate() {
            *maps = wanted(work, &format!("round {round}"), &mut chance);
            change(&pair.works(), &format!("w{work}"), json!({ "spec": manifests(maps) })).await;
        }
        // It is killed when so many objects have changed on the cluster.
        for _ in 0..chance.below(4) {
            changes.next().await.expect("the watch goes on").expect("the watch goes on");
        }
    }
    let _process = Process::start(&pair);
    for work in 0..WORKS {
        pair.until_applied(&format!("w{work}")).await;
    }
    let wanted: BTreeMap<_, _> = all.into_iter().flatten().collect();
    let there = async || {
        let list = maps.list(&ListParams::default()).await.expect("they can be listed").items;
        let ours = list.into_iter().filter(|map| map.name_any().starts_with("of-"));
        ours.map(|map| (map.name_any(), map.data.unwrap_or_default().remove("value").unwrap_or_default()))
            .collect::<BTreeMap<_, _>>()
    };
    // What is not wanted any more may still be on its way out when all else is applied.
    while there().await != wanted {
        changes.next().await.expect("the watch goes on").expect("the watch goes on");
    }
    pair.end().await;
}
