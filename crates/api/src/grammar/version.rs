//! The version of an add-on.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::{grammar::string_on_the_wire, schema};

/// The version of an add-on, such as `v0.11.0`.
///
/// Versions are ordered as semantic versions where they are some, with a leading `v` and missing parts allowed
/// (`v2` is `2.0.0`); any other text sorts below all of those, as text. A version is written into labels, so it has to
/// fit a label's value.
#[derive(Clone, Debug)]
pub struct Version {
    text: Box<str>,
    semantic: Option<semver::Version>,
}

const UNKNOWN: &str = "unknown";

/// A text that does not fit a label's value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} can not be a version: use at most 63 letters, digits, dashes, underscores and dots, beginning and ending with a letter or digit"
)]
pub struct InvalidVersion(String);

impl Version {
    /// What stands where the version is not known: while it is being changed, or where one was asked for that does not exist.
    #[must_use]
    pub fn unknown() -> Self {
        Self { text: UNKNOWN.into(), semantic: None }
    }

    /// Whether this stands for a version that is not known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.as_str() == UNKNOWN
    }

    /// The version as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this is a pre-release such as `v1.2.0-rc.1`, which is never a default.
    #[must_use]
    pub fn is_prerelease(&self) -> bool {
        self.semantic.as_ref().is_some_and(|version| !version.pre.is_empty())
    }
}

/// Reads `v1`, `1.2` and `v1.2.3-rc.1` as semantic versions.
fn semantic(text: &str) -> Option<semver::Version> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, suffix) = text.split_at(text.find('-').unwrap_or(text.len()));
    let missing = match numbers.matches('.').count() {
        0 => ".0.0",
        1 => ".0",
        _ => "",
    };
    semver::Version::parse(&format!("{numbers}{missing}{suffix}")).ok()
}

fn fits_a_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        if !fits_a_label(text) {
            return Err(InvalidVersion(text.to_owned()));
        }
        Ok(Self { text: text.into(), semantic: semantic(text) })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // `None` sorts below `Some`, which puts plain text below semantic versions. The text decides
        // between spellings of one version, so that the order agrees with equality.
        self.semantic.cmp(&other.semantic).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Version {}

impl std::hash::Hash for Version {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

string_on_the_wire!(
    Version,
    schema::text(
        63,
        "self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
        "write a version that fits a label, such as v1.2.0: letters, digits, dashes, underscores and dots, beginning and ending with a letter or digit"
    )
);

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect(text)
    }

    #[test]
    fn order_is_semantic_with_other_text_below() {
        let mut versions: Vec<_> =
            ["v10", "latest", "v2", "1.9.1", "v2.0.0-rc.1", "v1", "v0.9", "2.1", "edge"].map(version).into();
        versions.sort();
        let order: Vec<_> = versions.iter().map(Version::as_str).collect();
        assert_eq!(order, ["edge", "latest", "v0.9", "v1", "1.9.1", "v2.0.0-rc.1", "v2", "2.1", "v10"]);
    }

    #[test]
    fn two_spellings_are_two_versions_side_by_side() {
        assert_ne!(version("v1"), version("1.0.0"));
        assert!(version("1.0.0") < version("v1"));
        assert!(version("v1") < version("v1.0.1"));
    }

    #[test]
    fn only_a_suffix_after_a_dash_makes_a_prerelease() {
        assert!(version("v1.2.0-rc.1").is_prerelease());
        assert!(version("v2-beta").is_prerelease());
        assert!(!version("v1.2.0").is_prerelease());
        assert!(!version("latest").is_prerelease());
    }

    #[test]
    fn an_unknown_version_is_written_out() {
        assert_eq!(version("unknown"), Version::unknown());
        assert!(version("unknown").is_unknown() && !version("v1").is_unknown());
    }

    #[test]
    fn what_does_not_fit_a_label_is_refused() {
        let long = "1".repeat(64);
        for text in ["", "v1+build", "v 1", "-v1", "v1.", long.as_str()] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }
}
