//! What a placement does now: which set it moves its clusters to, what holds it up, and what has to be remembered of that.

use std::collections::BTreeSet;

use drover_api::{
    drover::{Gate, GateState, Halt, Pin, RolloutCounts, RolloutOutcome, RolloutProgress, RolloutRecord, RolloutState},
    grammar::SetFingerprint,
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    Entry, Rollout, Sets, cycle,
    gate::{Canaries, Shut, has_run, has_tried, is_well, unhealthy_from},
    hold::Hold,
    revision::{Revision, TargetError},
    standing::{Goal, Measure},
};
use crate::{presence::Source, time::after};

/// How many sets a placement remembers that it can return to without asking canaries.
const TRUSTED: usize = 10;

/// How long a cluster may be on its way to a set while canaries are well with the next one. After that it does not hold up
/// what is probably its cure.
const STUCK_AFTER: std::time::Duration = std::time::Duration::from_mins(10);

/// What a placement is to run, or why there is nothing.
pub type Target<R> = Result<Goal<R>, TargetError<<R as Revision>::Problem>>;

/// What is wanted of the clusters of one entry.
#[derive(Clone, Debug)]
pub struct Wish<R: Revision> {
    /// What they are configured to; nothing where the entry gives nobody anything.
    pub configured: Option<Target<R>>,
    /// Whether the placement exists.
    pub is_there: bool,
    /// Who has paused it.
    pub pause: Option<String>,
    /// The set that somebody holds it at.
    pub pin: Option<SetFingerprint>,
    /// What is remembered of it.
    pub stored: RolloutProgress,
}

/// What a placement does now.
#[derive(Clone, Debug, PartialEq)]
pub struct Course<R: Revision> {
    /// What has to be remembered, before anybody is given anything.
    pub progress: RolloutProgress,
    /// What clusters are moved to.
    pub goal: Option<SetFingerprint>,
    /// What holds it up.
    pub hold: Option<Hold<R>>,
    /// Why what is wanted does not come through the gate, though something else may still be rolling out behind it.
    pub shut: Option<Shut>,
    /// What is wrong with what is wanted, though something else is still rolling out.
    pub problem: Option<TargetError<R::Problem>>,
    /// The clusters that it decides for, counted by how they stand to what is wanted in the end; those that count for it are in what is
    /// remembered, by how they stand to the goal.
    pub decided: RolloutCounts,
    /// How many of the failures are due to a deadline.
    pub late: usize,
    /// How many clusters are on their way.
    pub in_flight: usize,
    /// How many clusters the placement selects, whoever decides for them.
    pub selected: usize,
}

/// What a cluster is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Give {
    /// Who is given something.
    pub cluster: ClusterName,
    /// What.
    pub set: SetFingerprint,
    /// By which entry.
    pub entry: usize,
}

/// Something that people want to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Another set is wanted, and begins to roll out.
    Started(SetFingerprint),
    /// The canaries are well.
    GateOpened(SetFingerprint),
    /// A set that was known to be good is wanted again.
    Returned(SetFingerprint),
    /// The set runs everywhere.
    Finished(SetFingerprint),
    /// Nothing new is begun.
    Halted(SetFingerprint),
}

/// What is to be done about all clusters of an add-on.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<R: Revision> {
    /// What each entry does.
    pub courses: Vec<Course<R>>,
    /// Who is given what.
    pub gives: Vec<Give>,
    /// What has happened, and to which entry.
    pub happenings: Vec<(usize, Happening)>,
    /// Rollouts that have ended.
    pub ended: Vec<RolloutRecord>,
    /// When this changes although nothing happens.
    pub wake: Option<Timestamp>,
}

/// What everything is planned by, besides the clusters.
struct Facts<'a, R: Revision> {
    wishes: &'a [Wish<R>],
    sets: &'a Sets<R>,
    /// What each entry wants.
    wanted: Vec<Option<Target<R>>>,
    retried: Option<Timestamp>,
    now: Timestamp,
}

/// A course that is being set.
struct Setting {
    progress: RolloutProgress,
    happenings: Vec<Happening>,
    ended: Vec<RolloutRecord>,
    wake: Option<Timestamp>,
    shut: Option<Shut>,
}

