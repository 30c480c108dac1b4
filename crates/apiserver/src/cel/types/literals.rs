//! What is checked of values that are written down in an expression, once their types are known.

use std::sync::LazyLock;

use kube_cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};
use regex::Regex;

use super::{Type, unify::Known};
use crate::schema::{format::is_go_duration, pattern};

/// The function that takes lists of all sorts of things.
const TAKES_ALL: &str = "format";

/// A time as Go reads it.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let date = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
    let time = "[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})";
    Regex::new(&format!("^{date}T{time}$")).ok()
});

/// The items of a list that is written down, or the keys or values of a map.
#[derive(Default)]
pub(super) struct Literal<'s>(Vec<(u64, Type<'s>)>);

impl<'s> Literal<'s> {
    pub(super) fn note(&mut self, id: u64, type_: Type<'s>) {
        self.0.push((id, type_));
    }

    /// All that are of another type than the first.
    fn mismatches(&self, known: &mut Known<'s>) -> Vec<(u64, String)> {
        let Some(((_, first), others)) = self.0.split_first() else { return Vec::new() };
        let first = known.settled(first);
        let mismatch = |(id, other): &(u64, Type<'s>)| {
            let other = known.settled(other);
            (first != other).then(|| (*id, format!("expected type '{first}' but found '{other}'")))
        };
        others.iter().filter_map(mismatch).collect()
    }
}

/// All that is written down in an expression.
#[derive(Default)]
pub(super) struct Literals<'s> {
    lists: Vec<Literal<'s>>,
    maps: Vec<Literal<'s>>,
    mistakes: Vec<(u64, String)>,
    /// How many calls are around that take all sorts of things.
    exempt: usize,
}

impl<'s> Literals<'s> {
    pub(super) fn enter(&mut self, function: &str) {
        self.exempt += usize::from(function == TAKES_ALL);
    }

    pub(super) fn leave(&mut self, function: &str) {
        self.exempt -= usize::from(function == TAKES_ALL);
    }

    pub(super) fn note(&mut self, list: Literal<'s>) {
        if self.exempt == 0 {
            self.lists.push(list);
        }
    }

    pub(super) fn note_entries(&mut self, keys: Literal<'s>, values: Literal<'s>) {
        if self.exempt == 0 {
            self.maps.extend([keys, values]);
        }
    }

    /// Looks at the first argument of a function, if it is a text.
    pub(super) fn note_argument(&mut self, function: &str, argument: Option<&IdedExpr>) {
        let Some(IdedExpr { id, expr: Expr::Literal(LiteralValue::String(text)) }) = argument else { return };
        let text: &str = text.inner();
        let is_valid = match function {
            "duration" => is_go_duration(text),
            "timestamp" => TIME.as_ref().is_none_or(|time| time.is_match(text)) && !text.starts_with("0000"),
            // What is only too large here is not wrong.
            "matches" => pattern::compile(text).err().is_none_or(|why| why.contains("size limit")),
            _ => true,
        };
        if !is_valid {
            self.mistakes.push((*id, format!("invalid {function} argument")));
        }
    }

    /// What is wrong with all that.
    pub(super) fn mistakes(self, known: &mut Known<'s>) -> Vec<(u64, String)> {
        let mut mistakes = self.mistakes;
        mistakes.extend(self.lists.iter().filter_map(|list| list.mismatches(known).into_iter().next()));
        mistakes.extend(self.maps.iter().flat_map(|part| part.mismatches(known)));
        mistakes
    }
}
