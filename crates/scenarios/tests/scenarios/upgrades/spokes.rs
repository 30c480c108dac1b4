//! Clusters that are played: their agents take up the works of upgrades, and report what the scenario has their ClusterVersion, Jobs and actions say.

use std::{collections::BTreeMap, sync::Arc};

use drover_api::{
    names::{UPGRADE_LABEL, UPGRADE_PART_LABEL},
    work::ManifestWork,
};
use futures_util::StreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The version that clusters run at first.
pub(super) const FROM: &str = "4.11.30";

/// What becomes of the upgrade of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    /// It is done at once.
    Completes,
    /// It is under way, and stays so.
    Moves,
    /// Nobody takes it up.
    Silent,
    /// It can not be applied.
    Refused,
    /// Somebody asks for another version.
    Contested,
    /// It is under way, and in trouble.
    Failing,
    /// Somebody has brought the cluster further than that.
    Overtaken,
    /// It is reported, but as something that makes no sense.
    Garbled,
}

/// What becomes of an action, or of the upgrade of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It is done at once.
    Succeeds,
    /// It is under way, and stays so.
    Runs,
    /// It fails.
    Fails,
}

/// How one cluster behaves.
#[derive(Clone, Debug)]
pub(super) struct Spoke {
    pub(super) version: String,
    pub(super) platform: Platform,
    pub(super) pre_action: Doing,
    pub(super) post_action: Doing,
    pub(super) operators: Doing,
    /// What is said of where its operators are.
    pub(super) operators_said: &'static str,
    /// What its agent reports of its ClusterVersion before the upgrade, besides what it runs.
    pub(super) preflight: Vec<(&'static str, String)>,
    /// Whether its agent says what it runs.
    pub(super) is_telling: bool,
}

impl Default for Spoke {
    fn default() -> Self {
        Self {
            version: FROM.to_owned(),
            platform: Platform::Completes,
            pre_action: Doing::Succeeds,
            post_action: Doing::Succeeds,
            operators: Doing::Succeeds,
            operators_said: "",
            preflight: Vec::new(),
            is_telling: true,
        }
    }
}

/// The clusters of a scenario.
pub(super) struct Spokes {
    client: Client,
    /// How each of them behaves.
    script: Arc<Mutex<BTreeMap<String, Spoke>>>,
    agents: JoinHandle<()>,
}

impl Spokes {
    pub(super) fn new(client: Client) -> Self {
        let spokes = Arc::new(Mutex::new(BTreeMap::new()));
        let agents = tokio::spawn(answer_all(client.clone(), Arc::clone(&spokes)));
        Self { client, script: spokes, agents }
    }

    /// How a cluster behaves.
    pub(super) fn get(&self, cluster: &str) -> Spoke {
        lock(&self.script).get(cluster).cloned().unwrap_or_default()
    }

    /// Has a cluster behave like this from now on.
    pub(super) async fn behave(&self, cluster: &str, change: impl FnOnce(&mut Spoke)) {
        change(lock(&self.script).entry(cluster.to_owned()).or_default());
        let works = Api::<ManifestWork>::namespaced(self.client.clone(), cluster);
        let all = works.list(&ListParams::default().labels(UPGRADE_LABEL)).await.expect("works can be listed");
        for work in all {
            answer(&self.client, &self.script, &work).await;
        }
    }
}

impl Drop for Spokes {
    fn drop(&mut self) {
        self.agents.abort();
    }
}

fn lock(spokes: &Mutex<BTreeMap<String, Spoke>>) -> MutexGuard<'_, BTreeMap<String, Spoke>> {
    spokes.lock()
}

async fn answer_all(client: Client, spokes: Arc<Mutex<BTreeMap<String, Spoke>>>) {
    let works = Api::<ManifestWork>::all(client.clone());
    let mut works =
        watcher(works, watcher::Config::default().labels(UPGRADE_LABEL)).default_backoff().applied_objects().boxed();
    while let Some(work) = works.next().await {
        if let Ok(work) = work {
            answer(&client, &spokes, &work).await;
        }
    }
}

/// Says of a work what its cluster's agent would. That it is gone by now is nothing wrong.
async fn answer(client: &Client, spokes: &Mutex<BTreeMap<String, Spoke>>, work: &ManifestWork) {
    let cluster = work.namespace().unwrap_or_default();
    let status = {
        let mut spokes = lock(spokes);
        status(work, spokes.entry(cluster.clone()).or_default())
    };
    let Some(status) = status else { return };
    let is_said = serde_json::to_value(&work.status).is_ok_and(|stored| is_within(&status, &stored));
    if !is_said {
        let works = Api::<ManifestWork>::namespaced(client.clone(), &cluster);
        let patch = Patch::Merge(json!({ "status": status }));
        let _ = works.patch_status(&work.name_any(), &PatchParams::default(), &patch).await;
    }
}

/// Whether everything that is said stands there.
fn is_within(said: &Value, stored: &Value) -> bool {
    match (said, stored) {
        (Value::Object(said), Value::Object(stored)) => {
            said.iter().all(|(field, said)| stored.get(field).is_some_and(|stored| is_within(said, stored)))
        }
        (Value::Array(said), Value::Array(stored)) => {
            said.len() == stored.len() && said.iter().zip(stored).all(|(said, stored)| is_within(said, stored))
        }
        (said, stored) => said == stored,
    }
}