impl<R: Revision> Rollout<R> {
    /// Decides what each cluster is given now. There is one wish for each entry; `sets` has every set that is wished for or remembered.
    pub fn plan(&mut self, wishes: &[Wish<R>], sets: &Sets<R>, retried: Option<Timestamp>, now: Timestamp) -> Plan<R> {
        // All times are kept to the second.
        let now = whole_seconds(now);
        self.turn_to(now);
        let mut wishes = wishes.to_vec();
        let wanted = wishes.iter_mut().zip(&self.entries).map(|(wish, entry)| wanted(wish, entry, sets)).collect();
        let facts = Facts { wishes: &wishes, sets, wanted, retried, now };
        let mut plan =
            Plan { courses: Vec::new(), gives: Vec::new(), happenings: Vec::new(), ended: Vec::new(), wake: None };
        for (entry, wish) in wishes.iter().enumerate() {
            let setting = self.set_course(entry, &facts);
            plan.happenings.extend(setting.happenings.iter().cloned().map(|happening| (entry, happening)));
            plan.ended.extend(setting.ended.iter().cloned());
            plan.wake = plan.wake.into_iter().chain(setting.wake).chain(self.lanes[entry].next_alarm()).min();
            let course = self.steer(entry, setting, &facts);
            plan.gives.extend(self.gives(entry, &course, sets));
            plan.happenings.extend(newly_halted(wish, &course).map(|halted| (entry, halted)));
            plan.courses.push(course);
        }
        let given = plan.gives.iter().map(|give| (&give.cluster, &give.set)).collect();
        for (entry, course) in plan.courses.iter_mut().enumerate() {
            for gate in &mut course.progress.gates {
                gate.watching = self.watching(entry, gate, &given);
            }
            let turns = self.unhealthy_canaries(entry, &course.progress).map(|(_, from)| from);
            plan.wake = turns.filter(|from| *from > now).chain(plan.wake).min();
        }
        self.is_settled = plan.courses.iter().all(|course| course.progress.state == Some(RolloutState::Complete));
        plan
    }

    /// Judges all clusters by what is recorded of the rollouts, and plans nothing.
    pub fn judge_by_record(
        &mut self,
        recorded: &[RolloutProgress],
        sets: &Sets<R>,
        retried: Option<Timestamp>,
        now: Timestamp,
    ) {
        self.turn_to(whole_seconds(now));
        for (entry, progress) in recorded.iter().enumerate() {
            let target = if self.is_gated(entry) { &progress.last_known_good } else { &progress.wanted };
            let goal = target.as_ref().and_then(|target| goal(target, sets));
            self.measure(entry, measure_of(progress, goal, retried));
        }
    }

    /// Finds out what an entry moves its clusters to, and whether it has got there.
    fn set_course(&mut self, entry: usize, facts: &Facts<R>) -> Setting {
        let stored = facts.wishes[entry].stored.clone();
        let mut setting =
            Setting { progress: stored, happenings: Vec::new(), ended: Vec::new(), wake: None, shut: None };
        let wanted = facts.wanted[entry].clone().and_then(Result::ok);
        if let Some(wanted) = &wanted {
            self.want(entry, &wanted.fingerprint, &mut setting, facts);
        }
        if self.is_gated(entry) {
            self.mind_the_gate(entry, wanted.as_ref(), &mut setting, facts);
        } else {
            if self.entries[entry].strategy.is_ok() {
                setting.progress.gates.clear();
            }
            let former = || setting.progress.wanted.as_ref().and_then(|set| goal(set, facts.sets));
            self.measure_by(entry, wanted.or_else(former), &setting, facts);
        }
        self.arrive(entry, &mut setting, facts);
        setting
    }

    fn is_gated(&self, entry: usize) -> bool {
        self.entries[entry].strategy.as_ref().is_ok_and(|strategy| strategy.canary.is_some())
    }

    /// Takes note that another set is wanted.
    fn want(&mut self, entry: usize, wanted: &SetFingerprint, setting: &mut Setting, facts: &Facts<R>) {
        if setting.progress.wanted.as_ref() == Some(wanted) {
            return;
        }
        if !self.is_gated(entry) {
            self.end_superseded(entry, setting, facts);
            setting.progress.is_upgrade |= setting.progress.last_applied.is_some();
            (setting.progress.started, setting.progress.finished) = (Some(Time(facts.now)), None);
            setting.happenings.push(Happening::Started(wanted.clone()));
        }
        setting.progress.wanted = Some(wanted.clone());
    }

