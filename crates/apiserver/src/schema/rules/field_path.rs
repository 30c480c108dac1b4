//! Paths such as `.spec.color` or `.spec['a.b']`, followed along a schema.

use crate::schema::{Additional, Schema};

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The path as fields are spelled to users.
    pub(crate) path: String,
    /// What is there.
    pub(crate) schema: &'a Schema,
}

/// Whether a path may have names in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brackets {
    /// It may.
    Allowed,
    /// It may not.
    Forbidden,
}

/// Follows a path. Where it leads nowhere, the reason is in the words of an API server.
pub(crate) fn resolve<'a>(path: &str, schema: &'a Schema, brackets: Brackets) -> Result<Found<'a>, String> {
    let mut found = Found { path: String::new(), schema };
    let mut rest = path;
    while !rest.is_empty() {
        let token = next(&mut rest);
        match token {
            "[" if brackets == Brackets::Forbidden => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = next_or_end(&mut rest)?;
                let inner = quoted.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
                let inner = inner.filter(|_| quoted.len() > 1);
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                found.step(&unescaped(inner)?)?;
                let end = next_or_end(&mut rest)?;
                if end != "]" {
                    return Err(format!("expected ] but got {end}"));
                }
            }
            "." => found.step(next_or_end(&mut rest)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl Found<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let nowhere = || "does not refer to a valid field".to_owned();
        if self.schema.properties.is_empty() {
            let Some(Additional::Schema(entry)) = &self.schema.additional_properties else { return Err(nowhere()) };
            self.path.extend(["[", name, "]"]);
            self.schema = entry;
            return Ok(());
        }
        self.schema = self.schema.properties.get(name).ok_or_else(nowhere)?;
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        Ok(())
    }
}

fn next_or_end<'a>(rest: &mut &'a str) -> Result<&'a str, String> {
    if rest.is_empty() { Err("unexpected end of JSON path".to_owned()) } else { Ok(next(rest)) }
}

/// The next delimiter, quoted text or name.
fn next<'a>(rest: &mut &'a str) -> &'a str {
    let end = if rest.starts_with('\'') {
        let bytes = rest.as_bytes();
        (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\').map_or(rest.len(), |at| at + 1)
    } else {
        rest.find(['.', '[', ']']).unwrap_or(rest.len()).max(1)
    };
    let (token, after) = rest.split_at(end);
    *rest = after;
    token
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut output = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            output.push(character);
            continue;
        }
        output.push(match rest.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(same @ ('\'' | '\\')) => same,
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
            None => '\\',
        });
    }
    Ok(output)
}
