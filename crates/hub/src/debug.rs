//! Why a placement selects what it selects, and where each cluster is in the rollouts of an add-on,
//! over HTTP.
//!
//! `GET /debug/placements/<namespace>/<name>` is about a placement that there is, `POST /debug/placements/` about one that there
//! could be. `GET /debug/addons/<name>` groups the clusters of an add-on, and `GET /debug/addons/<name>/<cluster>` explains one.
//! Nothing is written. Who asks has a token, and may read, or create, placements in that namespace, or may read
//! ClusterManagementAddOns. A standby answers about placements too.

mod addons;
mod placements;

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use drover_engine::placement::Misconfigured;
use drover_runtime::{cache::SharedCache, clock::Clock, informer::Freshness, store::ObjectKey};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, Resource, api::PostParams, core::ObjectMeta};
use serde::Serialize;

use crate::cache::Cache;

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
    #[error("{user} may not {verb} {what}")]
    Forbidden { user: String, verb: String, what: String },
    #[error("there is no placement {0}")]
    NotFound(ObjectKey),
    #[error("there is no ClusterManagementAddOn {0}")]
    NoAddOn(ObjectKey),
    #[error("the add-on {addon} is not on the cluster {cluster}, and no placement selects the cluster for it")]
    NoMember { addon: ObjectKey, cluster: String },
    #[error("this hub has not planned the rollouts of {0}: ask the hub that leads, or again in a moment")]
    NotPlanned(ObjectKey),
    #[error(
        "there is nothing here: GET /debug/placements/<namespace>/<name>, POST a placement to /debug/placements/, or GET /debug/addons/<name>, or /debug/addons/<name>/<cluster>"
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
            Self::NotFound(_) | Self::NoAddOn(_) | Self::NoMember { .. } | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotReady(_) | Self::NotPlanned(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Server(_) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json(self.code(), &serde_json::json!({ "error": self.to_string() }))
    }
}

impl Debugger {
    /// The endpoints.
    pub(crate) fn endpoints(self) -> Router {
        let only = |methods: MethodRouter<Self>| methods.fallback(async || Refusal::Method);
        Router::new()
            .route("/debug/placements/", only(get(async || Refusal::NoName).post(placements::could_be)))
            .route("/debug/placements/{namespace}/{name}", only(get(placements::there_is)))
            .route("/debug/addons/{addon}", only(get(addons::of_addon)))
            .route("/debug/addons/{addon}/{cluster}", only(get(addons::of_cluster)))
            .fallback(async || Refusal::NoSuchPath)
            .with_state(self)
    }

    /// Makes sure that a user may do that.
    async fn authorize(&self, user: UserInfo, attributes: ResourceAttributes) -> Result<(), Refusal> {
        let (verb, resource) = (attributes.verb.clone(), attributes.resource.clone());
        let namespace = attributes.namespace.clone();
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
            _ => {
                let within = namespace.map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default();
                let what = format!("{}{within}", resource.unwrap_or_default());
                Err(Refusal::Forbidden { user: name, verb: verb.unwrap_or_default(), what })
            }
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
}

/// What has to be allowed to do something with a kind of objects.
fn asks_for<K: Resource<DynamicType = ()>>(verb: &str) -> ResourceAttributes {
    ResourceAttributes {
        group: Some(K::group(&()).into_owned()),
        version: Some(K::version(&()).into_owned()),
        resource: Some(K::plural(&()).into_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    }
}

fn json(code: StatusCode, answer: &impl Serialize) -> Response {
    match serde_json::to_vec(answer) {
        Ok(text) => (code, [(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        extract::{Path, State},
        routing::post,
    };
    use drover_api::cluster::Placement;
    use drover_runtime::{clock::ManualClock, informer::Informer, metrics::Metrics};
    use k8s_openapi::jiff::Timestamp;
    use kube::runtime::watcher;

    use super::{placements::there_is, *};
    use crate::cache::Queues;

    /// A server that knows all users, and allows them everything.
    pub(super) fn welcoming() -> Client {
        server(true)
    }

    /// A server that knows all users, and allows them everything or nothing.
    pub(super) fn server(is_allowed: bool) -> Client {
        let known = r#"{"spec":{"token":""},"status":{"authenticated":true,"user":{"username":"somebody"}}}"#;
        let allowed = if is_allowed {
            r#"{"spec":{},"status":{"allowed":true}}"#
        } else {
            r#"{"spec":{},"status":{"allowed":false}}"#
        };
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
