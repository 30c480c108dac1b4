//! What the hub knows of an upgrade and its clusters: the objects from which the planner of
//! upgrades decides.

use std::{collections::BTreeMap, sync::LazyLock};

use drover_api::{
    cluster::{
        ClaimedValue, ManagedCluster, ManagedClusterSetBinding, ManagedClusterSpec, ManagedClusterStatus,
        ManagedClustersUpgrade, Placement,
    },
    drover::ClusterUpgrade,
    names::{CLUSTER_AVAILABLE, LOCAL_CLUSTER_LABEL, UPGRADE_PRIORITY_LABEL, UPGRADED_BY_ANNOTATION, VERSION_CLAIM},
    reference::ClusterName,
    work::ManifestWork,
};
use drover_engine::{
    plan::ObjectKey,
    presence::{FleetFacts, Known as KnownObject},
    upgrade::{
        UpgradeSettings,
        facts::UpgradeFacts,
        member::Owner,
        naming::{self, Part},
        operator_work::Approver,
        upgrade_work::UpgradeWork,
        work::PartWork,
    },
};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::ResourceExt;

use crate::{fleet::placement, upgrade_site::Site};

/// The upgrade.
pub(crate) static UP: LazyLock<ObjectKey> = LazyLock::new(|| ObjectKey::namespaced("default", "up"));
/// The value of the annotation that marks its clusters as upgraded by it.
pub(crate) const US: &str = "default/up";
/// Another upgrade.
pub(crate) const OTHER: &str = "default/other";
/// The label of clusters that are to be canaries.
pub(crate) const CANARY_LABEL: &str = "canary";

static PART_NAME: LazyLock<String> = LazyLock::new(|| naming::part_name("default", "up"));

/// Whether the placement of an upgrade says which clusters it selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It does, and its slices agree with it.
    #[default]
    Confirmed,
    /// It does, and a slice is being rewritten.
    Unconfirmed,
    /// It does not.
    Undecided,
}

/// All that is known.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) upgrade: ManagedClustersUpgrade,
    settings: UpgradeSettings,
    placement: Placement,
    pub(crate) sites: BTreeMap<ClusterName, KnownSite>,
}

/// What is known of one cluster.
#[derive(Clone)]
pub(crate) struct KnownSite {
    pub(crate) cluster: Option<ManagedCluster>,
    pub(crate) is_selected: bool,
    pub(crate) record: Option<ClusterUpgrade>,
    works: BTreeMap<Part, UpgradeWork>,
}

impl Known {
    pub(crate) fn new(upgrade: ManagedClustersUpgrade) -> Self {
        let settings = settings(&upgrade);
        let placement = placement(&serde_json::json!({}));
        Self { upgrade, settings, placement, sites: BTreeMap::new() }
    }

    /// Changes what people ask for.
    pub(crate) fn ask(&mut self, change: impl FnOnce(&mut ManagedClustersUpgrade)) {
        change(&mut self.upgrade);
        self.settings = settings(&self.upgrade);
    }

    /// The placement says whom it selects.
    pub(crate) fn decide(&mut self, decision: Decision) {
        let more = i32::from(decision == Decision::Unconfirmed);
        let selected = self.sites.values().filter(|site| site.is_selected).count();
        let number_of_selected_clusters = i32::try_from(selected).expect("not that many") + more;
        let status = drover_api::cluster::PlacementStatus { number_of_selected_clusters, ..Default::default() };
        self.placement.status = (decision != Decision::Undecided).then_some(status);
    }

    pub(crate) fn meet(&mut self, name: &ClusterName, site: &Site) {
        self.sites.insert(name.clone(), KnownSite::of(name, site));
    }
}

fn settings(upgrade: &ManagedClustersUpgrade) -> UpgradeSettings {
    UpgradeSettings::of(upgrade, Some(&Approver::Drover { image: "drover".to_owned() }))
}

impl KnownSite {
    fn of(name: &ClusterName, site: &Site) -> Self {
        Self {
            cluster: site.is_there.then(|| managed_cluster(name, site)),
            is_selected: site.is_selected,
            record: site.record.clone(),
            works: site.works.iter().filter_map(|(part, it)| Some((*part, view(&it.work)?))).collect(),
        }
    }

    /// Changes what is known of the cluster, if there is one.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut ManagedCluster)) {
        if let Some(cluster) = &mut self.cluster {
            change(cluster);
        }
    }
}

fn view(work: &ManifestWork) -> Option<UpgradeWork> {
    UpgradeWork::of(work, &work.metadata.clone().into())
}

