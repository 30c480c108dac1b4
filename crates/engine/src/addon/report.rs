//! What the hub says of an add-on that it makes from a template, where other add-ons have a manager that says it: what can be configured,
//! where the agent runs and how it registers, whether the works are applied, and whether the add-on is well. The reasons are OCM's.

use drover_api::{
    addon::{HealthCheck, HealthCheckMode, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    cluster::ManagedCluster,
    names::{AVAILABLE, MANIFEST_APPLIED, NO_PROBE_RESULT},
    reference::ClusterName,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::ResourceExt;

use crate::{
    addon::progress::Maker,
    cluster::availability::UNREACHABLE,
    condition::{self, Holds, Says},
    dialect::Dialect,
    presence::silence,
    registration::{permission::Registered, status::registrations},
    revision::template_types,
    template::{AddOnWork, Ailment, Blueprint, Expected, Vitals, work_prefix},
};

/// An add-on that is made from a template, on one cluster.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    /// The add-on on the cluster.
    pub on_cluster: &'a ManagedClusterAddOn,
    /// The template that it was given, if that can be read.
    pub blueprint: Option<&'a Blueprint>,
    /// The namespace that its agent runs in, if that is known.
    pub namespace: Option<&'a str>,
    /// What its works are to be.
    pub maker: Maker<'a>,
    /// The works that carry its label.
    pub works: &'a [&'a AddOnWork],
    /// Its cluster.
    pub cluster: Option<&'a ManagedCluster>,
    /// How far it is with what its agent may do on the hub; nothing while that is being written.
    pub registered: Option<Registered<'a>>,
    /// In whose words it is told.
    pub dialect: Dialect,
}

