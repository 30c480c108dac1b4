//! What one placement's decision costs.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use drover_api::{
    cluster::{ManagedCluster, Placement, PlacementStatus},
    reference::ClusterName,
};
use drover_engine::placement::{
    Decision, Facts, Program, Scores, Slice, Verdict,
    sets::Reach,
    status::Before,
    verdicts::{Evidence, Verdicts},
};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cpu_time::{cpu_time, median},
    report::{Report, Table},
    rounded,
};

/// What a change of one label may cost with 10,000 clusters.
const BUDGET: Duration = Duration::from_millis(50);
const SIZES: [usize; 2] = [1_000, 10_000];
/// How often each is measured; the median counts.
const ROUNDS: usize = 21;

pub(crate) fn measure() -> Report {
    let about = format!(
        "CPU time to judge all clusters, to decide, and to do both again after one cluster's label has changed. Every cluster has labels, one in \
         ten a taint; two prioritizers rank all that match, and half of them are wanted. The budget for the last column is {} ms with 10,000 \
         clusters.",
        BUDGET.as_millis()
    );
    let mut report = Report::new("placement", "One placement's decision", &about, "placement");
    let columns = [
        "predicate",
        "clusters",
        "judge all, ms",
        "decide, ms",
        "clusters judged after one label",
        "judge and decide again, ms",
    ];
    let mut table = Table::new("Median CPU time", &columns);
    for (name, predicate) in predicates() {
        let costs: Vec<_> = SIZES.iter().map(|&size| Costs::of(&predicate, size)).collect();
        table.rows.extend(costs.iter().map(|costs| costs.row(name)));
        if let [small, large] = costs.as_slice() {
            table.rows.push(large.growth_since(small, name));
        }
    }
    report.tables.push(table);
    report
}

