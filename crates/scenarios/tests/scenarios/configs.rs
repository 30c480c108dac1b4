//! Configurations of any type: which are read, and which contents are kept.

use std::{pin::pin, sync::Arc, time::Duration};

use drover_api::{
    addon::{AddOnConfig, AddOnDeploymentConfig, ConfigGroupResource, ConfigReferent},
    drover::{AddOnRollout, AddOnRolloutSpec, ConfigRevision},
    grammar::SpecHash,
    names::LIFECYCLE_ANNOTATION,
};
use drover_engine::{addon::config_revision, hash::spec_hash};
use drover_runtime::{
    clock::ManualClock,
    informer::{Freshness, Informer, Observer, Refusal, Sighting},
    metrics::Metrics,
};
use drover_testkit::{
    World,
    objects::{self, Described as _},
    wait,
};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Secret},
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    documents::documented,
    running::{NAMESPACE, as_hub, change, create, hub_clock, start_at},
};

drover_testkit::scenarios! {
    Own {
        what_a_rollout_needs_is_kept,
        what_a_configuration_contains_is_kept,
        a_type_that_the_hub_can_not_read_holds_up_nothing_else,
    }
    Shared {
        a_kind_is_watched_while_it_is_defined_and_may_be_read,
    }
}

/// As time passes in these scenarios: so much of the hub's for so much of anybody else's.
const STEP: Duration = Duration::from_secs(10);
const MEANWHILE: Duration = Duration::from_millis(10);

fn config(group: &str, resource: &str, namespace: &str, name: &str) -> AddOnConfig {
    AddOnConfig {
        group_resource: ConfigGroupResource { group: group.to_owned(), resource: resource.to_owned() },
        referent: ConfigReferent { namespace: Some(namespace.to_owned()), name: name.to_owned() },
    }
}

fn sha256(text: &str) -> SpecHash {
    text.parse().expect("any text is a hash")
}

/// Keeps some content with that hash, as the hub would, and says by which name.
async fn keep(world: &World, config: &AddOnConfig, hash: SpecHash) -> String {
    let mut revision = config_revision::revision(config, hash, Some("{}"));
    revision.metadata.namespace = Some(NAMESPACE.to_owned());
    create(&revisions(world), revision).await.name_any()
}

fn revisions(world: &World) -> Api<ConfigRevision> {
    Api::namespaced(world.client(), NAMESPACE)
}

/// Waits until the hub has removed something that it had no reason to keep. What came before that was attended to before.
async fn is_attentive(world: &World, clock: &ManualClock, about: &AddOnConfig) {
    let unneeded = keep(world, about, spec_hash(&world.unique("unneeded"))).await;
    is_removed(world, clock, &unneeded).await;
}

/// Waits until the hub has removed a revision, while time passes: it keeps what nobody needs for a while from when it has seen that.
async fn is_removed(world: &World, clock: &ManualClock, name: &str) {
    let revisions = revisions(world);
    let mut removed = pin!(wait::gone(&revisions, name));
    let mut time = tokio::time::interval(MEANWHILE);
    loop {
        tokio::select! {
            () = &mut removed => return,
            _ = time.tick() => clock.advance(STEP),
        }
    }
}

async fn what_a_rollout_needs_is_kept(world: World) {
    let (client, clock) = (as_hub(&world).await, hub_clock());
    let thing = config("example.com", "things", "default", "one");
    let (first, second) = (spec_hash("first"), spec_hash("second"));
    let kept = keep(&world, &thing, first.clone()).await;
    let also_kept = keep(&world, &thing, second.clone()).await;
    let rollouts = Api::<AddOnRollout>::all(world.client());
    create(&rollouts, AddOnRollout::new("addon", AddOnRolloutSpec {})).await;
    let with = async |hashes: &[&SpecHash]| {
        let set = |(number, hash): (usize, &&SpecHash)| {
            json!({
                "fingerprint": format!("{number:016}"),
                "epoch": 1,
                "firstWanted": "2026-01-01T00:00:00Z",
                "configs": [{ "group": "example.com", "resource": "things", "namespace": "default", "name": "one", "specHash": hash }],
            })
        };
        let sets: Vec<_> = hashes.iter().enumerate().map(set).collect();
        let status = Patch::Merge(json!({ "status": { "sets": sets } }));
        rollouts.patch_status("addon", &PatchParams::default(), &status).await.expect("a rollout has a status");
    };
    with(&[&first, &second]).await;
    let hub = start_at(client, None, clock.clock()).await;

    is_attentive(&world, &clock, &thing).await;
    for name in [&kept, &also_kept] {
        revisions(&world).get(name).await.expect("a rollout needs it");
    }
    with(&[&second]).await;
    is_removed(&world, &clock, &kept).await;
    is_attentive(&world, &clock, &thing).await;
    revisions(&world).get(&also_kept).await.expect("a rollout needs it");
    rollouts.delete("addon", &DeleteParams::default()).await.expect("a rollout can be deleted");
    is_removed(&world, &clock, &also_kept).await;
    hub.stop().await;
}

