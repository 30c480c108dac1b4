//! Which install plans are approved, so that exactly the operators are upgraded that were asked for.
//!
//! An install plan is approved as a whole, and the Operator Lifecycle Manager puts all versions of a namespace that wait for approval into one. So a plan is looked at
//! version by version, and one that would bring more than was asked for is left alone, however much one of its operators is wanted.
//!
//! What operators are upgraded to is [pinned](pin) once, at the start: versions that are offered later are left for another upgrade. An operator is upgraded
//! when its version runs, not when its plan is approved.

mod standing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    cluster::{OperatorRef, OperatorUpgrades},
    olm::{ClusterServiceVersion, InstallPlan, Subscription},
};
use kube::ResourceExt;

use super::operator_work::REPORTED;
use crate::words::beginning;

pub use standing::{Block, Extra, Reason, Standing, Wait};

/// The phase of a version that runs.
const SUCCEEDED: &str = "Succeeded";
/// The phase of a plan that could not be carried out.
const FAILED: &str = "Failed";

/// Which operators are to be upgraded. Operators are named by the namespace and the name of their Subscription, and by nothing that is only alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which ones, but for those that are left out.
    pub scope: Scope,
    /// Those that are never upgraded, whatever else is wished.
    pub exclude: BTreeSet<OperatorRef>,
}

/// Which operators are to be upgraded, but for those that are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All that there are.
    All,
    /// These.
    Only(BTreeSet<OperatorRef>),
}

impl Wish {
    /// Whether an operator is asked for.
    #[must_use]
    pub fn asks_for(&self, operator: &OperatorRef) -> bool {
        let is_in_scope = match &self.scope {
            Scope::All => true,
            Scope::Only(operators) => operators.contains(operator),
        };
        is_in_scope && !self.exclude.contains(operator)
    }

    /// Whether every operator of a namespace is asked for, those too that nobody knows of yet.
    fn asks_for_all_in(&self, namespace: &str) -> bool {
        self.scope == Scope::All && self.exclude.iter().all(|operator| operator.namespace != namespace)
    }

    /// The operators that are asked for by name.
    fn named(&self) -> impl Iterator<Item = &OperatorRef> {
        let named = match &self.scope {
            Scope::All => None,
            Scope::Only(operators) => Some(operators),
        };
        named.into_iter().flatten().filter(|operator| self.asks_for(operator))
    }
}

impl From<&OperatorUpgrades> for Wish {
    fn from(operators: &OperatorUpgrades) -> Self {
        let scope = match operators.approve_all_upgrades {
            Some(true) => Scope::All,
            _ => Scope::Only(operators.include.iter().cloned().collect()),
        };
        Self { scope, exclude: operators.exclude.iter().cloned().collect() }
    }
}

/// The versions that operators are upgraded to, and not beyond.
pub type Targets = BTreeMap<OperatorRef, String>;

/// What a cluster has of operators, each by its namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    subscriptions: BTreeMap<OperatorRef, &'a Subscription>,
    plans: BTreeMap<(String, String), &'a InstallPlan>,
    versions: BTreeMap<(String, String), &'a ClusterServiceVersion>,
}

impl<'a> Facts<'a> {
    /// What these objects say.
    #[must_use]
    pub fn new(
        subscriptions: impl IntoIterator<Item = &'a Subscription>,
        plans: impl IntoIterator<Item = &'a InstallPlan>,
        versions: impl IntoIterator<Item = &'a ClusterServiceVersion>,
    ) -> Self {
        let operator =
            |of: &Subscription| OperatorRef { name: of.name_any(), namespace: of.namespace().unwrap_or_default() };
        Self {
            subscriptions: subscriptions.into_iter().map(|object| (operator(object), object)).collect(),
            plans: plans.into_iter().map(|object| (place(object), object)).collect(),
            versions: versions.into_iter().map(|object| (place(object), object)).collect(),
        }
    }

