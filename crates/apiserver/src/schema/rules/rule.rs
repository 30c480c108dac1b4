//! One rule: what it asks, and what is said where it does not hold.

use serde_json::Value;

use super::{
    Place, Run,
    expression::{Expression, Sort, Types},
    field_path,
};
use crate::{
    cel::{self, Names, OUT_OF_BUDGET, TOO_EXPENSIVE},
    field::{ErrorKind, FieldError, Path},
    schema::{Schema, Type},
};

/// The longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// What is said where there can be no more rules.
const NO_MORE: &str = ", no further validation rules will be run";

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
    is_resource: bool,
    path: &Path<'_>,
    uncorrelated: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> Vec<Rule> {
    if schema.rules.is_empty() {
        return Vec::new();
    }
    let Some(types) = Types::at(schema, is_resource) else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                      unable to convert structural schema to CEL declarations";
        errors.push(FieldError::bare(ErrorKind::Internal, path, detail));
        return Vec::new();
    };
    let mut rules = Vec::new();
    for (index, written) in schema.rules.iter().enumerate() {
        rules.extend(Rule::compile(written, schema, &types, &path.index(index), uncorrelated, errors));
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
    run: &mut Run,
) {
    let seen = |value| cel::Value::described(value, place.schema, place.is_resource);
    let names = Seen { own: seen(value), old: old.map(seen) };
    for rule in rules {
        if rule.expression.is_about_change && old.is_none() && !rule.wraps_old {
            continue;
        }
        rule.check(value, &names, place, path, run);
        if run.is_over {
            return;
        }
    }
}

/// What rules can name.
struct Seen<'a> {
    own: cel::Value<'a>,
    /// What was before, if there was something.
    old: Option<cel::Value<'a>>,
}

impl<'a> Names<'a> for Seen<'a> {
    fn value(&self, name: &str) -> Option<cel::Value<'a>> {
        match name {
            "self" => Some(self.own.clone()),
            "oldSelf" => self.old.clone(),
            _ => None,
        }
    }
}

/// The same, with what was before wrapped so that a rule can ask whether there was something.
struct Wrapped<'n, 'a>(&'n Seen<'a>);

impl<'a> Names<'a> for Wrapped<'_, 'a> {
    fn value(&self, name: &str) -> Option<cel::Value<'a>> {
        if name == "oldSelf" { Some(cel::Value::optional(self.0.old.clone())) } else { self.0.value(name) }
    }
}

impl Rule {
    fn compile(
        written: &Value,
        schema: &Schema,
        types: &Types<'_>,
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
        let wraps_old = written.get("optionalOldSelf").and_then(Value::as_bool);
        let compile = |source: &str, sort| types.compile(source, sort, wraps_old == Some(true));
        let flawed = |field: &str, detail: String| {
            let detail = format!("{}: {detail}", as_kubernetes_prints(written));
            FieldError::bare(ErrorKind::Invalid, &path.field(field), detail)
        };
        let expression =
            compile(source, Sort::Truth).map_err(|fault| errors.push(flawed("rule", fault.of("compilation")))).ok();
        let message_source = text("messageExpression");
        let message_expression = match compile(message_source, Sort::Text) {
            _ if expression.is_none() || message_source.is_empty() => None,
            Ok(compiled) => Some(compiled),
            Err(fault) => {
                errors.push(flawed("messageExpression", fault.of("messageExpression compilation")));
                None
            }
        };
        let is_about_change = expression.as_ref().is_some_and(|expression| expression.is_about_change);
        match (is_about_change, uncorrelated, wraps_old) {
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
        let expression = expression?;
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

    /// How many levels its expressions have.
    pub(super) fn depth(&self) -> usize {
        let message = self.message_expression.as_ref().map_or(0, |message| message.evaluated.depth);
        message.max(self.expression.evaluated.depth)
    }

    /// Notes what there is to say of a value, and whether there can be more.
    fn check<'a>(&'a self, value: &Value, names: &Seen<'a>, place: Place<'_>, path: &Path<'_>, run: &mut Run) {
        let expression = &self.expression.evaluated;
        let answer = if self.wraps_old {
            expression.evaluate(&Wrapped(names), &run.budget)
        } else {
            expression.evaluate(names, &run.budget)
        };
        match answer {
            Ok(cel::Value::Bool(true)) => {}
            Ok(_) => self.note_broken(value, names, place, path, run),
            Err(cel::Error(why)) => {
                run.is_over = why == OUT_OF_BUDGET || why == TOO_EXPENSIVE;
                run.errors.push(FieldError::new(ErrorKind::Invalid, path, type_name(place.schema), self.failed(&why)));
            }
        }
    }

    fn note_broken<'a>(&'a self, value: &Value, names: &Seen<'a>, place: Place<'_>, path: &Path<'_>, run: &mut Run) {
        let message = self.made_message(names, run);
        if !self.expression.is_about_change && place.ratchet.is_unchanged() {
            return;
        }
        let mut error = match message {
            Err(detail) => FieldError::new(ErrorKind::Invalid, path, type_name(place.schema), detail),
            Ok(message) => self.broken(value, message.unwrap_or_else(|| self.message.clone()), place.schema, path),
        };
        if let Some(inner) = &self.field_path {
            let separator = if error.field.is_empty() { "" } else { "." };
            error.field = format!("{}{separator}{inner}", error.field);
        }
        run.errors.push(error);
    }

