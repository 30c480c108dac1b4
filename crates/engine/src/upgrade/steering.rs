//! What people ask for by annotations on an upgrade, and what the hub has taken up of it.

use std::collections::BTreeMap;

use drover_api::{
    drover::Acknowledged,
    names::{PAUSE_ANNOTATION, RETRY_ANNOTATION, UPGRADE_HUB_ANNOTATION},
};
use k8s_openapi::jiff::Timestamp;

use crate::steering::{retry, switch};

/// The annotations of an upgrade.
type Annotations = BTreeMap<String, String>;

/// Whether somebody has paused the upgrade. Whatever is written there, somebody wanted to stop it.
#[must_use]
pub fn is_paused(annotations: &Annotations) -> bool {
    annotations.get(PAUSE_ANNOTATION).is_some_and(|text| switch(text) != Some(false))
}

/// Whether the cluster on which the hub runs may be upgraded. That has to be said in so many letters.
#[must_use]
pub fn may_upgrade_hub(annotations: &Annotations) -> bool {
    annotations.get(UPGRADE_HUB_ANNOTATION).is_some_and(|text| text == "true")
}

/// What the hub has taken up when it acts on these annotations.
#[must_use]
pub fn acknowledge(annotations: &Annotations, former: Option<&Acknowledged>, now: Timestamp) -> Option<Acknowledged> {
    let text = |key: &str| annotations.get(key).cloned();
    let (known, when) = former.map_or((None, None), |former| (former.retry.as_ref(), former.retried.as_ref()));
    let (retry, retried) = retry(text(RETRY_ANNOTATION), known, when, now);
    let acknowledged = Acknowledged { pause: text(PAUSE_ANNOTATION), retry, retried, ..Acknowledged::default() };
    (acknowledged != Acknowledged::default()).then_some(acknowledged)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn annotations(key: &str, value: &str) -> Annotations {
        [(key.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn whatever_is_written_stops_it_but_for_false() {
        let paused = ["", "true", "until-monday", "false"].map(|text| is_paused(&annotations(PAUSE_ANNOTATION, text)));
        assert_eq!(paused, [true, true, true, false]);
        assert!(!is_paused(&Annotations::new()));
        let hub = ["true", "", "yes"].map(|text| may_upgrade_hub(&annotations(UPGRADE_HUB_ANNOTATION, text)));
        assert_eq!(hub, [true, false, false]);
    }

    #[test]
    fn a_retry_is_taken_up_once_by_each_token() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let asked = |token| annotations(RETRY_ANNOTATION, token);
        let first = acknowledge(&asked("a"), None, at(1)).expect("it is taken up");
        assert_eq!(acknowledge(&asked("a"), Some(&first), at(2)).as_ref(), Some(&first));
        let next = acknowledge(&asked("b"), Some(&first), at(3)).expect("another");
        assert_eq!((next.retry.as_deref(), next.retried), (Some("b"), Some(Time(at(3)))));
        let after = acknowledge(&Annotations::new(), Some(&first), at(4)).expect("that it was done stays");
        assert_eq!((after.retry, after.retried), (None, Some(Time(at(1)))));
        assert_eq!(acknowledge(&Annotations::new(), None, at(1)), None);
    }
}
