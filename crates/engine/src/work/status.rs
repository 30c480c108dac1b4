//! The status of a work, from what became of its manifests.
//!
//! The same facts with the same former status give the same status, so that it is only written when there is something new.

mod aggregate;

use drover_api::{
    names::{STATUS_FEEDBACK_SYNCED, WORK_APPLIED, WORK_AVAILABLE, WORK_COMPLETE, WORK_DELETING},
    work::{
        FeedbackRule, ManifestResourceMeta, ManifestResourceStatus, ManifestStatus, ManifestWorkStatus, StatusFeedback,
    },
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use serde_json::Value;

use super::{
    feedback::{Feedback, RawJson, feedback},
    rules::{REASONS, Rules},
};
use crate::condition::{Holds, Says, holds, with};

/// How many characters of a message are told. What a server says about an object that it refuses can be as long as the object.
const LONGEST_MESSAGE: usize = 2000;

/// What came of applying a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Its object is as it has to be.
    Done,
    /// It was refused, or could not be sent.
    Failed(String),
    /// Nobody could tell which fields of it are to be left out.
    IgnoreFields(String),
    /// It was not tried, and what was said of it before stands.
    Kept,
}

/// What was seen of the object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight<'a> {
    /// The object.
    Live(&'a Value),
    /// That there is none.
    Missing,
    /// Nothing, for this reason.
    Unknown(String),
}

/// What became of one manifest.
#[derive(Clone, Debug)]
pub struct Fact<'a> {
    /// Which object it is for.
    pub meta: ManifestResourceMeta,
    /// What came of applying it.
    pub applied: Applied,
    /// What was seen of its object.
    pub sight: Sight<'a>,
    /// What of the object is reported.
    pub feedback: &'a [FeedbackRule],
    /// The conditions that are asked for.
    pub rules: &'a Rules,
}

/// For which version of a work facts are gathered, and when.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The generation of the work.
    pub generation: i64,
    /// The time.
    pub now: Timestamp,
    /// What is done with values that have no type of their own.
    pub raw_json: RawJson,
}

/// What was said of a manifest before.
#[derive(Clone, Copy, Debug)]
pub enum Former<'a> {
    /// This.
    Entry(&'a ManifestStatus),
    /// What this status of its work says of it, if it has one.
    Status(Option<&'a ManifestWorkStatus>),
}

/// What is said of a manifest now, from what became of it.
#[must_use]
pub fn entry(former: Former<'_>, fact: &Fact<'_>, moment: &Moment) -> ManifestStatus {
    let former = match former {
        Former::Entry(entry) => Some(entry),
        Former::Status(status) => find(status, &fact.meta),
    };
    entry_after(former, fact, moment)
}

/// The status of a work that had one before, from what is said of each of its manifests.
#[must_use]
pub fn work_status(
    former: Option<&ManifestWorkStatus>,
    mut manifests: Vec<ManifestStatus>,
    moment: &Moment,
) -> ManifestWorkStatus {
    manifests.sort_by_key(|manifest| manifest.resource_meta.ordinal);
    let conditions = former.map(|former| former.conditions.clone()).unwrap_or_default();
    let conditions = aggregate::conditions(conditions, &manifests, moment);
    ManifestWorkStatus { conditions, resource_status: Some(ManifestResourceStatus { manifests }) }
}

/// The status of a work that is being removed.
#[must_use]
pub fn deleting(former: Option<&ManifestWorkStatus>, generation: i64, now: Timestamp) -> ManifestWorkStatus {
    let mut status = former.cloned().unwrap_or_default();
    let says = Says {
        type_: WORK_DELETING,
        holds: Holds::Yes,
        reason: "WorkDeleting",
        message: "ManifestWork is being deleted",
        generation: Some(generation),
    };
    status.conditions = with(status.conditions, says, now);
    status
}

/// Whether a manifest was applied in this generation of its work, as far as the hub knows.
#[must_use]
pub fn was_applied(former: Option<&ManifestWorkStatus>, meta: &ManifestResourceMeta, generation: i64) -> bool {
    let mut conditions = find(former, meta).into_iter().flat_map(|entry| &entry.conditions);
    conditions
        .any(|said| said.type_ == WORK_APPLIED && said.status == "True" && said.observed_generation == Some(generation))
}

/// Whether the object of a manifest has done what it was for. It is not applied any more.
#[must_use]
pub fn is_manifest_complete(former: Option<&ManifestWorkStatus>, meta: &ManifestResourceMeta) -> bool {
    find(former, meta).is_some_and(|entry| holds(&entry.conditions, WORK_COMPLETE) == Some(Holds::Yes))
}

/// What was said of an object before: under the same place, or under the only other one.
fn find<'a>(former: Option<&'a ManifestWorkStatus>, meta: &ManifestResourceMeta) -> Option<&'a ManifestStatus> {
    let entries = &former?.resource_status.as_ref()?.manifests;
    let mut same = entries.iter().filter(|entry| object_of(&entry.resource_meta) == object_of(meta));
    let here = same.clone().find(|entry| entry.resource_meta.ordinal == meta.ordinal);
    here.or_else(|| same.next().filter(|_| same.next().is_none()))
}

