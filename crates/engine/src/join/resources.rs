//! What the nodes of a cluster have, added up.

use std::collections::BTreeMap;

use drover_api::grammar::Quantity;

use crate::quantity;

/// Amounts by resource.
pub type Resources = BTreeMap<String, Quantity>;

/// What a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// All that it has.
    pub capacity: Resources,
    /// What of it workloads can use.
    pub allocatable: Resources,
    /// Whether new workloads can be put on it.
    pub is_schedulable: bool,
}

/// What all nodes have, and what of it workloads can use: of nodes that take none, nothing.
#[must_use]
pub fn resources<'a>(nodes: impl IntoIterator<Item = &'a Node> + Clone) -> (Resources, Resources) {
    let capacity = total(nodes.clone().into_iter().map(|node| &node.capacity));
    let usable = nodes.into_iter().filter(|node| node.is_schedulable);
    (capacity, total(usable.map(|node| &node.allocatable)))
}

fn total<'a>(amounts: impl Iterator<Item = &'a Resources>) -> Resources {
    let mut by_resource = BTreeMap::<&String, Vec<&Quantity>>::new();
    for (resource, amount) in amounts.flatten() {
        by_resource.entry(resource).or_default().push(amount);
    }
    by_resource.into_iter().map(|(resource, amounts)| (resource.clone(), quantity::sum(amounts))).collect()
}
