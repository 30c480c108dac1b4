//! The planner of rollouts: what each cluster is given now, and why the others wait.
//!
//! It is generic over the [`Revision`] that clusters are moved to. Add-ons and sets of works are
//! rolled out by it; here both are called add-ons, and what a cluster is given of them a set.
//!
//! An add-on has one [`Lane`](lane::Lane) for each placement in its list, and one for clusters that no placement selects. What has to outlive
//! the process is handed in and handed back as [`RolloutProgress`](drover_api::drover::RolloutProgress); everything else is kept by cluster, so that a change of one costs a
//! look at one. The same facts give the same plan, however they were come by.

mod course;
mod gate;
mod hold;
mod lane;
pub mod member;
pub mod precedence;
mod revision;
mod snapshot;
mod standing;
pub mod strategy;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    grammar::SetFingerprint,
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::jiff::Timestamp;

pub use self::{
    course::{Course, Give, Happening, Plan, Target, Wish},
    gate::Shut,
    hold::{Hold, PlacementBlockers, kind_of_halt, kind_of_wait},
    revision::{Revision, TargetError},
    snapshot::Snapshot,
    standing::{Goal, Standing, Step},
};
use self::{
    lane::{Lane, Role},
    member::{Group, Member},
    precedence::{ahead_of, deciding},
    snapshot::Standings,
    standing::Measure,
    strategy::{Strategy, Unreadable},
};
use crate::presence::Source;

/// The sets that somebody goes by, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Sets<R: Revision> {
    known: BTreeMap<SetFingerprint, Arc<R>>,
    /// Those that can not be given any more, each with a configuration whose content is gone.
    lost: BTreeMap<SetFingerprint, R::Part>,
    /// Those that another Drover has made, so that what this one would make of them was never tried.
    outdated: BTreeSet<SetFingerprint>,
}

impl<R: Revision> Default for Sets<R> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), lost: BTreeMap::new(), outdated: BTreeSet::new() }
    }
}

impl<R: Revision> Sets<R> {
    /// What a set consists of.
    #[must_use]
    pub fn get(&self, name: &SetFingerprint) -> Option<&Arc<R>> {
        self.known.get(name)
    }

    /// Adds a set that is known, and can be given.
    pub fn insert(&mut self, name: SetFingerprint, set: Arc<R>) {
        self.lost.remove(&name);
        self.known.insert(name, set);
    }

    /// Takes note that nobody has the content of a configuration any more that a set is made of.
    pub fn lose(&mut self, name: SetFingerprint, config: R::Part) {
        self.lost.insert(name, config);
    }

    /// Takes note that this Drover would make something else of a set than was made of it before.
    pub fn outdate(&mut self, name: SetFingerprint) {
        self.outdated.insert(name);
    }

    /// Whether this Drover would make something else of a set than was made of it before.
    #[must_use]
    pub fn is_outdated(&self, name: &SetFingerprint) -> bool {
        self.outdated.contains(name)
    }

    /// Whether a set is known, and nothing of it is gone.
    #[must_use]
    pub fn can_be_given(&self, name: &SetFingerprint) -> bool {
        self.known.contains_key(name) && !self.lost.contains_key(name)
    }

    /// The configuration whose content is gone, if a set can not be given for that.
    #[must_use]
    pub fn lost(&self, name: &SetFingerprint) -> Option<&R::Part> {
        self.lost.get(name)
    }

    /// All that are known.
    pub fn iter(&self) -> impl Iterator<Item = (&SetFingerprint, &Arc<R>)> {
        self.known.iter()
    }
}

impl<R: Revision> FromIterator<(SetFingerprint, Arc<R>)> for Sets<R> {
    fn from_iter<I: IntoIterator<Item = (SetFingerprint, Arc<R>)>>(sets: I) -> Self {
        Self { known: sets.into_iter().collect(), ..Self::default() }
    }
}

/// One way in which clusters get an add-on.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Who selects the clusters.
    pub source: Source,
    /// How changes reach them.
    pub strategy: Result<Strategy, Unreadable>,
}

/// The rollouts of one add-on, with all its clusters.
#[derive(Clone, Debug)]
pub struct Rollout<R: Revision> {
    entries: Vec<Entry>,
    /// Whom each entry waits for.
    canaries: Vec<Option<usize>>,
    lanes: Vec<Lane<R>>,
    members: BTreeMap<ClusterName, Member<R>>,
    /// How each cluster stands where it is decided on.
    standings: Standings,
    /// The clusters that each entry selects.
    selected: Vec<BTreeSet<ClusterName>>,
    /// How many clusters were given each set.
    given: BTreeMap<SetFingerprint, usize>,
    /// On how many clusters the add-on is available.
    available: usize,
    /// Clusters that have failed, or have not after all, since somebody last asked.
    turned: BTreeSet<ClusterName>,
    /// Whether every entry was complete when this was last planned.
    is_settled: bool,
    /// The time by which clusters were last judged.
    now: Timestamp,
}

