//! One rule: what it asks, and what is said where it does not hold.

use std::sync::Arc;

use kube_cel::cel::{self, Context, ExecutionError, objects::OptionalValue};
use serde_json::Value;

use super::{
    Place,
    expression::{Expression, Sort},
    field_path, functions, value,
};
use crate::{
    field::{ErrorKind, FieldError, Path},
    schema::{Schema, Type},
};

/// The longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// A rule that can be checked.
#[derive(Debug)]
pub(super) struct Rule {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: ErrorKind,
    field_path: Option<String>,
    /// Whether what was before may be missing, and is wrapped so that a rule can ask.
    wraps_old: bool,
    /// The rule, for people: its message, or else itself.
    text: String,
}

/// Compiles the rules that stand at one place.
pub(super) fn compile_all(
    schema: &Schema,
    path: &Path<'_>,
    uncorrelated: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (index, written) in schema.rules.iter().enumerate() {
        rules.extend(Rule::compile(written, schema, &path.index(index), uncorrelated, errors));
    }
    rules
}

/// Checks a value against the rules that stand at its place.
pub(super) fn check_all(
    rules: &[Rule],
    value: &Value,
    old: Option<&Value>,
    place: Place<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if rules.is_empty() {
        return;
    }
    let from_json = |value: &Value| value::from_json(value, place.schema, place.is_resource);
    let mut context = functions::ALL.new_inner_scope();
    context.add_variable_from_value("self", from_json(value));
    let old = old.filter(|_| rules.iter().any(|rule| rule.expression.is_about_change)).map(from_json);
    if let Some(old) = &old {
        context.add_variable_from_value("oldSelf", old.clone());
    }
    for rule in rules {
        if rule.expression.is_about_change && old.is_none() && !rule.wraps_old {
            continue;
        }
        if let Some(error) = rule.check(value, old.as_ref(), &context, place.schema, path)
            && (rule.expression.is_about_change || !place.ratchet.is_unchanged())
        {
            errors.push(error);
        }
    }
}

impl Rule {
    fn compile(
        written: &Value,
        schema: &Schema,
        path: &Path<'_>,
        uncorrelated: Option<&str>,
        errors: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let text = |name: &str| written.get(name).and_then(Value::as_str).unwrap_or_default();
        let source = text("rule");
        if source.trim().is_empty() {
            return None;
        }
        let count = errors.len();
        let invalid = |field: &str, value: Value, detail: String| {
            FieldError::new(ErrorKind::Invalid, &path.field(field), value, detail)
        };
        let expression = Expression::compile(source, Sort::Truth)
            .map_err(|fault| errors.push(invalid("rule", as_kubernetes_prints(written), fault.of("compilation"))));
        let message_source = text("messageExpression");
        let message_expression = (!message_source.is_empty()).then(|| Expression::compile(message_source, Sort::Text));
        let message_expression = message_expression.and_then(|compiled| match compiled {
            Ok(compiled) => Some(compiled),
            Err(fault) => {
                let detail = fault.of("messageExpression compilation");
                errors.push(invalid("messageExpression", as_kubernetes_prints(written), detail));
                None
            }
        });
        let expression = expression.ok()?;
        let wraps_old = written.get("optionalOldSelf").and_then(Value::as_bool);
        match (expression.is_about_change, uncorrelated, wraps_old) {
            (true, Some(place), _) => {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {place}");
                errors.push(invalid("rule", source.into(), detail));
            }
            (false, _, Some(wraps_old)) => {
                let detail = "may not be set if oldSelf is not used in rule".to_owned();
                errors.push(invalid("optionalOldSelf", wraps_old.into(), detail));
            }
            _ => {}
        }
        let message = text("message").trim();
        let shown = if text("message").is_empty() { source.trim() } else { message };
        (errors.len() == count).then(|| Self {
            expression,
            message: if text("message").is_empty() { format!("failed rule: {shown}") } else { message.to_owned() },
            message_expression,
            reason: match text("reason") {
                "FieldValueForbidden" => ErrorKind::Forbidden,
                "FieldValueRequired" => ErrorKind::Required,
                "FieldValueDuplicate" => ErrorKind::Duplicate,
                _ => ErrorKind::Invalid,
            },
            field_path: field_path::resolve(text("fieldPath"), schema, field_path::Brackets::Allowed)
                .ok()
                .map(|found| found.path)
                .filter(|path| !path.is_empty()),
            wraps_old: wraps_old.unwrap_or(false),
            text: shown.to_owned(),
        })
    }

