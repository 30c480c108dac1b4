//! What is said of an upgrade and of its clusters, and that nothing is built on what could not be said.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use drover_api::{cluster::ManagedClustersUpgrade, names::UPGRADE_PRIORITY_LABEL};
use drover_engine::upgrade::{naming::Part, operator_work::SUCCESS_ANNOTATION};
use drover_testkit::{World, wait};
use http::{Method, Request, Response, StatusCode};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    client::Body,
};
use serde_json::json;

use super::{Field, HOME, UPGRADE, action, canary, message, numbers, operators, said, spokes::Platform, start};
use crate::running::{change, reach};

drover_testkit::scenarios! {
    Own {
        decisions_1_and_2_initialized_is_cumulative_and_nobody_is_left_out_of_the_counts,
        decisions_4_and_70_each_condition_has_a_reason_of_its_own_and_a_mixed_end_is_a_failure,
        decision_5_the_spelling_of_the_specification_is_kept,
        decision_6_what_clusters_say_comes_from_their_conditions,
        decisions_7_to_9_the_job_names_whole_pairs_and_lasts_as_long_as_it_may,
        decision_68_what_could_not_be_stored_frees_no_slot,
    }
}

/// Of five clusters one is done, two are being upgraded, one can not be reached, and one is beyond the target.
async fn mixed(world: World) -> Field {
    let field = Field::of(world, &["a", "b", "c", "away", "beyond"]).await;
    field.platforms(&["b", "c"], Platform::Moves).await;
    field.behave("beyond", |spoke| "4.13.0".clone_into(&mut spoke.version)).await;
    reach(&field.world, "away", "Unknown").await;
    field.upgrade(json!({ "maxConcurrency": 3 }), json!({})).await;
    field.counts([5, 3, 2, 1, 1, 1]).await;
    field
}

async fn decisions_1_and_2_initialized_is_cumulative_and_nobody_is_left_out_of_the_counts(world: World) {
    let field = mixed(world).await;
    // One of those that failed had not been begun.
    let adds_up = async || {
        let status = field.upgrades().get(UPGRADE).await.expect("it is there").status.unwrap_or_default();
        let [total, initialized, partial, complete, failed, pending] = numbers(&status);
        assert_eq!(total, pending + initialized + 1, "{status:#?}");
        assert_eq!(initialized, partial + complete + (failed - 1), "{status:#?}");
    };
    adds_up().await;
    for (cluster, place) in [
        ("a", "Complete/Upgraded"),
        ("b", "Upgrading/Upgrading"),
        ("c", "Upgrading/Upgrading"),
        ("away", "Waiting/Offline"),
        ("beyond", "Failed/Downgrade"),
    ] {
        field.is_at(cluster, place).await;
    }
    // One that fails after it was begun stays among those that were.
    field.platforms(&["b"], Platform::Overtaken).await;
    field.counts([5, 3, 1, 1, 2, 1]).await;
    adds_up().await;
    field.hub.stop().await;
}

async fn decisions_4_and_70_each_condition_has_a_reason_of_its_own_and_a_mixed_end_is_a_failure(world: World) {
    let field = mixed(world).await;
    let status = field.says("InProgress", "True/ManagedClustersUpgradeInProgress").await;
    assert_eq!(said(&status, "Complete").as_deref(), Some("False/ManagedClustersUpgradeInProgress"));
    assert_eq!(said(&status, "Failed").as_deref(), Some("True/ManagedClustersUpgradeFailed"));

    field.platforms(&["b", "c"], Platform::Completes).await;
    reach(&field.world, "away", "True").await;
    let status = field.counts([5, 4, 0, 4, 1, 0]).await;
    let finished = "ManagedClustersUpgradeFinishedWithFailures";
    assert_eq!(said(&status, "InProgress"), Some(format!("False/{finished}")));
    assert_eq!(said(&status, "Complete"), Some(format!("False/{finished}")), "that it is over is no success");
    assert_eq!(said(&status, "Failed"), Some(format!("True/{finished}")));
    assert_eq!(message(&status, "Failed"), "1 cluster failed: beyond");
    field.hub.stop().await;
}

async fn decision_5_the_spelling_of_the_specification_is_kept(world: World) {
    let field = Field::of(world, &["a", "b"]).await;
    let rest = json!({ "preUpgradeAction": action("backup"), "postUpgradeAction": action("check") });
    field.upgrade(json!({ "canaryClusters": canary(&["a"]) }), rest).await;
    field.is_complete().await;
    let kind = ApiResource::erase::<ManagedClustersUpgrade>(&());
    let api = Api::<DynamicObject>::namespaced_with(field.world.client(), HOME, &kind);
    let status = api.get(UPGRADE).await.expect("it is there").data["status"].clone();
    let clusters =
        json!({ "total": 2, "initialized": 2, "partialUpgrade": 0, "complete": 2, "failed": 0, "pending": 0 });
    assert_eq!(status["clustersSummery"], clusters);
    let canaries =
        json!({ "total": 1, "initialized": 1, "partialUpgrade": 0, "complete": 1, "failed": 0, "pending": 0 });
    assert_eq!(status["canaryClustersSummery"], canaries);
    let actions = json!({ "total": 2, "applied": 2, "available": 2, "progressing": 0, "degraded": 0 });
    assert_eq!((&status["preUpgradeActionSummary"], &status["postUpgradeActionSummary"]), (&actions, &actions));
    field.hub.stop().await;
}

