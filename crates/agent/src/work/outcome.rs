//! What came of one manifest: whether it was applied, what was seen of its object, and when it is tried again.

use std::time::Duration;

use drover_engine::work::{Applied, Presence, Sight};
use kube::{Api, api::DynamicObject};
use serde_json::Value;

use super::{
    executor,
    object::{Place, read},
};

/// What came of one manifest.
pub(super) struct Outcome {
    pub(super) applied: Applied,
    /// The object as it is now.
    pub(super) seen: Seen,
    /// Whether it is tried again, and when.
    pub(super) retry: Retry,
    /// Whether its object was not as it is to be, though it was written before.
    pub(super) is_repair: bool,
}

/// What was seen of an object.
pub(super) enum Seen {
    Live(Value),
    Missing,
    Unknown(String),
}

/// When something is tried again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    No,
    /// Later and later.
    Backoff,
    /// When somebody may have given an account more rights.
    Rights,
    /// Its kind is about to be served.
    Establishing,
}

impl Outcome {
    pub(super) fn failed(why: &impl ToString) -> Self {
        let why = why.to_string();
        Self {
            applied: Applied::Failed(why.clone()),
            seen: Seen::Unknown(why),
            retry: Retry::Backoff,
            is_repair: false,
        }
    }

    /// The object as it is, whatever was to become of it.
    pub(super) async fn seen(api: &Api<DynamicObject>, place: &Place) -> Result<Self, kube::Error> {
        match read(api, place.name()).await {
            Ok(live) => Ok(Self { applied: Applied::Kept, seen: Seen::of(live), retry: Retry::No, is_repair: false }),
            Err(error) => Self::refused(error),
        }
    }

    /// What the cluster has refused is told; that it did not answer is an error.
    pub(super) fn refused(error: kube::Error) -> Result<Self, kube::Error> {
        match error {
            kube::Error::Api(status) => Ok(Self::failed(&status.message)),
            error => Err(error),
        }
    }
}

impl Seen {
    pub(super) fn sight(&self) -> Sight<'_> {
        match self {
            Self::Live(live) => Sight::Live(live),
            Self::Missing => Sight::Missing,
            Self::Unknown(why) => Sight::Unknown(why.clone()),
        }
    }

    pub(super) fn of(live: Option<Value>) -> Self {
        live.map_or(Self::Missing, Self::Live)
    }

    pub(super) fn presence(&self) -> Presence {
        match self {
            Self::Live(live) => Presence::There { uid: text(live, "/metadata/uid").to_owned() },
            Self::Missing => Presence::Gone,
            Self::Unknown(_) => Presence::Unknown,
        }
    }

    pub(super) fn version(&self) -> Option<String> {
        match self {
            Self::Live(live) => Some(text(live, "/metadata/resourceVersion").to_owned()),
            Self::Missing | Self::Unknown(_) => None,
        }
    }
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Retry {
    /// After how long; later and later, where nothing else is known.
    pub(super) fn rest(self) -> Option<Duration> {
        match self {
            Self::No | Self::Backoff => None,
            Self::Rights => Some(executor::PATIENCE),
            Self::Establishing => Some(Duration::from_secs(1)),
        }
    }
}
