//! Which members of a rollout have to be looked at again.

use std::collections::BTreeSet;

use drover_api::reference::ClusterName;

/// The members of a rollout whose derived state is out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// All of them, those included that are not known yet.
    All,
    /// These.
    Members(BTreeSet<ClusterName>),
}

impl Dirty {
    /// One member.
    #[must_use]
    pub fn member(cluster: &ClusterName) -> Self {
        Self::Members(BTreeSet::from([cluster.clone()]))
    }

    /// Adds further members.
    pub fn merge(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (_, Self::All) => *self = Self::All,
            (Self::Members(members), Self::Members(others)) => members.extend(others),
        }
    }

    /// Whether no member is dirty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Members(members) if members.is_empty())
    }
}

impl Default for Dirty {
    /// No member.
    fn default() -> Self {
        Self::Members(BTreeSet::new())
    }
}

impl FromIterator<ClusterName> for Dirty {
    fn from_iter<I: IntoIterator<Item = ClusterName>>(members: I) -> Self {
        Self::Members(members.into_iter().collect())
    }
}
