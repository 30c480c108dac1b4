//! Where each cluster is in the rollouts of an add-on, and what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use drover_api::{addon::ClusterManagementAddOn, reference::ClusterName};
use drover_engine::{
    addon::facts::AddOnFacts,
    explain::{ClusterExplanation, FailureGroup, MemberGroup, explain_cluster, group_failures, group_members},
    member::{Blocker, Cause, MemberState},
    revision::Set,
    rollout::Snapshot,
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use serde::Serialize;

use super::{Debugger, Refusal, asks_for, json};
use crate::cache::Cache;

/// The clusters of an add-on.
#[derive(Debug, Serialize)]
struct AddOnAnswer {
    clusters: usize,
    groups: Vec<GroupAnswer>,
    failures: Vec<FailureAnswer>,
}

/// Clusters in the same state, with the same blocker.
#[derive(Debug, Serialize)]
struct GroupAnswer {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<BlockerAnswer>,
    count: usize,
    examples: Vec<ClusterName>,
}

/// Clusters that have failed of the same cause.
#[derive(Debug, Serialize)]
struct FailureAnswer {
    failure: &'static str,
    cause: String,
    count: usize,
    examples: Vec<ClusterName>,
}

/// One cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterAnswer {
    cluster: ClusterName,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    /// The revision that the cluster has verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned: Option<String>,
    /// The revision that the cluster should run.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<BlockerAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CauseAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Serialize)]
struct BlockerAnswer {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Serialize)]
struct CauseAnswer {
    failure: &'static str,
    message: String,
}

impl From<Blocker> for BlockerAnswer {
    fn from(blocker: Blocker) -> Self {
        Self {
            kind: blocker.kind.name(),
            object: text(blocker.object),
            message: blocker.message,
            since: text(blocker.since),
            until: text(blocker.until),
            remedy: text(blocker.remedy),
        }
    }
}

impl From<Cause> for CauseAnswer {
    fn from(cause: Cause) -> Self {
        Self { failure: cause.failure.name(), message: cause.message }
    }
}

impl From<MemberGroup> for GroupAnswer {
    fn from(group: MemberGroup) -> Self {
        let MemberGroup { state, blocker, count, examples } = group;
        Self { state, blocker: blocker.map(BlockerAnswer::from), count, examples }
    }
}

impl From<FailureGroup> for FailureAnswer {
    fn from(group: FailureGroup) -> Self {
        let FailureGroup { cause, count, examples } = group;
        Self { failure: cause.failure.name(), cause: cause.normalised, count, examples }
    }
}

impl ClusterAnswer {
    fn new(cluster: ClusterName, explanation: ClusterExplanation) -> Self {
        let ClusterExplanation { placement, runs, assigned, target, state, since } = explanation;
        Self {
            cluster,
            placement: text(placement),
            runs: text(runs),
            assigned: text(assigned),
            target: text(target),
            state: state.name(),
            since: text(since),
            until: text(state.until()),
            blocker: state.blocker().map(BlockerAnswer::from),
            remedy: text(state.remedy()),
            cause: match state {
                MemberState::Failed(cause) => Some(cause.into()),
                _ => None,
            },
        }
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Groups the clusters of an add-on.
pub(super) async fn of_addon(
    State(debugger): State<Debugger>,
    Path(addon): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = ObjectKey::cluster_wide(&addon);
    debugger.may_read(&key, &headers).await?;
    let explained = tokio::task::spawn_blocking(move || explain_addon(&debugger.cache.read(), &key));
    let answer = explained.await.map_err(|_| Refusal::Panicked)??;
    Ok(json(StatusCode::OK, &answer))
}

/// Explains one cluster.
pub(super) async fn of_cluster(
    State(debugger): State<Debugger>,
    Path((addon, cluster)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let key = ObjectKey::cluster_wide(&addon);
    debugger.may_read(&key, &headers).await?;
    let answer = explain_member(&debugger.cache.read(), &key, &ClusterName::from(&*cluster))?;
    Ok(json(StatusCode::OK, &answer))
}

impl Debugger {
    /// Makes sure that a user may read an add-on, and that all of the fleet is known.
    async fn may_read(&self, addon: &ObjectKey, headers: &HeaderMap) -> Result<(), Refusal> {
        let user = self.authenticate(headers).await?;
        let name = Some(addon.name.to_string());
        let attributes = ResourceAttributes { name, ..asks_for::<ClusterManagementAddOn>("get") };
        self.authorize(user, attributes).await?;
        self.ready()
    }
}

fn explain_addon(cache: &Cache, addon: &ObjectKey) -> Result<AddOnAnswer, Refusal> {
    let snapshot = planned(cache, addon)?;
    let clusters: BTreeSet<_> = snapshot.clusters().cloned().chain(cache.clusters_with(&addon.name)).collect();
    let explain = |cluster: ClusterName| {
        let explanation = explain(cache, snapshot, addon, &cluster);
        (cluster, explanation)
    };
    let explanations: BTreeMap<_, _> = clusters.into_iter().map(explain).collect();
    Ok(AddOnAnswer {
        clusters: explanations.len(),
        groups: group_members(&explanations).into_iter().map(GroupAnswer::from).collect(),
        failures: group_failures(&explanations).into_iter().map(FailureAnswer::from).collect(),
    })
}

fn explain_member(cache: &Cache, addon: &ObjectKey, cluster: &ClusterName) -> Result<ClusterAnswer, Refusal> {
    let snapshot = planned(cache, addon)?;
    let is_there = cache.is_on_cluster(&ObjectKey::namespaced(cluster.as_str(), &addon.name));
    if !is_there && snapshot.entry(cluster).is_none() {
        return Err(Refusal::NoMember { addon: addon.clone(), cluster: cluster.as_str().to_owned() });
    }
    Ok(ClusterAnswer::new(cluster.clone(), explain(cache, snapshot, addon, cluster)))
}

/// What was last planned for an add-on.
fn planned<'a>(cache: &'a Cache, addon: &ObjectKey) -> Result<&'a Snapshot<Set>, Refusal> {
    cache.addon(addon).ok_or_else(|| Refusal::NoAddOn(addon.clone()))?;
    cache.snapshot(addon).ok_or_else(|| Refusal::NotPlanned(addon.clone()))
}

fn explain(cache: &Cache, snapshot: &Snapshot<Set>, addon: &ObjectKey, cluster: &ClusterName) -> ClusterExplanation {
    let on_cluster = cache.on_cluster(&ObjectKey::namespaced(cluster.as_str(), &addon.name));
    explain_cluster(snapshot, on_cluster, cluster)
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::header};
    use drover_api::{
        drover::AddOnRollout,
        names::{PAUSE_ANNOTATION, SKIP_ANNOTATION},
    };
    use drover_runtime::{cache::SharedCache, clock::ManualClock, informer::Freshness};
    use serde_json::{Value, json};

