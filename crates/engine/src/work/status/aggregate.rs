//! What is said of a work as a whole.

use std::collections::BTreeSet;

use drover_api::{
    names::{STATUS_FEEDBACK_SYNCED, WORK_APPLIED, WORK_AVAILABLE, WORK_PROGRESSING},
    work::ManifestStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Moment, prune, tell};
use crate::{
    condition::{Holds, Says, holds},
    work::rules::REASONS,
};

/// The conditions of a work that had some before, from those of its manifests.
pub(super) fn conditions(
    mut conditions: Vec<Condition>,
    manifests: &[ManifestStatus],
    moment: &Moment,
) -> Vec<Condition> {
    // A work that nobody tries to apply any more, because it has done what it was for, is not applied in its newest form.
    if manifests.is_empty() || manifests.iter().any(|manifest| was_tried(manifest, moment.generation)) {
        let (holds, reason, message) = applied(manifests);
        say(&mut conditions, WORK_APPLIED, (holds, reason, message), moment);
    }
    say(&mut conditions, WORK_AVAILABLE, available(manifests), moment);
    for type_ in types(manifests, moment.generation) {
        let (holds, message) = ruled(manifests, type_, moment.generation);
        say(&mut conditions, type_, (holds, "ConditionRulesAggregated", message), moment);
    }
    prune(&mut conditions, moment.generation);
    conditions
}

fn say(conditions: &mut Vec<Condition>, type_: &str, (holds, reason, message): (Holds, &str, String), moment: &Moment) {
    let says = Says { type_, holds, reason, message: &message, generation: Some(moment.generation) };
    tell(conditions, says, false, moment.now);
}

/// Whether a manifest was applied, or failed to be, in this generation of its work.
fn was_tried(manifest: &ManifestStatus, generation: i64) -> bool {
    let mut said = manifest.conditions.iter().filter(|said| said.type_ == WORK_APPLIED);
    said.any(|said| said.observed_generation == Some(generation))
}

fn applied(manifests: &[ManifestStatus]) -> (Holds, &'static str, String) {
    let has_failed = manifests.iter().any(|manifest| holds(&manifest.conditions, WORK_APPLIED) == Some(Holds::No));
    if has_failed {
        (Holds::No, "AppliedManifestWorkFailed", "Failed to apply manifest work".to_owned())
    } else {
        (Holds::Yes, "AppliedManifestWorkComplete", "Apply manifest work complete".to_owned())
    }
}

fn available(manifests: &[ManifestStatus]) -> (Holds, &'static str, String) {
    let of = |holds_| manifests.iter().filter(|it| holds(&it.conditions, WORK_AVAILABLE) == Some(holds_)).count();
    let all = manifests.len();
    match (of(Holds::No), of(Holds::Unknown), of(Holds::Yes)) {
        (0, 0, 0) => (Holds::Unknown, "ResourcesStatusUnknown", "cannot get any available resource".to_owned()),
        (0, 0, _) => (Holds::Yes, "ResourcesAvailable", "All resources are available".to_owned()),
        (0, unknown, _) => {
            (Holds::Unknown, "ResourcesStatusUnknown", format!("{unknown} of {all} resources have unknown status"))
        }
        (missing, _, _) => {
            (Holds::No, "ResourcesNotAvailable", format!("{missing} of {all} resources are not available"))
        }
    }
}

/// The types of conditions that rules have made. Whether objects are there is summed up on its own, whoever says so.
fn types(manifests: &[ManifestStatus], generation: i64) -> BTreeSet<&str> {
    let said = manifests.iter().flat_map(|manifest| &manifest.conditions);
    let made = said.filter(|said| is_ruled(said, generation)).map(|said| said.type_.as_str());
    made.filter(|type_| ![WORK_APPLIED, WORK_AVAILABLE, STATUS_FEEDBACK_SYNCED].contains(type_)).collect()
}

fn is_ruled(said: &Condition, generation: i64) -> bool {
    said.reason.starts_with(REASONS) && said.observed_generation == Some(generation)
}

/// What the rules say of all manifests together: that it does not hold if it does not hold of one, unless it is a change, which goes on as long as one does.
fn ruled(manifests: &[ManifestStatus], type_: &str, generation: i64) -> (Holds, String) {
    let said = manifests.iter().flat_map(|manifest| &manifest.conditions);
    let said: Vec<_> = said.filter(|said| said.type_ == type_ && is_ruled(said, generation)).collect();
    let of = |status: &str| said.iter().filter(|said| said.status == status).count();
    let (yes, no, unknown) = (of("True"), of("False"), of("Unknown"));
    let holds = match (type_, yes, no, unknown) {
        (WORK_PROGRESSING, 1.., _, _) => Holds::Yes,
        (_, _, 1.., _) => Holds::No,
        (_, _, _, 1..) => Holds::Unknown,
        _ => Holds::Yes,
    };
    let all = said.len();
    let message = match (said.as_slice(), holds) {
        ([one], _) => one.message.clone(),
        (_, Holds::Yes) => format!("{yes} of {all} manifests are {type_}"),
        (_, Holds::No) => format!("{no} of {all} manifests are not {type_}"),
        (_, Holds::Unknown) => format!("{unknown} of {all} manifests have an unknown {type_} condition"),
    };
    (holds, message)
}
