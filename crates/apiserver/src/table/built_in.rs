//! Rows of the kinds that a hub itself needs.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Row, duration,
    look::{age, list, map, number, since, some, text, text_or, time},
};

pub(super) fn namespace(object: &Value, now: Timestamp) -> Row {
    vec![json!(text(object, "/metadata/name")), json!(text(object, "/status/phase")), json!(age(object, now))].into()
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Row {
    let name = text(object, "/metadata/name");
    vec![json!(name), json!(text(object, "/type")), json!(entries(object, "/data")), json!(age(object, now))].into()
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Row {
    let data = entries(object, "/data") + entries(object, "/binaryData");
    vec![json!(text(object, "/metadata/name")), json!(data), json!(age(object, now))].into()
}

fn entries(object: &Value, place: &str) -> usize {
    map(object, place).map_or(0, Map::len)
}

pub(super) fn service_account(object: &Value, now: Timestamp) -> Row {
    vec![json!(text(object, "/metadata/name")), json!(age(object, now))].into()
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Row {
    let holder = text(object, "/spec/holderIdentity");
    vec![json!(text(object, "/metadata/name")), json!(holder), json!(age(object, now))].into()
}

pub(super) fn certificate_request(object: &Value, now: Timestamp) -> Row {
    let expires = some(object, "/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        json!(text(object, "/metadata/name")),
        json!(age(object, now)),
        json!(text_or(object, "/spec/signerName", "<none>")),
        json!(text(object, "/spec/username")),
        json!(expires.map_or_else(|| "<none>".to_owned(), duration::human)),
        json!(certificate_state(object)),
    ]
    .into()
}

fn certificate_state(object: &Value) -> String {
    let conditions = list(object, "/status/conditions");
    let has = |type_: &str| conditions.iter().any(|condition| text(condition, "/type") == type_);
    let decided = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if text(object, "/status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{decided}{failed}{issued}")
}

pub(super) fn binding(object: &Value, now: Timestamp) -> Row {
    let subjects = list(object, "/subjects");
    let of = |kind: &str, told: fn(&Value) -> String| {
        let named = subjects.iter().filter(|subject| text(subject, "/kind") == kind);
        named.map(told).collect::<Vec<_>>().join(", ")
    };
    let name = |subject: &Value| text(subject, "/name").to_owned();
    let account = |subject: &Value| format!("{}/{}", text(subject, "/namespace"), text(subject, "/name"));
    vec![
        json!(text(object, "/metadata/name")),
        json!(format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"))),
        json!(age(object, now)),
        json!(of("User", name)),
        json!(of("Group", name)),
        json!(of("ServiceAccount", account)),
    ]
    .into()
}

/// Events have two forms, and either can be shown.
pub(super) fn event(object: &Value, now: Timestamp) -> Row {
    let either = |one: &'static str, other: &'static str| if object.pointer(one).is_some() { one } else { other };
    let first = [either("/firstTimestamp", "/deprecatedFirstTimestamp"), "/eventTime"];
    let first = first.iter().find(|place| time(object, place).is_some());
    let first = first.map_or_else(|| "<unknown>".to_owned(), |place| since(object, place, now));
    let last = either("/lastTimestamp", "/deprecatedLastTimestamp");
    let (last, count) = if let Some(series) = some(object, "/series") {
        (since(series, "/lastObservedTime", now), number(series, "/count"))
    } else {
        let last = if time(object, last).is_some() { since(object, last, now) } else { first.clone() };
        (last, number(object, either("/count", "/deprecatedCount")).max(1))
    };
    let about = object.get("involvedObject").or(object.get("regarding")).unwrap_or(&Value::Null);
    let kind = text(about, "/kind").to_lowercase();
    let name = text(about, "/name");
    vec![
        json!(last),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(if name.is_empty() { kind } else { format!("{kind}/{name}") }),
        json!(text(about, "/fieldPath")),
        json!(event_source(object)),
        json!(text(object, either("/message", "/note")).trim()),
        json!(first),
        json!(count),
        json!(text(object, "/metadata/name")),
    ]
    .into()
}

fn event_source(object: &Value) -> String {
    let source = object.get("source").or(object.get("deprecatedSource")).unwrap_or(&Value::Null);
    let reporter = text_or(object, "/reportingComponent", text(object, "/reportingController"));
    let component = text_or(source, "/component", reporter);
    match text_or(source, "/host", text(object, "/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

pub(super) fn policy(object: &Value, now: Timestamp) -> Row {
    let parameters =
        some(object, "/spec/paramKind").map(|kind| format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")));
    vec![
        json!(text(object, "/metadata/name")),
        json!(list(object, "/spec/validations").len()),
        json!(parameters.as_deref().unwrap_or("<unset>")),
        json!(age(object, now)),
    ]
    .into()
}

pub(super) fn policy_binding(object: &Value, now: Timestamp) -> Row {
    let parameters = some(object, "/spec/paramRef").and_then(parameter_reference);
    vec![
        json!(text(object, "/metadata/name")),
        json!(text(object, "/spec/policyName")),
        json!(parameters.as_deref().unwrap_or("<unset>")),
        json!(age(object, now)),
    ]
    .into()
}

fn parameter_reference(reference: &Value) -> Option<String> {
    match text(reference, "/name") {
        "" => some(reference, "/selector").map(selector_in_go),
        name => Some(format!("{}/{name}", text_or(reference, "/namespace", "*"))),
    }
}

/// A selector as Go prints it when nobody says how.
fn selector_in_go(selector: &Value) -> String {
    let labels = map(selector, "/matchLabels").into_iter().flatten();
    let labels: Vec<_> = labels.map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default())).collect();
    let labels = labels.concat();
    let expressions = list(selector, "/matchExpressions").iter().map(|expression| {
        let values: Vec<_> = list(expression, "/values").iter().filter_map(Value::as_str).collect();
        let (key, operator) = (text(expression, "/key"), text(expression, "/operator"));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    let expressions = expressions.collect::<Vec<_>>().concat();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
