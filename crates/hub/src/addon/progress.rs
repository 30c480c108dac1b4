//! How far an add-on is on one cluster, found out from its works and told in its status.

use drover_api::{
    addon::{ConfigSpecHash, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    drover::{AddOnRollout, SetConfig},
    grammar::Version,
    reference::ClusterName,
};
use drover_engine::{
    addon::{
        configuration::{Own, Problem},
        mark::{Given, Proof},
        progress::{Evidence, Health, prove},
        rollout::{Failure, Hold, Standing},
        set::{Overrides, Set},
        status::{Facts, Holding, Turn, status},
        words::Wait,
    },
    explain::Reason,
};
use drover_runtime::write::Write;
use k8s_openapi::jiff::Timestamp;

use super::{Dialect, book::Pages, shelf::Shelf};
use crate::fleet::Fleet;

/// An add-on on one cluster, with everything that its status follows from.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) on_cluster: &'a ManagedClusterAddOn,
    pub(crate) shelf: &'a Shelf<'a>,
    pub(crate) dialect: Dialect,
    pub(crate) now: Timestamp,
}

/// What is known of an add-on's part in the rollouts.
struct Part {
    failure: Option<Failure>,
    /// What it waits for, if it has nothing.
    wait: Option<Hold>,
    /// The version that its placement asks for, and that does not exist.
    invalid_version: Option<Version>,
}

/// What a cluster has.
#[derive(Clone, Copy)]
enum Held<'a> {
    /// It was given nothing yet.
    Nothing,
    /// It was given a set that nobody remembers: of a hub that this one does not know, or of a rollout that was deleted.
    Forgotten(&'a Given),
    /// It was given a set.
    Set(&'a Given, &'a Set),
}

/// Gives an add-on a set, and tells of it in the same write.
pub(crate) fn given(subject: &Subject, given: &Given, set: &Set) -> Option<Write<Fleet>> {
    let own = subject.shelf.own(subject.on_cluster);
    let part = Part { failure: None, wait: None, invalid_version: None };
    subject.write(subject.status(Held::Set(given, set), own.as_ref(), &part)?)
}

/// Tells how far an add-on is.
pub(crate) fn told(subject: &Subject, record: &AddOnRollout, pages: &Pages) -> Option<Write<Fleet>> {
    let own = subject.shelf.own(subject.on_cluster);
    // What is not known yet is no reason to say anything else.
    if own.as_ref().is_some_and(|own| own.overrides == Err(Problem::TemplatesNotYet)) {
        return None;
    }
    let conditions = subject.on_cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let part = part(subject.on_cluster, pages);
    let given = Given::read(conditions);
    let mut sets = record.status.iter().flat_map(|status| &status.sets);
    let set = given.as_ref().and_then(|given| sets.find(|set| set.fingerprint == given.set)).map(Set::read);
    let held = match (&given, &set) {
        (None, _) => Held::Nothing,
        // What rollouts remember is not written down yet.
        (Some(_), None) if record.status.is_none() => return None,
        (Some(given), None) => Held::Forgotten(given),
        (Some(given), Some(set)) => Held::Set(given, set),
    };
    subject.write(subject.status(held, own.as_ref(), &part)?)
}

fn part(on_cluster: &ManagedClusterAddOn, pages: &Pages) -> Part {
    let cluster = ClusterName::from(on_cluster.metadata.namespace.as_deref().unwrap_or_default());
    let standing = pages.rollout.standing(&cluster);
    let failure = match standing {
        Some((_, Standing::Failed(failure))) => Some(*failure),
        _ => None,
    };
    let wait = match Reason::of(&cluster, &pages.rollout, &pages.courses) {
        Reason::Held(hold) => Some(hold),
        _ => None,
    };
    let problem = standing.and_then(|(entry, _)| pages.courses.get(entry)).and_then(|course| course.problem.as_ref());
    let invalid_version = problem.and_then(invalid_version);
    Part { failure, wait, invalid_version }
}

fn invalid_version(problem: &Problem) -> Option<Version> {
    match problem {
        Problem::UnsupportedVersion { version, .. } => Some(version.clone()),
        _ => None,
    }
}

