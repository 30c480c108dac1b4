//! One add-on on one cluster: what is written so that it runs the revision that the cluster was
//! assigned, and what its status reports.

use std::borrow::Cow;

use drover_api::{
    addon::{ClusterManagementAddOn, ConfigSpecHash, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    drover::{AddOnRollout, SetConfig},
    grammar::{SetFingerprint, Version},
    reference::ClusterName,
    work::ManifestWork,
};
use k8s_openapi::jiff::Timestamp;

use super::{
    assignment::{Assignment, assigned},
    configuration::{Own, Problem},
    entries::listed,
    facts::{AddOnFacts, Deployment},
    inheritance::{inherited, is_managed},
    permission::AgentBindings,
    progress::{Evidence, Health, Maker, prove},
    render_state::RenderState,
    report::{Report, reachable},
    resolver::ConfigResolver,
    status::{Facts, Holding, Turn, status},
    words::Wait,
};
use crate::{
    dialect::Dialect,
    member::{Blocker, BlockerKind, Failure, MemberState},
    plan::{Controller, ObjectKey, Plan, PlanPart, PlanStep, Write, WriteResult, could_not},
    registration::permission::Registered,
    revision::{
        Overrides, Set,
        markers::{Given, Proof},
    },
    rollout::Snapshot,
    tracker::Rejections,
};

/// The works of a revision that were last written for an add-on on a cluster; `None` when all are as
/// they should be.
pub type WorkAttempt = Option<WrittenWorks>;

/// The works that were last written for an add-on on a cluster.
#[derive(Clone, Debug)]
pub struct WrittenWorks {
    /// The revision that they are of. A rejection says nothing about the next.
    revision: SetFingerprint,
    /// Those of them that the server has rejected.
    rejections: Rejections,
}

/// Plans what is written about an add-on on one cluster.
pub fn plan<F: AddOnFacts>(facts: &F, key: &ObjectKey, last: &mut WorkAttempt, now: Timestamp) -> Plan<F::Action> {
    let Some(on_cluster) = facts.on_cluster(key).filter(|addon| addon.metadata.deletion_timestamp.is_none()) else {
        *last = None;
        // The permissions of its agent are removed with it.
        return Plan { enqueue: vec![(Controller::Permission, key.clone())], ..Plan::default() };
    };
    let addon_key = ObjectKey::cluster_wide(&key.name);
    let Some(addon) = facts.addon(&addon_key) else { return Plan::default() };
    if addon.metadata.deletion_timestamp.is_some() || !is_managed(addon) {
        return Plan::default();
    }
    let snapshot = facts.snapshot(&addon_key);
    let record = facts.rollout(&addon_key);
    let steps = record.zip(snapshot).map(|(record, snapshot)| {
        let resolver = ConfigResolver::of(facts, addon);
        let rejection = |revision: &SetFingerprint| {
            last.as_ref().filter(|it| it.revision == *revision)?.rejections.first().map(str::to_owned)
        };
        ClusterPlanner { facts, on_cluster, resolver: &resolver, now }.steps(record, snapshot, &rejection)
    });
    let Steps { status, writes, creations, revision, enqueue } = steps.unwrap_or_default();
    note_attempt(last, revision);
    // An object cannot be written twice in one plan: its spec comes before its status.
    let write = with_inheritance(facts, key, on_cluster, addon, snapshot).or(status);
    Plan { ordered: write.into_iter().collect(), parallel: writes, actions: creations, enqueue, ..Plan::default() }
}

/// Records what a part of the last plan came to.
pub fn sent<A: PlanStep>(last: &mut WorkAttempt, part: PlanPart<'_, A>, result: &WriteResult) {
    let Some(attempt) = last else { return };
    let why = match part {
        PlanPart::Write(write) if write.kind().is::<ManifestWork>() => {
            result.objection().map(|why| could_not(write, why))
        }
        PlanPart::Action(action) => result.objection().map(|why| could_not(action, why)),
        PlanPart::Write(_) | PlanPart::Event(_) => return,
    };
    if let Some(work) = part.object() {
        attempt.rejections.record_as(work, why, result);
    }
}

/// Notes which works are written now: none if all are as they should be.
fn note_attempt(last: &mut WorkAttempt, revision: Option<SetFingerprint>) {
    if last.as_ref().map(|attempt| &attempt.revision) != revision.as_ref() {
        *last = revision.map(|revision| WrittenWorks { revision, rejections: Rejections::default() });
    }
}

/// Gives an add-on what it inherits from its ClusterManagementAddOn, its cluster and its placement;
/// `None` if it has all of it.
pub fn with_inheritance<F: AddOnFacts>(
    facts: &F,
    key: &ObjectKey,
    on_cluster: &ManagedClusterAddOn,
    addon: &ClusterManagementAddOn,
    snapshot: Option<&Snapshot<Set>>,
) -> Option<Write> {
    let cluster = facts.cluster(&ClusterName::from(&*key.namespace));
    let inherited = inherited(on_cluster, addon, cluster);
    let assignment =
        snapshot.and_then(|snapshot| assignment(facts, key, on_cluster, addon, snapshot)).unwrap_or(Assignment::Stays);
    Write::update(on_cluster, &assigned(&inherited, &assignment))
}

/// The version that a cluster was assigned, if the template of its placement's add-ons asks for one.
/// `None` if nothing decides for the cluster, or its revision is not known: nothing is removed then.
fn assignment<F: AddOnFacts>(
    facts: &F,
    key: &ObjectKey,
    on_cluster: &ManagedClusterAddOn,
    addon: &ClusterManagementAddOn,
    snapshot: &Snapshot<Set>,
) -> Option<Assignment> {
    let entry = snapshot.entry(&ClusterName::from(&*key.namespace))?;
    let Some(placement) = entry.source.placement() else {
        return Some(Assignment::Nothing);
    };
    let entry = listed(addon).iter().find(|entry| entry.placement == *placement)?;
    if entry.addon_template.as_ref().is_none_or(|template| template.version().is_none()) {
        return Some(Assignment::Nothing);
    }
    let (_, revision) = assigned_revision(on_cluster, facts.rollout(&ObjectKey::cluster_wide(&key.name))?)?;
    Some(revision?.version().cloned().map_or(Assignment::Nothing, Assignment::Version))
}

/// How the works of an add-on on one cluster come about, as far as that is known; `None` if the
/// revision that it was assigned is not known.
pub fn render_state<F: AddOnFacts>(facts: &F, on_cluster: &ManagedClusterAddOn, now: Timestamp) -> Option<RenderState> {
    let key = ObjectKey::cluster_wide(on_cluster.metadata.name.as_deref()?);
    let addon = facts.addon(&key).filter(|addon| is_managed(addon))?;
    let resolver = ConfigResolver::of(facts, addon);
    let subject = ClusterPlanner { facts, on_cluster, resolver: &resolver, now };
    let (_, revision) = assigned_revision(on_cluster, facts.rollout(&key)?)?;
    let effective = subject.effective(&revision?, resolver.own(on_cluster).as_ref());
    Some(facts.render_state(on_cluster, &effective))
}

/// What an add-on on a cluster was assigned, and that revision, if it is recorded.
fn assigned_revision(on_cluster: &ManagedClusterAddOn, record: &AddOnRollout) -> Option<(Given, Option<Set>)> {
    let given = Given::read(&on_cluster.status.as_ref()?.conditions)?;
    let mut sets = record.status.iter().flat_map(|status| &status.sets);
    let set = sets.find(|set| set.fingerprint == given.set).map(Set::read);
    Some((given, set))
}

/// Whether add-ons have to be available before they count as updated.
pub(super) fn health(dialect: Dialect) -> Health {
    if dialect == Dialect::Ocm { Health::DoesNotCount } else { Health::Counts }
}

/// An add-on on one cluster, with what its status follows from.
pub(super) struct ClusterPlanner<'a, F> {
    pub(super) facts: &'a F,
    pub(super) on_cluster: &'a ManagedClusterAddOn,
    pub(super) resolver: &'a ConfigResolver<'a, F>,
    pub(super) now: Timestamp,
}

