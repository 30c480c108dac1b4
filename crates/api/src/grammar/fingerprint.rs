//! The name of a set: the one whole that a cluster is given.

use std::{fmt, str::FromStr};

use crate::grammar::string_on_the_wire;

/// The fingerprint of a set: all configurations with their hashes, the version, and the renderer's epoch.
///
/// Two clusters with the same fingerprint run the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetFingerprint(Box<str>);

/// A text that is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the fingerprint of a set: copy one of 8 to 64 hexadecimal digits from the AddOnRollout's status")]
pub struct InvalidFingerprint(String);

impl SetFingerprint {
    /// The fingerprint that these bytes spell.
    #[must_use]
    pub fn of(bytes: [u8; 8]) -> Self {
        Self(format!("{:016x}", u64::from_be_bytes(bytes)).into())
    }

    /// The fingerprint's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SetFingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let hexadecimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if hexadecimal && (8..=64).contains(&text.len()) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidFingerprint(text.to_owned()))
        }
    }
}

impl fmt::Display for SetFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

string_on_the_wire!(
    SetFingerprint,
    // Only the hub writes fingerprints into objects, so a plain pattern does.
    schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{8,64}$" })
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_spelt_as_a_fingerprint() {
        let fingerprint = SetFingerprint::of([0, 1, 2, 3, 4, 5, 0xab, 0xcd]);
        assert_eq!(fingerprint.as_str().parse(), Ok(fingerprint));
    }

    #[test]
    fn only_hexadecimal_digits_make_a_fingerprint() {
        assert_eq!("0123abcd".parse::<SetFingerprint>().expect("a fingerprint").as_str(), "0123abcd");
        for text in ["", "0123abc", "0123ABCD", "not-a-fingerprint", &"a".repeat(65)] {
            assert!(text.parse::<SetFingerprint>().is_err(), "{text:?}");
        }
    }
}
