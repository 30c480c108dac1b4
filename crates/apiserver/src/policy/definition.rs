//! Policies and bindings as they are kept, with their expressions compiled.

use serde_json::Value;

use super::matching::Matches;
use crate::{
    cel::{Error, Expression},
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
        let mut compile = |field: String, source: &Value, names: &[&str]| {
            let source = source.as_str().unwrap_or_default();
            Expression::compile(source, names).map_err(|error| complain(&field, source, error)).ok()
        };
        let list = |field: &str| spec[field].as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        let conditions = list("matchConditions").filter_map(|(at, condition)| {
            compile(format!("spec.matchConditions[{at}].expression"), &condition["expression"], &all)
        });
        let conditions = conditions.collect();
        let variables = list("variables").filter_map(|(at, variable)| {
            let name = variable["name"].as_str().unwrap_or_default().to_owned();
            Some((name, compile(format!("spec.variables[{at}].expression"), &variable["expression"], &all)?))
        });
        let variables = variables.collect();
        let validations = list("validations").filter_map(|(at, validation)| {
            let text = |field: &str| validation[field].as_str().unwrap_or_default().to_owned();
            let expression = compile(format!("spec.validations[{at}].expression"), &validation["expression"], &all)?;
            let message = Some(&validation["messageExpression"]).filter(|message| message.is_string());
            let message_expression = message
                .and_then(|message| compile(format!("spec.validations[{at}].messageExpression"), message, &NAMES));
            Some(Validation { expression, message: text("message"), message_expression, reason: text("reason") })
        });
        let validations = validations.collect();
        Self { conditions, variables, validations }
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
