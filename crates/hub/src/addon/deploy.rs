//! The works of add-ons that are made from templates: they follow what the cluster was given, and nothing else. What somebody changes is
//! repaired, what somebody removes comes back.

use drover_api::work::ManifestWork;
use drover_engine::{
    addon::progress::Maker,
    template::{Holds, Marks, Order, Rendering},
};
use drover_runtime::write::Write;
use kube::ResourceExt;

use super::workshop::{Commission, Making};
use crate::fleet::Fleet;

/// What has to be written so that the works are those that were made. `fresh` is what was made just now, if it was.
pub(super) fn works(commission: &Commission<'_>, making: &Making, fresh: Option<Rendering>) -> Vec<Write<Fleet>> {
    let Maker::Template(expected) = making.maker() else { return Vec::new() };
    let Commission { fleet, on_cluster, .. } = *commission;
    let found = fleet.addons.works_of(on_cluster).into_iter();
    let found = found.filter(|work| work.metadata.namespace == on_cluster.metadata.namespace);
    let order = Order::new(&on_cluster.name_any(), found, expected);
    let turn = order.turn();
    if turn.is_empty() {
        return order.surplus().into_iter().map(Write::delete).collect();
    }
    let Some(rendering) = rendering(commission, making, fresh, &turn) else { return Vec::new() };
    let made = rendering.works.into_iter().map(|made| made.work);
    let made = made.filter(|work| turn.contains_key(&work.name_any()));
    made.map(|work| bring(order.work(&work.name_any()), work)).collect()
}

/// What is to be written. What was made just now is of use if no work has to hold anything besides its own.
fn rendering(
    commission: &Commission<'_>,
    making: &Making,
    fresh: Option<Rendering>,
    turn: &Holds,
) -> Option<Rendering> {
    let holds_nothing = turn.values().all(Vec::is_empty);
    let workshop = &commission.fleet.addons.workshop;
    fresh.filter(|_| holds_nothing).or_else(|| workshop.render(commission, making.blueprint()?, turn).ok())
}

/// Brings a work to what was made. What others have added to its metadata stays.
fn bring(stored: Option<&ManifestWork>, made: ManifestWork) -> Write<Fleet> {
    let Some(stored) = stored else { return Write::create(made) };
    let mut wanted = ManifestWork { metadata: stored.metadata.clone(), ..made.clone() };
    Marks::copy(&made, &mut wanted);
    Write::replace(stored, wanted)
}
