//! On which clusters an add-on is installed.
//!
//! What the hub adds it marks, and it removes nothing but what carries the mark. It removes only what it is sure of: a placement that is not
//! there or not decided on, a slice of a decision that is being rewritten, and a cluster that does not answer are no reasons to take an add-on
//! off a cluster.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    addon::{ClusterManagementAddOn, InstallStrategyType, ManagedClusterAddOn, ManagedClusterAddOnSpec},
    cluster::{ManagedCluster, Placement, PlacementDecision},
    names::INSTALLED_ANNOTATION,
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::jiff::Timestamp;
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};

use super::inheritance::{copy_annotations, is_managed, owner};
use crate::{
    placement::{Problem, by_labels},
    presence::{Absence, Known, answers},
    rollout::precedence::{canaries, deciding},
};

/// How the clusters of an add-on are chosen.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Not by the hub: by hand, or by somebody else.
    ByHand,
    /// By the placements that the add-on lists. For each, the one whose clusters it waits for.
    ByPlacements(Vec<Option<usize>>),
    /// By labels, if that makes sense.
    ByLabels(Result<Selector, Problem>),
}

impl Choice {
    /// How the clusters of this add-on are chosen.
    #[must_use]
    pub fn of(addon: &ClusterManagementAddOn) -> Self {
        if !is_managed(addon) || addon.metadata.deletion_timestamp.is_some() {
            return Self::ByHand;
        }
        let strategy = addon.spec.install_strategy.clone().unwrap_or_default();
        match strategy.kind {
            InstallStrategyType::Manual => Self::ByHand,
            InstallStrategyType::Placements => Self::ByPlacements(canaries(&strategy.placements)),
            InstallStrategyType::ClusterLabelSelector => Self::ByLabels(match &strategy.label_selector {
                Some(labels) => by_labels(labels, "installStrategy.labelSelector"),
                None => Err(Problem::NoSelector { place: "installStrategy.labelSelector".to_owned() }),
            }),
        }
    }

    /// The entry of the add-on's list that decides for a cluster, of those that select it.
    fn decides(&self, selecting: &[usize]) -> Option<usize> {
        match self {
            Self::ByPlacements(canaries) => deciding(canaries, selecting.iter().copied()),
            Self::ByHand | Self::ByLabels(_) => None,
        }
    }

    /// What is wrong with what the add-on's author has written, whatever else there is.
    #[must_use]
    pub fn mistake(&self) -> Option<Hindrance> {
        match self {
            Self::ByPlacements(listed) if listed.is_empty() => Some(Hindrance::NoPlacements),
            Self::ByLabels(Err(problem)) => Some(Hindrance::Selector(problem.clone())),
            _ => None,
        }
    }

    /// Whether a cluster is chosen for its labels.
    #[must_use]
    pub fn takes(&self, cluster: &ManagedCluster) -> bool {
        matches!(self, Self::ByLabels(Ok(selector)) if cluster.spec.hub_accepts_client && selector.matches(cluster.labels()))
    }
}

/// What an installation is decided by.
pub trait Facts {
    /// A placement.
    fn placement(&self, placement: &PlacementRef) -> Known<&Placement>;

    /// The slices of a placement's decision.
    fn slices(&self, placement: &PlacementRef) -> Known<Vec<&PlacementDecision>>;

    /// All clusters.
    fn clusters(&self) -> impl Iterator<Item = &ManagedCluster>;

    /// One cluster.
    fn cluster(&self, name: &str) -> Known<&ManagedCluster>;

    /// Whether something can be made in the namespace of a cluster.
    fn has_room(&self, cluster: &ClusterName) -> bool;

    /// The add-on on all clusters that it is on.
    fn installed(&self) -> impl Iterator<Item = &ManagedClusterAddOn>;

    /// Whether the add-on is on a cluster, be it readable or not.
    fn is_on(&self, cluster: &ClusterName) -> bool;

    /// Whether it is the turn of an add-on to be removed with its cluster, which is being deleted, and nobody else does that.
    fn leaves_with_cluster(&self, on_cluster: &ManagedClusterAddOn) -> bool;

    /// What was found of a cluster when this was last decided on.
    fn absence(&self, cluster: &str) -> Option<Absence>;
}

