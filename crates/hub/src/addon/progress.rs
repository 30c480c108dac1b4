//! How far an add-on is on one cluster, found out from its works and told in its status.

use std::borrow::Cow;

use drover_api::{
    addon::{ConfigSpecHash, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    drover::{AddOnRollout, SetConfig},
    grammar::{SetFingerprint, Version},
    reference::ClusterName,
};
use drover_engine::{
    addon::{
        configuration::{Own, Problem},
        inheritance::is_managed,
        progress::{Evidence, Health, Maker, prove},
        report::{Report, reachable},
        status::{Facts, Holding, Turn, status},
        words::Wait,
    },
    explain::Reason,
    plan::{Controller, Write},
    registration::permission::Registered,
    revision::{
        Overrides, Set,
        markers::{Given, Proof},
    },
    rollout::{Failure, Hold, Snapshot, Standing},
};
use drover_runtime::store::ObjectKey;
use k8s_openapi::jiff::Timestamp;

use super::{
    Dialect,
    deploy::{self, Works},
    permission::Bindings,
    shelf::Shelf,
    workshop::{Commission, Making},
};
use crate::cache::Cache;

/// An add-on on one cluster, with everything that its status follows from.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) on_cluster: &'a ManagedClusterAddOn,
    pub(crate) shelf: &'a Shelf<'a>,
    pub(crate) now: Timestamp,
}

/// What is known of an add-on's part in the rollouts.
struct Part {
    failure: Option<Failure>,
    /// What it waits for, if it has nothing.
    wait: Option<Hold<Set>>,
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
    Set(Having<'a>),
}

/// What a cluster has that was given a set.
#[derive(Clone, Copy)]
struct Having<'a> {
    given: &'a Given,
    /// The set, with what a user has asked for instead.
    set: &'a Set,
    making: &'a Making,
    /// The namespace that the agent runs in, if it is known.
    namespace: Option<&'a str>,
    /// Why the server did not take a work, if it did not.
    refusal: Option<&'a str>,
    registered: Option<Registered<'a>>,
}

impl<'a> Having<'a> {
    /// Who makes the works. What the server does not take is as good as not made.
    fn maker(&self) -> Maker<'a> {
        self.refusal.map_or_else(|| self.making.maker(), Maker::Nobody)
    }
}

/// What is to be done about an add-on on one cluster.
#[derive(Default)]
pub(crate) struct Steps {
    /// Tells how far it is; nothing if that is told already.
    pub(crate) status: Option<Write>,
    /// Brings its works to what it was given.
    pub(crate) works: Works,
    /// What these are made from, if there are any: what it was given, with what a user has asked for instead.
    pub(crate) set: Option<SetFingerprint>,
    /// The keys of other controllers that depend on what was rendered.
    pub(crate) enqueue: Vec<(Controller, ObjectKey)>,
}

/// Gives an add-on a set, and tells of it in the same write.
pub(crate) fn given(subject: &Subject, given: &Given, set: &Set) -> Option<Write> {
    let own = subject.shelf.own(subject.on_cluster);
    let part = Part { failure: None, wait: None, invalid_version: None };
    let effective = subject.effective(set, own.as_ref());
    let commission = subject.commission(&effective);
    let making = subject.cache.addons.workshop.look(&commission);
    // What is known before anything is made is told at once, so that it needs no write of its own.
    let namespace = making.blueprint().and_then(|blueprint| commission.namespace(blueprint));
    let registers = making.blueprint().is_none_or(|blueprint| !blueprint.registrations().is_empty());
    let registered = (!registers).then_some(Registered::NotNeeded);
    let having =
        Having { given, set: &effective, making: &making, namespace: namespace.as_deref(), refusal: None, registered };
    subject.write(subject.status(Held::Set(having), own.as_ref(), &part)?)
}

/// How the works of an add-on on one cluster come about, as far as that is known; nothing if nobody knows what it was given.
pub(crate) fn making(cache: &Cache, on_cluster: &ManagedClusterAddOn, now: Timestamp) -> Option<Making> {
    let key = ObjectKey::cluster_wide(on_cluster.metadata.name.as_deref()?);
    let addon = cache.addons.cmas.get(&key).filter(|addon| is_managed(addon))?;
    let shelf = Shelf::of(cache, addon);
    let subject = Subject { cache, on_cluster, shelf: &shelf, now };
    let (_, set) = given_to(on_cluster, cache.configs.rollout(&key)?)?;
    let effective = subject.effective(&set?, shelf.own(on_cluster).as_ref());
    Some(cache.addons.workshop.look(&subject.commission(&effective)))
}

/// What an add-on on a cluster was given, and the set that this is, if it is remembered.
fn given_to(on_cluster: &ManagedClusterAddOn, record: &AddOnRollout) -> Option<(Given, Option<Set>)> {
    let given = Given::read(&on_cluster.status.as_ref()?.conditions)?;
    let mut sets = record.status.iter().flat_map(|status| &status.sets);
    let set = sets.find(|set| set.fingerprint == given.set).map(Set::read);
    Some((given, set))
}

