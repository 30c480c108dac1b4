//! What the works of an add-on prove: that its cluster runs what it was given, or what is still in the way.

use std::fmt;

use drover_api::{
    addon::ManagedClusterAddOn,
    grammar::Version,
    names::{ADDON_VERSION_LABEL, AVAILABLE, HOSTING_CLUSTER_ANNOTATION, HOSTING_MANIFEST_APPLIED, MANIFEST_APPLIED},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::ResourceExt;

use crate::{
    cluster::availability::UNREACHABLE,
    condition::{self, Holds},
    revision::{
        Set,
        hashes::{self, Difference},
        markers::{Proof, Verdict},
    },
    template::{AddOnWork, Expected, Lag, ReportedCondition, work_prefix},
    words::excerpt,
};

/// What is known of an add-on on one cluster.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The add-on on the cluster, as it is stored.
    pub addon: &'a ManagedClusterAddOn,
    /// All works that carry the add-on's label.
    pub works: &'a [&'a AddOnWork],
    /// What the cluster was given, with what a user has asked for instead.
    pub set: &'a Set,
    /// The versions that the add-on can be installed in, if it declares any.
    pub supported_versions: &'a [Version],
    /// Whether the add-on has to be well.
    pub health: Health,
    /// Who makes the works.
    pub maker: Maker<'a>,
}

