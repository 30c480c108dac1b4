//! What is done with texts, in the words of Kubernetes where it can not be done.

use std::rc::Rc;

use super::{Result, error, value::Value};

/// A text of a value; nothing for those that the libraries know how to write.
pub(super) fn written<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::Text(_) => Some(value.clone()),
        Value::Bool(truth) => Some(Value::text(truth.to_string())),
        Value::Int(number) => Some(Value::text(number.to_string())),
        Value::UInt(number) => Some(Value::text(number.to_string())),
        _ => None,
    }
}

/// The words that are taken for true and false.
pub(super) fn as_truth<'a>(text: &str) -> Result<Value<'a>> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        _ => error("type conversion error from 'string' to 'bool'"),
    }
}

/// The whole number that a text is.
pub(super) fn as_number<'a>(text: &str) -> Result<Value<'a>> {
    text.parse().map_or_else(|_| error("type conversion error from 'string' to 'int'"), |number| Ok(Value::Int(number)))
}

/// The character at an index; none right behind the last.
pub(super) fn char_at<'a>(text: &str, at: i64) -> Result<Value<'a>> {
    let index = index(at, text.chars().count())?;
    Ok(Value::text(text.chars().nth(index).map(String::from).unwrap_or_default()))
}

/// The parts of a text between a separator; its characters where that is empty.
pub(super) fn split<'a>(text: &str, by: &str) -> Value<'a> {
    let parts: Vec<_> = if by.is_empty() {
        text.chars().map(|character| Value::text(character.to_string())).collect()
    } else {
        text.split(by).map(|part| Value::text(part.to_owned())).collect()
    };
    Value::List(Rc::new(parts))
}

/// The characters from one index to another, or to the end.
pub(super) fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Result<Value<'a>> {
    let length = text.chars().count();
    let (from, to) = match end {
        Some(end) if start > end => return error(format!("invalid substring range. start: {start}, end: {end}")),
        Some(end) => (index(start, length)?, index(end, length)?),
        None => (index(start, length)?, length),
    };
    Ok(Value::text(text.chars().skip(from).take(to - from).collect::<String>()))
}

fn index(at: i64, length: usize) -> Result<usize> {
    match usize::try_from(at) {
        Ok(index) if index <= length => Ok(index),
        _ => error(format!("index out of range: {at}")),
    }
}
