//! The part of jq that says where fields are: `.a.b`, `.a["b"]`, `.a[]`, `.a[0]`, `select`, and these one after the other or side by side.
//!
//! All of jq is a language of its own, whose programs need not end. This part always ends, and quickly: each place is only found once.

mod parse;

use std::collections::BTreeSet;

use serde_json::Value;

use super::ignore::{Place, Stride};

pub(super) use parse::parse;

/// Why an expression can not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// It is longer than is allowed.
    #[error("it is longer than {0} characters: divide it into several")]
    TooLong(usize),
    /// It is nested too deeply.
    #[error("its parentheses are more than {0} deep: divide it into several")]
    TooDeep(usize),
    /// It goes on with something else than expected.
    #[error(
        "at {found:?} there should be {expected}; only paths are supported: .a.b, .a[\"b\"], .a[], .a[0], select(.a == \"b\"), joined by | and ,"
    )]
    Unexpected {
        /// How it goes on.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
}

/// What an expression leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    /// A field of each object.
    Field(String),
    /// All that is in a list or an object.
    Each,
    /// An item of each list, from the end if it is negative.
    Item(i64),
    /// What is as it has to be.
    Select(Test),
    /// One after the other; nothing leads to where one is.
    Chain(Vec<Filter>),
    /// What either leads to.
    Either(Vec<Filter>),
}

/// What something has to be like.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    of: Box<Filter>,
    is: Is,
}

#[derive(Clone, Debug, PartialEq)]
enum Is {
    /// It is there, and neither null nor false.
    True,
    Equal(Value),
    Unequal(Value),
}

impl Filter {
    /// All that the expression leads to in an object. What is not there is left out.
    pub(super) fn places(&self, object: &Value) -> Vec<Place> {
        self.follow(BTreeSet::from([Place::new()]), object).into_iter().collect()
    }

    fn follow(&self, from: BTreeSet<Place>, object: &Value) -> BTreeSet<Place> {
        match self {
            Self::Chain(filters) => filters.iter().fold(from, |from, filter| filter.follow(from, object)),
            Self::Either(filters) => filters.iter().flat_map(|filter| filter.follow(from.clone(), object)).collect(),
            simple => from.into_iter().flat_map(|place| simple.step(place, object)).collect(),
        }
    }

    fn step(&self, place: Place, object: &Value) -> Vec<Place> {
        let Some(value) = at(object, &place) else { return Vec::new() };
        let below = |stride| [place.clone(), vec![stride]].concat();
        match (self, value) {
            (Self::Field(field), Value::Object(fields)) if fields.contains_key(field) => {
                vec![below(Stride::Field(field.clone()))]
            }
            (Self::Each, Value::Object(fields)) => {
                fields.keys().map(|field| below(Stride::Field(field.clone()))).collect()
            }
            (Self::Each, Value::Array(items)) => (0..items.len()).map(|item| below(Stride::Item(item))).collect(),
            (Self::Item(item), Value::Array(items)) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let item = if *item < 0 { length.saturating_add(*item) } else { *item };
                let item = usize::try_from(item).ok().filter(|item| *item < items.len());
                item.map(|item| below(Stride::Item(item))).into_iter().collect()
            }
            (Self::Select(test), value) if test.holds(value) => vec![place],
            _ => Vec::new(),
        }
    }
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        let places = self.of.places(value);
        let found: Vec<_> = places.iter().filter_map(|place| at(value, place)).collect();
        // What is not there is null.
        let found = if found.is_empty() { vec![&Value::Null] } else { found };
        found.into_iter().any(|found| match &self.is {
            Is::True => !matches!(found, Value::Null | Value::Bool(false)),
            Is::Equal(value) => found == value,
            Is::Unequal(value) => found != value,
        })
    }
}

fn at<'a>(object: &'a Value, place: &[Stride]) -> Option<&'a Value> {
    place.iter().try_fold(object, |value, stride| match stride {
        Stride::Field(field) => value.get(field),
        Stride::Item(item) => value.get(item),
    })
}

#[cfg(test)]
mod tests;