    use super::{super::tests::server, *};
    use crate::addon::{
        Rollouts,
        scene::{Scene, named, noon},
    };

    /// An add-on on two clusters, one of them paused and one skipped, and a third that is unreachable.
    fn found() -> Scene {
        let mut scene = Scene::new();
        for (cluster, available) in [("one", "True"), ("two", "Unknown"), ("three", "True")] {
            scene.available(cluster, available);
        }
        scene.addon("hello", &json!({ "type": "Placements", "placements": [named("x")] }));
        scene.placement("x", 3);
        scene.decide("x", &["one", "two", "three"]);
        let owner = json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "name": "hello", "uid": "hello", "controller": true, "blockOwnerDeletion": true });
        scene.set::<AddOnRollout>(None, "hello", json!({ "metadata": { "ownerReferences": [owner] }, "status": {} }));
        for (cluster, annotation) in [("one", PAUSE_ANNOTATION), ("three", SKIP_ANNOTATION)] {
            scene.on_cluster(cluster, "hello", &json!({ "metadata": { "annotations": { annotation: "true" } } }));
        }
        scene
    }

    fn debugger(scene: Scene, is_allowed: bool) -> Debugger {
        Debugger {
            client: server(is_allowed),
            cache: SharedCache::new(scene.cache, scene.queues),
            freshness: Freshness::default(),
            clock: ManualClock::at(noon()).clock(),
        }
    }

    fn headers() -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, "Bearer token".parse().expect("a header"))])
    }

    async fn body(answer: Result<Response, Refusal>) -> Value {
        let body = answer.expect("an answer").into_body();
        let text = to_bytes(body, usize::MAX).await.expect("a body");
        serde_json::from_slice(&text).expect("JSON")
    }

    async fn group(debugger: &Debugger) -> Result<Response, Refusal> {
        of_addon(State(debugger.clone()), Path("hello".to_owned()), headers()).await
    }

    async fn one(debugger: &Debugger, cluster: &str) -> Result<Response, Refusal> {
        of_cluster(State(debugger.clone()), Path(("hello".to_owned(), cluster.to_owned())), headers()).await
    }

    #[tokio::test]
    async fn clusters_are_grouped_and_explained() {
        let mut scene = found();
        scene.plan(&Rollouts, &ObjectKey::cluster_wide("hello"));
        let debugger = debugger(scene, true);

        let answer = body(group(&debugger).await).await;
        assert_eq!((&answer["clusters"], &answer["failures"]), (&json!(3), &json!([])));
        let groups = answer["groups"].as_array().expect("a list").iter();
        let groups: Vec<_> =
            groups.map(|group| (&group["state"], &group["blocker"]["kind"], &group["examples"])).collect();
        let expected = [("Offline", "two"), ("Paused", "one"), ("Skipped", "three")];
        let expected = expected.map(|(state, cluster)| (json!(state), json!(state), json!([cluster])));
        assert_eq!(groups, expected.iter().map(|(state, kind, names)| (state, kind, names)).collect::<Vec<_>>());

        let answer = body(one(&debugger, "one").await).await;
        assert_eq!((&answer["placement"], &answer["state"]), (&json!("default/x"), &json!("Paused")), "{answer}");
        assert_eq!(answer["blocker"]["object"], json!("annotation drover.dev/pause"));
        let refusal = one(&debugger, "elsewhere").await.expect_err("it is no member");
        assert_eq!(refusal.code(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn nothing_is_explained_before_it_is_planned_or_without_permission() {
        let refusal = group(&debugger(found(), true)).await.expect_err("nothing is planned");
        assert_eq!(refusal.code(), StatusCode::SERVICE_UNAVAILABLE);
        let refusal = group(&debugger(Scene::new(), true)).await.expect_err("there is none");
        assert_eq!(refusal.code(), StatusCode::NOT_FOUND);
        let refusal = group(&debugger(found(), false)).await.expect_err("it is not allowed");
        assert_eq!(refusal.code(), StatusCode::FORBIDDEN);
        assert!(refusal.to_string().ends_with(" may not get clustermanagementaddons"), "{refusal}");
    }
}
