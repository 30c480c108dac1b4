//! Whether a text is JSON, and which fields it says twice.
//!
//! Nothing is built here. What follows recurses, so a text that nests too deeply ends here.

use std::collections::BTreeSet;

use crate::depth::{MAX_PARSED_DEPTH, TooDeep};

/// The most fields that are told of.
const TOLD: usize = 100;

/// The most bytes of paths that are reported. One name can be as long as a body.
const MAX_SHOWN: usize = 256 << 10;

/// What the text is in the middle of.
enum Open {
    /// An object, with the fields so far and the last of them.
    Object { seen: BTreeSet<String>, field: String },
    /// A list, with the number of the item.
    List { index: usize },
}

/// The fields that are said twice, as errors; or what makes the text no JSON.
pub(super) fn duplicates(text: &[u8]) -> Result<Vec<String>, String> {
    let mut scanner = Scanner { text, at: 0, open: Vec::new(), found: Vec::new(), shown: 0 };
    scanner.value()?;
    while !scanner.open.is_empty() {
        scanner.go_on()?;
    }
    match scanner.peek() {
        None => Ok(scanner.found),
        Some(byte) => Err(unexpected(byte, "after top-level value")),
    }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<Open>,
    found: Vec<String>,
    /// How many bytes of paths were written.
    shown: usize,
}

fn unexpected(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        control if control < 0x20 || control == 0x7f => format!("\\x{control:02x}"),
        control if (0x80..0xa0).contains(&control) || control == 0xad => format!("\\u{:04x}", u32::from(control)),
        other => char::from(other).to_string(),
    };
    format!("invalid character '{shown}' {context}")
}

fn ended() -> String {
    "unexpected end of JSON input".to_owned()
}

impl Scanner<'_> {
    /// The next byte that is not space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.text.get(self.at).copied().ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    /// Begins a value; lists and objects stay open.
    fn value(&mut self) -> Result<(), String> {
        match self.peek().ok_or_else(ended)? {
            b'{' => self.begin(Open::Object { seen: BTreeSet::new(), field: String::new() }, b'}', Self::field),
            b'[' => self.begin(Open::List { index: 0 }, b']', Self::value),
            b'"' => self.string().map(drop),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn begin(&mut self, open: Open, end: u8, first: fn(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.next()?;
        if self.open.len() == MAX_PARSED_DEPTH {
            return Err(TooDeep.to_string());
        }
        self.open.push(open);
        if self.peek().ok_or_else(ended)? == end {
            self.at += 1;
            self.open.pop();
            return Ok(());
        }
        first(self)
    }

    /// Goes on after a value of what is open.
    fn go_on(&mut self) -> Result<(), String> {
        let byte = self.peek().ok_or_else(ended)?;
        match (self.open.last_mut(), byte) {
            (Some(Open::Object { .. }), b',') => {
                self.at += 1;
                self.field()
            }
            (Some(Open::List { index }), b',') => {
                *index += 1;
                self.at += 1;
                self.value()
            }
            (Some(Open::Object { .. }), b'}') | (Some(Open::List { .. }), b']') => {
                self.at += 1;
                self.open.pop();
                Ok(())
            }
            (Some(Open::Object { .. }), other) => Err(unexpected(other, "after object key:value pair")),
            (_, other) => Err(unexpected(other, "after array element")),
        }
    }

    fn field(&mut self) -> Result<(), String> {
        match self.peek().ok_or_else(ended)? {
            b'"' => {}
            other => return Err(unexpected(other, "looking for beginning of object key string")),
        }
        let name = self.string()?;
        self.note(name);
        match self.peek().ok_or_else(ended)? {
            b':' => self.at += 1,
            other => return Err(unexpected(other, "after object key")),
        }
        self.value()
    }

    fn note(&mut self, name: String) {
        let Some(Open::Object { seen, field }) = self.open.last_mut() else { return };
        field.clone_from(&name);
        if !seen.insert(name.clone()) && self.found.len() < TOLD && self.shown < MAX_SHOWN {
            let path = self.path();
            self.shown += path.len() + name.len();
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            let error = format!("duplicate field {path:?}");
            if !self.found.contains(&error) {
                self.found.push(error);
            }
        }
    }

    /// Where the innermost open object is.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open[..self.open.len().saturating_sub(1)] {
            match open {
                Open::Object { field, .. } if path.is_empty() => path.push_str(field),
                Open::Object { field, .. } => {
                    path.push('.');
                    path.push_str(field);
                }
                Open::List { index } => path.extend(["[", &index.to_string(), "]"]),
            }
        }
        path
    }

    fn string(&mut self) -> Result<String, String> {
        let begin = self.at;
        self.at += 1;
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => self.escape()?,
                control if control < 0x20 => return Err(unexpected(control, "in string literal")),
                _ => {}
            }
        }
        let raw = &self.text[begin..self.at];
        Ok(serde_json::from_slice(raw).unwrap_or_else(|_| String::from_utf8_lossy(raw).into_owned()))
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.next()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => (0..4).try_for_each(|_| match self.next()? {
                digit if digit.is_ascii_hexdigit() => Ok(()),
                other => Err(unexpected(other, "in \\u hexadecimal character escape")),
            }),
            other => Err(unexpected(other, "in string escape code")),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for wanted in word.bytes() {
            let byte = self.next()?;
            if byte != wanted {
                let context = format!("in literal {word} (expecting '{}')", char::from(wanted));
                return Err(unexpected(byte, &context));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
            self.digit("in numeric literal")?;
            self.at -= 1;
        }
        // A number that begins with zero is zero.
        if self.next()? != b'0' {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, context: &str) -> Result<(), String> {
        match self.next()? {
            digit if digit.is_ascii_digit() => Ok(()),
            other => Err(unexpected(other, context)),
        }
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}
