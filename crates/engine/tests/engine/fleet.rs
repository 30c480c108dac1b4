//! Fleets and placements for tests.

use std::collections::{BTreeMap, HashSet};

use drover_api::{
    cluster::{AddOnPlacementScore, ManagedCluster, Placement, PlacementStatus},
    reference::ClusterName,
};
use drover_engine::placement::{Decision, Facts, Program, Scores, Slice, Verdict, sets::Reach, status::Before};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// When tests begin.
pub(crate) fn noon() -> Timestamp {
    at(0)
}

/// Seconds after tests begin.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

pub(crate) fn placement(spec: &Value) -> Placement {
    serde_json::from_value(
        json!({ "metadata": { "name": "p", "namespace": "default", "generation": 1 }, "spec": spec }),
    )
    .expect("a placement")
}

pub(crate) fn program(spec: &Value) -> Program {
    Program::compile(&placement(spec)).expect("the placement makes sense")
}

/// A cluster with labels and whatever else there is to say.
pub(crate) fn cluster(name: &str, labels: &Value, more: &Value) -> ManagedCluster {
    let mut object = json!({ "metadata": { "name": name, "labels": labels }, "spec": {} });
    for (part, value) in more.as_object().into_iter().flatten() {
        object[part] = value.clone();
    }
    serde_json::from_value(object).expect("a cluster")
}

pub(crate) fn plain(name: &str) -> ManagedCluster {
    cluster(name, &json!({}), &json!({}))
}

pub(crate) fn tainted(name: &str, key: &str, effect: &str, added: Timestamp) -> ManagedCluster {
    let taint = json!({ "key": key, "effect": effect, "timeAdded": added.to_string() });
    cluster(name, &json!({}), &json!({ "spec": { "taints": [taint] } }))
}

/// Everything that a decision depends on.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) placement: Placement,
    pub(crate) clusters: Vec<ManagedCluster>,
    pub(crate) scores: Vec<AddOnPlacementScore>,
    pub(crate) current: Vec<Slice>,
    pub(crate) status: Option<PlacementStatus>,
    pub(crate) elsewhere: BTreeMap<String, usize>,
    pub(crate) reach: Reach,
    pub(crate) now: Timestamp,
}

impl Case {
    pub(crate) fn new(spec: &Value, clusters: impl IntoIterator<Item = ManagedCluster>) -> Self {
        Self {
            placement: placement(spec),
            clusters: clusters.into_iter().collect(),
            scores: Vec::new(),
            current: Vec::new(),
            status: None,
            elsewhere: BTreeMap::new(),
            reach: Reach::Sets(["all".to_owned()].into()),
            now: noon(),
        }
    }

    pub(crate) fn program(&self) -> Program {
        Program::compile(&self.placement).expect("the placement makes sense")
    }

    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let program = self.program();
        let current: HashSet<_> = self.current.iter().flat_map(Slice::clusters).collect();
        let judge = |cluster: &ManagedCluster| {
            let name = cluster.cluster_name();
            let of_cluster = |score: &&AddOnPlacementScore| score.metadata.namespace.as_deref() == Some(name.as_str());
            let scores: Scores = self.scores.iter().filter(of_cluster).collect();
            program.judge(cluster, &scores, current.contains(name.as_str()), self.now)
        };
        self.clusters.iter().map(judge).collect()
    }

    pub(crate) fn decide(&self) -> Decision {
        self.decide_from(&self.verdicts())
    }

    pub(crate) fn decide_from(&self, verdicts: &[Verdict]) -> Decision {
        let elsewhere = |name: &ClusterName| self.elsewhere.get(name.as_str()).copied().unwrap_or_default();
        self.with_facts(&elsewhere, |program, facts| program.decide(verdicts, facts))
    }

    pub(crate) fn with_facts<T>(
        &self,
        elsewhere: &dyn Fn(&ClusterName) -> usize,
        ask: impl FnOnce(&Program, &Facts) -> T,
    ) -> T {
        let before =
            Before { status: self.status.as_ref(), generation: self.placement.metadata.generation, now: self.now };
        ask(&self.program(), &Facts { reach: &self.reach, current: &self.current, elsewhere, before })
    }

    /// The same after the decision was written.
    pub(crate) fn settled(&self) -> Self {
        let decision = self.decide();
        Self { current: decision.slices, status: Some(decision.status), ..self.clone() }
    }
}

/// The names of the selected clusters, in the order of the decision.
pub(crate) fn selected(decision: &Decision) -> Vec<&str> {
    decision.slices.iter().flat_map(Slice::clusters).collect()
}

/// Status, reason and message of a condition.
pub(crate) fn condition(status: &PlacementStatus, kind: &str) -> (String, String, String) {
    let condition = status.conditions.iter().find(|condition| condition.type_ == kind).expect(kind);
    (condition.status.clone(), condition.reason.clone(), condition.message.clone())
}
