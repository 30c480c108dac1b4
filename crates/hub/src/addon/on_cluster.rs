//! The add-on controller: keeps one add-on on one cluster up to date.
//!
//! Watches add-ons, their works and bindings, and clusters for their annotations. Its key is a
//! ManagedClusterAddOn. It writes that object's owner, the annotations that are copied from the
//! cluster, the version that its placement assigns, and its status; and where the add-on is rendered
//! from a template, its works.

use drover_engine::{
    addon::on_cluster::{self, WorkAttempt},
    plan::{Plan, PlanPart, WriteResult},
};
use drover_runtime::{controller::Reconciler, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;

use crate::{adopt::CreateOrAdopt, cache::Cache};

pub(crate) struct AddOns;

impl Reconciler<Cache> for AddOns {
    type Key = ObjectKey;
    type State = WorkAttempt;
    type Action = CreateOrAdopt;

    const NAME: &'static str = "drover-addon";

    fn plan(&self, cache: &Cache, key: &ObjectKey, last: &mut WorkAttempt, now: Timestamp) -> Plan<Self::Action> {
        if cache.addons.mcas.get(key).is_none_or(|addon| addon.metadata.deletion_timestamp.is_some()) {
            cache.addons.render_cache.forget(key);
        }
        on_cluster::plan(cache, key, last, now)
    }

    fn sent(
        &self,
        _: &ObjectKey,
        last: &mut WorkAttempt,
        part: PlanPart<'_, Self::Action>,
        result: &WriteResult,
        _: Timestamp,
    ) {
        on_cluster::sent(last, part, result);
    }
}

#[cfg(test)]
mod tests {
    use drover_api::{
        addon::ClusterManagementAddOn,
        drover::AddOnRollout,
        names::{ASSIGNED_VERSION_ANNOTATION, GIVEN, INSTALLED_ANNOTATION, LIFECYCLE_ANNOTATION, PROVEN},
    };
    use drover_engine::{
        addon::on_cluster::with_inheritance,
        revision::{Set, markers::Verdict},
    };
    use drover_runtime::informer::Refusal;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        addon::{
            Rollouts,
            scene::{Scene, drain, named, words},
        },
        manifest_work::CachedWork,
    };

    /// A fleet with an add-on on a cluster, and how many writes it takes to bring that up to date.
    fn writes(addon: serde_json::Value, on_cluster: &serde_json::Value) -> usize {
        let mut scene = Scene::new();
        scene.cluster("one", &json!({ "annotations": { "addon.open-cluster-management.io/x": "1" } }));
        scene.set::<ClusterManagementAddOn>(None, "hello", addon);
        scene.on_cluster("one", "hello", on_cluster);
        words(&scene.plan(&AddOns, &ObjectKey::namespaced("one", "hello"))).len()
    }

    #[test]
    fn an_add_on_is_brought_up_to_date_unless_it_is_not_ours_or_on_its_way_out() {
        let spec = json!({ "installStrategy": { "type": "Placements", "placements": [named("x")] } });
        let going = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        assert_eq!(writes(json!({ "spec": spec }), &json!({})), 1);
        let managed_elsewhere = json!({ "annotations": { LIFECYCLE_ANNOTATION: "self" } });
        assert_eq!(writes(json!({ "spec": spec, "metadata": managed_elsewhere }), &json!({})), 0);
        assert_eq!(writes(json!({ "spec": spec, "metadata": going }), &json!({})), 0);
        assert_eq!(writes(json!({ "spec": spec }), &json!({ "metadata": going })), 0);
    }

    #[test]
    fn an_add_on_that_has_all_is_not_written() {
        let spec = json!({ "installStrategy": { "type": "Manual" } });
        assert_eq!(writes(json!({ "spec": spec }), &json!({ "metadata": { "ownerReferences": [owner()] } })), 0);
    }

    const SET: &str = "0123456789abcdef";

    /// A fleet as a hub finds it that is started again: the placement x has given version v1 to the cluster one, where it fails.
    fn found() -> Scene {
        let mut scene = Scene::new();
        scene.available("one", "True");
        let mut entry = named("x");
        entry["addonTemplate"] = json!({ "installVersion": "v1" });
        scene.addon("hello", &json!({ "type": "Placements", "placements": [entry] }));
        scene.placement("x", 1);
        scene.decide("x", &["one"]);
        scene.set::<AddOnRollout>(None, "hello", remembering(SET));
        scene.on_cluster("one", "hello", &failed());
        drain(&scene.queues.addons);
        scene
    }

    fn remembering(set: &str) -> Value {
        let sets = json!([{ "fingerprint": set, "configs": [], "version": "v1", "epoch": 1,
            "firstWanted": "2026-01-01T00:00:00Z" }]);
        json!({ "metadata": { "ownerReferences": [owner()] }, "status": { "sets": sets } })
    }

    fn owner() -> Value {
        json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
            "name": "hello", "uid": "hello", "controller": true, "blockOwnerDeletion": true })
    }

    fn failed() -> Value {
        let says = |type_: &str, status: &str, reason: &str| {
            json!({ "type": type_, "status": status, "reason": reason, "message": SET,
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let annotations = json!({ ASSIGNED_VERSION_ANNOTATION: "v1", INSTALLED_ANNOTATION: "true" });
        json!({
            "metadata": { "annotations": annotations, "ownerReferences": [owner()] },
            "spec": { "installVersion": "v1" },
            "status": { "conditions": [says(GIVEN, "True", "Given"), says(PROVEN, "False", "Failing")] },
        })
    }

    fn addons() -> AddOns {
        AddOns
    }

    fn rollouts() -> Rollouts {
        Rollouts
    }

    fn hello() -> ObjectKey {
        ObjectKey::cluster_wide("hello")
    }

    fn one() -> ObjectKey {
        ObjectKey::namespaced("one", "hello")
    }

    /// Whether the add-on on the cluster one is to have anything else than it has, but for its status.
    fn is_changed(scene: &Scene) -> bool {
        let addons = &scene.cache.addons;
        let (on_cluster, addon) = (addons.mcas.get(&one()), addons.cmas.get(&ObjectKey::cluster_wide("hello")));
        let (on_cluster, addon) = (on_cluster.expect("it is there"), addon.expect("it is there"));
        with_inheritance(&scene.cache, &one(), on_cluster, addon, addons.snapshot(&hello())).is_some()
    }

    fn roll_out(scene: &mut Scene) {
        scene.plan(&rollouts(), &ObjectKey::cluster_wide("hello"));
    }

    #[test]
    fn nothing_is_written_before_it_is_known_how_clusters_stand() {
        let mut scene = found();
        assert_eq!(words(&scene.plan(&addons(), &one())), [""; 0]);
        roll_out(&mut scene);
        assert_eq!(drain(&scene.queues.addons), ["one/hello"], "now it is");
        assert!(!is_changed(&scene));
        assert_eq!(words(&scene.plan(&addons(), &one())), ["Patch ManagedClusterAddOn one/hello"], "its status");
        roll_out(&mut scene);
        assert_eq!(drain(&scene.queues.addons), [""; 0], "nothing has changed since");
    }

    #[test]
    fn rollout_does_not_trust_a_stored_proof_that_reports_contradict() {
        let mut scene = found();
        let set = Set::new([], Some("v1".parse().expect("a version"))).fingerprint();
        scene.set::<AddOnRollout>(None, "hello", remembering(set.as_str()));
        let mut verified = failed();
        let conditions = verified["status"]["conditions"].as_array_mut().expect("a list");
        conditions[1]["status"] = json!("True");
        conditions[1]["reason"] = json!("Proven");
        for condition in conditions.iter_mut() {
            condition["message"] = json!(set.as_str());
        }
        scene.on_cluster("one", "hello", &verified);
        let verdict = |scene: &mut Scene| {
            roll_out(scene);
            let member = scene.state::<Rollouts>(&hello()).tracker.index.member(&"one".into()).cloned();
            member.and_then(|member| member.addon?.proof).map(|proof| proof.verdict)
        };
        report(&mut scene, "True");
        assert_eq!(verdict(&mut scene), Some(Verdict::Unsettled), "its manager has not said that all is applied");
        report(&mut scene, "False");
        assert_eq!(verdict(&mut scene), Some(Verdict::NoLongerApplied), "though its conditions are not written yet");
    }

    /// The work of the add-on on the cluster one is applied, or not.
    fn report(scene: &mut Scene, applied: &str) {
        let says = |type_: &str, status: &str| {
            json!({ "type": type_, "status": status, "reason": "Test", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let labels = json!({ "open-cluster-management.io/addon-name": "hello",
            "open-cluster-management.io/addon-version": "v1" });
        let conditions = [says("Applied", applied), says("Available", "True")];
        let work = json!({ "metadata": { "labels": labels, "generation": 1 }, "spec": {},
            "status": { "conditions": conditions } });
        scene.set::<CachedWork>(Some("one"), "addon-hello-deploy-0", work);
    }

    #[test]
    fn a_version_stays_where_nobody_decides_or_remembers() {
        let mut scene = found();
        scene.decide::<&str>("x", &[]);
        roll_out(&mut scene);
        assert!(!is_changed(&scene), "nobody decides");
        scene.decide("x", &["one"]);
        scene.set::<AddOnRollout>(None, "hello", remembering("fedcba9876543210"));
        roll_out(&mut scene);
        assert!(!is_changed(&scene), "the set is forgotten");
        scene.gone::<AddOnRollout>(None, "hello");
        roll_out(&mut scene);
        assert!(!is_changed(&scene), "all sets are");
    }

    #[test]
    fn a_version_goes_when_its_placement_assigns_none() {
        let mut scene = found();
        roll_out(&mut scene);
        drain(&scene.queues.addons);
        scene.addon("hello", &json!({ "type": "Placements", "placements": [named("x")] }));
        assert_eq!(drain(&scene.queues.addons), ["one/hello"]);
        roll_out(&mut scene);
        assert!(is_changed(&scene));
    }

    #[test]
    fn who_is_decided_for_by_another_placement_is_looked_at() {
        let mut scene = found();
        let mut assigning = named("x");
        assigning["addonTemplate"] = json!({ "installVersion": "v1" });
        scene.addon("hello", &json!({ "type": "Placements", "placements": [assigning, named("y")] }));
        scene.placement("y", 0);
        roll_out(&mut scene);
        drain(&scene.queues.addons);
        scene.decide("y", &["one"]);
        roll_out(&mut scene);
        assert_eq!(drain(&scene.queues.addons), ["one/hello"]);
        assert!(is_changed(&scene), "y assigns none");
    }

    #[test]
    fn what_is_said_of_a_users_version_stays_while_it_is_not_known_which_there_are() {
        let mut scene = found();
        let mut own = failed();
        own["metadata"]["annotations"] = json!({ INSTALLED_ANNOTATION: "true" });
        scene.on_cluster("one", "hello", &own);
        roll_out(&mut scene);
        assert_eq!(words(&scene.plan(&addons(), &one())), ["Patch ManagedClusterAddOn one/hello"]);
        scene.cache.refuse_templates(Refusal::Failing, &scene.queues);
        roll_out(&mut scene);
        assert_eq!(words(&scene.plan(&addons(), &one())), [""; 0]);
    }
}
