//! Names that nobody else has, by chance.

use std::fmt::Write as _;

use rustls::crypto::{CryptoProvider, ring::default_provider};

use crate::server::Ids;

/// What suffixes are made of: nothing that could be read as a word, or as something else.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Uids and suffixes by chance, as a server in use has them.
#[derive(Clone)]
pub struct RandomIds(std::sync::Arc<CryptoProvider>);

impl Default for RandomIds {
    fn default() -> Self {
        Self(default_provider().into())
    }
}

impl RandomIds {
    fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        // A machine that has no randomness has no TLS either, so nobody could ask.
        let _ = self.0.secure_random.fill(&mut bytes);
        bytes
    }
}

impl Ids for RandomIds {
    fn uid(&self) -> String {
        let mut bytes = self.bytes::<16>();
        // Version 4, of the usual variant.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = String::with_capacity(36);
        for (place, byte) in bytes.iter().enumerate() {
            if [4, 6, 8, 10].contains(&place) {
                text.push('-');
            }
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn suffix(&self) -> String {
        self.bytes::<5>().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_and_all_have_the_usual_form() {
        let ids = RandomIds::default();
        let uid = ids.uid();
        assert_ne!(uid, ids.uid());
        let lengths: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
        assert_eq!(uid.as_bytes()[14], b'4', "{uid}");
        let suffix = ids.suffix();
        assert!(suffix.len() == 5 && suffix.bytes().all(|byte| LETTERS.contains(&byte)), "{suffix}");
    }
}
