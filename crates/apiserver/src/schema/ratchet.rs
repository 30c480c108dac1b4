//! What was there before an update. What is wrong with an object but was so before is no reason to refuse an update
//! of something else.

use serde_json::Value;

use super::{ListKind, Schema};

/// A value beside what was in its place before.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) schema: &'a Schema,
}

impl Before<'_> {
    /// A field beside what it was before, if there was one and the schema knows it.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Self { new, old, schema: self.schema.field(name)? })
    }

    /// An item beside the one with the same keys before. Only lists with keys have such.
    pub(super) fn item(&self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = old_item(self.schema, new, self.old.as_array()?)?;
        Some(Self { new, old, schema: self.schema.items.as_deref()? })
    }

    /// Whether nothing has changed. Where a part has no counterpart before, something may have.
    pub(super) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                let has_keys = matches!(self.schema.list, ListKind::Map(_));
                let same = |index| self.item(index).is_some_and(|item| item.is_unchanged());
                if has_keys { new.len() == old.len() && (0..new.len()).all(same) } else { new == old }
            }
            (Value::Object(new), Value::Object(old)) => {
                let same = |name: &String| self.field(name).is_some_and(|field| field.is_unchanged());
                new.len() == old.len() && new.keys().all(same)
            }
            (new, old) => new == old,
        }
    }
}

/// The item of an older list that has the keys of this one.
pub(super) fn old_item<'a>(schema: &Schema, new: &Value, old: &'a [Value]) -> Option<&'a Value> {
    let ListKind::Map(keys) = &schema.list else { return None };
    let wanted = keys_of(keys, new)?;
    old.iter().find(|item| keys_of(keys, item).as_ref() == Some(&wanted))
}

/// The values of the keys, if all are there.
fn keys_of<'a>(keys: &[String], item: &'a Value) -> Option<Vec<&'a Value>> {
    let is_scalar = |value: &&Value| !(value.is_null() || value.is_array() || value.is_object());
    if keys.is_empty() {
        return None;
    }
    keys.iter().map(|key| item.as_object()?.get(key).filter(is_scalar)).collect()
}