/// What keeps an add-on from being installed, and from being removed, as its strategy says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hindrance {
    /// A placement is not there.
    #[error("there is no Placement {0}: create it, or take it off the list; until then the add-on stays where it is")]
    Missing(PlacementRef),
    /// A placement is on its way out.
    #[error("the Placement {0} is being deleted: take it off the list; until then the add-on stays where it is")]
    Leaving(PlacementRef),
    /// A placement selects nothing yet.
    #[error("the Placement {0} has not been decided on yet; until then the add-on stays where it is")]
    Undecided(PlacementRef),
    /// A placement can not be read.
    #[error("the Placement {0} can not be read: correct or delete it; until then the add-on stays where it is")]
    Unreadable(PlacementRef),
    /// A decision in the placement's namespace can not be read, and may be the placement's.
    #[error(
        "a PlacementDecision in the namespace of the Placement {0} can not be read: correct or delete it; until then the add-on \
         stays where it is"
    )]
    UnreadableDecision(PlacementRef),
    /// There are no placements in the list.
    #[error("type Placements lists no placement: add one, or use type Manual; until then the add-on stays where it is")]
    NoPlacements,
    /// The selector makes no sense.
    #[error("the add-on stays where it is, because its selector makes no sense: {0}")]
    Selector(Problem),
}

/// What is to be done for an add-on to be where it should.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installation<'a> {
    /// The clusters on which it is to be made, each with the entry of the add-on's list that decides for it, if one does.
    pub create: Vec<(ClusterName, Option<usize>)>,
    /// Where it is to be removed.
    pub delete: Vec<&'a ManagedClusterAddOn>,
    /// Where it should be and the hub has not made it.
    pub not_ours: Vec<&'a ManagedClusterAddOn>,
    /// The clusters that it is on although nothing selects them; to be told when this is decided on again.
    pub absent: BTreeMap<String, Absence>,
    /// When this is to be decided on again, though nothing has changed.
    pub look_again: Option<Timestamp>,
    /// What keeps the strategy from being followed.
    pub hindrances: Vec<Hindrance>,
}

/// Decides on which clusters an add-on is installed. `addon` is nothing if it is gone, which leaves what its clusters' removal asks for.
#[must_use]
pub fn plan<'a>(
    addon: Option<&ClusterManagementAddOn>,
    choice: &Choice,
    facts: &'a impl Facts,
    now: Timestamp,
) -> Installation<'a> {
    let chosen = chosen(addon, choice, facts);
    let create = chosen.clusters.iter().filter(|(cluster, _)| !facts.is_on(cluster) && may_be_made(facts, cluster));
    let mut installation = Installation {
        create: create.map(|(cluster, selecting)| (cluster.clone(), choice.decides(selecting))).collect(),
        ..Installation::default()
    };
    let may_remove = !matches!(choice, Choice::ByHand) && chosen.hindrances.is_empty();
    for on_cluster in facts.installed().filter(|on_cluster| on_cluster.metadata.deletion_timestamp.is_none()) {
        let cluster = on_cluster.metadata.namespace.as_deref().unwrap_or_default();
        if is_leaving(&facts.cluster(cluster)) {
            installation.delete.extend(facts.leaves_with_cluster(on_cluster).then_some(on_cluster));
        } else if chosen.clusters.contains_key(cluster) {
            installation.not_ours.extend((!is_ours(on_cluster)).then_some(on_cluster));
        } else if may_remove && is_ours(on_cluster) {
            let absence = Absence::next(facts.absence(cluster), answers(&facts.cluster(cluster)), now);
            installation.absent(on_cluster, absence, chosen.is_confirmed, now);
        }
    }
    installation.hindrances = chosen.hindrances;
    installation
}

impl<'a> Installation<'a> {
    /// Decides on an add-on whose cluster nothing selects.
    fn absent(&mut self, on_cluster: &'a ManagedClusterAddOn, absence: Absence, is_confirmed: bool, now: Timestamp) {
        let settled = absence.settled(is_confirmed);
        if settled.is_some_and(|settled| settled <= now) {
            self.delete.push(on_cluster);
        } else {
            self.look_again = self.look_again.into_iter().chain(settled).min();
        }
        self.absent.insert(on_cluster.namespace().unwrap_or_default(), absence);
    }
}

/// Whom a strategy chooses.
#[derive(Default)]
struct Chosen {
    /// The clusters, with the entries of the list that select each.
    clusters: BTreeMap<ClusterName, Vec<usize>>,
    /// Whether all placements say that these are all.
    is_confirmed: bool,
    hindrances: Vec<Hindrance>,
}

fn chosen(addon: Option<&ClusterManagementAddOn>, choice: &Choice, facts: &impl Facts) -> Chosen {
    if let Some(mistake) = choice.mistake() {
        return Chosen { hindrances: vec![mistake], ..Chosen::default() };
    }
    match (addon, choice) {
        (None, _) | (_, Choice::ByHand) => Chosen::default(),
        (Some(addon), Choice::ByPlacements(_)) => by_placements(addon, facts),
        (_, Choice::ByLabels(_)) => {
            let clusters = facts.clusters().filter(|cluster| choice.takes(cluster));
            let clusters = clusters.map(|cluster| (cluster.cluster_name(), Vec::new())).collect();
            Chosen { clusters, is_confirmed: true, hindrances: Vec::new() }
        }
    }
}

