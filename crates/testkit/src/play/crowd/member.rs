//! One cluster of a crowd: what is known of it, and what it does next.

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    addon::{ConfigReference, ManagedClusterAddOn},
    grammar::Version,
    names::{
        ADDON_NAME_LABEL, ADDON_VERSION_LABEL, AVAILABLE, CONFIG_SPEC_HASH_ANNOTATION, CONFIGURED, GIVEN,
        MANIFEST_APPLIED, PROGRESSING,
    },
    work::{ManifestWork, ManifestWorkStatus, StatusFeedback},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    objects::{self, Described},
    play::{
        addon_manager::{given_configs, manifests_applied},
        agent::success,
        conditions::{fails, holds},
        feedback::Rise,
    },
};

/// How a cluster's agent treats its works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Reports them as applied and available at once.
    #[default]
    Well,
    /// Reports nothing any more.
    Silent,
    /// Reports that they can not be applied.
    Fails,
    /// Reports them as applied and available after a while, by tokio's clock.
    Slow(Duration),
    /// Reports them as applied and available; but what they deploy never gets ready, while what ran before still does.
    Stuck,
    /// Reports them as applied and available; but nothing of what they deploy runs.
    Down,
}

impl Behaviour {
    /// How what works deploy comes up.
    fn rise(self) -> Rise {
        match self {
            Self::Stuck => Rise::Stuck,
            Self::Down => Rise::Down,
            Self::Well | Self::Silent | Self::Fails | Self::Slow(_) => Rise::Ready,
        }
    }
}

/// What an add-on says of itself on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Healthy,
    Unhealthy,
}

/// What a cluster does next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Act(Act),
    /// Nothing before this time.
    Wait(Instant),
}

/// A request.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// The manager makes its work.
    Make(Box<ManifestWork>),
    /// The manager changes the work of that name.
    Change(String, Value),
    /// The agent reports on the work of that name.
    Answer(String, Value),
    /// The manager, or the add-on itself, reports on the add-on.
    Report(Value),
}

/// What is known of a cluster, and how it behaves.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// The add-on, once it is there.
    pub(super) addons: BTreeMap<String, ManagedClusterAddOn>,
    /// The add-on's works, whoever has made them.
    pub(super) works: BTreeMap<String, ManifestWork>,
    /// Whether somebody is at it.
    pub(super) is_served: bool,
    /// When it will be looked at in any case.
    pub(super) wake_up: Option<Instant>,
    behaviour: Behaviour,
    health: Option<Health>,
    /// Since when works have been there that are answered late, each with its generation.
    asked: BTreeMap<String, (Option<i64>, Instant)>,
}

impl Member {
    pub(super) fn addon(&self) -> Option<&ManagedClusterAddOn> {
        self.addons.values().next()
    }

    pub(super) fn behave(&mut self, behaviour: Behaviour) {
        self.behaviour = behaviour;
        self.asked.clear();
    }

    pub(super) fn report_health(&mut self, health: Health) {
        self.health = Some(health);
    }

    /// What it does next; nothing if it has nothing to do until something changes.
    pub(super) fn next(&mut self, addon: &str, cluster: &str, now: Instant) -> Option<Step> {
        let manager = self.deploy(addon, cluster).or_else(|| self.report(addon));
        manager.map(Step::Act).or_else(|| self.answer(now))
    }

    /// The manager makes its work, or brings it up to what the add-on was given.
    fn deploy(&self, addon: &str, cluster: &str) -> Option<Act> {
        let is_ours = |addon: &&ManagedClusterAddOn| !is_templated(addon) && !is_refused(addon);
        let given = self.addon().filter(|addon| is_alive(*addon) && is_given(addon)).filter(is_ours)?;
        let wanted = wanted_work(addon, cluster, given);
        match self.works.get(&wanted.name_any()) {
            None => Some(Act::Make(Box::new(wanted))),
            Some(work) if is_alive(work) && !is_same(work, &wanted) => {
                Some(Act::Change(wanted.name_any(), change(work, &wanted)))
            }
            Some(_) => None,
        }
    }

    /// The manager reports that its work is made, once, and the add-on how it is.
    fn report(&self, addon: &str) -> Option<Act> {
        let object = self.addon().filter(|addon| is_alive(*addon))?;
        let known = conditions(object);
        let mut reported = known.to_vec();
        if !is_templated(object)
            && self.works.contains_key(&work_name(addon))
            && find(known, MANIFEST_APPLIED).is_none()
        {
            reported.push(manifests_applied());
        }
        if let Some(health) = self.health.map(Health::condition)
            && find(known, AVAILABLE).is_none_or(|condition| condition.status != health.status)
        {
            put(&mut reported, health);
        }
        (reported != known).then(|| Act::Report(status(object, &json!({ "conditions": reported }))))
    }