    /// Takes note of how far a set has come that is not wanted any more.
    fn end_superseded(&mut self, entry: usize, setting: &mut Setting, facts: &Facts<R>) {
        let Some(former) = setting.progress.wanted.clone() else { return };
        if setting.progress.finished.is_none() {
            self.measure_by(entry, goal(&former, facts.sets), setting, facts);
            setting.ended.push(self.record(entry, &former, RolloutOutcome::Superseded, &setting.progress, facts.now));
        }
    }

    fn record(
        &self,
        entry: usize,
        set: &SetFingerprint,
        outcome: RolloutOutcome,
        progress: &RolloutProgress,
        now: Timestamp,
    ) -> RolloutRecord {
        RolloutRecord {
            placement: self.entries[entry].source.placement().cloned(),
            set: set.clone(),
            outcome,
            started: progress.started.clone().unwrap_or(Time(now)),
            finished: Time(now),
            clusters: Some(self.lanes[entry].counts()),
        }
    }

    fn measure_by(&mut self, entry: usize, goal: Option<Goal<R>>, setting: &Setting, facts: &Facts<R>) {
        let measure = measure_of(&setting.progress, goal, facts.retried);
        self.measure(entry, measure);
    }

    /// Decides which set comes through a gate: the one that is wanted, once the canaries are well with it or it is known to be good, and
    /// until then what came through before.
    fn mind_the_gate(&mut self, entry: usize, wanted: Option<&Goal<R>>, setting: &mut Setting, facts: &Facts<R>) {
        let is_of_canaries = |gate: &Gate| Some(&gate.canary) == self.canary_placement(entry);
        setting.progress.gates.retain(|gate| gate.state == GateState::Open || is_of_canaries(gate));
        let known_good = setting.progress.last_known_good.clone();
        self.measure_by(entry, known_good.clone().and_then(|set| goal(&set, facts.sets)), setting, facts);
        let Some(wanted) = wanted else { return self.end_former(entry, setting, facts) };
        let is_trusted = is_trusted(&setting.progress, &wanted.fingerprint);
        let is_known_good = known_good.as_ref() == Some(&wanted.fingerprint);
        if is_known_good && (is_trusted || rolls_out(&setting.progress, &wanted.fingerprint)) {
            return self.keep_open(entry, wanted, setting, facts);
        }
        if is_trusted {
            self.abandon(entry, setting, facts);
            setting.happenings.push(Happening::Returned(wanted.fingerprint.clone()));
            return self.let_through(entry, wanted, setting, facts);
        }
        self.end_former(entry, setting, facts);
        match self.judge_gate(entry, wanted, setting, facts) {
            Ok(()) => {
                if let Some(former) = known_good.filter(|former| rolls_out(&setting.progress, former)) {
                    self.end(entry, &former, setting, facts);
                }
                setting.happenings.push(Happening::GateOpened(wanted.fingerprint.clone()));
                self.let_through(entry, wanted, setting, facts);
            }
            Err(shut) => {
                setting.wake = shut.until();
                self.keep_shut(entry, wanted, shut, setting);
            }
        }
    }

    /// The set is known to be good, and the gate is open for it.
    fn keep_open(&mut self, entry: usize, wanted: &Goal<R>, setting: &mut Setting, facts: &Facts<R>) {
        let gates = &mut setting.progress.gates;
        gates.retain(|gate| gate.set == wanted.fingerprint && gate.state == GateState::Open);
        if gates.is_empty() {
            let opened = facts.now;
            gates.extend(self.open_gate(entry, &wanted.fingerprint, opened));
        }
    }

    fn open_gate(&self, entry: usize, set: &SetFingerprint, opened: Timestamp) -> Option<Gate> {
        let canary = self.canary_placement(entry)?.clone();
        let (state, opened) = (GateState::Open, Some(Time(opened)));
        Some(Gate { set: set.clone(), canary, state, opened, watching: Vec::new(), message: None })
    }

    fn canary_placement(&self, entry: usize) -> Option<&PlacementRef> {
        self.entries[entry].strategy.as_ref().ok()?.canary.as_ref()
    }

