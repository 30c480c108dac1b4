//! Versions of groups, the best first.

use std::{
    cmp::{Ordering, Reverse},
    sync::Arc,
};

use crate::kind::Kind;

/// The versions that kinds of a group are served in, the preferred one first.
pub(super) fn of<'a>(kinds: &'a [Arc<Kind>], group: &str) -> Vec<&'a str> {
    let of_group = kinds.iter().filter(|kind| kind.group == group).flat_map(|kind| &kind.versions);
    let mut versions: Vec<_> =
        of_group.filter(|version| version.is_served).map(|version| version.name.as_str()).collect();
    versions.sort_by(|a, b| compare(a, b));
    versions.dedup();
    versions
}

/// Stable versions come before betas, those before alphas, and the higher numbers first. All others come last, by the alphabet.
fn compare(a: &str, b: &str) -> Ordering {
    rank(b).cmp(&rank(a)).then_with(|| a.cmp(b))
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

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn the_most_stable_version_comes_first() {
        let mut versions =
            ["foo10", "v1alpha1", "v1", "v11alpha2", "v10", "v2beta3", "v3beta1", "v12alpha1", "v2", "foo1", "v01"];
        versions.sort_by(|a, b| compare(a, b));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v3beta1", "v2beta3", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10", "v01"]
        );
    }
}