    /// The agent reports on the first work on which it has something to report, or waits until it has.
    fn answer(&mut self, now: Instant) -> Option<Step> {
        let mut earliest = None;
        for (name, work) in self.works.iter().filter(|(_, work)| is_alive(*work)) {
            let due = match self.behaviour {
                Behaviour::Silent => continue,
                Behaviour::Fails if is_reported(work, "Applied", "False") => continue,
                Behaviour::Fails => return Some(Step::Act(Act::Answer(name.clone(), failure(work)))),
                behaviour if is_well(work) && feedback(work) == feedback_of(&success(work, behaviour.rise())) => {
                    continue;
                }
                Behaviour::Well | Behaviour::Stuck | Behaviour::Down => now,
                Behaviour::Slow(delay) => since(&mut self.asked, name, work, now) + delay,
            };
            if due <= now {
                let answer = success(work, self.behaviour.rise());
                return Some(Step::Act(Act::Answer(name.clone(), status(work, &json!(answer)))));
            }
            earliest = Some(earliest.map_or(due, |earliest: Instant| earliest.min(due)));
        }
        earliest.map(Step::Wait)
    }
}

impl Health {
    fn condition(self) -> Condition {
        match self {
            Self::Healthy => holds(AVAILABLE, "ProbeAvailable", "the add-on is available", None),
            Self::Unhealthy => fails(AVAILABLE, "ProbeUnavailable", "the add-on is not available", None),
        }
    }
}

/// Whether a manager may act on what an add-on was given: it is settled, and every configuration has been found.
fn is_given(addon: &ManagedClusterAddOn) -> bool {
    let holds = |type_| find(conditions(addon), type_).is_some_and(|condition| condition.status == "True");
    let mut references = addon.status.iter().flat_map(|status| &status.config_references).peekable();
    if references.peek().is_none() {
        return holds(CONFIGURED) || holds(GIVEN);
    }
    let is_found = |reference: &ConfigReference| {
        reference.desired_config.as_ref().is_some_and(|config| !config.spec_hash.is_missing())
    };
    holds(CONFIGURED) && references.all(is_found)
}

/// Whether an add-on is made from a template, so that it has no manager.
fn is_templated(addon: &ManagedClusterAddOn) -> bool {
    let mut references = addon.status.iter().flat_map(|status| &status.config_references);
    references.any(|reference| reference.group_resource.resource == "addontemplates")
}

/// Whether a version is asked for that the manager does not know. It leaves everything as it is then.
fn is_refused(addon: &ManagedClusterAddOn) -> bool {
    find(conditions(addon), PROGRESSING)
        .is_some_and(|condition| condition.status == "False" && condition.message.contains(" invalid version "))
}

fn work_name(addon: &str) -> String {
    format!("addon-{addon}-deploy-0")
}

/// The work of an add-on that was given something. Its manifest differs with what was given, as those of real add-ons do, so that agents
/// have to apply it.
fn wanted_work(name: &str, cluster: &str, addon: &ManagedClusterAddOn) -> ManifestWork {
    let configs = given_configs(addon);
    let version = addon.status.as_ref().and_then(|status| status.wanted_version.as_ref());
    let mut manifest = objects::config_map(name);
    manifest["data"] = json!({ "configs": configs.to_string(), "version": version.map_or("", Version::as_str) });
    let mut work = objects::work(cluster, &work_name(name), [manifest]).labelled(ADDON_NAME_LABEL, name);
    work.meta_mut().owner_references = addon.controller_owner_ref(&()).map(|owner| vec![owner]);
    if let Some(version) = version {
        work = work.labelled(ADDON_VERSION_LABEL, version.as_str());
    }
    if configs.as_object().is_some_and(|configs| !configs.is_empty()) {
        work = work.annotated(CONFIG_SPEC_HASH_ANNOTATION, &configs.to_string());
    }
    work
}

fn is_same(work: &ManifestWork, wanted: &ManifestWork) -> bool {
    work.labels().get(ADDON_VERSION_LABEL) == wanted.labels().get(ADDON_VERSION_LABEL)
        && work.annotations().get(CONFIG_SPEC_HASH_ANNOTATION) == wanted.annotations().get(CONFIG_SPEC_HASH_ANNOTATION)
        && work.spec.manifests() == wanted.spec.manifests()
}

/// The change that makes a work what is wanted.
fn change(work: &ManifestWork, wanted: &ManifestWork) -> Value {
    json!({
        "metadata": {
            "resourceVersion": work.resource_version(),
            "labels": { (ADDON_VERSION_LABEL): wanted.labels().get(ADDON_VERSION_LABEL) },
            "annotations": { (CONFIG_SPEC_HASH_ANNOTATION): wanted.annotations().get(CONFIG_SPEC_HASH_ANNOTATION) },
        },
        "spec": { "workload": wanted.spec.workload },
    })
}