    fn version(&self, namespace: &str, name: &str) -> Option<&'a ClusterServiceVersion> {
        self.versions.get(&(namespace.to_owned(), name.to_owned())).copied()
    }

    /// The plan that brings an operator the version that it moves to. Older plans that nobody has approved are not asked for.
    fn plan(&self, operator: &OperatorRef) -> Option<&'a InstallPlan> {
        let named = self.subscriptions.get(operator)?.status.as_ref()?.install_plan_ref.as_ref()?;
        let namespace = named.namespace.as_deref().unwrap_or(&operator.namespace);
        self.plans.get(&(namespace.to_owned(), named.name.clone()?)).copied()
    }

    /// The operators of a namespace that have a version, or move to it.
    fn claimants<'f>(&'f self, namespace: &'f str, version: &'f str) -> impl Iterator<Item = &'f OperatorRef> {
        let claims = move |of: &Subscription| [current(of), installed(of)].contains(&Some(version));
        let of_namespace = self.subscriptions.iter().filter(move |(operator, _)| operator.namespace == namespace);
        of_namespace.filter(move |(_, subscription)| claims(subscription)).map(|(operator, _)| operator)
    }

    /// Whether a version is another one, or has taken its place.
    fn has_come_to(&self, namespace: &str, version: &str, wanted: &str) -> bool {
        let (mut version, mut passed) = (version, BTreeSet::new());
        loop {
            if version == wanted {
                return true;
            }
            // Whoever wrote the versions may have let them replace one another in a circle.
            if !passed.insert(version) {
                return false;
            }
            let Some(known) = self.version(namespace, version) else { return false };
            if known.spec.skips.iter().any(|skipped| skipped == wanted) {
                return true;
            }
            let Some(replaced) = &known.spec.replaces else { return false };
            version = replaced;
        }
    }
}

/// What is done now, and where each operator is that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The plans that are approved now.
    pub approve: Vec<Approval>,
    /// Where each operator is.
    pub operators: BTreeMap<OperatorRef, Standing>,
}

impl Decision {
    /// Whether there is nothing left to do or to wait for. Operators that are held up are not waited for.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.operators.values().all(|standing| !matches!(standing, Standing::Ready { .. } | Standing::Waiting(_)))
    }

    /// Whether everything that was asked for is upgraded.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_over() && self.operators.values().all(|standing| !matches!(standing, Standing::Blocked(_)))
    }

    /// Where the operators are, in one line: how many run their versions, and then each, those first that somebody may have to look after.
    #[must_use]
    pub fn summary(&self) -> String {
        let is_upgraded = |standing: &&Standing| matches!(standing, Standing::Upgraded { .. });
        let upgraded = self.operators.values().filter(is_upgraded).count();
        let mut operators: Vec<_> = self.operators.iter().collect();
        operators.sort_by_key(|(operator, standing)| (standing.concern(), *operator));
        let each = operators.iter().map(|(operator, standing)| format!("; {operator}: {standing}"));
        let summary = format!("{upgraded} of {} upgraded{}", operators.len(), each.collect::<String>());
        beginning(&summary, REPORTED)
    }
}

/// A plan that is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The plan's namespace.
    pub namespace: String,
    /// The plan's name.
    pub name: String,
    /// The plan as it was judged: one that has changed since has to be judged again.
    pub resource_version: Option<String>,
    /// What it brings.
    pub versions: Vec<String>,
}

/// What operators are upgraded to: the versions that they are offered now. It is called once, at the start.
#[must_use]
pub fn pin(wish: &Wish, facts: &Facts<'_>) -> Targets {
    let ours = facts.subscriptions.iter().filter(|(operator, of)| wish.asks_for(operator) && of.spec.is_manual());
    ours.filter_map(|(operator, of)| Some((operator.clone(), current(of)?.to_owned()))).collect()
}

/// What is to be done on a cluster, so that the operators come to the versions that were pinned.
#[must_use]
pub fn decide(wish: &Wish, targets: &Targets, facts: &Facts<'_>) -> Decision {
    let judge = Judge { wish, targets, facts };
    let asked = facts.subscriptions.keys().filter(|operator| wish.asks_for(operator));
    let operators: BTreeMap<_, _> =
        asked.chain(wish.named()).map(|operator| (operator.clone(), judge.standing(operator))).collect();
    let mut approve = BTreeMap::new();
    for (operator, standing) in &operators {
        if let (Standing::Ready { .. }, Some(plan)) = (standing, facts.plan(operator)) {
            approve.insert(place(plan), approval(plan));
        }
    }
    Decision { approve: approve.into_values().collect(), operators }
}

/// Who judges operators and plans.
struct Judge<'a> {
    wish: &'a Wish,
    targets: &'a Targets,
    facts: &'a Facts<'a>,
}

