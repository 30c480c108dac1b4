//! The tracker and the published status explain every cluster in the same way.

use std::collections::BTreeMap;

use drover_api::{
    addon::ManagedClusterAddOn,
    drover::{Acknowledged, AcknowledgedCluster, AddOnRolloutStatus, PlacementRolloutStatus},
    names::{INSTALLED_ANNOTATION, PAUSE_ANNOTATION, SKIP_ANNOTATION},
    reference::ClusterName,
};
use drover_engine::{
    addon::{
        progress::{Finding, Obstacle},
        rollout::notes,
        status::{Facts, Holding, Turn, status},
        words::{Vocabulary, Wait},
    },
    explain::{ClusterExplanation, PublishedAddOn, PublishedMember, explain_cluster, group_failures, group_members},
    member::{BlockerKind, Failure, MemberState},
    presence::Source,
    revision::{
        Set,
        markers::{Given, Proof, Verdict},
    },
    rollout::{
        Plan, Rollout,
        member::{Member, Presence},
    },
    steering::Steering,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use proptest::prelude::*;
use serde_json::json;

use crate::{
    counterexample::{Checked, counterexample, counterexample_of, holds_for_the_engine},
    rollout_history::{History, canary_histories, histories},
    rollout_world::{Engine, Planner, Question, World, Writes, all_sets, goal, letter},
};

holds_for_the_engine! {
    tracker_and_published_status_explain_the_same in histories();
    tracker_and_published_status_explain_canaries_the_same in canary_histories();
}

#[test]
fn planner_that_publishes_its_former_state_is_caught() {
    let property = |history: History| tracker_and_published_status_explain_the_same(&PublishesFormerState, &history);
    assert!(counterexample_of(&canary_histories(), 4096, 0, property).is_some());
}

/// Publishes the state that each placement rollout had before.
struct PublishesFormerState;

impl Planner for PublishesFormerState {
    fn plan(&self, rollout: &mut Rollout<Set>, question: &Question) -> Plan<Set> {
        let mut plan = question.ask(rollout);
        for (course, wish) in plan.courses.iter_mut().zip(&question.wishes) {
            course.progress.state = wish.stored.state;
        }
        plan
    }
}

type Explanations = BTreeMap<ClusterName, ClusterExplanation>;

fn tracker_and_published_status_explain_canaries_the_same(planner: &dyn Planner, history: &History) -> Checked {
    tracker_and_published_status_explain_the_same(planner, history)
}

fn tracker_and_published_status_explain_the_same(planner: &dyn Planner, history: &History) -> Checked {
    history.play(planner, |world, _, _| {
        let mut world = world.clone();
        // What is published is compared once all of it is written.
        for _ in 0..5 {
            let plan = world.plan();
            if world.has_stored(&plan) {
                return explain_the_same(&world, &plan);
            }
            world.write(&plan, Writes::All);
        }
        Ok(())
    })?;
    Ok(())
}

fn explain_the_same(world: &World, plan: &Plan<Set>) -> Checked {
    let tracked = tracked(world, plan);
    let published = published(world, plan, &tracked);
    for (cluster, tracked) in &tracked {
        let published = &published[cluster];
        prop_assert_eq!(kind(&tracked.state), kind(&published.state), "{}: {:?}", cluster, tracked);
        if tracked.state.blocker().is_none() {
            prop_assert_eq!(tracked.state.until(), published.state.until(), "{}", cluster);
        }
        prop_assert_eq!(&tracked.placement, &published.placement);
        prop_assert_eq!(&tracked.target, &published.target);
    }
    for explanations in [&tracked, &published] {
        let members = group_members(explanations);
        prop_assert_eq!(members.iter().map(|group| group.count).sum::<usize>(), world.known.len());
        let failed = explanations.values().filter(|it| matches!(it.state, MemberState::Failed(_))).count();
        let failures = group_failures(explanations);
        prop_assert_eq!(failures.iter().map(|group| group.count).sum::<usize>(), failed);
    }
    Ok(())
}

fn kind(state: &MemberState) -> (&'static str, Option<BlockerKind>, Option<Failure>) {
    let failure = if let MemberState::Failed(cause) = state { Some(cause.failure) } else { None };
    (state.name(), state.blocker().map(|blocker| blocker.kind), failure)
}

/// What the tracker's snapshot explains.
fn tracked(world: &World, plan: &Plan<Set>) -> Explanations {
    let snapshot = world.snapshot(plan);
    let explain = |cluster: &ClusterName| (cluster.clone(), explain_cluster(&snapshot, None, cluster));
    world.known.keys().map(explain).collect()
}

/// What the published status explains, once the conditions of clusters are as the tracker has it.
fn published(world: &World, plan: &Plan<Set>, tracked: &Explanations) -> Explanations {
    let add_ons: BTreeMap<_, _> =
        world.known.iter().map(|(name, member)| (name, on_cluster(member, &tracked[name].state, world.now))).collect();
    let member = |(name, member): (&ClusterName, &Member<Set>)| {
        let selecting = member.selections.iter().map(|selection| &world.entries[selection.placement].source);
        let published = PublishedMember {
            selected_by: selecting.filter_map(Source::placement).collect(),
            on_cluster: add_ons[name].as_ref(),
            is_online: member.is_online,
        };
        (name.clone(), published)
    };
    let rollout = rollout_status(world, plan);
    let steering = steering(world);
    let add_on = PublishedAddOn { entries: &world.entries, steering: &steering, rollout: &rollout, now: world.now };
    add_on.explain(&world.known.iter().map(member).collect())
}

/// What is asked for on the add-on: it names the clusters that are skipped.
fn steering(world: &World) -> Steering {
    let skipped = world.known.iter().filter(|(_, member)| member.steering.is_skipped);
    let skipped: Vec<_> = skipped.map(|(name, _)| name.as_str()).collect();
    let annotations = BTreeMap::from([(SKIP_ANNOTATION.to_owned(), skipped.join(","))]);
    Steering::read(&annotations, world.entries.iter().map(|entry| &entry.source))
}

fn rollout_status(world: &World, plan: &Plan<Set>) -> AddOnRolloutStatus {
    let entries = || world.entries.iter().zip(&plan.courses);
    let has_clusters = |total: Option<i32>| total.unwrap_or_default() > 0;
    let total = |course: &drover_engine::rollout::Course<Set>| course.progress.clusters.as_ref().map(|it| it.total);
    let placements = entries().filter_map(|(entry, course)| match &entry.source {
        Source::Listed(placement) => {
            Some(PlacementRolloutStatus { placement: placement.clone(), progress: course.progress.clone() })
        }
        _ => None,
    });
    let reporting = entries().filter(|(entry, course)| match entry.source {
        Source::Listed(_) => true,
        Source::Canaries(_) => false,
        Source::Nobody => has_clusters(total(course)),
    });
    let others = entries().find(|(entry, _)| entry.source == Source::Nobody).map(|(_, course)| course);
    AddOnRolloutStatus {
        sets: all_sets(world.now),
        placements: placements.collect(),
        defaults: others.filter(|course| has_clusters(total(course))).map(|course| course.progress.clone()),
        message: notes::written(reporting.map(|(entry, course)| (&entry.source, course))),
        acknowledged: Some(acknowledged(world)),
        ..AddOnRolloutStatus::default()
    }
}

fn acknowledged(world: &World) -> Acknowledged {
    let cluster = |(name, member): (&ClusterName, &Member<Set>)| AcknowledgedCluster {
        cluster: name.clone(),
        pause: None,
        skip: None,
        retry: None,
        retried: member.steering.retried.map(Time),
    };
    let clusters = world.known.iter().map(cluster).collect();
    Acknowledged { retried: world.retried.map(Time), clusters, ..Acknowledged::default() }
}

/// The add-on on a cluster, with the conditions that its controller writes.
fn on_cluster(member: &Member<Set>, state: &MemberState, now: Timestamp) -> Option<ManagedClusterAddOn> {
    let addon = member.addon.as_ref()?;
    let mut annotations = serde_json::Map::new();
    let is_on = [(PAUSE_ANNOTATION, member.steering.is_paused), (INSTALLED_ANNOTATION, !addon.is_hand_made)];
    annotations.extend(is_on.into_iter().filter(|(_, is_on)| *is_on).map(|(key, _)| (key.to_owned(), json!("true"))));
    let asks = addon.overrides.is_some() || addon.is_at_odds;
    let config = json!({ "group": "example.com", "resource": "settings", "name": "own" });
    let configs = if asks { vec![config] } else { Vec::new() };
    let mut on_cluster: ManagedClusterAddOn = serde_json::from_value(json!({
        "metadata": { "name": "hello", "namespace": "one", "annotations": annotations },
        "spec": { "configs": configs },
    }))
    .expect("an add-on");
    let failure = if let MemberState::Failed(cause) = state { Some(cause.failure) } else { None };
    on_cluster.status = Some(status_of(addon, failure, now));
    Some(on_cluster)
}

fn status_of(
    addon: &Presence<Set>,
    failure: Option<Failure>,
    now: Timestamp,
) -> drover_api::addon::ManagedClusterAddOnStatus {
    let finding = match addon.proof.as_ref().map(|proof| proof.verdict) {
        Some(Verdict::Proven) => Finding::Proven,
        _ => Finding::Moving(Obstacle::NoWorks),
    };
    let revision = addon.given.as_ref().map(|given| goal(letter(&given.set)).set);
    let turn = match (&addon.given, &revision) {
        (Some(given), Some(set)) => {
            Turn::Come(Holding { given, set, finding: &finding, failure, generation: &|_| None })
        }
        _ => Turn::Waits(Wait::For("its turn")),
    };
    let facts = Facts {
        stored: None,
        vocabulary: Vocabulary::Lifecycle,
        turn,
        unsupported: &[],
        invalid_version: None,
        hindrance: addon.is_at_odds.then_some("there is no config of that name"),
        pending: None,
        supported_versions: &[],
    };
    let mut status = status(&facts, now);
    let conditions = addon.given.iter().fold(status.conditions, |conditions, given: &Given| given.write(conditions));
    status.conditions = addon.proof.iter().fold(conditions, |conditions, proof: &Proof| proof.write(conditions));
    status
}
