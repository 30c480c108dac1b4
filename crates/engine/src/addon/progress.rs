//! What the works of an add-on prove: that its cluster runs what it was given, or what is still in the way.

use std::fmt;

use drover_api::{
    addon::ManagedClusterAddOn,
    grammar::Version,
    names::{
        ADDON_VERSION_LABEL, AVAILABLE, HOSTING_CLUSTER_ANNOTATION, HOSTING_MANIFEST_APPLIED, MANIFEST_APPLIED,
        WORK_APPLIED, WORK_AVAILABLE,
    },
    work::ManifestWork,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{
    hashes::{self, Difference},
    mark::{Proof, Verdict},
    set::Set,
};
use crate::{
    condition::{self, Holds},
    words::excerpt,
};

/// What is known of an add-on on one cluster.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The add-on on the cluster, as it is stored.
    pub addon: &'a ManagedClusterAddOn,
    /// All works that carry the add-on's label; of their spec nothing is needed.
    pub works: &'a [&'a ManifestWork],
    /// What the cluster was given, with what a user has asked for instead.
    pub set: &'a Set,
    /// The versions that the add-on can be installed in, if it declares any.
    pub supported_versions: &'a [Version],
    /// Whether the add-on has to be well.
    pub health: Health,
}

/// Whether an add-on has to be well before it counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has to.
    Counts,
    /// Its works are all that is looked at, as OCM does it.
    DoesNotCount,
}

/// How a cluster stands to the set that it was given, and what is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It runs it, and is well.
    Proven,
    /// It does not run it yet.
    Moving(Obstacle),
    /// A work that was made from it could not be applied.
    Failing(Obstacle),
    /// It ran it, and then turned unhealthy.
    Unhealthy(Obstacle),
}

impl Finding {
    /// How the cluster stands, without the reason.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Proven => Verdict::Proven,
            Self::Moving(_) => Verdict::Moving,
            Self::Failing(_) => Verdict::Failing,
            Self::Unhealthy(_) => Verdict::Unhealthy,
        }
    }

    /// What is in the way, if anything is.
    #[must_use]
    pub fn obstacle(&self) -> Option<&Obstacle> {
        match self {
            Self::Proven => None,
            Self::Moving(obstacle) | Self::Failing(obstacle) | Self::Unhealthy(obstacle) => Some(obstacle),
        }
    }
}

/// What is in the way of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Nobody has said yet that the add-on's works are made.
    Awaited(Manifests),
    /// There is no work.
    NoWorks,
    /// A work is not as it has to be.
    Work {
        /// The name of the work.
        name: String,
        /// In which way.
        defect: Defect,
    },
    /// Who makes the works says that they are not as they have to be.
    NotApplied {
        /// Which of them.
        manifests: Manifests,
        /// What was said.
        message: String,
    },
    /// The add-on is not available.
    NotWell {
        /// Whether anybody can tell.
        available: Holds,
        /// What was said.
        message: String,
    },
}

impl Obstacle {
    /// Whether this says that what was applied is not well, and not that it is still to be applied.
    fn is_of_health(&self) -> bool {
        match self {
            Self::NotWell { .. } => true,
            Self::Work { defect, .. } => matches!(defect, Defect::Not { report: Report::Available, .. }),
            Self::Awaited(_) | Self::NoWorks | Self::NotApplied { .. } => false,
        }
    }
}

/// Which works of an add-on are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manifests {
    /// Those on the add-on's own cluster.
    Own,
    /// Those on the cluster that hosts the add-on's agent.
    Hosting,
}

impl Manifests {
    fn condition(self) -> &'static str {
        match self {
            Self::Own => MANIFEST_APPLIED,
            Self::Hosting => HOSTING_MANIFEST_APPLIED,
        }
    }
}

/// In which way a work is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It was made from other configurations.
    OtherConfigs(Difference),
    /// It was made for another version of the add-on.
    OtherVersion {
        /// The version in its label.
        label: Option<String>,
        /// The version that it has to be.
        wanted: Version,
    },
    /// Its agent has not reported yet.
    NotReported(Report),
    /// Its agent has last reported on an earlier edit of it.
    Outdated(Report),
    /// Its agent reports that it is not so.
    Not {
        /// What it is not.
        report: Report,
        /// What the agent says.
        message: String,
    },
}