fn by_placements(addon: &ClusterManagementAddOn, facts: &impl Facts) -> Chosen {
    let mut chosen = Chosen { is_confirmed: true, ..Chosen::default() };
    let listed = addon.spec.install_strategy.iter().flat_map(|strategy| &strategy.placements);
    for (entry, listed) in listed.enumerate() {
        match selected(&listed.placement, facts) {
            Err(hindrance) => chosen.hindrances.push(hindrance),
            Ok((clusters, count)) => {
                chosen.is_confirmed &= usize::try_from(count) == Ok(clusters.len());
                for cluster in clusters {
                    chosen.clusters.entry(cluster.clone()).or_default().push(entry);
                }
            }
        }
    }
    chosen
}

/// The clusters that a placement has selected, and how many it says that there are.
fn selected<'a>(
    placement: &PlacementRef,
    facts: &'a impl Facts,
) -> Result<(BTreeSet<&'a ClusterName>, i32), Hindrance> {
    let found = match facts.placement(placement) {
        Known::Missing => return Err(Hindrance::Missing(placement.clone())),
        Known::Unreadable => return Err(Hindrance::Unreadable(placement.clone())),
        Known::There(found) => found,
    };
    if found.metadata.deletion_timestamp.is_some() {
        return Err(Hindrance::Leaving(placement.clone()));
    }
    let Some(status) = &found.status else { return Err(Hindrance::Undecided(placement.clone())) };
    let slices = match facts.slices(placement) {
        Known::There(slices) => slices,
        Known::Missing => Vec::new(),
        Known::Unreadable => return Err(Hindrance::UnreadableDecision(placement.clone())),
    };
    let decisions = slices.into_iter().flat_map(|slice| &slice.status).flat_map(|status| &status.decisions);
    Ok((decisions.map(|decision| &decision.cluster_name).collect(), status.number_of_selected_clusters))
}

/// Whether an add-on can be made on a cluster that is chosen.
fn may_be_made(facts: &impl Facts, cluster: &ClusterName) -> bool {
    let found = facts.cluster(cluster.as_str());
    let is_accepted = matches!(found, Known::There(cluster) if cluster.spec.hub_accepts_client);
    is_accepted && !is_leaving(&found) && facts.has_room(cluster)
}

/// Whether the hub has made the add-on.
fn is_ours(on_cluster: &ManagedClusterAddOn) -> bool {
    on_cluster.annotations().get(INSTALLED_ANNOTATION).is_some_and(|value| value == "true")
}

fn is_leaving(cluster: &Known<&ManagedCluster>) -> bool {
    matches!(cluster, Known::There(cluster) if cluster.metadata.deletion_timestamp.is_some())
}

/// The add-on for a cluster that is chosen by an entry of the add-on's list, or without one.
#[must_use]
pub fn made_for(cluster: &ManagedCluster, addon: &ClusterManagementAddOn, entry: Option<usize>) -> ManagedClusterAddOn {
    let placements = addon.spec.install_strategy.as_ref().map_or(&[][..], |strategy| &strategy.placements);
    let template = entry.and_then(|entry| placements.get(entry)?.addon_template.as_ref());
    // Version and configurations are not copied: they come when it is the cluster's turn.
    let spec = ManagedClusterAddOnSpec {
        install_namespace: template.and_then(|template| template.install_namespace.clone()),
        ..ManagedClusterAddOnSpec::default()
    };
    let mut made = ManagedClusterAddOn::new(&addon.name_any(), spec);
    made.metadata.namespace = Some(cluster.name_any());
    made.metadata.owner_references = owner(addon).map(|owner| vec![owner]);
    mark(&mut made);
    copy_annotations(made.annotations_mut(), cluster.annotations());
    made
}

/// An add-on, marked as one that the hub has made and may remove.
#[must_use]
pub fn adopted(on_cluster: &ManagedClusterAddOn) -> ManagedClusterAddOn {
    let mut ours = on_cluster.clone();
    mark(&mut ours);
    ours
}

fn mark(on_cluster: &mut ManagedClusterAddOn) {
    on_cluster.annotations_mut().insert(INSTALLED_ANNOTATION.to_owned(), "true".to_owned());
}

#[cfg(test)]
mod tests;
