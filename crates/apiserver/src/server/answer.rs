//! What is sent and what is answered, before anybody has looked into it.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::watch::Watching;
use crate::{
    failure::Failure,
    negotiation::{Writing, writing},
    request::Query,
};

/// What comes before the body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) user_agent: String,
    /// The headers by which somebody acts as somebody else.
    pub(crate) impersonation: Vec<(String, String)>,
}

/// What is answered.
pub(crate) enum Answer {
    /// A text, at once.
    Text(Body),
    /// What happens, as it happens.
    Watch(Box<Watching>),
}

/// A text that is answered.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) code: u16,
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
    /// What to warn of.
    pub(crate) warnings: Vec<String>,
    /// After how many seconds to come back, if that is asked for.
    pub(crate) retry_after: Option<u32>,
}

impl Body {
    pub(crate) fn json(code: u16, bytes: impl Into<Bytes>) -> Self {
        Self {
            code,
            media_type: Writing::Json.media_type().to_owned(),
            bytes: bytes.into(),
            warnings: Vec::new(),
            retry_after: None,
        }
    }

    pub(crate) fn value(code: u16, value: &Value) -> Self {
        Self::json(code, value.to_string())
    }

    /// An answer, written as is wanted.
    pub(crate) fn written(code: u16, value: &Value, writing: Writing) -> Self {
        match writing {
            Writing::Json => Self::value(code, value),
            Writing::Yaml => {
                let text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
                Self { media_type: writing.media_type().to_owned(), ..Self::json(code, text) }
            }
        }
    }

    /// A text for people, or for programs that read nothing else.
    pub(crate) fn plain(code: u16, text: impl Into<Bytes>) -> Self {
        Self { media_type: "text/plain; charset=utf-8".to_owned(), ..Self::json(code, text) }
    }

    /// What is answered to a request that could not be done, written as its sender wants it.
    pub(crate) fn failed(failure: &Failure, head: &Head) -> Self {
        if failure.is_of_a_page() {
            return Self::plain(failure.code, failure.message.clone());
        }
        let retry_after = failure.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let written = Self::written(failure.code, &failure.status(), writing(head.accept.as_deref()));
        Self { retry_after: (retry_after > 0).then_some(retry_after), ..written }
    }
}

impl From<Body> for Answer {
    fn from(body: Body) -> Self {
        Self::Text(body)
    }
}

impl Failure {
    /// The Status.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = serde_json::to_value(details).unwrap_or_default();
        }
        status
    }
}
