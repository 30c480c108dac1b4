//! The hash of a configuration's content.

use std::{convert::Infallible, fmt, str::FromStr};

use crate::{grammar::string_on_the_wire, schema};

/// The hash of a configuration's content, by which two states of one object are told apart.
///
/// Drover and OCM write SHA-256 in lower-case hexadecimal. An outside add-on manager may write any text for its own
/// configurations, and the empty text stands for an object that does not exist (yet).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpecHash {
    /// Written as the empty text: no such object was found.
    #[default]
    Missing,
    /// What Drover and OCM compute, at half the size of its text.
    Sha256([u8; 32]),
    /// What somebody else computed.
    Other(Box<str>),
}

impl SpecHash {
    /// Whether there is a hash at all.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        *self == Self::Missing
    }
}

fn sha256(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Lower case alone: an upper-case text is another text, and must come out as it went in.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl FromStr for SpecHash {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match sha256(text) {
            Some(bytes) => Self::Sha256(bytes),
            None if text.is_empty() => Self::Missing,
            None => Self::Other(text.into()),
        })
    }
}

impl fmt::Display for SpecHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => Ok(()),
            Self::Sha256(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Other(text) => f.write_str(text),
        }
    }
}

string_on_the_wire!(SpecHash, schema::string());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_out_as_it_was_written() {
        let sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        for text in ["", "yyy", sha256, &sha256.to_uppercase(), &sha256[..63]] {
            let hash: SpecHash = text.parse().expect("any text is a hash");
            assert_eq!(hash.to_string(), text);
        }
        assert!(matches!(sha256.parse(), Ok(SpecHash::Sha256(_))));
        assert!(matches!("yyy".parse(), Ok(SpecHash::Other(_))));
        assert!("".parse::<SpecHash>().expect("any text is a hash").is_missing());
    }
}
