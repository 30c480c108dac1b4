//! The status of an add-on on one cluster: what it was given, what it has come to, and both in words.
//!
//! One call yields every field that the hub writes, so that one patch brings them all up to date. What others write stays as it is.

use drover_api::{
    addon::{ConfigGroupResource, ConfigReference, ConfigReferent, ConfigSpecHash, ManagedClusterAddOnStatus},
    drover::SetConfig,
    grammar::{SetFingerprint, SpecHash, Version},
    names::CONFIGURED,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use super::{
    beside::beside,
    progress::Finding,
    words::{self, Move, Sentence, State, Vocabulary, Wait},
};
use crate::{
    condition::{self, Holds, Says},
    member::Failure,
    revision::{
        Set,
        markers::{Given, Proof},
    },
};

/// What the status of an add-on on one cluster follows from.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The status that is stored.
    pub stored: Option<&'a ManagedClusterAddOnStatus>,
    /// In whose words it is to be said.
    pub vocabulary: Vocabulary,
    /// What the cluster was given, or why it was given nothing yet.
    pub turn: Turn<'a>,
    /// The types of configuration that a user asks for here and the add-on does not take. They are not used.
    pub unsupported: &'a [ConfigGroupResource],
    /// The version that is asked for here and does not exist. It is not used.
    pub invalid_version: Option<&'a Version>,
    /// Why what a user asks for here can not be had. The cluster keeps what it has.
    pub hindrance: Option<&'a str>,
    /// What is not known yet of what a user asks for here. The cluster keeps what it has until then.
    pub pending: Option<&'a str>,
    /// The versions that the add-on can be installed in; none where it can be any.
    pub supported_versions: &'a [Version],
}

/// Whether the cluster's turn has come.
#[derive(Clone, Copy)]
pub enum Turn<'a> {
    /// It was given nothing yet. Who was given something, and waits for the next, still has what it was given.
    Waits(Wait<'a>),
    /// It was given a set that nobody knows any more. It keeps what it has until it is given another.
    Forgotten(&'a SetFingerprint),
    /// It was given something.
    Come(Holding<'a>),
}

/// What a cluster was given, and what has come of it.
#[derive(Clone, Copy)]
pub struct Holding<'a> {
    /// The set that its placement gave it, and when.
    pub given: &'a Given,
    /// That set, with what a user has asked for instead.
    pub set: &'a Set,
    /// What its works prove of the latter.
    pub finding: &'a Finding,
    /// Whether it counts as failed.
    pub failure: Option<Failure>,
    /// The generation of a configuration's object, where it is known and the object still has the content that was given.
    pub generation: &'a dyn Fn(&SetConfig) -> Option<i64>,
}

/// The whole status of the add-on.
#[must_use]
pub fn status(facts: &Facts<'_>, now: Timestamp) -> ManagedClusterAddOnStatus {
    let nothing = ManagedClusterAddOnStatus::default();
    let before = facts.stored.unwrap_or(&nothing);
    let versions = Versions::follow(before, facts);
    let stage = facts.holding().map(|holding| stage(holding, facts.vocabulary, before));
    let sentence = sentence(facts, stage, movement(facts, before, &versions));
    let mut status = before.clone();
    status.conditions = configured(marked(before.conditions.clone(), facts, now), facts, now);
    status.conditions = words::progressing(status.conditions, &sentence, None, now);
    if let Some(holding) = facts.holding() {
        status.config_references = references(&before.config_references, holding, facts.vocabulary);
    }
    let says_version = facts.holding().is_some() || facts.invalid_version.is_some();
    if says_version && facts.vocabulary != Vocabulary::Ocm {
        versions.write(&mut status, stage == Some(Stage::Done) && facts.invalid_version.is_none());
    }
    status
}

impl<'a> Facts<'a> {
    fn holding(&self) -> Option<&Holding<'a>> {
        match &self.turn {
            Turn::Waits(_) | Turn::Forgotten(_) => None,
            Turn::Come(holding) => Some(holding),
        }
    }
}

