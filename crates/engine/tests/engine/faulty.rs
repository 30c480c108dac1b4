//! Schedulers that are wrong on purpose, each caught by the property that is there for it.

use std::collections::BTreeMap;

use drover_api::cluster::ManagedCluster;
use drover_engine::placement::{Decision, Outcome, Scores, Slice, Verdict, plan::SliceChange};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::{
    counterexample::counterexample,
    fleet::{Case, noon, program},
    properties::{self, Scheduler},
};

/// Selects all that match.
struct IgnoresNumber;

impl Scheduler for IgnoresNumber {
    fn decide(&self, case: &Case) -> Decision {
        let mut case = case.clone();
        case.placement.spec.number_of_clusters = None;
        case.decide()
    }
}

#[test]
fn who_ignores_the_number_of_clusters_is_caught() {
    let caught = counterexample(&properties::cases(), |case| {
        properties::never_more_than_the_number_of_clusters(&IgnoresNumber, &case)
    });
    assert!(caught.is_some());
}

/// Takes the first that come, where many are as good.
struct TakesTheFirst;

impl Scheduler for TakesTheFirst {
    fn decide(&self, case: &Case) -> Decision {
        let wanted = case.placement.spec.number_of_clusters.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let candidates = case.verdicts().into_iter().filter(|verdict| verdict.candidate().is_some());
        case.decide_from(&candidates.take(wanted).collect::<Vec<_>>())
    }
}

#[test]
fn who_breaks_ties_by_the_order_of_input_is_caught() {
    let caught = counterexample(&properties::cases_in_two_orders(), |cases| {
        properties::the_same_facts_give_the_same_decision_in_any_order(&TakesTheFirst, &cases)
    });
    assert!(caught.is_some());
}

/// Divides clusters anew each time.
struct Forgets;

impl Scheduler for Forgets {
    fn decide(&self, case: &Case) -> Decision {
        Case { current: Vec::new(), ..case.clone() }.decide()
    }
}

#[test]
fn who_forgets_where_clusters_were_is_caught() {
    let caught =
        counterexample(&properties::growing_fleets(), |fleets| properties::newcomers_move_nobody(&Forgets, &fleets));
    assert!(caught.is_some());
    let caught = counterexample(&properties::cases_with_default_policy(), |case| {
        properties::other_placements_move_nobody(&Forgets, &case)
    });
    assert!(caught.is_some());
}

/// Tolerates a taint for ever that it tolerates at noon.
struct NeverRunsOut;

impl Scheduler for NeverRunsOut {
    fn judge(&self, spec: &Value, cluster: &ManagedCluster, already_selected: bool, now: Timestamp) -> Verdict {
        let judge = |now| program(spec).judge(cluster, &Scores::default(), already_selected, now);
        let (first, later) = (judge(noon()), judge(now));
        Verdict {
            outcome: if matches!(first.outcome, Outcome::Candidate(_)) { first.outcome } else { later.outcome },
            ..later
        }
    }
}

#[test]
fn who_lets_no_toleration_run_out_is_caught() {
    let caught = counterexample(&properties::tainted_clusters(), |case| {
        properties::verdicts_change_exactly_when_announced(&NeverRunsOut, &case)
    });
    assert!(caught.is_some());
}

/// Writes each slice once, what goes away first.
struct RemovesFirst;

impl Scheduler for RemovesFirst {
    fn changes(&self, current: &[Slice], wanted: &[Slice]) -> Vec<SliceChange> {
        let old: BTreeMap<_, _> = current.iter().map(|slice| (&slice.name, slice)).collect();
        let new: BTreeMap<_, _> = wanted.iter().map(|slice| (&slice.name, slice)).collect();
        let gone = current.iter().filter(|slice| !new.contains_key(&slice.name));
        let gone = gone.map(|slice| SliceChange::Delete(slice.name.clone()));
        let written = wanted.iter().map(|slice| {
            let write = if old.contains_key(&slice.name) { SliceChange::Update } else { SliceChange::Create };
            write(slice.clone())
        });
        gone.chain(written).collect()
    }
}

#[test]
fn who_writes_removals_first_is_caught() {
    let caught = counterexample(&properties::slices_before_and_after(), |slices| {
        properties::no_prefix_of_writes_loses_a_cluster_that_moves(&RemovesFirst, &slices)
    });
    assert!(caught.is_some());
}
