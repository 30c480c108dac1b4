//! A fleet for tests of the controllers of add-ons.

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement, PlacementDecision},
    drover::AddOnRollout,
};
use drover_engine::plan::{Plan, PlanStep, Write};
use drover_runtime::{
    cache::Tracks,
    clock::ManualClock,
    controller::Reconciler,
    queue::{Done, Queue},
    store::ObjectKey,
    views::Caches,
};
use futures_util::FutureExt;
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{Resource, api::ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::shelf::Shelf;
use crate::cache::{Cache, Queues};

/// A fleet, to which a test tells what happens.
pub(crate) struct Scene {
    pub(crate) cache: Cache,
    version: u64,
}

/// Takes all that is marked.
pub(crate) fn drain(queue: &Queue<ObjectKey>) -> Vec<String> {
    let mut keys = Vec::new();
    while queue.depth() > 0 {
        let key = queue.take().now_or_never().expect("there is one");
        queue.done(&key, Done::Well(None));
        keys.push(key.to_string());
    }
    keys.sort_unstable();
    keys
}

pub(crate) fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

/// The namespace of all placements here.
const PLACING: &str = "default";

/// A placement, as add-ons name it.
pub(crate) fn named(placement: &str) -> Value {
    json!({ "namespace": PLACING, "name": placement })
}

impl Scene {
    /// A fleet of nothing.
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(noon()).clock();
        let mut cache = Cache::new(Queues::new(&clock), clock);
        cache.list_own_types(&[]);
        Self { cache, version: 0 }
    }

    /// Makes an object be so.
    pub(crate) fn set<K>(&mut self, namespace: Option<&str>, name: &str, mut object: Value)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
        Cache: Tracks<K>,
    {
        self.version += 1;
        let version = self.version.to_string();
        let identity = json!({ "namespace": namespace, "name": name, "uid": name, "resourceVersion": version });
        let metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        object["metadata"] = identity.as_object().cloned().into_iter().flatten().chain(metadata).collect();
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        let object: K = serde_json::from_value(object).expect("an object");
        let change = Tracks::<K>::store(&mut self.cache).apply(object).expect("something changes");
        self.cache.changed(&change);
    }

    /// Makes an object be gone.
    pub(crate) fn gone<K>(&mut self, namespace: Option<&str>, name: &str)
    where
        K: Resource<DynamicType = ()>,
        Cache: Tracks<K>,
    {
        self.version += 1;
        let last = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            resource_version: Some(self.version.to_string()),
            ..ObjectMeta::default()
        };
        let change = Tracks::<K>::store(&mut self.cache).delete(&last).expect("something goes");
        self.cache.changed(&change);
    }

    pub(crate) fn addon(&mut self, name: &str, strategy: &Value) {
        self.set::<ClusterManagementAddOn>(None, name, json!({ "spec": { "installStrategy": strategy } }));
    }

    /// A cluster that is accepted.
    pub(crate) fn cluster(&mut self, name: &str, metadata: &Value) {
        self.set::<ManagedCluster>(None, name, json!({ "metadata": metadata, "spec": { "hubAcceptsClient": true } }));
    }

    pub(crate) fn available(&mut self, name: &str, status: &str) {
        let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": status, "reason": "", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let spec = json!({ "hubAcceptsClient": true });
        self.set::<ManagedCluster>(None, name, json!({ "spec": spec, "status": { "conditions": [condition] } }));
    }

    pub(crate) fn namespace(&mut self, name: &str, metadata: &Value) {
        self.set::<Namespace>(None, name, json!({ "metadata": metadata }));
    }

    /// A placement that says that it has selected so many clusters.
    pub(crate) fn placement(&mut self, name: &str, count: usize) {
        let status = json!({ "numberOfSelectedClusters": count });
        self.set::<Placement>(Some(PLACING), name, json!({ "spec": {}, "status": status }));
    }

    /// The decision of a placement, in one slice.
    pub(crate) fn decide<S: AsRef<str>>(&mut self, placement: &str, clusters: &[S]) {
        let labels = json!({ "cluster.open-cluster-management.io/placement": placement });
        let decision = |name: &S| json!({ "clusterName": name.as_ref(), "reason": "" });
        let decisions: Vec<_> = clusters.iter().map(decision).collect();
        let object = json!({ "metadata": { "labels": labels }, "status": { "decisions": decisions } });
        self.set::<PlacementDecision>(Some(PLACING), &format!("{placement}-1"), object);
    }

    pub(crate) fn on_cluster(&mut self, cluster: &str, addon: &str, rest: &Value) {
        let mut object = json!({ "spec": {} });
        object.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
        self.set::<ManagedClusterAddOn>(Some(cluster), addon, object);
    }

    /// Makes an add-on from a template of its name, whose agents register like this, and remembers what clusters are given of it.
    pub(crate) fn template(&mut self, addon: &str, registration: &Value) {
        let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": addon } });
        let spec = json!({ "addonName": addon, "registration": registration,
            "agentSpec": { "workload": { "manifests": [manifest] } } });
        self.cache.list_own_types(&[(addon, spec)]);
        let config =
            json!({ "group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": addon });
        self.set::<ClusterManagementAddOn>(None, addon, json!({ "spec": { "defaultConfigs": [config] } }));
        let cma = self.cache.addons.cmas.get(&ObjectKey::cluster_wide(addon)).expect("it is there");
        let set = Shelf::of(&self.cache, cma).configured(None, None).expect("it can be had").set;
        let (sets, owner) = ([set.stored(noon())], cma.controller_owner_ref(&()));
        let metadata = json!({ "ownerReferences": [owner] });
        self.set::<AddOnRollout>(None, addon, json!({ "metadata": metadata, "status": { "sets": sets } }));
    }

    /// The condition of an add-on on a cluster by which it was given what is remembered of it.
    pub(crate) fn given(&self, addon: &str) -> Value {
        let record = self.cache.configs.rollout(&ObjectKey::cluster_wide(addon)).expect("it is there");
        let set = &record.status.as_ref().expect("it has a status").sets[0].fingerprint;
        json!({ "type": "drover.dev/Given", "status": "True", "reason": "Given", "message": set,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    }

    /// What a controller would do about a key, at noon.
    pub(crate) fn plan<R>(&self, controller: &R, key: &ObjectKey) -> Plan<R::Action>
    where
        R: Reconciler<Cache, Key = ObjectKey>,
    {
        let plan = controller.plan(&self.cache, key, noon());
        let views = Cache::views();
        for write in plan.ordered.iter().chain(&plan.parallel) {
            assert!(views.has(write.kind().view), "the answer to {write} enters no cache");
        }
        plan
    }
}

/// The writes and actions of a plan, in words.
pub(crate) fn words<A: PlanStep>(plan: &Plan<A>) -> Vec<String> {
    let actions = plan.actions.iter().map(PlanStep::words);
    plan.ordered.iter().map(Write::to_string).chain(actions).chain(plan.parallel.iter().map(Write::to_string)).collect()
}
