//! The clusters of one placement, kept by how they stand, so that a change of one costs a look at one.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{drover::RolloutCounts, reference::ClusterName};
use k8s_openapi::jiff::Timestamp;

use super::{
    member::{Group, Member, scatter},
    revision::Revision,
    standing::{Measure, Standing, Step, judge},
    strategy::{Order, Stage, Strategy},
};
use crate::member::Failure;

/// Whether a placement decides for a cluster that it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It does.
    Decided,
    /// Its canary placement does: the cluster counts here, and moves there.
    Canary,
}

/// The clusters that count for one placement.
#[derive(Clone, Debug)]
pub(super) struct Lane<R> {
    pub(super) strategy: Strategy,
    pub(super) measure: Measure<R>,
    places: BTreeMap<ClusterName, Place>,
    /// The clusters of each stage, counted. Canaries that move elsewhere are not among them.
    stages: BTreeMap<Stage, Tally>,
    /// Canaries that move elsewhere, counted.
    canaries: Tally,
    /// Who waits for a turn, in order.
    line: BTreeSet<Ticket>,
    /// Those of them who have nothing yet.
    newcomers: BTreeSet<Ticket>,
    /// The clusters that are on the way to something else, in order.
    strays: BTreeSet<Ticket>,
    /// Who was given the goal when the others had reached it.
    late: BTreeSet<(Timestamp, ClusterName)>,
    /// When clusters stand differently although nothing has happened.
    alarms: BTreeSet<(Timestamp, ClusterName)>,
}

/// The place of one cluster.
#[derive(Clone, Debug)]
struct Place {
    role: Role,
    ticket: Ticket,
    standing: Standing,
    alarm: Option<Timestamp>,
    late: Option<Timestamp>,
}

/// When a cluster's turn comes: earlier tickets first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    stage: Stage,
    step: Step,
    group: u32,
    position: u64,
    name: ClusterName,
}

/// Clusters, counted by how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) absent: usize,
    pub(super) skipped: usize,
    pub(super) paused: usize,
    pub(super) paused_moving: usize,
    pub(super) offline: usize,
    pub(super) waiting: usize,
    pub(super) strays: usize,
    pub(super) ahead: usize,
    pub(super) ahead_moving: usize,
    pub(super) moving: usize,
    pub(super) soaking: usize,
    pub(super) done: usize,
    pub(super) own_way: usize,
    pub(super) at_odds: usize,
    pub(super) failed: usize,
    pub(super) late: usize,
}

impl Tally {
    fn of(&mut self, standing: &Standing) -> &mut usize {
        match standing {
            Standing::Absent => &mut self.absent,
            Standing::Skipped => &mut self.skipped,
            Standing::Paused { is_moving: false } => &mut self.paused,
            Standing::Paused { is_moving: true } => &mut self.paused_moving,
            Standing::Offline => &mut self.offline,
            Standing::Waiting(_) => &mut self.waiting,
            Standing::Stray => &mut self.strays,
            Standing::Ahead { is_there: true } => &mut self.ahead,
            Standing::Ahead { is_there: false } => &mut self.ahead_moving,
            Standing::Moving { .. } => &mut self.moving,
            Standing::Soaking { .. } => &mut self.soaking,
            Standing::Done => &mut self.done,
            Standing::OwnWay => &mut self.own_way,
            Standing::AtOdds => &mut self.at_odds,
            Standing::Failed(Failure::TooLate) => &mut self.late,
            Standing::Failed(_) => &mut self.failed,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            absent: self.absent + other.absent,
            skipped: self.skipped + other.skipped,
            paused: self.paused + other.paused,
            paused_moving: self.paused_moving + other.paused_moving,
            offline: self.offline + other.offline,
            waiting: self.waiting + other.waiting,
            strays: self.strays + other.strays,
            ahead: self.ahead + other.ahead,
            ahead_moving: self.ahead_moving + other.ahead_moving,
            moving: self.moving + other.moving,
            soaking: self.soaking + other.soaking,
            done: self.done + other.done,
            own_way: self.own_way + other.own_way,
            at_odds: self.at_odds + other.at_odds,
            failed: self.failed + other.failed,
            late: self.late + other.late,
        }
    }

    pub(super) fn total(&self) -> usize {
        let at_rest = self.skipped + self.offline + self.done + self.own_way + self.at_odds + self.paused;
        self.unfinished() + at_rest + self.failures()
    }

    /// Those that have failed, in whichever way.
    pub(super) fn failures(&self) -> usize {
        self.failed + self.late
    }

    /// Those that something is being done to at the moment.
    pub(super) fn occupied(&self) -> usize {
        self.strays + self.ahead_moving + self.moving + self.soaking + self.paused_moving
    }

    /// Those that are to move on without anybody's help.
    fn unfinished(&self) -> usize {
        self.absent + self.waiting + self.ahead + self.occupied()
    }

