//! One cluster of a set, as the planner of rollouts sees it.

use drover_api::grammar::SetFingerprint;
use k8s_openapi::jiff::Timestamp;

use super::{
    report::{Note, Report},
    template::Rules,
};
use crate::{
    addon::mark::{Given, Proof, Verdict},
    rollout::{
        Standing,
        member::{Member, Presence, Selection, Steering},
    },
};

/// The work of a set on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// What it says.
    pub set: SetFingerprint,
    /// Since when it says so.
    pub given: Timestamp,
    /// What the agent says of it.
    pub report: Report,
    /// What was noted of the cluster being well.
    pub proven: Option<Note>,
}

/// What there is of a set on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Spot {
    /// Its work.
    Work(Placed),
    /// Nothing: a work can be made.
    Free,
    /// The former work is on its way out.
    Vacated,
    /// Nothing, and nothing can be made: the cluster is not accepted, leaves, or has no namespace.
    Closed,
}

/// What a cluster is held to by the placement that decides for it.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// What it is to be given in the end.
    pub goal: &'a SetFingerprint,
    /// Which conditions the template makes.
    pub rules: Rules,
    /// Whether a cluster has to stay well for a while.
    pub soaks: bool,
    /// When all clusters of the placement had come to run the goal, if they have.
    pub settled: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
}

impl Placed {
    /// How the cluster stands to what the work says.
    #[must_use]
    pub fn verdict(&self, held: &Held) -> Verdict {
        self.proof(held).verdict
    }

    fn rules(&self, held: &Held) -> Rules {
        // What another template makes nobody knows any more.
        if self.set == *held.goal { held.rules } else { Rules::default() }
    }

    fn proof(&self, held: &Held) -> Proof {
        let (verdict, since) = self.report.verdict(self.rules(held));
        let since = match verdict {
            Verdict::Proven => self.well_since(held),
            _ => since.unwrap_or(self.given).max(self.given),
        };
        Proof { set: self.set.clone(), verdict, since }
    }

    /// Since when the cluster is well. The conditions of a work do not tell: what was so before stays so without a new time.
    fn well_since(&self, held: &Held) -> Timestamp {
        match &self.proven {
            Some(note) if note.set == self.set => note.since,
            _ if held.soaks => held.now,
            _ => self.given,
        }
    }

    /// The proof as the planner is told of it.
    fn proof_for_rollout(&self, held: &Held) -> Proof {
        let proof = self.proof(held);
        let is_on_goal = self.set == *held.goal;
        match proof.verdict {
            // Whether it has ever run what it had before nobody knows any more. It is the first in line, and not turned around in place: many may
            // have turned unwell at once, and they are not all to be disturbed at once.
            Verdict::Moving | Verdict::Failing if !is_on_goal => Proof { verdict: Verdict::Unhealthy, ..proof },
            // Who has run the goal when everybody did, and is not well now, is no failure of the rollout.
            Verdict::Moving | Verdict::Failing if held.settled.is_some_and(|settled| self.given <= settled) => {
                Proof { verdict: Verdict::Unsettled, ..proof }
            }
            _ => proof,
        }
    }
}

/// A cluster, as the planner sees it.
#[must_use]
pub fn member(spot: &Spot, selections: Vec<Selection>, is_online: bool, held: &Held) -> Member {
    let presence = match spot {
        Spot::Work(placed) => Some(Presence {
            given: Some(Given { set: placed.set.clone(), since: placed.given }),
            runs: Some(placed.set.clone()),
            proof: Some(placed.proof_for_rollout(held)),
            ..Presence::default()
        }),
        Spot::Free => Some(Presence::default()),
        Spot::Vacated | Spot::Closed => None,
    };
    let is_online = is_online && *spot != Spot::Closed;
    Member { selections, addon: presence, is_online, steering: Steering::default() }
}

/// What becomes of the note that says since when a cluster is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noting {
    /// It stays as it is.
    Keep,
    /// It is made.
    Make(Note),
    /// It is taken off: the cluster is not well any more, and begins anew when it is.
    Drop,
}