impl Judge<'_> {
    fn standing(&self, operator: &OperatorRef) -> Standing {
        let Some(subscription) = self.facts.subscriptions.get(operator) else { return Standing::Missing };
        if !subscription.spec.is_manual() {
            return Standing::Automatic;
        }
        let Some(target) = self.targets.get(operator) else { return Standing::NotOffered };
        if let Some(installed) = installed(subscription)
            && self.facts.has_come_to(&operator.namespace, installed, target)
        {
            return self.settled(operator, installed);
        }
        match current(subscription) {
            Some(offered) if offered != target => {
                Standing::Blocked(Block::Overtaken { target: target.clone(), offered: offered.to_owned() })
            }
            _ => self.planned(operator, target),
        }
    }

    /// Where an operator is that has its version.
    fn settled(&self, operator: &OperatorRef, version: &str) -> Standing {
        let status = self.facts.version(&operator.namespace, version).and_then(|version| version.status.as_ref());
        let phase = status.and_then(|status| status.phase.clone());
        if phase.as_deref() == Some(SUCCEEDED) {
            return Standing::Upgraded { version: version.to_owned() };
        }
        let message = status.and_then(|status| status.message.clone());
        Standing::Waiting(Wait::Settling { version: version.to_owned(), phase, message })
    }

    /// Where an operator is whose plan has to be carried out.
    fn planned(&self, operator: &OperatorRef, target: &str) -> Standing {
        let plan = self.facts.plan(operator);
        let Some(plan) = plan.filter(|plan| plan.spec.cluster_service_version_names.iter().any(|name| name == target))
        else {
            return Standing::Waiting(Wait::NoPlan { version: target.to_owned() });
        };
        let (name, status) = (plan.name_any(), plan.status.as_ref());
        if status.and_then(|status| status.phase.as_deref()) == Some(FAILED) {
            let message = status.and_then(|status| status.message.clone());
            return Standing::Blocked(Block::Failed { plan: name, message });
        }
        if plan.spec.approved {
            return Standing::Waiting(Wait::Installing { plan: name, version: target.to_owned() });
        }
        let (extra, unclaimed) = self.surplus(plan);
        if !extra.is_empty() {
            Standing::Blocked(Block::Carries { plan: name, extra })
        } else if !unclaimed.is_empty() {
            Standing::Waiting(Wait::Unclaimed { plan: name, versions: unclaimed })
        } else {
            Standing::Ready { plan: name }
        }
    }

    /// What a plan brings that it must not, and what it brings of which nobody knows whose it is.
    ///
    /// Subscriptions are written one after the other, so a version that none speaks of yet may well be that of an operator that was not asked for. Where
    /// all of a namespace are asked for, it is one that others depend on, and asked for with them.
    fn surplus(&self, plan: &InstallPlan) -> (Vec<Extra>, Vec<String>) {
        let namespace = plan.namespace().unwrap_or_default();
        let (mut extra, mut unclaimed) = (Vec::new(), Vec::new());
        for version in &plan.spec.cluster_service_version_names {
            let mut claimants = self.facts.claimants(&namespace, version).peekable();
            if claimants.peek().is_none() && !self.wish.asks_for_all_in(&namespace) {
                unclaimed.push(version.clone());
            }
            let objections = claimants.filter_map(|operator| Some((operator, self.objection(operator, version)?)));
            extra.extend(objections.map(|(operator, reason)| Extra {
                version: version.clone(),
                operator: operator.clone(),
                reason,
            }));
        }
        (extra, unclaimed)
    }

    /// Why an operator may not be brought to a version.
    fn objection(&self, operator: &OperatorRef, version: &str) -> Option<Reason> {
        if !self.wish.asks_for(operator) {
            return Some(Reason::NotAsked);
        }
        let subscription = self.facts.subscriptions.get(operator)?;
        // What upgrades by itself does so with or without us.
        let is_ours = subscription.spec.is_manual() && installed(subscription) != Some(version);
        let is_pinned = self.targets.get(operator).is_some_and(|target| target == version);
        (is_ours && !is_pinned).then_some(Reason::Later)
    }
}

fn current(subscription: &Subscription) -> Option<&str> {
    subscription.status.as_ref()?.current_csv.as_deref().filter(|version| !version.is_empty())
}

fn installed(subscription: &Subscription) -> Option<&str> {
    subscription.status.as_ref()?.installed_csv.as_deref().filter(|version| !version.is_empty())
}

fn place(object: &impl ResourceExt) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn approval(plan: &InstallPlan) -> Approval {
    Approval {
        namespace: plan.namespace().unwrap_or_default(),
        name: plan.name_any(),
        resource_version: plan.resource_version(),
        versions: plan.spec.cluster_service_version_names.clone(),
    }
}
