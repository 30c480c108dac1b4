//! Why a placement selects what it selects, over HTTP, as OCM's placement debugger tells it.
//!
//! `GET /debug/placements/<namespace>/<name>` is about a placement that there is, `POST /debug/placements/` about one that there
//! could be. Nothing is written. Who asks has a token, and may read, or create, placements in that namespace. A
//! standby answers too.

use std::collections::BTreeMap;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use drover_api::{
    cluster::{Placement, PlacementStatus},
    reference::ClusterName,
};
use drover_engine::placement::{
    Column, LeftOut, Misconfigured, Outcome, Program, Slice, Verdict,
    verdicts::{Evidence as _, Verdicts},
};
use drover_runtime::{cache::SharedCache, clock::Clock, informer::Freshness, store::ObjectKey};
use k8s_openapi::{
    api::{
        authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
        authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    },
    jiff::Timestamp,
};
use kube::{Api, Client, Resource, ResourceExt, api::PostParams, core::ObjectMeta};
use serde::Serialize;

use crate::{
    cache::Cache,
    placement::{Case, slices_of},
};

/// The largest placement that can be asked about.
const MAX_BODY: usize = 1 << 20;

/// What answers are made from.
#[derive(Clone)]
pub(crate) struct Debugger {
    pub(crate) client: Client,
    pub(crate) cache: SharedCache<Cache>,
    pub(crate) freshness: Freshness,
    pub(crate) clock: Clock,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("name a placement: GET /debug/placements/<namespace>/<name>")]
    NoName,
    #[error("the body is no placement: {0}")]
    NoPlacement(#[from] serde_json::Error),
    #[error("the placement has no namespace: write the one that it would be in into metadata.namespace")]
    NoNamespace,
    #[error("the placement makes no sense: {0}")]
    Misconfigured(#[from] Misconfigured),
    #[error("the body could not be read, or is larger than {MAX_BODY} bytes: {0}")]
    Body(axum::Error),
    #[error("who asks is not known: send a token in the header `Authorization: Bearer`")]
    Unauthenticated,
    #[error("{user} may not {verb} placements in the namespace {namespace}")]
    Forbidden { user: String, verb: &'static str, namespace: String },
    #[error("there is no placement {0}")]
    NotFound(ObjectKey),
    #[error(
        "there is nothing here: GET /debug/placements/<namespace>/<name>, or POST a placement to /debug/placements/"
    )]
    NoSuchPath,
    #[error("this can be asked with GET, and about a placement that there could be with POST")]
    Method,
    #[error("the hub has not read the fleet yet: the first list is not complete of {0}; ask again")]
    NotReady(String),
    #[error("could not find out who asks: {0}")]
    Server(#[from] kube::Error),
    #[error("the answer could not be found: this is a bug")]
    Panicked,
}

impl Refusal {
    fn code(&self) -> StatusCode {
        match self {
            Self::NoName | Self::NoPlacement(_) | Self::NoNamespace | Self::Misconfigured(_) => StatusCode::BAD_REQUEST,
            Self::Body(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NotFound(_) | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Server(_) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json(self.code(), &serde_json::json!({ "error": self.to_string() }))
    }
}

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
    /// The endpoints.
    pub(crate) fn endpoints(self) -> Router {
        let only = |methods: MethodRouter<Self>| methods.fallback(async || Refusal::Method);
        Router::new()
            .route("/debug/placements/", only(get(async || Refusal::NoName).post(could_be)))
            .route("/debug/placements/{namespace}/{name}", only(get(there_is)))
            .fallback(async || Refusal::NoSuchPath)
            .with_state(self)
    }

    /// Makes sure that somebody may do that with placements of that namespace.
    async fn authorize(&self, user: UserInfo, verb: &'static str, key: &ObjectKey) -> Result<(), Refusal> {
        let attributes = ResourceAttributes {
            group: Some(Placement::group(&()).into_owned()),
            version: Some(Placement::version(&()).into_owned()),
            resource: Some(Placement::plural(&()).into_owned()),
            namespace: Some(key.namespace.to_string()),
            // Who creates something is not asked for its name.
            name: Some(key.name.to_string()).filter(|_| verb == "get"),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let name = user.username.clone().unwrap_or_default();
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { metadata: ObjectMeta::default(), spec, status: None };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        match reviews.create(&PostParams::default(), &review).await?.status {
            Some(status) if status.allowed => Ok(()),
            _ => Err(Refusal::Forbidden { user: name, verb, namespace: key.namespace.to_string() }),
        }
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<UserInfo, Refusal> {
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let token = token.filter(|token| !token.is_empty()).ok_or(Refusal::Unauthenticated)?;
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { metadata: ObjectMeta::default(), spec, status: None };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        status.user.filter(|_| status.authenticated == Some(true)).ok_or(Refusal::Unauthenticated)
    }

    /// Makes sure that all of the fleet is known.
    fn ready(&self) -> Result<(), Refusal> {
        let missing = self.freshness.missing();
        if missing.is_empty() { Ok(()) } else { Err(Refusal::NotReady(missing.join(", "))) }
    }

    /// Finds out why, on a thread where that may take a while.
    async fn explain(self, placement: Placement) -> Result<Response, Refusal> {
        let explained = tokio::task::spawn_blocking(move || -> Result<Answer, Misconfigured> {
            let program = Program::compile(&placement)?;
            Ok(explain(&self.cache.read(), &placement, &program, self.clock.now()))
        });
        let answer = explained.await.map_err(|_| Refusal::Panicked)??;
        Ok(json(StatusCode::OK, &answer))
    }
}

async fn there_is(
    State(debugger): State<Debugger>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = ObjectKey::namespaced(&namespace, &name);
    let user = debugger.authenticate(&headers).await?;
    debugger.authorize(user, "get", &key).await?;
    debugger.ready()?;
    let placement = debugger.cache.read().placements.get(&key).map(|placement| (**placement).clone());
    debugger.explain(placement.ok_or(Refusal::NotFound(key))?).await
}

async fn could_be(State(debugger): State<Debugger>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    // Who is not known is not listened to.
    let user = debugger.authenticate(&parts.headers).await?;
    let body = to_bytes(body, MAX_BODY).await.map_err(Refusal::Body)?;
    let placement: Placement = serde_json::from_slice(&body)?;
    let key = ObjectKey::of(&placement);
    if key.namespace.is_empty() {
        return Err(Refusal::NoNamespace);
    }
    debugger.authorize(user, "create", &key).await?;
    debugger.ready()?;
    debugger.explain(placement).await
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

fn json(code: StatusCode, answer: &impl Serialize) -> Response {
    match serde_json::to_vec(answer) {
        Ok(text) => (code, [(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use drover_runtime::{clock::ManualClock, informer::Informer, metrics::Metrics};
    use kube::runtime::watcher;

    use super::*;
    use crate::cache::Queues;

    /// A server to which everybody is welcome.
    fn welcoming() -> Client {
        let known = r#"{"spec":{"token":""},"status":{"authenticated":true,"user":{"username":"somebody"}}}"#;
        let allowed = r#"{"spec":{},"status":{"allowed":true}}"#;
        let router = Router::new()
            .route("/apis/authentication.k8s.io/v1/tokenreviews", post(async move || known))
            .route("/apis/authorization.k8s.io/v1/subjectaccessreviews", post(async move || allowed));
        Client::new(router, "default")
    }

    #[tokio::test]
    async fn nothing_is_told_before_the_fleet_is_known() {
        let (client, freshness) = (welcoming(), Freshness::default());
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH).clock();
        let cache = SharedCache::new(Cache::new(clock.clone()), Queues::new(&clock));
        let debugger = Debugger { client: client.clone(), cache, freshness: freshness.clone(), clock };
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, "Bearer token".parse().expect("a header"))]);
        let path = || Path(("shop".to_owned(), "production".to_owned()));

        let refusal = there_is(State(debugger.clone()), path(), headers.clone()).await.expect_err("there is none");
        assert_eq!(refusal.code(), StatusCode::NOT_FOUND);

        let metrics = Metrics::new();
        let _informer = Informer::<Placement>::new(client, watcher::Config::default(), &freshness, &metrics);
        let refusal = there_is(State(debugger), path(), headers).await.expect_err("nothing is known");
        assert_eq!(refusal.code(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refusal.to_string().contains("Placement"), "{refusal}");
    }
}
