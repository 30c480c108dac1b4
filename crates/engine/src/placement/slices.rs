//! A slice of a decision: what one PlacementDecision says.

use std::collections::BTreeMap;

use drover_api::{
    cluster::{ClusterDecision, PlacementDecision},
    names::{DECISION_GROUP_INDEX_LABEL, DECISION_GROUP_NAME_LABEL, PLACEMENT_LABEL},
};
use kube::ResourceExt;

/// The most clusters that one PlacementDecision lists.
pub const MAX_SLICE: usize = 100;

/// What one PlacementDecision says.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The name of the object.
    pub name: String,
    /// The group whose clusters it lists.
    pub group: Group,
    /// The clusters.
    pub decisions: Vec<ClusterDecision>,
}

/// A decision group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// Its index, from 0.
    pub index: usize,
    /// Its name; empty for those that have none.
    pub name: String,
}

impl Slice {
    /// What a stored PlacementDecision says.
    #[must_use]
    pub fn read(decision: &PlacementDecision) -> Self {
        let label = |name| decision.labels().get(name).map(String::as_str).unwrap_or_default();
        let index = label(DECISION_GROUP_INDEX_LABEL).parse().unwrap_or_default();
        Self {
            name: decision.name_any(),
            group: Group { index, name: label(DECISION_GROUP_NAME_LABEL).to_owned() },
            decisions: decision.status.as_ref().map(|status| status.decisions.clone()).unwrap_or_default(),
        }
    }

    /// The labels of the object.
    #[must_use]
    pub fn labels(&self, placement: &str) -> BTreeMap<String, String> {
        BTreeMap::from([
            (PLACEMENT_LABEL.to_owned(), placement.to_owned()),
            (DECISION_GROUP_INDEX_LABEL.to_owned(), self.group.index.to_string()),
            (DECISION_GROUP_NAME_LABEL.to_owned(), self.group.name.clone()),
        ])
    }

    /// The names of its clusters.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        self.decisions.iter().map(|decision| decision.cluster_name.as_str())
    }
}

/// The name of the placement's nth slice, from 1.
pub(super) fn name(placement: &str, number: usize) -> String {
    format!("{placement}-decision-{number}")
}

/// The number in the name of a slice of this placement.
pub(super) fn number(placement: &str, name: &str) -> Option<usize> {
    let number = name.strip_prefix(placement)?.strip_prefix("-decision-")?.parse().ok()?;
    // Not `01` or `+1`, which would be other objects.
    (self::name(placement, number) == name && number > 0).then_some(number)
}
