//! Limits of numbers.

use serde_json::Value;

use super::outcome::Outcome;
use crate::{
    field::Path,
    schema::{Limits, Schema, Type},
};

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Without a point or exponent.
    Whole(i64),
    /// In any other way.
    Float(f64),
}

impl Number {
    pub(super) fn of(number: &serde_json::Number) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Whole)
    }

    #[expect(clippy::cast_precision_loss, reason = "limits are floating point numbers")]
    fn as_float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl From<Number> for Value {
    #[expect(clippy::cast_possible_truncation, reason = "it is checked to be whole and small")]
    fn from(number: Number) -> Self {
        match number {
            Number::Whole(number) => number.into(),
            Number::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => (number as i64).into(),
            Number::Float(number) => number.into(),
        }
    }
}

/// The range of numbers that a type has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range<'a> {
    type_: Option<Type>,
    format: Option<&'a str>,
}

impl<'a> Range<'a> {
    pub(super) fn of(schema: &Schema, format: Option<&'a str>) -> Self {
        let type_ = schema.type_.filter(|_| !schema.int_or_string);
        let type_ = type_.filter(|type_| matches!(type_, Type::Integer | Type::Number));
        Self { type_, format: format.filter(|_| type_.is_some()) }
    }

    fn has(self, number: Number) -> bool {
        match (self.type_, self.format) {
            (Some(Type::Integer), Some("int32")) => is_between(number, f64::from(i32::MIN), f64::from(i32::MAX)),
            // The largest number that fits has no exact counterpart; the next one that has is too large.
            (Some(Type::Integer), _) => is_between(number, -9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0),
            (_, Some("float")) => number.as_float().abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    fn complain(self, what: &str, path: &Path<'_>, outcome: &mut Outcome) {
        let type_ = self.type_.map_or("", Type::as_str);
        let format = self.format.map_or("(default format)".to_owned(), |format| format!("with format {format}"));
        outcome.complaint(format!("{what} value must be of type {type_} {format} in {path}"));
    }
}

fn is_between(number: Number, least: f64, most: f64) -> bool {
    match number {
        Number::Whole(_) if most > 1e18 => true,
        _ => number.as_float().fract() == 0.0 && (least..=most).contains(&number.as_float()),
    }
}

/// Checks a number against its limits. A limit that is no value of the type itself is told about too.
pub(super) fn check(number: Number, limits: &Limits, range: Range<'_>, path: &Path<'_>, outcome: &mut Outcome) {
    if !range.has(number) {
        range.complain("Checked", path, outcome);
    }
    if let Some(factor) = limits.multiple_of {
        let (number, factor) = comparable(number, factor, "MultipleOf", range, path, outcome);
        check_multiple(number, factor, path, outcome);
    }
    if let Some((least, is_excluded)) = limits.minimum {
        let (number, least) = comparable(number, least, "Minimum boundary", range, path, outcome);
        let is_below = if is_excluded { !is_less(least, number) } else { is_less(number, least) };
        let words = if is_excluded { "greater than" } else { "greater than or equal to" };
        if is_below {
            outcome.invalid(path, number, &format!("should be {words} {}", text(least)));
        }
    }
    if let Some((most, is_excluded)) = limits.maximum {
        let (number, most) = comparable(number, most, "Maximum boundary", range, path, outcome);
        let is_above = if is_excluded { !is_less(number, most) } else { is_less(most, number) };
        let words = if is_excluded { "less than" } else { "less than or equal to" };
        if is_above {
            outcome.invalid(path, number, &format!("should be {words} {}", text(most)));
        }
    }
}

/// The number and the limit as numbers of one kind: whole ones, if the number is, and the limit fits its type.
#[expect(clippy::cast_possible_truncation, reason = "limits of whole numbers lose their fractions")]
fn comparable(
    number: Number,
    limit: f64,
    what: &str,
    range: Range<'_>,
    path: &Path<'_>,
    outcome: &mut Outcome,
) -> (Number, Number) {
    let fits = range.has(Number::Float(limit));
    if !fits {
        range.complain(what, path, outcome);
    }
    match number {
        Number::Whole(_) if fits => (number, Number::Whole(limit as i64)),
        _ => (Number::Float(number.as_float()), Number::Float(limit)),
    }
}

fn is_less(one: Number, other: Number) -> bool {
    match (one, other) {
        (Number::Whole(one), Number::Whole(other)) => one < other,
        _ => one.as_float() < other.as_float(),
    }
}

fn check_multiple(number: Number, factor: Number, path: &Path<'_>, outcome: &mut Outcome) {
    if factor.as_float() <= 0.0 {
        outcome.complaint_about(
            path,
            factor,
            format!("factor MultipleOf declared for {path} must be positive: {}", text(factor)),
        );
        return;
    }
    let is_multiple = match (number, factor) {
        (Number::Whole(number), Number::Whole(factor)) => number % factor == 0,
        (number, factor) if factor.as_float() < 1.0 => is_whole(1.0 / factor.as_float() * number.as_float()),
        (number, factor) => is_whole(number.as_float() / factor.as_float()),
    };
    if !is_multiple {
        outcome.invalid(path, number, &format!("should be a multiple of {}", text(factor)));
    }
}

/// Whether a number is whole, as far as can be told after some arithmetic.
pub(super) fn is_whole(number: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > LARGEST {
        return false;
    }
    let nearest = number.trunc();
    let difference = (number - nearest).abs();
    difference == 0.0 || (nearest != 0.0 && difference / (number.abs() + nearest.abs()) < 1e-9)
}

/// A number as Go prints it: with an exponent from 21 digits on, and below a ten-thousandth.
fn text(number: Number) -> String {
    let number = match number {
        Number::Whole(number) => return number.to_string(),
        Number::Float(number) => number,
    };
    if number == 0.0 || (1e-4..1e21).contains(&number.abs()) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}
