//! What is recorded of an add-on's rollouts, and reported on the add-on.

use std::{collections::BTreeSet, sync::Arc};

use drover_api::{
    addon::ClusterManagementAddOnStatus,
    drover::{Acknowledged, AddOnRolloutStatus, PlacementRolloutStatus, RolloutCounts, RolloutProgress, RolloutState},
    grammar::SetFingerprint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{notes, planner::RolloutPlanner};
use crate::{
    addon::{
        configuration::{Problem, asks_by_hub_config},
        entries::listed,
        facts::AddOnFacts,
        published::{self, Clusters, Overview, PlacementProgress},
        registry,
        resolver::ConfigResolver,
        words::{Counts, Progress, Vocabulary},
    },
    condition::{self, Holds, Says},
    presence::Source,
    revision::Set,
    rollout::{Course, Plan, Rollout, Sets, TargetError, Wish},
    steering::Steering,
};

/// How many rollouts that have ended are remembered.
const HISTORY: usize = 20;

/// The condition that says whether all that an add-on asks for can be done.
const ACCEPTED: &str = "Accepted";

/// What is recorded of an add-on's rollouts, and reported on the add-on.
pub(super) struct StatusUpdate<'a, F> {
    pub(super) planner: &'a RolloutPlanner<'a, F>,
    pub(super) resolver: &'a ConfigResolver<'a, F>,
    pub(super) wishes: &'a [Wish<Set>],
    pub(super) sets: &'a Sets<Set>,
    pub(super) planned: &'a Plan<Set>,
    pub(super) acknowledged: Option<Acknowledged>,
    pub(super) rollout: &'a Rollout<Set>,
}

