//! One cluster of a set, as the planner of rollouts sees it.

use drover_api::grammar::SetFingerprint;
use k8s_openapi::jiff::Timestamp;

use super::revision::Template;
use crate::{
    revision::markers::{Given, Proof, Verdict},
    rollout::member::{Member, Presence, Selection},
    steering::MemberSteering,
    workreport::{Report, template::Rules},
};

/// The work of a set on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// What it says.
    pub set: SetFingerprint,
    /// Which conditions its rules make.
    pub rules: Rules,
    /// Since when it says so.
    pub given: Timestamp,
    /// What the agent says of it.
    pub report: Report,
    /// The last recorded proof. It stays on the work, because reports show only how the cluster stands
    /// now, and not whether it ever ran the template.
    pub recorded: Option<Proof>,
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
    /// Whether a cluster has to stay well for a while.
    pub soaks: bool,
    /// Whether the strategy limits or orders updates, so that it matters which clusters are in flight.
    pub is_gradual: bool,
    /// When all clusters of the placement had come to run the goal, if they have.
    pub settled: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
}

impl Placed {
    /// How the cluster stands to what the work says, by its reports alone.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.report.verdict(self.rules).0
    }

    /// The recorded proof, if it is about what the work says now.
    fn recorded(&self) -> Option<&Proof> {
        self.recorded.as_ref().filter(|recorded| recorded.set == self.set)
    }

    fn proof(&self, held: &Held) -> Proof {
        let (found, reported) = self.report.verdict(self.rules);
        if let Some(recorded) = self.recorded() {
            return Proof::follow(Some(recorded), self.set.clone(), found, held.now);
        }
        let since = match found {
            // The conditions of a work do not tell: what was True before stays True without a new time.
            Verdict::Proven if held.soaks => held.now,
            Verdict::Proven => self.given,
            _ => reported.unwrap_or(self.given).max(self.given),
        };
        Proof { set: self.set.clone(), verdict: found, since }
    }

    /// Whether the cluster had run the goal when all clusters had.
    fn is_settled(&self, held: &Held) -> bool {
        self.set == *held.goal && held.settled.is_some_and(|settled| self.given <= settled)
    }

    /// The proof as the planner sees it. A cluster that is not well after its rollout is no failure
    /// of the rollout.
    fn proof_for_rollout(&self, held: &Held) -> Proof {
        let proof = self.proof(held);
        match proof.verdict {
            Verdict::Moving | Verdict::Failing | Verdict::NoLongerApplied if self.is_settled(held) => {
                Proof { verdict: Verdict::Unsettled, ..proof }
            }
            _ => proof,
        }
    }

    /// The proof to record on the work, if it differs from the recorded one.
    ///
    /// That a cluster ran its template is recorded once, where the strategy needs it later: a cluster
    /// that ran its template waits for its turn, whatever it reports. How it stands is recorded only
    /// while the template rolls out, so that reports after that cost no writes.
    #[must_use]
    pub fn to_record(&self, held: &Held) -> Option<Proof> {
        let proof = self.proof(held);
        let is_due = match self.recorded() {
            None => held.is_gradual && proof.verdict == Verdict::Proven,
            Some(recorded) => self.set == *held.goal && !self.is_settled(held) && proof != *recorded,
        };
        is_due.then_some(proof)
    }
}

