//! "5" or "25%": how many clusters, out of however many there are.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::schema;

/// A number of clusters, absolute or as a percentage of a total.
///
/// On the wire it is an integer (`5`) or a string (`"5"`, `"25%"`). Which of them the author wrote is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountOrPercentage {
    written: Written,
    amount: Amount,
}

/// Which of the two forms on the wire it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Integer(i64),
    Text(Box<str>),
}

/// What a [`CountOrPercentage`] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// That many clusters. OCM's schemas let any number through: a negative one is zero, one that is too large is
    /// as large as it can be.
    Count(u32),
    /// That share of all clusters, 0 to 100.
    Percent(u8),
}

/// A text that is neither a count nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a count nor a percentage: write a number such as 5, or a percentage from \"0%\" to \"100%\"")]
pub struct InvalidCount(String);

impl CountOrPercentage {
    /// `count` clusters.
    #[must_use]
    pub fn count(count: u16) -> Self {
        Self { written: Written::Integer(i64::from(count)), amount: Amount::Count(u32::from(count)) }
    }

    /// `percent` of all clusters; more than 100 is all of them.
    #[must_use]
    pub fn percent(percent: u8) -> Self {
        let percent = percent.min(100);
        Self { written: Written::Text(format!("{percent}%").into()), amount: Amount::Percent(percent) }
    }

    /// What was asked for, before it is applied to a total.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.amount
    }

    /// The number of clusters out of `total`. Percentages round up; never more than `total`.
    #[must_use]
    pub fn of(&self, total: usize) -> usize {
        match self.amount {
            Amount::Count(count) => total.min(usize::try_from(count).unwrap_or(usize::MAX)),
            Amount::Percent(percent) => (total * usize::from(percent)).div_ceil(100),
        }
    }

    /// The size of a window of clusters that may be moving at one time: as [`Self::of`], but at
    /// least one, or nothing would ever move.
    #[must_use]
    pub fn window(&self, total: usize) -> usize {
        self.of(total).max(1)
    }

    /// OCM's `maxConcurrency`: as [`Self::of`], but zero means no limit.
    #[must_use]
    pub fn concurrency(&self, total: usize) -> usize {
        match self.of(total) {
            0 => total,
            size => size,
        }
    }
}

impl FromStr for CountOrPercentage {
    type Err = InvalidCount;

    fn from_str(text: &str) -> Result<Self, InvalidCount> {
        let amount = match text.strip_suffix('%') {
            Some(percent) => percentage(percent),
            None => count(text),
        };
        let amount = amount.ok_or_else(|| InvalidCount(text.to_owned()))?;
        Ok(Self { written: Written::Text(text.into()), amount })
    }
}

fn percentage(digits: &str) -> Option<Amount> {
    match digits.parse() {
        Ok(percent @ 0..=100) if is_number(digits) => Some(Amount::Percent(percent)),
        _ => None,
    }
}

fn count(text: &str) -> Option<Amount> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !is_number(digits) {
        return None;
    }
    Some(Amount::Count(if digits.len() < text.len() { 0 } else { digits.parse().unwrap_or(u32::MAX) }))
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for CountOrPercentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Written::Integer(number) => number.fmt(f),
            Written::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for CountOrPercentage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CountOrPercentage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Text(text) => text.parse().map_err(D::Error::custom),
            Written::Integer(number) => {
                let count = u32::try_from(number.max(0)).unwrap_or(u32::MAX);
                Ok(Self { written: Written::Integer(number), amount: Amount::Count(count) })
            }
        }
    }
}

/// OCM's grammar, which admits zero: for `maxConcurrency` and `maxFailures`.
impl JsonSchema for CountOrPercentage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CountOrPercentage".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::int_or_string(
            r"string(self).matches('^(-?[0-9]+|(100|[0-9]{1,2})%)$')",
            "write a number of clusters, such as 5, or a percentage of them from \"0%\" to \"100%\"",
        )
    }
}

/// The size of a window or of a group: a [`CountOrPercentage`] for which our schema refuses zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowSize(pub CountOrPercentage);

impl WindowSize {
    /// The size out of `total` clusters. Percentages round up; at least one.
    #[must_use]
    pub fn of(&self, total: usize) -> usize {
        self.0.window(total)
    }
}

impl JsonSchema for WindowSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WindowSize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::int_or_string(
            r"string(self).matches('^([1-9][0-9]*|(100|[1-9][0-9]?)%)$')",
            "write a number of clusters of at least 1, or a percentage of them from \"1%\" to \"100%\"",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> CountOrPercentage {
        serde_json::from_str(json).expect("a valid count")
    }

    #[test]
    fn comes_out_as_it_was_written() {
        for json in [
            "5",
            "0",
            "-1",
            "99999999999",
            "\"5\"",
            "\"-5\"",
            "\"99999999999\"",
            "\"05\"",
            "\"25%\"",
            "\"05%\"",
            "\"0%\"",
            "\"100%\"",
        ] {
            assert_eq!(serde_json::to_string(&read(json)).expect("serialises"), json);
        }
    }

    #[test]
    fn percentages_round_up_and_never_exceed_the_total() {
        assert_eq!(read("\"25%\"").of(10), 3);
        assert_eq!(read("\"25%\"").of(400), 100);
        assert_eq!(read("\"1%\"").of(1), 1);
        assert_eq!(read("\"100%\"").of(7), 7);
        assert_eq!(read("\"25%\"").of(0), 0);
        assert_eq!(read("99").of(4), 4);
        assert_eq!(read("99999999999").of(4), 4);
        assert_eq!(read("\"99999999999\"").of(4), 4);
    }

    #[test]
    fn a_window_is_never_empty() {
        assert_eq!(read("0").window(10), 1);
        assert_eq!(read("\"0%\"").window(10), 1);
        assert_eq!(read("\"25%\"").window(0), 1);
    }

    #[test]
    fn no_concurrency_limit_means_all_as_in_ocm() {
        assert_eq!(read("0").concurrency(10), 10);
        assert_eq!(read("-3").concurrency(10), 10);
        assert_eq!(read("\"-3\"").concurrency(10), 10);
        assert_eq!(read("3").concurrency(10), 3);
    }

    #[test]
    fn anything_else_is_refused_with_what_to_write() {
        for text in ["", "%", "101%", "5 %", "5.5", "five", "-5%", "+5", "+5%", "--5"] {
            let error = text.parse::<CountOrPercentage>().expect_err(text).to_string();
            assert!(error.contains("write a number such as 5"), "{error}");
        }
    }
}
