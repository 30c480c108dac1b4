//! Versions of groups, the best first.

use std::{cmp::Ordering, sync::Arc};

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
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// How stable a version is, and its numbers.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    for (stability, word) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stability, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn the_most_stable_version_comes_first() {
        let mut versions =
            ["foo10", "v1alpha1", "v1", "v11alpha2", "v10", "v2beta3", "v3beta1", "v12alpha1", "v2", "foo1"];
        versions.sort_by(|a, b| compare(a, b));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v3beta1", "v2beta3", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