/// Who makes the works of an add-on.
#[derive(Clone, Copy, Debug)]
pub enum Maker<'a> {
    /// A manager of its own, which says so on the add-on.
    Manager,
    /// The hub, from a template: they are to be these, and no others.
    Template(&'a [Expected]),
    /// The hub, from a template; but as they are nobody would make them now, so that they stay.
    Former,
    /// The hub, from a template, as soon as it gets to it.
    NotYet,
    /// Nobody: the template can not be rendered, because of this.
    Nobody(&'a str),
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
    /// The works can not be made.
    NotMade(String),
    /// The cluster does not answer.
    Unreachable,
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
            Self::Awaited(_) | Self::NoWorks | Self::NotMade(_) | Self::Unreachable | Self::NotApplied { .. } => false,
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
    /// It was made from another set, though the configurations are the same.
    OtherSet(String),
    /// It was made for another version of the add-on.
    OtherVersion {
        /// The version in its label.
        label: Option<String>,
        /// The version that it has to be.
        wanted: Version,
    },
    /// It is not there, or on its way out.
    NotThere,
    /// Somebody has changed what it applies.
    Altered,
    /// It holds what another work has yet to apply.
    Holds,
    /// It is of another set, and has to go.
    Surplus,
    /// What it deploys does not run the set yet.
    Lags {
        /// What it deploys.
        workload: String,
        /// In which way; nothing if it was not heard of.
        lag: Option<Lag>,
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
    fn of(self, work: &AddOnWork) -> Option<&ReportedCondition> {
        match self {
            Self::Applied => work.applied(),
            Self::Available => work.available(),
        }
    }
}

/// How the cluster stands to the set that it was given. Nothing but works that were made from that very set counts, neither as
/// success nor as failure.
#[must_use]
pub fn prove(evidence: &Evidence<'_>) -> Finding {
    if let Maker::Nobody(why) = evidence.maker {
        return Finding::Failing(Obstacle::NotMade(why.to_owned()));
    }
    // Who ran it is unhealthy when it says so, whatever is going on with its works.
    let not_well = evidence.not_well();
    let sick = not_well.as_ref().filter(|obstacle| obstacle.is_of_health() && evidence.has_run());
    if let (None, Some(refused)) = (sick, evidence.refused()) {
        return Finding::Failing(refused);
    }
    let obstacle = if evidence.has_run() {
        not_well.or_else(|| evidence.unfinished())
    } else {
        evidence.unfinished().or(not_well)
    };
    obstacle.map_or(Finding::Proven, |obstacle| evidence.not_there(obstacle))
}

/// A stored proof as the reports of now show it. What is stored may be older than they are: after a
/// failover, and until the add-on's conditions are written again. A cluster that was verified and
/// reports a failure by now does not count as verified; that it recovered counts once it is stored.
#[must_use]
pub fn current(stored: Proof, evidence: &Evidence<'_>, now: Timestamp) -> Proof {
    let is_good = matches!(stored.verdict, Verdict::Proven | Verdict::Unsettled);
    if !is_good || stored.set != evidence.set.fingerprint() {
        return stored;
    }
    match prove(evidence).verdict() {
        Verdict::Proven => stored,
        found => Proof::follow(Some(&stored), stored.set.clone(), found, now),
    }
}

impl<'a> Evidence<'a> {
    /// What something in the way means: that the cluster is not there yet, or that it was and is no longer well.
    fn not_there(&self, obstacle: Obstacle) -> Finding {
        if obstacle.is_of_health() && self.health == Health::Counts && self.has_run() {
            return Finding::Unhealthy(obstacle);
        }
        Finding::Moving(obstacle)
    }

    /// The works that make the add-on run. Those that clean up before it goes say nothing about that, nor do those that somebody has
    /// added to what a template makes.
    fn works(&self) -> impl Iterator<Item = &'a AddOnWork> {
        let name = self.addon.name_any();
        let (hook, rendered) = (format!("addon-{name}-pre-delete"), work_prefix(&name));
        let is_managed = matches!(self.maker, Maker::Manager);
        self.works.iter().copied().filter(move |work| {
            let name = work.name_any();
            if is_managed { !name.starts_with(&hook) } else { name.starts_with(&rendered) }
        })
    }

    /// A work that was made from the set, and could not be applied.
    fn refused(&self) -> Option<Obstacle> {
        let mut made = self.works().filter(|work| self.other(work).is_none());
        made.find_map(|work| Some(of(work, refusal(work)?)))
    }

    /// What is still to be done.
    fn unfinished(&self) -> Option<Obstacle> {
        match self.maker {
            Maker::Manager => self.unmanaged(),
            Maker::Template(expected) => {
                self.unlike(expected).or_else(|| self.unready()).or_else(|| self.lags(expected))
            }
            Maker::Former => self.unlike_former().or_else(|| self.unready()).or_else(|| self.former_lags()),
            Maker::NotYet | Maker::Nobody(_) => Some(Obstacle::NoWorks),
        }
    }

    /// In what the works differ from those that are to be there.
    fn unlike(&self, expected: &[Expected]) -> Option<Obstacle> {
        let unlike = expected.iter().find_map(|expected| {
            let name = expected.name.clone();
            let work = self.works().find(|work| work.name_any() == name);
            let defect = match work.filter(|work| !work.is_leaving()) {
                None => Some(Defect::NotThere),
                Some(work) => self.other(work).or_else(|| altered(work, expected)),
            };
            defect.map(|defect| Obstacle::Work { name, defect })
        });
        let is_surplus = |work: &&AddOnWork| !expected.iter().any(|expected| expected.name == work.name_any());
        unlike.or_else(|| self.works().find(is_surplus).map(|work| of(work, Defect::Surplus)))
    }

    /// In what the works differ from what another Drover has made of the set. It has counted them; one that it did not get to is missing.
    fn unlike_former(&self) -> Option<Obstacle> {
        let set = self.set.fingerprint();
        let other_set = |work: &'a AddOnWork| {
            let other = work.revision().filter(|other| *other != set.as_str())?;
            Some(of(work, Defect::OtherSet(other.to_owned())))
        };
        self.none()
            .or_else(|| self.made_otherwise())
            .or_else(|| self.works().find_map(other_set))
            .or_else(|| self.not_got_to())
    }

    /// A work that is missing of those that were counted.
    fn not_got_to(&self) -> Option<Obstacle> {
        let prefix = work_prefix(&self.addon.name_any());
        let counts = self.works().filter_map(AddOnWork::count);
        let mut names = (0..counts.max().unwrap_or_default()).map(|number| format!("{prefix}{number}"));
        let missing = names.find(|name| !self.works().any(|work| work.name_any() == *name && !work.is_leaving()));
        missing.map(|name| Obstacle::Work { name, defect: Defect::NotThere })
    }

    /// What the works that another Drover has made deploy and does not run the set yet, as far as it says so itself: nobody knows any more
    /// what it has to be. What reports without a stamp is not kept up with its manifest.
    fn former_lags(&self) -> Option<Obstacle> {
        let set = self.set.fingerprint();
        let is_asked = |work: &&AddOnWork| self.has_to_show() && work.revision().is_some();
        self.works().filter(is_asked).find_map(|work| {
            let mut workloads = work.vitals().iter().filter(|vitals| vitals.is_stamped_or_silent());
            let (vitals, lag) = workloads.find_map(|vitals| vitals.lag(&set).map(|lag| (vitals, lag)))?;
            Some(of(work, Defect::Lags { workload: vitals.to_string(), lag: Some(lag) }))
        })
    }

    /// Whether workloads have yet to show that they run the set. Who has run it has shown that already, and is well or not from then on.
    fn has_to_show(&self) -> bool {
        self.health == Health::Counts && !self.has_run()
    }

    /// What the works deploy and does not run the set yet.
    fn lags(&self, expected: &[Expected]) -> Option<Obstacle> {
        let set = self.set.fingerprint();
        let is_asked = self.has_to_show();
        expected.iter().filter(|_| is_asked).find_map(|expected| {
            let work = self.works().find(|work| work.name_any() == expected.name)?;
            expected.workloads.iter().filter(|workload| workload.is_stamped).find_map(|workload| {
                let lag = match work.vitals().iter().find(|vitals| vitals.is_of(workload)) {
                    None => None,
                    Some(vitals) => Some(vitals.lag(&set)?),
                };
                Some(of(work, Defect::Lags { workload: workload.to_string(), lag }))
            })
        })
    }

    fn none(&self) -> Option<Obstacle> {
        self.works().next().is_none().then_some(Obstacle::NoWorks)
    }

    fn made_otherwise(&self) -> Option<Obstacle> {
        self.works().find_map(|work| Some(of(work, self.other(work)?)))
    }

    fn unready(&self) -> Option<Obstacle> {
        self.works().find_map(|work| Some(of(work, unready(work)?)))
    }

    /// What is still to be done where a manager makes the works, in the order in which OCM looks at it.
    fn unmanaged(&self) -> Option<Obstacle> {
        self.awaited()
            .or_else(|| self.none())
            .or_else(|| self.made_otherwise())
            .or_else(|| self.unready())
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
    fn other(&self, work: &AddOnWork) -> Option<Defect> {
        hashes::difference(self.set, work.hashes()).map(Defect::OtherConfigs).or_else(|| self.other_version(work))
    }

    fn other_version(&self, work: &AddOnWork) -> Option<Defect> {
        let wanted = self.set.version()?;
        let label = work.version();
        let says_nothing = label.is_none() && self.supported_versions.is_empty();
        let is_wanted = label.is_some_and(|label| label == wanted.as_str());
        let other = || Defect::OtherVersion { label: label.map(str::to_owned), wanted: wanted.clone() };
        (!says_nothing && !is_wanted).then(other)
    }

    fn not_well(&self) -> Option<Obstacle> {
        let said = find(self.conditions(), AVAILABLE).filter(|_| self.health == Health::Counts)?;
        let available = condition::holds(self.conditions(), AVAILABLE)?;
        match available {
            Holds::Yes => None,
            // Who is not heard of is not unhealthy for that, nor is who has just been heard of again and has said nothing yet.
            Holds::Unknown if said.reason == UNREACHABLE => Some(Obstacle::Unreachable),
            available => Some(Obstacle::NotWell { available, message: excerpt(&said.message) }),
        }
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

fn of(work: &AddOnWork, defect: Defect) -> Obstacle {
    Obstacle::Work { name: work.name_any(), defect }
}

/// That a work does not apply what it is to apply in the end.
fn altered(work: &AddOnWork, expected: &Expected) -> Option<Defect> {
    let defect = if expected.is_holding(work) { Defect::Holds } else { Defect::Altered };
    (work.digest() != expected.digest).then_some(defect)
}

/// That the work could not be applied in its present form.
fn refusal(work: &AddOnWork) -> Option<Defect> {
    let applied = work.applied().filter(|applied| applied.status == Holds::No)?;
    is_current(work, applied).then(|| Defect::Not { report: Report::Applied, message: applied.message.to_string() })
}

fn unready(work: &AddOnWork) -> Option<Defect> {
    [Report::Applied, Report::Available].into_iter().find_map(|report| match report.of(work) {
        None => Some(Defect::NotReported(report)),
        Some(said) if !is_current(work, said) => Some(Defect::Outdated(report)),
        Some(said) if said.status == Holds::Yes => None,
        Some(said) => Some(Defect::Not { report, message: said.message.to_string() }),
    })
}

fn is_current(work: &AddOnWork, said: &ReportedCondition) -> bool {
    said.observed_generation.unwrap_or_default() == work.generation().unwrap_or_default()
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
            Self::NotMade(why) => f.write_str(why),
            Self::Unreachable => f.write_str("its cluster does not answer"),
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
            Self::OtherSet(set) => write!(f, "was made from the set {set}"),
            Self::OtherVersion { label: Some(label), wanted } => write!(f, "is for version {label}, not {wanted}"),
            Self::OtherVersion { label: None, wanted } => {
                write!(f, "does not say that it is for version {wanted}, by the label {ADDON_VERSION_LABEL}")
            }
            Self::NotThere => f.write_str("is not there"),
            Self::Altered => f.write_str("was changed by somebody else"),
            Self::Holds => f.write_str("still holds what another work has yet to apply"),
            Self::Surplus => f.write_str("has to go first"),
            Self::Lags { workload, lag: Some(lag) } => write!(f, "deploys {workload}, which {lag}"),
            Self::Lags { workload, lag: None } => write!(f, "deploys {workload}, of which nothing was reported yet"),
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
mod tests;
