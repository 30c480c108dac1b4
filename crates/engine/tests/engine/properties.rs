//! What holds for every fleet, whatever the placement.
//!
//! Each property is about a [`Scheduler`], so that the deliberately wrong ones in `faulty.rs` can be held to it too.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    cluster::{ClusterDecision, ManagedCluster},
    reference::ClusterName,
};
use drover_engine::placement::{
    Decision, Group, LeftOut, MAX_SLICE, Outcome, Scores, Slice, Verdict,
    plan::{self, SliceChange},
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use crate::{
    counterexample::{Checked, counterexample, holds_for_the_engine},
    fleet::{Case, at, cluster, noon, plain, program, selected},
};

/// Who is held to the properties.
pub(crate) trait Scheduler {
    fn decide(&self, case: &Case) -> Decision {
        case.decide()
    }

    fn judge(&self, spec: &Value, cluster: &ManagedCluster, already_selected: bool, now: Timestamp) -> Verdict {
        program(spec).judge(cluster, &Scores::default(), already_selected, now)
    }

    fn changes(&self, current: &[Slice], wanted: &[Slice]) -> Vec<SliceChange> {
        plan::changes(current, wanted)
    }
}

struct Engine;

impl Scheduler for Engine {}

holds_for_the_engine! {
    the_same_facts_give_the_same_decision_in_any_order in cases_in_two_orders();
    never_more_than_the_number_of_clusters in cases();
    a_written_decision_stands in unspread_cases();
    other_placements_move_nobody in cases_with_default_policy();
    who_is_left_out_moves_nobody in cases();
    newcomers_move_nobody in growing_fleets();
    spread_is_kept_where_it_must_be in cases();
    groups_partition_the_decision in cases();
    slices_partition_the_decision in growing_fleets();
    verdicts_change_exactly_when_announced in tainted_clusters();
    no_prefix_of_writes_loses_a_cluster_that_moves in slices_before_and_after();
}

// ---- Decisions

pub(crate) fn the_same_facts_give_the_same_decision_in_any_order(
    scheduler: &dyn Scheduler,
    (case, shuffled): &(Case, Case),
) -> Checked {
    prop_assert_eq!(scheduler.decide(case), scheduler.decide(shuffled));
    Ok(())
}

pub(crate) fn never_more_than_the_number_of_clusters(scheduler: &dyn Scheduler, case: &Case) -> Checked {
    let decision = scheduler.decide(case);
    let candidates = case.verdicts().iter().filter(|verdict| verdict.candidate().is_some()).count();
    let count = selected(&decision).len();
    let wanted =
        case.placement.spec.number_of_clusters.map_or(candidates, |n| usize::try_from(n).expect("not negative"));
    prop_assert!(count <= wanted.min(candidates));
    if case.placement.spec.spread_policy.is_none() {
        prop_assert_eq!(count, wanted.min(candidates));
    }
    prop_assert_eq!(usize::try_from(decision.status.number_of_selected_clusters), Ok(count));
    Ok(())
}

pub(crate) fn a_written_decision_stands(scheduler: &dyn Scheduler, case: &Case) -> Checked {
    let decision = scheduler.decide(case);
    let settled = Case { current: decision.slices.clone(), status: Some(decision.status.clone()), ..case.clone() };
    let again = scheduler.decide(&settled);
    prop_assert_eq!(&again, &decision);
    prop_assert_eq!(scheduler.changes(&settled.current, &again.slices), vec![]);
    Ok(())
}

pub(crate) fn other_placements_move_nobody(scheduler: &dyn Scheduler, case: &Case) -> Checked {
    let settled = case.settled();
    let turned =
        case.clusters.iter().enumerate().map(|(index, cluster)| (cluster.cluster_name().to_string(), index % 5));
    let changed = Case { elsewhere: turned.collect(), ..settled.clone() };
    prop_assert_eq!(scheduler.decide(&changed).slices, settled.current);
    Ok(())
}

pub(crate) fn who_is_left_out_moves_nobody(scheduler: &dyn Scheduler, case: &Case) -> Checked {
    let decision = scheduler.decide(case);
    let left_out = case.verdicts().into_iter().filter(|verdict| verdict.candidate().is_none());
    let left_out: BTreeSet<_> = left_out.map(|verdict| verdict.cluster).collect();
    let mut without = case.clone();
    without.clusters.retain(|cluster| !left_out.contains(&cluster.cluster_name()));
    prop_assert_eq!(scheduler.decide(&without).slices, decision.slices);
    Ok(())
}

pub(crate) fn newcomers_move_nobody(scheduler: &dyn Scheduler, (small, large): &(Case, Case)) -> Checked {
    let current = scheduler.decide(small).slices;
    let grown = scheduler.decide(&Case { current: current.clone(), ..large.clone() });
    let now = places(&grown.slices);
    for (cluster, slice) in places(&current) {
        prop_assert_eq!(now.get(cluster).copied(), Some(slice), "{} moved", cluster);
    }
    Ok(())
}

pub(crate) fn spread_is_kept_where_it_must_be(scheduler: &dyn Scheduler, case: &Case) -> Checked {
    let Some(policy) = &case.placement.spec.spread_policy else { return Ok(()) };
    let region = |cluster: &ManagedCluster| cluster.metadata.labels.as_ref()?.get("region").cloned();
    let candidates: BTreeSet<_> =
        case.verdicts().into_iter().filter(|v| v.candidate().is_some()).map(|v| v.cluster).collect();
    let decision = scheduler.decide(case);
    let chosen: BTreeSet<_> = selected(&decision).into_iter().collect();
    let mut counts: BTreeMap<String, i32> = BTreeMap::new();
    for cluster in case.clusters.iter().filter(|cluster| candidates.contains(&cluster.cluster_name())) {
        let picked = chosen.contains(cluster.cluster_name().as_str());
        match region(cluster) {
            Some(region) => *counts.entry(region).or_default() += i32::from(picked),
            None => prop_assert!(!picked, "a cluster without a region was selected"),
        }
    }
    let skew = counts.values().max().unwrap_or(&0) - counts.values().min().unwrap_or(&0);
    prop_assert!(skew <= policy.spread_constraints[0].max_skew, "{:?}", counts);
    Ok(())
}

pub(crate) fn groups_partition_the_decision(scheduler: &dyn Scheduler, case: &Case) -> Checked {
    let decision = scheduler.decide(case);
    let strategy = case.placement.spec.decision_strategy.clone().and_then(|strategy| strategy.group_strategy);
    let strategy = strategy.unwrap_or_default();
    let total = selected(&decision).len();
    let size = strategy.clusters_per_decision_group.as_ref().map_or(total.max(1), |size| size.of(total));
    let named = !strategy.decision_groups.is_empty();

    let mut members: BTreeMap<&Group, Vec<&str>> = BTreeMap::new();
    for slice in &decision.slices {
        members.entry(&slice.group).or_default().extend(slice.clusters());
    }
    let indexes: Vec<_> = members.keys().map(|group| group.index).collect();
    prop_assert_eq!(indexes, (0..members.len()).collect::<Vec<_>>());
    let env = |name: &str| {
        let cluster =
            case.clusters.iter().find(|cluster| cluster.cluster_name().as_str() == name).expect("of the fleet");
        cluster.metadata.labels.as_ref().expect("all have labels")["env"].clone()
    };
    for (group, clusters) in &members {
        prop_assert!(clusters.len() <= size);
        for cluster in clusters {
            prop_assert_eq!(group.name == "canary", named && env(cluster) == "e0");
        }
    }
    let listed = &decision.status.decision_groups;
    prop_assert_eq!(
        listed.iter().map(|group| group.cluster_count).sum::<i32>(),
        i32::try_from(total).expect("a small fleet")
    );
    prop_assert_eq!(listed.len(), members.len());
    Ok(())
}

pub(crate) fn slices_partition_the_decision(scheduler: &dyn Scheduler, (small, large): &(Case, Case)) -> Checked {
    let grown = Case { current: scheduler.decide(small).slices, ..large.clone() };
    let shrunk = Case { current: scheduler.decide(large).slices, ..small.clone() };
    for case in [grown, shrunk] {
        let decision = scheduler.decide(&case);
        let mut names = selected(&decision);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), count, "a cluster is in two slices");
        prop_assert_eq!(count, case.clusters.len());
        prop_assert!(decision.slices.iter().all(|slice| slice.decisions.len() <= MAX_SLICE));
        prop_assert_eq!(decision.slices.len(), count.div_ceil(MAX_SLICE).max(1));
        let slices: BTreeSet<_> = decision.slices.iter().map(|slice| &slice.name).collect();
        prop_assert_eq!(slices.len(), decision.slices.len(), "two slices have one name");
    }
    Ok(())
}