/// The state of an add-on's cluster in the rollouts.
struct RolloutState {
    failure: Option<Failure>,
    /// What it waits for, unless that is its turn in the window.
    wait: Option<Blocker>,
    /// The version that its placement asks for, and that does not exist.
    invalid_version: Option<Version>,
}

/// What a cluster was assigned.
#[derive(Clone, Copy)]
enum Held<'a> {
    /// Nothing yet.
    Nothing,
    /// A revision that is not recorded: by another hub, or by a rollout that was deleted.
    Forgotten(&'a Given),
    /// A revision.
    Revision(AssignedRevision<'a>),
}

/// A revision that a cluster was assigned.
#[derive(Clone, Copy)]
struct AssignedRevision<'a> {
    given: &'a Given,
    /// The revision, with what a user overrides.
    set: &'a Set,
    state: &'a RenderState,
    /// The namespace that the agent runs in, if it is known.
    namespace: Option<&'a str>,
    /// Why the server has rejected a work, if it has.
    rejection: Option<&'a str>,
    registered: Option<Registered<'a>>,
}

impl<'a> AssignedRevision<'a> {
    /// Who creates the works. Works that the server rejects do not exist.
    fn maker(&self) -> Maker<'a> {
        self.rejection.map_or_else(|| self.state.maker(), Maker::Nobody)
    }
}