/// What an agent reports of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Everything in it is applied.
    Applied,
    /// Everything in it is there.
    Available,
}

impl Report {
    fn condition(self) -> &'static str {
        match self {
            Self::Applied => WORK_APPLIED,
            Self::Available => WORK_AVAILABLE,
        }
    }
}

/// How the cluster stands to the set that it was given. Nothing but works that were made from that very set counts, neither as
/// success nor as failure.
#[must_use]
pub fn prove(evidence: &Evidence<'_>) -> Finding {
    if let Some(refused) = evidence.refused() {
        return Finding::Failing(refused);
    }
    let obstacle = if evidence.has_run() {
        // Who ran it is unhealthy when it says so, whatever is going on with its works.
        evidence.not_well().or_else(|| evidence.unfinished())
    } else {
        evidence.unfinished().or_else(|| evidence.not_well())
    };
    obstacle.map_or(Finding::Proven, |obstacle| evidence.not_there(obstacle))
}

impl<'a> Evidence<'a> {
    /// What something in the way means: that the cluster is not there yet, or that it was and is no longer well.
    fn not_there(&self, obstacle: Obstacle) -> Finding {
        if obstacle.is_of_health() && self.health == Health::Counts && self.has_run() {
            return Finding::Unhealthy(obstacle);
        }
        Finding::Moving(obstacle)
    }

    /// The works that make the add-on run. Those that clean up before it goes say nothing about that.
    fn works(&self) -> impl Iterator<Item = &'a ManifestWork> {
        let hook = format!("addon-{}-pre-delete", self.addon.name_any());
        self.works.iter().copied().filter(move |work| !work.name_any().starts_with(&hook))
    }

    /// A work that was made from the set, and could not be applied.
    fn refused(&self) -> Option<Obstacle> {
        let mut made = self.works().filter(|work| self.other(work).is_none());
        made.find_map(|work| Some(of(work, refusal(work)?)))
    }

    /// What is still to be done, in the order in which OCM looks at it.
    fn unfinished(&self) -> Option<Obstacle> {
        self.awaited()
            .or_else(|| self.works().next().is_none().then_some(Obstacle::NoWorks))
            .or_else(|| self.works().find_map(|work| Some(of(work, self.other(work)?))))
            .or_else(|| self.works().find_map(|work| Some(of(work, unready(work)?))))
            .or_else(|| self.not_applied())
    }

    fn awaited(&self) -> Option<Obstacle> {
        let unsaid = |manifests: &Manifests| condition::holds(self.conditions(), manifests.condition()).is_none();
        self.manifests().iter().copied().find(unsaid).map(Obstacle::Awaited)
    }

    fn not_applied(&self) -> Option<Obstacle> {
        self.manifests().iter().find_map(|&manifests| {
            let said = find(self.conditions(), manifests.condition())?;
            let message = excerpt(&said.message);
            (said.status != "True").then_some(Obstacle::NotApplied { manifests, message })
        })
    }

    /// In what the work differs from what it is to be made from.
    fn other(&self, work: &ManifestWork) -> Option<Defect> {
        hashes::difference(self.set, work).map(Defect::OtherConfigs).or_else(|| self.other_version(work))
    }

    fn other_version(&self, work: &ManifestWork) -> Option<Defect> {
        let wanted = self.set.version()?;
        let label = work.labels().get(ADDON_VERSION_LABEL);
        let says_nothing = label.is_none() && self.supported_versions.is_empty();
        let is_wanted = label.is_some_and(|label| label == wanted.as_str());
        let other = || Defect::OtherVersion { label: label.cloned(), wanted: wanted.clone() };
        (!says_nothing && !is_wanted).then(other)
    }

    fn not_well(&self) -> Option<Obstacle> {
        let said = find(self.conditions(), AVAILABLE).filter(|_| self.health == Health::Counts)?;
        let available = condition::holds(self.conditions(), AVAILABLE)?;
        let message = excerpt(&said.message);
        (available != Holds::Yes).then_some(Obstacle::NotWell { available, message })
    }

    /// Whether the set was proven, and nothing but the add-on's health has been in doubt since.
    fn has_run(&self) -> bool {
        let ran = |proof: &Proof| proof.verdict.has_run();
        Proof::read(self.conditions()).filter(ran).is_some_and(|proof| proof.set == self.set.fingerprint())
    }

    fn manifests(&self) -> &'static [Manifests] {
        let host = self.addon.annotations().get(HOSTING_CLUSTER_ANNOTATION);
        let is_hosted = host.is_some_and(|host| !host.is_empty());
        if is_hosted { &[Manifests::Own, Manifests::Hosting] } else { &[Manifests::Own] }
    }

    fn conditions(&self) -> &'a [Condition] {
        self.addon.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

