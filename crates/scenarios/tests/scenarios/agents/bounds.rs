//! What an agent's certificate is good for on the hub: in its own namespace what OCM's agents may do, and nothing else anywhere.
//!
//! Every verb is tried on every resource that the hub serves, by real requests with the credentials that the agent has got for itself. Whatever changes something is a
//! dry run, which is judged like any other.

use std::{collections::BTreeSet, fmt};

use drover_api::names::{CLUSTER_AVAILABLE, CLUSTER_LEASE};
use drover_testkit::{World, objects, wait};
use futures_util::{StreamExt as _, stream};
use http::{Method, Request};
use k8s_openapi::{
    ByteString,
    api::{coordination::v1::Lease, core::v1::Namespace, core::v1::Secret},
};
use kube::{
    Api, Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::{CLUSTER, Pair, cluster_says, config_map};
use crate::running::{NAMESPACE as HUB_NAMESPACE, create};

drover_testkit::scenarios! {
    Own { an_agents_certificate_is_good_for_its_own_namespace_alone }
}

/// A cluster that the agent has nothing to do with. The name begins with that of its own.
const OTHER: &str = "one-more";
/// How many attempts are made at a time.
const CONCURRENCY: usize = 16;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it is about one object, or a part of it.
    fn is_of_one(self) -> bool {
        matches!(self, Self::Get | Self::Update | Self::Patch | Self::Delete)
    }

    fn method(self) -> Method {
        match self {
            Self::Get | Self::List | Self::Watch => Method::GET,
            Self::Create => Method::POST,
            Self::Update => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete | Self::DeleteCollection => Method::DELETE,
        }
    }

    fn query(self) -> &'static str {
        match self {
            Self::Get | Self::List => "",
            Self::Watch => "?watch=true&timeoutSeconds=1",
            _ => "?dryRun=All",
        }
    }
}

/// A resource that the hub serves.
#[derive(Clone, Debug)]
struct Resource {
    group: String,
    version: String,
    /// Its name, and that of its part if one is meant.
    name: String,
    part: Option<String>,
    is_namespaced: bool,
}

impl Resource {
    /// Whether a verb means something for it, in a namespace or outside of any. All objects of a kind that has namespaces are meant there.
    fn is_possible(&self, verb: Verb, namespace: Option<&str>) -> bool {
        (self.part.is_none() || verb.is_of_one() || verb == Verb::Create) && (self.is_namespaced || namespace.is_none())
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        let part = self.part.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
        write!(f, "{}{part}{dot}{}", self.name, self.group)
    }
}

/// Something that an agent tries.
struct Attempt<'a> {
    verb: Verb,
    resource: &'a Resource,
    /// Where; everywhere if it is nothing.
    namespace: Option<&'a str>,
    /// Of which name.
    name: &'a str,
}

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.name(), self.resource)?;
        if self.namespace.is_none() && self.verb.is_of_one() { write!(f, " {}", self.name) } else { Ok(()) }
    }
}

impl Attempt<'_> {
    fn request(&self) -> Request<Vec<u8>> {
        let Self { verb, resource: Resource { group, version, name, part, .. }, .. } = self;
        let group = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let namespace = self.namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let is_of_one = verb.is_of_one() || part.is_some();
        let object = if is_of_one { format!("/{}", self.name) } else { String::new() };
        let part = part.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
        let uri = format!("{group}/{version}/{namespace}{name}{object}{part}{}", verb.query());
        let body = if verb.method() == Method::GET { Vec::new() } else { b"{}".to_vec() };
        let content = if *verb == Verb::Patch { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(verb.method()).uri(uri).header("content-type", content);
        request.body(body).expect("a request")
    }

    /// Whether the hub lets the agent do it, whatever would come of it.
    async fn is_allowed(&self, client: &Client) -> bool {
        match client.request_text(self.request()).await {
            Err(kube::Error::Api(status)) => {
                assert_ne!(status.code, 401, "the hub knows the agent");
                // Policies forbid too, but only what roles allow.
                status.code != 403 || !status.message.contains(&format!("cannot {} ", self.verb.name()))
            }
            Err(kube::Error::Service(error)) => panic!("{self}: the hub did not answer: {error}"),
            _ => true,
        }
    }
}

