//! Plans the rollouts of one add-on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use drover_api::{
    addon::{ClusterManagementAddOn, ClusterManagementAddOnStatus, ManagedClusterAddOn},
    drover::{Acknowledged, AcknowledgedCluster, AddOnRollout, AddOnRolloutStatus},
    grammar::{SetFingerprint, Version, WindowSize},
    names::{AVAILABLE, INSTALLED_ANNOTATION, PAUSE_ANNOTATION, RETRY_ANNOTATION, SKIP_ANNOTATION},
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    RecordKind, RejectedRecord, progress_of, recorded_revisions,
    state::{AddOnContext, AddOnRolloutState},
    status_update::{self, StatusUpdate},
};
use crate::{
    addon::{
        configuration::{ConfigName, Problem},
        entries::{entries, listed},
        facts::AddOnFacts,
        install::{Choice, Hindrance},
        on_cluster::{ClusterPlanner, health},
        progress::{Evidence, Maker, current},
        registry,
        resolver::ConfigResolver,
    },
    condition::{Holds, holds},
    plan::{Controller, Event, ObjectKey, Plan, Write},
    presence::Source,
    revision::{
        Overrides, Set,
        markers::{Given, Proof},
    },
    rollout::{
        Course, Give, Goal, Happening, Plan as RolloutPlan, Rollout, Sets, Standing, Target, TargetError, Wish,
        member::{Member, Presence, Selection},
    },
    steering::{self, Steering},
    tracker::Observation,
};

/// The annotations that steer single clusters.
const STEERING: [&str; 3] = [PAUSE_ANNOTATION, SKIP_ANNOTATION, RETRY_ANNOTATION];

/// One add-on, with everything that its rollouts are planned from.
pub(super) struct RolloutPlanner<'a, F> {
    pub(super) facts: &'a F,
    pub(super) key: &'a ObjectKey,
    pub(super) addon: &'a ClusterManagementAddOn,
    pub(super) record: &'a AddOnRollout,
    /// The record that the server has rejected, and that is not sent for now.
    pub(super) rejected: Option<&'a RejectedRecord>,
    pub(super) now: Timestamp,
}

