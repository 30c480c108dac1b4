//! What the parts of an upgrade are called on each cluster, and how it is told whose they are.

use std::fmt;

use crate::hash::name_suffix;

/// How much of an upgrade's name its parts bear. With what follows, the value of a label has room for it.
const READABLE: usize = 50;

/// The name of an upgrade's part on every cluster: that of its ClusterUpgrade, and the label of its works. Upgrades of one name in two
/// namespaces have different ones.
#[must_use]
pub fn part_name(namespace: &str, name: &str) -> String {
    let readable: String = name.chars().take(READABLE).collect();
    let readable = readable.trim_end_matches(['.', '-']);
    format!("{readable}-{}", name_suffix(namespace, name))
}

/// Who a cluster is told that it is upgraded by.
#[must_use]
pub fn owner(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// What a work of an upgrade is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// It finds out whether the cluster can be upgraded.
    Preflight,
    /// It does what is to be done before.
    PreAction,
    /// It upgrades the platform.
    Platform,
    /// It upgrades operators.
    Operators,
    /// It does what is to be done after.
    PostAction,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Preflight, Self::PreAction, Self::Platform, Self::Operators, Self::PostAction];

    /// The value of the label by which works of the part are known.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::PreAction => "pre-action",
            Self::Platform => "platform",
            Self::Operators => "operators",
            Self::PostAction => "post-action",
        }
    }

    /// The part that a label names.
    #[must_use]
    pub fn read(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.label() == label)
    }

    /// The name of the work of this part on a cluster, of an upgrade whose parts go by that name. Platform and operators are upgraded by one
    /// upgrade at a time, so that their works go by the cluster's name, as the specification has it: there can not be two of them.
    #[must_use]
    pub fn work_name(self, cluster: &str, part_name: &str) -> String {
        match self {
            Self::Platform => format!("{cluster}-cluster-upgrade"),
            Self::Operators => format!("{cluster}-operators-upgrade"),
            Self::Preflight | Self::PreAction | Self::PostAction => format!("{part_name}-{}", self.label()),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_for_ever_and_fit_a_label() {
        assert_eq!(part_name("default", "to-4-12"), "to-4-12-f30e96db");
        assert_ne!(part_name("default", "to-4-12"), part_name("dev", "to-4-12"));
        assert!(part_name("default", &"a".repeat(253)).len() <= 63);
        assert_ne!(part_name("default", &"a".repeat(60)), part_name("default", &"a".repeat(61)));
    }

    #[test]
    fn works_of_the_platform_bear_the_names_of_the_specification() {
        assert_eq!(Part::Platform.work_name("spoke1", "x"), "spoke1-cluster-upgrade");
        assert_eq!(Part::Operators.work_name("spoke1", "x"), "spoke1-operators-upgrade");
        assert_eq!(Part::PreAction.work_name("spoke1", "to-4-12-f30e96db"), "to-4-12-f30e96db-pre-action");
        assert!(Part::ALL.into_iter().all(|part| Part::read(part.label()) == Some(part)));
    }
}
