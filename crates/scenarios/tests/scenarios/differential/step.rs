//! One request, as it is written down.

use std::{collections::BTreeMap, path::Path};

use http::Request;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::documents::read as documents;

/// A request that both servers are sent. In its path and body, `${name.a.b}` is a field of an earlier answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// The method and the path.
    pub(super) send: String,
    /// What is sent: text as it is, everything else as JSON.
    #[serde(default)]
    pub(super) body: Option<Value>,
    /// What the body is said to be: a media type, or what [`media_type`] calls it.
    #[serde(default)]
    pub(super) r#as: Option<String>,
    /// What is asked for, likewise.
    #[serde(default)]
    pub(super) accept: Option<String>,
    /// Who asks, if that is not the administrator.
    #[serde(default)]
    pub(super) user: Option<String>,
    /// Under which name the answer is kept.
    #[serde(default)]
    pub(super) keep: Option<String>,
    /// The request is repeated until this is the code of the answer.
    #[serde(default)]
    pub(super) until: Option<u16>,
    /// The answer is a watch, of which so many events are read.
    #[serde(default)]
    pub(super) frames: Option<usize>,
    /// The answer lists what is served, and what only the real server has is left out.
    #[serde(default)]
    pub(super) is_list_of_kinds: bool,
}

/// The requests that a file holds.
pub(super) fn read(path: &Path) -> Vec<Step> {
    documents::<Vec<Step>>(path).concat()
}

impl Step {
    pub(super) fn new(send: impl Into<String>) -> Self {
        Self { send: send.into(), ..Self::default() }
    }

    pub(super) fn with(self, body: impl Into<Value>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    pub(super) fn of_type(self, media_type: &str) -> Self {
        Self { r#as: Some(media_type.to_owned()), ..self }
    }

    pub(super) fn accepting(self, media_type: &str) -> Self {
        Self { accept: Some(media_type.to_owned()), ..self }
    }

    /// The step with what was answered in place of references to it.
    pub(super) fn referring_to(&self, kept: &BTreeMap<String, Value>) -> Self {
        let body = self.body.as_ref().map(|body| match body {
            Value::String(text) => Value::String(resolved(text, kept)),
            body => {
                serde_json::from_str(&resolved(&body.to_string(), kept)).expect("what is referred to is plain text")
            }
        });
        Self { send: resolved(&self.send, kept), body, ..self.clone() }
    }

    pub(super) fn request(&self) -> Request<Vec<u8>> {
        let (method, path) = self.send.split_once(' ').expect("a step has a method and a path");
        let body = match &self.body {
            None => Vec::new(),
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(value) => value.to_string().into_bytes(),
        };
        let accept = self.accept.as_deref().unwrap_or("json");
        let mut request = Request::builder().method(method).uri(path).header("accept", media_type(accept));
        let said = self
            .r#as
            .as_deref()
            .or_else(|| self.body.as_ref().map(|_| if method == "PATCH" { "merge" } else { "json" }));
        if let Some(said) = said {
            request = request.header("content-type", media_type(said));
        }
        if let Some(user) = &self.user {
            request = request.header("impersonate-user", user);
        }
        request.body(body).unwrap_or_else(|error| panic!("{}: {error}", self.send))
    }
}

fn resolved(text: &str, kept: &BTreeMap<String, Value>) -> String {
    let reference = Regex::new(r"\$\{([a-z0-9-]+)((?:\.[A-Za-z0-9]+)+)\}").expect("a valid pattern");
    let field = |captures: &regex::Captures<'_>| {
        let answer = kept.get(&captures[1]).unwrap_or_else(|| panic!("{} is not kept", &captures[1]));
        let value = answer.pointer(&captures[2].replace('.', "/"));
        value.and_then(Value::as_str).unwrap_or("nothing").to_owned()
    };
    reference.replace_all(text, field).into_owned()
}

fn media_type(name: &str) -> &str {
    match name {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "operations" => "application/json-patch+json",
        "apply" => "application/apply-patch+yaml",
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "partial" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "everything" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "partials" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        media_type => media_type,
    }
}
