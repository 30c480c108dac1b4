//! The operations of a JSON patch, as lenient as Kubernetes is with them: what is not there can be replaced, what is not there is
//! null, and negative places count from the end.

use serde_json::{Map, Value};

use crate::{
    decode::json_type,
    depth::{self, MAX_PARSED_DEPTH, TooDeep},
};

/// More bytes than this are not copied by one patch.
const MOST_COPIED: usize = 3 * 1024 * 1024;
/// The most list items that one patch moves to make room for others or to close gaps.
const MOST_MOVED: usize = 16 << 20;
/// The depth of an object is not measured more often than this by one patch.
const MAX_MEASURED: usize = 100;

/// Why operations are not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// One of them can not be done with the object.
    Impossible,
    /// The object nests too deeply after one of them.
    TooDeep,
}

impl From<TooDeep> for Refusal {
    fn from(TooDeep: TooDeep) -> Self {
        Self::TooDeep
    }
}

/// Reads a list of operations.
pub(super) fn read(patch: &[u8]) -> Result<Vec<Map<String, Value>>, String> {
    depth::check_text(patch).map_err(|error| error.to_string())?;
    let list = match serde_json::from_slice(patch).map_err(|error| syntax_error(&error, patch))? {
        Value::Array(list) => list,
        Value::Null => return Ok(Vec::new()),
        other => {
            let type_ = json_type(&other);
            return Err(format!("json: cannot unmarshal {type_} into Go value of type []handlers.jsonPatchOp"));
        }
    };
    list.into_iter().map(read_operation).collect()
}

fn read_operation(operation: Value) -> Result<Map<String, Value>, String> {
    let fields = match operation {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => {
            let type_ = json_type(&other);
            return Err(format!("json: cannot unmarshal {type_} into Go value of type handlers.jsonPatchOp"));
        }
    };
    for name in ["op", "path", "from"] {
        let wrong = fields.get(name).filter(|value| !value.is_string() && !value.is_null());
        if let Some(wrong) = wrong {
            let type_ = json_type(wrong);
            return Err(format!(
                "json: cannot unmarshal {type_} into Go struct field jsonPatchOp.{name} of type string"
            ));
        }
    }
    Ok(fields)
}

fn syntax_error(error: &serde_json::Error, text: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let character = line.get(error.column().saturating_sub(1)).copied().unwrap_or_default();
    format!("invalid character {:?} looking for beginning of value", char::from(character))
}

/// The object after the operations.
pub(super) fn apply(object: &Value, operations: &[Map<String, Value>]) -> Result<Value, Refusal> {
    let mut document = Document { root: object.clone(), copied: 0, moved: 0, depth: depth::of(object), measured: 0 };
    for operation in operations {
        document.apply(operation)?;
    }
    depth::check(&document.root)?;
    Ok(document.root)
}

struct Document {
    root: Value,
    copied: usize,
    moved: usize,
    /// How deeply it nests at most. It is not measured after each operation, because that takes as
    /// long as the object is large.
    depth: usize,
    measured: usize,
}

/// Where something is, or would be, in a document.
struct Place<'a> {
    parent: &'a mut Value,
    key: String,
}