// ---- Verdicts

pub(crate) fn verdicts_change_exactly_when_announced(
    scheduler: &dyn Scheduler,
    (tolerations, cluster, already_selected): &(Value, ManagedCluster, bool),
) -> Checked {
    let judge = |now| scheduler.judge(tolerations, cluster, *already_selected, now);
    let mut now = noon();
    // Each taint can change the verdict once.
    for _ in 0..=cluster.spec.taints.len() {
        let verdict = judge(now);
        let Some(time) = verdict.may_change else {
            prop_assert_eq!(judge(now + SignedDuration::from_hours(1000)).outcome, verdict.outcome);
            return Ok(());
        };
        prop_assert!(time > now);
        prop_assert_eq!(&judge(time - SignedDuration::from_nanos(1)).outcome, &verdict.outcome);
        // Of two taints with one key, the one counts first and then the other.
        let is_shared = |key: &str| cluster.spec.taints.iter().filter(|taint| taint.key == key).count() > 1;
        let next = judge(time).outcome;
        prop_assert!(
            next != verdict.outcome || matches!(&next, Outcome::LeftOut(LeftOut::Tainted { key }) if is_shared(key)),
            "announced and does not change: {:?}",
            next
        );
        now = time;
    }
    prop_assert!(matches!(judge(now).outcome, Outcome::LeftOut(_)) || judge(now).may_change.is_none());
    Ok(())
}

