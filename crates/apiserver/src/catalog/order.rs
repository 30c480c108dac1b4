//! The order of versions: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, and then all other names by the alphabet.

use std::cmp::Reverse;

/// Sorts versions as a server prefers them.
pub(super) fn sort(versions: &mut [&str]) {
    versions.sort_unstable_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.cmp(b)));
}

/// What the larger of is preferred: how stable it is, and the numbers.
fn rank(version: &str) -> Option<(Reverse<u8>, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let (major, rest) = number(rest)?;
    if rest.is_empty() {
        return Some((Reverse(0), major, 0));
    }
    let (stability, rest) =
        rest.strip_prefix("beta").map(|rest| (1, rest)).or_else(|| rest.strip_prefix("alpha").map(|rest| (2, rest)))?;
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some((Reverse(stability), major, minor))
}

/// A number that does not begin with zero, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}