/// Lets the hub read what the documentation shows how to grant. Kubernetes has a controller that collects the rules of
/// labelled roles; there is none here, so this does it.
async fn grant(world: &World) {
    let documented = documented("docs/security.md");
    let documented = documented.iter().map(|block| serde_saphyr::from_str::<Value>(block).expect("a role is YAML"));
    let labelled =
        documented.filter(|role| role["metadata"]["labels"]["drover.dev/hub-reads-configs"] == json!("true"));
    let roles = Api::<ClusterRole>::all(world.client());
    let mut rules = Vec::new();
    for role in labelled {
        let role: ClusterRole = serde_json::from_value(role).expect("a role");
        rules.extend(create(&roles, role).await.rules.unwrap_or_default());
    }
    assert!(!rules.is_empty(), "the page shows how to grant a type");
    change(&roles, "drover-hub-configs", json!({ "rules": rules })).await;
}

async fn can_list<K>(client: &Client) -> Result<(), String>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let listed = Api::<K>::all(client.clone()).list(&ListParams::default().limit(1)).await;
    listed.map(drop).map_err(|error| error.to_string())
}

/// Makes an add-on that refers to configurations, and that somebody else rolls out, so that no rollout needs their contents.
async fn refer_to(world: &World, configs: &[&AddOnConfig]) {
    let mut addon = objects::addon("addon").annotated(LIFECYCLE_ANNOTATION, "self");
    addon.spec.default_configs = configs.iter().copied().cloned().collect();
    create(&Api::all(world.client()), addon).await;
}

async fn what_a_configuration_contains_is_kept(world: World) {
    let (client, clock) = (as_hub(&world).await, hub_clock());
    grant(&world).await;
    wait::attempt("the hub may read ConfigMaps", async || can_list::<ConfigMap>(&client).await).await;
    let namespace = world.namespace("configs").await;
    let maps = Api::<ConfigMap>::namespaced(world.client(), &namespace);
    let map = json!({ "metadata": { "name": "map" }, "data": { "b": "2", "a": "<x>&y" } });
    create(&maps, serde_json::from_value(map).expect("a ConfigMap")).await;
    let deployments = Api::<AddOnDeploymentConfig>::namespaced(world.client(), &namespace);
    let spec = json!({ "customizedVariables": [{ "name": "test", "value": "test" }], "proxyConfig": {} });
    let deployment = json!({ "metadata": { "name": "deployment" }, "spec": spec });
    create(&deployments, serde_json::from_value(deployment).expect("a configuration")).await;
    let of_map = config("", "configmaps", &namespace, "map");
    let of_deployment = config("addon.open-cluster-management.io", "addondeploymentconfigs", &namespace, "deployment");
    refer_to(&world, &[&of_map, &of_deployment]).await;
    // These are what OCM computes for the same objects.
    let map_hash = sha256("4cd375f2daef6211a436c1cf78ee24ebef70d749c45acc9fecb83c84b8cee1ff");
    let deployment_hash = sha256("ea4e6089e8b2f584c1cd8b86e16a15df3186b30744f433ede7436091c93a4cc7");
    let kept_map = keep(&world, &of_map, map_hash).await;
    let kept_deployment = keep(&world, &of_deployment, deployment_hash).await;
    let hub = start_at(client, None, clock.clock()).await;

    for about in [&of_map, &of_deployment] {
        is_attentive(&world, &clock, about).await;
    }
    for name in [&kept_map, &kept_deployment] {
        revisions(&world).get(name).await.expect("a configuration has that content");
    }
    change(&maps, "map", json!({ "data": { "a": "other" } })).await;
    is_removed(&world, &clock, &kept_map).await;
    revisions(&world).get(&kept_deployment).await.expect("a configuration has that content");
    deployments.delete("deployment", &DeleteParams::default()).await.expect("a configuration can be deleted");
    is_removed(&world, &clock, &kept_deployment).await;
    hub.stop().await;
}