/// A change of a status, made for this state of the object and no other.
fn status<K: Resource>(object: &K, status: &Value) -> Value {
    json!({ "metadata": { "resourceVersion": object.resource_version() }, "status": status })
}

/// A report that a work can not be applied. What was available before is so still.
fn failure(work: &ManifestWork) -> Value {
    let mut reported = work.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let generation = work.metadata.generation;
    put(&mut reported, fails("Applied", "AppliedManifestWorkFailed", "Failed to apply manifest work", generation));
    status(work, &json!({ "conditions": reported }))
}

/// Since when this state of a work has been there.
fn since(
    asked: &mut BTreeMap<String, (Option<i64>, Instant)>,
    name: &str,
    work: &ManifestWork,
    now: Instant,
) -> Instant {
    let generation = work.metadata.generation;
    let known = asked.entry(name.to_owned()).or_insert((generation, now));
    if known.0 != generation {
        *known = (generation, now);
    }
    known.1
}

fn is_alive<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_none()
}

/// What was reported of the objects of a work.
fn feedback(work: &ManifestWork) -> Vec<Option<&StatusFeedback>> {
    work.status.as_ref().map(feedback_of).unwrap_or_default()
}

fn feedback_of(status: &ManifestWorkStatus) -> Vec<Option<&StatusFeedback>> {
    let manifests = status.resource_status.iter().flat_map(|status| &status.manifests);
    manifests.map(|manifest| manifest.status_feedback.as_ref()).collect()
}

fn is_well(work: &ManifestWork) -> bool {
    is_reported(work, "Applied", "True") && is_reported(work, "Available", "True")
}

/// Whether this was reported of the present state of a work.
fn is_reported(work: &ManifestWork, type_: &str, value: &str) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find(conditions, type_)
        .is_some_and(|condition| condition.status == value && condition.observed_generation == work.metadata.generation)
}

