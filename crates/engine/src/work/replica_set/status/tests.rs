//! What is said of sets of works.

use drover_api::drover::RolloutProgress;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a valid time")
}

/// What a placement does that has proven so many of its clusters.
fn course(total: i32, proven: i32, hold: Option<Hold<Template>>) -> Course<Template> {
    let state = if total == proven { RolloutState::Complete } else { RolloutState::RollingOut };
    let failed = if matches!(hold, Some(Hold::Halted { .. })) { total - proven } else { 0 };
    Course {
        progress: RolloutProgress { state: Some(state), ..RolloutProgress::default() },
        goal: None,
        hold,
        shut: None,
        problem: None,
        decided: RolloutCounts { total, proven, failed, ..RolloutCounts::default() },
        late: 0,
        in_flight: 0,
        selected: 0,
    }
}

fn tally(desired: i64, well: i64) -> Tally {
    let updated = well;
    Tally { total: desired, desired, updated, applied: well, available: well, progressing: 0, degraded: 0 }
}

struct Case {
    decided: Result<Decided, Unclear>,
    tally: Tally,
    course: Course<Template>,
    obstacle: Option<Obstacle>,
}

impl Case {
    fn new(desired: i64, well: i64) -> Self {
        let number = |count: i64| i32::try_from(count).expect("small");
        let course = course(number(desired), number(well), None);
        let clusters = usize::try_from(desired).expect("small");
        Self { decided: Ok(Decided { clusters, groups: 2 }), tally: tally(desired, well), course, obstacle: None }
    }

    fn status(&self) -> ManifestWorkReplicaSetStatus {
        let placing = Placing { name: "prod", decided: self.decided, tally: self.tally, course: Some(&self.course) };
        let facts = Facts {
            stored: None,
            generation: Some(3),
            placements: vec![placing],
            tally: self.tally,
            obstacle: self.obstacle.as_ref(),
            now: at(0),
        };
        facts.status()
    }

    /// The conditions, each with its status and reason.
    fn words(&self) -> [String; 3] {
        let conditions = self.status().conditions;
        assert!(conditions.iter().all(|condition| condition.observed_generation == Some(3)));
        [PLACEMENT_VERIFIED, PLACEMENT_ROLLED_OUT, MANIFESTWORK_APPLIED].map(|type_| {
            let condition = conditions.iter().find(|condition| condition.type_ == type_).expect("it is there");
            format!("{}/{}", condition.status, condition.reason)
        })
    }

    fn message(&self, type_: &str) -> String {
        let conditions = self.status().conditions;
        conditions.into_iter().find(|condition| condition.type_ == type_).expect("it is there").message
    }
}

#[test]
fn all_is_well_when_every_cluster_runs_the_template() {
    assert_eq!(Case::new(3, 3).words(), ["True/AsExpected", "True/Complete", "True/AsExpected"]);
    assert_eq!(Case::new(3, 1).words(), ["True/AsExpected", "False/Progressing", "False/Processing"]);
    assert_eq!(Case::new(3, 1).message(PLACEMENT_ROLLED_OUT), "1 of 3 clusters run the template");
}

#[test]
fn nobody_selected_is_not_everybody_reached() {
    let empty = "False/PlacementDecisionEmpty";
    assert_eq!(Case::new(0, 0).words(), [empty; 3]);
}

#[test]
fn a_placement_that_says_nothing_is_named() {
    let missing = Case { decided: Err(Unclear::Missing), ..Case::new(3, 3) };
    assert_eq!(missing.words(), ["False/PlacementDecisionNotFound", "False/Progressing", "True/AsExpected"]);
    assert!(missing.message(PLACEMENT_VERIFIED).starts_with("the Placement prod: it does not exist: create it"));
    let leaving = Case { decided: Err(Unclear::Leaving), ..Case::new(3, 3) };
    assert_eq!(leaving.words()[0], "False/NotAsExpected");
}

#[test]
fn what_is_degraded_or_unavailable_is_not_as_expected() {
    let mut degraded = Case::new(3, 3);
    (degraded.tally.degraded, degraded.tally.progressing) = (1, 1);
    assert_eq!(degraded.words(), ["True/AsExpected", "True/Complete", "False/NotAsExpected"]);
    let mut unavailable = Case::new(3, 3);
    unavailable.tally.available = 2;
    assert_eq!(unavailable.words()[2], "False/NotAsExpected");
    unavailable.tally.progressing = 1;
    assert_eq!(unavailable.words()[2], "False/Processing");
}

#[test]
fn what_keeps_works_from_being_made_is_said() {
    let unfit = Case { obstacle: Some(Unfit::Placement("p".repeat(64)).into()), ..Case::new(3, 0) };
    assert_eq!(unfit.words()[1..], ["False/Progressing", "False/InvalidManifestWorkName"]);
    let empty = Case { obstacle: Some(Flaw::Empty.into()), ..Case::new(3, 0) };
    assert_eq!(empty.words()[1..], ["False/Progressing", "False/NotAsExpected"]);
    let refused = Case { obstacle: Some(Obstacle::Refused("no".to_owned())), ..Case::new(3, 3) };
    assert_eq!(refused.words()[1..], ["True/Complete", "False/NotAsExpected"], "who has it has it");
}

#[test]
fn what_holds_a_placement_up_is_said() {
    let hold = Some(Hold::Halted { failed: 2, tolerated: 1 });
    let halted = Case { course: course(3, 1, hold), ..Case::new(3, 1) };
    let expected = "1 of 3 clusters run the template; the Placement prod: 2 failed, where 1 may: nothing new is begun until one of \
                    them succeeds or the template changes";
    assert_eq!(halted.message(PLACEMENT_ROLLED_OUT), expected);
}

#[test]
fn every_count_is_told_for_the_set_and_for_each_placement() {
    let status = Case::new(3, 2).status();
    let summary = ReplicaSetSummary {
        total: Some(3),
        desired_total: Some(3),
        updated: Some(2),
        applied: Some(2),
        available: Some(2),
        progressing: Some(0),
        degraded: Some(0),
    };
    let placement = PlacementSummary {
        name: Some("prod".to_owned()),
        available_decision_groups: Some("2 (2 / 3 clusters applied)".to_owned()),
        summary: Some(summary.clone()),
    };
    assert_eq!((status.summary, status.placement_summary), (Some(summary), vec![placement]));
}

#[test]
fn status_is_urgent_when_more_than_a_few_counts_differ() {
    let (one, two, many) = (Case::new(1000, 1).status(), Case::new(1000, 2).status(), Case::new(1000, 99).status());
    assert!(!is_urgent(Some(&one), &two));
    assert!(is_urgent(Some(&one), &many), "that is more than a few");
    assert!(!is_urgent(Some(&one), &one));
    assert!(is_urgent(None, &one));
    let (few, more) = (Case::new(10, 1).status(), Case::new(10, 2).status());
    assert!(is_urgent(Some(&few), &more), "of ten each counts");
}

#[test]
fn a_set_remembers_when_its_template_had_reached_everybody() {
    assert_eq!(settled(Some(&Case::new(3, 3).status()), Some(3)), Some(at(0)));
    assert_eq!(settled(Some(&Case::new(3, 3).status()), Some(4)), None, "it may be another template by now");
    assert_eq!(settled(Some(&Case::new(3, 2).status()), Some(3)), None);
    assert_eq!(settled(None, None), None);
}