impl Subject<'_> {
    /// The status of the add-on; nothing if there is nothing to say of it yet.
    fn status(&self, held: Held<'_>, own: Option<&Own>, part: &Part) -> Option<ManagedClusterAddOnStatus> {
        let own_problem = own.and_then(|own| own.overrides.as_ref().err());
        let own_version = own_problem.and_then(invalid_version);
        let invalid_version = own_version.or_else(|| part.invalid_version.clone());
        let unsupported = own.map(|own| own.unsupported.as_slice()).unwrap_or_default();
        // That nobody has looked yet is no failure.
        let (pending, hindrance) = match own_problem {
            Some(problem @ Problem::NotYet(_)) => (Some(problem.to_string()), None),
            problem => (None, problem.map(ToString::to_string)),
        };
        let facts = |turn, vocabulary| Facts {
            stored: self.on_cluster.status.as_ref(),
            vocabulary,
            turn,
            unsupported,
            invalid_version: invalid_version.as_ref(),
            hindrance: hindrance.as_deref(),
            pending: pending.as_deref(),
            supported_versions: self.shelf.supported(),
        };
        let (given, set) = match held {
            Held::Set(given, set) => (given, set),
            Held::Forgotten(given) => {
                return Some(status(&facts(Turn::Forgotten(&given.set), self.shelf.vocabulary(None)), self.now));
            }
            Held::Nothing => {
                let wait = part.wait.as_ref().map(Hold::in_short);
                let turn = match (&part.wait, &wait) {
                    (Some(Hold::Gate(_)), Some(text)) => Turn::Waits(Wait::ForCanary(text)),
                    (_, Some(text)) => Turn::Waits(Wait::For(text)),
                    _ if !unsupported.is_empty() || hindrance.is_some() => Turn::Waits(Wait::For("its turn")),
                    _ => return None,
                };
                return Some(status(&facts(turn, self.shelf.vocabulary(None)), self.now));
            }
        };
        let effective = self.effective(set, own);
        let works = self.fleet.addons.works_of(self.on_cluster);
        let health = if self.dialect == Dialect::Ocm { Health::DoesNotCount } else { Health::Counts };
        let evidence = Evidence {
            addon: self.on_cluster,
            works: &works,
            set: &effective,
            supported_versions: self.shelf.supported(),
            health,
        };
        let finding = prove(&evidence);
        let generation = |config: &SetConfig| self.shelf.generation(config);
        let holding =
            Holding { given, set: &effective, finding: &finding, failure: part.failure, generation: &generation };
        Some(status(&facts(Turn::Come(holding), self.shelf.vocabulary(Some(&effective))), self.now))
    }

    /// What the cluster is to run: what it was given, with what a user has asked for instead. If that can not be had, it keeps what it has,
    /// unless the add-on's manager can tell.
    fn effective(&self, set: &Set, own: Option<&Own>) -> Set {
        let Some(own) = own else { return set.clone() };
        match (&own.overrides, &own.listed) {
            (Ok(overrides), _) | (Err(_), Some(overrides)) => set.with(overrides),
            (Err(_), None) => set.with(&self.kept(set)),
        }
    }

    /// What differs on the cluster from the set that it was given.
    fn kept(&self, set: &Set) -> Overrides {
        let mut kept = Overrides::default();
        let status = self.on_cluster.status.as_ref();
        for reference in status.into_iter().flat_map(|status| &status.config_references) {
            let is_of_set =
                set.configs().iter().any(|config| Some(&config.config) == reference.desired_config.as_ref());
            let is_known = |desired: &ConfigSpecHash| !is_of_set && !desired.spec_hash.is_missing();
            if let Some(desired) = reference.desired_config.clone().filter(is_known) {
                kept.configs.entry(reference.group_resource.clone()).or_default().push(desired);
            }
        }
        kept.version = self.kept_version(&set.with(&kept));
        kept
    }

    /// The version that the cluster has, if it is not that of the set: the one that makes the set what the cluster's works were last
    /// measured by.
    fn kept_version(&self, set: &Set) -> Option<Version> {
        let status = self.on_cluster.status.as_ref()?;
        let last = Proof::read(&status.conditions)?.set;
        let known = self.shelf.supported().iter().chain(&status.current_version).chain(&status.last_version);
        let is_it = |version: &&Version| {
            let overrides = Overrides { version: Some((*version).clone()), ..Overrides::default() };
            set.with(&overrides).fingerprint() == last
        };
        known.into_iter().find(is_it).cloned()
    }

    fn write(&self, status: ManagedClusterAddOnStatus) -> Option<Write<Fleet>> {
        let mut wanted = self.on_cluster.clone();
        wanted.status = Some(status);
        Write::status(self.on_cluster, &wanted)
    }
}
