//! What is sent to a cluster for one manifest.
//!
//! A manifest that is new to an object replaces its content, so that what was taken out of the manifest goes. From then on the object is only repaired, in
//! the fields that the manifest has: whatever others have set besides stays, such as the replicas that an autoscaler wants.

mod agreement;
mod carry;
mod content;
mod metadata;

use std::sync::LazyLock;

use drover_api::{grammar::SpecHash, names::CONFIG_SPEC_HASH_ANNOTATION};
use serde_json::{Map, Value};

use self::agreement::{agrees, is_same, overlay};
use super::{
    ignore::{self, IgnoreFieldsError},
    manifest::Target,
    options::{Apply, Strategy},
    ownership::{Fate, Owner},
};
use crate::hash;

/// What of an object is not its content.
const NOT_CONTENT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// What an object is to be brought to.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The manifest.
    pub target: &'a Target,
    /// How its object is brought to what it says.
    pub strategy: &'a Strategy<'a>,
    /// Who owns the object.
    pub owner: &'a Owner,
    /// What becomes of the object when its work goes.
    pub fate: Fate,
}

/// What is known about a manifest and the object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nobody knows whether this manifest was ever written to this object.
    New,
    /// It was.
    Written {
        /// The digest of what the server answered, if it is still known. A webhook may have made something else of what was written, and would again.
        settled: Option<Digest>,
    },
}

/// A digest of an object's content, without metadata and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(SpecHash);

/// The digest of an object, as a server has answered with it.
#[must_use]
pub fn digest(object: &Value) -> Digest {
    Digest(hash::spec_hash(&hash::content(object)))
}

/// What is to be sent next. Whoever has sent an [`Apply`](Step::Apply) asks for the [owners](Wanted::owners) of the answer, because they are not part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The object is created.
    Create(Value),
    /// The object is replaced, unless it has changed since it was looked at.
    Replace(Value),
    /// The server merges this into the object.
    Apply {
        /// What is merged.
        object: Value,
        /// The name under which its fields are owned.
        field_manager: String,
        /// Whether fields are taken from their owners.
        force: bool,
    },
    /// Only the owners of the object are changed, by this merge patch.
    Owners(Value),
    /// Everything is as it has to be.
    Nothing,
}

impl Wanted<'_> {
    /// What is to be sent for the manifest to an object that is there or not.
    pub fn step(&self, live: Option<&Value>, known: &Known) -> Result<Step, IgnoreFieldsError> {
        Ok(match (self.strategy, live) {
            (Strategy::ReadOnly, _) => Step::Nothing,
            (Strategy::Update | Strategy::CreateOnly, None) => Step::Create(self.created()),
            (Strategy::CreateOnly, Some(live)) => self.owners(live),
            (Strategy::Update, Some(live)) => self.update(live, known),
            (Strategy::Apply(apply), live) if apply.ignored.is_empty() => self.apply(apply, live, known),
            (Strategy::Apply(apply), live) => self.apply_in_part(apply, live)?,
        })
    }

    fn manifest(&self) -> &Value {
        &self.target.manifest.object
    }

    fn created(&self) -> Value {
        self.whole(metadata::of_new(self), content::of_new(self.target), self.manifest().get("status"))
    }

    /// Whether the owners of an object have to be changed, and nothing else of it. After an [`Apply`](Step::Apply) this is asked about the answer, because the
    /// owner is not part of what is applied.
    #[must_use]
    pub fn owners(&self, live: &Value) -> Step {
        self.owner.patch(self.fate, live).map_or(Step::Nothing, Step::Owners)
    }

    fn update(&self, live: &Value, known: &Known) -> Step {
        let metadata = metadata::merged(self, live);
        let had = content_of(fields(live));
        let wanted = content::beside(self.target, live);
        let content = match known {
            Known::New => {
                let whole = carry::over(self.target, wanted, live);
                if is_same(&whole, &had) { had.clone() } else { whole }
            }
            Known::Written { settled } if settled.as_ref() == Some(&digest(live)) => had.clone(),
            Known::Written { .. } => overlay(wanted, had.clone()),
        };
        if content == had && metadata == *metadata::of(live) {
            return Step::Nothing;
        }
        Step::Replace(self.whole(metadata, content, live.get("status")))
    }

    /// An object of the manifest's kind, put together.
    fn whole(&self, mut metadata: Map<String, Value>, content: Map<String, Value>, status: Option<&Value>) -> Value {
        // Whoever does not mention them leaves them as they are.
        metadata.remove("managedFields");
        let mut object = content;
        for (field, value) in [
            ("apiVersion", self.manifest().get("apiVersion")),
            ("kind", self.manifest().get("kind")),
            ("status", status),
        ] {
            object.extend(value.map(|value| (field.to_owned(), value.clone())));
        }
        object.insert("metadata".to_owned(), Value::Object(metadata));
        Value::Object(object)
    }

    fn apply(&self, apply: &Apply<'_>, live: Option<&Value>, known: &Known) -> Step {
        let object = metadata::applicable(self.manifest());
        match (live, known) {
            (Some(live), Known::Written { settled }) => {
                let is_settled = settled.as_ref() == Some(&digest(live))
                    || agrees(&content::beside(self.target, live), &content_of(fields(live)));
                if is_settled && metadata::is_in(&object, live) { self.owners(live) } else { send(apply, object) }
            }
            _ => send(apply, object),
        }
    }

    /// Applies all of a manifest but what is to be left to others. The hash of what counts is kept with the object: as long as it is the same, the
    /// object is left alone.
    fn apply_in_part(&self, apply: &Apply<'_>, live: Option<&Value>) -> Result<Step, IgnoreFieldsError> {
        let whole = metadata::applicable(self.manifest());
        let part = ignore::without_present(&whole, apply.ignored)?;
        let hash =
            hash::spec_hash(&hash::content(&Value::Object(Map::from_iter([("manifest".to_owned(), part.clone())]))));
        let hash = hash.to_string();
        Ok(match live {
            None => send(apply, metadata::annotated(&whole, CONFIG_SPEC_HASH_ANNOTATION, &hash)),
            Some(live) if metadata::annotation(live, CONFIG_SPEC_HASH_ANNOTATION) == Some(&hash) => self.owners(live),
            Some(_) => send(apply, metadata::annotated(&part, CONFIG_SPEC_HASH_ANNOTATION, &hash)),
        })
    }
}

fn send(apply: &Apply<'_>, object: Value) -> Step {
    Step::Apply { object, field_manager: apply.field_manager.to_owned(), force: apply.force }
}

static NO_FIELDS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The fields of an object; none of what is no object.
fn fields(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or(&NO_FIELDS)
}

/// The fields of a field; none where it is not there.
fn fields_in<'a>(object: &'a Map<String, Value>, field: &str) -> &'a Map<String, Value> {
    object.get(field).map_or(&NO_FIELDS, |value| fields(value))
}

fn content_of(object: &Map<String, Value>) -> Map<String, Value> {
    let content = object.iter().filter(|(field, _)| !NOT_CONTENT.contains(&field.as_str()));
    content.map(|(field, value)| (field.clone(), value.clone())).collect()
}

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod tests;
