//! What is to be done about clusters, as writes and events.

use drover_api::{
    cluster::ManagedCluster,
    drover::{ClusterUpgrade, ClusterUpgradePhase as Phase, ClusterUpgradeSpec, ClusterUpgradeStatus},
    names::{UPGRADE_LABEL, UPGRADED_BY_ANNOTATION},
    reference::ClusterName,
};
use kube::ResourceExt;

use super::UpgradePlanner;
use crate::{
    plan::{Event, Plan, Write},
    upgrade::{
        facts::UpgradeFacts,
        member::Act,
        naming::Part,
        platform::Order,
        reason::Reason,
        upgrade_work::{new_work, resent},
    },
};

impl<F: UpgradeFacts> UpgradePlanner<'_, F> {
    /// Writes what is to be done about clusters.
    pub(super) fn carry_out(&self, acts: Vec<(ClusterName, Act)>, plan: &mut Plan) {
        for (cluster, act) in acts {
            match act {
                Act::Make(spec) => plan.parallel.push(Write::create(self.made(&cluster, *spec))),
                Act::Retarget(spec) => plan.parallel.extend(self.retarget(&cluster, *spec)),
                Act::Tell(status) => self.tell_cluster(&cluster, *status, plan),
                Act::Claim => plan.parallel.extend(self.claim(&cluster, true)),
                Act::Release => plan.parallel.extend(self.claim(&cluster, false)),
                Act::Send(part, order) => plan.parallel.extend(self.send(&cluster, part, *order)),
                Act::Withdraw(parts) => {
                    plan.parallel.extend(parts.into_iter().filter_map(|part| self.withdraw(&cluster, part)));
                }
                Act::Drop => plan.parallel.extend(self.record(&cluster).map(Write::delete)),
            }
        }
    }

    fn made(&self, cluster: &ClusterName, spec: ClusterUpgradeSpec) -> ClusterUpgrade {
        let mut record = ClusterUpgrade::new(&self.settings.part_name, spec);
        record.metadata.namespace = Some(cluster.to_string());
        record.labels_mut().insert(UPGRADE_LABEL.to_owned(), self.settings.part_name.clone());
        record
    }

    fn retarget(&self, cluster: &ClusterName, spec: ClusterUpgradeSpec) -> Option<Write> {
        let record = self.record(cluster)?;
        Write::update(record, &ClusterUpgrade { spec, ..record.clone() })
    }

    fn tell_cluster(&self, cluster: &ClusterName, status: ClusterUpgradeStatus, plan: &mut Plan) {
        let Some(record) = self.record(cluster) else { return };
        plan.events.extend(event(record, &status));
        plan.parallel.extend(Write::status(record, &ClusterUpgrade { status: Some(status), ..record.clone() }));
    }

    /// Marks a cluster as owned by this upgrade, or removes the mark. The first upgrade to do so owns it.
    fn claim(&self, cluster: &ClusterName, is_ours: bool) -> Option<Write> {
        let found = self.facts.cluster(cluster).into_option()?;
        let mut wanted = ManagedCluster::clone(found);
        if is_ours {
            wanted.annotations_mut().insert(UPGRADED_BY_ANNOTATION.to_owned(), self.settings.owner.clone());
        } else {
            wanted.annotations_mut().remove(UPGRADED_BY_ANNOTATION);
        }
        Write::update(found, &wanted)
    }

    fn send(&self, cluster: &ClusterName, part: Part, order: Order) -> Option<Write> {
        let part_name = &self.settings.part_name;
        match self.facts.work(part_name, part, cluster) {
            // One that another upgrade has left is not taken over: what is reported of it would count for
            // this one.
            Some(stored) if stored.part_name() != part_name => Some(Write::delete(stored)),
            Some(stored) => resent(part, order, self.now).write(stored),
            None => Some(Write::create(new_work(cluster.as_str(), part, part_name, order, self.now))),
        }
    }

    fn withdraw(&self, cluster: &ClusterName, part: Part) -> Option<Write> {
        self.facts.work(&self.settings.part_name, part, cluster).map(Write::delete)
    }
}

/// The event of a cluster that goes on to another phase.
fn event(record: &ClusterUpgrade, status: &ClusterUpgradeStatus) -> Option<Event> {
    let before = record.status.as_ref().and_then(|status| status.phase);
    let phase = status.phase.filter(|phase| before != Some(*phase))?;
    let message = status.message.clone().unwrap_or_default();
    let target =
        record.spec.target.version.as_deref().or(record.spec.target.channel.as_deref()).unwrap_or("its target");
    let degraded = Reason::PreActionDegraded { why: None };
    match phase {
        Phase::Waiting if before.is_none() => None,
        Phase::Waiting if status.reason.as_deref() == Some(degraded.word()) => {
            Some(Event::warning(record, degraded.word(), message))
        }
        Phase::Waiting => Some(Event::normal(record, "UpgradeWaiting", message)),
        Phase::PreAction => Some(Event::normal(record, "UpgradePreparing", message)),
        Phase::Upgrading => Some(Event::normal(record, "UpgradeStarted", format!("the upgrade to {target} begins"))),
        Phase::Operators => Some(Event::normal(record, "OperatorsStarted", message)),
        Phase::PostAction => Some(Event::normal(record, "PostActionStarted", message)),
        Phase::Complete => Some(Event::normal(record, "UpgradeComplete", message)),
        Phase::Failed => Some(Event::warning(record, "UpgradeFailed", message)),
    }
}