impl Report<'_> {
    /// The status of the add-on, saying all this.
    #[must_use]
    pub fn written(&self, mut status: ManagedClusterAddOnStatus, now: Timestamp) -> ManagedClusterAddOnStatus {
        status.supported_configs = template_types().to_vec();
        if let Some(blueprint) = self.blueprint {
            let cluster = ClusterName::from(self.on_cluster.namespace().unwrap_or_default());
            let addon = self.on_cluster.name_any();
            status.registrations = registrations(&cluster, &addon, blueprint.registrations(), &status, self.dialect);
            status.health_check = Some(HealthCheck { mode: Some(blueprint.health()) });
        }
        if let Some(namespace) = self.namespace {
            status.namespace = Some(namespace.to_owned());
        }
        status.conditions = self.with_application(status.conditions, now);
        if let Some(registered) = &self.registered {
            status.conditions = condition::with(status.conditions, registered.says(), now);
        }
        // Where the template can not be read any more, it is as it was: two who say how an add-on is would never agree.
        let mode = status.health_check.as_ref().and_then(|check| check.mode);
        let is_ours = mode.is_none_or(|mode| mode == HealthCheckMode::Customized);
        // What was last reported of an add-on whose cluster is not heard of any more says nothing about how it is now.
        if is_ours && self.cluster.is_none_or(|cluster| silence(cluster).is_none()) {
            status.conditions = self.with_health(status.conditions, now);
        }
        status
    }

    /// The works that were made from the template, be they as they should or not.
    fn works(&self) -> impl Iterator<Item = &AddOnWork> {
        let prefix = work_prefix(&self.on_cluster.name_any());
        self.works.iter().copied().filter(move |work| work.name_any().starts_with(&prefix))
    }

    /// The conditions, with the one that says whether the works are applied. As long as nobody knows, it says what it said.
    fn with_application(&self, mut conditions: Vec<Condition>, now: Timestamp) -> Vec<Condition> {
        let Some((holds, reason, message)) = self.application() else {
            // What could not be made or applied is, by now, on its way once more.
            conditions.retain(|condition| condition.type_ != MANIFEST_APPLIED || condition.status == "True");
            return conditions;
        };
        let says = Says { type_: MANIFEST_APPLIED, holds: holds.into(), reason, message, generation: None };
        condition::with(conditions, says, now)
    }

    /// Whether the works are applied, in OCM's words; nothing as long as nobody knows.
    fn application(&self) -> Option<(bool, &str, &str)> {
        if let Maker::Nobody(why) = self.maker {
            return Some((false, "ManifestWorkApplyFailed", why));
        }
        let applied: Vec<_> = self.works().map(applied).collect();
        if applied.contains(&Some(Holds::No)) {
            return Some((false, "AddonManifestAppliedFailed", "failed to apply the manifests of addon"));
        }
        let is_done = self.are_all_there() && applied.iter().all(|applied| *applied == Some(Holds::Yes));
        is_done.then_some((true, "AddonManifestApplied", "manifests of addon are applied successfully"))
    }

    fn are_all_there(&self) -> bool {
        match self.maker {
            Maker::Template(expected) => expected.iter().all(|expected| self.is_there(expected)),
            Maker::Former => self.works().next().is_some(),
            Maker::Manager | Maker::NotYet | Maker::Nobody(_) => false,
        }
    }

    fn is_there(&self, expected: &Expected) -> bool {
        self.works().any(|work| work.name_any() == expected.name && work.digest() == expected.digest)
    }

    /// The conditions, with the one that says whether the add-on is well. As long as nothing was reported, it says what it said.
    fn with_health(&self, conditions: Vec<Condition>, now: Timestamp) -> Vec<Condition> {
        let (holds, reason, message) = match self.health() {
            None if condition::holds(&conditions, AVAILABLE).is_some() => return conditions,
            None => (Holds::Unknown, NO_PROBE_RESULT, "nothing was reported of it yet".to_owned()),
            Some(Ok(())) => {
                (Holds::Yes, "ProbeAvailable", format!("{} add-on is available.", self.on_cluster.name_any()))
            }
            Some(Err((reason, message))) => (Holds::No, reason, message),
        };
        let says = Says { type_: AVAILABLE, holds, reason, message: &message, generation: None };
        condition::with(conditions, says, now)
    }

    /// Whether the add-on is well, or why not; nothing if too little was reported.
    fn health(&self) -> Option<Result<(), (&'static str, String)>> {
        let works: Vec<_> = self.works().collect();
        if works.is_empty() {
            return None;
        }
        for work in &works {
            let available = work.available()?;
            if available.status != Holds::Yes {
                return Some(Err(("WorkNotApplied", available.message.to_string())));
            }
        }
        let vitals: Vec<_> = works.iter().flat_map(|work| work.vitals()).collect();
        if let Maker::Template(expected) = self.maker {
            let is_heard_of = |workload| vitals.iter().any(|vitals| vitals.is_of(workload));
            let mut workloads = expected.iter().flat_map(|expected| &expected.workloads);
            if !workloads.all(is_heard_of) {
                return None;
            }
        }
        let ailments: Vec<_> = vitals.iter().filter_map(|vitals| Some((vitals, vitals.ailment()?))).collect();
        let is_silent = |(_, ailment): &&(&&Vitals, Ailment)| *ailment == Ailment::Silent;
        match ailments.iter().find(|ailment| !is_silent(ailment)) {
            Some((vitals, ailment)) => Some(Err(("ProbeUnavailable", format!("{vitals} {ailment}")))),
            None => ailments.is_empty().then_some(Ok(())),
        }
    }
}

/// Whether everything in a work is applied, as its agent reports of its present form.
fn applied(work: &AddOnWork) -> Option<Holds> {
    let applied = work.applied().filter(|applied| applied.observed_generation == work.generation())?;
    Some(applied.status)
}

/// The conditions of an add-on whose cluster may not have been heard of for a while: then nobody knows whether the add-on is well.
#[must_use]
pub fn reachable(conditions: Vec<Condition>, cluster: &ManagedCluster, now: Timestamp) -> Vec<Condition> {
    let said = silence(cluster).filter(|_| condition::holds(&conditions, AVAILABLE).is_some());
    let Some(said) = said else { return conditions };
    let (reason, message) = (UNREACHABLE, said.message.as_str());
    condition::with(
        conditions,
        Says { type_: AVAILABLE, holds: Holds::Unknown, reason, message, generation: None },
        now,
    )
}

#[cfg(test)]
mod tests;
