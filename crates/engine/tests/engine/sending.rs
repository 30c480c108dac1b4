//! What becomes of a plan whose writes are sent: a server that checks preconditions and applies
//! patches, and a hub that is at times not answered, or drops what it has planned.

use drover_engine::plan::{Precondition, Write, WriteResult};
use kube::core::ObjectMeta;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// How a hub sends a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// In which order the parallel writes are answered.
    pub(crate) order: usize,
    /// How many plans are dropped before one is sent.
    pub(crate) drops: usize,
    /// After how many writes the hub is killed.
    pub(crate) dies_after: Option<usize>,
    /// What is wrong with some of the writes.
    pub(crate) failure: Option<(usize, Failure)>,
}

/// What is wrong with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The object has changed.
    Conflict,
    /// The server does not accept it.
    Rejected,
    /// The server applies it, and does not answer.
    NoAnswer,
}

impl Manner {
    /// What is wrong with the write in this place of a plan.
    pub(crate) fn failure_of(&self, place: usize) -> Option<Failure> {
        let (every, failure) = self.failure?;
        place.is_multiple_of(every).then_some(failure)
    }

    pub(crate) fn kills_after(&self, writes: usize) -> bool {
        self.dies_after.is_some_and(|after| writes >= after)
    }
}

pub(crate) fn manners() -> impl Strategy<Value = Manner> {
    let failure = (1..4_usize, select(vec![Failure::Conflict, Failure::Rejected, Failure::NoAnswer]));
    (0..8_usize, select(vec![0, 0, 0, 1, 2]), option::weighted(0.15, 0..4_usize), option::weighted(0.2, failure))
        .prop_map(|(order, drops, dies_after, failure)| Manner { order, drops, dies_after, failure })
}

/// A server that rejects what is written for some clusters of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct PickyServer {
    /// How many clusters the hub writes in one plan.
    pub(crate) batch: usize,
    /// Of each cluster, whether the server accepts what is written for it.
    pub(crate) accepts: Vec<bool>,
    /// How many plans are dropped before one is sent.
    pub(crate) drops: usize,
}

pub(crate) fn picky_servers() -> impl Strategy<Value = PickyServer> {
    (1..4_usize, vec(prop::bool::weighted(0.3), 1..12), 0..3_usize).prop_map(|(batch, accepts, drops)| PickyServer {
        batch,
        accepts,
        drops,
    })
}

impl Failure {
    pub(crate) fn result(self) -> WriteResult {
        match self {
            Self::Conflict => WriteResult::Conflict,
            Self::Rejected => WriteResult::Rejected("no".to_owned()),
            Self::NoAnswer => WriteResult::TimedOut,
        }
    }
}

/// What the server has against a write of an object that has this metadata.
pub(crate) fn violation(write: &Write, stored: Option<&ObjectMeta>) -> Option<WriteResult> {
    match (write.precondition(), stored) {
        (Precondition::Absent, Some(_)) => Some(WriteResult::Exists("it exists".to_owned())),
        (Precondition::Absent, None) | (Precondition::None, Some(_)) => None,
        (_, None) => Some(WriteResult::Gone("it is gone".to_owned())),
        (Precondition::Unchanged { uid, resource_version }, Some(stored)) => {
            let is_same =
                stored.uid.as_ref() == Some(uid) && stored.resource_version.as_ref() == Some(resource_version);
            (!is_same).then_some(WriteResult::Conflict)
        }
    }
}

/// An object after a JSON merge patch.
pub(crate) fn patched<K: Serialize + DeserializeOwned>(object: &K, patch: &Value) -> K {
    let mut value = serde_json::to_value(object).expect("an object is JSON");
    merge(&mut value, patch);
    serde_json::from_value(value).expect("a patched object is one of its kind")
}

fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Some(object) = value.as_object_mut() else { return };
    for (name, patch) in fields {
        if patch.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), patch);
        }
    }
}

/// The same in another order.
pub(crate) fn reordered<T>(mut all: Vec<T>, order: usize) -> Vec<T> {
    let from = order.checked_rem(all.len()).unwrap_or(0);
    all.rotate_left(from);
    if order % 2 == 1 {
        all.reverse();
    }
    all
}
