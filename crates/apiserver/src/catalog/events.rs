//! Events, which two groups serve: the same objects, with some fields under other names.

use serde_json::{Map, Value};

/// The fields that have two names: in the core group, and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// An event of `events.k8s.io/v1` as one of the core group, which is how events are kept.
pub fn core_event(event: &mut Map<String, Value>) {
    rename(event, NAMES.map(|(core, new)| (new, core)));
    event.insert("apiVersion".to_owned(), "v1".into());
}

/// An event of the core group as one of `events.k8s.io/v1`.
pub fn new_event(event: &mut Map<String, Value>) {
    rename(event, NAMES);
    event.insert("apiVersion".to_owned(), "events.k8s.io/v1".into());
}

fn rename(event: &mut Map<String, Value>, names: [(&str, &str); 7]) {
    for (from, to) in names {
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
}
