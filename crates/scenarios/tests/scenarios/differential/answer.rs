//! What a server answers, and where two answers differ.

use std::{pin::pin, time::Duration};

use futures_util::{AsyncBufReadExt, StreamExt};
use http::HeaderMap;
use kube::{Client, client::Body};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{redaction::redact, step::Step};

/// So long is waited for an answer to become what the step waits for, and for the events of a watch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take until a server has done what it does by itself. A busy machine is no reason to fail.
const LONG_PATIENCE: Duration = Duration::from_mins(2);

/// An answer, with nothing left in it that differs between two runs of one server. The body is as it was sent.
#[derive(Debug)]
pub(super) struct Answer {
    code: u16,
    content_type: String,
    warnings: Vec<String>,
    pub(super) body: Value,
}

/// One place where two answers differ.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) kube: Value,
    pub(super) drover: Value,
}

pub(super) async fn ask(client: &Client, step: &Step) -> Answer {
    if let Some(frames) = step.frames {
        // A server may keep to itself even that it has begun.
        let watched = timeout(2 * PATIENCE, watched(client, step, frames)).await;
        return watched.unwrap_or_else(|_| Answer::of_watch(200, Value::Array(Vec::new())));
    }
    let end = Instant::now() + LONG_PATIENCE;
    loop {
        let answer = asked_once(client, step).await;
        if step.until.is_none_or(|code| code == answer.code) || Instant::now() > end {
            return answer;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn asked_once(client: &Client, step: &Step) -> Answer {
    answered(client, step).await.unwrap_or_else(|error| Answer::none(&error))
}

async fn answered(client: &Client, step: &Step) -> Result<Answer, kube::Error> {
    let (head, body) = client.send(step.request().map(Body::from)).await?.into_parts();
    let body = body.collect_bytes().await?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Answer {
        code: head.status.as_u16(),
        content_type: header(&head.headers, "content-type").concat(),
        warnings: header(&head.headers, "warning"),
        body: read(text, &head.headers),
    })
}

/// What a body says. That it says it in YAML or in JSON is in the header.
fn read(text: String, headers: &HeaderMap) -> Value {
    if header(headers, "content-type").concat() == "application/yaml" {
        return serde_saphyr::from_str(&text).unwrap_or(Value::String(text));
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn header(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// The first events of a watch; fewer where the server sends no more, or ends the watch.
async fn watched(client: &Client, step: &Step, frames: usize) -> Answer {
    let (code, body) = match client.request_stream(step.request()).await {
        Ok(stream) => {
            let lines = pin!(stream.lines().take(frames));
            let mut lines = lines;
            let mut events = Vec::new();
            while let Ok(Some(Ok(line))) = timeout(PATIENCE, lines.next()).await {
                events.push(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
            (200, Value::Array(events))
        }
        Err(kube::Error::Api(status)) => (status.code, serde_json::to_value(*status).expect("a status is JSON")),
        Err(error) => return Answer::none(&error),
    };
    Answer::of_watch(code, body)
}

impl Answer {
    /// That a server does not answer at all is a difference, too.
    fn none(error: &kube::Error) -> Self {
        Self::of_watch(0, error.to_string().into())
    }

    fn of_watch(code: u16, body: Value) -> Self {
        Self { code, content_type: String::new(), warnings: Vec::new(), body }
    }

    pub(super) fn differences_to(&self, drover: &Self, step: &Step) -> Vec<Difference> {
        let (mut kube, drover) = (self.comparable(), drover.comparable());
        if step.is_list_of_kinds {
            leave_out_what_is_not_in(&drover, &mut kube);
        }
        let mut found = Vec::new();
        compare("", &kube, &drover, &mut found);
        found
    }

    fn comparable(&self) -> Value {
        let mut body = self.body.clone();
        redact(&mut body);
        json!({ "code": self.code, "content-type": self.content_type, "warnings": self.warnings, "body": body })
    }
}

/// Takes from lists what the other lists of the same name do not have.
fn leave_out_what_is_not_in(other: &Value, value: &mut Value) {
    match (other, value) {
        (Value::Object(other), Value::Object(fields)) => {
            let shared = fields.iter_mut().filter_map(|(name, field)| Some((other.get(name)?, field)));
            shared.for_each(|(other, field)| leave_out_what_is_not_in(other, field));
        }
        (Value::Array(other), Value::Array(items)) => {
            let same = |item: &Value| other.iter().find(|it| name_of(it) == name_of(item));
            items.retain(|item| same(item).is_some());
            for item in items {
                if let Some(other) = same(item) {
                    leave_out_what_is_not_in(other, item);
                }
            }
        }
        _ => {}
    }
}

/// What an item of a list of groups, versions or kinds is called there.
fn name_of(item: &Value) -> Option<&Value> {
    let places = ["/name", "/metadata/name", "/resource", "/subresource", "/version"];
    places.into_iter().find_map(|place| item.pointer(place)).or(item.as_str().map(|_| item))
}

fn compare(path: &str, kube: &Value, drover: &Value, found: &mut Vec<Difference>) {
    match (kube, drover) {
        (Value::Object(kube), Value::Object(drover)) => compare_maps(path, kube, drover, found),
        (Value::Array(kube), Value::Array(drover)) if kube.len() == drover.len() => {
            for (index, (kube, drover)) in kube.iter().zip(drover).enumerate() {
                compare(&format!("{path}[{index}]"), kube, drover, found);
            }
        }
        (kube, drover) if kube == drover => {}
        (kube, drover) => {
            found.push(Difference { path: path.to_owned(), kube: kube.clone(), drover: drover.clone() });
        }
    }
}

fn compare_maps(path: &str, kube: &Map<String, Value>, drover: &Map<String, Value>, found: &mut Vec<Difference>) {
    let mut keys: Vec<_> = kube.keys().chain(drover.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let absent = Value::String("<absent>".to_owned());
        compare(&path, kube.get(key).unwrap_or(&absent), drover.get(key).unwrap_or(&absent), found);
    }
}