/// What is to be done about an add-on on one cluster.
struct Steps<A> {
    /// Writes its status; `None` if nothing changes.
    status: Option<Write>,
    /// Changes and deletes works.
    writes: Vec<Write>,
    /// Creates works.
    creations: Vec<A>,
    /// The revision of these works, if there are any, with what a user overrides.
    revision: Option<SetFingerprint>,
    /// The keys of other controllers that depend on what was rendered.
    enqueue: Vec<(Controller, ObjectKey)>,
}

impl<A> Default for Steps<A> {
    fn default() -> Self {
        Self { status: None, writes: Vec::new(), creations: Vec::new(), revision: None, enqueue: Vec::new() }
    }
}

impl<F: AddOnFacts> ClusterPlanner<'_, F> {
    /// Assigns a revision, and reports it in the same write.
    pub(super) fn assign(&self, given: &Given, set: &Set) -> Option<Write> {
        let own = self.resolver.own(self.on_cluster);
        let rollout = RolloutState { failure: None, wait: None, invalid_version: None };
        let effective = self.effective(set, own.as_ref());
        let state = self.facts.render_state(self.on_cluster, &effective);
        // What is known before anything is rendered is reported at once, so that it needs no write of its own.
        let namespace = self.facts.install_namespace(self.on_cluster, &effective, &state);
        let registers = state.blueprint().is_none_or(|blueprint| !blueprint.registrations().is_empty());
        let registered = (!registers).then_some(Registered::NotNeeded);
        let namespace = namespace.as_deref();
        let revision =
            AssignedRevision { given, set: &effective, state: &state, namespace, rejection: None, registered };
        self.write(self.status(Held::Revision(revision), own.as_ref(), &rollout)?)
    }

    /// Reports the state of the add-on, and brings its works to the revision that it was assigned.
    /// `rejection` says why the server has rejected a work of a revision, if it has.
    fn steps(
        &self,
        record: &AddOnRollout,
        snapshot: &Snapshot<Set>,
        rejection: &dyn Fn(&SetFingerprint) -> Option<String>,
    ) -> Steps<F::Action> {
        let own = self.resolver.own(self.on_cluster);
        // What is not known yet is no reason to report anything else.
        if own.as_ref().is_some_and(|own| own.overrides == Err(Problem::TemplatesNotYet)) {
            return Steps::default();
        }
        let rollout = RolloutState::of(self.on_cluster, snapshot);
        let report = |held: Held<'_>| self.write(self.status(held, own.as_ref(), &rollout)?);
        match assigned_revision(self.on_cluster, record) {
            None => Steps { status: report(Held::Nothing), ..Steps::default() },
            // The record is not written yet.
            Some((_, None)) if record.status.is_none() => Steps::default(),
            Some((given, None)) => Steps { status: report(Held::Forgotten(&given)), ..Steps::default() },
            Some((given, Some(set))) => {
                let effective = self.effective(&set, own.as_ref());
                let Deployment { state, writes, creations } = self.facts.deploy(self.on_cluster, &effective);
                let bindings = AgentBindings::rendered(self.facts, self.on_cluster, &state);
                let is_unbound = bindings.as_ref().is_some_and(|bindings| !bindings.writes().is_empty());
                let permission = is_unbound.then(|| (Controller::Permission, ObjectKey::of(self.on_cluster)));
                let registered = bindings.as_ref().and_then(AgentBindings::registered);
                let has_works = !writes.is_empty() || !creations.is_empty();
                let revision = has_works.then(|| effective.fingerprint());
                let rejection = revision.as_ref().and_then(rejection);
                let held = AssignedRevision {
                    given: &given,
                    set: &effective,
                    state: &state,
                    namespace: state.namespace(),
                    rejection: rejection.as_deref(),
                    registered,
                };
                let status = report(Held::Revision(held));
                Steps { status, writes, creations, revision, enqueue: permission.into_iter().collect() }
            }
        }
    }

    /// The status of the add-on; `None` if there is nothing to report yet.
    fn status(&self, held: Held<'_>, own: Option<&Own>, rollout: &RolloutState) -> Option<ManagedClusterAddOnStatus> {
        let own_problem = own.and_then(|own| own.overrides.as_ref().err());
        let own_version = own_problem.and_then(invalid_version);
        let invalid_version = own_version.or_else(|| rollout.invalid_version.clone());
        let unsupported = own.map(|own| own.unsupported.as_slice()).unwrap_or_default();
        // A configuration that has not been listed yet is no failure.
        let (pending, hindrance) = match own_problem {
            Some(problem @ Problem::NotYet(_)) => (Some(problem.to_string()), None),
            problem => (None, problem.map(ToString::to_string)),
        };
        let on_cluster = self.reported(&held);
        let facts = |turn, vocabulary| Facts {
            stored: on_cluster.status.as_ref(),
            vocabulary,
            turn,
            unsupported,
            invalid_version: invalid_version.as_ref(),
            hindrance: hindrance.as_deref(),
            pending: pending.as_deref(),
            supported_versions: self.resolver.supported(),
        };
        let revision = match held {
            Held::Revision(revision) => revision,
            Held::Forgotten(given) => {
                return Some(status(&facts(Turn::Forgotten(&given.set), self.resolver.vocabulary(None)), self.now));
            }
            Held::Nothing => {
                let turn = match &rollout.wait {
                    Some(gate) if gate.kind == BlockerKind::Gate => Turn::Waits(Wait::ForCanary(&gate.summary)),
                    Some(blocker) => Turn::Waits(Wait::For(&blocker.summary)),
                    _ if !unsupported.is_empty() || hindrance.is_some() => Turn::Waits(Wait::For("its turn")),
                    _ => return on_cluster.into_owned().status,
                };
                return Some(status(&facts(turn, self.resolver.vocabulary(None)), self.now));
            }
        };
        let AssignedRevision { given, set, .. } = revision;
        let works = self.facts.works_of(self.on_cluster);
        let evidence = Evidence {
            addon: &on_cluster,
            works: &works,
            set,
            supported_versions: self.resolver.supported(),
            health: health(self.facts.dialect()),
            maker: revision.maker(),
        };
        let finding = prove(&evidence);
        let generation = |config: &SetConfig| self.resolver.generation(config);
        let holding = Holding { given, set, finding: &finding, failure: rollout.failure, generation: &generation };
        Some(status(&facts(Turn::Come(holding), self.resolver.vocabulary(Some(set))), self.now))
    }

    /// The add-on, with what the hub reports of it in place of a manager, and of whether its cluster is
    /// reachable.
    fn reported(&self, held: &Held<'_>) -> Cow<'_, ManagedClusterAddOn> {
        let cluster = self.facts.cluster(&self.cluster());
        let mut status = self.on_cluster.status.clone().unwrap_or_default();
        if let Held::Revision(revision) = held
            && !matches!(revision.state, RenderState::ByManager)
        {
            let works = self.facts.works_of(self.on_cluster);
            let report = Report {
                on_cluster: self.on_cluster,
                blueprint: revision.state.blueprint().map(|blueprint| &**blueprint),
                namespace: revision.namespace,
                maker: revision.maker(),
                works: &works,
                cluster,
                registered: revision.registered,
                dialect: self.facts.dialect(),
            };
            status = report.written(status, self.now);
        }
        if let Some(cluster) = cluster {
            status.conditions = reachable(status.conditions, cluster, self.now);
        }
        if self.on_cluster.status.clone().unwrap_or_default() == status {
            return Cow::Borrowed(self.on_cluster);
        }
        Cow::Owned(ManagedClusterAddOn { status: Some(status), ..self.on_cluster.clone() })
    }

    fn cluster(&self) -> ClusterName {
        ClusterName::from(self.on_cluster.metadata.namespace.as_deref().unwrap_or_default())
    }

    /// What the cluster should run: the revision that it was assigned, with what a user overrides. If an
    /// override is invalid, the cluster keeps what it has, unless the add-on's manager knows better.
    fn effective(&self, set: &Set, own: Option<&Own>) -> Set {
        let Some(own) = own else { return set.clone() };
        match (&own.overrides, &own.listed) {
            (Ok(overrides), _) | (Err(_), Some(overrides)) => set.with(overrides),
            (Err(_), None) => set.with(&self.kept(set)),
        }
    }

    /// What differs on the cluster from the revision that it was assigned.
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

    /// The version that the cluster runs, if it is not that of the revision: the one with which the
    /// revision is what the cluster's works were last verified against.
    fn kept_version(&self, set: &Set) -> Option<Version> {
        let status = self.on_cluster.status.as_ref()?;
        let last = Proof::read(&status.conditions)?.set;
        let known = self.resolver.supported().iter().chain(&status.current_version).chain(&status.last_version);
        let is_it = |version: &&Version| {
            let overrides = Overrides { version: Some((*version).clone()), ..Overrides::default() };
            set.with(&overrides).fingerprint() == last
        };
        known.into_iter().find(is_it).cloned()
    }

    fn write(&self, status: ManagedClusterAddOnStatus) -> Option<Write> {
        let mut wanted = self.on_cluster.clone();
        wanted.status = Some(status);
        Write::status(self.on_cluster, &wanted)
    }
}