    /// A set comes through the gate, and from now on counts as good.
    fn let_through(&mut self, entry: usize, wanted: &Goal<R>, setting: &mut Setting, facts: &Facts<R>) {
        let progress = &mut setting.progress;
        progress.is_upgrade |= progress.last_applied.is_some();
        trust(progress, &wanted.fingerprint);
        progress.last_known_good = Some(wanted.fingerprint.clone());
        progress.gates = self.open_gate(entry, &wanted.fingerprint, facts.now).into_iter().collect();
        (progress.started, progress.finished) = (Some(Time(facts.now)), None);
        self.measure_by(entry, Some(wanted.clone()), setting, facts);
    }

    /// The gate stays shut for what is wanted.
    fn keep_shut(&self, entry: usize, wanted: &Goal<R>, shut: Shut, setting: &mut Setting) {
        let gates = &mut setting.progress.gates;
        gates.retain(|gate| gate.state == GateState::Open || gate.set == wanted.fingerprint);
        let message = Some(shut.to_string());
        match gates.iter_mut().find(|gate| gate.set == wanted.fingerprint) {
            Some(gate) => gate.message = message,
            None => gates.extend(self.canary_placement(entry).map(|canary| Gate {
                set: wanted.fingerprint.clone(),
                canary: canary.clone(),
                state: GateState::Shut,
                opened: None,
                watching: Vec::new(),
                message,
            })),
        }
        setting.shut = Some(shut);
    }

    /// What came through before is over when nobody is on the way to it, and nobody can be begun.
    fn end_former(&mut self, entry: usize, setting: &mut Setting, facts: &Facts<R>) {
        let Some(known_good) = setting.progress.last_known_good.clone() else { return };
        if !rolls_out(&setting.progress, &known_good) || !self.is_over(entry, &setting.progress, facts) {
            return;
        }
        self.end(entry, &known_good, setting, facts);
    }

    /// Takes note that a set has come to its end behind the gate, wherever that is.
    fn end(&self, entry: usize, known_good: &SetFingerprint, setting: &mut Setting, facts: &Facts<R>) {
        let lane = &self.lanes[entry];
        if setting.progress.last_applied.as_ref() != Some(known_good) {
            let (outcome, is_complete) =
                if lane.is_complete() { (RolloutOutcome::Complete, true) } else { (RolloutOutcome::Superseded, false) };
            setting.ended.push(self.record(entry, known_good, outcome, &setting.progress, facts.now));
            if is_complete {
                setting.progress.last_applied = Some(known_good.clone());
            } else {
                self.distrust_if_halted(entry, known_good, &mut setting.progress, facts.sets);
            }
            setting.progress.finished = Some(Time(facts.now));
        }
        setting.progress.gates.retain(|gate| gate.state != GateState::Open);
    }

    /// A set that had to be stopped was good with canaries and with nobody else: it is not returned to without asking them again.
    fn distrust_if_halted(&self, entry: usize, set: &SetFingerprint, progress: &mut RolloutProgress, sets: &Sets<R>) {
        if self.is_halted(entry, progress, sets) {
            progress.trusted.retain(|trusted| trusted != set);
        }
    }

    fn is_over(&self, entry: usize, progress: &RolloutProgress, facts: &Facts<R>) -> bool {
        let decided = self.lanes[entry].decided();
        !self.may_begin(entry, progress, facts) && decided.moving + decided.soaking == 0
    }

    /// Whether anybody else may be given what rolls out.
    fn may_begin(&self, entry: usize, progress: &RolloutProgress, facts: &Facts<R>) -> bool {
        let is_held = || self.is_halted(entry, progress, facts.sets) || self.outdated(entry, facts).is_some();
        self.lanes[entry].has_line() && !is_held()
    }

    /// What was rolling out is not wanted any more.
    fn abandon(&self, entry: usize, setting: &mut Setting, facts: &Facts<R>) {
        let progress = &mut setting.progress;
        let rolling = progress.last_known_good.clone().filter(|set| rolls_out(progress, set));
        let rolling = rolling.filter(|set| progress.last_applied.as_ref() != Some(set));
        if let Some(set) = rolling {
            setting.ended.push(self.record(entry, &set, RolloutOutcome::Abandoned, progress, facts.now));
            self.distrust_if_halted(entry, &set, progress, facts.sets);
        }
    }