/// All that the hub serves.
async fn served(client: &Client) -> Vec<Resource> {
    let groups = client.list_api_groups().await.expect("groups are told").groups;
    let versions = groups.into_iter().flat_map(|group| group.versions).map(|version| version.group_version);
    let mut lists = vec![client.list_core_api_resources("v1").await.expect("resources are told")];
    for version in versions {
        lists.push(client.list_api_group_resources(&version).await.expect("resources are told"));
    }
    let read = |list: k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList| {
        let (group, version) = list.group_version.split_once('/').unwrap_or(("", &list.group_version));
        let (group, version) = (group.to_owned(), version.to_owned());
        list.resources.into_iter().map(move |resource| {
            let is_namespaced = resource.namespaced;
            let (name, part) = match resource.name.split_once('/') {
                Some((name, part)) => (name.to_owned(), Some(part.to_owned())),
                None => (resource.name, None),
            };
            Resource { group: group.clone(), version: version.clone(), name, part, is_namespaced }
        })
    };
    lists.into_iter().flat_map(read).collect()
}

/// The client of the agent, by what it keeps on its cluster.
async fn agent(pair: &Pair) -> Client {
    let secrets = Api::<Secret>::namespaced(pair.managed.client(), "open-cluster-management-agent");
    let kept = secrets.get("hub-kubeconfig-secret").await.expect("the credentials are kept").data.unwrap_or_default();
    let text = |key: &str| String::from_utf8(kept[key].0.clone()).expect("text");
    let encoded = |key: &str| {
        let text = serde_json::to_value(ByteString(kept[key].0.clone())).expect("bytes are JSON");
        text.as_str().expect("bytes are a text in JSON").to_owned()
    };
    let mut kubeconfig = Kubeconfig::from_yaml(&text("kubeconfig")).expect("a kubeconfig");
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(AuthInfo {
            client_certificate_data: Some(encoded("tls.crt")),
            client_key_data: Some(encoded("tls.key").into()),
            ..AuthInfo::default()
        });
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a kubeconfig")).expect("a client can be made")
}

/// What of all that can be tried in a namespace, or outside of any, the hub lets the agent do. Objects have that name.
async fn allowed(client: &Client, served: &[Resource], namespace: Option<&str>, name: &str) -> BTreeSet<String> {
    let pairs = served.iter().flat_map(|resource| Verb::ALL.map(|verb| (resource, verb)));
    let possible = pairs.filter(|(resource, verb)| resource.is_possible(*verb, namespace));
    let tried = stream::iter(possible).map(async |(resource, verb)| {
        let attempt = Attempt { verb, resource, namespace, name };
        attempt.is_allowed(client).await.then(|| attempt.to_string())
    });
    tried.buffer_unordered(CONCURRENCY).filter_map(async |allowed| allowed).collect().await
}

/// Rows of verbs and what they are for, one for each.
fn table(rows: &[(&str, &[&str])]) -> BTreeSet<String> {
    rows.iter().flat_map(|(of, verbs)| verbs.iter().map(move |verb| format!("{verb} {of}"))).collect()
}

/// What an agent may do in its own namespace, as OCM has it.
fn own_namespace() -> BTreeSet<String> {
    let read = ["get", "list", "watch"];
    table(&[
        ("leases.coordination.k8s.io", &["get", "list", "watch", "update"]),
        ("managedclusteraddons.addon.open-cluster-management.io", &read),
        ("managedclusteraddons/status.addon.open-cluster-management.io", &["patch", "update"]),
        ("manifestworks.work.open-cluster-management.io", &["get", "list", "watch", "update", "patch"]),
        ("manifestworks/status.work.open-cluster-management.io", &["patch", "update"]),
        ("events", &["create", "patch", "update"]),
        ("events.events.k8s.io", &["create", "patch", "update"]),
    ])
}

/// What everybody may do whom the hub knows: ask what he may do himself, and who he is.
fn everybody() -> BTreeSet<String> {
    let about_oneself = [
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
    ];
    about_oneself.iter().map(|resource| format!("create {resource}")).collect()
}

/// What an agent may do outside of namespaces to objects with the name of its cluster, and to others.
fn outside(name: &str) -> BTreeSet<String> {
    let requests = "certificatesigningrequests.certificates.k8s.io";
    let mut all = table(&[(requests, &["create", "list", "watch"])]);
    all.insert(format!("get {requests} {name}"));
    all.extend(everybody());
    if name == CLUSTER {
        let (clusters, status) = (
            format!("managedclusters.cluster.open-cluster-management.io {name}"),
            format!("managedclusters/status.cluster.open-cluster-management.io {name}"),
        );
        all.extend(table(&[(&clusters, &["get", "update"]), (&status, &["patch", "update"])]));
    }
    all
}

/// Complains of what is allowed and should not be, and of what should be and is not, by name.
fn assert_allowed(place: &str, served: &[Resource], allowed: &BTreeSet<String>, expected: &BTreeSet<String>) {
    // A hub need not serve everything that Kubernetes does.
    let is_served = |attempt: &&String| {
        let of = attempt.split(' ').nth(1).unwrap_or_default();
        served.iter().any(|resource| resource.to_string() == of)
    };
    let more: Vec<_> = allowed.difference(expected).collect();
    let less: Vec<_> = expected.difference(allowed).filter(is_served).collect();
    assert!(more.is_empty() && less.is_empty(), "{place}: the agent may {more:#?}, and may not {less:#?}");
}