/// Which object is meant, wherever it stands. OCM writes what there is none of as an empty text.
fn object_of(meta: &ManifestResourceMeta) -> [&str; 6] {
    [&meta.group, &meta.version, &meta.kind, &meta.resource, &meta.namespace, &meta.name]
        .map(|text| text.as_deref().unwrap_or_default())
}

fn entry_after(former: Option<&ManifestStatus>, fact: &Fact<'_>, moment: &Moment) -> ManifestStatus {
    let mut entry = ManifestStatus { resource_meta: fact.meta.clone(), ..former.cloned().unwrap_or_default() };
    tell_applied(&mut entry, &fact.applied, moment);
    match &fact.sight {
        Sight::Live(live) if !is_incomplete(&fact.meta) => tell_of_object(&mut entry, live, fact, moment),
        sight => {
            tell_available(&mut entry, &fact.meta, sight, moment);
            keep_completion(&mut entry, fact.rules, moment);
        }
    }
    prune(&mut entry.conditions, moment.generation);
    entry
}

/// Says whether the manifest was applied. In another generation of the work this is a new matter, with a time of its own.
fn tell_applied(entry: &mut ManifestStatus, applied: &Applied, moment: &Moment) {
    let (holds, reason, message) = match applied {
        Applied::Kept => return,
        Applied::Done => (Holds::Yes, "AppliedManifestComplete", "Apply manifest complete".to_owned()),
        Applied::Failed(why) => (Holds::No, "AppliedManifestFailed", format!("Failed to apply manifest: {why}")),
        Applied::IgnoreFields(why) => {
            (Holds::No, "AppliedManifestSSAIgnoreFieldError", format!("Failed to process ignoreFields: {why}"))
        }
    };
    let generation = Some(moment.generation);
    let is_new = |said: &Condition| said.type_ == WORK_APPLIED && said.observed_generation != generation;
    let is_new = entry.conditions.iter().any(is_new);
    let says = Says { type_: WORK_APPLIED, holds, reason, message: &message, generation };
    tell(&mut entry.conditions, says, is_new, moment.now);
}

fn tell_of_object(entry: &mut ManifestStatus, live: &Value, fact: &Fact<'_>, moment: &Moment) {
    tell_feedback(entry, fact.feedback, live, moment);
    let verdicts = fact.rules.evaluate(live);
    // Said twice, it would change each time.
    if !verdicts.iter().any(|verdict| verdict.type_ == WORK_AVAILABLE) {
        tell_available(entry, &fact.meta, &fact.sight, moment);
    }
    for verdict in &verdicts {
        let says = Says {
            type_: &verdict.type_,
            holds: verdict.holds,
            reason: verdict.reason,
            message: &verdict.message,
            generation: Some(moment.generation),
        };
        tell(&mut entry.conditions, says, false, moment.now);
    }
}

