//! One add-on, with everything that its rollouts are decided by.

use std::{collections::BTreeSet, sync::Arc};

use drover_api::{
    addon::{ClusterManagementAddOn, ManagedClusterAddOn},
    drover::{Acknowledged, AcknowledgedCluster, AddOnRollout, AddOnRolloutStatus, RolloutProgress},
    grammar::{SetFingerprint, Version, WindowSize},
    names::{AVAILABLE, INSTALLED_ANNOTATION, PAUSE_ANNOTATION, RETRY_ANNOTATION, SKIP_ANNOTATION},
    reference::{ClusterName, PlacementRef},
};
use drover_engine::{
    addon::{
        configuration::{ConfigName, Problem},
        entries::{entries, listed},
        install::{Choice, Hindrance},
        progress::{Evidence, Maker, current},
        registry,
    },
    condition::{Holds, holds},
    plan::{Controller, Event, Plan, Write},
    presence::Source,
    revision::{
        Overrides, Set,
        markers::{Given, Proof},
    },
    rollout::{
        Course, Give, Goal, Happening, Hold, Plan as Planned, Rollout, Sets, Standing, Target, TargetError, Wish,
        member::{Member, Presence, Selection},
    },
    steering::{self, Steering},
    tracker::{BATCH, Observation},
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::{
    record::{self, Summary},
    refusal::{Matter, Refusal},
};
use crate::{
    addon::{
        book::{Context, Pages},
        inventory::placement_key,
        progress::{self, Subject},
        shelf::Shelf,
    },
    cache::Cache,
    config,
};

/// The annotations by which people steer single clusters.
const STEERING: [&str; 3] = [PAUSE_ANNOTATION, SKIP_ANNOTATION, RETRY_ANNOTATION];

/// One add-on, with everything that its rollouts are decided by.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) cache: &'a Cache,
    pub(super) key: &'a ObjectKey,
    pub(super) addon: &'a ClusterManagementAddOn,
    pub(super) record: &'a AddOnRollout,
    /// What the server did not take, and is not tried for now.
    pub(super) refusal: Option<&'a Refusal>,
    pub(super) now: Timestamp,
}

