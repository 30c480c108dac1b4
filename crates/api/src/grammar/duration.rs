//! Durations as Go writes them: `90s`, `1h30m`, `1.5h`.

use std::{fmt, str::FromStr, time::Duration};

use crate::{grammar::string_on_the_wire, schema};

/// One term of a Go duration, such as `1.5h`, as a regular expression.
macro_rules! term {
    () => {
        r"([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
    };
}

/// A duration in Go's syntax, sign included, as OCM's `minSuccessTime` takes it. What is too long to be counted, some
/// 292 years, is as long as can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoDuration {
    text: Box<str>,
    nanos: i64,
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write one such as 90s, 30m or 1h30m")]
pub struct InvalidDuration(String);

impl GoDuration {
    /// The length of time; a negative duration is none at all.
    #[must_use]
    pub fn get(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }
}

impl FromStr for GoDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let invalid = || InvalidDuration(text.to_owned());
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let nanos = if unsigned == "0" { 0 } else { sum_of_terms(unsigned).ok_or_else(invalid)? };
        Ok(Self { text: text.into(), nanos: if negative { -nanos } else { nanos } })
    }
}

/// The nanoseconds in `terms`, a sequence of at least one number with its unit.
fn sum_of_terms(mut terms: &str) -> Option<i64> {
    if terms.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !terms.is_empty() {
        let unit_at = terms.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, rest) = terms.split_at(unit_at);
        let unit_len = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit_len);
        total = total.saturating_add(term_nanos(number, nanos_per(unit)?)?);
        terms = rest;
    }
    Some(total)
}

fn nanos_per(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

/// `number` units of `unit` nanoseconds each; what is below a nanosecond is cut off, as Go does.
fn term_nanos(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if fraction.contains('.') {
        return None;
    }
    // Both are digits, so the one way in which a number can fail to parse is to be too large.
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(i64::MAX) };
    let mut nanos = whole.saturating_mul(unit);
    let mut place = unit;
    for digit in fraction.chars() {
        // Digits of a fraction shrink by ten each; once they are below a nanosecond the rest is cut off.
        place /= 10;
        nanos = nanos.saturating_add(i64::from(digit.to_digit(10)?) * place);
    }
    Some(nanos)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

string_on_the_wire!(
    GoDuration,
    schema::text(
        64,
        concat!("self.matches('^[-+]?(0|(", term!(), ")+)$')"),
        "write a duration such as 90s, 30m or 1h30m"
    )
);

/// A positive duration, for limits that a user sets: `clusterUpgradeTimeout: 2h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeout(GoDuration);

impl Timeout {
    /// The length of time.
    #[must_use]
    pub fn get(&self) -> Duration {
        self.0.get()
    }
}

impl FromStr for Timeout {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let duration: GoDuration = text.parse()?;
        // A digit other than zero makes it longer than zero, even where that is less than a nanosecond.
        if text.starts_with(['-', '+']) || !text.contains(|c: char| ('1'..='9').contains(&c)) {
            return Err(InvalidDuration(text.to_owned()));
        }
        Ok(Self(GoDuration { nanos: duration.nanos.max(1), ..duration }))
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_on_the_wire!(
    Timeout,
    schema::text(
        64,
        concat!("self.matches('^(", term!(), ")+$') && self.matches('[1-9]')"),
        "write a duration longer than zero, such as 10m, 2h or 1h30m"
    )
);

/// A time limit that may be absent: a duration, or the word `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Written `None`: there is no limit.
    Never,
    /// The limit.
    After(GoDuration),
}

impl Deadline {
    const NEVER: &'static str = "None";

    /// The limit, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(duration) => Some(duration.get()),
        }
    }
}

impl FromStr for Deadline {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        if text == Self::NEVER {
            return Ok(Self::Never);
        }
        // A bare 0 has no unit, which OCM's pattern asks for.
        if text == "0" || text.starts_with(['-', '+']) {
            return Err(InvalidDuration(text.to_owned()));
        }
        text.parse().map(Self::After)
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str(Self::NEVER),
            Self::After(duration) => duration.fmt(f),
        }
    }
}

string_on_the_wire!(
    Deadline,
    schema::text(
        64,
        concat!("self.matches('^(None|(", term!(), ")+)$')"),
        "write a duration such as 90s, 30m or 1h30m, or None for no limit"
    )
);

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> f64 {
        text.parse::<GoDuration>().expect(text).get().as_secs_f64()
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the values are exact")]
    fn reads_what_go_reads() {
        assert_eq!(seconds("1h30m"), 5400.0);
        assert_eq!(seconds("90s"), 90.0);
        assert_eq!(seconds("1.5h"), 5400.0);
        assert_eq!(seconds(".5s"), 0.5);
        assert_eq!(seconds("1.s"), 1.0);
        assert_eq!(seconds("500ms"), 0.5);
        assert_eq!(seconds("1µs"), 0.000_001);
        assert_eq!(seconds("0"), 0.0);
        assert_eq!(seconds("-5m"), 0.0);
        assert_eq!(seconds("+5m"), 300.0);
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in ["", "5", "h", "1d", "1h 30m", "1h30", ".", ".s", "-", "None", "1hgarbage", "1.5.5s"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_as_long_as_can_be() {
        let longest = Duration::from_nanos(i64::MAX.unsigned_abs());
        for text in ["9999999999h", "99999999999999999999s", "2562047h9999999m"] {
            assert_eq!(text.parse::<GoDuration>().expect(text).get(), longest);
        }
    }

    #[test]
    fn comes_out_as_it_was_written() {
        for text in ["1h30m", "90m", "0", "-5m", "1.50h"] {
            assert_eq!(text.parse::<GoDuration>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn a_deadline_may_be_none_and_is_anchored() {
        assert_eq!("None".parse::<Deadline>().expect("None").get(), None);
        assert_eq!("1h".parse::<Deadline>().expect("1h").get(), Some(Duration::from_hours(1)));
        for text in ["none", "1hNone", "1h|", "-1h", "0", ""] {
            assert!(text.parse::<Deadline>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_timeout_is_longer_than_zero() {
        assert_eq!("2h".parse::<Timeout>().expect("2h").get(), Duration::from_hours(2));
        assert_eq!("0.1ns".parse::<Timeout>().expect("0.1ns").get(), Duration::from_nanos(1));
        for text in ["0", "0s", "-1h", "None", "2"] {
            assert!(text.parse::<Timeout>().is_err(), "{text:?}");
        }
    }
}
