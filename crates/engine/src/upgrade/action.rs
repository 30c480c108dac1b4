//! What is done on a cluster before or after its upgrade.
//!
//! A Job is there as soon as it is made, long before it has done anything. So an action that has Jobs and does not say itself when they are
//! done is given rules that do.

#[cfg(test)]
mod tests;

use std::time::Duration;

use drover_api::{
    cluster::UpgradeAction,
    names::{WORK_COMPLETE, WORK_DEGRADED},
    work::{ConditionRule, ConditionRuleType, ManifestConfig, ManifestWorkSpec, ResourceIdentifier},
};
use serde_json::Value;

use super::{platform::Order, work::PartWork};
use crate::{condition::Holds, revision::markers::Verdict, workreport::template::Rules};

/// An action, made ready to be sent.
#[derive(Clone, Debug)]
pub struct Action {
    /// What is sent.
    pub order: Order,
    /// How long it may take.
    pub limit: Duration,
    rules: Rules,
    tells_completion: bool,
}

/// How far an action is on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The cluster does not have it yet.
    Sent,
    /// It is under way.
    Progressing,
    /// It is done.
    Available,
    /// It has failed.
    Degraded(Option<String>),
}

impl Action {
    /// An action that may take that long, where it does not say so itself.
    #[must_use]
    pub fn of(written: &UpgradeAction, limit: Duration) -> Self {
        let mut spec = written.manifest_work.clone();
        let configs: Vec<_> = spec.manifests().iter().filter_map(|manifest| watched_job(manifest, &spec)).collect();
        for config in configs {
            add(&mut spec, config);
        }
        let rules = || spec.manifest_configs.iter().flat_map(|config| &config.condition_rules);
        Self {
            limit: written.timeout.as_ref().map_or(limit, drover_api::grammar::Timeout::get),
            rules: Rules::of(&spec),
            tells_completion: rules().any(|rule| rule.condition == WORK_COMPLETE),
            order: Order::of(spec),
        }
    }

    /// How far the action is, by its work.
    #[must_use]
    pub fn doing(&self, work: &PartWork) -> Doing {
        match work.report.verdict(self.rules).0 {
            Verdict::Unhealthy | Verdict::Failing => return Doing::Degraded(work.trouble.clone()),
            _ if self.is_done(work) => return Doing::Available,
            _ => {}
        }
        if work.is_applied() { Doing::Progressing } else { Doing::Sent }
    }

    /// Where something says when it is done, that decides: what has done its work need not be well for ever.
    fn is_done(&self, work: &PartWork) -> bool {
        if self.tells_completion {
            return work.is_applied() && work.complete.is_some_and(|said| said.holds == Holds::Yes);
        }
        work.report.verdict(self.rules).0 == Verdict::Proven
    }
}

/// The rules by which it is told of a Job whether it is done or has failed; nothing if the work says so itself, or it is no Job.
fn watched_job(manifest: &Value, spec: &ManifestWorkSpec) -> Option<ManifestConfig> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let is_job =
        text("/kind") == Some("Job") && text("/apiVersion").is_some_and(|version| version.starts_with("batch/"));
    let name = text("/metadata/name").filter(|_| is_job)?.to_owned();
    let identifier = ResourceIdentifier {
        group: Some("batch".to_owned()),
        resource: "jobs".to_owned(),
        name,
        namespace: text("/metadata/namespace").map(str::to_owned),
    };
    let own = spec.manifest_configs.iter().find(|config| config.resource_identifier == identifier);
    let says =
        |condition: &str| own.is_some_and(|own| own.condition_rules.iter().any(|rule| rule.condition == condition));
    let mut condition_rules = Vec::new();
    if !says(WORK_COMPLETE) {
        condition_rules.push(rule(WORK_COMPLETE, ConditionRuleType::WellKnownConditions, None));
    }
    if !says(WORK_DEGRADED) {
        let failed = "has(object.status) && has(object.status.conditions) && object.status.conditions.exists(c, c.type == 'Failed' && c.status == 'True')";
        condition_rules.push(rule(WORK_DEGRADED, ConditionRuleType::Cel, Some(failed)));
    }
    (!condition_rules.is_empty()).then(|| ManifestConfig {
        resource_identifier: identifier,
        condition_rules,
        ..ManifestConfig::default()
    })
}

fn rule(condition: &str, kind: ConditionRuleType, expression: Option<&str>) -> ConditionRule {
    let message_expression = expression.map(|_| "result ? 'the Job has failed' : 'the Job has not failed'".to_owned());
    ConditionRule {
        condition: condition.to_owned(),
        kind,
        cel_expressions: expression.map(str::to_owned).into_iter().collect(),
        message: None,
        message_expression,
    }
}

fn add(spec: &mut ManifestWorkSpec, config: ManifestConfig) {
    let own = spec.manifest_configs.iter_mut().find(|own| own.resource_identifier == config.resource_identifier);
    match own {
        Some(own) => own.condition_rules.extend(config.condition_rules),
        None => spec.manifest_configs.push(config),
    }
}
