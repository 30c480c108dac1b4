//! Times as Kubernetes accepts them in fields with the format `date-time`.
//!
//! The API server checks such a field of a custom resource against a loose grammar and stores it as
//! it is: with more than nine fractional digits, any character before these, offsets up to 99:99,
//! and any text after a second `t`. A parser of RFC 3339 refuses these.

use k8s_openapi::jiff::{SignedDuration, Timestamp, civil::Date, civil::Time, tz::Offset};

/// The time that a text stands for, if Kubernetes accepts it as one. A time beyond what a
/// [`Timestamp`] can hold is the first or the last one.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.to_ascii_lowercase();
    let mut parts = text.split('t');
    let date = parse_date(parts.next()?)?;
    let (time, offset) = parse_time(parts.next()?)?;
    let last = if date.year() > 0 { Timestamp::MAX } else { Timestamp::MIN };
    let in_utc = Offset::UTC.to_timestamp(date.to_datetime(time));
    Some(in_utc.and_then(|time| time.checked_sub(offset)).unwrap_or(last))
}

fn parse_date(text: &str) -> Option<Date> {
    let [year, month, day] = text.split('-').collect::<Vec<_>>().try_into().ok()?;
    Date::new(digits(year, 4)?, digits(month, 2)?.try_into().ok()?, digits(day, 2)?.try_into().ok()?).ok()
}

/// The time of a day, and its offset from UTC.
fn parse_time(text: &str) -> Option<(Time, SignedDuration)> {
    let (clock, rest) = text.split_at_checked(8)?;
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>().try_into().ok()?;
    let part = |text| digits(text, 2).and_then(|number| i8::try_from(number).ok());
    let (hour, minute, second) = (part(hour)?, part(minute)?, part(second)?);
    let (fraction, offset) = split_offset(rest)?;
    Some((Time::new(hour, minute, second, nanoseconds(fraction)?).ok()?, offset))
}

fn split_offset(text: &str) -> Option<(&str, SignedDuration)> {
    if let Some(fraction) = text.strip_suffix('z') {
        return Some((fraction, SignedDuration::ZERO));
    }
    let (fraction, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (sign, offset) = offset.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let seconds = i64::from(digits(hours, 2)?) * 3600 + i64::from(digits(minutes, 2)?) * 60;
    match sign {
        "+" => Some((fraction, SignedDuration::from_secs(seconds))),
        "-" => Some((fraction, SignedDuration::from_secs(-seconds))),
        _ => None,
    }
}

/// The nanoseconds of a fraction: any character and digits, or nothing.
fn nanoseconds(text: &str) -> Option<i32> {
    let mut chars = text.chars();
    let digits = match chars.next() {
        None => return Some(0),
        Some('\n') => return None,
        Some(_) => chars.as_str(),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .map(|digit| i32::from(digit - b'0'))
        .reduce(|sum, digit| sum * 10 + digit)
}

/// The number that a text of so many digits stands for.
fn digits(text: &str, count: usize) -> Option<i16> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn every_spelling_that_kubernetes_accepts_is_a_time() {
        for (text, time) in [
            ("2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00.123456789Z"),
            ("2026-01-01t00:00:00z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00x5Z", "2026-01-01T00:00:00.5Z"),
            ("2026-01-01T00:00:00+12Z", "2026-01-01T00:00:00.12Z"),
            ("2026-01-01T00:00:00+99:99", "2025-12-27T19:21:00Z"),
            ("2026-01-01T00:00:00-99:99", "2026-01-05T04:39:00Z"),
            ("2026-01-01T00:00:00Ztrailing text", "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00é7-01:00", "2026-01-01T01:00:00.7Z"),
        ] {
            assert_eq!(parse(text), Some(at(time)), "{text}");
        }
        assert_eq!(parse("9999-12-31T23:59:59Z"), Some(Timestamp::MAX));
        assert_eq!(parse("0000-01-01T00:00:00+99:99"), Some(at("-000001-12-27T19:21:00Z")));
    }

    #[test]
    fn what_kubernetes_refuses_is_no_time() {
        for text in [
            "",
            "now",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-02-30T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01 00:00:00Z",
            "2026-1-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00\n1Z",
            "2026-01-01T00:00:00+1:00",
            "+2026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        /// The grammar of kube-openapi, and every day that every month has.
        #[test]
        fn everything_that_the_grammar_generates_is_a_time(
            text in "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[tT]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([^tT\\n][0-9]{1,20})?([zZ]|[+-][0-9]{2}:[0-9]{2})([tT].{0,8})?"
        ) {
            prop_assert!(parse(&text).is_some(), "{}", text);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", tail in "[-0-9:.tTzZ+é\n]{0,40}") {
            parse(&text);
            parse(&tail);
            parse(&format!("2026-01-01T{tail}"));
        }

        /// What both parsers know, both take for the same time.
        #[test]
        fn an_ordinary_time_is_itself(second in -62_000_000_000_i64..250_000_000_000, nano in 0..1_000_000_000_i32) {
            let time = Timestamp::new(second, nano).expect("a time");
            prop_assert_eq!(parse(&time.to_string()), Some(time));
        }
    }
}
