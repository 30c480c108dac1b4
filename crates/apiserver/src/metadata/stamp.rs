//! What the server itself says in metadata.

use serde_json::{Value, json};

use super::{field, generation, set};
use crate::{
    failure::{Details, Failure},
    kind::Kind,
};

/// The longest part of a name that is generated on.
const PREFIX_LENGTH: usize = 58;

/// Says in a new object what only the server may say, whatever was sent: when it was made, and what tells it apart from others of its name.
/// A name is made where one is only begun; the suffix is handed in.
pub fn stamp_new(object: &mut Value, uid: &str, now: &str, suffix: &mut dyn FnMut() -> String) {
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        set(object, name, None);
    }
    set(object, "creationTimestamp", Some(json!(now)));
    set(object, "uid", Some(json!(uid)));
    let prefix = super::text(object, "generateName");
    if !prefix.is_empty() && super::text(object, "name").is_empty() {
        let name = generate_name(prefix, &suffix());
        set(object, "name", Some(json!(name)));
    }
}

/// The name that is made of its beginning and a suffix.
#[must_use]
pub fn generate_name(prefix: &str, suffix: &str) -> String {
    let mut end = prefix.len().min(PREFIX_LENGTH);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &prefix[..end])
}

/// The failure where a generated name was taken every time.
#[must_use]
pub fn generated_name_conflict(kind: &Kind, name: &str) -> Failure {
    let about = kind.resource();
    let why = "the server was not able to generate a unique name for the object";
    let details = Details {
        name: name.to_owned(),
        group: about.group.to_owned(),
        kind: about.name.to_owned(),
        retry_after_seconds: 1,
        ..Details::default()
    };
    Failure {
        code: 409,
        reason: "AlreadyExists",
        message: format!("{about} {name:?} already exists, {why}"),
        details: Some(Box::new(details)),
    }
}

/// The failure where a new object claims to be of some revision already.
pub fn no_version_yet(object: &Value) -> Result<(), Failure> {
    // What is no version is overlooked.
    if super::text(object, "resourceVersion").parse().is_ok_and(|version: u64| version > 0) {
        return Err(versioned());
    }
    Ok(())
}

fn versioned() -> Failure {
    let message = "resourceVersion should not be set on objects to be created".to_owned();
    Failure { code: 500, reason: "", message, details: None }
}

/// Keeps in a changed object what no change may touch.
pub fn carry_over(new: &mut Value, old: &Value) {
    set(new, "generation", field(old, "generation").cloned());
    if super::text(new, "uid").is_empty() {
        set(new, "uid", field(old, "uid").cloned());
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(time) = field(old, name) {
            set(new, name, Some(time.clone()));
        }
    }
    if field(new, "deletionGracePeriodSeconds").is_none() {
        set(new, "deletionGracePeriodSeconds", field(old, "deletionGracePeriodSeconds").cloned());
    }
    set(new, "selfLink", None);
}

/// Says in an object that it is on its way out, and waits only for its finalizers.
pub fn begin_deletion(object: &mut Value, now: &str) {
    if field(object, "deletionGracePeriodSeconds").is_none() && generation(object) > 0 {
        let next = generation(object) + 1;
        set(object, "generation", Some(json!(next)));
    }
    if field(object, "deletionTimestamp").is_none() {
        set(object, "deletionTimestamp", Some(json!(now)));
    }
    set(object, "deletionGracePeriodSeconds", Some(json!(0)));
}
