//! Selectors over fields. Only few fields of a kind can be selected by, and every kind has its own.

mod known;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::known::Known;
use crate::{
    failure::Failure,
    kind::{Kind, Version},
};

/// The field that every kind can be selected by.
const NAME: &str = "metadata.name";

/// What has to hold of some fields of an object.
#[derive(Clone, Debug)]
pub struct Fields(Vec<Term>);

#[derive(Clone, Debug)]
struct Term {
    field: Known,
    is_name: bool,
    relation: Relation,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Is,
    IsNot,
}

impl Fields {
    /// Reads what a query says, such as `metadata.name=a,spec.nodeName!=b`, for objects of that kind in that version.
    pub fn parse(kind: &Kind, version: &Version, text: &str) -> Result<Self, Failure> {
        let mut terms: Vec<_> = split_terms(text).into_iter().filter(|term| !term.is_empty()).collect();
        terms.sort_unstable();
        let read: Result<Vec<_>, Failure> = terms.into_iter().map(|term| read_term(text, term)).collect();
        let known = read?.into_iter().map(|(label, relation, value)| {
            let field = Known::of(kind, version, label).map_err(Failure::bad_request)?;
            Ok(Term { field, is_name: label == NAME, relation, value })
        });
        known.collect::<Result<_, _>>().map(Self)
    }

    /// What has to hold of the one object of a name.
    pub fn named(kind: &Kind, version: &Version, name: &str) -> Result<Self, Failure> {
        let field = Known::of(kind, version, NAME).map_err(Failure::bad_request)?;
        Ok(Self(vec![Term { field, is_name: true, relation: Relation::Is, value: name.to_owned() }]))
    }

    /// Whether nothing has to hold.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it holds of an object.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (term.field.of_object(object) == term.value) == (term.relation == Relation::Is))
    }

    /// The name that objects have to have, if they have to have one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let named = self.0.iter().find(|term| term.is_name && term.relation == Relation::Is);
        named.map(|term| term.value.as_str())
    }
}

/// The terms between commas; a backslash makes a comma part of a term.
fn split_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    text.split(|c| {
        let splits = c == ',' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        splits
    })
    .collect()
}

fn read_term<'t>(text: &str, term: &'t str) -> Result<(&'t str, Relation, String), Failure> {
    let Some(at) = operator_in(term) else {
        return Err(Failure::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'")));
    };
    let (label, rest) = term.split_at(at);
    let (relation, value) = match rest.strip_prefix("!=") {
        Some(value) => (Relation::IsNot, value),
        None => (Relation::Is, rest.strip_prefix("==").or(rest.strip_prefix('=')).unwrap_or(rest)),
    };
    Ok((label, relation, unescape(value)?))
}

/// Where the operator begins; an exclamation mark alone is none.
fn operator_in(term: &str) -> Option<usize> {
    let equals = term.find('=')?;
    Some(if term[..equals].ends_with('!') { equals - 1 } else { equals })
}

fn unescape(value: &str) -> Result<String, Failure> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    let sequence: String = Some('\\').into_iter().chain(other).collect();
                    let message = format!("invalid field selector: invalid escape sequence: {sequence}");
                    return Err(Failure::bad_request(message));
                }
            },
            ',' | '=' => {
                let message = format!("invalid field selector: unescaped character in value: {}", u32::from(c));
                return Err(Failure::bad_request(message));
            }
            c => plain.push(c),
        }
    }
    Ok(plain)
}