// ---- Writes

pub(crate) fn no_prefix_of_writes_loses_a_cluster_that_moves(
    scheduler: &dyn Scheduler,
    (current, wanted): &(Vec<Slice>, Vec<Slice>),
) -> Checked {
    let staying: Vec<_> = places(current).into_keys().filter(|name| places(wanted).contains_key(name)).collect();
    let mut stored: BTreeMap<String, Slice> = by_name(current);
    let writes = scheduler.changes(current, wanted);
    prop_assert!(writes.len() <= 2 * (current.len() + wanted.len()));
    for write in writes {
        match write {
            SliceChange::Create(slice) => prop_assert!(stored.insert(slice.name.clone(), slice).is_none()),
            SliceChange::Update(slice) => prop_assert!(stored.insert(slice.name.clone(), slice).is_some()),
            SliceChange::Delete(name) => prop_assert!(stored.remove(&name).is_some()),
        }
        let slices: Vec<_> = stored.values().cloned().collect();
        let there = places(&slices);
        for cluster in &staying {
            prop_assert!(there.contains_key(cluster), "{} is missing on the way", cluster);
        }
    }
    prop_assert_eq!(stored, by_name(wanted));
    Ok(())
}

fn by_name(slices: &[Slice]) -> BTreeMap<String, Slice> {
    slices.iter().map(|slice| (slice.name.clone(), slice.clone())).collect()
}

/// The slice that each cluster is in.
fn places(slices: &[Slice]) -> BTreeMap<&str, &str> {
    slices.iter().flat_map(|slice| slice.clusters().map(|cluster| (cluster, slice.name.as_str()))).collect()
}