fn of(work: &ManifestWork, defect: Defect) -> Obstacle {
    Obstacle::Work { name: work.name_any(), defect }
}

/// That the work could not be applied in its present form.
fn refusal(work: &ManifestWork) -> Option<Defect> {
    let applied = find(conditions(work), WORK_APPLIED).filter(|applied| applied.status == "False")?;
    is_current(work, applied).then(|| Defect::Not { report: Report::Applied, message: excerpt(&applied.message) })
}

fn unready(work: &ManifestWork) -> Option<Defect> {
    [Report::Applied, Report::Available].into_iter().find_map(|report| {
        match find(conditions(work), report.condition()) {
            None => Some(Defect::NotReported(report)),
            Some(said) if !is_current(work, said) => Some(Defect::Outdated(report)),
            Some(said) if said.status == "True" => None,
            Some(said) => Some(Defect::Not { report, message: excerpt(&said.message) }),
        }
    })
}

fn is_current(work: &ManifestWork, said: &Condition) -> bool {
    said.observed_generation.unwrap_or_default() == work.metadata.generation.unwrap_or_default()
}

fn conditions(work: &ManifestWork) -> &[Condition] {
    work.status.as_ref().map_or(&[], |status| &status.conditions)
}

fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Awaited(manifests) => {
                write!(f, "its manager has not set the condition {} yet", manifests.condition())
            }
            Self::NoWorks => f.write_str("it has no work yet"),
            Self::Work { name, defect } => write!(f, "work {name} {defect}"),
            Self::NotApplied { manifests, message } => {
                write!(f, "its manager says that {} is not true", manifests.condition())?;
                quote(f, message)
            }
            Self::NotWell { available: Holds::Unknown, message } => {
                f.write_str("nobody knows whether it is available")?;
                quote(f, message)
            }
            Self::NotWell { message, .. } => {
                f.write_str("it is not available")?;
                quote(f, message)
            }
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherConfigs(difference) => difference.fmt(f),
            Self::OtherVersion { label: Some(label), wanted } => write!(f, "is for version {label}, not {wanted}"),
            Self::OtherVersion { label: None, wanted } => {
                write!(f, "does not say that it is for version {wanted}, by the label {ADDON_VERSION_LABEL}")
            }
            Self::NotReported(report) => write!(f, "is not known to be {report} yet"),
            Self::Outdated(report) => write!(f, "was changed, and is not known to be {report} since"),
            Self::Not { report, message } => {
                write!(f, "is not {report}")?;
                quote(f, message)
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Applied => "applied",
            Self::Available => "available",
        })
    }
}

fn quote(f: &mut fmt::Formatter<'_>, message: &str) -> fmt::Result {
    if message.is_empty() { Ok(()) } else { write!(f, ": {message}") }
}

#[cfg(test)]
mod tests {
    use drover_api::{
        addon::ManagedClusterAddOnSpec,
        names::CONFIG_SPEC_HASH_ANNOTATION,
        work::{ManifestWorkSpec, ManifestWorkStatus},
    };
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;
    use crate::addon::fixtures;

