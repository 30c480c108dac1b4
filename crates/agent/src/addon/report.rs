//! Who tells the hub what has become of add-ons' credentials, and how their agents are.

use drover_engine::{
    plan::{NoAction, Plan, Write},
    registration::health::health,
};
use drover_runtime::{controller::Reconciler, store::ObjectKey};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::Roster;

/// Who tells.
pub(crate) struct Reports;

impl Reconciler<Roster> for Reports {
    type Key = ObjectKey;
    type State = ();
    type Action = NoAction;
    const NAME: &'static str = "registration-agent";

    fn plan(&self, roster: &Roster, key: &ObjectKey, (): &mut (), now: Timestamp) -> Plan {
        let Some(addon) = roster.addons.get(key) else { return Plan::default() };
        let outcomes = roster.outcomes(addon);
        let outcomes: Vec<_> = outcomes.iter().map(|(enrolment, outcome)| (enrolment, outcome)).collect();
        // Of a cluster that the hub has not heard of, the hub says itself that nothing is known, and would take back what is said.
        let lease = roster.post(addon).filter(|_| roster.is_heard).and_then(|post| roster.leases.get(&post));
        let health = lease.map(|lease| health(&addon.name_any(), *lease, now));
        let mut wanted = (**addon).clone();
        wanted.status = Some(roster.keeper.report(addon, &outcomes, health.as_ref(), now));
        let write = Write::status(&**addon, &wanted);
        Plan { wake: health.and_then(|health| health.until), ..write.into_iter().collect() }
    }
}
