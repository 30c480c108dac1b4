//! An object as it is kept: the JSON that is sent to whoever asks, ready to send.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value};

/// An object that is kept, or was. Copies share everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored(Arc<Record>);

#[derive(Debug, PartialEq, Eq)]
struct Record {
    revision: u64,
    position: Arc<str>,
    labels: Span,
    bytes: Bytes,
}

/// Where something is in the bytes of an object: it begins somewhere, and has a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span(pub(super) u32, pub(super) u32);

impl Stored {
    pub(super) fn new(revision: u64, position: Arc<str>, labels: Span, bytes: Bytes) -> Self {
        Self(Arc::new(Record { revision, position, labels, bytes }))
    }

    /// The revision that it is from. The object says the same in `metadata.resourceVersion`.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// The namespace, if it is in one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.position.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.position.split_once('/').map_or(&*self.0.position, |(_, name)| name)
    }

    /// Where it is among the objects of its resource, which are sorted by this.
    #[must_use]
    pub fn position(&self) -> &str {
        &self.0.position
    }

    /// The object as compact JSON.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// The object. It is read anew each time.
    #[must_use]
    pub fn value(&self) -> Value {
        // The bytes were written in here.
        serde_json::from_slice(&self.0.bytes).unwrap_or_default()
    }

    /// The labels, without reading the rest of the object.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        let Span(from, length) = self.0.labels;
        let bytes = self.0.bytes.get(from as usize..).and_then(|rest| rest.get(..length as usize));
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    pub(super) fn shared_position(&self) -> Arc<str> {
        self.0.position.clone()
    }

    pub(super) fn labels_at(&self) -> Span {
        self.0.labels
    }
}

/// An object that is to be kept: its JSON, but for the revision, which is known only when it is its turn.
pub(super) struct Draft {
    text: Vec<u8>,
    revision_at: usize,
    labels: Span,
}

impl Draft {
    /// Renders an object. What it says in `metadata.resourceVersion` does not matter. There is none if it is not an object.
    pub(super) fn new(mut object: Value) -> Option<Self> {
        let fields = object.as_object_mut()?;
        let metadata = fields.entry("metadata").or_insert_with(|| Map::new().into());
        metadata.as_object_mut()?.insert("resourceVersion".to_owned(), Value::String(String::new()));

        let mut draft = Self { text: Vec::with_capacity(1024), revision_at: 0, labels: Span::default() };
        draft.write_object(fields)?;
        Some(draft)
    }

    /// How many bytes it has, but for the revision.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    fn write_object(&mut self, fields: &Map<String, Value>) -> Option<()> {
        self.write_fields(fields, |draft, name, value| match value {
            Value::Object(metadata) if name == "metadata" => draft.write_metadata(metadata),
            value => draft.write(value),
        })
    }

    fn write_metadata(&mut self, fields: &Map<String, Value>) -> Option<()> {
        self.write_fields(fields, |draft, name, value| {
            let from = draft.text.len();
            draft.write(value)?;
            match name {
                "labels" => draft.labels = Span(from.try_into().ok()?, (draft.text.len() - from).try_into().ok()?),
                "resourceVersion" => draft.revision_at = from + 1,
                _ => {}
            }
            Some(())
        })
    }

    fn write_fields(
        &mut self,
        fields: &Map<String, Value>,
        mut write: impl FnMut(&mut Self, &str, &Value) -> Option<()>,
    ) -> Option<()> {
        let mut separator = b'{';
        for (name, value) in fields {
            self.text.push(separator);
            separator = b',';
            serde_json::to_writer(&mut self.text, name).ok()?;
            self.text.push(b':');
            write(self, name, value)?;
        }
        self.text.push(b'}');
        Some(())
    }

    fn write(&mut self, value: &Value) -> Option<()> {
        serde_json::to_writer(&mut self.text, value).ok()
    }

    /// The object with its revision. Nothing is allocated that is not needed, because there are many.
    pub(super) fn at(self, revision: u64, position: Arc<str>) -> Stored {
        let number = revision.to_string();
        let (head, tail) = self.text.split_at(self.revision_at);
        let bytes = [head, number.as_bytes(), tail].concat();
        // The labels come before the revision, so they stay where they are.
        Stored::new(revision, position, self.labels, bytes.into())
    }

    /// Whether the object is the same as one that is kept, but for the revision.
    pub(super) fn is(&self, stored: &Stored) -> bool {
        let (head, tail) = self.text.split_at(self.revision_at);
        let number = stored.revision().to_string();
        let rest = stored.bytes().strip_prefix(head).and_then(|rest| rest.strip_prefix(number.as_bytes()));
        rest == Some(tail)
    }
}
