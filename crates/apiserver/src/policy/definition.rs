//! Policies and bindings as they are kept, with their expressions compiled.

use std::collections::HashMap;

use serde_json::Value;

use super::matching::Matches;
use crate::{
    cel::{Error, Expression, MAX_DEPTH},
    field::{ErrorKind, FieldError, Path},
};

/// The names that every expression may use.
const NAMES: [&str; 6] = ["object", "oldObject", "request", "params", "namespaceObject", "variables"];
/// The one that messages may not.
const AUTHORIZER: &str = "authorizer";

/// A policy.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) matches: Matches,
    pub(super) failure_policy: FailurePolicy,
    pub(super) conditions: Vec<Expression>,
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) validations: Vec<Validation>,
    /// How many levels its expressions have, with those of the variables that they name.
    pub(super) depth: usize,
    /// Why it can not be used at all.
    pub(super) flaw: Option<String>,
}

/// What happens with requests where an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    Fail,
    Ignore,
}

/// Something that has to hold.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: String,
}

/// What happens with a request that a policy is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValidationAction {
    Deny,
    Warn,
    Audit,
}

/// What puts a policy into force.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) policy: String,
    pub(super) matches: Matches,
    pub(super) actions: Vec<ValidationAction>,
}

impl Definition {
    pub(super) fn compile(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let mut errors = Vec::new();
        let mut parts = Parts::compile(spec, &mut |_, _, error| errors.push(error.0));
        let flaw = if spec["paramKind"].is_object() {
            Some("parameters of policies are not served here".to_owned())
        } else {
            errors.into_iter().next()
        };
        if flaw.is_some() {
            parts = Parts::default();
        }
        Self {
            depth: parts.depth(),
            matches: Matches::read(&spec["matchConstraints"]),
            failure_policy: if spec["failurePolicy"] == "Ignore" { FailurePolicy::Ignore } else { FailurePolicy::Fail },
            conditions: parts.conditions,
            variables: parts.variables,
            validations: parts.validations,
            flaw,
        }
    }
}

/// What is wrong with the expressions of a policy that is about to be written.
#[must_use]
pub fn flaws(policy: &Value) -> Vec<FieldError> {
    let mut flaws = Vec::new();
    Parts::compile(&policy["spec"], &mut |field, source, error| {
        flaws.push(FieldError::new(ErrorKind::Invalid, &Path::Field(&Path::Root, field), source, error.0));
    });
    flaws
}

/// The expressions of a policy.
#[derive(Default)]
struct Parts {
    conditions: Vec<Expression>,
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
}

impl Parts {
    /// Compiles all, and tells what can not be.
    fn compile(spec: &Value, complain: &mut dyn FnMut(&str, &str, Error)) -> Self {
        let all: Vec<_> = NAMES.into_iter().chain([AUTHORIZER]).collect();
        let mut depths = HashMap::new();
        let mut compile = |field: String, source: &Value, names: &[&str], depths: &HashMap<String, usize>| {
            let source = source.as_str().unwrap_or_default();
            let compiled = Expression::compile(source, names);
            let compiled = compiled.and_then(|expression| match total_depth(&expression, depths) {
                0..=MAX_DEPTH => Ok(expression),
                _ => Err(Error("compilation failed: expression recursion limit exceeded".to_owned())),
            });
            compiled.map_err(|error| complain(&field, source, error)).ok()
        };
        let list = |field: &str| spec[field].as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        let conditions = list("matchConditions").filter_map(|(at, condition)| {
            compile(format!("spec.matchConditions[{at}].expression"), &condition["expression"], &all, &HashMap::new())
        });
        let conditions = conditions.collect();
        let variables = list("variables").filter_map(|(at, variable)| {
            let name = variable["name"].as_str().unwrap_or_default().to_owned();
            let field = format!("spec.variables[{at}].expression");
            let expression = compile(field, &variable["expression"], &all, &depths)?;
            let depth = total_depth(&expression, &depths);
            // Of several with one name, the first counts.
            depths.entry(name.clone()).or_insert(depth);
            Some((name, expression))
        });
        let variables = variables.collect();
        let validations = list("validations").filter_map(|(at, validation)| {
            let text = |field: &str| validation[field].as_str().unwrap_or_default().to_owned();
            let field = format!("spec.validations[{at}].expression");
            let expression = compile(field, &validation["expression"], &all, &depths)?;
            let message = Some(&validation["messageExpression"]).filter(|message| message.is_string());
            let message_expression = message.and_then(|message| {
                compile(format!("spec.validations[{at}].messageExpression"), message, &NAMES, &depths)
            });
            Some(Validation { expression, message: text("message"), message_expression, reason: text("reason") })
        });
        let validations = validations.collect();
        Self { conditions, variables, validations }
    }
}

/// How many levels an expression has, with those of the variables that it names, where those are
/// known that it may name. Values that are made of others nest as deeply too.
fn total_depth(expression: &Expression, depths: &HashMap<String, usize>) -> usize {
    let named = expression.variables.iter().filter_map(|name| depths.get(name));
    expression.depth + named.max().copied().unwrap_or_default()
}

impl Parts {
    /// How many levels the expressions have, with those of the variables that they name.
    fn depth(&self) -> usize {
        let mut depths = HashMap::new();
        for (name, expression) in &self.variables {
            let depth = total_depth(expression, &depths);
            depths.entry(name.clone()).or_insert(depth);
        }
        let messages = self.validations.iter().filter_map(|validation| validation.message_expression.as_ref());
        let all = self.conditions.iter().chain(self.validations.iter().map(|it| &it.expression)).chain(messages);
        all.map(|expression| total_depth(expression, &depths)).max().unwrap_or_default()
    }
}

impl Binding {
    pub(super) fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        let actions = actions.filter_map(|action| match action.as_str() {
            Some("Deny") => Some(ValidationAction::Deny),
            Some("Warn") => Some(ValidationAction::Warn),
            Some("Audit") => Some(ValidationAction::Audit),
            _ => None,
        });
        Self {
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            matches: Matches::read(&spec["matchResources"]),
            actions: actions.collect(),
        }
    }
}
