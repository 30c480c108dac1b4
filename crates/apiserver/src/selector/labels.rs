//! Selectors over labels: from the text in a query, or from an object with `matchLabels` and `matchExpressions`.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    metadata::names,
};

/// What has to hold of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// All of this, which is nothing where there is no requirement.
    All(Vec<Requirement>),
    /// Something that never holds.
    Nothing,
}

/// What has to hold of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equals,
    DoubleEquals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// Why a selector can not be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Unusable(String);

impl Default for Labels {
    /// Nothing has to hold.
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl Labels {
    /// Reads what a query says, such as `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        parse::requirements(text).map(Self::sorted).map_err(|error| Failure::bad_request(error.0))
    }

    /// Reads a selector that is part of an object. One that is not there selects nothing, and an empty one everything.
    pub fn read(selector: Option<&Value>) -> Result<Self, Unusable> {
        let Some(selector) = selector.filter(|selector| !selector.is_null()) else { return Ok(Self::Nothing) };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            requirements.push(Requirement::read(expression)?);
        }
        Ok(Self::sorted(requirements))
    }

    fn sorted(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self::All(requirements)
    }

    /// Whether nothing has to hold.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// Whether it holds of an object's labels.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        self.holds_of(|key| labels.and_then(|labels: &Map<_, _>| labels.get(key)).and_then(Value::as_str))
    }

    /// Whether it holds of the labels that are looked up by their keys.
    pub fn holds_of<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::All(requirements) => requirements.iter().all(|it| it.holds_of(label(&it.key))),
            Self::Nothing => false,
        }
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::All(requirements) = self else { return Ok(()) };
        for (index, requirement) in requirements.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, Unusable> {
        let mut errors: Vec<FieldError> = wrong_key(key, &Path::Root.field("key")).into_iter().collect();
        let root = Path::Root.field("values");
        errors.extend(number_of_values(operator, &values, &root));
        for (index, value) in values.iter().enumerate() {
            errors.extend(invalid(value, &root.index(index).key(key), &names::label_value(value)));
        }
        match errors.as_slice() {
            [] => Ok(Self { key: key.to_owned(), operator, values }),
            [one] => Err(Unusable(one.to_string())),
            more => Err(Unusable(format!("[{}]", more.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")))),
        }
    }

    fn read(expression: &Value) -> Result<Self, Unusable> {
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let operator = match text("operator") {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(Unusable(format!("{other:?} is not a valid label selector operator"))),
        };
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        Self::new(text("key"), operator, values)
    }

    fn holds_of(&self, label: Option<&str>) -> bool {
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(is_listed),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compares(label, |label, value| label > value),
            Operator::LessThan => self.compares(label, |label, value| label < value),
        }
    }

    fn compares(&self, label: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let value = self.values.first().and_then(|value| number(value));
        label.and_then(number).zip(value).is_some_and(|(label, value)| holds(label, value))
    }
}

/// What is wrong with the key of a label.
fn wrong_key(key: &str, path: &Path<'_>) -> Option<FieldError> {
    invalid(key, path, &names::qualified(key))
}

fn invalid(said: &str, path: &Path<'_>, problems: &[String]) -> Option<FieldError> {
    (!problems.is_empty()).then(|| FieldError::new(ErrorKind::Invalid, path, said, problems.join("; ")))
}

fn number_of_values(operator: Operator, values: &[String], path: &Path<'_>) -> Vec<FieldError> {
    let invalid = |why: &str| vec![FieldError::new(ErrorKind::Invalid, path, values, why)];
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            invalid("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            invalid("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan => {
            let no_numbers = values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err());
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            no_numbers
                .map(|(index, value)| FieldError::new(ErrorKind::Invalid, &path.index(index), value.as_str(), why))
                .collect()
        }
        _ => Vec::new(),
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<_> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
