//! What counts of a cluster whose spec cannot be parsed.

use drover_api::cluster::ManagedCluster;
use kube::core::ObjectMeta;

/// A cluster whose spec cannot be parsed, given what it was before: that, with the metadata and the
/// acceptance of now, so that its deletion and its rejection are acted on. A cluster that was never
/// known counts only while it leaves or is rejected: its taints, which may keep placements from
/// selecting it, are not known.
#[must_use]
pub fn with_invalid_spec(
    known: Option<&ManagedCluster>,
    metadata: &ObjectMeta,
    is_accepted: bool,
) -> Option<ManagedCluster> {
    let stays = is_accepted && metadata.deletion_timestamp.is_none();
    let mut cluster = match known {
        Some(known) => known.clone(),
        None if stays => return None,
        None => ManagedCluster::default(),
    };
    cluster.metadata = ObjectMeta { generation: cluster.metadata.generation, ..metadata.clone() };
    cluster.spec.hub_accepts_client = is_accepted;
    Some(cluster)
}

#[cfg(test)]
mod tests {
    use drover_api::cluster::{Taint, TaintEffect};
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn metadata(is_leaving: bool) -> ObjectMeta {
        let deletion_timestamp = is_leaving.then_some(Time(Timestamp::UNIX_EPOCH));
        ObjectMeta { name: Some("one".to_owned()), generation: Some(7), deletion_timestamp, ..ObjectMeta::default() }
    }

    #[test]
    fn rejection_and_deletion_count_and_the_rest_stays_as_it_was() {
        let mut known = ManagedCluster::default();
        known.metadata.generation = Some(3);
        known.spec.hub_accepts_client = true;
        known.spec.taints =
            vec![Taint { key: "a".to_owned(), effect: TaintEffect::NoSelect, value: None, time_added: None }];
        let rejected = with_invalid_spec(Some(&known), &metadata(false), false).expect("a cluster");
        assert!(!rejected.spec.hub_accepts_client);
        assert_eq!((&rejected.spec.taints, rejected.metadata.generation), (&known.spec.taints, Some(3)));
        let leaving = with_invalid_spec(Some(&known), &metadata(true), true).expect("a cluster");
        assert!(leaving.metadata.deletion_timestamp.is_some() && leaving.spec.hub_accepts_client);
    }

    #[test]
    fn unknown_cluster_counts_only_while_it_leaves_or_is_rejected() {
        assert!(with_invalid_spec(None, &metadata(false), true).is_none());
        assert!(with_invalid_spec(None, &metadata(false), false).is_some_and(|it| !it.spec.hub_accepts_client));
        assert!(with_invalid_spec(None, &metadata(true), true).is_some());
    }
}