impl Document {
    fn apply(&mut self, operation: &Map<String, Value>) -> Result<(), Refusal> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str).ok_or(Refusal::Impossible);
        let value = || operation.get("value").cloned().unwrap_or_default();
        match text("op")? {
            "add" => {
                let (value, path) = (value(), text("path")?);
                let depth = depth::of(&value);
                self.add(path, value, depth)
            }
            "remove" => self.remove(text("path")?).map(drop),
            "replace" if text("path")?.is_empty() => {
                let value = value();
                if !value.is_object() && !value.is_array() {
                    return Err(Refusal::Impossible);
                }
                self.depth = depth::of(&value);
                self.root = value;
                Ok(())
            }
            "replace" => {
                let (value, path) = (value(), text("path")?);
                let depth = depth::of(&value);
                self.deepen(path, &value, depth)?;
                self.place(path)?.replace(value).ok_or(Refusal::Impossible)
            }
            "test" => {
                let path = text("path")?;
                let null = Value::Null;
                let expected = operation.get("value").unwrap_or(&null);
                let found = if path.is_empty() { Some(&self.root) } else { self.place(path)?.get() };
                if found == Some(expected) { Ok(()) } else { Err(Refusal::Impossible) }
            }
            "move" => {
                let (from, path) = (text("from")?, text("path")?);
                let depth = self.depth.saturating_sub(levels(from));
                let value = self.remove(from)?;
                self.add(path, value, depth)
            }
            "copy" => {
                let (from, path) = (text("from")?, text("path")?);
                let depth = self.depth.saturating_sub(levels(from));
                let value = self.place(from)?.get().cloned().ok_or(Refusal::Impossible)?;
                self.copied += value.to_string().len();
                self.add(path, value, depth)?;
                if self.copied <= MOST_COPIED { Ok(()) } else { Err(Refusal::Impossible) }
            }
            _ => Err(Refusal::Impossible),
        }
    }

    /// Adds a value that has so many levels at most.
    fn add(&mut self, path: &str, value: Value, depth: usize) -> Result<(), Refusal> {
        self.deepen(path, &value, depth)?;
        self.count_moved(path)?;
        self.place(path)?.add(value).ok_or(Refusal::Impossible)
    }

    fn remove(&mut self, path: &str) -> Result<Value, Refusal> {
        self.count_moved(path)?;
        self.place(path)?.remove().ok_or(Refusal::Impossible)
    }

    /// Counts the items after a place in a list: all of them move when one is added or removed there.
    fn count_moved(&mut self, path: &str) -> Result<(), Refusal> {
        self.moved += self.place(path)?.items_after();
        if self.moved <= MOST_MOVED { Ok(()) } else { Err(Refusal::Impossible) }
    }

    /// Prepares for a value of so many levels at most at a path. The object never has more levels
    /// than parsers read, not even between two operations.
    fn deepen(&mut self, path: &str, value: &Value, depth: usize) -> Result<(), Refusal> {
        self.place(path)?;
        let mut deepest = levels(path) + depth;
        if deepest > MAX_PARSED_DEPTH && self.measured < MAX_MEASURED {
            self.measured += 1;
            deepest = levels(path) + depth::of(value);
            self.depth = depth::of(&self.root);
        }
        if deepest > MAX_PARSED_DEPTH {
            return Err(Refusal::TooDeep);
        }
        self.depth = self.depth.max(deepest);
        Ok(())
    }

    fn place(&mut self, pointer: &str) -> Result<Place<'_>, Refusal> {
        self.find(pointer).ok_or(Refusal::Impossible)
    }

    fn find(&mut self, pointer: &str) -> Option<Place<'_>> {
        let mut parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
        let mut key = parts.next()?;
        let mut parent = &mut self.root;
        for next in parts {
            parent = match parent {
                Value::Object(fields) => fields.get_mut(&key)?,
                Value::Array(items) => {
                    let index = index(&key, items.len())?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
            key = next;
        }
        (parent.is_object() || parent.is_array()).then_some(Place { parent, key })
    }
}

fn index(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let index = if index < 0 { index + i64::try_from(length).ok()? } else { index };
    usize::try_from(index).ok()
}

/// In how many containers what a pointer names is.
fn levels(pointer: &str) -> usize {
    pointer.matches('/').count()
}

impl<'a> Place<'a> {
    fn get(self) -> Option<&'a Value> {
        static NULL: Value = Value::Null;
        match self.parent {
            Value::Object(fields) => Some(fields.get(&self.key).unwrap_or(&NULL)),
            Value::Array(items) => items.get(index(&self.key, items.len())?),
            _ => None,
        }
    }

    fn items_after(&self) -> usize {
        let Value::Array(items) = &*self.parent else { return 0 };
        index(&self.key, items.len()).map_or(0, |place| items.len().saturating_sub(place))
    }

    fn add(self, value: Value) -> Option<()> {
        match self.parent {
            Value::Object(fields) => {
                fields.insert(self.key, value);
            }
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                let place = index(&self.key, items.len() + 1).filter(|place| *place <= items.len())?;
                items.insert(place, value);
            }
            _ => return None,
        }
        Some(())
    }

    fn replace(self, value: Value) -> Option<()> {
        match self.parent {
            Value::Object(fields) => {
                fields.insert(self.key, value);
            }
            Value::Array(items) => {
                let place = index(&self.key, items.len())?;
                *items.get_mut(place)? = value;
            }
            _ => return None,
        }
        Some(())
    }

    fn remove(self) -> Option<Value> {
        match self.parent {
            Value::Object(fields) => fields.remove(&self.key),
            Value::Array(items) => {
                let place = index(&self.key, items.len()).filter(|place| *place < items.len())?;
                Some(items.remove(place))
            }
            _ => None,
        }
    }
}