    /// What to say of a value; nothing if the rule holds.
    fn check(
        &self,
        value: &Value,
        old: Option<&cel::Value>,
        context: &Context<'_>,
        schema: &Schema,
        path: &Path<'_>,
    ) -> Option<FieldError> {
        let answer = if self.wraps_old {
            let wrapped = old.map_or_else(OptionalValue::none, |old| OptionalValue::of(old.clone()));
            let mut context = context.new_inner_scope();
            context.add_variable_from_value("oldSelf", cel::Value::Opaque(Arc::new(wrapped)));
            self.expression.evaluate(&context)
        } else {
            self.expression.evaluate(context)
        };
        match answer {
            Ok(cel::Value::Bool(true)) => None,
            Ok(_) => Some(self.broken(value, context, schema, path)),
            Err(error) => {
                let type_ = schema.type_.map_or("", Type::as_str);
                Some(FieldError::new(ErrorKind::Invalid, path, type_, self.failed(&error)))
            }
        }
    }

    fn broken(&self, value: &Value, context: &Context<'_>, schema: &Schema, path: &Path<'_>) -> FieldError {
        let detail = self.made_message(context).unwrap_or_else(|| self.message.clone());
        // Objects and lists would only fill the screen.
        let value = (!matches!(schema.type_, Some(Type::Object | Type::Array))).then(|| value.clone());
        let mut error = FieldError { kind: self.reason, field: path.to_string(), value, detail };
        if let Some(inner) = &self.field_path {
            let separator = if error.field.is_empty() { "" } else { "." };
            error.field = format!("{}{separator}{inner}", error.field);
        }
        match self.reason {
            ErrorKind::Duplicate => error.detail.clear(),
            ErrorKind::Forbidden | ErrorKind::Required => error.value = None,
            _ => {}
        }
        error
    }

    /// What the message's own expression makes, if that can be shown in one line.
    fn made_message(&self, context: &Context<'_>) -> Option<String> {
        let Ok(cel::Value::String(made)) = self.message_expression.as_ref()?.evaluate(context) else { return None };
        let made = made.trim();
        let can_be_shown = !made.is_empty() && made.len() <= MAX_MESSAGE && !made.contains('\n');
        can_be_shown.then(|| made.to_owned())
    }

    fn failed(&self, error: &ExecutionError) -> String {
        let text = &self.text;
        match error {
            ExecutionError::NoSuchOverload
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnsupportedUnaryOperator(..)
            | ExecutionError::ValuesNotComparable(..)
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::NotSupportedAsMethod { .. } => format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {text}"
            ),
            ExecutionError::NoSuchKey(key) => format!("no such key: {key} evaluating rule: {text}"),
            ExecutionError::DivisionByZero(_) => format!("division by zero evaluating rule: {text}"),
            ExecutionError::RemainderByZero(_) => format!("modulus by zero evaluating rule: {text}"),
            ExecutionError::Overflow(..) => format!("integer overflow evaluating rule: {text}"),
            ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => {
                format!("index out of bounds: {index} evaluating rule: {text}")
            }
            ExecutionError::FunctionError { message, .. } => format!("{message} evaluating rule: {text}"),
            other => format!("{other} evaluating rule: {text}"),
        }
    }
}

/// A rule with the names that its parts have inside of Kubernetes, which is how it comes out of there.
fn as_kubernetes_prints(written: &Value) -> Value {
    let text = |name: &str| written.get(name).and_then(Value::as_str).unwrap_or_default();
    serde_json::json!({
        "Rule": text("rule"),
        "Message": text("message"),
        "MessageExpression": text("messageExpression"),
        "Reason": written.get("reason"),
        "FieldPath": text("fieldPath"),
        "OptionalOldSelf": written.get("optionalOldSelf"),
    })
}