/// Tells how far an add-on is, and brings about what it was given. `refusal` says why the server did not take a work of a set, if it did not.
pub(crate) fn follow(
    subject: &Subject,
    record: &AddOnRollout,
    snapshot: &Snapshot<Set>,
    refusal: &dyn Fn(&SetFingerprint) -> Option<String>,
) -> Steps {
    let own = subject.shelf.own(subject.on_cluster);
    // What is not known yet is no reason to say anything else.
    if own.as_ref().is_some_and(|own| own.overrides == Err(Problem::TemplatesNotYet)) {
        return Steps::default();
    }
    let part = part(subject.on_cluster, snapshot);
    let tell = |held: Held<'_>| subject.write(subject.status(held, own.as_ref(), &part)?);
    match given_to(subject.on_cluster, record) {
        None => Steps { status: tell(Held::Nothing), ..Steps::default() },
        // What rollouts remember is not written down yet.
        Some((_, None)) if record.status.is_none() => Steps::default(),
        Some((given, None)) => Steps { status: tell(Held::Forgotten(&given)), ..Steps::default() },
        Some((given, Some(set))) => {
            let effective = subject.effective(&set, own.as_ref());
            let commission = subject.commission(&effective);
            let (making, fresh) = subject.cache.addons.workshop.make(&commission);
            let bindings = Bindings::made(subject.cache, subject.on_cluster, &making);
            let is_unbound = bindings.as_ref().is_some_and(|bindings| !bindings.writes().is_empty());
            let permission = is_unbound.then(|| (Controller::Permission, ObjectKey::of(subject.on_cluster)));
            let registered = bindings.as_ref().and_then(Bindings::registered);
            let works = deploy::works(&commission, &making, fresh);
            let made_from = Some(effective.fingerprint()).filter(|_| !works.is_empty());
            let refused = made_from.as_ref().and_then(refusal);
            let (namespace, refusal) = (making.namespace(), refused.as_deref());
            let having = Having { given: &given, set: &effective, making: &making, namespace, refusal, registered };
            Steps { status: tell(Held::Set(having)), works, set: made_from, enqueue: permission.into_iter().collect() }
        }
    }
}

/// Whether add-ons have to be available before they count as updated.
pub(crate) fn health(cache: &Cache) -> Health {
    if cache.dialect == Dialect::Ocm { Health::DoesNotCount } else { Health::Counts }
}

fn part(on_cluster: &ManagedClusterAddOn, snapshot: &Snapshot<Set>) -> Part {
    let cluster = ClusterName::from(on_cluster.metadata.namespace.as_deref().unwrap_or_default());
    let standing = snapshot.standing(&cluster);
    let failure = match standing {
        Some((_, Standing::Failed(failure))) => Some(*failure),
        _ => None,
    };
    let wait = match Reason::of(&cluster, snapshot) {
        Reason::Held(hold) => Some(hold),
        _ => None,
    };
    let problem = standing.and_then(|(course, _)| course?.problem.as_ref()?.configuration());
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
        let on_cluster = self.reported(&held);
        let facts = |turn, vocabulary| Facts {
            stored: on_cluster.status.as_ref(),
            vocabulary,
            turn,
            unsupported,
            invalid_version: invalid_version.as_ref(),
            hindrance: hindrance.as_deref(),
            pending: pending.as_deref(),
            supported_versions: self.shelf.supported(),
        };
        let having = match held {
            Held::Set(having) => having,
            Held::Forgotten(given) => {
                return Some(status(&facts(Turn::Forgotten(&given.set), self.shelf.vocabulary(None)), self.now));
            }
            Held::Nothing => {
                let wait = part.wait.as_ref().map(Hold::in_short);
                let turn = match (&part.wait, &wait) {
                    (Some(Hold::Gate(_)), Some(text)) => Turn::Waits(Wait::ForCanary(text)),
                    (_, Some(text)) => Turn::Waits(Wait::For(text)),
                    _ if !unsupported.is_empty() || hindrance.is_some() => Turn::Waits(Wait::For("its turn")),
                    _ => return on_cluster.into_owned().status,
                };
                return Some(status(&facts(turn, self.shelf.vocabulary(None)), self.now));
            }
        };
        let Having { given, set, .. } = having;
        let works = self.cache.addons.works_of(self.on_cluster);
        let evidence = Evidence {
            addon: &on_cluster,
            works: &works,
            set,
            supported_versions: self.shelf.supported(),
            health: health(self.cache),
            maker: having.maker(),
        };
        let finding = prove(&evidence);
        let generation = |config: &SetConfig| self.shelf.generation(config);
        let holding = Holding { given, set, finding: &finding, failure: part.failure, generation: &generation };
        Some(status(&facts(Turn::Come(holding), self.shelf.vocabulary(Some(set))), self.now))
    }

    /// The add-on, with what the hub says of it in place of a manager, and of whether its cluster answers.
    fn reported(&self, held: &Held<'_>) -> Cow<'_, ManagedClusterAddOn> {
        let mut status = self.on_cluster.status.clone().unwrap_or_default();
        if let Held::Set(having) = held
            && !matches!(having.making, Making::ByManager)
        {
            let works = self.cache.addons.works_of(self.on_cluster);
            let report = Report {
                on_cluster: self.on_cluster,
                blueprint: having.making.blueprint().map(|blueprint| &**blueprint),
                namespace: having.namespace,
                maker: having.maker(),
                works: &works,
                cluster: self.cache.cluster(&self.cluster()).map(|cluster| &**cluster),
                registered: having.registered,
                dialect: self.cache.dialect,
            };
            status = report.written(status, self.now);
        }
        if let Some(cluster) = self.cache.cluster(&self.cluster()) {
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

    /// What is to be made for the add-on.
    fn commission<'s>(&'s self, set: &'s Set) -> Commission<'s> {
        Commission { cache: self.cache, on_cluster: self.on_cluster, set }
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

    fn write(&self, status: ManagedClusterAddOnStatus) -> Option<Write> {
        let mut wanted = self.on_cluster.clone();
        wanted.status = Some(status);
        Write::status(self.on_cluster, &wanted)
    }
}
