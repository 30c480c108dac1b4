//! Values as ownership compares, orders and prints them.

use std::cmp::Ordering;

use serde_json::Value;

/// A value that has a place among all others: the keys of list items are such.
#[derive(Clone, Debug)]
pub(crate) struct Literal(pub(crate) Value);

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Whether two values mean the same: a whole number is the same whether or not it is written with a point.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => compare(one, other) == Ordering::Equal,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// The order of all values: numbers, texts, truths, lists, maps, and null.
pub(crate) fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let unequal = one.iter().zip(other).map(|(one, other)| compare(one, other)).find(|it| it.is_ne());
            unequal.unwrap_or(one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            let entries = one.iter().zip(other);
            let unequal = entries.map(|(one, other)| one.0.cmp(other.0).then_with(|| compare(one.1, other.1)));
            unequal.into_iter().find(|it| it.is_ne()).unwrap_or(one.len().cmp(&other.len()))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// The value as Kubernetes' messages show it where they show it plainly.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// The value as Kubernetes' messages show it where they show it as source.
pub(crate) fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", source(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// The name of the value's type in Kubernetes' messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// JSON as Kubernetes writes it inside of texts: what would mean something in HTML is escaped.
pub(crate) fn escaped_json(value: &Value) -> String {
    let mut text = value.to_string();
    for (plain, escaped) in [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")] {
        text = text.replace(plain, escaped);
    }
    text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
