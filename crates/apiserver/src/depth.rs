//! How deeply objects nest. There is one limit for every way in, and this module enforces it.
//!
//! Everything that reads, compares, copies or drops a value recurses, and a stack is finite.
//! Clients have limits too: those of kube-rs read 127 levels, of which a list takes two and a table
//! three. Counting begins with the object itself, which is one level.

use serde_json::Value;

/// How many levels an object may have, beside its `managedFields`.
pub const MAX_DEPTH: usize = 100;
/// How many levels an object may have in `metadata.managedFields`. It repeats the nesting of the
/// object in an entry of a list in the metadata, which are five levels.
pub const MAX_MANAGED_FIELDS_DEPTH: usize = MAX_DEPTH + 5;
/// How many levels are parsed. A JSON patch has an object in an operation in a list. It is a bound
/// for parsers; what they return is checked.
pub const MAX_PARSED_DEPTH: usize = MAX_MANAGED_FIELDS_DEPTH + 5;

/// The error of what nests too deeply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("exceeded max depth: objects nest at most {MAX_DEPTH} levels")]
pub struct TooDeep;

/// Checks that an object, or a patch of one, is within the limit.
pub fn check(object: &Value) -> Result<(), TooDeep> {
    let fits = match object {
        Value::Object(fields) => fields.iter().all(|(name, field)| match field {
            Value::Object(metadata) if name == "metadata" => metadata.iter().all(|(name, field)| {
                let limit = limit_in(b"metadata", name.as_bytes());
                fits(field, limit - 2)
            }),
            field => fits(field, MAX_DEPTH - 1),
        }),
        other => fits(other, MAX_DEPTH),
    };
    if fits { Ok(()) } else { Err(TooDeep) }
}

/// The limit in a field of a field of an object.
fn limit_in(outer: &[u8], inner: &[u8]) -> usize {
    if outer == b"metadata" && inner == b"managedFields" { MAX_MANAGED_FIELDS_DEPTH } else { MAX_DEPTH }
}

/// Whether a value has no more than so many levels. It goes no deeper than that.
fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(fields) => levels > 0 && fields.values().all(|field| fits(field, levels - 1)),
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// How many levels a value has. It is for values that are known to be within a limit, because it
/// recurses.
pub(crate) fn of(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(of).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(of).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Checks that a text can be parsed on any stack.
pub(crate) fn check_text(text: &[u8]) -> Result<(), TooDeep> {
    if of_text(text) > MAX_PARSED_DEPTH { Err(TooDeep) } else { Ok(()) }
}

/// How many levels a text has. It recurses nowhere, whatever the text is.
fn of_text(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for (_, token) in (Tokens { text, at: 0 }) {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Other => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Parses JSON that nests no deeper than what parsers may read.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    check_text(text).map_err(|error| error.to_string())?;
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// Whether a stored object exceeds the limit, which earlier releases did not have.
pub(crate) fn is_exceeded_in(text: &[u8]) -> bool {
    let is_bracket = |byte: &&u8| matches!(byte, b'{' | b'[');
    text.iter().filter(is_bracket).count() > MAX_DEPTH && of_text(text) > MAX_DEPTH && cut(text) != text
}

/// A stored object within the limit: what the deepest containers hold is left out where it nests
/// further, so that they are empty.
pub(crate) fn cut(text: &[u8]) -> Vec<u8> {
    let mut cut = Vec::with_capacity(text.len());
    let (mut depth, mut copied) = (0_usize, 0_usize);
    // The fields of the two outermost levels that the text is in.
    let mut fields: [&[u8]; 2] = [b"", b""];
    let mut tokens = Tokens { text, at: 0 };
    while let Some((at, token)) = tokens.next() {
        match token {
            Token::Open if depth + 1 == limit_in(fields[0], fields[1]) => {
                let end = end_of_container(text, at);
                if has_containers(&text[at..end]) {
                    cut.extend_from_slice(&text[copied..=at]);
                    copied = end - 1;
                }
                tokens.at = end;
            }
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Other if text[at] == b'"' && text.get(tokens.at) == Some(&b':') => {
                if let Some(field) = depth.checked_sub(1).and_then(|level| fields.get_mut(level)) {
                    *field = &text[at + 1..tokens.at - 1];
                }
                if depth == 1 {
                    fields[1] = b"";
                }
            }
            Token::Other => {}
        }
    }
    cut.extend_from_slice(&text[copied..]);
    cut
}

/// The end of the container that opens at a place in a text: the place after it.
fn end_of_container(text: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut tokens = Tokens { text, at: from };
    while let Some((_, token)) = tokens.next() {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth <= 1 => return tokens.at,
            Token::Close => depth -= 1,
            Token::Other => {}
        }
    }
    text.len()
}

fn has_containers(container: &[u8]) -> bool {
    (Tokens { text: container, at: 1 }).any(|(_, token)| token == Token::Open)
}

/// What the fields of an object, or the items of a list, are in the text of it. A field has a name.
pub(crate) fn members(container: &[u8]) -> Vec<(String, &[u8])> {
    let mut members = Vec::new();
    let is_object = container.first() == Some(&b'{');
    let mut tokens = Tokens { text: container, at: 1 };
    let mut name = String::new();
    while let Some((at, token)) = tokens.next() {
        match token {
            Token::Open => tokens.at = end_of_container(container, at),
            Token::Close => break,
            Token::Other if matches!(container[at], b',' | b':') => continue,
            Token::Other => {}
        }
        if is_object && container.get(tokens.at) == Some(&b':') {
            name = serde_json::from_slice(&container[at..tokens.at]).unwrap_or_default();
        } else {
            members.push((std::mem::take(&mut name), &container[at..tokens.at]));
        }
    }
    members
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A list or an object begins.
    Open,
    /// A list or an object ends.
    Close,
    /// A string, a number, a literal or a separator.
    Other,
}

/// The tokens of a text in JSON, and where they begin. The first byte of a token says which it is;
/// whether it is JSON is for the parser to say.
struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = (usize, Token);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        let begin = self.at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let (token, length) = match self.text[begin] {
            b'{' | b'[' => (Token::Open, 1),
            b'}' | b']' => (Token::Close, 1),
            b',' | b':' => (Token::Other, 1),
            b'"' => (Token::Other, string_length(&self.text[begin..])),
            _ => {
                let ends = |byte: &u8| {
                    matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"') || byte.is_ascii_whitespace()
                };
                let rest = &self.text[begin..];
                (Token::Other, rest.iter().position(ends).unwrap_or(rest.len()))
            }
        };
        self.at = begin + length;
        Some((begin, token))
    }
}

/// How long the string is that a text begins with, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
