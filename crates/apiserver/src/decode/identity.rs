//! Whether an object is what the address of the request is about.

use serde_json::{Value, json};

use super::{json_type, mishandled, unrecognized_as};
use crate::{
    failure::Failure,
    kind::{Kind, Origin},
};

/// Where the real server says that it looked for kinds.
pub(crate) const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

/// Whether there is a built-in kind in an API version.
pub type Known<'a> = &'a dyn Fn(&str, &str) -> bool;

/// Checks what an object says it is. Objects of built-in kinds need not say it: it is filled in.
pub fn identify(
    object: &mut Value,
    kind: &Kind,
    version: &str,
    body: &[u8],
    is_known: Known<'_>,
) -> Result<(), Failure> {
    if object.is_null() {
        *object = json!({});
    }
    for name in ["apiVersion", "kind"] {
        if let Some(other) = object.get(name).filter(|value| !value.is_string() && !value.is_null()) {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::Array(_) => "array",
                _ => "object",
            };
            let problem = format!("json: cannot unmarshal {found} into Go struct field .{name} of type string");
            return Err(unrecognized_as(
                kind,
                &format!("couldn't get version/kind; json parse error: {problem}"),
                body,
            ));
        }
    }
    if !object.is_object() {
        return Err(unrecognized_as(kind, &no_object(object), body));
    }
    match kind.origin {
        Origin::Custom => identify_custom(object, kind, version, body),
        Origin::BuiltIn | Origin::Review => identify_built_in(object, kind, version, is_known),
    }
}

pub(super) fn no_object(value: &Value) -> String {
    let found = json_type(value);
    let record =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {record}"
    )
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn identify_custom(object: &Value, kind: &Kind, version: &str, body: &[u8]) -> Result<(), Failure> {
    if text(object, "kind").is_empty() {
        let problem = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body));
        return Err(unrecognized_as(kind, &problem, body));
    }
    let (said, wanted) = (text(object, "apiVersion"), kind.api_version(version));
    if said == wanted { Ok(()) } else { Err(other_version(said, &wanted)) }
}

fn identify_built_in(object: &mut Value, kind: &Kind, version: &str, is_known: Known<'_>) -> Result<(), Failure> {
    let wanted = kind.api_version(version);
    for (name, value) in [("apiVersion", &wanted), ("kind", &kind.kind)] {
        if let Some(members) = object.as_object_mut().filter(|members| is_unsaid(members.get(name))) {
            members.insert(name.to_owned(), json!(value));
        }
    }
    let (said_version, said_kind) = (text(object, "apiVersion"), text(object, "kind"));
    let short = said_version.rsplit('/').next().unwrap_or_default();
    if said_version == wanted && said_kind == kind.kind {
        return Ok(());
    }
    if !is_known(said_version, said_kind) {
        let problem = format!("no kind {said_kind:?} is registered for version {said_version:?} in scheme {SCHEME:?}");
        return Err(mishandled(object, kind, short, &problem));
    }
    if said_kind == kind.kind {
        return Err(other_version(said_version, &wanted));
    }
    let (package, wanted_kind) = (package(&kind.group), &kind.kind);
    let problem = format!("converting ({short}.{said_kind}) to ({package}.{wanted_kind}): unknown conversion");
    Err(mishandled(object, kind, short, &problem))
}

fn is_unsaid(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).unwrap_or_default().is_empty()
}

fn other_version(said: &str, wanted: &str) -> Failure {
    Failure::bad_request(format!(
        "the API version in the data ({said}) does not match the expected API version ({wanted})"
    ))
}

/// Where the real server keeps its own records of a group.
fn package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        other => other.split('.').next().unwrap_or(other),
    }
}
