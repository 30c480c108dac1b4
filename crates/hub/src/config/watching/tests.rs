//! Types come and go, on an API server that is played and a clock that the test moves.

use axum::{
    Router,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use drover_api::addon::{AddOnConfig, ClusterManagementAddOn};
use drover_engine::addon::catalog::Found;
use drover_runtime::{clock::ManualClock, informer::Freshness};
use k8s_openapi::jiff::Timestamp;
use kube::core::Status;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    super::{Configs, definition::Definition},
    *,
};
use crate::cache::Queues;

/// An API server with at most one type, `things.example.com`.
#[derive(Clone)]
struct Played(Arc<watch::Sender<Served>>);

#[derive(Clone)]
struct Served {
    /// The version that is stored, if there is a definition.
    defined: Option<&'static str>,
    /// Whether the type is there without a definition.
    discovered: bool,
    /// With what code the type is refused, if it is.
    refusal: Option<u16>,
    /// How many watches are open.
    watches: usize,
}

/// One version of the type.
#[derive(Clone)]
struct Part {
    played: Played,
    version: &'static str,
}

impl Played {
    fn client(&self) -> Client {
        let part = |version| get(things).with_state(Part { played: self.clone(), version });
        let routes = Router::new()
            .route("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", get(definition))
            .route("/apis", get(groups))
            .route("/apis/example.com/v1", get(resources))
            .with_state(self.clone())
            .route("/apis/example.com/v1/things", part("v1"))
            .route("/apis/example.com/v2/things", part("v2"));
        Client::new(routes, "default")
    }

    fn change(&self, change: impl FnOnce(&mut Served)) {
        self.0.send_modify(change);
    }

    /// Waits until that many watches are open.
    async fn is_watched(&self, times: usize) {
        let mut served = self.0.subscribe();
        let watched = timeout(PATIENCE, served.wait_for(|served| served.watches == times)).await;
        watched.expect("there are as many watches").expect("the server is there");
    }
}

fn refused(code: u16) -> Response {
    let reason = if code == 404 { "NotFound" } else { "Refused" };
    let status = Status::failure("no", reason).with_code(code);
    let status = serde_json::to_vec(&status).expect("a status is JSON");
    (StatusCode::from_u16(code).expect("a valid code"), status).into_response()
}

fn answer(value: &Value) -> Response {
    value.to_string().into_response()
}

async fn definition(State(Played(served)): State<Played>) -> Response {
    let Some(stored) = served.borrow().defined else { return refused(404) };
    let version = |name| json!({ "name": name, "served": true, "storage": name == stored });
    answer(&json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Thing", "plural": "things" },
            "scope": "Namespaced",
            "versions": [version("v1"), version("v2")],
        },
        "status": { "conditions": [{ "type": "Established", "status": "True" }] },
    }))
}

async fn groups(State(Played(served)): State<Played>) -> Response {
    let version = json!({ "groupVersion": "example.com/v1", "version": "v1" });
    let group = json!({ "name": "example.com", "versions": [version], "preferredVersion": version });
    let groups: Vec<_> = served.borrow().discovered.then_some(group).into_iter().collect();
    answer(&json!({ "groups": groups }))
}

async fn resources() -> Response {
    let resource = |name: &str, verbs: &[&str]| json!({ "name": name, "singularName": "", "kind": "Thing", "namespaced": true, "verbs": verbs });
    let resources = [resource("things/status", &["get"]), resource("things", &["list", "watch"])];
    answer(&json!({ "groupVersion": "example.com/v1", "resources": resources }))
}

/// A watch that is open.
struct Open(Played);

impl Open {
    fn new(played: &Played) -> Self {
        played.change(|served| served.watches += 1);
        Self(played.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.change(|served| served.watches -= 1);
    }
}

async fn things(State(Part { played, version }): State<Part>, RawQuery(query): RawQuery) -> Response {
    let refusal = |served: &Served| match (served.refusal, served.defined.is_some() || served.discovered) {
        (None, false) => Some(404),
        (refusal, _) => refusal,
    };
    let now = refusal(&played.0.borrow());
    if let Some(code) = now {
        return refused(code);
    }
    if query.is_some_and(|query| query.contains("watch=true")) {
        let _open = Open::new(&played);
        // Nothing happens until it ends, because the type is refused.
        let _ = played.0.subscribe().wait_for(|served| refusal(served).is_some()).await;
        return ().into_response();
    }
    let one = json!({ "metadata": { "namespace": "ns", "name": "one", "resourceVersion": "1" }, "spec": version });
    answer(&json!({ "metadata": { "resourceVersion": "1" }, "items": [one] }))
}

/// A hub that watches what is referred to.
struct Scene {
    played: Played,
    clock: ManualClock,
    cache: SharedCache<Cache>,
    freshness: Freshness,
    queues: Queues,
    version: u64,
    _watching: AbortOnDropHandle<()>,
}

impl Scene {
    /// A hub on a server without the type.
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
        let served = Served { defined: None, discovered: false, refusal: None, watches: 0 };
        let played = Played(Arc::new(watch::Sender::new(served)));
        let (freshness, queues) = (Freshness::default(), Queues::new(&clock.clock()));
        let mut cache = Cache::new(clock.clock());
        cache.configs = Configs::new("hub", &freshness);
        let cache = SharedCache::new(cache, queues.clone());
        let watching =
            Watching { client: played.client(), cache: cache.clone(), metrics: Metrics::new(), clock: clock.clock() };
        let task = AbortOnDropHandle::new(tokio::spawn(watching.run()));
        Self { played, clock, cache, freshness, queues, version: 0, _watching: task }
    }