    /// Whether the gate of an entry opens for a set.
    fn judge_gate(&self, entry: usize, wanted: &Goal<R>, setting: &Setting, facts: &Facts<R>) -> Result<(), Shut> {
        if let Some(cycle) = cycle(entry, &self.entries, &self.canaries) {
            return Err(Shut::Cycle(cycle));
        }
        let Some(placement) = self.canary_placement(entry) else { return Ok(()) };
        let canary = self.canaries[entry].filter(|canary| facts.wishes[*canary].is_there);
        let canary = canary.ok_or_else(|| Shut::NoPlacement(placement.clone()))?;
        if self.entries[canary].strategy.is_err() {
            return Err(Shut::Unreadable(placement.clone()));
        }
        let watched = setting.progress.gates.iter().find(|gate| gate.set == wanted.fingerprint);
        let watched =
            watched.into_iter().flat_map(|gate| &gate.watching).filter(|name| self.stays_canary(canary, name));
        let configured = facts.wanted[canary].as_ref().and_then(|wanted| wanted.as_ref().ok());
        let canaries = Canaries {
            placement,
            strategy: &self.lanes[canary].strategy,
            selected: &self.selected[canary],
            watched: watched.collect(),
            goal: wanted,
            configured: configured.map(|goal| &goal.fingerprint),
        };
        canaries.are_well(|name| self.members.get(name), facts.now)?;
        match &setting.progress.last_known_good {
            Some(former) if rolls_out(&setting.progress, former) => {
                self.is_stuck(entry, former, &setting.progress, facts)
            }
            _ => Ok(()),
        }
    }

    /// Whether what came through before goes on no longer: what canaries are well with now is probably its cure.
    fn is_stuck(
        &self,
        entry: usize,
        former: &SetFingerprint,
        progress: &RolloutProgress,
        facts: &Facts<R>,
    ) -> Result<(), Shut> {
        let lane = &self.lanes[entry];
        let given = |name: &ClusterName| Some(self.members.get(name)?.addon.as_ref()?.given.as_ref()?.since);
        let last = lane.moving().filter_map(given).max();
        let may_begin = self.may_begin(entry, progress, facts) && lane.has_turns();
        let until = last.map(|last| after(last, STUCK_AFTER)).filter(|until| *until > facts.now);
        if may_begin || until.is_some() || lane.decided().soaking > 0 {
            return Err(Shut::Finishing { set: former.clone(), until });
        }
        Ok(())
    }

    /// Whether a cluster that was given a set as a canary still counts as one: it does until it leaves while it can be reached. One that
    /// was cut off and is heard of again has not left, as long as no placement has decided on it anew and its add-on is there.
    fn stays_canary(&self, canary: usize, name: &ClusterName) -> bool {
        let member = self.members.get(name);
        member.is_some_and(|member| {
            let is_away = !member.is_online || self.decides(member).is_none();
            let is_there = member.addon.is_some() && !member.steering.is_skipped;
            is_there && (is_away || self.selected[canary].contains(name))
        })
    }

    /// The canaries that a gate does not lose sight of, though their placement may: as long as it is shut those who were given the set, or are
    /// about to be; when it is open those who are answerable for it, because they have been well with it since it opened.
    fn watching(
        &self,
        entry: usize,
        gate: &Gate,
        given: &BTreeSet<(&ClusterName, &SetFingerprint)>,
    ) -> Vec<ClusterName> {
        let Some(canary) = self.canaries[entry] else { return gate.watching.clone() };
        let watched: BTreeSet<_> = gate.watching.iter().collect();
        let is_watched = |name: &&ClusterName| {
            let Some(member) = self.members.get(*name).filter(|_| self.stays_canary(canary, name)) else {
                return false;
            };
            match gate.state {
                GateState::Shut => has_tried(member, &gate.set) || given.contains(&(*name, &gate.set)),
                GateState::Open if self.lanes[entry].measure.settled.is_some() => false,
                GateState::Open => is_well(member, &gate.set) || watched.contains(name) && has_run(member, &gate.set),
            }
        };
        let all: BTreeSet<_> = self.selected[canary].iter().chain(&gate.watching).collect();
        all.into_iter().filter(is_watched).cloned().collect()
    }

