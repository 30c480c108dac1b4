//! What is done about a cluster that is in its phase: what is said of it first, then whose it is, then its works.

use drover_api::drover::{ClusterUpgradePhase as Phase, ClusterUpgradeStatus as Status};

use super::{
    super::{
        naming::Part,
        platform::{Order, Preflight, keeps_cluster_version},
    },
    Act, Found, Owner, Permit, Standing, Subject,
};

/// What becomes of a work in a phase.
enum Wanted {
    /// It has to be there and say this.
    Have(Order),
    /// It has to be there, whatever it says.
    HaveOr(Order),
    /// It may stay.
    May,
    /// It has to go.
    Go,
}

impl Subject<'_> {
    /// The one thing that is to be done next.
    pub(super) fn act(&self, stored: &Status, found: &mut Found) -> Option<Act> {
        if found.needs_claim {
            return Some(Act::Claim);
        }
        if *stored != found.status || self.record.status.as_ref() != Some(stored) {
            return Some(Act::Tell(Box::new(found.status.clone())));
        }
        let phase = stored.phase.unwrap_or(Phase::Waiting);
        let is_promised =
            matches!(found.standing, Standing::Queued { is_claimed: true }) && self.permit != Permit::Wait;
        match (&self.cluster.owner, self.is_taken(stored, phase)) {
            (Owner::Nobody, true) => return Some(Act::Claim),
            (Owner::Us, false) if !is_promised && !self.is_resuming(found) => return Some(Act::Release),
            _ => {}
        }
        self.withdrawal(stored, phase).or_else(|| self.sending(stored, phase))
    }

    fn is_resuming(&self, found: &Found) -> bool {
        found.standing == Standing::Resumable && self.permit == Permit::Start
    }

    /// Whether the cluster has to be this upgrade's.
    fn is_taken(&self, status: &Status, phase: Phase) -> bool {
        match phase {
            Phase::PreAction | Phase::Upgrading | Phase::Operators | Phase::PostAction => true,
            // What has failed may succeed yet, and is not to be turned elsewhere meanwhile.
            Phase::Failed if status.failed_phase == Some(Phase::Upgrading) => true,
            // What is left to do is not to be done on what another has made of it.
            Phase::Waiting if status.platform_completed.is_some() => true,
            Phase::Waiting | Phase::Complete | Phase::Failed => self.has(Part::Platform) || self.has(Part::Operators),
        }
    }

    fn withdrawal(&self, status: &Status, phase: Phase) -> Option<Act> {
        let goes = |part: &Part| self.work(*part).is_some() && matches!(self.wanted(*part, status, phase), Wanted::Go);
        let parts: Vec<_> = Part::ALL.into_iter().filter(goes).collect();
        (!parts.is_empty()).then_some(Act::Withdraw(parts))
    }

    fn sending(&self, status: &Status, phase: Phase) -> Option<Act> {
        Part::ALL.into_iter().find_map(|part| {
            let (order, has_to_agree) = match self.wanted(part, status, phase) {
                Wanted::Have(order) => (order, true),
                Wanted::HaveOr(order) => (order, false),
                Wanted::May | Wanted::Go => return None,
            };
            // One that is on its way out makes room first.
            let is_there = self.facts.works.get(&part);
            let is_due = is_there.is_none_or(|work| !work.is_leaving && has_to_agree && !work.says(&order.name));
            let is_safe = part != Part::Platform || keeps_cluster_version(&order.spec);
            let is_ours = self.cluster.owner == Owner::Us;
            (is_due && is_safe && is_ours).then(|| Act::Send(part, Box::new(order)))
        })
    }

    fn wanted(&self, part: Part, status: &Status, phase: Phase) -> Wanted {
        match part {
            Part::Preflight => self.wanted_preflight(phase),
            Part::PreAction => self.wanted_pre_action(status, phase),
            Part::Platform => match phase {
                Phase::Upgrading => Wanted::Have(self.errand.upgrade.clone()),
                // What is beyond the target is not to be asked for it for ever.
                Phase::Failed if status.failed_phase == Some(Phase::Waiting) => Wanted::Go,
                Phase::Operators | Phase::PostAction | Phase::Failed => Wanted::May,
                Phase::Waiting | Phase::PreAction | Phase::Complete => Wanted::Go,
            },
            Part::Operators => match (phase, &self.course.operator_order) {
                (Phase::Operators, Some(order)) => Wanted::HaveOr(order.clone()),
                (Phase::Operators, None) | (Phase::PostAction | Phase::Failed, _) => Wanted::May,
                _ => Wanted::Go,
            },
            Part::PostAction => match (phase, &self.course.post_action) {
                (Phase::PostAction, Some(action)) => self.anew(part, &action.order),
                (Phase::Failed, _) => Wanted::May,
                (Phase::Complete, _) if !self.course.is_at_rest => Wanted::May,
                _ => Wanted::Go,
            },
        }
    }

    /// What says something else is made anew: a Job can not be changed, and what is reported of the former is not reported of this one.
    fn anew(&self, part: Part, order: &Order) -> Wanted {
        let is_another = self.work(part).is_some_and(|work| !work.says(&order.name));
        if is_another { Wanted::Go } else { Wanted::Have(order.clone()) }
    }

    fn wanted_preflight(&self, phase: Phase) -> Wanted {
        match phase {
            // What was found out for another target says nothing of this one.
            Phase::PreAction => self.anew(Part::Preflight, &self.errand.preflight),
            // What it waits for may be what is found out by it.
            Phase::Waiting => Wanted::May,
            _ => Wanted::Go,
        }
    }

    fn wanted_pre_action(&self, status: &Status, phase: Phase) -> Wanted {
        let Some(action) = &self.course.pre_action else { return Wanted::Go };
        let is_done = status.pre_action.as_ref().is_some_and(|done| done.action == action.order.name);
        let is_clear = matches!(self.preflight().0, Preflight::Clear { .. });
        match phase {
            Phase::Waiting | Phase::PreAction if !is_done && self.has_failed(action) && self.is_retried(status) => {
                Wanted::Go
            }
            Phase::PreAction if !is_done && is_clear => self.anew(Part::PreAction, &action.order),
            Phase::Complete if self.course.is_at_rest => Wanted::Go,
            _ => Wanted::May,
        }
    }
}