/// What is to be noted of a cluster that stands so.
#[must_use]
pub fn noting(placed: &Placed, standing: Option<&Standing>, held: &Held) -> Noting {
    let is_noted = placed.proven.as_ref().is_some_and(|note| note.set == placed.set);
    match standing {
        Some(Standing::Soaking { .. }) if !is_noted => Noting::Make(Note { set: placed.set.clone(), since: held.now }),
        Some(Standing::Moving { .. } | Standing::Failed(_)) if is_noted => Noting::Drop,
        _ => Noting::Keep,
    }
}

#[cfg(test)]
mod tests {
    use drover_api::{drover::RolloutProgress, reference::PlacementRef};
    use serde_json::{Value, json};

    use super::{super::report::Said, *};
    use crate::{
        condition::Holds,
        rollout::{Entry, Goal, Plan, Rollout, Sets, Source, Wish, member::Group, strategy::Strategy},
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a valid time")
    }

    fn set(letter: &str) -> SetFingerprint {
        letter.repeat(16).parse().expect("a fingerprint")
    }

    fn report(applied: Holds, available: Holds) -> Report {
        let said = |holds| Some(Said { holds, since: at(-1000) });
        Report { applied: said(applied), available: said(available), ..Report::default() }
    }

    fn placed(letter: &str, given: i64, report: Report) -> Placed {
        Placed { set: set(letter), given: at(given), report, proven: None }
    }

