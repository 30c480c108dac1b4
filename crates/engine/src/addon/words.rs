//! What is going on with an add-on, put into words: those of the configuration lifecycle, those of the version lifecycle, or OCM's.
//!
//! Everything else in the code knows one progress value, and leaves the words to this file.

use std::fmt::Write as _;

use drover_api::{
    addon::ConfigGroupResource,
    grammar::{SetFingerprint, Version},
    names::PROGRESSING,
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use super::progress::{Defect, Manifests, Obstacle};
use crate::{
    condition::{self, Holds, Says},
    member::Failure,
};

/// How many types of configuration are named as not supported.
const UNSUPPORTED: usize = 3;

/// In whose words something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Those for add-ons that are managed by configuration.
    Lifecycle,
    /// Those for add-ons that are managed by version.
    Version,
    /// OCM's, for hubs with OCM's own CRDs. What these have no field for is not said at all.
    Ocm,
}

impl Vocabulary {
    const ALL: [Self; 3] = [Self::Lifecycle, Self::Version, Self::Ocm];
}

/// What is going on with an add-on, on one cluster or on those of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It gets there for the first time.
    Installing,
    /// It got there for the first time.
    Installed,
    /// It could not get there for the first time.
    InstallFailed,
    /// It is being changed.
    Upgrading,
    /// It was changed.
    Upgraded,
    /// It could not be changed.
    UpgradeFailed,
    /// It goes back to an earlier version.
    RollingBack,
    /// It waits until the canaries are well.
    WaitingForCanary,
}

impl Progress {
    /// The status and reason of the condition that says so.
    #[must_use]
    pub fn says(self, vocabulary: Vocabulary) -> (Holds, &'static str) {
        let (holds, lifecycle, version, ocm) = match self {
            Self::Installing => (Holds::Yes, "Installing", "Installing", "Progressing"),
            Self::Installed => (Holds::No, "InstallSucceed", "Succeed", "Completed"),
            Self::InstallFailed => (Holds::No, "InstallFailed", "Failed", "Failed"),
            Self::Upgrading => (Holds::Yes, "Upgrading", "Upgrading", "Progressing"),
            Self::Upgraded => (Holds::No, "UpgradeSucceed", "Succeed", "Completed"),
            Self::UpgradeFailed => (Holds::No, "UpgradeFailed", "Failed", "Failed"),
            Self::RollingBack => (Holds::Yes, "Upgrading", "Rollingback", "Progressing"),
            Self::WaitingForCanary => (Holds::Yes, "WaitingForCanary", "WaitingForCanary", "Progressing"),
        };
        let reason = match vocabulary {
            Vocabulary::Lifecycle => lifecycle,
            Vocabulary::Version => version,
            Vocabulary::Ocm => ocm,
        };
        (holds, reason)
    }

    /// Whether the reason is that of one of these, in any vocabulary.
    fn any_says(progresses: &[Self], reason: &str) -> bool {
        let says = |progress: &Self| Vocabulary::ALL.iter().any(|&vocabulary| progress.says(vocabulary).1 == reason);
        progresses.iter().any(says)
    }

    /// What is going on all in all, if it is this in one place and that in another.
    pub(super) fn foremost(progresses: impl IntoIterator<Item = Self>) -> Option<Self> {
        progresses.into_iter().min_by_key(|progress| match progress {
            Self::UpgradeFailed => 0,
            Self::InstallFailed => 1,
            Self::RollingBack => 2,
            Self::Upgrading => 3,
            Self::Installing => 4,
            Self::WaitingForCanary => 5,
            Self::Upgraded => 6,
            Self::Installed => 7,
        })
    }

    /// One or two words for people, to go after a number of clusters.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Installing => "installing",
            Self::Installed => "installed",
            Self::InstallFailed => "install failed",
            Self::Upgrading => "upgrading",
            Self::Upgraded => "upgraded",
            Self::UpgradeFailed => "upgrade failed",
            Self::RollingBack => "rolling back",
            Self::WaitingForCanary => "waiting for canary",
        }
    }
}

/// Whether a stored reason tells that a change had ended well.
pub(super) fn tells_success(reason: &str) -> bool {
    Progress::any_says(&[Progress::Installed, Progress::Upgraded], reason)
}