    /// Takes note that the goal has been reached everywhere, if it has just been.
    fn arrive(&mut self, entry: usize, setting: &mut Setting, facts: &Facts<R>) {
        let lane = &self.lanes[entry];
        let Some(goal) = lane.measure.goal.clone() else { return };
        let is_wanted = setting.progress.wanted.as_ref() == Some(&goal.fingerprint);
        if !is_wanted || !lane.is_complete() {
            return;
        }
        if setting.progress.last_applied.as_ref() != Some(&goal.fingerprint) || setting.progress.finished.is_none() {
            setting.ended.push(self.record(
                entry,
                &goal.fingerprint,
                RolloutOutcome::Complete,
                &setting.progress,
                facts.now,
            ));
            setting.happenings.push(Happening::Finished(goal.fingerprint.clone()));
            setting.progress.finished = Some(Time(facts.now));
        } else if lane.last_moved().is_some() {
            setting.progress.finished = Some(Time(facts.now));
        }
        setting.progress.last_applied = Some(goal.fingerprint.clone());
        setting.progress.last_known_good = Some(goal.fingerprint.clone());
        trust(&mut setting.progress, &goal.fingerprint);
        self.measure_by(entry, Some(goal.clone()), setting, facts);
        // Where the clock has gone back since somebody was moved.
        if let Some(last) = self.lanes[entry].last_moved() {
            setting.progress.finished = Some(Time(last));
            self.measure_by(entry, Some(goal), setting, facts);
        }
    }

    /// Finds out what holds an entry up.
    fn steer(&self, entry: usize, setting: Setting, facts: &Facts<R>) -> Course<R> {
        let Setting { mut progress, shut, .. } = setting;
        let lane = &self.lanes[entry];
        let goal = lane.measure.goal.as_ref().map(|goal| goal.fingerprint.clone());
        let problem = match &facts.wanted[entry] {
            Some(Err(problem)) => Some(problem.clone()),
            _ => None,
        };
        let halted = self.halted(entry, &progress, facts.sets);
        if halted.is_some() || !is_given_up(&progress) {
            progress.halt = halt(&progress, goal.as_ref(), halted.as_ref(), facts.now);
        }
        let paused = facts.wishes[entry].pause.clone().map(Hold::Paused);
        let waits = problem.clone().map(Hold::Blocked).or(shut.clone().map(Hold::Gate));
        let halted = halted.or_else(|| self.outdated(entry, facts));
        let hold = paused.or_else(|| self.hold(entry, &progress, waits, halted));
        let is_there = goal.is_some() && progress.last_applied == goal && progress.wanted == goal && lane.is_complete();
        let is_idle = lane.all().total() == 0;
        progress.state = Some(state(hold.as_ref(), is_there || is_idle, problem.is_some()));
        progress.clusters = Some(lane.counts());
        let decided = lane.decided();
        let selected = self.selected[entry].len();
        let (late, in_flight) = (lane.all().late, decided.moving);
        let is_wanted = goal == progress.wanted;
        let decided = if is_wanted { decided.counts() } else { decided.counts_before_the_wanted() };
        Course { progress, goal, hold, shut, problem, decided, late, in_flight, selected }
    }

    /// What keeps an entry from beginning anything. What it waits for does not, while something else that came through a gate goes on.
    fn hold(
        &self,
        entry: usize,
        progress: &RolloutProgress,
        waits: Option<Hold<R>>,
        halted: Option<Hold<R>>,
    ) -> Option<Hold<R>> {
        let goes_on = progress.last_known_good.as_ref().is_some_and(|set| rolls_out(progress, set));
        if self.is_gated(entry) && goes_on {
            halted.or(waits.filter(|_| is_given_up(progress)))
        } else {
            waits.or(halted)
        }
    }

    /// Why nothing new is begun of what rolls out.
    fn halted(&self, entry: usize, progress: &RolloutProgress, sets: &Sets<R>) -> Option<Hold<R>> {
        let unhealthy = || self.unhealthy_canary(entry, progress).map(Hold::CanaryUnhealthy);
        let overdrawn = || {
            let overdrawn = self.lanes[entry].overdrawn()?;
            Some(Hold::Halted { failed: overdrawn.failed, tolerated: overdrawn.tolerated })
        };
        self.lost(entry, sets).or_else(unhealthy).or_else(overdrawn)
    }

    /// That what is rolling out can not be given any more, as long as somebody waits for it.
    fn lost(&self, entry: usize, sets: &Sets<R>) -> Option<Hold<R>> {
        let lane = &self.lanes[entry];
        let goal = lane.measure.goal.as_ref().filter(|_| lane.has_line())?;
        sets.lost(&goal.fingerprint).cloned().map(Hold::Lost)
    }