impl<R: Revision> Rollout<R> {
    /// The rollouts of an add-on without clusters.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        let canaries = entries.iter().map(|entry| canary_of(entry, &entries)).collect();
        let lanes = entries.iter().map(|entry| Lane::new(entry.strategy.clone().unwrap_or_default())).collect();
        let selected = vec![BTreeSet::new(); entries.len()];
        Self {
            entries,
            canaries,
            lanes,
            members: BTreeMap::new(),
            standings: Standings::default(),
            selected,
            given: BTreeMap::new(),
            available: 0,
            turned: BTreeSet::new(),
            is_settled: true,
            now: Timestamp::MIN,
        }
    }

    /// The ways in which clusters get the add-on.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Takes note of a cluster as it is now, or that the add-on has nothing to do with it any more.
    pub fn update(&mut self, name: &ClusterName, member: Option<Member<R>>) {
        if self.members.get(name) == member.as_ref() {
            return;
        }
        let former = self.members.remove(name);
        let lanes: BTreeSet<_> = former.iter().chain(&member).flat_map(|member| self.lanes_of(member)).collect();
        if let Some(former) = former {
            self.count(name, &former, false);
        }
        if let Some(member) = member {
            self.count(name, &member, true);
            self.members.insert(name.clone(), member);
        }
        for lane in lanes {
            self.judge(lane, name);
        }
        // No lane judges a cluster that nothing decides for any more.
        self.note_standing(name);
    }

    /// Keeps the standing of a cluster in step with the lane that decides for it.
    fn note_standing(&mut self, name: &ClusterName) {
        let lane = self.members.get(name).and_then(|member| self.decides(member));
        let standing: Option<(usize, Standing)> =
            lane.zip(lane.and_then(|lane| self.lanes[lane].standing(name).cloned()));
        if self.standings.get(name) == standing.as_ref() {
            return;
        }
        match standing {
            Some(standing) => self.standings.insert_mut(name.clone(), standing),
            None => drop(self.standings.remove_mut(name)),
        }
    }

    /// What other controllers read of the rollouts, which do this now.
    #[must_use]
    pub fn snapshot(&self, courses: &[Course<R>]) -> Snapshot<R> {
        Snapshot::new(&self.entries, courses, &self.standings)
    }

    /// Who stands where, by name.
    #[must_use]
    pub fn member(&self, name: &ClusterName) -> Option<&Member<R>> {
        self.members.get(name)
    }

    /// All clusters that the add-on has to do with.
    pub fn members(&self) -> impl Iterator<Item = (&ClusterName, &Member<R>)> {
        self.members.iter()
    }

    /// The sets that clusters were given.
    pub fn given(&self) -> impl Iterator<Item = &SetFingerprint> {
        self.given.keys()
    }

    /// On how many clusters the add-on is available.
    #[must_use]
    pub fn available(&self) -> usize {
        self.available
    }

    /// Whether nothing was under way when this was last planned.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// The clusters that have failed, or have not after all, since this was last asked. Time alone can do that.
    pub fn take_turned(&mut self) -> BTreeSet<ClusterName> {
        std::mem::take(&mut self.turned)
    }

    /// Which entry decides for a cluster, and how it stands there.
    #[must_use]
    pub fn standing(&self, name: &ClusterName) -> Option<(usize, &Standing)> {
        self.standings.get(name).map(|(lane, standing)| (*lane, standing))
    }

    /// The clusters that an entry decides for.
    pub fn decided_by(&self, entry: usize) -> impl Iterator<Item = &ClusterName> {
        self.lanes[entry].decided_clusters()
    }

    /// The clusters of an entry that have nothing yet.
    pub fn newcomers(&self, entry: usize) -> impl Iterator<Item = &ClusterName> {
        self.lanes[entry].waiting_newcomers()
    }

    fn count(&mut self, name: &ClusterName, member: &Member<R>, is_there: bool) {
        for selection in &member.selections {
            if let Some(selected) = self.selected.get_mut(selection.placement) {
                if is_there {
                    selected.insert(name.clone())
                } else {
                    selected.remove(name)
                };
            }
        }
        let Some(addon) = &member.addon else { return };
        if addon.is_available {
            self.available = if is_there { self.available + 1 } else { self.available - 1 };
        }
        if let Some(given) = &addon.given {
            let count = self.given.entry(given.set.clone()).or_default();
            *count = if is_there { *count + 1 } else { *count - 1 };
            if *count == 0 {
                self.given.remove(&given.set);
            }
        }
    }

    /// Who decides for a cluster, of the placements in the list that select it.
    fn decides(&self, member: &Member<R>) -> Option<usize> {
        let listed = member.selections.iter().map(|selection| selection.placement);
        let listed =
            listed.filter(|index| matches!(self.entries.get(*index), Some(Entry { source: Source::Listed(_), .. })));
        deciding(&self.canaries, listed).or_else(|| self.decided_by_nobody(member))
    }

    /// The entry of those whom no placement selects. An add-on that the hub made for a placement which selects its cluster no
    /// longer, or not at the moment, stays as it is.
    fn decided_by_nobody(&self, member: &Member<R>) -> Option<usize> {
        let has_list = self.entries.iter().any(|entry| matches!(entry.source, Source::Listed(_)));
        let is_own = member.addon.as_ref().is_some_and(|addon| addon.is_hand_made);
        let entry = self.entries.iter().position(|entry| entry.source == Source::Nobody)?;
        (member.addon.is_some() && (is_own || !has_list)).then_some(entry)
    }

    /// The lanes that a cluster counts in.
    fn lanes_of(&self, member: &Member<R>) -> Vec<usize> {
        let Some(decides) = self.decides(member) else { return Vec::new() };
        let behind = member.selections.iter().map(|selection| selection.placement);
        let behind =
            behind.filter(|index| *index != decides && ahead_of(&self.canaries, *index).any(|ahead| ahead == decides));
        std::iter::once(decides).chain(behind).collect()
    }

    /// Has a lane look at a cluster again.
    fn judge(&mut self, lane: usize, name: &ClusterName) {
        let member = self.members.get(name);
        let counted = member.filter(|member| self.lanes_of(member).contains(&lane));
        let place = counted.map(|member| {
            let role = if self.decides(member) == Some(lane) { Role::Decided } else { Role::Canary };
            (member, role, group_in(member, lane))
        });
        let has_failed = |lane: &Lane<R>| matches!(lane.standing(name), Some(Standing::Failed(_)));
        let had_failed = has_failed(&self.lanes[lane]);
        self.lanes[lane].update(name, place.as_ref().map(|(member, role, group)| (*member, *role, group)), self.now);
        if has_failed(&self.lanes[lane]) != had_failed {
            self.turned.insert(name.clone());
        }
        self.note_standing(name);
    }

    /// Has a lane look at all its clusters again, if they are measured by something else now.
    fn measure(&mut self, lane: usize, measure: Measure<R>) {
        if self.lanes[lane].measure == measure {
            return;
        }
        self.lanes[lane].measure = measure;
        self.judge_all(lane);
    }

    fn judge_all(&mut self, lane: usize) {
        let clusters: Vec<_> = self.lanes[lane].clusters().cloned().collect();
        for name in clusters {
            self.judge(lane, &name);
        }
    }

    /// It is that late now.
    fn turn_to(&mut self, now: Timestamp) {
        let is_earlier = now < self.now;
        self.now = now;
        for lane in 0..self.lanes.len() {
            if is_earlier {
                self.judge_all(lane);
            }
            for name in self.lanes[lane].due(now) {
                self.judge(lane, &name);
            }
        }
    }
}

fn group_in<R: Revision>(member: &Member<R>, lane: usize) -> Group {
    let selection = member.selections.iter().find(|selection| selection.placement == lane);
    selection.map(|selection| selection.group.clone()).unwrap_or_default()
}

/// The entry of the canaries that another waits for.
fn canary_of(entry: &Entry, entries: &[Entry]) -> Option<usize> {
    let canary = entry.strategy.as_ref().ok()?.canary.as_ref()?;
    entries.iter().position(|entry| entry.source.placement() == Some(canary))
}

/// The placements that wait for each other, if an entry is one of them.
fn cycle(index: usize, entries: &[Entry], canaries: &[Option<usize>]) -> Option<Vec<PlacementRef>> {
    let mut chain = vec![index];
    let mut current = index;
    while let Some(next) = canaries[current] {
        if let Some(start) = chain.iter().position(|seen| *seen == next) {
            return Some(
                chain[start..].iter().filter_map(|index| entries[*index].source.placement().cloned()).collect(),
            );
        }
        chain.push(next);
        current = next;
    }
    None
}