/// Whether a stored reason tells that the first install was going on, or was the last that had ended.
pub(super) fn tells_install(reason: &str) -> bool {
    let installs = [Progress::Installing, Progress::Installed, Progress::InstallFailed];
    let upgrades = [Progress::Upgrading, Progress::Upgraded, Progress::UpgradeFailed];
    Progress::any_says(&installs, reason) && !Progress::any_says(&upgrades, reason)
}

/// Whether a stored reason tells that the first install had ended well.
pub(super) fn tells_installed(reason: &str) -> bool {
    let after =
        [Progress::Installed, Progress::Upgrading, Progress::Upgraded, Progress::UpgradeFailed, Progress::RollingBack];
    let before = [Progress::Installing, Progress::InstallFailed];
    Progress::any_says(&after, reason) && !Progress::any_says(&before, reason)
}

/// What is in the way on a cluster, if the stored condition tells that its rollout failed.
pub(crate) fn failed_of(conditions: &[Condition]) -> Option<&str> {
    let said = failure_in(conditions)?;
    let (how, obstacle) = said.split_once(": ")?;
    let is_of_rollout = |to: &Move| {
        let (noun, verb) = (to.noun(), to.verb());
        how == format!("{noun} failed")
            || how == format!("{noun} did not end in time")
            || how.starts_with(&format!("could not {verb} version "))
    };
    [Move::Install, Move::Upgrade, Move::Rollback].iter().any(is_of_rollout).then_some(obstacle)
}

/// Whether the stored condition tells that what is asked for on the cluster cannot be had.
pub(crate) fn tells_hindrance(conditions: &[Condition]) -> bool {
    failure_in(conditions).is_some() && failed_of(conditions).is_none()
}

/// What the stored condition says, if it tells that a change has failed or cannot be made.
fn failure_in(conditions: &[Condition]) -> Option<&str> {
    let said = conditions.iter().find(|condition| condition.type_ == PROGRESSING)?;
    let failures = [Progress::InstallFailed, Progress::UpgradeFailed];
    Progress::any_says(&failures, &said.reason).then_some(&said.message)
}

/// From what to what an add-on moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// From nothing.
    Install,
    /// From something else.
    Upgrade,
    /// From a later version.
    Rollback,
}

impl Move {
    fn going_on(self) -> Progress {
        match self {
            Self::Install => Progress::Installing,
            Self::Upgrade => Progress::Upgrading,
            Self::Rollback => Progress::RollingBack,
        }
    }

    fn done(self) -> Progress {
        match self {
            Self::Install => Progress::Installed,
            Self::Upgrade | Self::Rollback => Progress::Upgraded,
        }
    }

    fn failed(self) -> Progress {
        match self {
            Self::Install => Progress::InstallFailed,
            Self::Upgrade | Self::Rollback => Progress::UpgradeFailed,
        }
    }

    /// What it is called where versions do not matter.
    fn noun(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade | Self::Rollback => "upgrade",
        }
    }

    /// What is going on where versions do not matter.
    fn participle(self) -> &'static str {
        match self {
            Self::Install => "installing...",
            Self::Upgrade | Self::Rollback => "upgrading...",
        }
    }

    /// What is done to get to a version.
    fn verb(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade to",
            Self::Rollback => "rollback to",
        }
    }
}

