//! The operations of a JSON patch, as lenient as Kubernetes is with them: what is not there can be replaced, what is not there is
//! null, and negative places count from the end.

use serde_json::{Map, Value};

use crate::decode::json_type;

/// More bytes than this are not copied by one patch.
const MOST_COPIED: usize = 3 * 1024 * 1024;

/// Reads a list of operations.
pub(super) fn read(patch: &[u8]) -> Result<Vec<Map<String, Value>>, String> {
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

/// The object after the operations; nothing if one of them can not be done.
pub(super) fn apply(object: &Value, operations: &[Map<String, Value>]) -> Option<Value> {
    let mut document = Document { root: object.clone(), copied: 0 };
    for operation in operations {
        document.apply(operation)?;
    }
    Some(document.root)
}

struct Document {
    root: Value,
    copied: usize,
}

/// Where something is, or would be, in a document.
struct Place<'a> {
    parent: &'a mut Value,
    key: String,
}

impl Document {
    fn apply(&mut self, operation: &Map<String, Value>) -> Option<()> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let value = operation.get("value").cloned().unwrap_or_default();
        match text("op")? {
            "add" => self.place(text("path")?)?.add(value),
            "remove" => self.place(text("path")?)?.remove().map(drop),
            "replace" if text("path")?.is_empty() => {
                let can_be_all = value.is_object() || value.is_array();
                can_be_all.then(|| self.root = value)
            }
            "replace" => self.place(text("path")?)?.replace(value),
            "test" if text("path")?.is_empty() => (self.root == value).then_some(()),
            "test" => (self.place(text("path")?)?.get()? == value).then_some(()),
            "move" => {
                let value = self.place(text("from")?)?.remove()?;
                self.place(text("path")?)?.add(value)
            }
            "copy" => {
                let value = self.place(text("from")?)?.get()?;
                self.copied += value.to_string().len();
                let place = self.place(text("path")?)?;
                place.add(value)?;
                (self.copied <= MOST_COPIED).then_some(())
            }
            _ => None,
        }
    }

    fn place(&mut self, pointer: &str) -> Option<Place<'_>> {
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

impl Place<'_> {
    fn get(&self) -> Option<Value> {
        match &*self.parent {
            Value::Object(fields) => Some(fields.get(&self.key).cloned().unwrap_or_default()),
            Value::Array(items) => items.get(index(&self.key, items.len())?).cloned(),
            _ => None,
        }
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
