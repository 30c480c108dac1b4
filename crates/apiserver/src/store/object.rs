//! An object as it is kept: the JSON that is sent to whoever asks, ready to send.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::depth;

/// An object that is kept, or was. Copies share everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored(Arc<Record>);

#[derive(Debug, PartialEq, Eq)]
struct Record {
    revision: u64,
    position: Arc<str>,
    labels: Span,
    /// Whether it nests deeper than objects may. Earlier releases had no limit.
    is_too_deep: bool,
    bytes: Bytes,
}

/// Where something is in the bytes of an object: it begins somewhere, and has a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span(pub(super) u32, pub(super) u32);

impl Stored {
    /// An object as a journal has it.
    pub(super) fn restored(revision: u64, position: Arc<str>, labels: Span, bytes: Bytes) -> Self {
        let is_too_deep = depth::is_exceeded_in(&bytes);
        Self::new(revision, position, labels, is_too_deep, bytes)
    }

    fn new(revision: u64, position: Arc<str>, labels: Span, is_too_deep: bool, bytes: Bytes) -> Self {
        Self(Arc::new(Record { revision, position, labels, is_too_deep, bytes }))
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

    /// Whether it nests deeper than objects may.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.0.is_too_deep
    }

    /// The object as compact JSON within the limit of depth, so that whatever else is in a list
    /// with it can be read.
    #[must_use]
    pub fn bounded(&self) -> Cow<'_, [u8]> {
        if self.0.is_too_deep { Cow::Owned(depth::cut(&self.0.bytes)) } else { Cow::Borrowed(&self.0.bytes) }
    }

    /// The object, within the limit of depth. It is read anew each time.
    #[must_use]
    pub fn value(&self) -> Value {
        // The bytes were written in here.
        serde_json::from_slice(&self.bounded()).unwrap_or_default()
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
    /// Whether the object itself nests deeper than objects may.
    is_too_deep: bool,
    /// Whether it does with what it keeps of the one that it replaces.
    keeps_too_deep: bool,
}

/// What is at the same place in the object that a draft replaces: its value within the limit of
/// depth, and its text.
#[derive(Clone, Copy)]
struct Replaced<'a> {
    value: &'a Value,
    text: &'a [u8],
}

impl Draft {
    /// Renders an object. What it says in `metadata.resourceVersion` does not matter. There is none if it is not an object.
    pub(super) fn new(object: Value) -> Option<Self> {
        Self::over(None, object)
    }

    /// Renders an object that replaces another one. What nests too deeply in that one stays as it
    /// is, unless something else is put in its place.
    pub(super) fn over(old: Option<&Stored>, mut object: Value) -> Option<Self> {
        let is_too_deep = depth::check(&object).is_err();
        let fields = object.as_object_mut()?;
        let metadata = fields.entry("metadata").or_insert_with(|| Map::new().into());
        metadata.as_object_mut()?.insert("resourceVersion".to_owned(), Value::String(String::new()));

        let text = Vec::with_capacity(1024);
        let mut draft =
            Self { text, revision_at: 0, labels: Span::default(), is_too_deep, keeps_too_deep: is_too_deep };
        let old = old.filter(|old| old.is_too_deep()).map(|old| (old.value(), old.bytes()));
        draft.write_object(fields, old.as_ref().map(|(value, text)| Replaced { value, text }))?;
        draft.keeps_too_deep |= old.is_some() && depth::is_exceeded_in(&draft.text);
        Some(draft)
    }

    /// Whether it nests deeper than objects may. What was stored already does not count.
    pub(super) fn is_too_deep(&self) -> bool {
        self.is_too_deep
    }

    /// How many bytes it has, but for the revision.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    fn write_object(&mut self, fields: &Map<String, Value>, old: Option<Replaced<'_>>) -> Option<()> {
        self.write_fields(fields, old, |draft, name, value, old| match value {
            Value::Object(metadata) if name == "metadata" => draft.write_metadata(metadata, old),
            value => draft.write(value, old),
        })
    }

    fn write_metadata(&mut self, fields: &Map<String, Value>, old: Option<Replaced<'_>>) -> Option<()> {
        self.write_fields(fields, old, |draft, name, value, old| {
            let from = draft.text.len();
            draft.write(value, old)?;
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
        old: Option<Replaced<'_>>,
        mut write: impl FnMut(&mut Self, &str, &Value, Option<Replaced<'_>>) -> Option<()>,
    ) -> Option<()> {
        let mut texts: BTreeMap<_, _> =
            old.map(|old| depth::members(old.text).into_iter().collect()).unwrap_or_default();
        let mut old_field = |name: &str| Some(Replaced { value: old?.value.get(name)?, text: texts.remove(name)? });
        let mut separator = b'{';
        for (name, value) in fields {
            self.text.push(separator);
            separator = b',';
            serde_json::to_writer(&mut self.text, name).ok()?;
            self.text.push(b':');
            write(self, name, value, old_field(name))?;
        }
        if fields.is_empty() {
            self.text.push(b'{');
        }
        self.text.push(b'}');
        Some(())
    }

    fn write(&mut self, value: &Value, old: Option<Replaced<'_>>) -> Option<()> {
        match (value, old) {
            (value, Some(old)) if value == old.value => self.text.extend_from_slice(old.text),
            (Value::Object(fields), Some(old)) if old.value.is_object() => {
                return self.write_fields(fields, Some(old), |draft, _, value, old| draft.write(value, old));
            }
            (Value::Array(items), Some(Replaced { value: Value::Array(values), text })) => {
                return self.write_items(items, values, text);
            }
            (value, _) => return serde_json::to_writer(&mut self.text, value).ok(),
        }
        Some(())
    }

    /// Matches items with the stored ones that they replace: by place where the lists have the same
    /// length, and else where an item equals exactly one stored item. So no item gets the hidden
    /// content of another.
    fn write_items(&mut self, items: &[Value], old: &[Value], text: &[u8]) -> Option<()> {
        let texts = depth::members(text);
        let places = (items.len() != old.len()).then(|| only_places(old));
        self.text.push(b'[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.text.push(b',');
            }
            let place = match &places {
                None => Some(at),
                Some(places) => places.get(item.to_string().as_str()).copied().flatten(),
            };
            let old = place.and_then(|place| old.get(place).zip(texts.get(place)));
            let old = old.map(|(value, (_, text))| Replaced { value, text });
            self.write(item, old)?;
        }
        self.text.push(b']');
        Some(())
    }

    /// The object with its revision. Nothing is allocated that is not needed, because there are many.
    pub(super) fn at(self, revision: u64, position: Arc<str>) -> Stored {
        let number = revision.to_string();
        let (head, tail) = self.text.split_at(self.revision_at);
        let bytes = [head, number.as_bytes(), tail].concat();
        // The labels come before the revision, so they stay where they are.
        Stored::new(revision, position, self.labels, self.keeps_too_deep, bytes.into())
    }

    /// Whether the object is the same as one that is kept, but for the revision.
    pub(super) fn is(&self, stored: &Stored) -> bool {
        let (head, tail) = self.text.split_at(self.revision_at);
        let number = stored.revision().to_string();
        let rest = stored.bytes().strip_prefix(head).and_then(|rest| rest.strip_prefix(number.as_bytes()));
        rest == Some(tail)
    }
}

/// Where each item of a list is, if it is there once.
fn only_places(items: &[Value]) -> HashMap<String, Option<usize>> {
    let mut places = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        places.entry(item.to_string()).and_modify(|place| *place = None).or_insert(Some(at));
    }
    places
}
