//! Reads expressions.

use serde_json::Value;

use super::{Filter, Is, Test, Unsupported};

/// The longest expression.
const MAX_LENGTH: usize = 2048;
/// How many parentheses may stand around each other: with each, what is inside is asked for more often.
const MAX_DEPTH: usize = 4;
/// How much of an expression is quoted where it can not be read.
const EXCERPT: usize = 20;

/// Reads an expression.
pub(in crate::work) fn parse(text: &str) -> Result<Filter, Unsupported> {
    if text.len() > MAX_LENGTH {
        return Err(Unsupported::TooLong(MAX_LENGTH));
    }
    let mut reader = Reader { rest: text, depth: 0 };
    let filter = reader.pipe()?;
    if reader.skip_spaces().is_empty() { Ok(filter) } else { reader.unexpected("the end, | or ,") }
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn skip_spaces(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    /// Takes a sign, if it comes next.
    fn takes(&mut self, sign: &str) -> bool {
        match self.skip_spaces().strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expects(&mut self, sign: &'static str) -> Result<(), Unsupported> {
        if self.takes(sign) { Ok(()) } else { self.unexpected(sign) }
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, Unsupported> {
        Err(Unsupported::Unexpected { found: self.rest.chars().take(EXCERPT).collect(), expected })
    }

    fn pipe(&mut self) -> Result<Filter, Unsupported> {
        let mut chain = vec![self.comma()?];
        while self.takes("|") {
            chain.push(self.comma()?);
        }
        Ok(Filter::Chain(chain))
    }

    fn comma(&mut self) -> Result<Filter, Unsupported> {
        let mut either = vec![self.term()?];
        while self.takes(",") {
            either.push(self.term()?);
        }
        Ok(Filter::Either(either))
    }

    fn term(&mut self) -> Result<Filter, Unsupported> {
        let mut chain = Vec::new();
        if self.takes("(") {
            chain.push(self.nested(Self::pipe)?);
        } else if self.takes("select") {
            self.expects("(")?;
            chain.push(Filter::Select(self.nested(Self::test)?));
        } else if self.takes(".") {
            self.after_dot(&mut chain)?;
        } else {
            return self.unexpected("a path that begins with a dot");
        }
        while self.suffix(&mut chain)? {}
        Ok(Filter::Chain(chain))
    }

    /// Reads what is inside of parentheses, and the one that closes them.
    fn nested<T>(&mut self, read: fn(&mut Self) -> Result<T, Unsupported>) -> Result<T, Unsupported> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unsupported::TooDeep(MAX_DEPTH));
        }
        let inside = read(self)?;
        self.depth -= 1;
        self.expects(")")?;
        Ok(inside)
    }

    fn after_dot(&mut self, chain: &mut Vec<Filter>) -> Result<(), Unsupported> {
        if self.rest.starts_with('"') {
            let field = self.quoted()?;
            chain.push(Filter::Field(field));
        } else if self.rest.starts_with(is_letter) {
            let end = self.rest.find(|c: char| !is_letter(c) && !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (field, rest) = self.rest.split_at(end);
            chain.push(Filter::Field(field.to_owned()));
            self.rest = rest;
        } else if self.rest.starts_with('.') {
            return self.unexpected("a single dot");
        }
        Ok(())
    }

    /// Reads what leads on from where one is, and says whether there was something.
    fn suffix(&mut self, chain: &mut Vec<Filter>) -> Result<bool, Unsupported> {
        if self.takes("?") {
            // What is not there is no error anyway.
        } else if self.takes("[") {
            let inside = self.brackets()?;
            chain.push(inside);
        } else if self.takes(".") {
            if !self.rest.starts_with(|c| is_letter(c) || c == '"' || c == '[') {
                return self.unexpected("a field");
            }
            self.after_dot(chain)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn brackets(&mut self) -> Result<Filter, Unsupported> {
        let filter = match self.skip_spaces().chars().next() {
            Some(']') => Filter::Each,
            Some('"') => Filter::Field(self.quoted()?),
            _ => match self.number().as_ref().and_then(Value::as_i64) {
                Some(item) => Filter::Item(item),
                None => return self.unexpected("], an index or a name in double quotes"),
            },
        };
        self.expects("]")?;
        Ok(filter)
    }

    fn test(&mut self) -> Result<Test, Unsupported> {
        let of = Box::new(self.term()?);
        let is = if self.takes("==") {
            Is::Equal(self.literal()?)
        } else if self.takes("!=") {
            Is::Unequal(self.literal()?)
        } else {
            Is::True
        };
        Ok(Test { of, is })
    }

    fn literal(&mut self) -> Result<Value, Unsupported> {
        if self.skip_spaces().starts_with('"') {
            return self.quoted().map(Value::String);
        }
        for (word, value) in [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)] {
            if self.takes(word) {
                return Ok(value);
            }
        }
        match self.number() {
            Some(number) => Ok(number),
            None => self.unexpected("a text in double quotes, a number, true, false or null"),
        }
    }

    fn number(&mut self) -> Option<Value> {
        let rest = self.skip_spaces();
        let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '.')).unwrap_or(rest.len());
        let number = serde_json::from_str(&rest[..end]).ok().filter(Value::is_number)?;
        self.rest = &rest[end..];
        Some(number)
    }

    /// Reads a text in double quotes, which is written as in JSON.
    fn quoted(&mut self) -> Result<String, Unsupported> {
        let mut texts = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        match texts.next() {
            Some(Ok(text)) => {
                self.rest = &self.rest[texts.byte_offset()..];
                Ok(text)
            }
            _ => self.unexpected("a text in double quotes"),
        }
    }
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic()
}
