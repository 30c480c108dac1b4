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
        return watched(client, step, frames).await;
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
    let sent = client.send(step.request().map(Body::from)).await;
    let response = sent.unwrap_or_else(|error| panic!("{}: {error}", step.send));
    let (head, body) = response.into_parts();
    let body = body.collect_bytes().await.unwrap_or_else(|error| panic!("{}: {error}", step.send));
    let text = String::from_utf8_lossy(&body).into_owned();
    Answer {
        code: head.status.as_u16(),
        content_type: header(&head.headers, "content-type").concat(),
        warnings: header(&head.headers, "warning"),
        body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
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
        Err(error) => panic!("{}: {error}", step.send),
    };
    Answer { code, content_type: String::new(), warnings: Vec::new(), body }
}

impl Answer {
    pub(super) fn differences_to(&self, drover: &Self) -> Vec<Difference> {
        let (kube, drover) = (self.comparable(), drover.comparable());
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