fn tell_available(entry: &mut ManifestStatus, meta: &ManifestResourceMeta, sight: &Sight<'_>, moment: &Moment) {
    let (holds, reason, message) = match sight {
        _ if is_incomplete(meta) => {
            (Holds::Unknown, "IncompleteResourceMeta", "Resource meta is incomplete".to_owned())
        }
        Sight::Live(_) => (Holds::Yes, "ResourceAvailable", "Resource is available".to_owned()),
        Sight::Missing => (Holds::No, "ResourceNotAvailable", "Resource is not available".to_owned()),
        Sight::Unknown(why) => (Holds::Unknown, "FetchingResourceFailed", format!("Failed to fetch resource: {why}")),
    };
    let says = Says { type_: WORK_AVAILABLE, holds, reason, message: &message, generation: None };
    tell(&mut entry.conditions, says, false, moment.now);
}

fn is_incomplete(meta: &ManifestResourceMeta) -> bool {
    [&meta.resource, &meta.version, &meta.name].iter().any(|text| text.as_ref().is_none_or(String::is_empty))
}

/// Reports what is asked for. The time of the condition is that of the last change of a value.
fn tell_feedback(entry: &mut ManifestStatus, rules: &[FeedbackRule], live: &Value, moment: &Moment) {
    let Feedback { values, problems } = feedback(rules, live, moment.raw_json);
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let (holds, reason, message) = match problems.as_slice() {
        [] if rules.is_empty() => (Holds::Yes, "NoStatusFeedbackSynced", String::new()),
        [] => (Holds::Yes, "StatusFeedbackSynced", String::new()),
        [problem] => (Holds::No, "StatusFeedbackSyncFailed", failed(problem)),
        problems => (Holds::No, "StatusFeedbackSyncFailed", failed(&format!("[{}]", problems.join(", ")))),
    };
    let former = entry.status_feedback.as_ref().map_or(&[][..], |feedback| &feedback.values);
    let has_changed = former != values;
    entry.status_feedback = (!values.is_empty()).then_some(StatusFeedback { values });
    let says = Says { type_: STATUS_FEEDBACK_SYNCED, holds, reason, message: &message, generation: None };
    tell(&mut entry.conditions, says, has_changed, moment.now);
}

fn failed(problem: &str) -> String {
    format!("Sync status feedback failed with error {problem}")
}

/// An object that has done what it was for may go, such as a Job that is cleaned up: it has done it all the same.
fn keep_completion(entry: &mut ManifestStatus, rules: &Rules, moment: &Moment) {
    if !rules.are_about(WORK_COMPLETE) {
        return;
    }
    for said in entry.conditions.iter_mut().filter(|said| said.type_ == WORK_COMPLETE && said.status == "True") {
        said.observed_generation = Some(moment.generation);
    }
}

/// Takes away what rules have said that are not there any more.
fn prune(conditions: &mut Vec<Condition>, generation: i64) {
    conditions.retain(|said| !said.reason.starts_with(REASONS) || said.observed_generation == Some(generation));
}

/// Brings a condition up to date, with a time of now if it is about something new, whatever its status was.
fn tell(conditions: &mut Vec<Condition>, says: Says<'_>, is_new: bool, now: Timestamp) {
    let message = cut(says.message);
    *conditions = with(std::mem::take(conditions), Says { message: &message, ..says }, now);
    for said in conditions.iter_mut().filter(|said| is_new && said.type_ == says.type_) {
        said.last_transition_time = Time(now);
    }
}

/// A message without its end, if it is so long that a server might refuse the whole status for it.
fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// The status of a work that had one before, from a fact for each of its manifests.
#[cfg(test)]
pub(super) fn status(former: Option<&ManifestWorkStatus>, facts: &[Fact<'_>], moment: &Moment) -> ManifestWorkStatus {
    let entries = facts.iter().map(|fact| entry(Former::Status(former), fact, moment)).collect();
    work_status(former, entries, moment)
}

#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod tests;