impl<F: AddOnFacts> RolloutPlanner<'_, F> {
    /// Brings the derived states of clusters up to date, and plans what follows from them.
    pub(super) fn plan(&self, state: &mut AddOnRolloutState) -> Plan {
        let resolver = ConfigResolver::of(self.facts, self.addon);
        let mut enqueue = self.look_at_clusters(state, &resolver);
        enqueue.extend(self.recorded_again(state));
        let acknowledged = self.acknowledge(state);
        let wishes = self.wishes(state, &resolver);
        let sets = self.sets(&wishes);
        let retried = acknowledged.as_ref().and_then(|acknowledged| acknowledged.retried.as_ref()).map(|time| time.0);
        let planned = state.tracker.index.plan(&wishes, &sets, retried, self.now);
        enqueue.extend(Self::say_otherwise(state, &planned));
        let revisions = self.revisions(&wishes);
        let update = StatusUpdate {
            planner: self,
            resolver: &resolver,
            wishes: &wishes,
            sets: &sets,
            planned: &planned,
            acknowledged,
            rollout: &state.tracker.index,
        };
        let status = update.record();
        let is_urgent = status_update::is_urgent(self.stored(), &status);
        let (told, wake) = match state.tracker.throttle.check(self.now) {
            Err(time) if !is_urgent && self.stored() != Some(&status) => (None, Some(time)),
            _ => (Some(update.addon_status()), None),
        };
        let gives = self.gives(&planned, &sets, &resolver, state);
        let mut writes = revisions;
        if told.is_some() && !self.is_record_rejected() {
            writes.extend(self.remember(status));
        }
        let events = self.events(&state.tracker.index, &planned);
        state.courses = planned.courses;
        let wake = planned.wake.into_iter().chain(wake).chain(state.tracker.wake()).min();
        let together = gives.into_iter().chain(told.and_then(|status| self.write_status(status))).collect();
        let enqueue = enqueue.iter().map(|cluster| (Controller::AddOn, self.key_on(cluster))).collect();
        Plan { ordered: writes, parallel: together, wake, events, enqueue, ..Plan::default() }
    }

    fn stored(&self) -> Option<&AddOnRolloutStatus> {
        self.record.status.as_ref()
    }

    /// The key of the add-on on a cluster.
    fn key_on(&self, cluster: &ClusterName) -> ObjectKey {
        ObjectKey::namespaced(cluster.as_str(), &self.key.name)
    }

    /// The clusters that were given a revision which is recorded again, so that they have something else to say. Seldom is a cluster
    /// given one before it is recorded, so that most of the time none has to be looked for.
    fn recorded_again(&self, state: &mut AddOnRolloutState) -> BTreeSet<ClusterName> {
        let recorded = self.stored().map(recorded_revisions).unwrap_or_default();
        let Some(before) = state.recorded.replace(recorded.clone()) else { return BTreeSet::new() };
        let is_new = |set: &SetFingerprint| recorded.contains(set) && !before.contains(set);
        if !state.tracker.index.given().any(is_new) {
            return BTreeSet::new();
        }
        let has_new = |member: &Member<Set>| {
            let given = member.addon.as_ref().and_then(|addon| addon.given.as_ref());
            given.is_some_and(|given| is_new(&given.set))
        };
        let members = state.tracker.index.members().filter(|(_, member)| has_new(member));
        members.map(|(cluster, _)| cluster.clone()).collect()
    }

    /// Brings the clusters in the book up to date: those that have changed, or all if that changed by which they are looked at. Returns
    /// those whose own controller has to look at them too.
    fn look_at_clusters(
        &self,
        state: &mut AddOnRolloutState,
        resolver: &ConfigResolver<'_, F>,
    ) -> BTreeSet<ClusterName> {
        let mut enqueue = BTreeSet::new();
        let entries = entries(self.addon, self.facts.dialect(), |placement| self.per_group(placement));
        let steering = Steering::read(self.addon.annotations(), entries.iter().map(|entry| &entry.source));
        let begins = state.tracker.context().is_none() || state.tracker.index.entries() != entries;
        if begins {
            state.restart(Rollout::new(entries));
        }
        let (templates, supported) = (resolver.templates.clone(), resolver.versions.supported.clone());
        let context = AddOnContext { templates, supported, steering };
        state.tracker.set_context(context);
        if state.tracker.next_resync().is_some_and(|time| time <= self.now) {
            enqueue.extend(Self::moving(&state.tracker.index));
        }
        self.look_at_acknowledged(state);
        let placements: Vec<_> =
            state.tracker.index.entries().iter().filter_map(|entry| entry.source.placement().cloned()).collect();
        let clusters = state.tracker.take_dirty(self.now, || self.candidates(&placements));
        for cluster in clusters {
            let on_cluster = self.on_cluster(&cluster);
            let is_steered =
                on_cluster.is_some_and(|addon| STEERING.iter().any(|key| addon.annotations().contains_key(*key)));
            let was_steered = state.acknowledged.iter().any(|entry| entry.cluster == cluster);
            if is_steered || was_steered {
                state.steered.insert(cluster.clone())
            } else {
                state.steered.remove(&cluster)
            };
            let member = self.member(&cluster, on_cluster, state, resolver);
            let decides = |state: &AddOnRolloutState| state.tracker.index.standing(&cluster).map(|(entry, _)| entry);
            let decided = decides(state);
            let was_there = state.tracker.index.member(&cluster).is_some_and(|member| member.addon.is_some());
            state.tracker.observed(&cluster, Observation { member, wake: None });
            // What its placement gives it besides the set is another's, or was not told before; and who is new says what it waits for.
            if on_cluster.is_some() && (begins || !was_there || decides(state) != decided) {
                enqueue.insert(cluster);
            }
        }
        enqueue
    }

    /// Brings up to date what was taken up of what people ask for on single clusters.
    fn look_at_acknowledged(&self, state: &mut AddOnRolloutState) {
        let acknowledged = self.stored().and_then(|status| status.acknowledged.as_ref());
        let now = acknowledged.map(|acknowledged| acknowledged.clusters.clone()).unwrap_or_default();
        if state.acknowledged == now {
            return;
        }
        let before = std::mem::replace(&mut state.acknowledged, now);
        let is_new = |one: &&AcknowledgedCluster, others: &[AcknowledgedCluster]| !others.contains(one);
        let gone = before.iter().filter(|one| is_new(one, &state.acknowledged));
        let come = state.acknowledged.iter().filter(|one| is_new(one, &before));
        let changed = gone.chain(come).map(|entry| entry.cluster.clone()).collect();
        state.tracker.mark(changed);
    }

    /// The clusters that are on their way: a report of their works may have been missed.
    fn moving(rollout: &Rollout<Set>) -> BTreeSet<ClusterName> {
        let is_moving =
            |cluster: &&ClusterName| matches!(rollout.standing(cluster), Some((_, Standing::Moving { .. })));
        rollout.members().map(|(cluster, _)| cluster).filter(is_moving).cloned().collect()
    }

    fn per_group(&self, placement: &PlacementRef) -> Option<WindowSize> {
        let placement = self.facts.placement(placement)?;
        let strategy = placement.spec.decision_strategy.as_ref()?.group_strategy.as_ref()?;
        strategy.clusters_per_decision_group.clone()
    }

    /// The clusters that the add-on may have to do with, as far as that is not known yet.
    fn candidates(&self, placements: &[PlacementRef]) -> BTreeSet<ClusterName> {
        let with_addon = self.facts.clusters_with(&self.key.name);
        let selected = placements.iter().flat_map(|placement| self.facts.selected_by(placement));
        with_addon.chain(selected).collect()
    }

    /// The add-on on a cluster. One that is on its way out is not there any more.
    fn on_cluster(&self, cluster: &ClusterName) -> Option<&ManagedClusterAddOn> {
        let key = ObjectKey::namespaced(cluster.as_str(), &self.key.name);
        self.facts.on_cluster(&key).filter(|addon| addon.metadata.deletion_timestamp.is_none())
    }

    fn member(
        &self,
        cluster: &ClusterName,
        on_cluster: Option<&ManagedClusterAddOn>,
        state: &AddOnRolloutState,
        resolver: &ConfigResolver<'_, F>,
    ) -> Option<Member<Set>> {
        let selections = self.selections(cluster, &state.tracker.index);
        if selections.is_empty() && on_cluster.is_none() {
            return None;
        }
        let nothing = BTreeMap::new();
        let annotations = on_cluster.map_or(&nothing, |addon| addon.annotations());
        let steering = state.tracker.context().map(|context| &context.steering);
        let steering =
            steering.map(|steering| steering.of_cluster(cluster, annotations, &state.acknowledged)).unwrap_or_default();
        let addon = on_cluster.map(|addon| self.presence(addon, resolver));
        Some(Member { selections, addon, is_online: self.facts.is_online(cluster), steering })
    }

    /// An add-on that is on a cluster, as a rollout sees it.
    fn presence(&self, addon: &ManagedClusterAddOn, resolver: &ConfigResolver<'_, F>) -> Presence<Set> {
        let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let own = resolver.own(addon);
        let overrides = own.as_ref().and_then(|own| own.overrides.as_ref().ok());
        let overrides = overrides.filter(|overrides| !overrides.is_empty()).cloned();
        let given = Given::read(conditions);
        let proof = Proof::read(conditions);
        Presence {
            runs: given.as_ref().and_then(|given| self.runs(&given.set, overrides.as_ref())),
            proof: proof.map(|proof| self.current(proof, given.as_ref(), overrides.as_ref(), addon, resolver)),
            given,
            overrides: overrides.map(Arc::new),
            is_at_odds: own.is_some_and(|own| own.overrides.is_err()),
            is_available: holds(conditions, AVAILABLE) == Some(Holds::Yes),
            is_hand_made: !addon.annotations().contains_key(INSTALLED_ANNOTATION),
        }
    }

    /// What a cluster is to run that was given a set.
    fn runs(&self, given: &SetFingerprint, overrides: Option<&Overrides>) -> Option<SetFingerprint> {
        let Some(overrides) = overrides else { return Some(given.clone()) };
        Some(self.stored_set(given)?.with(overrides).fingerprint())
    }

    fn stored_set(&self, name: &SetFingerprint) -> Option<Set> {
        let sets = self.stored().map(|status| status.sets.as_slice()).unwrap_or_default();
        sets.iter().find(|set| set.fingerprint == *name).map(Set::read)
    }

    /// The proof of a cluster, as its works and its add-on report now.
    fn current(
        &self,
        proof: Proof,
        given: Option<&Given>,
        overrides: Option<&Overrides>,
        addon: &ManagedClusterAddOn,
        resolver: &ConfigResolver<'_, F>,
    ) -> Proof {
        let Some(set) = given.filter(|_| proof.verdict.has_run()).and_then(|given| self.stored_set(&given.set)) else {
            return proof;
        };
        let set = overrides.map_or(set.clone(), |overrides| set.with(overrides));
        let works = self.facts.works_of(addon);
        let evidence = Evidence {
            addon,
            works: &works,
            set: &set,
            supported_versions: resolver.supported(),
            health: health(self.facts.dialect()),
            // What the works report is enough: nothing has to be rendered for it.
            maker: if set.template().is_some() { Maker::Former } else { Maker::Manager },
        };
        current(proof, &evidence, self.now)
    }

    fn selections(&self, cluster: &ClusterName, rollout: &Rollout<Set>) -> Vec<Selection> {
        let placements = rollout.entries().iter().enumerate();
        let placements = placements.filter_map(|(index, entry)| Some((index, entry.source.placement()?)));
        let selections =
            placements.filter_map(|(index, placement)| Some((index, self.facts.selection(cluster, placement)?)));
        selections.map(|(placement, group)| Selection { placement, group: group.clone() }).collect()
    }

    /// What is taken up of what people ask for.
    fn acknowledge(&self, state: &AddOnRolloutState) -> Option<Acknowledged> {
        let steered =
            state.steered.iter().filter_map(|cluster| Some((cluster, self.on_cluster(cluster)?.annotations())));
        let former = self.stored().and_then(|status| status.acknowledged.as_ref());
        steering::acknowledge(self.addon.annotations(), steered, former, self.now)
    }

    /// What is wanted of the clusters of each entry.
    fn wishes(&self, state: &AddOnRolloutState, resolver: &ConfigResolver<'_, F>) -> Vec<Wish<Set>> {
        let Some(steering) = state.tracker.context().map(|context| &context.steering) else { return Vec::new() };
        let entries = state.tracker.index.entries().iter();
        entries
            .map(|entry| {
                let configured = match &entry.strategy {
                    Ok(_) => self.configured(&entry.source, resolver),
                    Err(unreadable) => Some(Err(TargetError::Strategy(unreadable.clone()))),
                };
                let configured = configured.map(|configured| configured.and_then(|goal| self.can_be_kept(goal)));
                Wish {
                    configured,
                    is_there: entry.source.placement().is_none_or(|placement| self.is_there(placement)),
                    pause: steering.paused_by(&entry.source),
                    pin: steering.pin(&entry.source).cloned(),
                    stored: self.stored().map(|status| progress_of(status, &entry.source)).unwrap_or_default(),
                }
            })
            .collect()
    }

    fn is_there(&self, placement: &PlacementRef) -> bool {
        self.facts.has_placement(placement)
    }

    /// What is wrong with how clusters are chosen.
    pub(super) fn mistake(&self) -> Option<Hindrance> {
        self.facts.choice(self.key).and_then(Choice::mistake)
    }

    fn configured(&self, source: &Source, resolver: &ConfigResolver<'_, F>) -> Option<Target<Set>> {
        let placement = match source {
            Source::Canaries(_) => return None,
            Source::Nobody if self.mistake() == Some(Hindrance::NoPlacements) => {
                return Some(Err(TargetError::Configuration(Problem::NoPlacements)));
            }
            Source::Nobody => None,
            Source::Listed(placement) if !self.is_there(placement) => {
                return Some(Err(TargetError::Configuration(Problem::NoPlacement(placement.clone()))));
            }
            Source::Listed(placement) => listed(self.addon).iter().find(|entry| entry.placement == *placement),
        };
        let former = self.stored().and_then(|status| wanted_set(status, source));
        let configured = resolver.configured(placement, former.as_ref()).map_err(TargetError::Configuration);
        Some(configured.map(|configured| {
            let set = Arc::new(configured.set);
            Goal { fingerprint: set.fingerprint(), set }
        }))
    }

    /// What is configured, unless the server does not take what has to be written down before anybody is given it.
    fn can_be_kept(&self, goal: Goal<Set>) -> Target<Set> {
        let is_kept = match self.rejected.map(|rejected| rejected.kind) {
            None => true,
            Some(RecordKind::Rollout) => false,
            Some(RecordKind::Content) => self.facts.missing_revisions(goal.set.configs().iter()).is_empty(),
        };
        let why = || self.rejected.map(|rejected| rejected.why.clone()).unwrap_or_default();
        if is_kept { Ok(goal) } else { Err(TargetError::Configuration(Problem::NotKept(why()))) }
    }

    fn is_record_rejected(&self) -> bool {
        self.rejected.is_some_and(|rejected| rejected.kind == RecordKind::Rollout)
    }

    /// All sets that are wished for or remembered.
    fn sets(&self, wishes: &[Wish<Set>]) -> Sets<Set> {
        let mut sets = registry::stored(self.stored());
        for set in self.stored().into_iter().flat_map(|status| &status.sets) {
            if let Some(lost) = set.configs.iter().find(|config| self.facts.is_lost(config)) {
                sets.lose(set.fingerprint.clone(), ConfigName::of(lost));
            }
            if Set::read(set).template().is_some() && set.epoch != self.facts.renderer_epoch() {
                sets.outdate(set.fingerprint.clone());
            }
        }
        for goal in goals(wishes) {
            sets.insert(goal.fingerprint.clone(), Arc::clone(&goal.set));
        }
        sets
    }

    /// The clusters that say something else now, though nothing of theirs has changed.
    fn say_otherwise(state: &mut AddOnRolloutState, planned: &RolloutPlan<Set>) -> BTreeSet<ClusterName> {
        let mut enqueue = state.tracker.index.take_turned();
        for (entry, course) in planned.courses.iter().enumerate() {
            let former = state.courses.get(entry);
            // Who is asked for something that there is not says so, and who has nothing yet says what it waits for.
            if invalid_version(former) != invalid_version(Some(course)) {
                enqueue.extend(state.tracker.index.decided_by(entry).cloned());
            } else if wait_of(former) != wait_of(Some(course)) {
                enqueue.extend(state.tracker.index.newcomers(entry).cloned());
            }
        }
        enqueue
    }

    /// The contents of what is wanted, and of what is remembered, as far as they are not kept but still can be.
    fn revisions(&self, wishes: &[Wish<Set>]) -> Vec<Write> {
        if self.rejected.is_some() {
            return Vec::new();
        }
        let wanted = goals(wishes).flat_map(|goal| goal.set.configs());
        let remembered = self.stored().into_iter().flat_map(|status| &status.sets).flat_map(|set| &set.configs);
        self.facts.missing_revisions(wanted.chain(remembered))
    }

    fn remember(&self, status: AddOnRolloutStatus) -> Option<Write> {
        let mut wanted = self.record.clone();
        wanted.status = Some(status);
        Write::status(self.record, &wanted)
    }

    fn write_status(&self, status: ClusterManagementAddOnStatus) -> Option<Write> {
        let mut wanted = self.addon.clone();
        wanted.status = Some(status);
        Write::status(self.addon, &wanted)
    }

    /// Assigns revisions to the clusters whose turn it is.
    fn gives(
        &self,
        planned: &RolloutPlan<Set>,
        sets: &Sets<Set>,
        resolver: &ConfigResolver<'_, F>,
        state: &mut AddOnRolloutState,
    ) -> Vec<Write> {
        let gives = planned.gives.iter().map(|give| (give.cluster.clone(), give)).collect();
        let (turn, _) = state.tracker.pending.take(gives);
        turn.into_iter().filter_map(|(_, give)| self.give(give, sets, resolver)).collect()
    }

    fn give(&self, give: &Give, sets: &Sets<Set>, resolver: &ConfigResolver<'_, F>) -> Option<Write> {
        let on_cluster = self.on_cluster(&give.cluster)?;
        let given = Given { set: give.set.clone(), since: self.now };
        ClusterPlanner { facts: self.facts, on_cluster, resolver, now: self.now }.assign(&given, sets.get(&give.set)?)
    }

    fn events(&self, rollout: &Rollout<Set>, planned: &RolloutPlan<Set>) -> Vec<Event> {
        let happenings = planned.happenings.iter();
        happenings
            .filter_map(|(entry, happening)| {
                let source = &rollout.entries().get(*entry)?.source;
                self.event(source, planned.courses.get(*entry)?, happening)
            })
            .collect()
    }

    fn event(&self, source: &Source, course: &Course<Set>, happening: &Happening) -> Option<Event> {
        let counts = course.progress.clusters.clone().unwrap_or_default();
        let place = source.placement().map_or_else(|| "no placement".to_owned(), ToString::to_string);
        let total = counts.total;
        if total == 0 {
            return None;
        }
        let done = counts.proven + counts.overridden;
        Some(match happening {
            Happening::Started(set) => {
                Event::normal(self.addon, "RolloutStarted", format!("{set} rolls out to {total} clusters of {place}"))
            }
            Happening::GateOpened(set) => Event::normal(
                self.addon,
                "GateOpened",
                format!("the canaries are well with {set}, which rolls out to {total} clusters of {place}"),
            ),
            Happening::Returned(set) => Event::normal(
                self.addon,
                "RolloutStarted",
                format!("{set}, which is known to be good, returns to {total} clusters of {place}"),
            ),
            Happening::Finished(set) => Event::normal(
                self.addon,
                "RolloutFinished",
                format!("{set} runs on {done} of {total} clusters of {place}"),
            ),
            Happening::Halted(set) => {
                let why = course.blocker().map(|blocker| blocker.message).unwrap_or_default();
                Event::warning(
                    self.addon,
                    "RolloutHalted",
                    format!("{set} is halted with {done} of {total} clusters of {place} done: {why}"),
                )
            }
        })
    }
}

/// The version that clusters of an entry are asked for and that there is not.
fn invalid_version(course: Option<&Course<Set>>) -> Option<&Version> {
    match course?.problem.as_ref()?.configuration()? {
        Problem::UnsupportedVersion { version, .. } => Some(version),
        _ => None,
    }
}

/// What clusters of an entry say that they wait for.
fn wait_of(course: Option<&Course<Set>>) -> Option<String> {
    course?.blocker().map(|blocker| blocker.summary)
}

fn goals(wishes: &[Wish<Set>]) -> impl Iterator<Item = &Goal<Set>> {
    wishes.iter().filter_map(|wish| wish.configured.as_ref()?.as_ref().ok())
}

/// What was last wanted of the clusters of an entry.
fn wanted_set(status: &AddOnRolloutStatus, source: &Source) -> Option<Set> {
    let wanted = progress_of(status, source).wanted?;
    status.sets.iter().find(|set| set.fingerprint == wanted).map(Set::read)
}