    /// Whether all run the goal that can be reached and are to run it.
    fn is_complete(&self) -> bool {
        self.unfinished() == 0 && self.failures() == 0 && self.paused == 0
    }

    /// What is told of them as long as something else than the goal is wanted in the end.
    pub(super) fn counts_before_the_wanted(&self) -> RolloutCounts {
        let others = Self { ahead: 0, ahead_moving: 0, ..*self };
        let paused = self.paused + self.paused_moving;
        let aside = self.offline + self.skipped + paused + self.own_way;
        let (ahead, waiting) = (self.ahead, others.total() - aside);
        let waiting =
            Self { waiting, offline: self.offline, skipped: self.skipped, own_way: self.own_way, ..Self::default() };
        Self { ahead, ahead_moving: self.ahead_moving, paused, ..waiting }.counts()
    }

    /// What is told of them.
    pub(super) fn counts(&self) -> RolloutCounts {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        RolloutCounts {
            total: count(self.total()),
            waiting: count(self.absent + self.waiting + self.strays + self.at_odds),
            given: count(self.moving + self.ahead_moving),
            proven: count(self.soaking + self.done + self.ahead),
            failed: count(self.failures()),
            offline: count(self.offline),
            skipped: count(self.skipped),
            paused: count(self.paused + self.paused_moving),
            overridden: count(self.own_way),
        }
    }
}

/// A stage that has failed more often than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overdrawn {
    pub(super) failed: usize,
    pub(super) tolerated: usize,
}