impl RolloutState {
    fn of(on_cluster: &ManagedClusterAddOn, snapshot: &Snapshot<Set>) -> Self {
        let cluster = ClusterName::from(on_cluster.metadata.namespace.as_deref().unwrap_or_default());
        let (failure, wait) = match snapshot.state(&cluster) {
            MemberState::Failed(cause) => (Some(cause.failure), None),
            MemberState::Waiting(blocker) if blocker.kind != BlockerKind::Window => (None, Some(blocker)),
            _ => (None, None),
        };
        let problem = snapshot.course(&cluster).and_then(|course| course.problem.as_ref()?.configuration());
        Self { failure, wait, invalid_version: problem.and_then(invalid_version) }
    }
}

fn invalid_version(problem: &Problem) -> Option<Version> {
    match problem {
        Problem::UnsupportedVersion { version, .. } => Some(version.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use drover_api::work::ManifestWorkSpec;

    use super::*;
    use crate::plan::NoAction;

    #[test]
    fn rejection_of_one_revision_says_nothing_about_the_next() {
        let [first, second] = ["0123456789abcdef", "fedcba9876543210"].map(|set| set.parse().expect("a revision"));
        let reject = |last: &mut WorkAttempt| {
            let mut work = ManifestWork::new("addon-hello-deploy-0", ManifestWorkSpec::default());
            work.metadata.namespace = Some("one".to_owned());
            let result = WriteResult::Forbidden("no more room".to_owned());
            sent::<NoAction>(last, PlanPart::Write(&Write::create(work)), &result);
        };
        let rejection =
            |last: &WorkAttempt| last.as_ref().and_then(|attempt| attempt.rejections.first().map(str::to_owned));
        let mut last = None;
        reject(&mut last);
        assert_eq!(rejection(&last), None, "nothing was tried");
        note_attempt(&mut last, Some(SetFingerprint::clone(&first)));
        reject(&mut last);
        note_attempt(&mut last, Some(first));
        let why = "could not Create ManifestWork one/addon-hello-deploy-0: no more room";
        assert_eq!(rejection(&last).as_deref(), Some(why));
        note_attempt(&mut last, Some(second));
        assert_eq!(rejection(&last), None);
        reject(&mut last);
        note_attempt(&mut last, None);
        assert!(last.is_none(), "all works are as they should be");
    }
}
