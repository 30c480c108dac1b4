//! Reads objects that are sent as protobuf, which some clients do even where they take JSON for an answer.

mod message;
mod own;
mod tables;
#[cfg(test)]
mod tests;
mod wire;

use serde_json::Value;

use self::{
    message::{Reader, text},
    own::last_bytes,
    tables::Tables,
    wire::Error,
};
use crate::{depth, failure::Failure};

/// What everything begins with that is protobuf of Kubernetes.
const PREFIX: &[u8] = b"k8s\0";

/// The object that was sent, as it would have been sent as JSON.
pub fn decode(body: &[u8]) -> Result<Value, Failure> {
    decode_as(body, "", "")
}

/// The same, where objects of a kind are expected: that is what it is taken for if it does not say what it is.
pub fn decode_as(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Failure> {
    let unrecognized = |why: String| {
        let start = beginning(body);
        Failure::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({start})"))
    };
    let envelope = Envelope::read(body).map_err(unrecognized)?.or(api_version, kind);
    let expected = if kind.is_empty() { &envelope.kind } else { kind };
    envelope.object().map_err(|why| {
        let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
        let found = &envelope.kind;
        Failure::bad_request(format!("{found} in version {version:?} cannot be handled as a {expected}: {why}"))
    })
}

/// The first bytes of something, for people to recognize it by.
fn beginning(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let start = body.iter().take(SHOWN).fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    if body.len() > SHOWN { start + " ..." } else { start }
}

/// What is around the message: it says of which kind it is.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    message: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, String> {
        if body.is_empty() {
            return Err("empty data".to_owned());
        }
        match body.strip_prefix(PREFIX) {
            None => Err(format!(
                "provided data does not appear to be a protobuf message, expected prefix [{}]",
                PREFIX.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")
            )),
            Some([]) => Err("empty body".to_owned()),
            Some(unknown) => Self::parts(unknown).map_err(|error| error.to_string()),
        }
    }

    fn parts(unknown: &'a [u8]) -> Result<Self, Error> {
        let type_meta = last_bytes(unknown, 1)?.unwrap_or_default();
        let part = |number| Ok(last_bytes(type_meta, number)?.map(text).unwrap_or_default());
        Ok(Self { api_version: part(1)?, kind: part(2)?, message: last_bytes(unknown, 2)?.unwrap_or_default() })
    }

    fn or(mut self, api_version: &str, kind: &str) -> Self {
        if self.api_version.is_empty() {
            api_version.clone_into(&mut self.api_version);
        }
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
        self
    }

    fn object(&self) -> Result<Value, String> {
        let Self { api_version, kind, message } = self;
        let tables = Tables::get();
        let Some(table) = tables.kind(api_version, kind) else {
            return Err(format!(
                "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        };
        let mut object = Reader::new(tables).object(table, message).map_err(|error| error.to_string())?;
        object.insert("apiVersion".to_owned(), api_version.as_str().into());
        object.insert("kind".to_owned(), kind.as_str().into());
        let object = Value::Object(object);
        depth::check(&object).map_err(|error| error.to_string())?;
        Ok(object)
    }
}