    /// That what is rolling out was made by another Drover, as long as somebody waits for it. Who wants that very set, such as by going back to
    /// it, gets what this one makes of it.
    fn outdated(&self, entry: usize, facts: &Facts<R>) -> Option<Hold<R>> {
        let lane = &self.lanes[entry];
        let goal = lane.measure.goal.as_ref().filter(|_| lane.has_line()).map(|goal| &goal.fingerprint)?;
        let is_wanted = matches!(&facts.wanted[entry], Some(Ok(wanted)) if wanted.fingerprint == *goal);
        (!is_wanted && facts.sets.is_outdated(goal)).then(|| Hold::Outdated(goal.clone()))
    }

    fn is_halted(&self, entry: usize, progress: &RolloutProgress, sets: &Sets<R>) -> bool {
        is_given_up(progress) || self.halted(entry, progress, sets).is_some()
    }

    /// A canary that was well with what its placement lets through, and is no longer.
    fn unhealthy_canary(&self, entry: usize, progress: &RolloutProgress) -> Option<ClusterName> {
        let mut turned = self.unhealthy_canaries(entry, progress).filter(|(_, from)| *from <= self.now);
        turned.next().map(|(name, _)| name.clone())
    }

    /// The canaries that were updated to what passed the gate and fail now, each with the time
    /// from which it counts as unhealthy.
    fn unhealthy_canaries<'p>(
        &self,
        entry: usize,
        progress: &'p RolloutProgress,
    ) -> impl Iterator<Item = (&'p ClusterName, Timestamp)> {
        let measure = &self.lanes[entry].measure;
        let goal = measure.goal.as_ref().filter(|_| measure.settled.is_none()).map(|goal| &goal.fingerprint);
        let is_open = |gate: &&Gate| Some(&gate.set) == goal && gate.state == GateState::Open;
        let watched = progress.gates.iter().find(is_open).zip(self.canaries[entry]);
        watched.into_iter().flat_map(move |(gate, canary)| {
            let stays = gate.watching.iter().filter(move |name| self.stays_canary(canary, name));
            stays.filter_map(|name| Some((name, unhealthy_from(self.members.get(name)?, &gate.set)?)))
        })
    }

    /// Who is given something by an entry: all whose turn it is; if it is held up, only those who have nothing, and only what is
    /// known to be good.
    fn gives(&self, entry: usize, course: &Course<R>, sets: &Sets<R>) -> Vec<Give> {
        if matches!(self.entries[entry].source, Source::Canaries(_)) {
            return Vec::new();
        }
        let lane = &self.lanes[entry];
        let give =
            |set: &SetFingerprint, cluster: &ClusterName| Give { cluster: cluster.clone(), set: set.clone(), entry };
        match (&course.hold, &course.goal) {
            (None, Some(goal)) => lane.strays().chain(lane.next()).map(|cluster| give(goal, cluster)).collect(),
            _ => match for_newcomers(&course.progress).filter(|set| sets.can_be_given(set)) {
                Some(known_good) => lane.newcomers().map(|cluster| give(known_good, cluster)).collect(),
                None => Vec::new(),
            },
        }
    }
}

