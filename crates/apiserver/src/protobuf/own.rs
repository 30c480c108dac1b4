//! The messages that are no objects in JSON.
//!
//! A result within a result tells what is not protobuf from what JSON can not say.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{
    message::text,
    wire::{Error, Fields, Wire},
};
use crate::depth;

type Said = Result<Result<Value, String>, Error>;

/// When time begins in Go, which is what a time is that nobody set.
const NEVER: i64 = -62_135_596_800;

/// A time, which JSON has without fractions of seconds.
pub(super) fn time(message: &[u8]) -> Said {
    let (seconds, _) = timestamp(message)?;
    Ok(written(seconds, 0, |time| time.to_string()))
}

/// A time with microseconds.
pub(super) fn micro_time(message: &[u8]) -> Said {
    let (seconds, nanoseconds) = timestamp(message)?;
    Ok(written(seconds, nanoseconds / 1000 * 1000, |time| format!("{time:.6}")))
}

fn timestamp(message: &[u8]) -> Result<(i64, i32), Error> {
    let (mut seconds, mut nanoseconds) = (if message.is_empty() { NEVER } else { 0 }, 0);
    for field in Fields::of(message) {
        match field? {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what is too large is cut off, as everywhere in protobuf"
            )]
            (2, Wire::Varint(number)) => nanoseconds = number.cast_signed() as i32,
            _ => {}
        }
    }
    Ok((seconds, nanoseconds))
}

fn written(seconds: i64, nanoseconds: i32, write: impl Fn(Timestamp) -> String) -> Result<Value, String> {
    if (seconds, nanoseconds) == (NEVER, 0) {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, nanoseconds).map_err(|error| error.to_string())?;
    Ok(Value::String(write(time)))
}

/// A quantity, which is sent as JSON has it.
pub(super) fn quantity(message: &[u8]) -> Result<Value, Error> {
    Ok(last_bytes(message, 1)?.map_or_else(|| Value::from("0"), |bytes| Value::String(text(bytes))))
}

/// A number or a text.
pub(super) fn int_or_string(message: &[u8]) -> Said {
    let (mut type_, mut number, mut string) = (0, 0, String::new());
    for field in Fields::of(message) {
        match field? {
            (1, Wire::Varint(is)) => type_ = is,
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what is too large is cut off, as everywhere in protobuf"
            )]
            (2, Wire::Varint(is)) => number = is.cast_signed() as i32,
            (3, Wire::Bytes(is)) => string = text(is),
            _ => {}
        }
    }
    Ok(match type_ {
        0 => Ok(Value::from(number)),
        1 => Ok(Value::String(string)),
        _ => Err("impossible IntOrString.Type".to_owned()),
    })
}

/// JSON within protobuf.
pub(super) fn raw(message: &[u8]) -> Said {
    let json = last_bytes(message, 1)?.filter(|json| !json.is_empty());
    Ok(json.map_or(Ok(Value::Null), depth::parse))
}

/// The last of the fields with a number, which is the one that counts.
pub(super) fn last_bytes(message: &[u8], number: u32) -> Result<Option<&[u8]>, Error> {
    let mut last = None;
    for field in Fields::of(message) {
        match field? {
            (found, Wire::Bytes(bytes)) if found == number => last = Some(bytes),
            _ => {}
        }
    }
    Ok(last)
}
