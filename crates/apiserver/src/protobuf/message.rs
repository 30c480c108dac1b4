//! Messages as JSON, the way Go would write the same object.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Number, Value};

use super::{
    own,
    tables::{Field, Message, Omit, Shape, Tables, Type},
    wire::{Error, Fields, Wire},
};
use crate::depth::{MAX_PARSED_DEPTH, TooDeep};

/// Reads messages of some tables.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    tables: &'t Tables,
    depth: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(tables: &'t Tables) -> Self {
        Self { tables, depth: 0 }
    }

    /// The object that a message is.
    pub(super) fn object(self, message: &Message, bytes: &[u8]) -> Result<Map<String, Value>, Error> {
        let mut object = Map::new();
        self.deeper()?.read_into(&mut object, message, bytes)?;
        self.complete(&mut object, message);
        Ok(object)
    }

    fn deeper(self) -> Result<Self, Error> {
        if self.depth == MAX_PARSED_DEPTH {
            Err(Error::TooDeep(TooDeep))
        } else {
            Ok(Self { depth: self.depth + 1, ..self })
        }
    }

    fn read_into(self, object: &mut Map<String, Value>, message: &Message, bytes: &[u8]) -> Result<(), Error> {
        for field in Fields::of(bytes) {
            let (number, wire) = field?;
            if let Some(field) = message.fields.get(&number) {
                self.read_field(object, field, wire)?;
            }
        }
        Ok(())
    }

    fn read_field(self, object: &mut Map<String, Value>, field: &Field, wire: Wire<'_>) -> Result<(), Error> {
        match field.shape {
            Shape::Value | Shape::Pointer => {
                object.insert(field.name.clone(), self.value(field, wire)?);
            }
            Shape::List => {
                let mut items = self.items(field, wire)?;
                match object.get_mut(&field.name) {
                    Some(Value::Array(list)) => list.append(&mut items),
                    _ => drop(object.insert(field.name.clone(), Value::Array(items))),
                }
            }
            Shape::Map => {
                let (key, value) = self.entry(field, wire)?;
                match object.get_mut(&field.name) {
                    Some(Value::Object(map)) => drop(map.insert(key, value)),
                    _ => drop(object.insert(field.name.clone(), Value::Object(Map::from_iter([(key, value)])))),
                }
            }
            Shape::Inline => {
                if let Type::Message(name) = &field.type_ {
                    self.deeper()?.read_into(object, self.tables.message(name), bytes(field, wire)?)?;
                }
            }
        }
        Ok(())
    }

    /// The items that one field adds to a list: one, or several numbers in one.
    fn items(self, field: &Field, wire: Wire<'_>) -> Result<Vec<Value>, Error> {
        match (&field.type_, wire) {
            (Type::Int32 | Type::Int64 | Type::Bool, Wire::Bytes(packed)) => {
                let mut rest = Fields::of(packed);
                let mut items = Vec::new();
                while !rest.is_at_end() {
                    items.push(self.value(field, Wire::Varint(rest.varint()?))?);
                }
                Ok(items)
            }
            _ => Ok(vec![self.value(field, wire)?]),
        }
    }

    /// An entry of a map, which is a message with the key and the value.
    fn entry(self, field: &Field, wire: Wire<'_>) -> Result<(String, Value), Error> {
        let (mut key, mut value) = (String::new(), None);
        for part in Fields::of(bytes(field, wire)?) {
            match part? {
                (1, wire) => key = text(bytes(field, wire)?),
                (2, wire) => value = Some(self.value(field, wire)?),
                _ => {}
            }
        }
        let empty = || match field.type_ {
            Type::Bytes => Value::String(String::new()),
            _ => self.empty(&field.type_),
        };
        Ok((key, value.unwrap_or_else(empty)))
    }

    fn value(self, field: &Field, wire: Wire<'_>) -> Result<Value, Error> {
        let unspeakable = |why: String| Error::Unspeakable { field: field.name.clone(), why };
        Ok(match &field.type_ {
            Type::Bool => Value::Bool(varint(field, wire)? != 0),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what is too large is cut off, as everywhere in protobuf"
            )]
            Type::Int32 => Value::from(varint(field, wire)?.cast_signed() as i32),
            Type::Int64 => Value::from(varint(field, wire)?.cast_signed()),
            Type::Double => match wire {
                Wire::Fixed64(bits) => {
                    number(f64::from_bits(bits)).ok_or_else(|| unspeakable("JSON has no such number".to_owned()))?
                }
                other => return Err(wrong(field, other)),
            },
            Type::String => Value::String(text(bytes(field, wire)?)),
            Type::Bytes => Value::String(BASE64_STANDARD.encode(bytes(field, wire)?)),
            Type::Time => own::time(bytes(field, wire)?)?.map_err(unspeakable)?,
            Type::MicroTime => own::micro_time(bytes(field, wire)?)?.map_err(unspeakable)?,
            Type::Quantity => own::quantity(bytes(field, wire)?)?,
            Type::IntOrString => own::int_or_string(bytes(field, wire)?)?.map_err(unspeakable)?,
            Type::Raw => own::raw(bytes(field, wire)?)?.map_err(unspeakable)?,
            Type::Message(name) => Value::Object(self.object(self.tables.message(name), bytes(field, wire)?)?),
            Type::Choice(name) => {
                let message = self.tables.message(name);
                chosen(message, self.object(message, bytes(field, wire)?)?)
            }
        })
    }

    /// Adds what Go writes even if it was not sent, and drops what it does not write.
    fn complete(self, object: &mut Map<String, Value>, message: &Message) {
        for field in message.fields.values() {
            if let (Shape::Inline, Type::Message(name)) = (field.shape, &field.type_) {
                self.complete(object, self.tables.message(name));
            } else if let Some(value) = object.get(&field.name) {
                if is_omitted(field, value) {
                    object.remove(&field.name);
                }
            } else {
                let value = if field.shape == Shape::Value { self.empty(&field.type_) } else { Value::Null };
                let is_nothing = field.shape != Shape::Value && field.omit != Omit::Never;
                if !is_nothing && !is_omitted(field, &value) {
                    object.insert(field.name.clone(), value);
                }
            }
        }
    }

    /// What Go writes for a value that was not set.
    fn empty(self, type_: &Type) -> Value {
        let object = |name| {
            let (mut object, message) = (Map::new(), self.tables.message(name));
            self.complete(&mut object, message);
            (object, message)
        };
        match type_ {
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::Double | Type::IntOrString => Value::from(0),
            Type::String => Value::String(String::new()),
            Type::Quantity => Value::from("0"),
            Type::Bytes | Type::Time | Type::MicroTime | Type::Raw => Value::Null,
            Type::Message(name) => Value::Object(object(name).0),
            Type::Choice(name) => {
                let (object, message) = object(name);
                chosen(message, object)
            }
        }
    }
}