impl<F: AddOnFacts> StatusUpdate<'_, F> {
    /// The status of the record.
    pub(super) fn record(&self) -> AddOnRolloutStatus {
        let former = self.planner.record.status.clone().unwrap_or_default();
        let courses = || self.rollout.entries().iter().zip(&self.planned.courses);
        let placements = courses().filter_map(|(entry, course)| match &entry.source {
            Source::Listed(placement) => {
                Some(PlacementRolloutStatus { placement: placement.clone(), progress: course.progress.clone() })
            }
            _ => None,
        });
        let nobody = courses().find(|(entry, _)| entry.source == Source::Nobody).map(|(_, course)| course);
        let defaults = nobody.filter(|course| total(course) > 0).map(|course| course.progress.clone());
        let needed = self.needed();
        let history = self.planned.ended.iter().rev().cloned().chain(former.history.iter().cloned()).take(HISTORY);
        let totals = self.totals();
        AddOnRolloutStatus {
            state: Some(self.state()),
            progress: Some(format!("{}/{}", totals.proven + totals.overridden, totals.total)),
            failed: Some(totals.failed),
            message: notes::written(self.courses()),
            observed_generation: self.planner.addon.metadata.generation,
            sets: registry::keep(&former.sets, self.sets, &needed, self.planner.now),
            defaults,
            placements: placements.collect(),
            acknowledged: self.acknowledged.clone(),
            history: history.collect(),
            conditions: self.conditions(former.conditions.clone()),
        }
    }

    /// The sets that somebody goes by.
    fn needed(&self) -> BTreeSet<SetFingerprint> {
        let courses = self.planned.courses.iter().flat_map(|course| registry::needed(&course.progress));
        courses.chain(self.rollout.given().cloned()).collect()
    }

    /// All clusters, each counted where it is decided on.
    fn totals(&self) -> RolloutCounts {
        let counts = self.planned.courses.iter().map(|course| &course.decided);
        counts.fold(RolloutCounts::default(), |sum, counts| RolloutCounts {
            total: sum.total + counts.total,
            waiting: sum.waiting + counts.waiting,
            given: sum.given + counts.given,
            proven: sum.proven + counts.proven,
            failed: sum.failed + counts.failed,
            offline: sum.offline + counts.offline,
            skipped: sum.skipped + counts.skipped,
            paused: sum.paused + counts.paused,
            overridden: sum.overridden + counts.overridden,
        })
    }

    /// What the add-on's rollouts are doing, the most alarming first.
    fn state(&self) -> RolloutState {
        let order = [
            RolloutState::Blocked,
            RolloutState::Halted,
            RolloutState::Paused,
            RolloutState::RollingOut,
            RolloutState::WaitingForCanary,
        ];
        let states: Vec<_> = self.courses().filter_map(|(_, course)| course.progress.state).collect();
        order.into_iter().find(|state| states.contains(state)).unwrap_or(RolloutState::Complete)
    }

    /// The courses of entries that give clusters something.
    fn courses(&self) -> impl Iterator<Item = (&Source, &Course<Set>)> {
        let entries = self.rollout.entries().iter().zip(&self.planned.courses);
        let entries = entries.filter(|(entry, course)| match entry.source {
            Source::Listed(_) => true,
            Source::Canaries(_) => false,
            Source::Nobody => total(course) > 0,
        });
        entries.map(|(entry, course)| (&entry.source, course))
    }

    fn conditions(&self, former: Vec<Condition>) -> Vec<Condition> {
        let problems: Vec<_> = self.complaints();
        let (holds, reason, message) = if problems.is_empty() {
            (Holds::Yes, "Accepted", String::new())
        } else {
            (Holds::No, "Refused", problems.join("; "))
        };
        let generation = self.planner.addon.metadata.generation;
        let says = Says { type_: ACCEPTED, holds, reason, message: &message, generation };
        condition::with(former, says, self.planner.now)
    }

    /// What can not be done of what is asked for.
    fn complaints(&self) -> Vec<String> {
        let steering =
            Steering::read(self.planner.addon.annotations(), self.rollout.entries().iter().map(|entry| &entry.source));
        let problems = self.courses().filter_map(|(_, course)| course.problem.as_ref()).map(ToString::to_string);
        let choice = self.planner.mistake().map(|mistake| mistake.to_string());
        let all: BTreeSet<_> = steering.complaints.into_iter().chain(problems).chain(choice).collect();
        all.into_iter().collect()
    }

    /// The status of the add-on itself.
    pub(super) fn addon_status(&self) -> ClusterManagementAddOnStatus {
        let set = |name: &Option<SetFingerprint>| name.as_ref().and_then(|name| self.sets.get(name)).map(|set| &**set);
        let notes: Vec<_> = self.courses().map(|(_, course)| notes::note(course)).collect();
        let desired: Vec<_> = self.courses().map(|(source, _)| self.desired(source)).collect();
        let placements: Vec<_> = self
            .courses()
            .zip(&notes)
            .zip(&desired)
            .filter_map(|(((source, course), note), desired)| {
                Some(PlacementProgress {
                    placement: source.placement()?,
                    desired: desired.as_deref(),
                    last_known_good: set(&course.progress.last_known_good),
                    last_applied: set(&course.progress.last_applied),
                    progress: self.progress(course),
                    counts: counts(course),
                    note: note.as_deref(),
                })
            })
            .collect();
        let totals = self.totals();
        let nobody = self.courses().find(|(source, _)| **source == Source::Nobody);
        let clusters = Clusters {
            total: to_size(totals.total),
            given: to_size(totals.given + totals.proven + totals.failed + totals.overridden),
            available: self.rollout.available(),
            others: nobody.map(|(_, course)| self.progress(course)),
        };
        let overview = Overview {
            stored: self.planner.addon.status.as_ref(),
            generation: self.planner.addon.metadata.generation,
            vocabulary: self.vocabulary(),
            defaults: &self.resolver.defaults(),
            placements: &placements,
            clusters,
            supported_versions: &self.resolver.versions.supported,
            default_version: self.resolver.versions.default.as_ref(),
        };
        published::progressions(&overview, self.planner.now)
    }

    /// What an entry is configured to, whatever somebody holds it at: the add-on's manager writes the same. What the hub may not read is
    /// listed, so that the manager finds out what it is.
    fn desired(&self, source: &Source) -> Option<Arc<Set>> {
        let mut entries = self.rollout.entries().iter().zip(self.wishes);
        let (_, wish) = entries.find(|(entry, _)| entry.source == *source)?;
        match wish.configured.as_ref()? {
            Ok(goal) => Some(Arc::clone(&goal.set)),
            Err(TargetError::Configuration(Problem::Forbidden(_))) => {
                let mut placements = listed(self.planner.addon).iter();
                let placement = placements.find(|entry| Some(&entry.placement) == source.placement());
                self.resolver.listed(placement).map(Arc::new)
            }
            Err(_) => None,
        }
    }

    /// In whose words it is told: by version, unless somebody has asked for it in another way.
    fn vocabulary(&self) -> Vocabulary {
        let wanted = self.courses().filter_map(|(_, course)| self.sets.get(course.progress.wanted.as_ref()?));
        let by_hub_config = wanted.map(|set| &**set).find(|set| asks_by_hub_config(set));
        self.resolver.vocabulary(by_hub_config)
    }

    /// What is going on with the clusters of an entry, as far as there is a word for it.
    fn progress(&self, course: &Course<Set>) -> Progress {
        let is_install = !course.progress.is_upgrade;
        let state = course.progress.state.unwrap_or(RolloutState::RollingOut);
        match (state, is_install) {
            (RolloutState::WaitingForCanary, _) => Progress::WaitingForCanary,
            (RolloutState::Complete, true) => Progress::Installed,
            (RolloutState::Complete, false) => Progress::Upgraded,
            (RolloutState::Halted, true) if course.in_flight == 0 => Progress::InstallFailed,
            (RolloutState::Halted, false) if course.in_flight == 0 => Progress::UpgradeFailed,
            (_, true) => Progress::Installing,
            (_, false) if self.goes_back(&course.progress) => Progress::RollingBack,
            (_, false) => Progress::Upgrading,
        }
    }

    /// Whether an earlier version is wanted than the one that ran everywhere.
    fn goes_back(&self, progress: &RolloutProgress) -> bool {
        let version = |name: &Option<SetFingerprint>| self.sets.get(name.as_ref()?).and_then(|set| Set::version(set));
        version(&progress.wanted).zip(version(&progress.last_applied)).is_some_and(|(wanted, was)| wanted < was)
    }
}

