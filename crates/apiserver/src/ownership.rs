//! Who owns which field of an object, and what becomes of an object when somebody applies a part of it.
//!
//! Whoever writes an object owns the fields that it changed, or all that it applied. Who applies something that another one owns
//! is told so, unless both say the same; and what it applied once and does not any more goes away, unless another one owns it too.

mod apply;
mod check;
mod compare;
mod fields;
mod last_applied;
mod managers;
mod merge;
mod reconcile;
mod remove;
mod set;
mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use serde_json::{Map, Value, json};

use self::{
    apply::Applier,
    check::{Duplicates, check},
    compare::Comparison,
    managers::{Entry, Manager, Managers, clear, entries, is_reset},
    reconcile::reconciled,
    set::FieldSet,
    shape::Shape,
};
use crate::{
    failure::Failure,
    kind::Origin,
    schema::{Schema, Type},
};

/// A write to an object.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Who writes.
    pub manager: &'a str,
    /// The version of the kind that is written.
    pub api_version: &'a str,
    /// The part of the object that is written; empty for the object itself.
    pub subresource: &'a str,
    /// When, in RFC 3339 with seconds.
    pub time: &'a str,
    /// Where the kind comes from: the structures of built-in kinds are always there, even when they are empty.
    pub origin: Origin,
    /// The fields that such a write can not change, and so does not own, as paths such as `status` or `metadata.labels`.
    pub reset: &'a [&'a str],
}

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It says all that it wants of an object.
    Apply,
    /// It changes some fields.
    Update,
}

impl Operation {
    /// The name in `managedFields`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Write<'_> {
    fn by(&self, operation: Operation) -> Manager {
        let name = if self.manager.is_empty() { "unknown" } else { self.manager };
        Manager::new(name, operation, self.api_version, self.subresource)
    }
}

/// The fields that nobody owns, because nobody decides what they say, or everybody who writes says the same.
const UNOWNED: [&str; 12] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

/// Writes down who owns what after an object was created, replaced or patched. The object is as it is going to be kept.
///
/// What the object says about ownership itself is honoured, if it makes sense: a client may take over or give up what it wants.
pub fn update(old: Option<&Value>, new: &mut Value, schema: &Schema, write: &Write<'_>) {
    let blank = blank(schema, write);
    let live = old.unwrap_or(&blank);
    let managers = claimed(live, new, write);
    clear(new);
    // An object whose owners nobody wrote down stays so until somebody applies it.
    let is_known = live.pointer("/metadata/uid").is_some_and(|uid| uid != "");
    if managers.is_empty() && is_known {
        return;
    }
    // What can not be understood is owned by nobody; that is no reason to refuse it.
    if let Ok(managers) = updated(live, new, schema, write, managers) {
        managers.write(new);
    }
}

fn claimed(live: &Value, new: &Value, write: &Write<'_>) -> Managers {
    let kept = || Managers::of(live).unwrap_or_default();
    if !write.subresource.is_empty() {
        return kept();
    }
    if is_reset(new) {
        return Managers::default();
    }
    // Clients that know nothing of ownership must not delete it.
    Managers::of(new).ok().filter(|managers| !managers.is_empty()).unwrap_or_else(kept)
}

/// Who owns what after an update.
fn updated(
    live: &Value,
    new: &Value,
    schema: &Schema,
    write: &Write<'_>,
    mut managers: Managers,
) -> Result<Managers, String> {
    let shape = Shape::root(schema);
    let typed = |what: &str, object: &Value| {
        check(object, shape, Duplicates::Allowed)
            .map_err(|error| format!("failed to convert {what} object ({}) to smd typed: {error}", title(object)))
    };
    typed("new", new)?;
    typed("live", live)?;
    let reset = FieldSet::of(write.reset.iter().copied());
    let difference = Comparison::between(live, new, shape).without(&reset);
    let written = difference.written();
    managers.change(|_, fields| reconciled(fields, shape).difference(&written).difference(&difference.removed));
    let owned = written.difference(&FieldSet::of(UNOWNED));
    if !owned.is_empty() {
        let (fields, api_version, time) = (owned, write.api_version.to_owned(), Some(write.time.to_owned()));
        managers
            .entry(write.by(Operation::Update))
            .and_modify(|entry| {
                entry.fields.extend(&fields);
                entry.time.clone_from(&time);
            })
            .or_insert(Entry { fields, api_version, time });
    }
    managers.cap();
    Ok(managers)
}