impl Case<'_> {
    /// Brings the book up to date, and does what follows from it.
    pub(super) fn follow(&self, pages: &mut Pages) -> Plan {
        let shelf = Shelf::of(self.cache, self.addon);
        let mut enqueue = self.look_at_clusters(pages, &shelf);
        enqueue.extend(self.recorded_again(pages));
        let acknowledged = self.acknowledge(pages);
        let wishes = self.wishes(pages, &shelf);
        let sets = self.sets(&wishes);
        let retried = acknowledged.as_ref().and_then(|acknowledged| acknowledged.retried.as_ref()).map(|time| time.0);
        let planned = pages.tracker.index.plan(&wishes, &sets, retried, self.now);
        enqueue.extend(Self::say_otherwise(pages, &planned));
        let revisions = self.revisions(&wishes);
        let summary = Summary {
            case: self,
            shelf: &shelf,
            wishes: &wishes,
            sets: &sets,
            planned: &planned,
            acknowledged,
            rollout: &pages.tracker.index,
        };
        let status = summary.status();
        let is_urgent = record::is_urgent(self.stored(), &status);
        let (told, wake) = match pages.tracker.throttle.check(self.now) {
            Err(time) if !is_urgent && self.stored() != Some(&status) => (None, Some(time)),
            _ => (Some(summary.addon_status()), None),
        };
        let gives = self.gives(&planned, &sets, &shelf);
        let mut writes = revisions;
        if told.is_some() && !self.is_refused(Matter::Record) {
            writes.extend(self.remember(status));
        }
        let events = self.events(&pages.tracker.index, &planned);
        pages.courses = planned.courses;
        let wake = planned.wake.into_iter().chain(wake).chain(pages.tracker.wake()).min();
        let together = gives.into_iter().chain(told.and_then(|status| self.tell(status))).collect();
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
    fn recorded_again(&self, pages: &mut Pages) -> BTreeSet<ClusterName> {
        let recorded = self.stored().map(recorded).unwrap_or_default();
        let Some(before) = pages.recorded.replace(recorded.clone()) else { return BTreeSet::new() };
        let is_new = |set: &SetFingerprint| recorded.contains(set) && !before.contains(set);
        if !pages.tracker.index.given().any(is_new) {
            return BTreeSet::new();
        }
        let has_new = |member: &Member<Set>| {
            let given = member.addon.as_ref().and_then(|addon| addon.given.as_ref());
            given.is_some_and(|given| is_new(&given.set))
        };
        let members = pages.tracker.index.members().filter(|(_, member)| has_new(member));
        members.map(|(cluster, _)| cluster.clone()).collect()
    }

    /// Brings the clusters in the book up to date: those that have changed, or all if that changed by which they are looked at. Returns
    /// those whose own controller has to look at them too.
    fn look_at_clusters(&self, pages: &mut Pages, shelf: &Shelf) -> BTreeSet<ClusterName> {
        let mut enqueue = BTreeSet::new();
        let entries = entries(self.addon, self.cache.dialect, |placement| self.per_group(placement));
        let steering = Steering::read(self.addon.annotations(), entries.iter().map(|entry| &entry.source));
        let begins = pages.tracker.context().is_none() || pages.tracker.index.entries() != entries;
        if begins {
            pages.begin(Rollout::new(entries));
        }
        let (templates, supported) = (shelf.templates.clone(), shelf.versions.supported.clone());
        let context = Context { templates, supported, steering };
        pages.tracker.set_context(context);
        if pages.tracker.next_resync().is_some_and(|time| time <= self.now) {
            enqueue.extend(self.moving(&pages.tracker.index));
        }
        self.look_at_acknowledged(pages);
        let placements: Vec<_> =
            pages.tracker.index.entries().iter().filter_map(|entry| entry.source.placement().cloned()).collect();
        let clusters = pages.tracker.take_dirty(self.now, || self.candidates(&placements));
        for cluster in clusters {
            let on_cluster = self.on_cluster(&cluster);
            let is_steered =
                on_cluster.is_some_and(|addon| STEERING.iter().any(|key| addon.annotations().contains_key(*key)));
            let was_steered = pages.acknowledged.iter().any(|entry| entry.cluster == cluster);
            if is_steered || was_steered {
                pages.steered.insert(cluster.clone())
            } else {
                pages.steered.remove(&cluster)
            };
            let member = self.member(&cluster, on_cluster, pages, shelf);
            let decides = |pages: &Pages| pages.tracker.index.standing(&cluster).map(|(entry, _)| entry);
            let decided = decides(pages);
            let was_there = pages.tracker.index.member(&cluster).is_some_and(|member| member.addon.is_some());
            pages.tracker.observed(&cluster, Observation { member, wake: None });
            // What its placement gives it besides the set is another's, or was not told before; and who is new says what it waits for.
            if on_cluster.is_some() && (begins || !was_there || decides(pages) != decided) {
                enqueue.insert(cluster);
            }
        }
        enqueue
    }

    /// Brings up to date what was taken up of what people ask for on single clusters.
    fn look_at_acknowledged(&self, pages: &mut Pages) {
        let acknowledged = self.stored().and_then(|status| status.acknowledged.as_ref());
        let now = acknowledged.map(|acknowledged| acknowledged.clusters.clone()).unwrap_or_default();
        if pages.acknowledged == now {
            return;
        }
        let before = std::mem::replace(&mut pages.acknowledged, now);
        let is_new = |one: &&AcknowledgedCluster, others: &[AcknowledgedCluster]| !others.contains(one);
        let gone = before.iter().filter(|one| is_new(one, &pages.acknowledged));
        let come = pages.acknowledged.iter().filter(|one| is_new(one, &before));
        let changed = gone.chain(come).map(|entry| entry.cluster.clone()).collect();
        pages.tracker.mark(changed);
    }

    /// The clusters that are on their way: a report of their works may have been missed.
    fn moving(&self, rollout: &Rollout<Set>) -> BTreeSet<ClusterName> {
        let is_moving =
            |cluster: &&ClusterName| matches!(rollout.standing(cluster), Some((_, Standing::Moving { .. })));
        rollout.members().map(|(cluster, _)| cluster).filter(is_moving).cloned().collect()
    }

    fn per_group(&self, placement: &PlacementRef) -> Option<WindowSize> {
        let placement = self.cache.placements.get(&placement_key(placement))?;
        let strategy = placement.spec.decision_strategy.as_ref()?.group_strategy.as_ref()?;
        strategy.clusters_per_decision_group.clone()
    }

    /// The clusters that the add-on may have to do with, as far as that is not known yet.
    fn candidates(&self, placements: &[PlacementRef]) -> BTreeSet<ClusterName> {
        let with_addon =
            self.cache.addons.on_clusters(&self.key.name).map(|on_cluster| ClusterName::from(&*on_cluster.namespace));
        let selected = placements.iter().flat_map(|placement| self.cache.selected_by(&placement_key(placement)));
        with_addon.chain(selected).collect()
    }

    /// The add-on on a cluster. One that is on its way out is not there any more.
    fn on_cluster(&self, cluster: &ClusterName) -> Option<&ManagedClusterAddOn> {
        let key = ObjectKey::namespaced(cluster.as_str(), &self.key.name);
        let addon = self.cache.addons.mcas.get(&key)?;
        addon.metadata.deletion_timestamp.is_none().then_some(&**addon)
    }

    fn member(
        &self,
        cluster: &ClusterName,
        on_cluster: Option<&ManagedClusterAddOn>,
        pages: &Pages,
        shelf: &Shelf,
    ) -> Option<Member<Set>> {
        let selections = self.selections(cluster, &pages.tracker.index);
        if selections.is_empty() && on_cluster.is_none() {
            return None;
        }
        let nothing = std::collections::BTreeMap::new();
        let annotations = on_cluster.map_or(&nothing, |addon| addon.annotations());
        let steering = pages.tracker.context().map(|context| &context.steering);
        let steering =
            steering.map(|steering| steering.of_cluster(cluster, annotations, &pages.acknowledged)).unwrap_or_default();
        let addon = on_cluster.map(|addon| self.presence(addon, shelf));
        Some(Member { selections, addon, is_online: self.cache.is_online(cluster), steering })
    }

    /// An add-on that is on a cluster, as a rollout sees it.
    fn presence(&self, addon: &ManagedClusterAddOn, shelf: &Shelf) -> Presence<Set> {
        let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let own = shelf.own(addon);
        let overrides = own.as_ref().and_then(|own| own.overrides.as_ref().ok());
        let overrides = overrides.filter(|overrides| !overrides.is_empty()).cloned();
        let given = Given::read(conditions);
        let proof = Proof::read(conditions);
        Presence {
            runs: given.as_ref().and_then(|given| self.runs(&given.set, overrides.as_ref())),
            proof: proof.map(|proof| self.current(proof, given.as_ref(), overrides.as_ref(), addon, shelf)),
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
        shelf: &Shelf,
    ) -> Proof {
        let Some(set) = given.filter(|_| proof.verdict.has_run()).and_then(|given| self.stored_set(&given.set)) else {
            return proof;
        };
        let set = overrides.map_or(set.clone(), |overrides| set.with(overrides));
        let works = self.cache.addons.works_of(addon);
        let evidence = Evidence {
            addon,
            works: &works,
            set: &set,
            supported_versions: shelf.supported(),
            health: progress::health(self.cache),
            // What the works report is enough: nothing has to be rendered for it.
            maker: if set.template().is_some() { Maker::Former } else { Maker::Manager },
        };
        current(proof, &evidence, self.now)
    }

    fn selections(&self, cluster: &ClusterName, rollout: &Rollout<Set>) -> Vec<Selection> {
        let Some(by) = self.cache.selections.get(cluster) else { return Vec::new() };
        let placements = rollout.entries().iter().enumerate();
        let placements = placements.filter_map(|(index, entry)| Some((index, entry.source.placement()?)));
        let selections = placements.filter_map(|(index, placement)| Some((index, by.get(&placement_key(placement))?)));
        selections.map(|(placement, chosen)| Selection { placement, group: chosen.group.clone() }).collect()
    }

    /// What is taken up of what people ask for.
    fn acknowledge(&self, pages: &Pages) -> Option<Acknowledged> {
        let steered =
            pages.steered.iter().filter_map(|cluster| Some((cluster, self.on_cluster(cluster)?.annotations())));
        let former = self.stored().and_then(|status| status.acknowledged.as_ref());
        steering::acknowledge(self.addon.annotations(), steered, former, self.now)
    }

    /// What is wanted of the clusters of each entry.
    fn wishes(&self, pages: &Pages, shelf: &Shelf) -> Vec<Wish<Set>> {
        let Some(steering) = pages.tracker.context().map(|context| &context.steering) else { return Vec::new() };
        let entries = pages.tracker.index.entries().iter();
        entries
            .map(|entry| {
                let configured = match &entry.strategy {
                    Ok(_) => self.configured(&entry.source, shelf),
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
        self.cache.placements.has(&placement_key(placement))
    }

    /// What is wrong with how clusters are chosen.
    pub(super) fn mistake(&self) -> Option<Hindrance> {
        self.cache.addons.choice(self.key).and_then(Choice::mistake)
    }

    fn configured(&self, source: &Source, shelf: &Shelf) -> Option<Target<Set>> {
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
        let configured = shelf.configured(placement, former.as_ref()).map_err(TargetError::Configuration);
        Some(configured.map(|configured| {
            let set = Arc::new(configured.set);
            Goal { fingerprint: set.fingerprint(), set }
        }))
    }

    /// What is configured, unless the server does not take what has to be written down before anybody is given it.
    fn can_be_kept(&self, goal: Goal<Set>) -> Target<Set> {
        let is_kept = match self.refusal.map(|refusal| refusal.matter) {
            None => true,
            Some(Matter::Record) => false,
            Some(Matter::Content) => config::missing(self.cache, goal.set.configs()).is_empty(),
        };
        let why = || self.refusal.map(|refusal| refusal.why.clone()).unwrap_or_default();
        if is_kept { Ok(goal) } else { Err(TargetError::Configuration(Problem::NotKept(why()))) }
    }

    fn is_refused(&self, matter: Matter) -> bool {
        self.refusal.is_some_and(|refusal| refusal.matter == matter)
    }

    /// All sets that are wished for or remembered.
    fn sets(&self, wishes: &[Wish<Set>]) -> Sets<Set> {
        let mut sets = registry::stored(self.stored());
        for set in self.stored().into_iter().flat_map(|status| &status.sets) {
            if let Some(lost) = set.configs.iter().find(|config| self.cache.configs.is_lost(config)) {
                sets.lose(set.fingerprint.clone(), ConfigName::of(lost));
            }
            if Set::read(set).template().is_some() && set.epoch != self.cache.epoch {
                sets.outdate(set.fingerprint.clone());
            }
        }
        for goal in goals(wishes) {
            sets.insert(goal.fingerprint.clone(), Arc::clone(&goal.set));
        }
        sets
    }

    /// The clusters that say something else now, though nothing of theirs has changed.
    fn say_otherwise(pages: &mut Pages, planned: &Planned<Set>) -> BTreeSet<ClusterName> {
        let mut enqueue = pages.tracker.index.take_turned();
        for (entry, course) in planned.courses.iter().enumerate() {
            let former = pages.courses.get(entry);
            // Who is asked for something that there is not says so, and who has nothing yet says what it waits for.
            if invalid_version(former) != invalid_version(Some(course)) {
                enqueue.extend(pages.tracker.index.decided_by(entry).cloned());
            } else if wait_of(former) != wait_of(Some(course)) {
                enqueue.extend(pages.tracker.index.newcomers(entry).cloned());
            }
        }
        enqueue
    }

    /// The contents of what is wanted, and of what is remembered, as far as they are not kept but still can be.
    fn revisions(&self, wishes: &[Wish<Set>]) -> Vec<Write> {
        if self.refusal.is_some() {
            return Vec::new();
        }
        let wanted = goals(wishes).flat_map(|goal| goal.set.configs());
        let remembered = self.stored().into_iter().flat_map(|status| &status.sets).flat_map(|set| &set.configs);
        config::missing(self.cache, wanted.chain(remembered))
    }

    fn remember(&self, status: AddOnRolloutStatus) -> Option<Write> {
        let mut wanted = self.record.clone();
        wanted.status = Some(status);
        Write::status(self.record, &wanted)
    }

    fn tell(&self, status: drover_api::addon::ClusterManagementAddOnStatus) -> Option<Write> {
        let mut wanted = self.addon.clone();
        wanted.status = Some(status);
        Write::status(self.addon, &wanted)
    }

    /// What clusters are given now.
    fn gives(&self, planned: &Planned<Set>, sets: &Sets<Set>, shelf: &Shelf) -> Vec<Write> {
        planned.gives.iter().take(BATCH).filter_map(|give| self.give(give, sets, shelf)).collect()
    }

    fn give(&self, give: &Give, sets: &Sets<Set>, shelf: &Shelf) -> Option<Write> {
        let on_cluster = self.on_cluster(&give.cluster)?;
        let subject = Subject { cache: self.cache, on_cluster, shelf, now: self.now };
        let given = Given { set: give.set.clone(), since: self.now };
        progress::given(&subject, &given, sets.get(&give.set)?)
    }

    fn events(&self, rollout: &Rollout<Set>, planned: &Planned<Set>) -> Vec<Event> {
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
                let why = course.hold.as_ref().map(Hold::to_string).unwrap_or_default();
                Event::warning(
                    self.addon,
                    "RolloutHalted",
                    format!("{set} is halted with {done} of {total} clusters of {place} done: {why}"),
                )
            }
        })
    }
}

/// The revisions that are recorded.
pub(super) fn recorded(status: &AddOnRolloutStatus) -> BTreeSet<SetFingerprint> {
    status.sets.iter().map(|set| set.fingerprint.clone()).collect()
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
    course?.hold.as_ref().map(Hold::in_short)
}

fn goals(wishes: &[Wish<Set>]) -> impl Iterator<Item = &Goal<Set>> {
    wishes.iter().filter_map(|wish| wish.configured.as_ref()?.as_ref().ok())
}

/// What was last wanted of the clusters of an entry.
fn wanted_set(status: &AddOnRolloutStatus, source: &Source) -> Option<Set> {
    let wanted = progress_of(status, source).wanted?;
    status.sets.iter().find(|set| set.fingerprint == wanted).map(Set::read)
}

/// What is remembered of an entry.
fn progress_of(status: &AddOnRolloutStatus, source: &Source) -> RolloutProgress {
    match source {
        Source::Nobody => status.defaults.clone(),
        Source::Listed(placement) | Source::Canaries(placement) => {
            let found = status.placements.iter().find(|known| known.placement == *placement);
            found.map(|known| known.progress.clone())
        }
    }
    .unwrap_or_default()
}