fn status(work: &ManifestWork, spoke: &mut Spoke) -> Option<Value> {
    match work.labels().get(UPGRADE_PART_LABEL)?.as_str() {
        "preflight" => Some(preflight(work, spoke)),
        "platform" => platform(work, spoke),
        "pre-action" => Some(action(work, spoke.pre_action)),
        "post-action" => Some(action(work, spoke.post_action)),
        _ => Some(operators(work, spoke)),
    }
}

fn conditions(work: &ManifestWork, said: &[(&str, &str)], message: &str) -> Value {
    let condition = |(type_, status): &(&str, &str)| {
        json!({ "type": type_, "status": status, "reason": "Scenario", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": work.metadata.generation })
    };
    said.iter().map(condition).collect()
}

const WELL: [(&str, &str); 2] = [("Applied", "True"), ("Available", "True")];

fn reported(work: &ManifestWork, resource: &str, values: &[Value]) -> Value {
    let (group, namespace, name) = match resource {
        "jobs" => ("batch", "installplan-approver", "installplan-approver"),
        "configmaps" => ("", "installplan-approver", "installplan-approver"),
        _ => ("config.openshift.io", "", "version"),
    };
    let meta = json!({ "ordinal": 0, "group": group, "resource": resource, "namespace": namespace, "name": name });
    let manifest = json!({ "resourceMeta": meta, "conditions": [], "statusFeedback": { "values": values } });
    json!({ "conditions": conditions(work, &WELL, ""), "resourceStatus": { "manifests": [manifest] } })
}

fn text(name: &str, value: &str) -> Value {
    json!({ "name": name, "fieldValue": { "type": "String", "string": value } })
}

fn preflight(work: &ManifestWork, spoke: &Spoke) -> Value {
    if !spoke.is_telling {
        return json!({ "conditions": conditions(work, &[("Applied", "True"), ("Available", "False")], "there is no ClusterVersion") });
    }
    let mut values = vec![text("version", &spoke.version), text("state", "Completed")];
    values.extend(spoke.preflight.iter().map(|(name, value)| text(name, value)));
    reported(work, "clusterversions", &values)
}

fn platform(work: &ManifestWork, spoke: &mut Spoke) -> Option<Value> {
    let wanted = work.spec.manifests().iter().find(|manifest| manifest["kind"] == "ClusterVersion")?;
    let version = wanted["spec"]["desiredUpdate"]["version"].as_str().unwrap_or_default().to_owned();
    let values = match spoke.platform {
        Platform::Silent => return None,
        Platform::Refused => {
            return Some(
                json!({ "conditions": conditions(work, &[("Applied", "False")], "clusterversions is forbidden") }),
            );
        }
        Platform::Completes => {
            spoke.version.clone_from(&version);
            vec![text("version", &version), text("state", "Completed"), text("desired", &version)]
        }
        Platform::Moves => vec![
            text("version", &version),
            text("state", "Partial"),
            text("desired", &version),
            text("message", &format!("Working towards {version}: 40% complete")),
        ],
        Platform::Contested => {
            vec![text("version", "4.13.0"), text("state", "Partial"), text("desired", "4.13.0")]
        }
        Platform::Failing => vec![
            text("version", &version),
            text("state", "Partial"),
            text("desired", &version),
            text("message", "Unable to apply 4.12.0"),
            text("failing", "True"),
            text("failingMessage", "Cluster operator etcd is degraded"),
        ],
        Platform::Overtaken => {
            vec![text("version", "4.13.0"), text("state", "Completed"), text("desired", "4.13.0")]
        }
        Platform::Garbled => vec![
            json!({ "name": "version", "fieldValue": { "type": "Integer", "integer": 4 } }),
            json!({ "name": "state", "fieldValue": { "type": "Boolean", "boolean": true } }),
        ],
    };
    Some(reported(work, "clusterversions", &values))
}

fn action(work: &ManifestWork, doing: Doing) -> Value {
    let said: &[_] = match doing {
        Doing::Succeeds => &[("Applied", "True"), ("Available", "True"), ("Complete", "True"), ("Degraded", "False")],
        Doing::Runs => &[("Applied", "True"), ("Available", "False"), ("Degraded", "False")],
        Doing::Fails => &[("Applied", "True"), ("Available", "True"), ("Degraded", "True")],
    };
    json!({ "conditions": conditions(work, said, "the action says so") })
}

fn operators(work: &ManifestWork, spoke: &Spoke) -> Value {
    let number =
        |name: &str, value: i64| json!({ "name": name, "fieldValue": { "type": "Integer", "integer": value } });
    let values = match spoke.operators {
        Doing::Succeeds => vec![number("succeeded", 1)],
        Doing::Runs => vec![number("active", 1)],
        Doing::Fails => vec![number("failed", 4), text("givenUp", "True")],
    };
    let mut status = reported(work, "jobs", &values);
    if !spoke.operators_said.is_empty() {
        let record = reported(work, "configmaps", &[text("operators", spoke.operators_said)]);
        let manifests = status["resourceStatus"]["manifests"].as_array_mut().expect("a list");
        manifests.push(record["resourceStatus"]["manifests"][0].clone());
    }
    status
}