    fn held(goal: &SetFingerprint, soaks: bool, now: i64) -> Held<'_> {
        Held { goal, rules: Rules::default(), soaks, settled: None, now: at(now) }
    }

    fn plan(strategy: &Value, works: &[(&str, Spot)], held: &Held) -> (Rollout, Plan) {
        let written = serde_json::from_value(strategy.clone()).expect("a strategy");
        let strategy = Strategy::of_ocm(Some(&written), None);
        let placement = PlacementRef { namespace: "default".to_owned(), name: "all".to_owned() };
        let mut rollout = Rollout::new(vec![Entry { source: Source::Listed(placement), strategy }]);
        for (cluster, spot) in works {
            let selection = Selection { placement: 0, group: Group::default() };
            rollout.update(&(*cluster).into(), Some(member(spot, vec![selection], true, held)));
        }
        let goal = Goal::whole(held.goal.clone());
        let stored = RolloutProgress { wanted: Some(goal.fingerprint.clone()), ..RolloutProgress::default() };
        let sets: Sets = [(goal.fingerprint.clone(), goal.set.clone())].into_iter().collect();
        let wish = Wish { configured: Some(Ok(goal)), is_there: true, pause: None, pin: None, stored };
        let plan = rollout.plan(&[wish], &sets, None, held.now);
        (rollout, plan)
    }

    fn given(plan: &Plan) -> Vec<&str> {
        plan.gives.iter().map(|give| give.cluster.as_str()).collect()
    }

    fn progressive(settings: &Value) -> Value {
        json!({ "type": "Progressive", "progressive": settings })
    }

    #[test]
    fn what_is_applied_and_available_lets_the_next_begin() {
        let (old, new) = (report(Holds::Yes, Holds::Yes), Report::default());
        let one_at_a_time = progressive(&json!({ "maxConcurrency": 1 }));
        let goal = set("b");
        let works = |second: Placed| [("one", Spot::Work(placed("a", 0, old))), ("two", Spot::Work(second))];
        let (_, begun) = plan(&one_at_a_time, &works(placed("b", 0, new)), &held(&goal, false, 9));
        assert_eq!(given(&begun), [""; 0], "the second is on its way");
        let (_, next) = plan(&one_at_a_time, &works(placed("b", 0, old)), &held(&goal, false, 9));
        assert_eq!(given(&next), ["one"]);
    }

    #[test]
    fn a_soak_counts_from_when_the_hub_saw_the_cluster_well() {
        let soaking = progressive(&json!({ "maxConcurrency": 1, "minSuccessTime": "10m" }));
        let goal = set("b");
        let well = placed("b", 0, report(Holds::Yes, Holds::Yes));
        let works = |placed: Placed| [("one", Spot::Work(placed)), ("two", Spot::Free)];
        let now = held(&goal, true, 300);
        let (rollout, first) = plan(&soaking, &works(well.clone()), &now);
        assert_eq!((given(&first), first.wake), (vec![], Some(at(900))), "though its conditions are old");
        let standing = rollout.standing(&"one".into()).map(|(_, standing)| standing.clone());
        let note = Note { set: goal.clone(), since: at(300) };
        assert_eq!(noting(&well, standing.as_ref(), &now), Noting::Make(note.clone()));
        let noted = Placed { proven: Some(note), ..well };
        let (_, later) = plan(&soaking, &works(noted.clone()), &held(&goal, true, 899));
        assert_eq!((given(&later), later.wake), (vec![], Some(at(900))));
        let (_, over) = plan(&soaking, &works(noted.clone()), &held(&goal, true, 900));
        assert_eq!(given(&over), ["two"]);
        let gone = Placed { report: report(Holds::Yes, Holds::No), ..noted };
        let (rollout, _) = plan(&soaking, &works(gone.clone()), &held(&goal, true, 600));
        let standing = rollout.standing(&"one".into()).map(|(_, standing)| standing);
        assert_eq!(noting(&gone, standing, &now), Noting::Drop, "it has to stay well from the beginning again");
    }

    #[test]
    fn a_deadline_counts_from_when_the_cluster_was_given_the_template() {
        let limited = progressive(&json!({ "maxConcurrency": 1, "progressDeadline": "10m" }));
        let goal = set("b");
        let works = [("one", Spot::Work(placed("b", 0, Report::default()))), ("two", Spot::Free)];
        let (_, waiting) = plan(&limited, &works, &held(&goal, false, 599));
        assert_eq!((waiting.wake, waiting.courses[0].late), (Some(at(600)), 0));
        let (_, late) = plan(&limited, &works, &held(&goal, false, 600));
        assert_eq!((given(&late), late.courses[0].late), (vec![], 1), "no failure is tolerated");
        let generous = progressive(&json!({ "maxConcurrency": 1, "progressDeadline": "10m", "maxFailures": 1 }));
        let (_, late) = plan(&generous, &works, &held(&goal, false, 600));
        assert_eq!(given(&late), ["two"]);
    }

    #[test]
    fn who_turns_unwell_after_everybody_was_there_is_no_failure_of_the_rollout() {
        let goal = set("b");
        let sick = placed("b", 0, report(Holds::No, Holds::Yes));
        let held = |settled| Held { settled, ..held(&goal, false, 9999) };
        let proof = |settled| sick.proof_for_rollout(&held(settled)).verdict;
        assert_eq!(proof(None), Verdict::Failing);
        assert_eq!(proof(Some(at(0))), Verdict::Unsettled);
        assert_eq!(proof(Some(at(-1))), Verdict::Failing, "it was given it after that");
    }

    #[test]
    fn many_that_are_unwell_are_not_all_given_something_at_once() {
        let goal = set("b");
        let works =
            ["one", "two", "three"].map(|name| (name, Spot::Work(placed("a", 0, report(Holds::No, Holds::Yes)))));
        let well = [("four", Spot::Work(placed("a", 0, report(Holds::Yes, Holds::Yes))))];
        let two_at_a_time = progressive(&json!({ "maxConcurrency": 2 }));
        let (_, plan) = plan(&two_at_a_time, &[&works[..], &well[..]].concat(), &held(&goal, false, 9));
        assert_eq!(given(&plan), ["one", "three"], "by name, and before those who are well");
    }

    #[test]
    fn where_nothing_can_be_made_nothing_is_waited_for() {
        let one_at_a_time = progressive(&json!({ "maxConcurrency": 1 }));
        let goal = set("b");
        let works = [("one", Spot::Closed), ("two", Spot::Free), ("three", Spot::Free)];
        let (_, plan) = plan(&one_at_a_time, &works, &held(&goal, false, 0));
        assert_eq!(given(&plan), ["three"], "by name");
    }
}