/// Whether JSON lacks a field that says this. To Go, anything that a pointer points to is something.
fn is_omitted(field: &Field, value: &Value) -> bool {
    match (field.omit, field.shape) {
        (Omit::Empty, Shape::Value) => match field.type_ {
            Type::Bool | Type::Int32 | Type::Int64 | Type::Double | Type::String | Type::Bytes => {
                matches!(value, Value::Null | Value::Bool(false)) || value == 0 || value == ""
            }
            _ => false,
        },
        (Omit::Zero, Shape::Value) => value.is_null(),
        _ => false,
    }
}

/// The last of a message's fields that is there.
fn chosen(message: &Message, mut object: Map<String, Value>) -> Value {
    let mut values = message.fields.values().rev().filter_map(|field| object.remove(&field.name));
    values.find(|value| !value.is_null()).unwrap_or_default()
}

/// A number as Go writes it: without a fraction if it has none.
fn number(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
        return Some(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

/// A text; what is not UTF-8 in it becomes replacement characters, as in Go's JSON.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn bytes<'a>(field: &Field, wire: Wire<'a>) -> Result<&'a [u8], Error> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        other => Err(wrong(field, other)),
    }
}

fn varint(field: &Field, wire: Wire<'_>) -> Result<u64, Error> {
    match wire {
        Wire::Varint(number) => Ok(number),
        other => Err(wrong(field, other)),
    }
}

fn wrong(field: &Field, wire: Wire<'_>) -> Error {
    Error::WrongWireType { got: wire.number(), field: field.name.clone() }
}