pub(crate) fn managed_cluster(name: &ClusterName, site: &Site) -> ManagedCluster {
    let spec = ManagedClusterSpec { hub_accepts_client: site.is_accepted, ..ManagedClusterSpec::default() };
    let mut cluster = ManagedCluster::new(name.as_str(), spec);
    (cluster.metadata.uid, cluster.metadata.resource_version) = (Some(site.uid()), Some(site.version.to_string()));
    let labels = [
        (LOCAL_CLUSTER_LABEL, site.is_hub.then(|| "true".to_owned())),
        (CANARY_LABEL, site.is_canary.then(|| "true".to_owned())),
        (UPGRADE_PRIORITY_LABEL, Some(site.priority.to_string())),
    ];
    for (label, value) in labels {
        cluster.labels_mut().extend(value.map(|value| (label.to_owned(), value)));
    }
    let owner = match &site.owner {
        Owner::Nobody => None,
        Owner::Us => Some(US.to_owned()),
        Owner::Other(other) => Some(other.clone()),
    };
    cluster.annotations_mut().extend(owner.map(|owner| (UPGRADED_BY_ANNOTATION.to_owned(), owner)));
    let claim = |version: &String| ClaimedValue { name: VERSION_CLAIM.to_owned(), value: version.clone() };
    cluster.status = Some(ManagedClusterStatus {
        conditions: vec![available(site.is_online, site.offline_since)],
        cluster_claims: site.claim.iter().map(claim).collect(),
        ..ManagedClusterStatus::default()
    });
    cluster
}

/// What is said of whether a cluster can be reached.
pub(crate) fn available(is_online: bool, since: Option<Timestamp>) -> Condition {
    Condition {
        type_: CLUSTER_AVAILABLE.to_owned(),
        status: if is_online { "True" } else { "Unknown" }.to_owned(),
        reason: "Said".to_owned(),
        message: String::new(),
        last_transition_time: Time(since.unwrap_or(Timestamp::UNIX_EPOCH)),
        observed_generation: None,
    }
}

impl FleetFacts for Known {
    fn cluster(&self, name: &ClusterName) -> KnownObject<&ManagedCluster> {
        let cluster = self.sites.get(name).and_then(|site| site.cluster.as_ref());
        cluster.map_or(KnownObject::Missing, KnownObject::There)
    }

    fn has_namespace(&self, cluster: &ClusterName) -> bool {
        self.staying_cluster(cluster).is_some()
    }

    fn keeps_clusters(&self) -> bool {
        true
    }

    fn placement(&self, _: &ObjectKey) -> KnownObject<&Placement> {
        KnownObject::There(&self.placement)
    }

    fn has_unreadable_decisions(&self, _: &str) -> bool {
        false
    }

    fn selected_by(&self, _: &ObjectKey) -> impl Iterator<Item = ClusterName> {
        self.sites.iter().filter(|(_, site)| site.is_selected).map(|(name, _)| name.clone())
    }
}

impl UpgradeFacts for Known {
    fn upgrade(&self, key: &ObjectKey) -> Option<&ManagedClustersUpgrade> {
        (*key == *UP).then_some(&self.upgrade)
    }

    fn has_upgrade(&self, key: &ObjectKey) -> bool {
        [US, OTHER].contains(&key.to_string().as_str())
    }

    fn settings(&self, upgrade: &ObjectKey) -> Option<&UpgradeSettings> {
        (*upgrade == *UP).then_some(&self.settings)
    }

    fn upgrade_of(&self, part_name: &str) -> Option<&ObjectKey> {
        (part_name == *PART_NAME).then_some(&*UP)
    }

    fn record(&self, _: &str, cluster: &ClusterName) -> Option<&ClusterUpgrade> {
        self.sites.get(cluster)?.record.as_ref()
    }

    fn work(&self, _: &str, part: Part, cluster: &ClusterName) -> Option<&UpgradeWork> {
        self.sites.get(cluster)?.works.get(&part)
    }

    fn works(&self, _: &str, cluster: &ClusterName) -> BTreeMap<Part, PartWork> {
        let works = self.sites.get(cluster).into_iter().flat_map(|site| site.works.values());
        works.filter_map(UpgradeWork::part).map(|(part, work)| (part, work.clone())).collect()
    }

    fn clusters_with_parts(&self, _: &str) -> impl Iterator<Item = &ClusterName> {
        let has_part = |site: &KnownSite| site.record.is_some() || !site.works.is_empty();
        self.sites.iter().filter(move |(_, site)| has_part(site)).map(|(name, _)| name)
    }

    fn is_selected_by(&self, cluster: &ClusterName, _: &ObjectKey) -> bool {
        self.sites.get(cluster).is_some_and(|site| site.is_selected)
    }

    fn count_selected_by(&self, _: &ObjectKey) -> usize {
        self.sites.values().filter(|site| site.is_selected).count()
    }

    fn clusters(&self) -> impl Iterator<Item = &ManagedCluster> {
        self.sites.values().filter_map(|site| site.cluster.as_ref())
    }

    fn has_cluster_set(&self, _: &str) -> bool {
        false
    }

    fn is_in_set(&self, _: &ClusterName, _: &str) -> bool {
        false
    }

    fn bindings_in<'f>(&'f self, _: &'f str) -> impl Iterator<Item = &'f ManagedClusterSetBinding> {
        std::iter::empty()
    }
}
