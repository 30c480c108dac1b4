//! A cache and its queues for tests of controllers.

use std::{any::Any, collections::BTreeMap};

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement, PlacementDecision},
    drover::AddOnRollout,
};
use drover_engine::{
    addon::resolver::ConfigResolver,
    plan::{Plan, PlanPart, PlanStep, Write, WriteResult},
    tracker::Dirty,
};
use drover_runtime::{
    cache::{Enqueue, Tracks},
    clock::ManualClock,
    controller::{KeyState, Reconciler},
    kinds::Caches,
    queue::{Done, Payload, Queue},
    store::ObjectKey,
};
use futures_util::FutureExt;
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{Resource, api::ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::rollout::Rollouts;
use crate::{
    cache::{Cache, Queues},
    upgrade::ClusterUpgrades,
    work::ReplicaSets,
};

/// The cache of a hub with its queues, to which a test tells what happens.
pub(crate) struct Scene {
    pub(crate) cache: Cache,
    pub(crate) queues: Queues,
    /// What controllers keep of their keys, by controller.
    states: BTreeMap<(&'static str, ObjectKey), Box<dyn Any>>,
    version: u64,
}

/// Takes all that is marked.
pub(crate) fn drain<P: Payload>(queue: &Queue<ObjectKey, P>) -> Vec<String> {
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
        let queues = Queues::new(&clock);
        let mut cache = Cache::new(clock);
        cache.list_own_types(&[], &queues);
        Self { cache, queues, states: BTreeMap::new(), version: 0 }
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
        self.cache.changed(&change, &self.queues);
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
        self.cache.changed(&change, &self.queues);
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
        self.cache.list_own_types(&[(addon, spec)], &self.queues);
        let config =
            json!({ "group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": addon });
        self.set::<ClusterManagementAddOn>(None, addon, json!({ "spec": { "defaultConfigs": [config] } }));
        let cma = self.cache.addons.cmas.get(&ObjectKey::cluster_wide(addon)).expect("it is there");
        let set = ConfigResolver::of(&self.cache, cma).configured(None, None).expect("it can be had").set;
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

    /// What a controller keeps of a key.
    pub(crate) fn state<R: Reconciler<Cache, Key = ObjectKey>>(&self, key: &ObjectKey) -> &R::State {
        let state = self.states.get(&(R::NAME, key.clone())).expect("it was planned");
        state.downcast_ref().expect("a name is that of one controller")
    }

    fn take_state<R: Reconciler<Cache, Key = ObjectKey>>(&mut self, key: &ObjectKey) -> R::State {
        let state = self.states.remove(&(R::NAME, key.clone()));
        state.map_or_else(R::State::default, |state| *state.downcast().expect("a name is that of one controller"))
    }

    /// The members that have changed since a controller last planned for a key.
    fn payload(&self, controller: &str, key: &ObjectKey) -> Dirty {
        let tracking = [
            (<Rollouts as Reconciler<Cache>>::NAME, &self.queues.rollouts),
            (<ReplicaSets as Reconciler<Cache>>::NAME, &self.queues.work_sets),
            (<ClusterUpgrades as Reconciler<Cache>>::NAME, &self.queues.upgrades),
        ];
        let queue = tracking.into_iter().find(|(name, _)| *name == controller);
        queue.map(|(_, queue)| queue.payload(key)).unwrap_or_default()
    }

    /// Tells a controller what a part of its last plan came to.
    pub(crate) fn sent<R>(
        &mut self,
        controller: &R,
        key: &ObjectKey,
        part: PlanPart<'_, R::Action>,
        result: &WriteResult,
    ) where
        R: Reconciler<Cache, Key = ObjectKey>,
    {
        let mut state = self.take_state::<R>(key);
        controller.sent(key, &mut state, part, result, noon());
        self.states.insert((R::NAME, key.clone()), Box::new(state));
    }

    /// Tells a controller that all writes of its last plan were accepted.
    pub(crate) fn accept<R>(&mut self, controller: &R, key: &ObjectKey, plan: &Plan<R::Action>)
    where
        R: Reconciler<Cache, Key = ObjectKey>,
    {
        for write in plan.ordered.iter().chain(&plan.parallel) {
            self.sent(controller, key, PlanPart::Write(write), &WriteResult::Done);
        }
        for event in &plan.events {
            self.sent(controller, key, PlanPart::Event(event), &WriteResult::Done);
        }
    }

    /// What a controller plans for a key, at noon.
    pub(crate) fn plan<R>(&mut self, controller: &R, key: &ObjectKey) -> Plan<R::Action>
    where
        R: Reconciler<Cache, Key = ObjectKey>,
    {
        self.plan_at(controller, key, noon())
    }

    /// What a controller plans for a key.
    pub(crate) fn plan_at<R>(&mut self, controller: &R, key: &ObjectKey, now: Timestamp) -> Plan<R::Action>
    where
        R: Reconciler<Cache, Key = ObjectKey>,
    {
        let mut state = self.take_state::<R>(key);
        let payload: Box<dyn Any> = Box::new(self.payload(R::NAME, key));
        if let Ok(payload) = payload.downcast() {
            state.mark(*payload);
        }
        let plan = controller.plan(&self.cache, key, &mut state, now);
        if let Some(publish) = controller.publish(key, &state) {
            publish(&mut self.cache);
        }
        for (controller, key) in &plan.enqueue {
            self.queues.enqueue(*controller, key);
        }
        self.states.insert((R::NAME, key.clone()), Box::new(state));
        let kinds = Cache::kinds();
        for write in plan.ordered.iter().chain(&plan.parallel) {
            assert!(kinds.has(write.kind()), "the answer to {write} enters no cache");
        }
        plan
    }
}

/// The writes and actions of a plan, in words.
pub(crate) fn words<A: PlanStep>(plan: &Plan<A>) -> Vec<String> {
    let actions = plan.actions.iter().map(PlanStep::words);
    plan.ordered.iter().map(Write::to_string).chain(actions).chain(plan.parallel.iter().map(Write::to_string)).collect()
}