fn counts(course: &Course<Set>) -> Counts {
    let clusters = course.progress.clusters.clone().unwrap_or_default();
    let failed = to_size(clusters.failed);
    Counts {
        selected: course.selected,
        total: to_size(clusters.total),
        given: to_size(clusters.given + clusters.proven + clusters.overridden) + failed,
        failed: failed.saturating_sub(course.late),
        timed_out: course.late,
    }
}

fn total(course: &Course<Set>) -> i32 {
    course.progress.clusters.as_ref().map_or(0, |clusters| clusters.total)
}

fn to_size(count: i32) -> usize {
    usize::try_from(count).unwrap_or_default()
}

/// Whether a status is to be written at once: it differs by more than a few counts.
pub(super) fn is_urgent(stored: Option<&AddOnRolloutStatus>, wanted: &AddOnRolloutStatus) -> bool {
    stored.is_none_or(|stored| essence(stored) != essence(wanted))
}

/// A status without what may be a little late: counts are as exact as a hundredth of all clusters.
fn essence(status: &AddOnRolloutStatus) -> AddOnRolloutStatus {
    let mut status = status.clone();
    (status.progress, status.failed) = (None, None);
    let progresses = status.placements.iter_mut().map(|placement| &mut placement.progress).chain(&mut status.defaults);
    for progress in progresses {
        if let Some(clusters) = &mut progress.clusters {
            *clusters = coarse(clusters);
        }
        for gate in &mut progress.gates {
            gate.message = None;
        }
    }
    status.message = None;
    status
}

fn coarse(counts: &RolloutCounts) -> RolloutCounts {
    let step = (counts.total / 100).max(1);
    let coarse = |count: i32| count / step;
    RolloutCounts {
        total: counts.total,
        waiting: coarse(counts.waiting),
        given: coarse(counts.given),
        proven: coarse(counts.proven),
        failed: counts.failed,
        offline: coarse(counts.offline),
        skipped: counts.skipped,
        paused: counts.paused,
        overridden: coarse(counts.overridden),
    }
}