/// What is said of the add-on. What a user has to correct goes before everything else.
fn sentence(facts: &Facts<'_>, stage: Option<Stage>, to: Move) -> Sentence {
    let obstacle = facts.holding().and_then(|holding| holding.finding.obstacle());
    let state = match (facts.unsupported, facts.invalid_version, facts.turn) {
        ([_, ..], _, _) => State::Unsupported(facts.unsupported),
        (_, Some(version), _) => State::Invalid(to, version),
        _ if facts.hindrance.is_some() => State::Hindered(to, facts.hindrance.unwrap_or_default()),
        _ if facts.pending.is_some() => State::Waits(to, Wait::For(facts.pending.unwrap_or_default())),
        (_, _, Turn::Waits(wait)) => State::Waits(to, wait),
        (_, _, Turn::Forgotten(set)) => State::Forgotten(to, set),
        (_, _, Turn::Come(_)) => match (stage, obstacle) {
            (Some(Stage::Failed(failure)), Some(obstacle)) => State::Failed(to, failure, obstacle),
            (Some(Stage::Moving), Some(obstacle)) => State::Moving(to, obstacle),
            _ => State::Done(to),
        },
    };
    let version = facts.holding().and_then(|holding| holding.set.version());
    words::of_addon(state, facts.vocabulary, version)
}

/// How far a cluster is with what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Moving,
    Done,
    Failed(Failure),
}

fn stage(holding: &Holding<'_>, vocabulary: Vocabulary, before: &ManagedClusterAddOnStatus) -> Stage {
    // A change that has ended well does not begin anew when a work is written again or is gone for a moment: whether the add-on is
    // well stands in another condition. OCM sees it otherwise.
    let has_ended = || {
        vocabulary != Vocabulary::Ocm
            && is_about(before, holding.set)
            && words::reason_in(&before.conditions).is_some_and(words::tells_success)
    };
    match (holding.finding, holding.failure) {
        (Finding::Proven, _) => Stage::Done,
        (_, Some(failure)) => Stage::Failed(failure),
        (_, None) if has_ended() => Stage::Done,
        (_, None) => Stage::Moving,
    }
}

/// Whether what is stored was said of this very set.
fn is_about(before: &ManagedClusterAddOnStatus, set: &Set) -> bool {
    Proof::read(&before.conditions).is_some_and(|proof| proof.set == set.fingerprint())
}

/// From what to what the add-on moves, or has moved.
fn movement(facts: &Facts<'_>, before: &ManagedClusterAddOnStatus, versions: &Versions) -> Move {
    let by_version = facts.vocabulary == Vocabulary::Version;
    let is_first = is_first(facts, before);
    match (&versions.last, &versions.wanted) {
        (Some(last), _) if last.is_unknown() && by_version => Move::Install,
        (Some(last), Some(wanted)) if !last.is_unknown() && (by_version || !is_first) => {
            if last > wanted {
                Move::Rollback
            } else {
                Move::Upgrade
            }
        }
        _ if is_first => Move::Install,
        _ => Move::Upgrade,
    }
}

/// Whether nothing was applied before what the cluster was given.
fn is_first(facts: &Facts<'_>, before: &ManagedClusterAddOnStatus) -> bool {
    let reason = words::reason_in(&before.conditions).unwrap_or_default();
    let is_still = facts.holding().is_some_and(|holding| is_about(before, holding.set));
    let has_run = |proof: Proof| proof.verdict.has_run();
    let was_applied = before.config_references.iter().any(|reference| last_applied(reference).is_some())
        || before.current_version.as_ref().is_some_and(|version| !version.is_unknown())
        || words::tells_installed(reason)
        || Proof::read(&before.conditions).is_some_and(has_run);
    (is_still && words::tells_install(reason)) || !was_applied
}

/// The versions of an add-on on one cluster.
struct Versions {
    wanted: Option<Version>,
    last: Option<Version>,
}

impl Versions {
    /// What is wanted now, and what was wanted before that.
    fn follow(before: &ManagedClusterAddOnStatus, facts: &Facts<'_>) -> Self {
        let given = || facts.holding().and_then(|holding| holding.set.version());
        let wanted = facts.invalid_version.or_else(given);
        let ran = before.current_version.as_ref().filter(|version| !version.is_unknown());
        let former = before.wanted_version.as_ref().or(ran);
        let is_known = |version: &&Version| {
            let supported = facts.supported_versions;
            supported.is_empty() || supported.contains(version) || ran == Some(version)
        };
        let last = match former {
            Some(former) if Some(former) != wanted => {
                Some(Some(former).filter(is_known).cloned().unwrap_or_else(Version::unknown))
            }
            _ => before.last_version.clone(),
        };
        Self { wanted: wanted.cloned(), last }
    }

    fn write(self, status: &mut ManagedClusterAddOnStatus, is_done: bool) {
        let runs = |wanted: &Version| if is_done { wanted.clone() } else { Version::unknown() };
        status.current_version = self.wanted.as_ref().map(runs);
        status.last_version = self.last;
        status.wanted_version = self.wanted;
    }
}