fn predicates() -> [(&'static str, Value); 2] {
    [
        ("labels", json!({ "labelSelector": { "matchLabels": { "env": "prod" } } })),
        ("CEL", json!({ "celSelector": { "celExpressions": ["managedCluster.metadata.labels.env == 'prod'"] } })),
    ]
}

/// What was measured with one size of fleet.
struct Costs {
    clusters: usize,
    judge_all: Duration,
    decide: Duration,
    judged_again: usize,
    again: Duration,
}

impl Costs {
    fn of(predicate: &Value, clusters: usize) -> Self {
        let mut fleet = Fleet::new(predicate, clusters);
        let judge_all = median(ROUNDS, || {
            let mut verdicts = Verdicts::default();
            cpu_time(|| verdicts.update(&fleet, now())).0
        });
        let mut verdicts = Verdicts::default();
        verdicts.update(&fleet, now());
        let decide = median(ROUNDS, || cpu_time(|| fleet.decide(&verdicts)).0);
        let Decision { slices, status, .. } = fleet.decide(&verdicts);
        fleet.selected = slices.iter().flat_map(Slice::clusters).map(ClusterName::from).collect();
        fleet.current = slices;
        fleet.status = Some(status);

        let mut judged_again = 0;
        let again = median(ROUNDS, || {
            let changed = fleet.change_a_label();
            verdicts.look_again_at(&changed);
            let (time, judged) = cpu_time(|| {
                let (_, update) = verdicts.update(&fleet, now());
                std::hint::black_box(fleet.decide(&verdicts));
                update.judged
            });
            judged_again = judged;
            time
        });
        Self { clusters, judge_all, decide, judged_again, again }
    }

    fn row(&self, predicate: &str) -> Vec<String> {
        let milliseconds = |time: Duration| rounded(time.as_secs_f64() * 1e3);
        vec![
            predicate.to_owned(),
            self.clusters.to_string(),
            milliseconds(self.judge_all),
            milliseconds(self.decide),
            self.judged_again.to_string(),
            milliseconds(self.again),
        ]
    }

    fn growth_since(&self, small: &Self, predicate: &str) -> Vec<String> {
        let times =
            |large: Duration, small: Duration| format!("x {}", rounded(large.as_secs_f64() / small.as_secs_f64()));
        vec![
            predicate.to_owned(),
            format!("x {}", self.clusters / small.clusters),
            times(self.judge_all, small.judge_all),
            times(self.decide, small.decide),
            String::new(),
            times(self.again, small.again),
        ]
    }
}

/// A fleet, all in one set, and a placement.
struct Fleet {
    program: Program,
    clusters: BTreeMap<ClusterName, ManagedCluster>,
    members: BTreeSet<ClusterName>,
    current: Vec<Slice>,
    selected: HashSet<ClusterName>,
    status: Option<PlacementStatus>,
    changes: usize,
}

impl Fleet {
    fn new(predicate: &Value, size: usize) -> Self {
        let placement: Placement = read(json!({ "metadata": { "name": "placement", "namespace": "bench" }, "spec": {
            "numberOfClusters": size / 2,
            "predicates": [{ "requiredClusterSelector": predicate }],
            "tolerations": [{ "key": "slow", "operator": "Exists" }],
            "prioritizerPolicy": { "configurations": [
                { "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": 2 },
                { "scoreCoordinate": { "builtIn": "ResourceAllocatableMemory" }, "weight": 1 },
            ] },
        } }));
        let clusters: BTreeMap<_, _> = (0..size).map(|index| cluster(index, "prod")).collect();
        Self {
            program: Program::compile(&placement).expect("the placement makes sense"),
            members: clusters.keys().cloned().collect(),
            clusters,
            current: Vec::new(),
            selected: HashSet::new(),
            status: None,
            changes: 0,
        }
    }

    fn decide(&self, verdicts: &Verdicts) -> Decision {
        let before = Before { status: self.status.as_ref(), generation: Some(1), now: now() };
        let facts = Facts { reach: &self.reach(), current: &self.current, elsewhere: &|_| 0, before };
        self.program.decide(verdicts.iter(), &facts)
    }

    /// Changes one cluster, another one each time, so that it is selected no longer, or again.
    fn change_a_label(&mut self) -> ClusterName {
        let index = self.changes / 2;
        let env = if self.changes.is_multiple_of(2) { "test" } else { "prod" };
        self.changes += 1;
        let (name, changed) = cluster(index, env);
        self.clusters.insert(name.clone(), changed);
        name
    }
}

impl Evidence for Fleet {
    fn reach(&self) -> Reach {
        Reach::Sets(["all".to_owned()].into())
    }

    fn members(&self, _: &str) -> Option<&BTreeSet<ClusterName>> {
        Some(&self.members)
    }

    fn judge(&self, name: &ClusterName) -> Option<Verdict> {
        let cluster = self.clusters.get(name)?;
        Some(self.program.judge(cluster, &Scores::default(), self.selected.contains(name), now()))
    }
}

fn cluster(index: usize, env: &str) -> (ClusterName, ManagedCluster) {
    let taints = if index.is_multiple_of(10) { json!([{ "key": "slow", "effect": "NoSelect" }]) } else { json!([]) };
    let cluster: ManagedCluster = read(json!({
        "metadata": { "name": format!("cluster-{index:05}"), "labels": {
            "env": env, "region": format!("region-{}", index % 7), "vendor": "example", "tier": format!("{}", index % 3),
        } },
        "spec": { "hubAcceptsClient": true, "taints": taints },
        "status": {
            "allocatable": { "cpu": format!("{}", 1 + index % 97), "memory": format!("{}Gi", 1 + index % 89) },
            "clusterClaims": [{ "name": "id.example.com", "value": index.to_string() }],
        },
    }));
    (cluster.cluster_name(), cluster)
}

fn read<K: for<'de> serde::Deserialize<'de>>(object: Value) -> K {
    serde_json::from_value(object).expect("an object of the API")
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}
