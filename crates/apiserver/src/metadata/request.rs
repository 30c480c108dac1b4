//! Whether the metadata of what was sent fits the request and what is kept.

use serde_json::{Value, json};

use super::{set, text};
use crate::{
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Origin, Scope},
    ownership::unforeseen,
};

/// Fits an object into the namespace of the request.
pub fn expected_namespace(kind: &Kind, object: &mut Value, requested: &str) -> Result<(), Failure> {
    let requested = if kind.scope == Scope::Namespaced { requested } else { "" };
    let said = text(object, "namespace");
    if said == requested {
        return Ok(());
    }
    if said.is_empty() {
        set(object, "namespace", Some(json!(requested)));
    } else if requested.is_empty() {
        set(object, "namespace", None);
    } else {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// Whether an object has the name that the request is about.
pub fn expected_name(object: &Value, requested: &str) -> Result<(), Failure> {
    let said = text(object, "name");
    if said == requested {
        return Ok(());
    }
    if said.is_empty() {
        let why = "name must be provided";
        return Err(Failure::bad_request(format!(
            "the name of the object ({requested} based on URL) was undeterminable: {why}"
        )));
    }
    Err(Failure::bad_request(format!(
        "the name of the object ({said}) does not match the name on the URL ({requested})"
    )))
}

/// Whether a change was made of what is kept now. What does not say what it was made of changes whatever is there, where the kind allows that.
pub fn check_version(kind: &Kind, new: &mut Value, old: &Value) -> Result<(), Failure> {
    let name = text(old, "name");
    let (said, kept) = (text(new, "resourceVersion"), text(old, "resourceVersion"));
    if matches!(said, "" | "0") {
        if !kind.allows_unconditional_update() {
            let path = Path::Root.field("metadata");
            let why = "must be specified for an update";
            let error = FieldError::new(ErrorKind::Invalid, &path.field("resourceVersion"), 0, why);
            // The resource stands where the kind would: so says the real server.
            return Err(Failure::invalid(kind.resource(), name, &[error]));
        }
    } else if said.parse::<u64>().is_err() {
        return Err(unforeseen(format!("strconv.ParseUint: parsing {said:?}: invalid syntax")));
    } else if said != kept {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Failure::conflict(kind.resource(), name, why));
    }
    set(new, "resourceVersion", Some(json!(kept)));
    Ok(())
}

/// Whether what is put in an object's place is meant for that very object, and not for another that had the name before.
pub fn check_uid(kind: &Kind, new: &Value, old: &Value) -> Result<(), Failure> {
    let (said, kept) = (text(new, "uid"), text(old, "uid"));
    if said.is_empty() || said == kept { Ok(()) } else { Err(uid_conflict(kind, old, said)) }
}

fn uid_conflict(kind: &Kind, old: &Value, said: &str) -> Failure {
    let (namespace, name, kept) = (text(old, "namespace"), text(old, "name"), text(old, "uid"));
    let prefix = match kind.origin {
        Origin::Custom => format!("{}/{}", kind.group, kind.plural),
        _ if kind.group == "apiextensions.k8s.io" => format!("{}/{}", kind.group, kind.plural),
        _ => kind.plural.clone(),
    };
    let within = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let why = format!("Precondition failed: UID in precondition: {said}, UID in object meta: {kept}");
    let key = format!("/registry/{prefix}/{within}{name}");
    let text =
        format!("StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}");
    Failure::conflict(kind.resource(), name, text)
}

/// Drops owners that are named twice, and says what to warn of.
pub fn dedup_owners(object: &mut Value) -> Option<String> {
    let owners = super::field(object, "ownerReferences")?.as_array()?;
    let mut kept: Vec<Value> = Vec::new();
    let mut twice: Vec<&str> = Vec::new();
    for owner in owners {
        if kept.contains(owner) {
            twice.push(owner.get("uid").and_then(Value::as_str).unwrap_or_default());
        } else {
            kept.push(owner.clone());
        }
    }
    if twice.is_empty() {
        return None;
    }
    let advice = "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests";
    let warning = format!(
        ".metadata.ownerReferences contains duplicate entries; {advice}; duplicate UID(s) observed: {}",
        twice.join(", ")
    );
    set(object, "ownerReferences", Some(Value::Array(kept)));
    Some(warning)
}
