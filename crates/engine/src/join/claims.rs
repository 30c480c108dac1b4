//! What of a cluster's claims is reported to the hub.

use std::collections::BTreeMap;

use drover_api::{
    cluster::{ClaimedValue, ClusterClaim},
    names::SPOKE_ONLY_LABEL,
};
use kube::ResourceExt;

/// How many claims are reported at most that are not reserved.
pub const MAX_CUSTOM_CLAIMS: usize = 20;

/// Names that mean the same on every cluster.
const RESERVED: [&str; 4] = [
    "id.k8s.io",
    "kubeversion.open-cluster-management.io",
    "platform.open-cluster-management.io",
    "product.open-cluster-management.io",
];
/// What names end in that mean the same on every cluster of a product.
const RESERVED_SUFFIXES: [&str; 2] = [".openshift.io", ".open-cluster-management.io"];

/// The claims that are reported: all that are reserved, and then others in the order of their names, as many as there is room for.
#[must_use]
pub fn claimed<'a>(claims: impl IntoIterator<Item = &'a ClusterClaim>) -> Vec<ClaimedValue> {
    let is_meant = |claim: &&ClusterClaim| !claim.labels().contains_key(SPOKE_ONLY_LABEL);
    let by_name: BTreeMap<_, _> =
        claims.into_iter().filter(is_meant).map(|claim| (claim.name_any(), claim.spec.value.clone())).collect();
    let (reserved, custom): (Vec<_>, Vec<_>) = by_name.into_iter().partition(|(name, _)| is_reserved(name));
    let all = reserved.into_iter().chain(custom.into_iter().take(MAX_CUSTOM_CLAIMS));
    all.map(|(name, value)| ClaimedValue { name, value }).collect()
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || RESERVED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}