fn conditions(addon: &ManagedClusterAddOn) -> &[Condition] {
    addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn put(conditions: &mut Vec<Condition>, condition: Condition) {
    conditions.retain(|known| known.type_ != condition.type_);
    conditions.push(condition);
}

#[cfg(test)]
mod tests {
    use drover_api::addon::ManagedClusterAddOnSpec;

    use super::*;

    const HASH: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    /// An add-on with this status, as the server has it.
    fn addon(status: Value) -> ManagedClusterAddOn {
        let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default()).in_namespace("east");
        addon.metadata.uid = Some("uid".to_owned());
        addon.metadata.resource_version = Some("1".to_owned());
        addon.status = Some(serde_json::from_value(status).unwrap());
        addon
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({ "type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" })
    }

    fn config(hash: &str) -> Value {
        let referent = json!({ "namespace": "default", "name": "small", "specHash": hash });
        json!({ "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "desiredConfig": referent })
    }

    fn member(addon: ManagedClusterAddOn) -> Member {
        Member { addons: [("hello".to_owned(), addon)].into(), ..Member::default() }
    }

    fn next(member: &mut Member, now: Instant) -> Option<Step> {
        member.next("hello", "east", now)
    }

    /// The work that a manager makes for this add-on, if it makes one.
    fn made(status: Value) -> Option<ManifestWork> {
        match next(&mut member(addon(status)), Instant::now()) {
            Some(Step::Act(Act::Make(work))) => Some(*work),
            None => None,
            other => panic!("neither a work nor nothing: {other:?}"),
        }
    }

    /// A cluster whose work is made and reported, at this generation.
    fn deployed(generation: i64) -> Member {
        let status =
            json!({ "conditions": [condition("drover.dev/Given", "True"), condition("ManifestApplied", "True")] });
        let mut work = made(status.clone()).unwrap();
        work.metadata.generation = Some(generation);
        Member { works: [(work.name_any(), work)].into(), ..member(addon(status)) }
    }

    #[test]
    fn a_work_is_made_of_what_was_given_and_found() {
        let references = json!([config(HASH)]);
        assert_eq!(made(json!({})), None);
        assert_eq!(
            made(json!({ "conditions": [condition("Configured", "False")], "configReferences": references })),
            None
        );
        assert_eq!(
            made(json!({ "conditions": [condition("Configured", "True")], "configReferences": [config("")] })),
            None
        );
        assert_eq!(
            made(json!({ "conditions": [condition("drover.dev/Given", "True")], "configReferences": references })),
            None
        );

        let given = json!({ "conditions": [condition("Configured", "True")], "configReferences": references, "wantedVersion": "v2" });
        let work = made(given).unwrap();
        let stamp =
            json!({ "addondeploymentconfigs.addon.open-cluster-management.io/default/small": HASH }).to_string();
        assert_eq!(work.name_any(), "addon-hello-deploy-0");
        assert_eq!(work.annotations()[CONFIG_SPEC_HASH_ANNOTATION], stamp);
        assert_eq!(
            (work.labels()[ADDON_NAME_LABEL].as_str(), work.labels()[ADDON_VERSION_LABEL].as_str()),
            ("hello", "v2")
        );
        assert_eq!(work.metadata.owner_references.unwrap()[0].kind, "ManagedClusterAddOn");
    }

    #[test]
    fn where_no_configuration_is_asked_for_the_work_has_no_stamp() {
        for type_ in ["Configured", "drover.dev/Given"] {
            let work = made(json!({ "conditions": [condition(type_, "True")] })).unwrap();
            assert_eq!(work.annotations().get(CONFIG_SPEC_HASH_ANNOTATION), None);
        }
    }

    #[test]
    fn a_work_follows_what_is_given() {
        let mut member = deployed(1);
        let status = json!({ "conditions": [condition("Configured", "True")], "configReferences": [config(HASH)] });
        member.addons.insert("hello".to_owned(), addon(status));
        let Some(Step::Act(Act::Change(name, patch))) = next(&mut member, Instant::now()) else { panic!("no change") };
        assert_eq!(name, "addon-hello-deploy-0");
        assert!(patch["metadata"]["annotations"][CONFIG_SPEC_HASH_ANNOTATION].as_str().unwrap().contains(HASH));
    }

    #[test]
    fn a_work_is_reported_once_and_so_is_health() {
        let mut member = deployed(1);
        member.behave(Behaviour::Silent);
        assert_eq!(next(&mut member, Instant::now()), None);

        member
            .addons
            .insert("hello".to_owned(), addon(json!({ "conditions": [condition("drover.dev/Given", "True")] })));
        member.report_health(Health::Unhealthy);
        let Some(Step::Act(Act::Report(patch))) = next(&mut member, Instant::now()) else { panic!("no report") };
        let reported: Vec<Condition> = serde_json::from_value(patch["status"]["conditions"].clone()).unwrap();
        let reported: Vec<_> =
            reported.iter().map(|condition| (condition.type_.as_str(), condition.status.as_str())).collect();
        assert_eq!(reported, [("drover.dev/Given", "True"), ("ManifestApplied", "True"), ("Available", "False")]);
    }

    #[test]
    fn every_state_of_a_work_is_answered_once_as_the_cluster_behaves() {
        let mut member = deployed(1);
        let now = Instant::now();
        let answer = |member: &mut Member| {
            let Some(Step::Act(Act::Answer(name, patch))) = next(member, now) else { return None };
            let status: ManifestWorkStatus = serde_json::from_value(patch["status"].clone()).unwrap();
            let said = |condition: &Condition| (condition.type_.clone(), condition.status.clone());
            let said: BTreeMap<_, _> = status.conditions.iter().map(said).collect();
            member.works.get_mut(&name).unwrap().status = Some(status);
            Some(said)
        };
        let said = |applied: &str| {
            let said = [("Applied", applied), ("Available", "True")];
            Some(said.map(|(type_, status)| (type_.to_owned(), status.to_owned())).into())
        };
        assert_eq!(answer(&mut member), said("True"));
        assert_eq!(answer(&mut member), None);
        member.behave(Behaviour::Fails);
        assert_eq!(answer(&mut member), said("False"));
        assert_eq!(answer(&mut member), None);
        member.behave(Behaviour::Silent);
        assert_eq!(answer(&mut member), None);
        member.behave(Behaviour::Well);
        assert_eq!(answer(&mut member), said("True"));
        for work in member.works.values_mut() {
            work.metadata.generation = Some(2);
        }
        assert_eq!(answer(&mut member), said("True"));
        assert_eq!(answer(&mut member), None);
    }

    #[test]
    fn a_slow_cluster_answers_each_state_of_a_work_after_its_delay() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let mut member = deployed(1);
        member.behave(Behaviour::Slow(10 * second));
        assert_eq!(next(&mut member, begun), Some(Step::Wait(begun + 10 * second)));
        assert_eq!(next(&mut member, begun + second), Some(Step::Wait(begun + 10 * second)));
        for work in member.works.values_mut() {
            work.metadata.generation = Some(2);
        }
        assert_eq!(next(&mut member, begun + 5 * second), Some(Step::Wait(begun + 15 * second)));
        assert!(matches!(next(&mut member, begun + 15 * second), Some(Step::Act(Act::Answer(..)))));
    }
}
