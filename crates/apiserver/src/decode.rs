//! How the body of a request becomes an object: its text is read, it says what it is, and its fields are of the types that the kind has.
//!
//! What is wrong is told in the words of the real server, which are those of the language that it is written in.

mod base64;
mod custom;
mod identity;
mod scan;
mod trim;
mod typed;

pub(crate) use self::identity::SCHEME;
pub use self::{
    identity::{Known, identify},
    trim::trim,
};

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, budget::BudgetBreach};

use crate::{
    catalog,
    depth::{self, MAX_PARSED_DEPTH, TooDeep},
    failure::Failure,
    kind::{Kind, Origin, Version},
};

/// How many bytes of a body are shown where it can not be read.
const SHOWN: usize = 30;

/// What a body says, and what it says twice.
pub type Read = (Value, Vec<String>);

/// Reads a body in JSON.
pub fn json(body: &[u8], kind: &Kind) -> Result<Read, Failure> {
    read_json(body).map_err(|problem| unrecognized(kind, &problem, body))
}

/// Reads a text in JSON; what is wrong with it is told without saying what it was meant to be.
pub fn read_json(body: &[u8]) -> Result<Read, String> {
    let text = String::from_utf8_lossy(body);
    let twice = scan::duplicates(text.as_bytes())?;
    let value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    within_depth(value, twice)
}

/// What was read, if it nests no deeper than objects may.
fn within_depth(value: Value, twice: Vec<String>) -> Result<Read, String> {
    depth::check(&value).map_err(|error| error.to_string())?;
    Ok((value, twice))
}

/// Whether the options of a deletion are of the types that they have to be.
pub fn check_options(options: &Value) -> Result<(), Failure> {
    if !options.is_object() {
        return Err(Failure::bad_request(identity::no_object(options)));
    }
    typed::check(options, "DeleteOptions", &catalog::delete_options()).map_err(Failure::bad_request)
}

/// Reads a body in YAML. Of what it says twice, the last counts.
pub fn yaml(body: &[u8], kind: &Kind) -> Result<Read, Failure> {
    read_yaml(body).map_err(|problem| unrecognized_yaml(kind, &problem, body))
}

/// Reads a text in YAML; what is wrong with it is told without saying what it was meant to be.
pub fn read_yaml(body: &[u8]) -> Result<Read, String> {
    let text = String::from_utf8_lossy(body);
    let text = first_document(&text);
    let options = |duplicate_keys: DuplicateKeyPolicy| {
        serde_saphyr::options! {
            duplicate_keys: duplicate_keys,
            budget: serde_saphyr::budget! { max_depth: MAX_PARSED_DEPTH, flow_nesting_limit: MAX_PARSED_DEPTH + 1 },
        }
    };
    let read = |policy: DuplicateKeyPolicy| serde_saphyr::from_str_with_options(text, options(policy));
    let error = match read(DuplicateKeyPolicy::Error) {
        Ok(value) => return within_depth(value, Vec::new()),
        Err(error) => error,
    };
    let value = read(DuplicateKeyPolicy::LastWins).map_err(|error| yaml_problem(&error))?;
    within_depth(value, twice_in_yaml(&error.to_string()).into_iter().collect())
}

/// What is wrong with a text that is no YAML, or nests too deeply.
fn yaml_problem(error: &serde_saphyr::Error) -> String {
    let mut cause = error;
    while let serde_saphyr::Error::WithSnippet { error, .. } | serde_saphyr::Error::AliasError { error, .. } = cause {
        cause = error;
    }
    match cause {
        serde_saphyr::Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => TooDeep.to_string(),
        // The scanner, which is ahead of the parser, has a limit of its own.
        serde_saphyr::Error::ExternalMessage { msg, .. } if msg == "recursion limit exceeded" => TooDeep.to_string(),
        _ => error.to_string(),
    }
}

/// A text up to where another document begins, which nobody reads.
fn first_document(text: &str) -> &str {
    let start = if text.starts_with("---") { 3 } else { 0 };
    let next = text[start..].match_indices("\n---").find(|(at, _)| {
        let rest = &text[start + at + 4..];
        rest.is_empty() || rest.starts_with(char::is_whitespace)
    });
    next.map_or(text, |(at, _)| &text[..=start + at])
}