/// What becomes of an object, or of none, when somebody applies a part of it. Defaults are for the caller to fill in afterwards,
/// and so is to drop the nulls that stand where nothing was left.
///
/// # Errors
///
/// If others own what is applied and say otherwise, or if what is applied is not as the schema has it.
pub fn apply(
    live: Option<&Value>,
    patch: &Value,
    schema: &Schema,
    write: &Write<'_>,
    force: bool,
) -> Result<Value, Failure> {
    let says = |field: &str| patch.get(field).and_then(Value::as_str).unwrap_or_default();
    let is_other = live.is_some_and(|live| live.get("kind").and_then(Value::as_str) != Some(says("kind")));
    if says("apiVersion") != write.api_version || is_other {
        return Err(Failure::bad_request(format!("invalid object type: {}", kind_title(patch))));
    }
    let blank = blank(schema, write);
    let live = live.unwrap_or(&blank);
    let mut managers =
        Managers::of(live).map_err(|error| unforeseen(format!("failed to decode managed fields: {error}")))?;
    if managers.is_empty() {
        let before = Write { manager: "before-first-apply", ..*write };
        managers = updated(&blank, live, schema, &before, managers)
            .map_err(|error| unforeseen(format!("failed to create manager for existing fields: {error}")))?;
    }
    let has_entries = patch.pointer("/metadata/managedFields").is_some_and(Value::is_array);
    if has_entries {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    let shape = Shape::root(schema);
    let typed = |what: &str, object: &Value, duplicates: Duplicates| {
        check(object, shape, duplicates)
            .map_err(|error| unforeseen(format!("failed to create typed {what} object ({}): {error}", title(object))))
    };
    typed("patch", patch, Duplicates::Refused)?;
    typed("live", live, Duplicates::Allowed)?;
    Applier { live, patch, shape, write, managers: &managers }.apply(force)
}

/// Whether an object stays as it is, whenever its owners wrote it.
#[must_use]
pub fn is_noop(old: &Value, new: &Value) -> bool {
    let timeless = |object: &Value| -> Vec<Value> {
        let mut entries = entries(object).cloned().unwrap_or_default();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries
    };
    let rest = |object: &Value| {
        let mut rest = object.clone();
        clear(&mut rest);
        rest
    };
    timeless(old) == timeless(new) && rest(old) == rest(new)
}

/// An object that nobody has written anything of yet.
fn blank(schema: &Schema, write: &Write<'_>) -> Value {
    match write.origin {
        Origin::Custom => json!({}),
        Origin::BuiltIn | Origin::Review => {
            let mut blank = structures(schema);
            blank.entry("metadata").or_insert_with(|| json!({}));
            Value::Object(blank)
        }
    }
}

/// The structures that are always there: OpenAPI tells them by an empty default.
fn structures(schema: &Schema) -> Map<String, Value> {
    let always = schema.properties.iter().filter(|(_, field)| {
        field.type_ == Some(Type::Object)
            && field.default.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty)
    });
    let empty = always.map(|(name, field)| (name.clone(), Value::Object(structures(field))));
    // So are lists that have to be said, which say nothing then.
    let lists = schema
        .limits
        .required
        .iter()
        .filter(|name| schema.properties.get(*name).is_some_and(|field| field.type_ == Some(Type::Array)));
    empty.chain(lists.map(|name| (name.clone(), Value::Null))).collect()
}

fn title(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}; {}", text("/metadata/namespace"), text("/metadata/name"), kind_title(object))
}

fn kind_title(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    format!("{group}/{version}, Kind={}", text("kind"))
}

/// A failure that Kubernetes has no reason for.
pub(crate) fn unforeseen(message: String) -> Failure {
    Failure { code: 500, reason: "", message, details: None }
}