/// The conditions, with what the hub notes down for itself.
fn marked(conditions: Vec<Condition>, facts: &Facts<'_>, now: Timestamp) -> Vec<Condition> {
    let Some(holding) = facts.holding() else { return conditions };
    let former = Proof::read(&conditions);
    let proof = Proof::follow(former.as_ref(), holding.set.fingerprint(), holding.finding.verdict(), now);
    proof.write(holding.given.write(conditions))
}

/// The conditions, with the one that tells an add-on manager whether it may begin.
fn configured(conditions: Vec<Condition>, facts: &Facts<'_>, now: Timestamp) -> Vec<Condition> {
    let (holds, reason, message) = match facts.turn {
        Turn::Come(_) => (true, "ConfigurationsConfigured", "Configurations configured"),
        Turn::Waits(_) => (false, "ConfigurationsNotConfigured", "Configurations updated and not configured yet"),
        Turn::Forgotten(_) => return conditions,
    };
    // One that ran before this hub came keeps what it has while it waits.
    if !holds && condition::holds(&conditions, CONFIGURED) == Some(Holds::Yes) {
        return conditions;
    }
    let says = Says { type_: CONFIGURED, holds: holds.into(), reason, message, generation: None };
    condition::with(conditions, says, now)
}

/// The configurations that the cluster was given, each with what ran before in its place; or with itself, if it runs.
fn references(before: &[ConfigReference], holding: &Holding<'_>, vocabulary: Vocabulary) -> Vec<ConfigReference> {
    let configs = holding.set.configs();
    let ran: Vec<_> = before.iter().filter_map(last_applied).collect();
    let runs: Vec<_> = match holding.finding {
        Finding::Proven => configs.iter().map(|config| Some(&config.config)).collect(),
        _ => beside(configs, &ran),
    };
    let reference = |(config, runs): (&SetConfig, Option<&ConfigSpecHash>)| {
        let seen = before.iter().find(|reference| is_of(reference, config));
        // The generation of one content is not that of another.
        let seen = seen.filter(|reference| desired_hash(reference).is_none_or(|hash| *hash == config.config.spec_hash));
        let generation = seen.and_then(|reference| reference.last_observed_generation);
        let generation = generation.or_else(|| (holding.generation)(config));
        reference(config, runs, generation, vocabulary)
    };
    configs.iter().zip(runs).map(reference).collect()
}

fn reference(
    SetConfig { group_resource, config }: &SetConfig,
    runs: Option<&ConfigSpecHash>,
    generation: Option<i64>,
    vocabulary: Vocabulary,
) -> ConfigReference {
    let flat = |hash: &SpecHash| Some(hash.clone()).filter(|_| vocabulary != Vocabulary::Ocm);
    ConfigReference {
        group_resource: group_resource.clone(),
        namespace: config.referent.namespace.clone(),
        name: Some(config.referent.name.clone()),
        last_observed_generation: generation,
        desired_config: Some(config.clone()),
        last_applied_config: runs.cloned(),
        desired_config_spec_hash: flat(&config.spec_hash),
        last_applied_config_spec_hash: flat(runs.map_or(&SpecHash::Missing, |runs| &runs.spec_hash)),
    }
}

fn is_of(reference: &ConfigReference, config: &SetConfig) -> bool {
    reference.group_resource == config.group_resource && referent(reference).as_ref() == Some(&config.config.referent)
}

/// The object that a reference is about, in either shape.
fn referent(reference: &ConfigReference) -> Option<ConfigReferent> {
    let desired = reference.desired_config.as_ref().map(|desired| desired.referent.clone());
    let flat = || Some(ConfigReferent { namespace: reference.namespace.clone(), name: reference.name.clone()? });
    desired.or_else(flat)
}

/// The content that a reference asks for, in either shape.
fn desired_hash(reference: &ConfigReference) -> Option<&SpecHash> {
    let desired = reference.desired_config.as_ref().map(|desired| &desired.spec_hash);
    desired.or(reference.desired_config_spec_hash.as_ref())
}

/// What last ran, in either shape.
fn last_applied(reference: &ConfigReference) -> Option<SetConfig> {
    let flat = || {
        let spec_hash = reference.last_applied_config_spec_hash.clone()?;
        Some(ConfigSpecHash { referent: referent(reference)?, spec_hash })
    };
    let config = reference.last_applied_config.clone().or_else(flat).filter(|config| !config.spec_hash.is_missing())?;
    Some(SetConfig { group_resource: reference.group_resource.clone(), config })
}

#[cfg(test)]
mod tests;