    const GENERATION: i64 = 3;

    fn set(hash: &str, version: Option<&str>) -> Set {
        Set::new([fixtures::config("hubs", "one", hash)], version.map(fixtures::version))
    }

    fn says(type_: &str, status: &str, generation: Option<i64>) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: "Test".to_owned(),
            message: "as was said".to_owned(),
            observed_generation: generation,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    /// A world in which an add-on has proven its set; tests spoil one thing of it at a time.
    struct World {
        addon: ManagedClusterAddOn,
        works: Vec<ManifestWork>,
        set: Set,
        supported: Vec<Version>,
        health: Health,
    }

    impl World {
        fn well() -> Self {
            let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
            addon.status.get_or_insert_default().conditions =
                vec![says(MANIFEST_APPLIED, "True", None), says(AVAILABLE, "True", None)];
            let works = ["addon-hello-deploy-0", "addon-hello-deploy-1"].map(|name| work(name, "h1")).into();
            Self { addon, works, set: set("h1", None), supported: Vec::new(), health: Health::Counts }
        }

        fn finding(&self) -> Finding {
            let works: Vec<_> = self.works.iter().collect();
            prove(&Evidence {
                addon: &self.addon,
                works: &works,
                set: &self.set,
                supported_versions: &self.supported,
                health: self.health,
            })
        }

        fn conditions(&mut self) -> &mut Vec<Condition> {
            &mut self.addon.status.get_or_insert_default().conditions
        }

        /// Replaces a condition of the add-on, or takes it away.
        fn say(&mut self, type_: &str, status: Option<&str>) {
            self.conditions().retain(|condition| condition.type_ != type_);
            let said = status.map(|status| says(type_, status, None));
            self.conditions().extend(said);
        }

        /// Replaces a condition of the second work, or takes it away.
        fn report(&mut self, type_: &str, status: Option<(&str, i64)>) {
            let conditions = &mut self.works[1].status.get_or_insert_default().conditions;
            conditions.retain(|condition| condition.type_ != type_);
            conditions.extend(status.map(|(status, generation)| says(type_, status, Some(generation))));
        }

        fn stamp(&mut self, hashes: &str) {
            self.works[1].annotations_mut().insert(CONFIG_SPEC_HASH_ANNOTATION.to_owned(), hashes.to_owned());
        }

        fn label(&mut self, version: &str) {
            for work in &mut self.works {
                work.labels_mut().insert(ADDON_VERSION_LABEL.to_owned(), version.to_owned());
            }
        }

        fn remember(&mut self, set: &Set, verdict: Verdict) {
            let proof = Proof { set: set.fingerprint(), verdict, since: Timestamp::UNIX_EPOCH };
            *self.conditions() = proof.write(self.conditions().clone());
        }
    }

    fn work(name: &str, hash: &str) -> ManifestWork {
        let mut work = ManifestWork::new(name, ManifestWorkSpec::default());
        work.metadata.generation = Some(GENERATION);
        let hashes = format!(r#"{{"hubs.example.com//one":"{hash}"}}"#);
        work.annotations_mut().insert(CONFIG_SPEC_HASH_ANNOTATION.to_owned(), hashes);
        let conditions = [WORK_APPLIED, WORK_AVAILABLE].map(|type_| says(type_, "True", Some(GENERATION))).into();
        work.status = Some(ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() });
        work
    }

    fn spoilt(spoil: impl FnOnce(&mut World)) -> Finding {
        let mut world = World::well();
        spoil(&mut world);
        world.finding()
    }

    fn second(defect: Defect) -> Obstacle {
        Obstacle::Work { name: "addon-hello-deploy-1".to_owned(), defect }
    }

    #[test]
    fn works_made_from_the_set_that_are_applied_and_there_prove_it() {
        assert_eq!(World::well().finding(), Finding::Proven);
    }

