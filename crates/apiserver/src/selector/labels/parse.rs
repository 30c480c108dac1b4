//! Reads selectors over labels as queries have them.

use super::{Operator, Requirement, Unusable, wrong_key};
use crate::field::Path;

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Unusable> {
    let mut tokens = Tokens { tokens: tokens(text), next: 0 };
    let mut requirements = Vec::new();
    loop {
        match tokens.peek() {
            Token::Word(_) | Token::Symbol("!") => {
                let requirement = tokens.requirement();
                requirements
                    .push(requirement.map_err(|error| Unusable(format!("unable to parse requirement: {error}")))?);
                match tokens.take() {
                    Token::End => return Ok(requirements),
                    Token::Symbol(",") => tokens.expect_key_after_comma()?,
                    other => return wrong(other, ", expected: ',' or 'end of string'"),
                }
            }
            Token::End => return Ok(requirements),
            other @ Token::Symbol(_) => return wrong(other, ", expected: !, identifier, or 'end of string'"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    /// A key, a value, `in` or `notin`.
    Word(&'t str),
    Symbol(&'t str),
    End,
}

fn wrong<T>(found: Token<'_>, expected: &str) -> Result<T, Unusable> {
    let found = match found {
        Token::Word(text) | Token::Symbol(text) => text,
        Token::End => "",
    };
    Err(Unusable(format!("found '{found}'{expected}")))
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let length = if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if rest.starts_with(is_symbol) {
            1
        } else {
            rest.find(|c| is_symbol(c) || is_space(c)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        tokens.push(if rest.starts_with(is_symbol) { Token::Symbol(token) } else { Token::Word(token) });
        rest = after.trim_start_matches(is_space);
    }
    tokens
}

struct Tokens<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
}

impl<'t> Tokens<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens.get(self.next).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn expect_key_after_comma(&self) -> Result<(), Unusable> {
        match self.peek() {
            Token::Word(_) | Token::Symbol("!") => Ok(()),
            other => wrong(other, ", expected: identifier after ','"),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Unusable> {
        let is_negated = self.peek() == Token::Symbol("!");
        if is_negated {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return wrong(other, ", expected: identifier"),
        };
        if let Some(error) = wrong_key(key, &Path::Root) {
            return Err(Unusable(error.to_string()));
        }
        if is_negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        values.sort_unstable();
        values.dedup();
        Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect())
    }

    fn operator(&mut self) -> Result<Operator, Unusable> {
        Ok(match self.take() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return wrong(other, ", expected: in, notin, =, ==, !=, gt, lt"),
        })
    }

    fn value(&mut self) -> Result<&'t str, Unusable> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(""),
            Token::Word(value) => {
                self.take();
                Ok(value)
            }
            other @ Token::Symbol(_) => wrong(other, ", expected: identifier"),
        }
    }

    fn values(&mut self) -> Result<Vec<&'t str>, Unusable> {
        match self.take() {
            Token::Symbol("(") => {}
            other => return wrong(other, " expected: '('"),
        }
        match self.peek() {
            Token::Word(_) | Token::Symbol(",") => self.listed(),
            Token::Symbol(")") => {
                self.take();
                Ok(vec![""])
            }
            other => wrong(other, ", expected: ',', ')' or identifier"),
        }
    }

    /// The values of a list, up to its end. Between two commas there is the empty one.
    fn listed(&mut self) -> Result<Vec<&'t str>, Unusable> {
        let mut values = Vec::new();
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.push(value);
                    match self.peek() {
                        Token::Symbol("," | ")") => {}
                        other => return wrong(other, ", expected: ',' or ')'"),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() || matches!(self.peek(), Token::Symbol("," | ")")) {
                        values.push("");
                    }
                }
                Token::Symbol(")") => return Ok(values),
                other => return wrong(other, ", expected: ',', or identifier"),
            }
        }
    }
}
