//! Conditions of objects that the rules of a work ask for.

use drover_api::{
    names::{STATUS_FEEDBACK_SYNCED, WORK_APPLIED, WORK_COMPLETE},
    work::{ConditionRule, ConditionRuleType},
};
use serde_json::Value;

use crate::{
    cel::{Expression, Failure, Invalid, Scope, Seen},
    condition::Holds,
};

/// What the reasons of conditions begin with that rules have made.
pub(super) const REASONS: &str = "ConditionRule";

/// The longest type of a condition.
const LONGEST_TYPE: usize = 316;

const EVALUATED: &str = "ConditionRuleEvaluated";
const INVALID: &str = "ConditionRuleInvalid";
const EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
const INTERNAL_ERROR: &str = "ConditionRuleInternalError";

/// The rules for one object, read once: reading expressions takes far longer than asking them.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    condition: String,
    decider: Decider,
    message: Option<String>,
    message_expression: Option<Result<Expression, Invalid>>,
}

#[derive(Debug)]
enum Decider {
    WellKnown,
    /// Expressions that all have to hold, each with its text.
    Expressions(Vec<(String, Result<Expression, Invalid>)>),
}

/// What a rule has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The type of the condition.
    pub type_: String,
    /// Whether it holds.
    pub holds: Holds,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Rules {
    /// Reads rules. What is wrong with one is told when it is asked. What the agent itself says of every object is not for rules to say, and what is no
    /// type of conditions can not be told.
    #[must_use]
    pub fn compile(rules: &[ConditionRule]) -> Self {
        let is_fit = |rule: &&ConditionRule| {
            let type_ = rule.condition.as_str();
            is_type(type_) && ![WORK_APPLIED, STATUS_FEEDBACK_SYNCED].contains(&type_)
        };
        Self(rules.iter().filter(is_fit).map(Rule::compile).collect())
    }

    /// What the rules say of an object. A rule that nothing is known for says nothing.
    #[must_use]
    pub fn evaluate(&self, live: &Value) -> Vec<Verdict> {
        // What expressions see is costly to make, so it is not made for nobody.
        if self.0.is_empty() {
            return Vec::new();
        }
        let seen = Seen::object(live);
        self.0.iter().filter_map(|rule| rule.evaluate(live, &seen)).collect()
    }

    /// Whether a rule is about conditions of this type.
    pub(super) fn are_about(&self, type_: &str) -> bool {
        self.0.iter().any(|rule| rule.condition == type_)
    }
}

impl Rule {
    fn compile(rule: &ConditionRule) -> Self {
        let compiled = |source: &String| (source.clone(), Expression::compile(source, Scope::Object));
        let message_expression = rule.message_expression.as_deref().filter(|source| !source.is_empty());
        Self {
            condition: rule.condition.clone(),
            decider: match rule.kind {
                ConditionRuleType::WellKnownConditions => Decider::WellKnown,
                ConditionRuleType::Cel => Decider::Expressions(rule.cel_expressions.iter().map(compiled).collect()),
            },
            message: rule.message.clone().filter(|message| !message.is_empty()),
            message_expression: message_expression.map(|source| Expression::compile(source, Scope::Message)),
        }
    }

    fn evaluate(&self, live: &Value, seen: &Seen) -> Option<Verdict> {
        let decided = match &self.decider {
            Decider::WellKnown => Ok(well_known(&self.condition, live)?),
            Decider::Expressions(expressions) => all(expressions, seen),
        };
        let (holds, reason, message) = match decided {
            Ok(holds) => (holds.into(), EVALUATED, self.message(live, holds)),
            Err(undecided) => undecided,
        };
        Some(Verdict { type_: self.condition.clone(), holds, reason, message })
    }

    fn message(&self, live: &Value, holds: bool) -> String {
        let made = self.message_expression.as_ref().map(|expression| match expression {
            Ok(expression) => {
                let text = expression.text(&Seen::object(live).with_result(holds));
                text.unwrap_or_else(|failure| format!("the messageExpression has failed: {failure}"))
            }
            Err(invalid) => format!("the messageExpression {invalid}"),
        });
        let otherwise = || {
            let not = if holds { "" } else { "not " };
            format!("Manifest is {not}{}", self.condition)
        };
        made.filter(|made| !made.is_empty()).or_else(|| self.message.clone()).unwrap_or_else(otherwise)
    }
}

/// Whether a server takes conditions of this type. For one that it does not take, it would refuse the whole status.
fn is_type(type_: &str) -> bool {
    let is_lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let (domain, name) = type_.rsplit_once('/').unwrap_or(("example.com", type_));
    type_.len() <= LONGEST_TYPE
        && domain.split('.').all(|label| is_made_of(label, is_lower, "-"))
        && is_made_of(name, |c| c.is_ascii_alphanumeric(), "-_.")
}

/// Whether a text consists of certain characters, with others only between them.
fn is_made_of(text: &str, is_fit: impl Fn(char) -> bool, between: &str) -> bool {
    text.starts_with(&is_fit) && text.ends_with(&is_fit) && text.chars().all(|c| is_fit(c) || between.contains(c))
}

/// Whether all expressions hold; otherwise what the condition says instead. The first that does not hold ends the matter, as in OCM.
fn all(
    expressions: &[(String, Result<Expression, Invalid>)],
    seen: &Seen,
) -> Result<bool, (Holds, &'static str, String)> {
    if expressions.is_empty() {
        let message = "the rule has no celExpressions: write at least one".to_owned();
        return Err((Holds::Unknown, INVALID, message));
    }
    for (source, expression) in expressions {
        let told = |problem: String| format!("the expression {source:?}: {problem}");
        let expression = expression.as_ref();
        let expression = expression.map_err(|invalid| (Holds::No, EXPRESSION_ERROR, told(invalid.to_string())))?;
        match expression.truth(seen) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(failure @ Failure::GaveUp) => return Err((Holds::Unknown, INTERNAL_ERROR, told(failure.to_string()))),
            Err(failure) => return Err((Holds::No, EXPRESSION_ERROR, told(failure.to_string()))),
        }
    }
    Ok(true)
}

/// Whether what is known for an object's kind holds; nothing where nothing is known.
fn well_known(condition: &str, live: &Value) -> Option<bool> {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match (condition, text("/apiVersion"), text("/kind")) {
        (WORK_COMPLETE, "batch/v1", "Job") => {
            let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
            let is = |condition: &Value, field: &str, values: &[&str]| {
                condition.get(field).and_then(Value::as_str).is_some_and(|value| values.contains(&value))
            };
            let ends = |it: &Value| is(it, "type", &["Complete", "Failed"]) && is(it, "status", &["True"]);
            Some(conditions.into_iter().flatten().any(ends))
        }
        (WORK_COMPLETE, "v1", "Pod") => Some(["Succeeded", "Failed"].contains(&text("/status/phase"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
