//! What the hub tells of placements, and to whom.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
};

use drover_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use drover_hub::{Hub, Options};
use drover_runtime::clock::Clock;
use drover_testkit::{World, wait};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::running::{NAMESPACE, as_hub, options};

drover_testkit::scenarios! {
    Own {
        who_may_read_a_placement_is_told_why_it_selects,
        who_may_create_a_placement_is_told_what_it_would_select,
        a_standby_tells_as_well,
    }
}

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: Namespace
metadata: { name: other }
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: { name: global, namespace: shop }
spec: { clusterSet: global }
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: { name: large, labels: { env: prod } }
spec: { hubAcceptsClient: true }
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: { name: tainted, labels: { env: prod } }
spec: { hubAcceptsClient: true, taints: [{ key: example.com/broken, effect: NoSelect }] }
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: { name: testing, labels: { env: test } }
spec: { hubAcceptsClient: true }
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: { name: production, namespace: shop }
spec:
  predicates: [{ requiredClusterSelector: { labelSelector: { matchLabels: { env: prod } } } }]
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: reader, namespace: shop }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: author, namespace: shop }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader, namespace: shop }
rules: [{ apiGroups: [cluster.open-cluster-management.io], resources: [placements], verbs: [get] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: author, namespace: shop }
rules: [{ apiGroups: [cluster.open-cluster-management.io], resources: [placements], verbs: [create] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader, namespace: shop }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects: [{ kind: ServiceAccount, name: reader, namespace: shop }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: author, namespace: shop }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: author }
subjects: [{ kind: ServiceAccount, name: author, namespace: shop }]
";

/// A hub that answers, on a server with a placement that has decided.
struct Desk {
    hub: Hub,
    address: SocketAddr,
    reader: String,
    author: String,
}

impl Desk {
    async fn open(world: &World) -> Self {
        let hub = start(world, None).await;
        world.kubectl_with_input(["apply", "--server-side", "-f", "-"], OBJECTS.as_bytes()).await.success();
        has_decided(world).await;
        let address = hub.debug().expect("it was asked to answer");
        Self { hub, address, reader: token(world, "reader").await, author: token(world, "author").await }
    }
}

async fn start(world: &World, identity: Option<&str>) -> Hub {
    // Nobody plays the agents, so the hub is not to say that clusters are unreachable.
    let options = Options {
        identity: identity.map(str::to_owned),
        debug_listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        controllers: "*,-cluster".parse().expect("a valid list"),
        ..options()
    };
    Hub::start(as_hub(world).await, &options, Clock::system()).await.expect("the hub starts")
}

async fn token(world: &World, account: &str) -> String {
    world.kubectl(["create", "token", "--namespace", "shop", account]).await.success().trim().to_owned()
}

/// What is answered, with its status.
async fn ask(address: SocketAddr, method: &str, path: &str, token: Option<&str>, body: &str) -> (u16, Value) {
    let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{authorization}content-length: {length}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.expect("the hub listens");
    stream.write_all(head.as_bytes()).await.expect("the hub reads");
    // A body that is refused may not be read to its end.
    let _ = stream.write_all(body.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("an answer is text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("not HTTP: {answer}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("an answer has a status");
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

fn error((status, answer): &(u16, Value)) -> (u16, &str) {
    (*status, answer["error"].as_str().unwrap_or_else(|| panic!("no error in {answer}")))
}

const PRODUCTION: &str = "/debug/placements/shop/production";

async fn who_may_read_a_placement_is_told_why_it_selects(world: World) {
    let desk = Desk::open(&world).await;
    let get = async |path, token| ask(desk.address, "GET", path, token, "").await;
    let reader = Some(desk.reader.as_str());

    let (status, mut answer) = get(PRODUCTION, reader).await;
    assert_eq!(status, 200, "{answer}");
    let placement = answer["placement"].take();
    assert_eq!(placement["metadata"], json!({ "name": "production", "namespace": "shop" }));
    assert_eq!(placement["spec"]["predicates"].as_array().map(Vec::len), Some(1));
    assert_eq!(placement.get("status"), None);
    let expected = json!({
        "placement": null,
        "filteredPipelineResults": [
            { "name": "Predicate", "filteredClusters": ["large", "tainted"] },
            { "name": "Predicate,TaintToleration", "filteredClusters": ["large"] },
        ],
        "prioritizeResults": [
            { "name": "Steady", "weight": 1, "scores": { "large": 100 } },
            { "name": "Balance", "weight": 1, "scores": { "large": 100 } },
        ],
        "aggregatedScores": [{ "clusterName": "large", "score": 200 }],
    });
    assert_eq!(answer, expected);

    let author = Some(desk.author.as_str());
    assert_eq!(
        error(&get(PRODUCTION, author).await),
        (403, "system:serviceaccount:shop:author may not get placements in the namespace shop")
    );
    assert_eq!(error(&get("/debug/placements/other/any", reader).await).0, 403, "nor what there is elsewhere");
    assert_eq!(error(&get(PRODUCTION, None).await).0, 401);
    assert_eq!(error(&get(PRODUCTION, Some("not-a-token")).await).0, 401);
    assert_eq!(
        error(&get("/debug/placements/shop/missing", reader).await),
        (404, "there is no placement shop/missing")
    );
    assert_eq!(error(&get("/debug/placements/", reader).await).0, 400);
    assert_eq!(error(&get("/elsewhere", reader).await).0, 404);
    assert_eq!(error(&ask(desk.address, "DELETE", PRODUCTION, reader, "").await).0, 405);
    desk.hub.stop().await;
}

async fn who_may_create_a_placement_is_told_what_it_would_select(world: World) {
    let desk = Desk::open(&world).await;
    let author = Some(desk.author.as_str());
    let post = async |token, body: &str| ask(desk.address, "POST", "/debug/placements/", token, body).await;
    let draft = |spec: Value| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "metadata": { "name": "draft", "namespace": "shop" },
            "spec": spec,
        })
        .to_string()
    };
    let before = everything(&world).await;

    let (status, answer) = post(author, &draft(json!({ "tolerations": [{ "operator": "Exists" }] }))).await;
    assert_eq!(status, 200, "{answer}");
    let passed = &answer["filteredPipelineResults"][1]["filteredClusters"];
    assert_eq!(*passed, json!(["large", "tainted", "testing"]));
    let order: Vec<_> =
        answer["aggregatedScores"].as_array().expect("a list").iter().map(|score| &score["clusterName"]).collect();
    assert_eq!(order, ["tainted", "testing", "large"], "another placement has selected the last");

    let nonsense = draft(json!({ "numberOfClusters": -1 }));
    let message = "the placement makes no sense: NumberOfClusters: numberOfClusters is -1: \
                   write 0 or more, or leave it out to select all that match";
    assert_eq!(error(&post(author, &nonsense).await), (400, message));
    assert_eq!(error(&post(author, "{").await).0, 400);
    assert_eq!(error(&post(author, &json!({ "metadata": { "name": "draft" }, "spec": {} }).to_string()).await).0, 400);
    assert_eq!(error(&post(author, &"x".repeat((1 << 20) + 1)).await).0, 413);
    assert_eq!(error(&post(Some(&desk.reader), &draft(json!({}))).await).0, 403);
    assert_eq!(error(&post(None, &draft(json!({}))).await).0, 401);

    desk.hub.stop().await;
    assert_eq!(everything(&world).await, before, "nothing was written");
}

async fn a_standby_tells_as_well(world: World) {
    let leader = start(&world, Some("leader")).await;
    world.kubectl_with_input(["apply", "--server-side", "-f", "-"], OBJECTS.as_bytes()).await.success();
    has_decided(&world).await;

    let standby = start(&world, Some("standby")).await;
    let reader = token(&world, "reader").await;
    let address = standby.debug().expect("it was asked to answer");
    let (status, answer) = loop {
        let (status, answer) = ask(address, "GET", PRODUCTION, Some(&reader), "").await;
        // What it says while it reads the fleet.
        if status != 503 {
            break (status, answer);
        }
    };
    assert_eq!((status, &answer["aggregatedScores"][0]["clusterName"]), (200, &json!("large")), "{answer}");
    let lease = Api::<Lease>::namespaced(world.client(), NAMESPACE).get("drover-hub").await.expect("somebody leads");
    assert_eq!(lease.spec.and_then(|spec| spec.holder_identity).as_deref(), Some("leader"));
    standby.stop().await;
    leader.stop().await;
}

async fn has_decided(world: &World) {
    let placements = Api::<Placement>::namespaced(world.client(), "shop");
    wait::until(&placements, "production", "it has decided", |placement| {
        placement.status.as_ref().is_some_and(|status| status.number_of_selected_clusters == 1)
    })
    .await;
}

/// All placements, decisions and clusters, with their versions.
async fn everything(world: &World) -> BTreeSet<String> {
    let all = ListParams::default();
    let placements = Api::<Placement>::all(world.client()).list(&all).await.expect("placements can be read");
    let decisions = Api::<PlacementDecision>::all(world.client()).list(&all).await.expect("decisions can be read");
    let clusters = Api::<ManagedCluster>::all(world.client()).list(&all).await.expect("clusters can be read");
    let versions = placements.iter().map(|object| (object.name_any(), object.resource_version()));
    let versions = versions.chain(decisions.iter().map(|object| (object.name_any(), object.resource_version())));
    let versions = versions.chain(clusters.iter().map(|object| (object.name_any(), object.resource_version())));
    versions.map(|(name, version)| format!("{name}@{}", version.unwrap_or_default())).collect()
}