/// What is said of the first key that is there twice, where that is what is wrong.
fn twice_in_yaml(problem: &str) -> Option<String> {
    let (_, place) = problem.split_once("line ")?;
    let (line, rest) = place.split_once(' ')?;
    let (_, key) = rest.split_once("duplicate mapping key: ")?;
    let (key, _) = key.split_once(',')?;
    Some(format!("line {line}: key {key:?} already set in map"))
}

fn unrecognized(kind: &Kind, problem: &str, body: &[u8]) -> Failure {
    unrecognized_as(kind, &format!("couldn't get version/kind; json parse error: {problem}"), body)
}

fn unrecognized_yaml(kind: &Kind, problem: &str, body: &[u8]) -> Failure {
    unrecognized_as(kind, &format!("error converting YAML to JSON: {problem}"), body)
}

fn unrecognized_as(kind: &Kind, problem: &str, body: &[u8]) -> Failure {
    let wanted = &kind.kind;
    let shown = summary(body);
    Failure::bad_request(format!("the object provided is unrecognized (must be of type {wanted}): {problem} ({shown})"))
}

/// The beginning of a body, for people.
fn summary(body: &[u8]) -> String {
    let part = &body[..body.len().min(SHOWN)];
    let rest = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{rest}", String::from_utf8_lossy(part)),
        Some(_) => {
            let digits: Vec<String> = part.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{rest}", digits.concat())
        }
    }
}

/// The failure of an object that says what it is and is not that.
fn mishandled(object: &Value, kind: &Kind, version: &str, problem: &str) -> Failure {
    let said = object.get("kind").and_then(Value::as_str).filter(|said| !said.is_empty()).unwrap_or(&kind.kind);
    let wanted = &kind.kind;
    Failure::bad_request(format!("{said} in version {version:?} cannot be handled as a {wanted}: {problem}"))
}

/// Whether all fields of an object are of the types that the kind has.
pub fn check(object: &Value, kind: &Kind, version: &Version) -> Result<(), Failure> {
    let checked = match kind.origin {
        Origin::Custom => custom::check_metadata(object),
        Origin::BuiltIn | Origin::Review => typed::check(object, &kind.kind, &version.schema),
    };
    checked.map_err(|problem| mishandled(object, kind, &version.name, &problem))
}

/// Drops the fields that metadata does not have from an object of a custom kind, and returns them as
/// errors. In maps and lists of strings, null becomes an empty string, as in built-in kinds.
pub fn tidy_metadata(object: &mut Value) -> Vec<String> {
    custom::tidy(object).into_iter().map(|path| unknown_field(&path)).collect()
}

/// What is said of a field that the kind does not have.
#[must_use]
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {path:?}")
}

/// What to do with fields that a kind does not have, and with those that are said twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Nothing: they are dropped.
    Ignore,
    /// They are dropped, and whoever asks is warned.
    #[default]
    Warn,
    /// The request fails.
    Strict,
}

impl Strictness {
    /// Reads the parameter of a request; nothing where it is none of them.
    #[must_use]
    pub fn read(parameter: &str) -> Option<Self> {
        match parameter {
            "Ignore" => Some(Self::Ignore),
            "" | "Warn" => Some(Self::Warn),
            "Strict" => Some(Self::Strict),
            _ => None,
        }
    }

    /// The warnings for what was found, or the failure.
    pub fn judge(self, object: &Value, kind: &Kind, version: &str, found: Vec<String>) -> Result<Vec<String>, Failure> {
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Warn => Ok(found),
            Self::Strict if found.is_empty() => Ok(found),
            Self::Strict => Err(strict_errors(object, kind, version, &found)),
        }
    }
}

/// The failure of an object with fields that its kind does not have, or that it says twice.
#[must_use]
pub fn strict_errors(object: &Value, kind: &Kind, version: &str, found: &[String]) -> Failure {
    mishandled(object, kind, version, &format!("strict decoding error: {}", found.join(", ")))
}

/// The name of a value's type in messages about JSON.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
