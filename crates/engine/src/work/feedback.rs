//! What of an object's state is reported to the hub.

use drover_api::work::{FeedbackRule, FeedbackType, FeedbackValue, FieldValue, FieldValueType, JsonPath as NamedPath};
use serde_json::Value;

use crate::jsonpath::JsonPath;

/// What is done with a value that is neither a whole number nor a text nor true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawJson {
    /// It can not be reported.
    Refused,
    /// It is reported as JSON, up to so many bytes.
    UpTo(usize),
}

/// What was found of what is to be reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Feedback {
    /// What was found.
    pub values: Vec<FeedbackValue>,
    /// What could not be.
    pub problems: Vec<FeedbackProblem>,
}

/// Why a value can not be reported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FeedbackProblem {
    /// Nothing is known for the kind.
    #[error("nothing is well known of the kind {kind} in {api_version}: name what is to be reported by jsonPaths")]
    UnknownKind {
        /// The version of the API, with its group.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The path is for another version of the API.
    #[error(
        "the path {name} is for version {wanted}, and the object is in version {found}: change the one or the other"
    )]
    Version {
        /// The name of the value.
        name: String,
        /// The version that the path is for.
        wanted: String,
        /// The version that the object is in.
        found: String,
    },
    /// The path is none, or can not be followed.
    #[error("the path {path} of {name} leads nowhere: {problem}")]
    Path {
        /// The name of the value.
        name: String,
        /// The path.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The value is of a type that can not be reported.
    #[error("the path {path} of {name} leads to {found}: only whole numbers, texts, true and false can be reported")]
    Type {
        /// The name of the value.
        name: String,
        /// The path.
        path: String,
        /// What is there.
        found: &'static str,
    },
    /// The value is too long.
    #[error(
        "the path {path} of {name} leads to {length} bytes of JSON, and at most {most} can be reported: name a part of it"
    )]
    TooLong {
        /// The name of the value.
        name: String,
        /// The path.
        path: String,
        /// How long it is.
        length: usize,
        /// How long it may be.
        most: usize,
    },
}

/// What the rules ask for, from an object. A value that can not be reported does not keep the others from it; of several with one name the first counts,
/// because a server takes no two.
#[must_use]
pub(super) fn feedback(rules: &[FeedbackRule], live: &Value, raw: RawJson) -> Feedback {
    let mut feedback = Feedback::default();
    for rule in rules {
        match rule.kind {
            FeedbackType::WellKnownStatus => match well_known(live) {
                Ok(paths) => paths.iter().for_each(|(name, path)| feedback.add(name, read(name, path, live, raw))),
                Err(problem) => feedback.problems.push(problem),
            },
            FeedbackType::JsonPaths => {
                for path in &rule.json_paths {
                    feedback.add(&path.name, read_named(path, live, raw));
                }
            }
        }
    }
    feedback
}

impl Feedback {
    fn add(&mut self, name: &str, read: Result<Option<FieldValue>, FeedbackProblem>) {
        match read {
            Ok(Some(_)) if self.values.iter().any(|value| value.name == name) => {}
            Ok(Some(field_value)) => self.values.push(FeedbackValue { name: name.to_owned(), field_value }),
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }
}

/// What matters for the kind of an object: names of values, and where they are.
fn well_known(live: &Value) -> Result<&'static [(&'static str, &'static str)], FeedbackProblem> {
    let text = |field: &str| live.get(field).and_then(Value::as_str).unwrap_or_default();
    Ok(match (text("apiVersion"), text("kind")) {
        ("apps/v1", "Deployment" | "StatefulSet") => &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
        ("apps/v1", "DaemonSet") => &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
        ("batch/v1", "Job") => &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            ("JobSucceeded", ".status.succeeded"),
        ],
        ("v1", "Pod") => {
            &[("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#), ("PodPhase", ".status.phase")]
        }
        (api_version, kind) => {
            return Err(FeedbackProblem::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() });
        }
    })
}

fn read_named(path: &NamedPath, live: &Value, raw: RawJson) -> Result<Option<FieldValue>, FeedbackProblem> {
    let api_version = live.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let found = api_version.rsplit('/').next().unwrap_or_default();
    match path.version.as_deref() {
        Some(wanted) if !wanted.is_empty() && wanted != found => Err(FeedbackProblem::Version {
            name: path.name.clone(),
            wanted: wanted.to_owned(),
            found: found.to_owned(),
        }),
        _ => read(&path.name, &path.path, live, raw),
    }
}

fn read(name: &str, path: &str, live: &Value, raw: RawJson) -> Result<Option<FieldValue>, FeedbackProblem> {
    let lost = |problem: String| FeedbackProblem::Path { name: name.to_owned(), path: path.to_owned(), problem };
    let parsed = JsonPath::parse(path).map_err(|problem| lost(problem.to_string()))?;
    let found = parsed.find(live).map_err(|problem| lost(problem.to_string()))?;
    let several = || Value::Array(found.iter().map(|value| (*value).clone()).collect());
    match (found.as_slice(), raw) {
        ([] | [Value::Null], _) => Ok(None),
        ([value], _) | ([value, ..], RawJson::Refused) => field_value(value, raw),
        (_, RawJson::UpTo(most)) => json(&several(), most),
    }
    .map_err(|unfit| unfit.of(name, path))
}

/// Why a value can not be reported, whatever it is called.
enum Unfit {
    Type(&'static str),
    TooLong { length: usize, most: usize },
}

impl Unfit {
    fn of(self, name: &str, path: &str) -> FeedbackProblem {
        let (name, path) = (name.to_owned(), path.to_owned());
        match self {
            Self::Type(found) => FeedbackProblem::Type { name, path, found },
            Self::TooLong { length, most } => FeedbackProblem::TooLong { name, path, length, most },
        }
    }
}

fn field_value(value: &Value, raw: RawJson) -> Result<Option<FieldValue>, Unfit> {
    let empty = |kind| FieldValue { kind, integer: None, string: None, boolean: None, json_raw: None };
    let found = match value {
        Value::Null => return Ok(None),
        Value::Bool(truth) => {
            return Ok(Some(FieldValue { boolean: Some(*truth), ..empty(FieldValueType::Boolean) }));
        }
        Value::String(text) => {
            return Ok(Some(FieldValue { string: Some(text.clone()), ..empty(FieldValueType::String) }));
        }
        Value::Number(number) => match number.as_i64() {
            Some(whole) => return Ok(Some(FieldValue { integer: Some(whole), ..empty(FieldValueType::Integer) })),
            None => "a number that is not whole",
        },
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    match raw {
        RawJson::Refused => Err(Unfit::Type(found)),
        RawJson::UpTo(most) => json(value, most),
    }
}

fn json(value: &Value, most: usize) -> Result<Option<FieldValue>, Unfit> {
    let text = value.to_string();
    if text.len() > most {
        return Err(Unfit::TooLong { length: text.len(), most });
    }
    Ok(Some(FieldValue {
        kind: FieldValueType::JsonRaw,
        integer: None,
        string: None,
        boolean: None,
        json_raw: Some(text),
    }))
}

#[cfg(test)]
mod tests;