async fn decision_6_what_clusters_say_comes_from_their_conditions(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.platforms(&["a"], Platform::Moves).await;
    field.upgrade(json!({}), json!({})).await;
    let says = async |text: &str| {
        wait::attempt(&format!("it is said that {text}"), async || {
            let record = field.is_at("a", "Upgrading/Upgrading").await.status.unwrap_or_default();
            let message = record.message.unwrap_or_default();
            if message.ends_with(text) { Ok(()) } else { Err(message) }
        })
        .await;
    };
    says("the cluster is being upgraded: Working towards 4.12.0: 40% complete").await;
    field.platforms(&["a"], Platform::Failing).await;
    says("the cluster is being upgraded: Cluster operator etcd is degraded").await;
    let work = field.work("a", Part::Platform).await;
    let rules = work.spec.manifest_configs.iter().flat_map(|config| &config.feedback_rules);
    let paths: Vec<_> = rules.flat_map(|rule| &rule.json_paths).filter(|path| path.name == "message").collect();
    let [path] = paths[..] else { panic!("{paths:?}") };
    assert_eq!(path.path, r#".status.conditions[?(@.type=="Progressing")].message"#);
    field.hub.stop().await;
}

async fn decisions_7_to_9_the_job_names_whole_pairs_and_lasts_as_long_as_it_may(world: World) {
    let field = Field::of(world, &["a"]).await;
    field.upgrade(json!({ "operatorsUpgradeTimeout": "5m" }), json!({ "ocpOperators": operators() })).await;
    let work = field.work("a", Part::Operators).await;
    let job = work.spec.manifests().iter().find(|manifest| manifest["kind"] == "Job").expect("a Job");
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 300);
    let arguments = &job["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(arguments[0], "--include=openshift-operators/gitops");
    assert_eq!(arguments[1], "--timeout=270s", "it ends in time to say what it waited for");
    let success = &job["metadata"]["annotations"][SUCCESS_ANNOTATION];
    assert_eq!(*success, "the operators run the versions that they were to be upgraded to");
    field.is_complete().await;
    field.hub.stop().await;
}

/// A client for which the server does not store that a cluster is done, as often as is said.
#[derive(Clone)]
struct Forgetful {
    inner: Client,
    left: Arc<AtomicUsize>,
}

impl Forgetful {
    fn client(&self) -> Client {
        let forgetful = self.clone();
        Client::new(tower::service_fn(move |request| forgetful.clone().send(request)), "default")
    }

    async fn send(self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let is_told = request.method() == Method::PATCH && request.uri().path().contains("/clusterupgrades/");
        if !is_told {
            return self.inner.send(request).await;
        }
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let is_done = String::from_utf8_lossy(&body).contains(r#""Complete""#);
        let is_lost = |left: usize| left.checked_sub(1).filter(|_| is_done);
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_lost) {
            Ok(left) => {
                Ok(refusal(if left % 2 == 0 { StatusCode::CONFLICT } else { StatusCode::INTERNAL_SERVER_ERROR }))
            }
            Err(_) => self.inner.send(Request::from_parts(head, Body::from(body.to_vec()))).await,
        }
    }
}

fn refusal(code: StatusCode) -> Response<Body> {
    let reason = if code == StatusCode::CONFLICT { "Conflict" } else { "InternalError" };
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code.as_u16(),
        "reason": reason, "message": "the scenario refuses it" });
    Response::builder().status(code).body(Body::from(status.to_string().into_bytes())).expect("an answer")
}

async fn decision_68_what_could_not_be_stored_frees_no_slot(world: World) {
    let field = Field::new(world).await;
    field.hub.stop().await;
    let forgetful = Forgetful { inner: field.client.clone(), left: Arc::new(AtomicUsize::new(usize::MAX)) };
    let field = Field { hub: start(forgetful.client(), &field.clock).await, ..field };
    field.clusters(&["a", "b"]).await;
    field.select(&["a", "b"]).await;
    for (cluster, priority) in [("a", "0"), ("b", "1")] {
        change(&field.managed(), cluster, json!({ "metadata": { "labels": { (UPGRADE_PRIORITY_LABEL): priority } } }))
            .await;
    }
    field.upgrade(json!({}), json!({})).await;
    // The cluster is done, which the hub tries to write again and again.
    let tries = async |count: usize| {
        let what = format!("{count} attempts");
        field.has(&what, |_| usize::MAX - forgetful.left.load(Ordering::SeqCst) >= count).await;
    };
    tries(2).await;
    field.is_at("b", "PreAction/Prepared").await;
    tries(6).await;
    assert!(!field.parts("b").await.contains(&"platform".to_owned()), "there is one slot, and it is not free");
    assert!(field.place("a").await.is_some_and(|place| place.starts_with("Upgrading/")));
    forgetful.left.store(0, Ordering::SeqCst);
    field.is_complete().await;
    field.hub.stop().await;
}
