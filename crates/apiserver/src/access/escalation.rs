//! Nobody gives away by a role or a binding what he does not have himself.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Attributes, MASTERS, RBAC, Resource, Rule, Rules, aggregation::gathers, rule::quoted};
use crate::{
    failure::{About, Failure},
    user::User,
};

/// A write of a role or a binding.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Who writes.
    pub user: &'a User,
    /// The resource: `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`.
    pub resource: &'a str,
    /// The namespace of the request; empty for those that have none.
    pub namespace: &'a str,
    /// The name in the address; empty when something is created.
    pub name: &'a str,
    /// The object as it is to be.
    pub object: &'a Value,
    /// The object as it is, if there is one.
    pub old: Option<&'a Value>,
}

/// Whether a role or a binding may be written.
pub fn check(write: &Write<'_>, rules: &Rules) -> Result<(), Failure> {
    let collects_garbage = write.old.is_some_and(|old| differs_for_garbage_collection(write.object, old));
    if write.user.groups.iter().any(|group| group == MASTERS) || collects_garbage {
        return Ok(());
    }
    match write.resource {
        "roles" | "clusterroles" => check_role(write, rules),
        "rolebindings" | "clusterrolebindings" => check_binding(write, rules),
        _ => Ok(()),
    }
}

fn check_role(write: &Write<'_>, rules: &Rules) -> Result<(), Failure> {
    let Write { user, resource, namespace, name, .. } = *write;
    let role = Resource { group: RBAC, version: "*", resource, namespace, name, ..Resource::default() };
    if rules.allows(&Attributes::resource(user, "escalate", role)).allowed {
        return Ok(());
    }
    confirm_held(write, rules, &Rule::all_of(write.object))?;
    if resource == "clusterroles" && (gathers(write.object) || write.old.is_some_and(gathers)) {
        // What it gathers may be anything.
        let all = |rule| confirm_held(write, rules, &[rule]);
        let everything = [all(every_resource()), all(every_address())];
        if everything.iter().any(Result::is_err) {
            return Err(write.forbidden("must have cluster-admin privileges to use the aggregationRule"));
        }
    }
    Ok(())
}

fn check_binding(write: &Write<'_>, rules: &Rules) -> Result<(), Failure> {
    let Write { user, namespace, object, .. } = *write;
    let reference = |field: &str| object["roleRef"][field].as_str().unwrap_or_default();
    let (kind, name) = (reference("kind"), reference("name"));
    let resource = match kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        _ => return Err(Failure::internal(format!("unsupported role reference kind: {kind:?}"))),
    };
    let role =
        Resource { group: reference("apiGroup"), version: "*", resource, namespace, name, ..Resource::default() };
    if rules.allows(&Attributes::resource(user, "bind", role)).allowed {
        return Ok(());
    }
    let given = rules.rules_of(kind, name, namespace);
    let given = given.map_err(|_| Failure::not_found(About { group: RBAC, name: resource }, name))?;
    confirm_held(write, rules, given)
}

/// Whether who writes has all that these rules allow.
fn confirm_held(write: &Write<'_>, rules: &Rules, given: &[Rule]) -> Result<(), Failure> {
    let held = rules.rules_for(write.user, write.namespace);
    let single = given.iter().flat_map(Rule::single_rules);
    let missing: Vec<_> = single.filter(|rule| !held.rules.iter().any(|own| own.covers(rule))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let said: BTreeSet<_> = with_verbs_together(missing).iter().map(ToString::to_string).collect();
    let said = said.into_iter().collect::<Vec<_>>().join("\n");
    let unresolved = match held.errors.as_slice() {
        [] => String::new(),
        errors => format!("; resolution errors: [{}]", super::rules::aggregate(errors)),
    };
    let (user, groups) = (&write.user.name, quoted(&write.user.groups));
    let attempt =
        format!("user {user:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:");
    Err(write.forbidden(&format!("{attempt}\n{said}{unresolved}")))
}

/// Rules that differ by nothing but the verb, as one.
fn with_verbs_together(single: Vec<Rule>) -> Vec<Rule> {
    let mut together: Vec<Rule> = Vec::new();
    for rule in single {
        let is_alike = |other: &&mut Rule| {
            rule.non_resource_urls.is_empty()
                && (&other.api_groups, &other.resources, &other.resource_names, &other.non_resource_urls)
                    == (&rule.api_groups, &rule.resources, &rule.resource_names, &rule.non_resource_urls)
        };
        match together.iter_mut().find(is_alike) {
            Some(other) => other.verbs.extend(rule.verbs),
            None => together.push(rule),
        }
    }
    together
}

fn every_resource() -> Rule {
    let all = || vec!["*".to_owned()];
    Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() }
}

fn every_address() -> Rule {
    let all = || vec!["*".to_owned()];
    Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() }
}

/// Whether nothing changes but what the collection of garbage writes, which has to go on whatever rights it has.
fn differs_for_garbage_collection(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                metadata.remove(field);
            }
        }
        object
    };
    rest(object) == rest(old)
}

impl Write<'_> {
    fn forbidden(&self, why: &str) -> Failure {
        let name = self.object["metadata"]["name"].as_str().unwrap_or_default();
        Failure::forbidden(About { group: RBAC, name: self.resource }, name, why)
    }
}