async fn an_agents_certificate_is_good_for_its_own_namespace_alone(world: World) {
    let pair = Pair::new(world).await;
    create(&pair.clusters(), objects::cluster(OTHER)).await;
    let namespaces = Api::<Namespace>::all(pair.hub.client());
    wait::until(&namespaces, OTHER, "the other cluster has a namespace", |_| true).await;
    // By then all its roles are in force: it has reported, renewed its lease and applied a work.
    pair.apply("w", json!([config_map("a", &json!({}))])).await;
    pair.until_cluster("it is available", |cluster| {
        cluster_says(cluster, CLUSTER_AVAILABLE, "True", "ManagedClusterAvailable")
    })
    .await;
    let leases = Api::<Lease>::namespaced(pair.hub.client(), CLUSTER);
    let renewed = |lease: &Lease| lease.spec.as_ref().is_some_and(|spec| spec.renew_time.is_some());
    wait::until(&leases, CLUSTER_LEASE, "it is renewed", renewed).await;
    let (client, admin) = (agent(&pair).await, pair.hub.client());
    let served = served(&admin).await;
    assert!(
        served.iter().any(|resource| resource.to_string() == "manifestworks/status.work.open-cluster-management.io")
    );
    assert!(served.iter().any(|resource| resource.to_string() == "secrets"));

    let nothing = BTreeSet::new();
    for namespace in [OTHER, HUB_NAMESPACE, "kube-system", "default"] {
        let found = allowed(&client, &served, Some(namespace), "some").await;
        assert_allowed(&format!("in the namespace {namespace}"), &served, &found, &nothing);
    }
    for name in [OTHER, CLUSTER, HUB_NAMESPACE] {
        let found = allowed(&client, &served, None, name).await;
        assert_allowed(&format!("outside of namespaces, for {name}"), &served, &found, &outside(name));
    }
    let found = allowed(&client, &served, Some(CLUSTER), "some").await;
    assert_allowed("in its own namespace", &served, &found, &own_namespace());
    assert_lists(&client).await;
    assert_paths(&client).await;
    pair.end().await;
}

/// Lists of clusters are allowed where they can hold none but the own.
async fn assert_lists(client: &Client) {
    for (name, is_allowed) in [(CLUSTER, true), (OTHER, false)] {
        for watch in ["", "&watch=true&timeoutSeconds=1"] {
            let uri = format!(
                "/apis/cluster.open-cluster-management.io/v1/managedclusters?fieldSelector=metadata.name%3D{name}{watch}"
            );
            assert_eq!(code(client, &uri).await == 200, is_allowed, "{uri}");
        }
    }
}

/// What the hub serves besides objects: everybody may find out what there is, and nobody how it is.
async fn assert_paths(client: &Client) {
    for (path, is_allowed) in
        [("/api", true), ("/apis", true), ("/version", true), ("/metrics", false), ("/logs", false)]
    {
        assert_eq!(code(client, path).await == 200, is_allowed, "{path}");
    }
}

async fn code(client: &Client, uri: &str) -> u16 {
    match client.request_text(Request::get(uri).body(Vec::new()).expect("a request")).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{uri}: the hub did not answer: {error}"),
    }
}

#[test]
fn what_is_tried_is_asked_for_as_kubernetes_has_it() {
    let part = Resource {
        group: "work.open-cluster-management.io".to_owned(),
        version: "v1".to_owned(),
        name: "manifestworks".to_owned(),
        part: Some("status".to_owned()),
        is_namespaced: true,
    };
    let core = Resource { group: String::new(), name: "secrets".to_owned(), part: None, ..part.clone() };
    let cases: [(Verb, &Resource, Option<&str>, Value); 4] = [
        (
            Verb::Patch,
            &part,
            Some("one"),
            json!([
                "PATCH",
                "/apis/work.open-cluster-management.io/v1/namespaces/one/manifestworks/some/status?dryRun=All"
            ]),
        ),
        (Verb::List, &core, None, json!(["GET", "/api/v1/secrets"])),
        (Verb::DeleteCollection, &core, Some("one"), json!(["DELETE", "/api/v1/namespaces/one/secrets?dryRun=All"])),
        (Verb::Get, &core, Some("one"), json!(["GET", "/api/v1/namespaces/one/secrets/some"])),
    ];
    for (verb, resource, namespace, expected) in cases {
        let request = Attempt { verb, resource, namespace, name: "some" }.request();
        assert_eq!(json!([request.method().as_str(), request.uri().to_string()]), expected);
    }
}
