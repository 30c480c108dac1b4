//! What becomes of an object when somebody patches it, in the three ways that do not look at who owns what.

mod operations;
mod order;
mod strategic;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use self::operations::Refusal;
use crate::{
    decode::json_type,
    depth::TooDeep,
    failure::{About, Details, Failure},
    field::{ErrorKind, FieldError, Path},
    schema::Schema,
};

/// More operations than this are not done at once.
const MOST_OPERATIONS: usize = 10_000;

/// The object after the operations of a JSON patch (RFC 6902).
///
/// # Errors
///
/// If the patch makes no sense, or can not be done with this object.
pub fn json(object: &Value, patch: &[u8]) -> Result<Value, Failure> {
    let operations = operations::read(patch).map_err(|error| undecodable(&error))?;
    if operations.len() > MOST_OPERATIONS {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Failure { code: 413, reason: "RequestEntityTooLarge", message, details: None });
    }
    operations::apply(object, &operations).map_err(|refusal| match refusal {
        Refusal::Impossible => refused(),
        Refusal::TooDeep => too_deep(),
    })
}

/// The object after a merge patch (RFC 7386).
///
/// # Errors
///
/// If the patch is not an object.
pub fn merge(object: &Value, patch: &Value) -> Result<Value, Failure> {
    match patch {
        Value::Object(fields) => {
            let mut object = object.clone();
            merge_into(&mut object, fields);
            Ok(object)
        }
        Value::Null => Err(Failure::bad_request("Invalid JSON Patch")),
        other => Err(undecodable(&format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(other)
        ))),
    }
}

fn merge_into(object: &mut Value, patch: &Map<String, Value>) {
    let Value::Object(fields) = object else { return };
    for (name, change) in patch {
        match (fields.get_mut(name), change) {
            (_, Value::Null) => {
                fields.remove(name);
            }
            (Some(field @ Value::Object(_)), Value::Object(change)) => merge_into(field, change),
            (Some(field @ Value::Object(_)), change) => *field = change.clone(),
            (_, change) => {
                fields.insert(name.clone(), without_nulls(change));
            }
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let said = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(said.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The object, of a built-in kind, after a strategic merge patch: lists are merged by the keys that the schema names, and the
/// patch may say how.
///
/// # Errors
///
/// If the patch makes no sense.
pub fn strategic(object: &Value, patch: &Value, schema: &Schema) -> Result<Value, Failure> {
    if patch.is_null() {
        return Ok(object.clone());
    }
    let (Value::Object(fields), Value::Object(patch)) = (object, patch) else {
        return Err(Failure::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(patch)
        )));
    };
    strategic::merge_maps(fields.clone(), patch.clone(), Some(schema)).map(Value::Object)
}

/// The failure of a patch that makes an object nest too deeply.
fn too_deep() -> Failure {
    let error = FieldError::bare(ErrorKind::Invalid, &Path::Root.field("patch"), TooDeep.to_string());
    Failure::invalid(About { group: "", name: "" }, "", &[error])
}

fn undecodable(error: &str) -> Failure {
    Failure::bad_request(format!("error decoding patch: {error}"))
}

/// The failure of what is understood and can not be done; Kubernetes does not say why.
fn refused() -> Failure {
    let failure = Failure::unprocessable("the server rejected our request due to an error in our request");
    Failure { details: Some(Box::new(Details::default())), ..failure }
}
