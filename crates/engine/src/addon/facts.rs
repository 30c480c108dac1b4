//! What is known of add-ons and of what they depend on.

use drover_api::{
    addon::{AddOnConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::{ManagedCluster, Placement},
    drover::{AddOnRollout, SetConfig},
    reference::{ClusterName, PlacementRef},
};
use k8s_openapi::api::rbac::v1::RoleBinding;

use super::{
    catalog::{Found, Template},
    configuration::Problem,
    install::Choice,
    render_state::RenderState,
};
use crate::{
    dialect::Dialect,
    plan::{ObjectKey, Write},
    revision::Set,
    rollout::{Snapshot, member::Group},
    template::AddOnWork,
};

/// What decisions about add-ons are made from. The hub reads it from its cache.
pub trait AddOnFacts {
    /// The action that creates a work.
    type Action;

    /// The dialect in which the hub reports on add-ons.
    fn dialect(&self) -> Dialect;

    /// The epoch of the renderer.
    fn renderer_epoch(&self) -> i64;

    /// A ManagedCluster.
    fn cluster(&self, name: &ClusterName) -> Option<&ManagedCluster>;

    /// Whether a cluster says that it is available.
    fn is_online(&self, cluster: &ClusterName) -> bool;

    /// An add-on on a cluster, by namespace and name.
    fn on_cluster(&self, key: &ObjectKey) -> Option<&ManagedClusterAddOn>;

    /// Whether an add-on on a cluster exists, even if it cannot be parsed.
    fn is_on_cluster(&self, key: &ObjectKey) -> bool;

    /// The clusters that have an add-on.
    fn clusters_with(&self, addon: &str) -> impl Iterator<Item = ClusterName>;

    /// The works of an add-on on a cluster, and those on the cluster that hosts its agent.
    fn works_of(&self, on_cluster: &ManagedClusterAddOn) -> Vec<&AddOnWork>;

    /// The bindings of the agent of an add-on on a cluster that is rendered from a template.
    fn role_bindings_of(&self, on_cluster: &ObjectKey) -> Vec<&RoleBinding>;

    /// A ClusterManagementAddOn.
    fn addon(&self, key: &ObjectKey) -> Option<&ClusterManagementAddOn>;

    /// How the clusters of an add-on are selected; `None` if that cannot be parsed.
    fn choice(&self, addon: &ObjectKey) -> Option<&Choice>;

    /// The record of an add-on's rollouts.
    fn rollout(&self, addon: &ObjectKey) -> Option<&AddOnRollout>;

    /// What the rollout controller has last planned for an add-on.
    fn snapshot(&self, addon: &ObjectKey) -> Option<&Snapshot<Set>>;

    /// A Placement, if it can be parsed.
    fn placement(&self, placement: &PlacementRef) -> Option<&Placement>;

    /// Whether a Placement exists, even if it cannot be parsed.
    fn has_placement(&self, placement: &PlacementRef) -> bool;

    /// The decision group in which a placement has selected a cluster; `None` if it has not.
    fn selection(&self, cluster: &ClusterName, placement: &PlacementRef) -> Option<&Group>;

    /// The clusters that a placement has selected.
    fn selected_by(&self, placement: &PlacementRef) -> impl Iterator<Item = ClusterName>;

    /// What exists under the name of a configuration.
    fn find_config(&self, config: &AddOnConfig) -> Found;

    /// The add-on that a configuration is a template of, if it is one.
    fn owner_of_template(&self, config: &AddOnConfig) -> Option<&str>;

    /// The templates of an add-on.
    fn templates_of(&self, addon: &str) -> Vec<Template>;

    /// Why the templates that exist are not known, if they are not.
    fn why_templates_are_unknown(&self) -> Option<Problem>;

    /// Whether the content of a configuration of a revision is lost.
    fn is_lost(&self, config: &SetConfig) -> bool;

    /// Creates the ConfigRevisions that are missing for these configurations, as far as their content
    /// still exists.
    fn missing_revisions<'c>(&self, configs: impl Iterator<Item = &'c SetConfig>) -> Vec<Write>;

    /// How the works of an add-on on a cluster come about, as far as that is known without rendering
    /// them. The revision includes what a user overrides.
    fn render_state(&self, on_cluster: &ManagedClusterAddOn, revision: &Set) -> RenderState;

    /// The namespace in which the agent of an add-on on a cluster will run, if the template says so.
    fn install_namespace(
        &self,
        on_cluster: &ManagedClusterAddOn,
        revision: &Set,
        state: &RenderState,
    ) -> Option<String>;

    /// What has to be written so that the works of an add-on on a cluster are those of a revision.
    fn deploy(&self, on_cluster: &ManagedClusterAddOn, revision: &Set) -> Deployment<Self::Action>;
}

/// The works of an add-on on one cluster, and what is still to be written so that they are right.
#[derive(Debug)]
pub struct Deployment<A> {
    /// How the works come about.
    pub state: RenderState,
    /// Works that are changed or deleted.
    pub writes: Vec<Write>,
    /// Works that are missing.
    pub creations: Vec<A>,
}