// ---- Random fleets

fn fleets() -> impl Strategy<Value = Vec<ManagedCluster>> {
    let one = (0..3, option::weighted(0.9, 0..4), option::weighted(0.3, 0..3_usize), 1..9, 0..20);
    vec(one, 0..40).prop_map(|fleet| fleet.into_iter().enumerate().map(member).collect())
}

type Traits = (i32, Option<i32>, Option<usize>, i32, i32);

fn member((index, (env, region, taint, cpu, fate)): (usize, Traits)) -> ManagedCluster {
    let mut labels = json!({ "env": format!("e{env}") });
    if let Some(region) = region {
        labels["region"] = format!("r{region}").into();
    }
    let effect = |index| ["NoSelect", "PreferNoSelect", "NoSelectIfNew"][index];
    let taints: Vec<_> = taint.map(|taint| json!({ "key": "t", "effect": effect(taint) })).into_iter().collect();
    let mut cluster = cluster(
        &format!("c{index}"),
        &labels,
        &json!({ "spec": { "taints": taints }, "status": { "allocatable": { "cpu": cpu } } }),
    );
    if fate == 0 {
        cluster.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(noon()));
    }
    cluster
}

fn specs() -> impl Strategy<Value = Value> {
    (
        option::of(0..30_i32),
        any::<bool>(),
        any::<bool>(),
        option::of((0..3_i32, 0..3_i32)),
        option::of(1..4_i32),
        option::weighted(0.7, (any::<bool>(), option::of(1..12_i32))),
    )
        .prop_map(|(number, tolerates, predicate, weights, skew, groups)| {
            let mut spec = json!({});
            if let Some(number) = number {
                spec["numberOfClusters"] = number.into();
            }
            if tolerates {
                spec["tolerations"] = json!([{ "key": "t", "operator": "Exists", "effect": "NoSelect" }]);
            }
            if predicate {
                let in_two = json!({ "key": "env", "operator": "In", "values": ["e0", "e1"] });
                spec["predicates"] =
                    json!([{ "requiredClusterSelector": { "labelSelector": { "matchExpressions": [in_two] } } }]);
            }
            if let Some((balance, cpu)) = weights {
                spec["prioritizerPolicy"] = json!({ "configurations": [
                    { "scoreCoordinate": { "builtIn": "Balance" }, "weight": balance },
                    { "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": cpu },
                ] });
            }
            if let Some(skew) = skew {
                spec["spreadPolicy"] = json!({ "spreadConstraints": [{
                    "topologyKey": "region", "topologyKeyType": "Label",
                    "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule",
                }] });
            }
            if let Some((named, size)) = groups {
                let canary = json!({ "groupName": "canary", "groupClusterSelector": {
                    "labelSelector": { "matchLabels": { "env": "e0" } },
                } });
                let groups = if named { vec![canary] } else { vec![] };
                spec["decisionStrategy"] = json!({ "groupStrategy": { "decisionGroups": groups } });
                if let Some(size) = size {
                    spec["decisionStrategy"]["groupStrategy"]["clustersPerDecisionGroup"] = size.into();
                }
            }
            spec
        })
}

/// A fleet and a placement that already decided, when part of the fleet was not there.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    (specs(), fleets(), vec(any::<bool>(), 40), vec(0..4_usize, 40)).prop_map(|(spec, clusters, there, elsewhere)| {
        let mut case = Case::new(&spec, clusters);
        let names = case.clusters.iter().map(|cluster| cluster.cluster_name().to_string());
        case.elsewhere = names.zip(elsewhere).collect();
        let early = case.clusters.iter().zip(there).filter(|(_, there)| *there).map(|(cluster, _)| cluster.clone());
        case.current = Case { clusters: early.collect(), ..case.clone() }.decide().slices;
        case
    })
}

