//! The rollout controller: decides what each cluster is given, and tells how far that is.
//!
//! Watches add-ons, on the hub and on clusters, what they are configured by, placements and clusters. Its key is an add-on. It writes
//! ConfigRevisions, the AddOnRollout, what clusters are given, and the add-on's status, in this order: what clusters are given is remembered
//! before it is given.

mod case;
mod record;

use drover_api::{
    addon::ClusterManagementAddOn,
    drover::{AddOnRollout, AddOnRolloutSpec},
};
use drover_engine::addon::inheritance::is_managed;
use drover_runtime::{
    controller::{Plan, Reconciler},
    store::ObjectKey,
    write::Write,
};
use k8s_openapi::jiff::Timestamp;
use kube::{Resource, ResourceExt};

use self::case::Case;
use super::Dialect;
use crate::fleet::Fleet;

pub(crate) struct Rollouts {
    /// In whose words it reports.
    pub(crate) dialect: Dialect,
}

impl Reconciler<Fleet> for Rollouts {
    type Key = ObjectKey;

    const NAME: &'static str = "drover-addon-rollout";

    fn plan(&self, fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Plan<Fleet> {
        let (Some(addon), Some(book)) = (fleet.addons.cmas.get(key), fleet.addons.books.get(key)) else {
            return Plan::default();
        };
        if addon.metadata.deletion_timestamp.is_some() || !is_managed(addon) {
            return Plan::default();
        }
        let Some(record) = fleet.configs.rollout(key) else {
            return Plan::from_iter([Write::create(record_of(addon))]);
        };
        let case = Case { fleet, key, addon, record, hub: self, now };
        case.follow(&mut book.open())
    }
}

/// What remembers the rollouts of an add-on; it goes with it.
fn record_of(addon: &ClusterManagementAddOn) -> AddOnRollout {
    let mut record = AddOnRollout::new(&addon.name_any(), AddOnRolloutSpec {});
    record.metadata.owner_references = addon.controller_owner_ref(&()).map(|owner| vec![owner]);
    record
}