/// Why an add-on that was given nothing yet waits. The text says for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait<'a> {
    /// Canaries have to be well before.
    ForCanary(&'a str),
    /// Something else.
    For(&'a str),
}

/// What is to be said of an add-on on one cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum State<'a> {
    /// A user wants configurations of types that the add-on does not take.
    Unsupported(&'a [ConfigGroupResource]),
    /// A version is wanted that does not exist.
    Invalid(Move, &'a Version),
    /// Something is wanted that can not be had.
    Hindered(Move, &'a str),
    /// It was given nothing yet, or not yet what is asked for.
    Waits(Move, Wait<'a>),
    /// It was given a set that nobody knows any more.
    Forgotten(Move, &'a SetFingerprint),
    /// It moves to what it was given.
    Moving(Move, &'a Obstacle),
    /// It is there.
    Done(Move),
    /// It could not get there.
    Failed(Move, Failure, &'a Obstacle),
}

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) holds: Holds,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Sentence {
    fn new((holds, reason): (Holds, &'static str), message: String) -> Self {
        Self { holds, reason, message }
    }
}

/// What the condition of an add-on on one cluster says. The version is the one that it was given.
pub(super) fn of_addon(state: State<'_>, vocabulary: Vocabulary, version: Option<&Version>) -> Sentence {
    let version = version.filter(|_| vocabulary == Vocabulary::Version);
    match state {
        State::Unsupported(types) => Sentence::new((Holds::No, "ConfigurationUnsupported"), unsupported(types)),
        State::Invalid(to, version) => {
            let message = format!("could not {} invalid version {version}", to.verb());
            Sentence::new(to.failed().says(vocabulary), message)
        }
        State::Hindered(to, why) => Sentence::new(to.failed().says(vocabulary), why.to_owned()),
        State::Waits(to, wait) => waiting(to, wait, vocabulary),
        State::Forgotten(to, set) => {
            let begin = if vocabulary == Vocabulary::Ocm { "progressing..." } else { to.participle() };
            let message = format!(
                "{begin} the set {set} that it was given is not known any more: its works stay as they are until it is given another"
            );
            Sentence::new(to.going_on().says(vocabulary), message)
        }
        State::Moving(_, obstacle) if vocabulary == Vocabulary::Ocm => rung(obstacle),
        State::Moving(to, _) => {
            let (holds, reason) = to.going_on().says(vocabulary);
            let plainly = || to.participle().to_owned();
            let message = version.map_or_else(plainly, |version| format!("{reason} addon to version {version}."));
            Sentence::new((holds, reason), message)
        }
        State::Done(to) => Sentence::new(to.done().says(vocabulary), done(to, vocabulary)),
        State::Failed(to, failure, obstacle) => {
            Sentence::new(to.failed().says(vocabulary), failed(to, version, failure, obstacle))
        }
    }
}

fn unsupported(types: &[ConfigGroupResource]) -> String {
    let sentence = |ConfigGroupResource { group, resource }: &ConfigGroupResource| {
        format!("Configuration with gvr {group}/{resource} is not supported for this addon")
    };
    types.iter().take(UNSUPPORTED).map(sentence).collect::<Vec<_>>().join("; ")
}

fn waiting(to: Move, wait: Wait<'_>, vocabulary: Vocabulary) -> Sentence {
    let (progress, begin, reason) = match wait {
        Wait::ForCanary(reason) => (Progress::WaitingForCanary, "waitingForCanary...", reason),
        Wait::For(reason) => (to.going_on(), to.participle(), reason),
    };
    let begin = if vocabulary == Vocabulary::Ocm { "progressing..." } else { begin };
    Sentence::new(progress.says(vocabulary), format!("{begin} {reason}").trim_end().to_owned())
}

fn done(to: Move, vocabulary: Vocabulary) -> String {
    let what = match vocabulary {
        Vocabulary::Lifecycle => to.noun(),
        // Whatever the version was before.
        Vocabulary::Version => Move::Install.noun(),
        Vocabulary::Ocm => "",
    };
    format!("{what} completed with no errors.").trim_start().to_owned()
}

fn failed(to: Move, version: Option<&Version>, failure: Failure, obstacle: &Obstacle) -> String {
    match (version, failure) {
        (Some(version), Failure::TooLate) => format!("could not {} version {version} in time: {obstacle}", to.verb()),
        (Some(version), _) => format!("could not {} version {version}: {obstacle}", to.verb()),
        (None, Failure::TooLate) => format!("{} did not end in time: {obstacle}", to.noun()),
        (None, _) => format!("{} failed: {obstacle}", to.noun()),
    }
}

/// What OCM says of an add-on that is not done: it has a ladder of sentences, by what is in the way.
fn rung(obstacle: &Obstacle) -> Sentence {
    let awaits = |reason, condition| {
        let message = format!("Waiting for ManagedClusterAddOn {condition} condition");
        Sentence::new((Holds::No, reason), message)
    };
    let progressing =
        |what| Sentence::new(Progress::Installing.says(Vocabulary::Ocm), format!("progressing... {what}"));
    match obstacle {
        Obstacle::Awaited(Manifests::Own) => awaits("WaitingForManifestApplied", "ManifestApplied"),
        Obstacle::Awaited(Manifests::Hosting) => awaits("WaitingForHostingManifestApplied", "HostingManifestApplied"),
        Obstacle::NoWorks => progressing("no addon works"),
        Obstacle::Work { defect: Defect::OtherConfigs(_) | Defect::OtherVersion { .. }, .. } => {
            progressing("mca and work configs mismatch")
        }
        Obstacle::Work { .. } | Obstacle::NotMade(_) | Obstacle::NotApplied { .. } => progressing("work is not ready"),
        Obstacle::NotWell { .. } | Obstacle::Unreachable => progressing("addon is not available"),
    }
}

/// The clusters of a placement, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that the placement selects.
    pub selected: usize,
    /// Those of them that it decides for, and those that its canaries decide for.
    pub total: usize,
    /// Those that were given what is wanted: moving or done.
    pub given: usize,
    /// Those on which it failed.
    pub failed: usize,
    /// Those on which it was not done in time; none of them is counted as failed.
    pub timed_out: usize,
}

/// What the condition of an add-on on a placement says. The note is what else there is to say: what it waits for, who paused it, why it
/// was halted.
pub(super) fn of_placement(progress: Progress, vocabulary: Vocabulary, counts: Counts, note: Option<&str>) -> Sentence {
    let mut message = match vocabulary {
        Vocabulary::Lifecycle | Vocabulary::Version => counted(progress, vocabulary, counts),
        Vocabulary::Ocm => counted_by_ocm(progress, counts),
    };
    if let Some(note) = note {
        let _ = write!(message, " {note}");
    }
    Sentence::new(progress.says(vocabulary), message)
}

fn counted(progress: Progress, vocabulary: Vocabulary, counts: Counts) -> String {
    let Counts { given, total, failed, timed_out, .. } = counts;
    let end = if failed + timed_out == 0 { " with no errors." } else { "." };
    let message = match progress {
        Progress::Installing => format!("{given}/{total} installing..."),
        Progress::RollingBack if vocabulary == Vocabulary::Version => format!("{given}/{total} rolling back..."),
        Progress::Upgrading | Progress::RollingBack => format!("{given}/{total} upgrading..."),
        Progress::Installed => format!("{given}/{total} install completed{end}"),
        Progress::Upgraded => format!("{given}/{total} upgrade completed{end}"),
        Progress::InstallFailed => format!("{given}/{total} install failed."),
        Progress::UpgradeFailed => format!("{given}/{total} upgrade failed."),
        Progress::WaitingForCanary => "waitingForCanary...".to_owned(),
    };
    let failures = [(failed, "failed"), (timed_out, "timed out")].into_iter().filter(|&(count, _)| count > 0);
    let failures: Vec<_> = failures.map(|(count, how)| format!("{count} {how}")).collect();
    if failures.is_empty() { message } else { format!("{message} {}.", failures.join(", ")) }
}

fn counted_by_ocm(progress: Progress, counts: Counts) -> String {
    let Counts { selected, total, given, failed, timed_out } = counts;
    let state = match progress {
        Progress::Installed | Progress::Upgraded => "completed with no errors",
        Progress::InstallFailed | Progress::UpgradeFailed => "stopped",
        _ => "progressing...",
    };
    format!(
        "selected clusters {selected}. configured addons {given}/{total} {state}, {failed} failed {timed_out} timeout."
    )
}

/// The conditions, with the one that says whether an add-on is being changed brought up to date. Its time moves with its status, and when
/// what had not ended well does so after all, so that it is the time of the finish.
pub(super) fn progressing(
    conditions: Vec<Condition>,
    sentence: &Sentence,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let Sentence { holds, reason, message } = sentence;
    let was_success = reason_in(&conditions).is_some_and(tells_success);
    let says = Says { type_: PROGRESSING, holds: *holds, reason, message, generation };
    let mut conditions = condition::with(conditions, says, now);
    if tells_success(reason) && !was_success {
        let said = conditions.iter_mut().filter(|condition| condition.type_ == PROGRESSING);
        said.for_each(|condition| condition.last_transition_time = Time(now));
    }
    conditions
}

/// The reason that was last given for whether the add-on is being changed.
pub(super) fn reason_in(conditions: &[Condition]) -> Option<&str> {
    conditions.iter().find(|condition| condition.type_ == PROGRESSING).map(|condition| &*condition.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        addon::progress::Report,
        revision::{
            fixtures::{at, type_, version},
            hashes::Difference,
        },
    };

    fn works(defect: Defect) -> Obstacle {
        Obstacle::Work { name: "one".to_owned(), defect }
    }

    fn said(state: State<'_>, vocabulary: Vocabulary) -> (Holds, &'static str, String) {
        let Sentence { holds, reason, message } = of_addon(state, vocabulary, Some(&version("v2")));
        (holds, reason, message)
    }

    #[test]
    fn every_progress_has_its_status_and_its_three_reasons() {
        let rows = [
            (Progress::Installing, Holds::Yes, ["Installing", "Installing", "Progressing"]),
            (Progress::Installed, Holds::No, ["InstallSucceed", "Succeed", "Completed"]),
            (Progress::InstallFailed, Holds::No, ["InstallFailed", "Failed", "Failed"]),
            (Progress::Upgrading, Holds::Yes, ["Upgrading", "Upgrading", "Progressing"]),
            (Progress::Upgraded, Holds::No, ["UpgradeSucceed", "Succeed", "Completed"]),
            (Progress::UpgradeFailed, Holds::No, ["UpgradeFailed", "Failed", "Failed"]),
            (Progress::RollingBack, Holds::Yes, ["Upgrading", "Rollingback", "Progressing"]),
            (Progress::WaitingForCanary, Holds::Yes, ["WaitingForCanary", "WaitingForCanary", "Progressing"]),
        ];
        for (progress, holds, reasons) in rows {
            for (vocabulary, reason) in Vocabulary::ALL.into_iter().zip(reasons) {
                assert_eq!(progress.says(vocabulary), (holds, reason), "{progress:?} {vocabulary:?}");
            }
        }
    }

    #[test]
    fn stored_reasons_tell_what_they_can() {
        let rows = [
            ("Installing", false, true, false),
            ("InstallSucceed", true, true, true),
            ("InstallFailed", false, true, false),
            ("Upgrading", false, false, true),
            ("UpgradeSucceed", true, false, true),
            ("UpgradeFailed", false, false, true),
            ("Rollingback", false, false, true),
            ("Succeed", true, false, true),
            ("Completed", true, false, true),
            ("Failed", false, false, false),
            ("Progressing", false, false, false),
            ("WaitingForCanary", false, false, false),
            ("ConfigurationUnsupported", false, false, false),
            ("", false, false, false),
        ];
        for (reason, success, install, installed) in rows {
            let told = (tells_success(reason), tells_install(reason), tells_installed(reason));
            assert_eq!(told, (success, install, installed), "{reason}");
        }
    }

    #[test]
    fn an_add_on_is_spoken_of_in_three_ways() {
        let no_works = Obstacle::NoWorks;
        let types = ["hubs", "settings", "others", "more"].map(type_);
        let three_types = "Configuration with gvr example.com/hubs is not supported for this addon; \
            Configuration with gvr example.com/settings is not supported for this addon; \
            Configuration with gvr example.com/others is not supported for this addon";
        let v3 = version("v3");
        let rows = [
            (
                State::Moving(Move::Install, &no_works),
                ["installing...", "Installing addon to version v2.", "progressing... no addon works"],
            ),
            (
                State::Moving(Move::Upgrade, &no_works),
                ["upgrading...", "Upgrading addon to version v2.", "progressing... no addon works"],
            ),
            (
                State::Moving(Move::Rollback, &no_works),
                ["upgrading...", "Rollingback addon to version v2.", "progressing... no addon works"],
            ),
            (
                State::Done(Move::Install),
                ["install completed with no errors.", "install completed with no errors.", "completed with no errors."],
            ),
            (
                State::Done(Move::Rollback),
                ["upgrade completed with no errors.", "install completed with no errors.", "completed with no errors."],
            ),
            (
                State::Failed(Move::Install, Failure::NotApplied, &no_works),
                [
                    "install failed: it has no work yet",
                    "could not install version v2: it has no work yet",
                    "install failed: it has no work yet",
                ],
            ),
            (
                State::Failed(Move::Rollback, Failure::TooLate, &no_works),
                [
                    "upgrade did not end in time: it has no work yet",
                    "could not rollback to version v2 in time: it has no work yet",
                    "upgrade did not end in time: it has no work yet",
                ],
            ),
            (State::Invalid(Move::Install, &v3), ["could not install invalid version v3"; 3]),
            (State::Invalid(Move::Upgrade, &v3), ["could not upgrade to invalid version v3"; 3]),
            (State::Invalid(Move::Rollback, &v3), ["could not rollback to invalid version v3"; 3]),
            (
                State::Waits(Move::Install, Wait::ForCanary("1 of 2 canaries is not done")),
                [
                    "waitingForCanary... 1 of 2 canaries is not done",
                    "waitingForCanary... 1 of 2 canaries is not done",
                    "progressing... 1 of 2 canaries is not done",
                ],
            ),
            (
                State::Waits(Move::Install, Wait::For("paused by ann")),
                ["installing... paused by ann", "installing... paused by ann", "progressing... paused by ann"],
            ),
            (
                State::Unsupported(&types[..1]),
                ["Configuration with gvr example.com/hubs is not supported for this addon"; 3],
            ),
            (State::Unsupported(&types), [three_types; 3]),
        ];
        for (state, messages) in rows {
            for (vocabulary, message) in Vocabulary::ALL.into_iter().zip(messages) {
                assert_eq!(said(state, vocabulary).2, message, "{state:?} {vocabulary:?}");
            }
        }
    }

    #[test]
    fn what_a_user_has_to_correct_is_said_with_its_own_reason() {
        let (v3, types) = (version("v3"), [type_("hubs")]);
        for vocabulary in Vocabulary::ALL {
            let (holds, reason, _) = said(State::Unsupported(&types), vocabulary);
            assert_eq!((holds, reason), (Holds::No, "ConfigurationUnsupported"));
        }
        let (holds, reason, _) = said(State::Invalid(Move::Upgrade, &v3), Vocabulary::Version);
        assert_eq!((holds, reason), (Holds::No, "Failed"));
        let (holds, reason, _) = said(State::Invalid(Move::Upgrade, &v3), Vocabulary::Lifecycle);
        assert_eq!((holds, reason), (Holds::No, "UpgradeFailed"));
    }

    #[test]
    fn versions_are_named_only_where_there_are_some() {
        let state = State::Moving(Move::Install, &Obstacle::NoWorks);
        assert_eq!(of_addon(state, Vocabulary::Version, None).message, "installing...");
    }

    #[test]
    fn ocm_s_ladder_has_all_its_rungs() {
        let message = || "as was said".to_owned();
        let progressing = (Holds::Yes, "Progressing");
        let rows = [
            (
                Obstacle::Awaited(Manifests::Own),
                (Holds::No, "WaitingForManifestApplied"),
                "Waiting for ManagedClusterAddOn ManifestApplied condition",
            ),
            (
                Obstacle::Awaited(Manifests::Hosting),
                (Holds::No, "WaitingForHostingManifestApplied"),
                "Waiting for ManagedClusterAddOn HostingManifestApplied condition",
            ),
            (Obstacle::NoWorks, progressing, "progressing... no addon works"),
            (
                works(Defect::OtherConfigs(Difference::Unreadable(message()))),
                progressing,
                "progressing... mca and work configs mismatch",
            ),
            (
                works(Defect::OtherVersion { label: None, wanted: version("v1") }),
                progressing,
                "progressing... mca and work configs mismatch",
            ),
            (works(Defect::NotReported(Report::Applied)), progressing, "progressing... work is not ready"),
            (works(Defect::Outdated(Report::Available)), progressing, "progressing... work is not ready"),
            (
                works(Defect::Not { report: Report::Available, message: message() }),
                progressing,
                "progressing... work is not ready",
            ),
            (
                Obstacle::NotApplied { manifests: Manifests::Own, message: message() },
                progressing,
                "progressing... work is not ready",
            ),
            (
                Obstacle::NotWell { available: Holds::No, message: message() },
                progressing,
                "progressing... addon is not available",
            ),
        ];
        for (obstacle, (holds, reason), message) in rows {
            let expected = (holds, reason, message.to_owned());
            assert_eq!(said(State::Moving(Move::Upgrade, &obstacle), Vocabulary::Ocm), expected);
        }
        let failed = said(State::Failed(Move::Upgrade, Failure::NotApplied, &Obstacle::NoWorks), Vocabulary::Ocm);
        assert_eq!((failed.0, failed.1), (Holds::No, "Failed"));
        let completed = (Holds::No, "Completed", "completed with no errors.".to_owned());
        assert_eq!(said(State::Done(Move::Upgrade), Vocabulary::Ocm), completed);
    }

    #[test]
    fn a_placement_is_counted_in_the_words_of_its_progress() {
        let some = Counts { selected: 410, total: 400, given: 100, failed: 0, timed_out: 0 };
        let all = Counts { given: 400, ..some };
        let failed = Counts { failed: 2, ..some };
        let late = Counts { timed_out: 1, ..some };
        let both = Counts { failed: 2, timed_out: 1, ..all };
        let rows = [
            (Progress::Installing, some, None, "100/400 installing..."),
            (Progress::Installed, all, None, "400/400 install completed with no errors."),
            (Progress::InstallFailed, failed, None, "100/400 install failed. 2 failed."),
            (Progress::Upgrading, some, None, "100/400 upgrading..."),
            (Progress::Upgrading, late, None, "100/400 upgrading... 1 timed out."),
            (Progress::Upgrading, some, Some("Paused by ann."), "100/400 upgrading... Paused by ann."),
            (Progress::Upgraded, all, None, "400/400 upgrade completed with no errors."),
            (Progress::Upgraded, both, None, "400/400 upgrade completed. 2 failed, 1 timed out."),
            (Progress::UpgradeFailed, failed, Some("Halted."), "100/400 upgrade failed. 2 failed. Halted."),
            (Progress::RollingBack, some, None, "100/400 upgrading..."),
            (Progress::WaitingForCanary, some, None, "waitingForCanary..."),
            (
                Progress::WaitingForCanary,
                some,
                Some("25/100 of default/canary are done"),
                "waitingForCanary... 25/100 of default/canary are done",
            ),
        ];
        for (progress, counts, note, message) in rows {
            assert_eq!(of_placement(progress, Vocabulary::Lifecycle, counts, note).message, message);
        }
        let back = of_placement(Progress::RollingBack, Vocabulary::Version, some, None);
        assert_eq!((back.reason, back.message.as_str()), ("Rollingback", "100/400 rolling back..."));
    }

    #[test]
    fn ocm_counts_a_placement_in_its_own_words() {
        let counts = Counts { selected: 5, total: 4, given: 3, failed: 1, timed_out: 2 };
        let rows = [
            (
                Progress::Upgrading,
                None,
                "selected clusters 5. configured addons 3/4 progressing..., 1 failed 2 timeout.",
            ),
            (
                Progress::Installed,
                None,
                "selected clusters 5. configured addons 3/4 completed with no errors, 1 failed 2 timeout.",
            ),
            (
                Progress::UpgradeFailed,
                Some("Halted."),
                "selected clusters 5. configured addons 3/4 stopped, 1 failed 2 timeout. Halted.",
            ),
        ];
        for (progress, note, message) in rows {
            assert_eq!(of_placement(progress, Vocabulary::Ocm, counts, note).message, message);
        }
    }

    #[test]
    fn the_time_is_that_of_the_finish() {
        let rows = [
            (Progress::Installing, Progress::Upgrading, false),
            (Progress::Upgrading, Progress::Upgraded, true),
            (Progress::Upgrading, Progress::UpgradeFailed, true),
            (Progress::UpgradeFailed, Progress::Upgraded, true),
            (Progress::UpgradeFailed, Progress::InstallFailed, false),
            (Progress::Installed, Progress::Upgraded, false),
            (Progress::Upgraded, Progress::UpgradeFailed, false),
        ];
        for vocabulary in Vocabulary::ALL {
            for (former, progress, moves) in rows {
                let sentence = |progress: Progress| Sentence::new(progress.says(vocabulary), String::new());
                let conditions = progressing(Vec::new(), &sentence(former), None, at(1));
                let conditions = progressing(conditions, &sentence(progress), None, at(2));
                let since = conditions[0].last_transition_time.0;
                assert_eq!(since, at(if moves { 2 } else { 1 }), "{former:?} {progress:?} {vocabulary:?}");
                assert_eq!(progressing(conditions.clone(), &sentence(progress), None, at(3)), conditions);
            }
        }
    }

    #[test]
    fn what_is_worst_is_what_is_going_on() {
        let all = [
            Progress::UpgradeFailed,
            Progress::InstallFailed,
            Progress::RollingBack,
            Progress::Upgrading,
            Progress::Installing,
            Progress::WaitingForCanary,
            Progress::Upgraded,
            Progress::Installed,
        ];
        for (index, &worst) in all.iter().enumerate() {
            assert_eq!(Progress::foremost(all[index..].iter().rev().copied()), Some(worst));
        }
        assert_eq!(Progress::foremost([]), None);
    }
}