pub(crate) fn cases_in_two_orders() -> impl Strategy<Value = (Case, Case)> {
    cases().prop_flat_map(|case| {
        let clusters = Just(case.clusters.clone()).prop_shuffle();
        let slices = Just(case.current.clone()).prop_shuffle();
        (Just(case), clusters, slices).prop_map(|(case, clusters, current)| {
            let shuffled = Case { clusters, current, ..case.clone() };
            (case, shuffled)
        })
    })
}

pub(crate) fn unspread_cases() -> impl Strategy<Value = Case> {
    cases().prop_map(|mut case| {
        case.placement.spec.spread_policy = None;
        case
    })
}

/// Where nothing but Steady and Balance counts. A prioritizer of the user's own is asked for to move clusters.
pub(crate) fn cases_with_default_policy() -> impl Strategy<Value = Case> {
    unspread_cases().prop_map(|mut case| {
        case.placement.spec.prioritizer_policy = None;
        case
    })
}

/// The same placement over a fleet, and over that fleet with more clusters; several slices of them.
pub(crate) fn growing_fleets() -> impl Strategy<Value = (Case, Case)> {
    vec(any::<bool>(), 0..350).prop_map(|early| {
        let all: Vec<_> = (0..early.len()).map(|index| plain(&format!("c{index}"))).collect();
        let small = all.iter().zip(early).filter(|(_, early)| *early).map(|(cluster, _)| cluster.clone());
        (Case::new(&json!({}), small), Case::new(&json!({}), all.clone()))
    })
}

pub(crate) fn tainted_clusters() -> impl Strategy<Value = (Value, ManagedCluster, bool)> {
    let effects = || prop::sample::select(vec!["NoSelect", "PreferNoSelect", "NoSelectIfNew"]);
    let taint = (0..3, effects(), -100..100_i64)
        .prop_map(|(key, effect, added)| json!({ "key": format!("k{key}"), "effect": effect, "timeAdded": at(added).to_string() }));
    let toleration =
        (option::of(0..3), option::of(effects()), option::of(-10..200_i64)).prop_map(|(key, effect, seconds)| {
            let mut toleration = json!({ "operator": "Exists" });
            if let Some(key) = key {
                toleration["key"] = format!("k{key}").into();
            }
            if let Some(effect) = effect {
                toleration["effect"] = effect.into();
            }
            if let Some(seconds) = seconds {
                toleration["tolerationSeconds"] = seconds.into();
            }
            toleration
        });
    (vec(toleration, 0..4), vec(taint, 0..4), any::<bool>()).prop_map(|(tolerations, taints, selected)| {
        let cluster = cluster("c", &json!({}), &json!({ "spec": { "taints": taints } }));
        (json!({ "tolerations": tolerations }), cluster, selected)
    })
}

/// Clusters in some slices, and in others; a cluster can be in two slices where a writer was interrupted.
pub(crate) fn slices_before_and_after() -> impl Strategy<Value = (Vec<Slice>, Vec<Slice>)> {
    let place = || option::weighted(0.8, 0..5_usize);
    vec((place(), option::weighted(0.1, 0..5_usize), place()), 0..40).prop_map(|clusters| {
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        for (index, (old, other, new)) in clusters.into_iter().enumerate() {
            let name = ClusterName::from(format!("c{index}"));
            for place in [old, other.filter(|other| Some(*other) != old)].into_iter().flatten() {
                enter(&mut before, place, &name);
            }
            if let Some(place) = new {
                enter(&mut after, place, &name);
            }
        }
        (before.into_values().collect(), after.into_values().collect())
    })
}

fn enter(slices: &mut BTreeMap<usize, Slice>, place: usize, cluster: &ClusterName) {
    let empty = || Slice { name: format!("p-decision-{place}"), group: Group::default(), decisions: Vec::new() };
    let decision = ClusterDecision { cluster_name: cluster.clone(), reason: String::new(), score: None };
    slices.entry(place).or_insert_with(empty).decisions.push(decision);
}
