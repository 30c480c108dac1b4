//! What one policy says about one request.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use serde_json::Value as Json;

use super::{
    Request,
    authorizer::Check,
    definition::{Definition, FailurePolicy, Validation},
};
use crate::{
    access::{Resource, Rules},
    cel::{Budget, Error, Expression, Names, Result, Value, on_a_stack_for},
};

/// What all conditions of a policy may cost, and all its validations.
const COST_OF_CONDITIONS: u64 = 2_500_000;
const COST_OF_VALIDATIONS: u64 = 10_000_000;
/// The longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// What a policy has against a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) message: String,
    /// As the policy has it; empty where the policy could not be evaluated.
    pub(super) reason: &'static str,
}

/// One evaluation: a policy on a request, whose objects are in the version that the policy is written for.
pub(super) struct Evaluation<'a> {
    definition: &'a Definition,
    names: HashMap<&'static str, Value<'a>>,
    /// The variables that have been looked at.
    variables: RefCell<HashMap<&'a str, Result<Value<'a>>>>,
    /// How many variables can be named: all, or those before the one that is evaluated.
    visible: Cell<usize>,
    budget: &'a Budget,
}

impl<'a> Evaluation<'a> {
    /// All that a policy has against a request.
    pub(super) fn denials(definition: &Definition, request: &Request<'_>, version: &str, rules: &Rules) -> Vec<Denial> {
        let evaluate = || Evaluation::all_denials(definition, request, version, rules);
        let failed = || definition.failure(Error("the policy could not be evaluated".to_owned()));
        on_a_stack_for(definition.depth, evaluate).unwrap_or_else(|| failed().into_iter().collect())
    }

    fn all_denials(definition: &Definition, request: &Request<'_>, version: &str, rules: &Rules) -> Vec<Denial> {
        let converted = |object: Option<&'_ Json>| -> Option<Json> {
            object.filter(|_| version != request.version).map(|object| (request.convert)(object, version))
        };
        let (object, old) = (converted(request.object), converted(request.old));
        let seen = request.seen_in(version);
        let null = Json::Null;
        let budgets = [COST_OF_CONDITIONS, COST_OF_VALIDATIONS].map(Budget::new);
        let names = HashMap::from([
            ("object", Value::from(object.as_ref().or(request.object).unwrap_or(&null))),
            ("oldObject", Value::from(old.as_ref().or(request.old).unwrap_or(&null))),
            ("request", Value::from(&seen)),
            ("params", Value::Null),
            ("namespaceObject", Value::from(request.namespace_object.unwrap_or(&null))),
            ("authorizer", Value::Foreign(Rc::new(Check::new(rules, request.user, about(request, version))))),
        ]);
        let conditions = Evaluation::new(definition, names.clone(), &budgets[0]);
        match conditions.conditions_hold() {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(error) => return definition.failure(error).into_iter().collect(),
        }
        let evaluation = Evaluation::new(definition, names, &budgets[1]);
        definition.validations.iter().filter_map(|validation| evaluation.denial(validation)).collect()
    }

    fn new(definition: &'a Definition, names: HashMap<&'static str, Value<'a>>, budget: &'a Budget) -> Self {
        let visible = Cell::new(definition.variables.len());
        Self { definition, names, variables: RefCell::default(), visible, budget }
    }

    /// Whether the policy is about the request. One condition that does not hold is enough, even if another has no value.
    fn conditions_hold(&self) -> Result<bool> {
        let mut errors = Vec::new();
        for condition in &self.definition.conditions {
            match self.evaluate(condition) {
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(_) => {}
                Err(error) => errors.push(error.0),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if self.definition.failure_policy == FailurePolicy::Ignore => Ok(false),
            [only] => Err(Error(only.clone())),
            several => Err(Error(format!("[{}]", several.join(", ")))),
        }
    }

    fn denial(&self, validation: &'a Validation) -> Option<Denial> {
        match self.evaluate(&validation.expression) {
            Ok(Value::Bool(true)) => None,
            Ok(_) => Some(Denial { message: self.message(validation), reason: reason(&validation.reason) }),
            Err(error) => self.definition.failure(error),
        }
    }

    fn message(&self, validation: &'a Validation) -> String {
        let computed = validation.message_expression.as_ref().and_then(|message| self.evaluate(message).ok());
        let computed = match &computed {
            Some(Value::Text(text)) => text.trim(),
            _ => "",
        };
        let is_usable = !computed.is_empty() && computed.len() <= MAX_MESSAGE && !computed.contains('\n');
        match validation.message.trim() {
            _ if is_usable => computed.to_owned(),
            "" => format!("failed expression: {}", validation.expression.source.trim()),
            message => message.to_owned(),
        }
    }

    fn evaluate(&self, expression: &'a Expression) -> Result<Value<'a>> {
        let value = expression.evaluate(self, self.budget);
        value.map_err(|error| Error(format!("expression '{}' resulted in error: {error}", expression.source)))
    }
}

impl<'a> Names<'a> for Evaluation<'a> {
    fn value(&self, name: &str) -> Option<Value<'a>> {
        self.names.get(name).cloned()
    }

    fn variable(&self, name: &str) -> Result<Value<'a>> {
        // One is made of those before it, never of itself: so there is an end, and it is known how
        // many levels all have together.
        let visible = self.visible.get();
        let mut variables = self.definition.variables.iter().take(visible).enumerate();
        let Some((at, (name, expression))) = variables.find(|(_, (own, _))| own == name) else {
            return Err(Error(format!("no such key: {name}")));
        };
        if let Some(value) = self.variables.borrow().get(name.as_str()) {
            return value.clone();
        }
        self.visible.set(at);
        let value = expression.evaluate(self, self.budget);
        self.visible.set(visible);
        let value = value.map_err(|error| Error(format!("composited variable {name:?} fails to evaluate: {error}")));
        self.variables.borrow_mut().insert(name, value.clone());
        value
    }
}

impl Definition {
    /// What follows from an expression that has no value.
    fn failure(&self, error: Error) -> Option<Denial> {
        match self.failure_policy {
            FailurePolicy::Fail => Some(Denial { message: error.0, reason: "" }),
            FailurePolicy::Ignore => None,
        }
    }
}

fn reason(reason: &str) -> &'static str {
    let known = ["Forbidden", "Unauthorized", "RequestEntityTooLarge"];
    known.into_iter().find(|known| *known == reason).unwrap_or("Invalid")
}

/// What the request is about, for who asks whether it may be done.
fn about<'a>(request: &Request<'a>, version: &'a str) -> Resource<'a> {
    Resource {
        group: &request.kind.group,
        version,
        resource: &request.kind.plural,
        subresource: request.subresource(),
        namespace: request.namespace(),
        name: request.name(),
    }
}
