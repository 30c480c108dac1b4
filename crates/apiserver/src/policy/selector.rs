//! Selectors of labels, as objects spell them.

use serde_json::{Map, Value};

/// Which objects are meant, by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Something that there is not, which nothing fulfils.
    Unknown,
}

impl Selector {
    /// Reads a selector with `matchLabels` and `matchExpressions`. One that says nothing selects everything.
    #[must_use]
    pub fn read(selector: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        let labels = labels.map(|(key, value)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: vec![text(value)],
        });
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
        let expressions = expressions.map(|expression| Requirement {
            key: text(&expression["key"]),
            operator: Operator::read(&expression["operator"]),
            values: expression["values"].as_array().into_iter().flatten().map(text).collect(),
        });
        Self { requirements: labels.chain(expressions).collect() }
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object is selected.
    #[must_use]
    pub fn matches_labels_of(&self, object: &Value) -> bool {
        let labels = object["metadata"]["labels"].as_object();
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }
}

impl Operator {
    fn read(operator: &Value) -> Self {
        match operator.as_str() {
            Some("In") => Self::In,
            Some("NotIn") => Self::NotIn,
            Some("Exists") => Self::Exists,
            Some("DoesNotExist") => Self::DoesNotExist,
            _ => Self::Unknown,
        }
    }
}

impl Requirement {
    fn holds(&self, labels: Option<&Map<String, Value>>) -> bool {
        let label = labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str);
        let is_listed = label.is_some_and(|label| self.values.iter().any(|value| value == label));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Unknown => false,
        }
    }
}
