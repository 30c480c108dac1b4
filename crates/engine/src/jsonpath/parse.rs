//! Reads paths.

use serde_json::Value;

use super::{Filter, Node, Slice, To, Unreadable};

pub(super) fn nodes(text: &str) -> Result<Vec<Node>, Unreadable> {
    let mut reader = Reader { rest: text };
    let mut nodes = Vec::new();
    while let Some(next) = reader.rest.chars().next() {
        reader.node(next, &mut nodes)?;
    }
    Ok(nodes)
}

struct Reader<'t> {
    rest: &'t str,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable(why.into()))
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'t> Reader<'t> {
    /// Takes so many bytes from what is left.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, keeps: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !keeps(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn node(&mut self, next: char, nodes: &mut Vec<Node>) -> Result<(), Unreadable> {
        if self.rest.starts_with("[?(") {
            self.take(3);
            return self.filter(nodes);
        }
        if self.rest.starts_with("..") {
            self.take(2);
            return self.recursive(nodes);
        }
        match next {
            ' ' | '@' | '$' => {
                self.take(1);
            }
            '[' => {
                self.take(1);
                self.brackets(nodes)?;
            }
            '"' | '\'' => {
                let text = self.quoted(next)?;
                nodes.push(Node::Literal(Value::String(text)));
            }
            '.' => {
                self.take(1);
                nodes.push(self.field());
            }
            '+' | '-' | '0'..='9' => nodes.push(self.number()?),
            '\r' | '\n' => return wrong("unclosed action"),
            next if is_word(next) => nodes.push(self.word()),
            next => {
                return wrong(format!("unrecognized character in action: U+{:04X} '{next}'", u32::from(next)));
            }
        }
        Ok(())
    }

    fn recursive(&mut self, nodes: &mut Vec<Node>) -> Result<(), Unreadable> {
        if nodes.last() == Some(&Node::Recursive) {
            return wrong("invalid multiple recursive descent");
        }
        nodes.push(Node::Recursive);
        if self.rest.starts_with(is_word) {
            nodes.push(self.field());
        }
        Ok(())
    }

    /// A key; a backslash takes the meaning from what follows it.
    fn field(&mut self) -> Node {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = !escaped && ends_word(c);
            escaped = !escaped && c == '\\';
            ends
        });
        match self.take(end.unwrap_or(self.rest.len())) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn word(&mut self) -> Node {
        match self.take_while(|c| !ends_word(c)) {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            word => Node::Word(word.to_owned()),
        }
    }

    fn number(&mut self) -> Result<Node, Unreadable> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit());
        let text = self.take(digits.map_or(self.rest.len(), |digits| sign + digits));
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(Node::Literal(whole.into()));
        }
        match text.parse::<f64>() {
            Ok(number) => Ok(Node::Literal(number.into())),
            Err(_) => wrong(format!("cannot parse number {text}")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Unreadable> {
        let Some(end) = end_of_quote(&self.rest[1..], quote) else { return wrong("unterminated quoted string") };
        let quoted = self.take(end + 2);
        unescape(&quoted[1..=end]).ok_or_else(|| Unreadable(format!("unquote string {quoted} error invalid syntax")))
    }

    fn brackets(&mut self, nodes: &mut Vec<Node>) -> Result<(), Unreadable> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let Some(end) = end else { return wrong("unterminated array") };
        let inside = self.take(end);
        self.take(1);
        if inside.contains(',') {
            let branches: Result<_, _> = inside.split(',').map(|part| nodes_in(part.trim_matches(' '))).collect();
            nodes.push(Node::Union(branches?));
        } else {
            nodes.extend(nodes_in(inside)?);
        }
        Ok(())
    }

    fn filter(&mut self, nodes: &mut Vec<Node>) -> Result<(), Unreadable> {
        let Some(end) = end_of_filter(self.rest) else { return wrong("unterminated filter") };
        let inside = self.take(end);
        self.take(1);
        if !self.rest.starts_with(']') {
            return wrong("unclosed array expect ]");
        }
        self.take(1);
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let filter = match inside.find(is_operator) {
            Some(at) if at > 0 => {
                let (left, rest) = inside.split_at(at);
                let (operator, right) = rest.split_at(rest.find(|c| !is_operator(c)).unwrap_or(rest.len()));
                Filter { left: self::nodes(left)?, right: Some((operator.to_owned(), self::nodes(right)?)) }
            }
            _ => Filter { left: self::nodes(inside)?, right: None },
        };
        nodes.push(Node::Filter(filter));
        Ok(())
    }
}

/// What stands in brackets: a key in quotes, an index or a slice.
fn nodes_in(brackets: &str) -> Result<Vec<Node>, Unreadable> {
    let key = brackets.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).filter(|key| !key.contains('\''));
    if let Some(key) = key {
        // The key is read like one behind a dot: its own dots have to be escaped too.
        return nodes(&format!(".{key}"));
    }
    slice(if brackets == "*" { ":" } else { brackets }).map(|slice| vec![Node::Slice(slice)])
}

fn slice(text: &str) -> Result<Slice, Unreadable> {
    let parts: Vec<_> = text.split(':').collect();
    let is_index = |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|b| b.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_index) {
        return wrong(format!("invalid array index {text}"));
    }
    let index = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => {
            part.parse::<i64>().map(Some).map_err(|_| Unreadable(format!("array index {part} is not a number")))
        }
    };
    let to = match (parts.len(), index(1)?) {
        (1, _) => To::Next,
        (_, Some(to)) => To::Index(to),
        (_, None) => To::End,
    };
    Ok(Slice { from: index(0)?, to, step: index(2)? })
}

/// Where the quote ends that was opened before this text.
fn end_of_quote(text: &str, quote: char) -> Option<usize> {
    let mut before = quote;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            c if c == quote && before != '\\' => return Some(at),
            c => before = c,
        }
    }
    None
}

/// Where the parenthesis of a filter closes, outside of quotes.
fn end_of_filter(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = '(';
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('\n', _) => return None,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open && before != '\\' => quote = None,
            (')', None) => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                c @ ('\\' | '"' | '\'') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(plain)
}