/// A cluster, as the planner sees it.
#[must_use]
pub fn member(spot: &Spot, selections: Vec<Selection>, is_online: bool, held: &Held) -> Member<Template> {
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
    Member { selections, addon: presence, is_online, steering: MemberSteering::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use drover_api::{drover::RolloutProgress, reference::PlacementRef};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        condition::Holds,
        presence::Source,
        rollout::{Entry, Goal, Plan, Rollout, Sets, Wish, member::Group, strategy::Strategy},
        workreport::Said,
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
        Placed { set: set(letter), rules: Rules::default(), given: at(given), report, recorded: None }
    }

    fn held(goal: &SetFingerprint, soaks: bool, now: i64) -> Held<'_> {
        Held { goal, soaks, is_gradual: true, settled: None, now: at(now) }
    }

    fn plan(strategy: &Value, works: &[(&str, Spot)], held: &Held) -> (Rollout<Template>, Plan<Template>) {
        let written = serde_json::from_value(strategy.clone()).expect("a strategy");
        let strategy = Strategy::of_ocm(Some(&written), None);
        let placement = PlacementRef { namespace: "default".to_owned(), name: "all".to_owned() };
        let mut rollout = Rollout::new(vec![Entry { source: Source::Listed(placement), strategy }]);
        for (cluster, spot) in works {
            let selection = Selection { placement: 0, group: Group::default() };
            rollout.update(&(*cluster).into(), Some(member(spot, vec![selection], true, held)));
        }
        let goal = Goal { fingerprint: held.goal.clone(), set: Arc::new(Template) };
        let stored = RolloutProgress { wanted: Some(goal.fingerprint.clone()), ..RolloutProgress::default() };
        let sets: Sets<Template> = [(goal.fingerprint.clone(), goal.set.clone())].into_iter().collect();
        let wish = Wish { configured: Some(Ok(goal)), is_there: true, pause: None, pin: None, stored };
        let plan = rollout.plan(&[wish], &sets, None, held.now);
        (rollout, plan)
    }

    fn given(plan: &Plan<Template>) -> Vec<&str> {
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
        let (_, first) = plan(&soaking, &works(well.clone()), &now);
        assert_eq!((given(&first), first.wake), (vec![], Some(at(900))), "though its conditions are old");
        let proof = well.to_record(&now).expect("it is recorded");
        assert_eq!(proof, Proof { set: goal.clone(), verdict: Verdict::Proven, since: at(300) });
        let recorded = Placed { recorded: Some(proof), ..well };
        assert_eq!(recorded.to_record(&held(&goal, true, 400)), None);
        let (_, later) = plan(&soaking, &works(recorded.clone()), &held(&goal, true, 899));
        assert_eq!((given(&later), later.wake), (vec![], Some(at(900))));
        let (_, over) = plan(&soaking, &works(recorded.clone()), &held(&goal, true, 900));
        assert_eq!(given(&over), ["two"]);
        let gone = Placed { report: report(Holds::Yes, Holds::No), ..recorded };
        let proof = gone.to_record(&held(&goal, true, 600)).expect("it is not well any more");
        assert_eq!((proof.verdict, proof.since), (Verdict::Unsettled, at(600)));
        let back = Placed { report: report(Holds::Yes, Holds::Yes), recorded: Some(proof), ..gone };
        let (_, again) = plan(&soaking, &works(back), &held(&goal, true, 900));
        assert_eq!((given(&again), again.wake), (vec![], Some(at(1500))), "it has to stay well from the beginning");
    }

    #[test]
    fn reports_after_a_rollout_are_not_recorded() {
        let goal = set("b");
        let proof = Proof { set: goal.clone(), verdict: Verdict::Proven, since: at(5) };
        let sick = Placed { recorded: Some(proof), ..placed("b", 0, report(Holds::No, Holds::Yes)) };
        let settled = Held { settled: Some(at(9)), ..held(&goal, false, 99) };
        assert_eq!(sick.to_record(&settled), None);
        let next = set("c");
        assert_eq!(sick.to_record(&held(&next, false, 99)), None, "its turn comes");
        let everybody_at_once = Held { is_gradual: false, ..held(&goal, false, 99) };
        assert_eq!(placed("b", 0, report(Holds::Yes, Holds::Yes)).to_record(&everybody_at_once), None);
    }

    #[test]
    fn a_cluster_in_flight_to_a_former_template_keeps_its_slot() {
        let (ran, goal) = (set("a"), set("c"));
        let proof = Proof { set: ran, verdict: Verdict::Proven, since: at(0) };
        let sick = Placed { recorded: Some(proof), ..placed("a", 0, report(Holds::No, Holds::Yes)) };
        let works = [("one", Spot::Work(sick)), ("two", Spot::Work(placed("b", 5, Report::default())))];
        let one_at_a_time = progressive(&json!({ "maxConcurrency": 1 }));
        let (_, plan) = plan(&one_at_a_time, &works, &held(&goal, false, 9));
        assert_eq!(given(&plan), ["two"], "the other one waits for its turn, though it comes first by name");
    }

    #[test]
    fn cluster_keeps_its_slot_until_the_rules_of_its_former_template_say_that_it_is_updated() {
        let goal = set("c");
        let silent = placed("b", 0, report(Holds::Yes, Holds::Yes));
        let awaited = Placed { rules: Rules { tell_progressing: true, tell_degraded: false }, ..silent };
        assert_eq!(awaited.to_record(&held(&goal, false, 9)), None);
        let one_at_a_time = progressive(&json!({ "maxConcurrency": 1 }));
        let updated = placed("a", 0, report(Holds::Yes, Holds::Yes));
        let works = [("one", Spot::Work(updated)), ("two", Spot::Work(awaited))];
        let (_, plan) = plan(&one_at_a_time, &works, &held(&goal, false, 9));
        assert_eq!(given(&plan), ["two"], "it is in flight, so that the other one waits");
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
