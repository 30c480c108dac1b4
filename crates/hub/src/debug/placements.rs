//! Why a placement selects what it selects, as OCM's placement debugger tells it.

use std::collections::BTreeMap;

use axum::{
    body::to_bytes,
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use drover_api::{
    cluster::{Placement, PlacementStatus},
    reference::ClusterName,
};
use drover_engine::placement::{
    Column, LeftOut, Misconfigured, Outcome, Program, Slice, Verdict,
    verdicts::{Evidence as _, Verdicts},
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::{api::authorization::v1::ResourceAttributes, jiff::Timestamp};
use kube::{ResourceExt, core::ObjectMeta};
use serde::Serialize;

use super::{Debugger, MAX_BODY, Refusal, asks_for, json};
use crate::{
    cache::Cache,
    placement::{Case, slices_of},
};

/// What is told of a placement. The names of the fields are OCM's.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    placement: Placement,
    filtered_pipeline_results: Vec<Filtered>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prioritize_results: Vec<Prioritized>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aggregated_scores: Vec<ClusterScore>,
}

/// The clusters that have passed all filters up to one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Filtered {
    name: &'static str,
    filtered_clusters: Vec<ClusterName>,
}

/// What one prioritizer says of each of them.
#[derive(Debug, Serialize)]
struct Prioritized {
    name: String,
    weight: i64,
    scores: BTreeMap<ClusterName, i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterScore {
    cluster_name: ClusterName,
    score: i64,
}

impl Debugger {
    /// Finds out why, on a thread where that may take a while.
    async fn explain_placement(self, placement: Placement) -> Result<Response, Refusal> {
        let explained = tokio::task::spawn_blocking(move || -> Result<Answer, Misconfigured> {
            let program = Program::compile(&placement)?;
            Ok(explain(&self.cache.read(), &placement, &program, self.clock.now()))
        });
        let answer = explained.await.map_err(|_| Refusal::Panicked)??;
        Ok(json(StatusCode::OK, &answer))
    }
}

pub(super) async fn there_is(
    State(debugger): State<Debugger>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = ObjectKey::namespaced(&namespace, &name);
    let user = debugger.authenticate(&headers).await?;
    debugger.authorize(user, asks("get", &key)).await?;
    debugger.ready()?;
    let placement = debugger.cache.read().placements.get(&key).map(|placement| (**placement).clone());
    debugger.explain_placement(placement.ok_or(Refusal::NotFound(key))?).await
}

pub(super) async fn could_be(State(debugger): State<Debugger>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    // Who is not known is not listened to.
    let user = debugger.authenticate(&parts.headers).await?;
    let body = to_bytes(body, MAX_BODY).await.map_err(Refusal::Body)?;
    let placement: Placement = serde_json::from_slice(&body)?;
    let key = ObjectKey::of(&placement);
    if key.namespace.is_empty() {
        return Err(Refusal::NoNamespace);
    }
    debugger.authorize(user, asks("create", &key)).await?;
    debugger.ready()?;
    debugger.explain_placement(placement).await
}

/// What has to be allowed.
fn asks(verb: &'static str, key: &ObjectKey) -> ResourceAttributes {
    // Who creates something is not asked for its name.
    let name = Some(key.name.to_string()).filter(|_| verb == "get");
    ResourceAttributes { namespace: Some(key.namespace.to_string()), name, ..asks_for::<Placement>(verb) }
}

fn explain(cache: &Cache, placement: &Placement, program: &Program, now: Timestamp) -> Answer {
    let key = ObjectKey::of(placement);
    let case = Case { cache, key: &key, placement, program, now };
    let mut verdicts = Verdicts::default();
    verdicts.update(&case, now);
    let current: Vec<_> = slices_of(cache, &key).into_iter().map(Slice::read).collect();
    let columns = case.with_facts(&case.reach(), &current, |facts| program.scores(verdicts.iter(), facts));
    let passed = |name, passes: fn(&Outcome) -> bool| Filtered {
        name,
        filtered_clusters: verdicts
            .iter()
            .filter(|verdict| passes(&verdict.outcome))
            .map(|verdict| verdict.cluster.clone())
            .collect(),
    };
    Answer {
        filtered_pipeline_results: vec![
            passed("Predicate", |outcome| {
                !matches!(outcome, Outcome::LeftOut(LeftOut::Terminating | LeftOut::NoPredicateMet))
            }),
            passed("Predicate,TaintToleration", |outcome| matches!(outcome, Outcome::Candidate(_))),
        ],
        aggregated_scores: totals(verdicts.iter(), &columns),
        prioritize_results: columns.into_iter().map(Prioritized::from).collect(),
        placement: without_history(placement),
    }
}

impl From<Column> for Prioritized {
    fn from(column: Column) -> Self {
        Self { name: column.prioritizer, weight: column.weight, scores: column.scores.into_iter().collect() }
    }
}

/// The total score of each candidate, best first.
fn totals<'a>(verdicts: impl Iterator<Item = &'a Verdict>, columns: &[Column]) -> Vec<ClusterScore> {
    let candidates = verdicts.filter(|verdict| verdict.candidate().is_some());
    let mut totals: BTreeMap<_, i64> = candidates.map(|verdict| (&verdict.cluster, 0)).collect();
    for column in columns {
        for (cluster, score) in &column.scores {
            *totals.entry(cluster).or_default() += column.weight * score;
        }
    }
    let mut totals: Vec<_> =
        totals.into_iter().map(|(cluster, score)| ClusterScore { cluster_name: cluster.clone(), score }).collect();
    // By name already, and the sort is stable.
    totals.sort_by_key(|total| std::cmp::Reverse(total.score));
    totals
}

/// The placement as its author wrote it.
fn without_history(placement: &Placement) -> Placement {
    let metadata = ObjectMeta {
        name: placement.metadata.name.clone(),
        namespace: placement.namespace(),
        labels: placement.metadata.labels.clone(),
        annotations: placement.metadata.annotations.clone(),
        ..ObjectMeta::default()
    };
    Placement { metadata, spec: placement.spec.clone(), status: None::<PlacementStatus> }
}