    /// An add-on that refers to these things.
    fn addon(&mut self, name: &str, things: &[&str]) {
        self.version += 1;
        let config = |name| json!({ "group": "example.com", "resource": "things", "namespace": "ns", "name": name });
        let configs: Vec<_> = things.iter().map(config).collect();
        let addon = json!({
            "metadata": { "name": name, "resourceVersion": self.version.to_string() },
            "spec": { "defaultConfigs": configs },
        });
        self.cache.apply(serde_json::from_value::<ClusterManagementAddOn>(addon).expect("an add-on"));
    }

    /// The server has another definition of the type, and the hub sees that.
    fn define(&mut self, stored: Option<&'static str>) {
        self.played.change(|served| served.defined = stored);
        self.version += 1;
        let metadata = json!({ "name": "things.example.com", "resourceVersion": self.version.to_string() });
        let definition: Definition = serde_json::from_value(json!({ "metadata": metadata })).expect("a definition");
        match stored {
            Some(_) => self.cache.apply(definition),
            None => self.cache.delete::<Definition>(&definition.metadata),
        }
    }

    /// Waits until a thing is found like this.
    async fn finds(&self, is_meant: impl Fn(&Found) -> bool) {
        let reference = json!({ "group": "example.com", "resource": "things", "namespace": "ns", "name": "one" });
        let reference: AddOnConfig = serde_json::from_value(reference).expect("a reference");
        let found = || self.cache.read().configs.find(&reference);
        let is_found = timeout(PATIENCE, async {
            // Whatever is found otherwise is told to those who refer to it.
            while !is_meant(&found()) {
                let key = self.queues.rollouts.take().await;
                self.queues.rollouts.done(&key, drover_runtime::queue::Done::Well(None));
            }
        });
        assert!(is_found.await.is_ok(), "found {:?}", found());
    }

    async fn finds_version(&self, version: &str) {
        let expected = drover_engine::hash::spec_hash(&json!({ "spec": version }).to_string());
        self.finds(|found| matches!(found, Found::Content { hash, .. } if *hash == expected)).await;
    }
}

#[tokio::test]
async fn a_type_is_watched_from_when_it_is_defined_until_it_is_not() {
    let mut scene = Scene::new();
    scene.addon("addon", &["one"]);
    scene.finds(|found| *found == Found::NoSuchType).await;
    scene.freshness.complete().await;
    scene.define(Some("v1"));
    scene.finds_version("v1").await;
    scene.define(None);
    scene.finds(|found| *found == Found::NoSuchType).await;
    scene.played.is_watched(0).await;
    scene.define(Some("v1"));
    scene.finds_version("v1").await;
}

#[tokio::test]
async fn a_type_that_nobody_defines_is_looked_for_every_minute() {
    let mut scene = Scene::new();
    scene.addon("addon", &["one"]);
    scene.finds(|found| *found == Found::NoSuchType).await;
    scene.played.change(|served| served.discovered = true);
    scene.clock.advance(PATIENCE);
    scene.finds_version("v1").await;
}

#[tokio::test]
async fn a_type_that_may_not_be_read_is_tried_every_minute_and_held_against_nobody_else() {
    let mut scene = Scene::new();
    scene.define(Some("v1"));
    scene.played.change(|served| served.refusal = Some(403));
    scene.addon("addon", &["one"]);
    scene.freshness.complete().await;
    scene.finds(|found| *found == Found::Forbidden).await;
    scene.played.change(|served| served.refusal = None);
    scene.clock.advance(PATIENCE);
    scene.finds_version("v1").await;
    scene.played.change(|served| served.refusal = Some(403));
    scene.finds(|found| *found == Found::Forbidden).await;
}

#[tokio::test]
async fn a_new_leader_waits_for_a_fresh_list_of_what_is_there() {
    let mut scene = Scene::new();
    scene.define(Some("v1"));
    scene.addon("addon", &["one"]);
    scene.freshness.complete().await;
    scene.finds_version("v1").await;
    scene.freshness.renew().await;
    scene.finds_version("v1").await;

    scene.played.change(|served| served.refusal = Some(500));
    scene.freshness.renew().await;
    scene.finds(|found| *found == Found::NotYet).await;
    scene.define(None);
    scene.finds(|found| *found == Found::NoSuchType).await;
    scene.freshness.renew().await;
}

#[tokio::test]
async fn a_type_is_watched_once_and_not_when_nobody_refers_to_it() {
    let mut scene = Scene::new();
    scene.define(Some("v1"));
    scene.addon("first", &["one"]);
    scene.played.is_watched(1).await;
    scene.addon("second", &["one", "two"]);
    scene.addon("first", &[]);
    scene.finds_version("v1").await;
    assert_eq!(scene.played.0.borrow().watches, 1);
    scene.addon("second", &[]);
    scene.played.is_watched(0).await;
    scene.freshness.complete().await;
    scene.addon("third", &["one"]);
    scene.finds_version("v1").await;
    scene.played.is_watched(1).await;
}

#[tokio::test]
async fn a_type_that_is_stored_in_another_version_is_read_in_that() {
    let mut scene = Scene::new();
    scene.define(Some("v1"));
    scene.addon("addon", &["one"]);
    scene.finds_version("v1").await;
    scene.define(Some("v2"));
    scene.finds_version("v2").await;
}