    fn broken(&self, value: &Value, detail: String, schema: &Schema, path: &Path<'_>) -> FieldError {
        // Objects and lists would only fill the screen.
        let value = (!matches!(schema.type_, Some(Type::Object | Type::Array))).then(|| value.clone());
        let mut error = FieldError { kind: self.reason, field: path.to_string(), value, detail };
        match self.reason {
            ErrorKind::Duplicate => error.detail.clear(),
            ErrorKind::Forbidden | ErrorKind::Required => error.value = None,
            _ => {}
        }
        error
    }

    /// What the message's own expression makes, if that can be shown in one line. Where it costs too much, that is what is said, and all.
    fn made_message<'a>(&'a self, names: &Seen<'a>, run: &mut Run) -> Result<Option<String>, String> {
        let Some(Expression { evaluated, .. }) = &self.message_expression else { return Ok(None) };
        match evaluated.evaluate(names, &run.budget) {
            Ok(cel::Value::Text(made)) => {
                let made = made.trim();
                let can_be_shown = !made.is_empty() && made.len() <= MAX_MESSAGE && !made.contains('\n');
                Ok(can_be_shown.then(|| made.to_owned()))
            }
            Err(cel::Error(why)) if why == OUT_OF_BUDGET => {
                run.is_over = true;
                Err(format!("messageExpression evaluation failed due to running out of cost budget{NO_MORE}"))
            }
            Err(cel::Error(why)) if why == TOO_EXPENSIVE => {
                run.is_over = true;
                let of = format!("messageExpression: {:?}", evaluated.source);
                Err(format!("no further validation rules will be run due to call cost exceeds limit for {of}"))
            }
            _ => Ok(None),
        }
    }

    fn failed(&self, why: &str) -> String {
        let text = &self.text;
        match why {
            "no such overload" => format!(
                "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {text}"
            ),
            TOO_EXPENSIVE => {
                format!(
                    "'{why}': no further validation rules will be run due to call cost exceeds limit for rule: {text}"
                )
            }
            OUT_OF_BUDGET => why.to_owned(),
            _ => format!("{why} evaluating rule: {text}"),
        }
    }
}

fn type_name(schema: &Schema) -> &'static str {
    schema.type_.map_or("", Type::as_str)
}

/// A rule with the names that its parts have inside of Kubernetes, in the order that they have there, which is how it comes out.
pub(super) fn as_kubernetes_prints(written: &Value) -> String {
    let text = |name: &str| as_go_prints(written.get(name).unwrap_or(&Value::String(String::new())));
    let optional = |name: &str| as_go_prints(written.get(name).unwrap_or(&Value::Null));
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        text("rule"),
        text("message"),
        text("messageExpression"),
        optional("reason"),
        text("fieldPath"),
        optional("optionalOldSelf"),
    )
}

/// JSON as Go writes it, with nothing in it that would mean something in HTML.
fn as_go_prints(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