async fn a_type_that_the_hub_can_not_read_holds_up_nothing_else(world: World) {
    let (client, clock) = (as_hub(&world).await, hub_clock());
    for refused in [can_list::<ConfigMap>(&client).await, can_list::<Secret>(&client).await] {
        assert!(refused.is_err_and(|error| error.contains("forbidden")), "nobody has granted this");
    }
    let forbidden = config("", "configmaps", "default", "map");
    let secret = config("", "secrets", "default", "secret");
    let missing = config("example.com", "things", "default", "one");
    let hostile = config("../../api/v1", "secrets?watch=true", "default", "one");
    refer_to(&world, &[&forbidden, &secret, &missing, &hostile]).await;
    let hub = start_at(client, None, clock.clock()).await;
    for about in [&forbidden, &missing] {
        is_attentive(&world, &clock, about).await;
    }
    hub.stop().await;
}

/// Writes down what is seen.
#[derive(Default)]
struct Notes(watch::Sender<Vec<String>>);

impl Observer<DynamicObject> for Notes {
    fn observe(&self, sighting: Sighting<DynamicObject>) {
        let note = match sighting.map(|object| format!("{} is {}", object.name_any(), object.data["spec"])) {
            Sighting::Object(note) => note,
            Sighting::Gone(last) => format!("{} is gone", last.name.unwrap_or_default()),
            other => format!("{other:?}"),
        };
        self.0.send_modify(|notes| notes.push(note));
    }
}

impl Notes {
    async fn until(&self, last: &str) {
        let mut notes = self.0.subscribe();
        let noted = notes.wait_for(|notes| notes.last().is_some_and(|note| note == last));
        let noted = tokio::time::timeout(Duration::from_mins(1), noted).await;
        assert!(noted.is_ok(), "waited in vain for {last}: {:?}", self.0.borrow());
    }
}

async fn a_kind_is_watched_while_it_is_defined_and_may_be_read(world: World) {
    let group = format!("{}.example.com", world.unique("informers"));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Thing"));
    let (freshness, notes) = (Freshness::default(), Notes::default());
    let informer = |client| Informer::of(client, &kind, Arc::new(freshness.join("Thing")), &Metrics::new());

    let absent = informer(world.client());
    assert_eq!(absent.run_until_refused(&notes).await, Refusal::NoSuchKind);
    let stranger = world.certified("stranger", &["strangers"]).await;
    assert_eq!(informer(stranger).run_until_refused(&notes).await, Refusal::Forbidden);
    freshness.complete().await;

    let definitions = Api::<CustomResourceDefinition>::all(world.client());
    let name = format!("things.{group}");
    create(&definitions, definition(&group)).await;
    wait::until(&definitions, &name, "it is established", is_established).await;
    let things = Api::<DynamicObject>::all_with(world.client(), &kind);
    let thing = DynamicObject::new("one", &kind).data(json!({ "spec": 1 }));
    wait::attempt("the kind is served", async || create_once(&things, &thing).await.map_err(|error| error.to_string()))
        .await;
    let there = informer(world.client());
    let test = async {
        freshness.complete().await;
        notes.until("ListEnds").await;
        change(&things, "one", json!({ "spec": 2 })).await;
        notes.until("one is 2").await;
        definitions.delete(&name, &DeleteParams::default()).await.expect("a definition can be deleted");
    };
    let (refusal, ()) = tokio::join!(there.run_until_refused(&notes), test);
    assert_eq!(refusal, Refusal::NoSuchKind);
    let expected = ["ListBegins", "one is 1", "ListEnds", "one is 2", "one is gone", "Refused(NoSuchKind)"];
    let seen = notes.0.borrow().clone();
    assert!(seen.ends_with(&expected.map(str::to_owned)), "{seen:?}");
}

async fn create_once(things: &Api<DynamicObject>, thing: &DynamicObject) -> Result<(), kube::Error> {
    things.create(&kube::api::PostParams::default(), thing).await.map(drop)
}

fn definition(group: &str) -> CustomResourceDefinition {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "integer" } } });
    let definition = json!({
        "metadata": { "name": format!("things.{group}") },
        "spec": {
            "group": group,
            "names": { "kind": "Thing", "plural": "things" },
            "scope": "Cluster",
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    serde_json::from_value(definition).expect("a definition")
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True")
}