/// What an entry wants: what it is held at, or what it is configured to. Where nobody can tell how it is to be rolled out, that is as good
/// as not knowing what.
fn wanted<R: Revision>(wish: &mut Wish<R>, entry: &Entry, sets: &Sets<R>) -> Option<Target<R>> {
    let configured = wish.configured.clone()?;
    if let Err(unreadable) = &entry.strategy {
        return Some(Err(TargetError::Strategy(unreadable.clone())));
    }
    let fingerprint = configured.as_ref().ok().map(|goal| goal.fingerprint.clone());
    let Some(pinned) = wish.pin.clone() else {
        wish.stored.pin = None;
        return Some(configured);
    };
    let former = wish.stored.pin.take();
    // What can not be had at the moment was configured before, and is not something else when it can be had again.
    let configured_before = match &former {
        Some(Pin { instead_of, let_go: false, .. }) => instead_of.clone(),
        _ => wish.stored.wanted.clone(),
    };
    let instead_of = fingerprint.clone().or(configured_before);
    let same = former.filter(|pin| pin.set == pinned);
    let mut pin = same.unwrap_or(Pin { set: pinned, instead_of, let_go: false });
    if fingerprint.is_some() && fingerprint != pin.instead_of {
        pin.let_go = true;
    }
    let wanted = if pin.let_go {
        configured
    } else {
        goal(&pin.set, sets).ok_or_else(|| TargetError::UnknownRevision(pin.set.clone()))
    };
    wish.stored.pin = Some(pin);
    Some(wanted)
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// That a rollout is halted, if that is new.
fn newly_halted<R: Revision>(wish: &Wish<R>, course: &Course<R>) -> Option<Happening> {
    let halted = course.progress.halt.as_ref()?;
    let is_known = wish.stored.halt.as_ref().is_some_and(|known| known.set == halted.set);
    (!is_known).then(|| Happening::Halted(halted.set.clone()))
}

/// What the clusters of an entry are measured by that moves them to a revision.
fn measure_of<R: Revision>(
    progress: &RolloutProgress,
    goal: Option<Goal<R>>,
    retried: Option<Timestamp>,
) -> Measure<R> {
    let RolloutProgress { wanted, last_applied, started, finished, .. } = progress;
    let is_reached = goal.as_ref().is_some_and(|goal| last_applied.as_ref() == Some(&goal.fingerprint));
    let started = started.as_ref().map(|started| started.0);
    let settled = finished.as_ref().filter(|_| is_reached).map(|finished| finished.0);
    Measure { goal, wanted: wanted.clone(), started, settled, retried }
}

fn goal<R: Revision>(set: &SetFingerprint, sets: &Sets<R>) -> Option<Goal<R>> {
    Some(Goal { fingerprint: set.clone(), set: sets.get(set)?.clone() })
}

/// Whether a set has come through the gate, and is rolling out.
fn rolls_out(progress: &RolloutProgress, set: &SetFingerprint) -> bool {
    progress.gates.iter().any(|gate| gate.set == *set && gate.state == GateState::Open)
}

/// Whether what rolls out was halted, and something else is wanted instead. Then it is not taken up again: canaries that were unhealthy
/// with it may have gone on to what is probably its cure.
fn is_given_up(progress: &RolloutProgress) -> bool {
    let halted = progress.halt.as_ref().map(|halt| &halt.set);
    halted.is_some_and(|set| rolls_out(progress, set) && progress.wanted.as_ref() != Some(set))
}

/// What those get who have nothing yet, while nobody else is moved: what is known to be good, and never what was halted.
fn for_newcomers(progress: &RolloutProgress) -> Option<&SetFingerprint> {
    let halted = progress.halt.as_ref().map(|halt| &halt.set);
    let is_good = |set: &&SetFingerprint| is_trusted(progress, set) && halted != Some(set);
    progress.last_known_good.as_ref().filter(is_good).or(progress.last_applied.as_ref())
}

fn is_trusted(progress: &RolloutProgress, set: &SetFingerprint) -> bool {
    progress.trusted.contains(set) || progress.last_applied.as_ref() == Some(set)
}

/// Remembers that a set can be returned to.
fn trust(progress: &mut RolloutProgress, set: &SetFingerprint) {
    if progress.trusted.first() == Some(set) {
        return;
    }
    progress.trusted.retain(|trusted| trusted != set);
    progress.trusted.insert(0, set.clone());
    progress.trusted.truncate(TRUSTED);
}

fn halt<R: Revision>(
    progress: &RolloutProgress,
    goal: Option<&SetFingerprint>,
    halted: Option<&Hold<R>>,
    now: Timestamp,
) -> Option<Halt> {
    let (set, halted) = (goal?, halted?);
    let since = progress.halt.as_ref().filter(|halt| halt.set == *set).map_or(Time(now), |halt| halt.since.clone());
    Some(Halt { set: set.clone(), since, message: halted.to_string() })
}

fn state<R: Revision>(hold: Option<&Hold<R>>, is_complete: bool, has_problem: bool) -> RolloutState {
    match hold {
        Some(Hold::Blocked(_)) => RolloutState::Blocked,
        _ if is_complete && !has_problem => RolloutState::Complete,
        Some(Hold::Paused(_)) => RolloutState::Paused,
        Some(Hold::Gate(_) | Hold::Outdated(_)) => RolloutState::WaitingForCanary,
        Some(Hold::Halted { .. } | Hold::CanaryUnhealthy(_) | Hold::Lost(_)) => RolloutState::Halted,
        None => RolloutState::RollingOut,
    }
}