    #[test]
    fn everything_that_is_in_the_way_is_named() {
        type Spoil = fn(&mut World);
        let message = || "as was said".to_owned();
        let rows: [(Spoil, Obstacle, &str); 15] = [
            (
                |world| world.say(MANIFEST_APPLIED, None),
                Obstacle::Awaited(Manifests::Own),
                "its manager has not set the condition ManifestApplied yet",
            ),
            (
                |world| {
                    world.addon.annotations_mut().insert(HOSTING_CLUSTER_ANNOTATION.to_owned(), "host".to_owned());
                },
                Obstacle::Awaited(Manifests::Hosting),
                "its manager has not set the condition HostingManifestApplied yet",
            ),
            (|world| world.works.clear(), Obstacle::NoWorks, "it has no work yet"),
            (|world| world.works = vec![work("addon-hello-pre-delete", "h1")], Obstacle::NoWorks, "it has no work yet"),
            (
                |world| world.stamp(r#"{"hubs.example.com//one":"h2"}"#),
                second(Defect::OtherConfigs(Difference::OtherState("hubs.example.com//one".to_owned()))),
                "work addon-hello-deploy-1 was made from another state of hubs.example.com//one",
            ),
            (
                |world| {
                    world.set = set("h1", Some("v2"));
                    world.label("v1");
                    world.works[0].labels_mut().insert(ADDON_VERSION_LABEL.to_owned(), "v2".to_owned());
                },
                second(Defect::OtherVersion { label: Some("v1".to_owned()), wanted: "v2".parse().expect("a version") }),
                "work addon-hello-deploy-1 is for version v1, not v2",
            ),
            (
                |world| world.report(WORK_APPLIED, None),
                second(Defect::NotReported(Report::Applied)),
                "work addon-hello-deploy-1 is not known to be applied yet",
            ),
            (
                |world| world.report(WORK_AVAILABLE, None),
                second(Defect::NotReported(Report::Available)),
                "work addon-hello-deploy-1 is not known to be available yet",
            ),
            (
                |world| world.report(WORK_APPLIED, Some(("False", GENERATION - 1))),
                second(Defect::Outdated(Report::Applied)),
                "work addon-hello-deploy-1 was changed, and is not known to be applied since",
            ),
            (
                |world| world.report(WORK_AVAILABLE, Some(("True", GENERATION - 1))),
                second(Defect::Outdated(Report::Available)),
                "work addon-hello-deploy-1 was changed, and is not known to be available since",
            ),
            (
                |world| world.report(WORK_APPLIED, Some(("Unknown", GENERATION))),
                second(Defect::Not { report: Report::Applied, message: message() }),
                "work addon-hello-deploy-1 is not applied: as was said",
            ),
            (
                |world| world.report(WORK_AVAILABLE, Some(("False", GENERATION))),
                second(Defect::Not { report: Report::Available, message: message() }),
                "work addon-hello-deploy-1 is not available: as was said",
            ),
            (
                |world| world.say(MANIFEST_APPLIED, Some("False")),
                Obstacle::NotApplied { manifests: Manifests::Own, message: message() },
                "its manager says that ManifestApplied is not true: as was said",
            ),
            (
                |world| world.say(AVAILABLE, Some("False")),
                Obstacle::NotWell { available: Holds::No, message: message() },
                "it is not available: as was said",
            ),
            (
                |world| world.say(AVAILABLE, Some("Unknown")),
                Obstacle::NotWell { available: Holds::Unknown, message: message() },
                "nobody knows whether it is available: as was said",
            ),
        ];
        for (spoil, obstacle, sentence) in rows {
            assert_eq!(obstacle.to_string(), sentence);
            assert_eq!(spoilt(spoil), Finding::Moving(obstacle));
        }
    }

    #[test]
    fn what_can_not_be_read_is_in_the_way_too() {
        let finding = spoilt(|world| world.stamp("not JSON"));
        let Finding::Moving(Obstacle::Work { defect: Defect::OtherConfigs(Difference::Unreadable(_)), .. }) = finding
        else {
            panic!("{finding:?}")
        };
    }

    #[test]
    fn a_set_without_content_is_never_proven() {
        let finding = spoilt(|world| {
            world.set = set("", None);
            world.works = vec![work("addon-hello-deploy-0", "")];
        });
        assert_eq!(finding.verdict(), Verdict::Moving);
    }

    #[test]
    fn works_that_clean_up_do_not_count() {
        for name in ["addon-hello-pre-delete", "addon-hello-pre-delete-hosting-one"] {
            assert_eq!(spoilt(|world| world.works.push(work(name, "other"))), Finding::Proven, "{name}");
        }
    }

    #[test]
    fn a_label_counts_where_it_is_there_or_versions_are_declared() {
        let v2 = || "v2".parse().expect("a version");
        let rows = [
            (None, None, false, true),
            (Some("v2"), None, false, true),
            (Some("v2"), Some("v2"), false, true),
            (Some("v2"), Some("v1"), false, false),
            (Some("v2"), None, true, false),
            (Some("v2"), Some("v2"), true, true),
            (None, Some("v1"), true, true),
        ];
        for (version, label, declares, proven) in rows {
            let finding = spoilt(|world| {
                world.set = set("h1", version);
                if let Some(label) = label {
                    world.label(label);
                }
                world.supported = if declares { vec![v2()] } else { Vec::new() };
            });
            assert_eq!(finding == Finding::Proven, proven, "{version:?} {label:?} {declares}: {finding:?}");
        }
    }

    #[test]
    fn a_work_of_the_set_that_is_refused_now_is_failing() {
        let refused = Defect::Not { report: Report::Applied, message: "as was said".to_owned() };
        let finding = spoilt(|world| world.report(WORK_APPLIED, Some(("False", GENERATION))));
        assert_eq!(finding, Finding::Failing(second(refused)));
    }

    #[test]
    fn a_refused_work_of_another_set_says_nothing_about_this_one() {
        let finding = spoilt(|world| {
            world.report(WORK_APPLIED, Some(("False", GENERATION)));
            world.stamp(r#"{"hubs.example.com//one":"h0"}"#);
        });
        assert_eq!(finding.verdict(), Verdict::Moving);
    }

    #[test]
    fn an_add_on_without_health_is_well() {
        assert_eq!(spoilt(|world| world.say(AVAILABLE, None)), Finding::Proven);
        let ignored = spoilt(|world| {
            world.say(AVAILABLE, Some("False"));
            world.health = Health::DoesNotCount;
        });
        assert_eq!(ignored, Finding::Proven);
    }

    #[test]
    fn only_what_ran_the_set_turns_unhealthy() {
        let rows = [
            ("h1", Verdict::Proven, Verdict::Unhealthy),
            ("h1", Verdict::Unhealthy, Verdict::Unhealthy),
            ("h1", Verdict::Unsettled, Verdict::Unhealthy),
            ("h1", Verdict::Moving, Verdict::Moving),
            ("h1", Verdict::Failing, Verdict::Moving),
            ("h0", Verdict::Proven, Verdict::Moving),
        ];
        for (hash, former, expected) in rows {
            let finding = spoilt(|world| {
                world.remember(&set(hash, None), former);
                world.say(AVAILABLE, Some("Unknown"));
            });
            assert_eq!(finding.verdict(), expected, "{hash} {former:?}");
        }
        let lost = |available| {
            spoilt(|world| {
                world.remember(&set("h1", None), Verdict::Proven);
                world.works.clear();
                world.say(AVAILABLE, Some(available));
            })
        };
        assert_eq!(lost("False").verdict(), Verdict::Unhealthy, "whatever is going on with its works");
        assert_eq!(lost("True"), Finding::Moving(Obstacle::NoWorks));
    }

    #[test]
    fn a_hosted_add_on_needs_both_words() {
        let hosted = |status| {
            spoilt(|world| {
                world.addon.annotations_mut().insert(HOSTING_CLUSTER_ANNOTATION.to_owned(), "host".to_owned());
                world.say(HOSTING_MANIFEST_APPLIED, Some(status));
            })
        };
        assert_eq!(hosted("True"), Finding::Proven);
        assert_eq!(hosted("False").verdict(), Verdict::Moving);
    }
}