impl<R: Revision> Lane<R> {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            measure: Measure::default(),
            places: BTreeMap::new(),
            stages: BTreeMap::new(),
            canaries: Tally::default(),
            line: BTreeSet::new(),
            newcomers: BTreeSet::new(),
            strays: BTreeSet::new(),
            late: BTreeSet::new(),
            alarms: BTreeSet::new(),
        }
    }

    /// Takes note of a cluster as it is now, or that it does not count here any more.
    pub(super) fn update(&mut self, name: &ClusterName, now: Option<(&Member<R>, Role, &Group)>, time: Timestamp) {
        self.forget(name);
        let Some((member, role, group)) = now else { return };
        let (standing, alarm) = judge(member, &self.measure, &self.strategy, time);
        let ticket = self.ticket(name, group, &standing);
        let late = self.measure.late(member).filter(|_| role == Role::Decided);
        self.keep(name, Place { role, ticket, standing, alarm, late });
    }

    fn ticket(&self, name: &ClusterName, group: &Group, standing: &Standing) -> Ticket {
        let (in_group, position) = match self.strategy.order {
            Order::Scattered => (group.index, scatter(name.as_str())),
            Order::ByName => (0, 0),
        };
        let step = if let Standing::Waiting(step) = standing { *step } else { Step::Upgrade };
        Ticket { stage: self.strategy.stages.of(group), step, group: in_group, position, name: name.clone() }
    }

    fn keep(&mut self, name: &ClusterName, place: Place) {
        *self.tally(&place).of(&place.standing) += 1;
        if place.role == Role::Decided {
            match place.standing {
                Standing::Waiting(step) => {
                    self.line.insert(place.ticket.clone());
                    if step == Step::Install {
                        self.newcomers.insert(place.ticket.clone());
                    }
                }
                Standing::Stray => drop(self.strays.insert(place.ticket.clone())),
                _ => {}
            }
        }
        if let Some(alarm) = place.alarm {
            self.alarms.insert((alarm, name.clone()));
        }
        if let Some(late) = place.late {
            self.late.insert((late, name.clone()));
        }
        self.places.insert(name.clone(), place);
    }

    fn forget(&mut self, name: &ClusterName) {
        let Some(place) = self.places.remove(name) else { return };
        *self.tally(&place).of(&place.standing) -= 1;
        self.line.remove(&place.ticket);
        self.newcomers.remove(&place.ticket);
        self.strays.remove(&place.ticket);
        if let Some(alarm) = place.alarm {
            self.alarms.remove(&(alarm, name.clone()));
        }
        if let Some(late) = place.late {
            self.late.remove(&(late, name.clone()));
        }
    }

    fn tally(&mut self, place: &Place) -> &mut Tally {
        match place.role {
            Role::Decided => self.stages.entry(place.ticket.stage).or_default(),
            Role::Canary => &mut self.canaries,
        }
    }

    /// The clusters that stand differently by now, although nothing has happened.
    pub(super) fn due(&self, now: Timestamp) -> Vec<ClusterName> {
        self.alarms.iter().take_while(|(time, _)| *time <= now).map(|(_, name)| name.clone()).collect()
    }

    pub(super) fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.first().map(|(time, _)| *time)
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = &ClusterName> {
        self.places.keys()
    }

    pub(super) fn standing(&self, name: &ClusterName) -> Option<&Standing> {
        self.places.get(name).map(|place| &place.standing)
    }

    /// The clusters that the placement decides for, counted.
    pub(super) fn decided(&self) -> Tally {
        self.stages.values().copied().fold(Tally::default(), Tally::plus)
    }

    /// All clusters that count for the placement.
    pub(super) fn all(&self) -> Tally {
        self.decided().plus(self.canaries)
    }

    pub(super) fn counts(&self) -> RolloutCounts {
        self.all().counts()
    }

    /// Whether the goal has been reached: by somebody, and by all who can be reached.
    pub(super) fn is_complete(&self) -> bool {
        let all = self.all();
        let is_reached = self.measure.goal.is_some() && all.done + all.own_way > 0;
        is_reached && self.decided().is_complete() && self.canaries_were_there()
    }

    /// When a cluster was last moved since the goal was reached.
    pub(super) fn last_moved(&self) -> Option<Timestamp> {
        self.late.last().map(|(time, _)| *time)
    }

    /// Whether the canaries among the placement's clusters run the goal, or have gone on from there.
    fn canaries_were_there(&self) -> bool {
        Tally { ahead: 0, ahead_moving: 0, ..self.canaries }.is_complete()
    }

    /// How many more clusters may be begun.
    fn slots(&self) -> usize {
        // Failures beyond what is tolerated keep their slots too, but then nothing is begun in any case, except for those who have nothing:
        // they are not held up by what others have failed of.
        self.slots_beside(self.decided().occupied())
    }

    /// How many clusters in flight to another revision may be re-assigned. Each keeps its slot.
    /// Tolerated failures had no slot, so that all of them at once could exceed the window.
    fn slots_for_strays(&self) -> usize {
        let decided = self.decided();
        self.slots_beside(decided.occupied() - decided.strays)
    }

    fn slots_beside(&self, occupied: usize) -> usize {
        self.strategy.window.of(self.all().total()).saturating_sub(occupied)
    }

    /// Whether the window lets the next cluster in line have its turn.
    pub(super) fn has_turns(&self) -> bool {
        if self.strays.is_empty() { self.slots() > 0 } else { self.slots_for_strays() > 0 }
    }

    /// The stage that holds up everything, because too many of its clusters have failed.
    pub(super) fn overdrawn(&self) -> Option<Overdrawn> {
        let total = self.all().total();
        self.stages.iter().find_map(|(stage, tally)| {
            let tolerated = self.strategy.tolerated(*stage, tally.total(), total);
            (tally.failures() > tolerated).then_some(Overdrawn { failed: tally.failures(), tolerated })
        })
    }

    /// The clusters in flight to another revision that are re-assigned now, within the window.
    pub(super) fn strays(&self) -> impl Iterator<Item = &ClusterName> {
        self.strays.iter().take(self.slots_for_strays()).map(|ticket| &ticket.name)
    }

    /// Whose turn it is: the first in line, as many as there are slots, and none of a stage whose predecessor is not done.
    pub(super) fn next(&self) -> impl Iterator<Item = &ClusterName> {
        let current = self.current_stage();
        let in_turn = move |ticket: &&Ticket| current.is_some_and(|current| ticket.stage <= current);
        self.line.iter().take_while(in_turn).take(self.slots()).map(|ticket| &ticket.name)
    }

    /// Those who have nothing yet, as many as there are slots.
    pub(super) fn newcomers(&self) -> impl Iterator<Item = &ClusterName> {
        self.waiting_newcomers().take(self.slots())
    }

    /// Those who have nothing yet.
    pub(super) fn waiting_newcomers(&self) -> impl Iterator<Item = &ClusterName> {
        self.newcomers.iter().map(|ticket| &ticket.name)
    }

    /// Those whom the placement decides for.
    pub(super) fn decided_clusters(&self) -> impl Iterator<Item = &ClusterName> {
        self.places.iter().filter(|(_, place)| place.role == Role::Decided).map(|(name, _)| name)
    }

    /// The first stage that is not done.
    pub(super) fn current_stage(&self) -> Option<Stage> {
        let is_open = |tally: &Tally| tally.absent + tally.waiting + tally.occupied() > 0;
        self.stages.iter().find(|(_, tally)| is_open(tally)).map(|(stage, _)| *stage)
    }

    /// Whether anybody is waiting, whose turn could come.
    pub(super) fn has_line(&self) -> bool {
        !self.line.is_empty() || !self.strays.is_empty()
    }

    /// The clusters that were given the goal and do not run it yet.
    pub(super) fn moving(&self) -> impl Iterator<Item = &ClusterName> {
        self.places.iter().filter(|(_, place)| matches!(place.standing, Standing::Moving { .. })).map(|(name, _)| name)
    }
}
