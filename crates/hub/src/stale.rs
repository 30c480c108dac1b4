//! Who has to be looked at again, because something has changed that is decided by.

use std::collections::BTreeSet;

use drover_api::reference::ClusterName;

/// The clusters that have to be looked at again: everybody, as long as nobody was looked at.
#[derive(Debug, Default)]
pub(crate) enum Stale {
    #[default]
    Everybody,
    Some(BTreeSet<ClusterName>),
}

impl Stale {
    /// Takes note that some clusters have to be looked at again.
    pub(crate) fn add(&mut self, these: impl IntoIterator<Item = ClusterName>) {
        if let Self::Some(clusters) = self {
            clusters.extend(these);
        }
    }

    /// Who has to be looked at again: nobody from now on. Nothing means everybody.
    pub(crate) fn take(&mut self) -> Option<BTreeSet<ClusterName>> {
        match std::mem::replace(self, Self::Some(BTreeSet::new())) {
            Self::Everybody => None,
            Self::Some(clusters) => Some(clusters),
        }
    }
}
