//! What each phase comes to: whether the cluster goes on to the next one, fails, or stays, and what is said of it.

use drover_api::drover::{Acknowledged, ActionDone, ClusterUpgradePhase as Phase, ClusterUpgradeStatus as Status};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    super::{
        action::{Action, Doing},
        feedback::Running,
        naming::Part,
        operator_work::Outcome,
        platform::Preflight,
        reason::Reason,
        target::Place,
        work::PartWork,
    },
    DELIVERY_GRACE, Found, Membership, Owner, PATIENCE, Permit, Reach, Standing, Subject, after,
};

impl Found {
    fn new(status: Status, standing: Standing) -> Self {
        Self { status, standing, wake: None, needs_claim: false }
    }

    fn until(mut self, wake: Timestamp) -> Self {
        self.wake = Some(wake);
        self
    }
}

/// What is known of the action before the upgrade.
enum Preparation {
    Done,
    Missing,
    Running { until: Timestamp },
    Failed { why: Option<String> },
}

impl Subject<'_> {
    pub(super) fn follow(&self, status: Status, phase: Phase) -> Found {
        let status = self.by_the_clock(status, phase);
        match phase {
            Phase::Waiting => self.waiting(status),
            Phase::PreAction => self.preparing(status),
            Phase::Upgrading => self.upgrading(status),
            Phase::Operators => self.operators(status),
            Phase::PostAction => self.checking(status),
            Phase::Complete => Found::new(status, Standing::Complete),
            Phase::Failed => self.failed(status),
        }
    }

    /// What is told of a cluster under way, by the clock as it goes now. Where that was set back, what lies ahead is taken to be now: nobody
    /// gets all of that time on top.
    fn by_the_clock(&self, mut status: Status, phase: Phase) -> Status {
        if matches!(phase, Phase::Upgrading | Phase::Operators | Phase::PostAction | Phase::Failed) {
            let times = [&mut status.phase_started, &mut status.delivered, &mut status.finished];
            times.into_iter().flatten().for_each(|time| time.0 = time.0.min(self.now));
        }
        status
    }

    fn waiting(&self, status: Status) -> Found {
        if status.platform_completed.is_some() {
            return self.resuming(status);
        }
        let status = self.without_what_turned_bad(status);
        let place = self.cluster.version.as_deref().map(|version| (self.target().place_of(version), version));
        match place {
            Some((Place::There, _)) if self.is_platform_all() => return self.arrived(status),
            Some((Place::Above, version)) => return self.beyond(status, version),
            _ => {}
        }
        if let Some(reason) = self.obstacle(&status) {
            return self.barred(status, &reason, None);
        }
        if let Some(until) = self.rests_until(&status) {
            return self.barred(status, &Reason::NotSent, Some(until));
        }
        match self.permit {
            Permit::Prepare | Permit::Start if self.cluster.owner == Owner::Us => {
                let status = self.enter(status, Phase::PreAction, &Reason::Preflight);
                Found::new(status, Standing::Preparing)
            }
            Permit::Prepare | Permit::Start => claimed(self.waits(status, &Reason::Queued), Standing::Preparing),
            Permit::Wait if self.cluster.is_hub => self.queued(status, &Reason::HubLast),
            Permit::Wait => self.queued(status, &Reason::Queued),
        }
    }

    /// A cluster that has begun before, and has something left to do.
    fn resuming(&self, status: Status) -> Found {
        if let Some(reason) = self.hindrance() {
            return self.barred(status, &reason, None);
        }
        // What has failed before goes first: it must not be taken for what comes of it this time.
        let has_operators = status.operators_completed.is_none() && self.has(Part::Operators);
        if has_operators || self.has(Part::PostAction) {
            return self.barred(status, &Reason::Retried, None);
        }
        match self.permit {
            Permit::Start if self.cluster.owner == Owner::Us => self.after_platform(status),
            Permit::Start => claimed(self.waits(status, &Reason::Resuming), Standing::Resumable),
            Permit::Wait | Permit::Prepare => Found::new(self.waits(status, &Reason::Resuming), Standing::Resumable),
        }
    }

    fn queued(&self, status: Status, reason: &Reason) -> Found {
        let is_claimed = self.cluster.owner == Owner::Us;
        Found::new(self.waits(status, reason), Standing::Queued { is_claimed })
    }

    fn barred(&self, status: Status, reason: &Reason, wake: Option<Timestamp>) -> Found {
        Found { wake, ..Found::new(self.waits(status, reason), Standing::Barred) }
    }

    /// What keeps a cluster from having its turn.
    fn obstacle(&self, status: &Status) -> Option<Reason> {
        if let Some(reason) = self.hindrance() {
            return Some(reason);
        }
        if self.makes_room() {
            return Some(Reason::MakingRoom);
        }
        if let Preflight::Blocked(reason) = self.preflight().0 {
            return Some(reason);
        }
        match self.preparation(status) {
            Preparation::Failed { why } => Some(Reason::PreActionDegraded { why }),
            _ => None,
        }
    }

    /// Whether something that comes before the upgrade is on its way out, so that what takes its place can not be sent.
    fn makes_room(&self) -> bool {
        [Part::Preflight, Part::PreAction].into_iter().any(|part| self.has(part) && self.work(part).is_none())
    }

    /// Until when a cluster rests that could not be sent what comes before its upgrade, so that others have its place meanwhile.
    fn rests_until(&self, status: &Status) -> Option<Timestamp> {
        let is_told = status.reason.as_deref() == Some(Reason::NotSent.word());
        let since = status.phase_started.as_ref().filter(|_| is_told)?.0;
        Some(after(since, DELIVERY_GRACE)).filter(|until| since <= self.now && *until > self.now)
    }

    /// What was done before and has turned bad since is not done.
    fn without_what_turned_bad(&self, mut status: Status) -> Status {
        let action = self.course.pre_action.as_ref();
        if matches!(action.and_then(|action| self.doing(Part::PreAction, action)), Some(Doing::Degraded(_))) {
            status.pre_action = None;
        }
        status
    }

    /// What keeps anything from being done to a cluster.
    fn hindrance(&self) -> Option<Reason> {
        if !self.cluster.takes_works {
            return Some(Reason::NotAccepted);
        }
        if let Reach::Offline { since } = self.cluster.reach {
            return Some(Reason::Offline { since });
        }
        if let Owner::Other(by) = &self.cluster.owner {
            return Some(Reason::Owned { by: by.clone() });
        }
        if self.facts.membership == Membership::Unsure {
            return Some(Reason::Unselected);
        }
        (self.cluster.is_hub && !self.course.may_upgrade_hub).then_some(Reason::HubItself)
    }

    /// What was found out about the cluster, and when that changes though nothing is heard.
    pub(super) fn preflight(&self) -> (Preflight, Option<Timestamp>) {
        let work = self.work(Part::Preflight).filter(|work| work.says(&self.errand.preflight.name));
        let Some(work) = work else { return (Preflight::Pending, None) };
        let found = Preflight::read(work, self.target());
        if found != Preflight::Pending {
            return (found, None);
        }
        let (soon, late) = (after(work.since(), PATIENCE), after(work.since(), DELIVERY_GRACE));
        match () {
            () if work.is_refused() && soon <= self.now => {
                (Preflight::Blocked(Reason::Unreadable { why: work.trouble.clone() }), None)
            }
            () if self.has_come_for(&Reason::Unreported, late) => (Preflight::Blocked(Reason::Unreported), None),
            () if work.is_refused() => (Preflight::Pending, Some(soon)),
            () => (Preflight::Pending, Some(self.look_at(late))),
        }
    }

    fn preparation(&self, status: &Status) -> Preparation {
        let Some(action) = &self.course.pre_action else { return Preparation::Done };
        let doing = self.doing(Part::PreAction, action);
        let is_done = status.pre_action.as_ref().is_some_and(|done| done.action == action.order.name);
        match doing {
            Some(Doing::Degraded(_)) if self.is_retried(status) => Preparation::Missing,
            Some(Doing::Degraded(why)) => Preparation::Failed { why },
            Some(Doing::Available) => Preparation::Done,
            // What was cleaned up stays done.
            _ if is_done => Preparation::Done,
            None => Preparation::Missing,
            Some(Doing::Sent | Doing::Progressing) => self.running(action),
        }
    }

    fn running(&self, action: &Action) -> Preparation {
        let Some(work) = self.work(Part::PreAction) else { return Preparation::Missing };
        if self.is_up(work, action) {
            return Preparation::Failed { why: Some("it did not end in time".to_owned()) };
        }
        Preparation::Running { until: self.look_at(after(work.since(), action.limit)) }
    }

    fn preparing(&self, status: Status) -> Found {
        let mut status = self.without_what_turned_bad(status);
        if let Some(reason) = self.hindrance() {
            return self.barred(status, &reason, None);
        }
        if self.makes_room() {
            return self.barred(status, &Reason::MakingRoom, None);
        }
        let (place, version) = match self.preflight() {
            (Preflight::Blocked(reason), _) => return self.barred(status, &reason, None),
            (Preflight::Pending, None) => return self.unsent(status, &Reason::Preflight),
            (Preflight::Pending, Some(wake)) => {
                return Found::new(stays(status, &Reason::Preflight), Standing::Preparing).until(wake);
            }
            (Preflight::Clear { place, version }, _) => (place, version),
        };
        status.current_version.clone_from(&version);
        match (place, version) {
            (Place::There, _) if self.is_platform_all() => return self.arrived(status),
            (Place::Above, Some(version)) => return self.beyond(status, &version),
            _ => {}
        }
        match self.preparation(&status) {
            Preparation::Missing => {
                if status.reason.as_deref() == Some(Reason::Prepared.word()) {
                    // What is to be done is news for a cluster that waited for its turn.
                    status.phase_started = Some(Time(self.now));
                }
                self.unsent(status, &Reason::PreActionRunning)
            }
            Preparation::Running { until } => {
                Found::new(stays(status, &Reason::PreActionRunning), Standing::Preparing).until(until)
            }
            Preparation::Failed { why } => self.barred(status, &Reason::PreActionDegraded { why }, None),
            Preparation::Done => self.prepared(status, place),
        }
    }

    /// A cluster that is yet to be sent something. One that can not be gives its place to others for a while.
    fn unsent(&self, status: Status, reason: &Reason) -> Found {
        // Once for what is found out, and once for the action.
        let until = after(after(self.entered(&status), DELIVERY_GRACE), DELIVERY_GRACE);
        if self.has_come(until) {
            return self.barred(status, &Reason::NotSent, None);
        }
        Found::new(stays(status, reason), Standing::Preparing).until(self.look_at(until))
    }

    /// A cluster for which all is done that comes before its upgrade.
    fn prepared(&self, mut status: Status, place: Place) -> Found {
        if let Some(action) = &self.course.pre_action
            && status.pre_action.as_ref().is_none_or(|done| done.action != action.order.name)
        {
            status.pre_action = Some(ActionDone { action: action.order.name.clone(), time: Time(self.now) });
        }
        if self.permit != Permit::Start {
            return Found::new(stays(status, &Reason::Prepared), Standing::Ready);
        }
        if self.cluster.owner != Owner::Us {
            return claimed(stays(status, &Reason::Prepared), Standing::Ready);
        }
        status.started = Some(Time(self.now));
        status.from_version.clone_from(&status.current_version);
        if place == Place::There {
            return self.after_platform(status);
        }
        Found::new(self.enter(status, Phase::Upgrading, &Reason::NotDelivered), Standing::Begun)
    }

    fn upgrading(&self, mut status: Status) -> Found {
        let target = self.target();
        let work = self.work(Part::Platform).filter(|work| work.says(&self.errand.upgrade.name));
        let running =
            work.filter(|work| work.is_applied()).map(|work| Running::read(&work.feedback)).unwrap_or_default();
        if let Some(version) = &running.version {
            status.current_version = Some(version.clone());
        }
        self.note_delivery(&mut status, work);
        match (target.place(&running), &running.version) {
            (Place::There, _) => return self.after_platform(status),
            (Place::Above, Some(version)) => return self.overtaken(status, version),
            _ => {}
        }
        let until = after(self.counted_from(&status), self.course.platform_limit);
        if self.has_come(until) {
            let last = work.and_then(|work| progress(work).or_else(|| work.trouble.clone()));
            let last = last.or_else(|| status.delivered.is_none().then(|| NEVER_TAKEN_UP.to_owned()));
            return self.fail(status, Phase::Upgrading, &Reason::TimedOut { last }, running.is_moving);
        }
        let is_partial = status.delivered.is_some() && running.is_moving;
        let standing = if is_partial { Standing::Partial } else { Standing::Begun };
        let reason = self.course_of(work, &status);
        Found::new(stays(status, &reason), standing).until(self.look_at(until))
    }

    /// From when the time counts that something may take: from when the agent has taken it up, or a while after it was sent.
    fn counted_from(&self, status: &Status) -> Timestamp {
        status.delivered.as_ref().map_or(after(self.entered(status), DELIVERY_GRACE), |time| time.0.min(self.now))
    }

    /// When the phase began.
    fn entered(&self, status: &Status) -> Timestamp {
        status.phase_started.as_ref().map_or(self.now, |time| time.0.min(self.now))
    }

    /// Takes note of when the agent has taken something up.
    fn note_delivery(&self, status: &mut Status, work: Option<&PartWork>) {
        if status.delivered.is_none() && work.is_some_and(PartWork::is_applied) {
            status.delivered = Some(Time(self.now));
        }
    }

    /// What is said of an upgrade under way.
    fn course_of(&self, work: Option<&PartWork>, status: &Status) -> Reason {
        let Some(work) = work else { return Reason::NotDelivered };
        if work.is_refused() {
            return Reason::NotApplied { why: work.trouble.clone() };
        }
        if status.delivered.is_none() {
            return Reason::NotDelivered;
        }
        let target = self.target();
        let desired = work.feedback.text("desired").filter(|_| work.feedback.text("state").is_some());
        // Until the cluster has taken notice, what it desires is what it had before.
        if let (Some(desired), Some(wanted)) = (desired, target.version())
            && desired != wanted
            && status.from_version.as_deref() != Some(desired)
        {
            return Reason::Contested { desired: desired.to_owned(), target: wanted.to_owned() };
        }
        if work.feedback.text("accepted") == Some("False") {
            return Reason::ReleaseNotAccepted { why: progress(work) };
        }
        Reason::Upgrading { message: progress(work) }
    }

    /// What comes after the platform, which is upgraded.
    pub(super) fn after_platform(&self, mut status: Status) -> Found {
        status.platform_completed.get_or_insert(Time(self.now));
        if self.course.operators.is_some() && status.operators_completed.is_none() {
            let reason = Reason::OperatorsRunning { said: None };
            // That the platform was delivered says nothing of what comes now.
            status.delivered = None;
            return Found::new(self.enter(status, Phase::Operators, &reason), Standing::Partial);
        }
        self.after_operators(status)
    }

    fn operators(&self, mut status: Status) -> Found {
        if self.course.operators.is_none() {
            return self.after_operators(status);
        }
        if self.course.operator_order.is_none() {
            // Nobody knows by what they could be upgraded. The upgrade says so, and no time is counted.
            return Found::new(stays(status, &Reason::OperatorsRunning { said: None }), Standing::Partial);
        }
        let work = self.work(Part::Operators);
        let outcome = work.filter(|work| work.is_applied()).map(|work| work.operators);
        status.operators = work.and_then(PartWork::said_of_operators).or(status.operators);
        self.note_delivery(&mut status, work);
        let said = || status.operators.clone().or_else(|| work.and_then(|work| work.trouble.clone()));
        match outcome {
            Some(Outcome::Succeeded) => {
                status.operators_completed = Some(Time(self.now));
                return self.after_operators(status);
            }
            Some(Outcome::Failed) => {
                let reason = Reason::OperatorsFailed { said: said() };
                return self.fail(status, Phase::Operators, &reason, false);
            }
            _ => {}
        }
        let until = after(self.counted_from(&status), self.course.operators_limit);
        if self.has_come(until) {
            let never = status.delivered.is_none().then(|| NEVER_TAKEN_UP.to_owned());
            let reason = Reason::OperatorsTimedOut { said: said().or(never) };
            return self.fail(status, Phase::Operators, &reason, false);
        }
        let reason = Reason::OperatorsRunning { said: said() };
        Found::new(stays(status, &reason), Standing::Partial).until(self.look_at(until))
    }

    fn after_operators(&self, status: Status) -> Found {
        let is_done =
            |action: &Action| status.post_action.as_ref().is_some_and(|done| done.action == action.order.name);
        if self.course.post_action.as_ref().is_some_and(|action| !is_done(action)) {
            return Found::new(self.enter(status, Phase::PostAction, &Reason::PostActionRunning), Standing::Partial);
        }
        self.complete(status, &Reason::Upgraded)
    }

    fn checking(&self, mut status: Status) -> Found {
        let Some(action) = &self.course.post_action else { return self.complete(status, &Reason::Upgraded) };
        match self.doing(Part::PostAction, action) {
            Some(Doing::Available) => {
                status.post_action = Some(ActionDone { action: action.order.name.clone(), time: Time(self.now) });
                return self.complete(status, &Reason::Upgraded);
            }
            Some(Doing::Degraded(why)) => {
                return self.fail(status, Phase::PostAction, &Reason::PostActionDegraded { why }, false);
            }
            _ => {}
        }
        let until = after(self.entered(&status), action.limit);
        if self.has_come(until) {
            let why = Some("it did not end in time".to_owned());
            return self.fail(status, Phase::PostAction, &Reason::PostActionDegraded { why }, false);
        }
        Found::new(stays(status, &Reason::PostActionRunning), Standing::Partial).until(self.look_at(until))
    }

    fn failed(&self, status: Status) -> Found {
        let at = status.failed_phase.unwrap_or(Phase::Waiting);
        if matches!(at, Phase::Waiting | Phase::PreAction) {
            return self.beyond_still(status);
        }
        if let Some(found) = self.late_success(&status, at) {
            return found;
        }
        let running = self.work(Part::Platform).map(|work| Running::read(&work.feedback)).unwrap_or_default();
        if let (Phase::Upgrading, Place::Above, Some(version)) = (at, self.target().place(&running), &running.version) {
            return self.overtaken(status, version);
        }
        if let Some(retried) = self.asked_again(&status) {
            return self.retry(status, retried);
        }
        let is_moving = at == Phase::Upgrading && running.is_moving;
        let was_begun = status.started.is_some();
        Found::new(status, Standing::Failed { was_begun, is_moving })
    }

    /// A cluster that was beyond the target when somebody last looked. It is looked at again if somebody asks for that, or if that was only
    /// what it claimed and it claims something else now.
    fn beyond_still(&self, status: Status) -> Found {
        if let Some(retried) = self.asked_again(&status) {
            return self.retry(status, retried);
        }
        let is_beyond = |version: &str| self.target().place_of(version) == Place::Above;
        // What it claims may lag behind what it has told.
        let told = [self.cluster.version.as_deref(), status.current_version.as_deref()];
        if told.into_iter().flatten().any(is_beyond) {
            let was_begun = status.started.is_some();
            return Found::new(status, Standing::Failed { was_begun, is_moving: false });
        }
        Found::new(self.waits(status, &Reason::Queued), Standing::Barred)
    }

    /// What becomes of a cluster that has succeeded after it had failed.
    fn late_success(&self, status: &Status, at: Phase) -> Option<Found> {
        let mut status = status.clone();
        match at {
            Phase::Upgrading => {
                let work = self.work(Part::Platform).filter(|work| work.is_applied())?;
                let running = Running::read(&work.feedback);
                if self.target().place(&running) != Place::There {
                    return None;
                }
                status.current_version = running.version;
                status.platform_completed = Some(Time(self.now));
            }
            Phase::Operators => {
                let work = self.work(Part::Operators).filter(|work| work.is_applied())?;
                if work.operators != Outcome::Succeeded {
                    return None;
                }
                status.operators = work.said_of_operators().or(status.operators);
                status.operators_completed = Some(Time(self.now));
            }
            _ => {
                let action = self.course.post_action.as_ref()?;
                if self.doing(Part::PostAction, action)? != Doing::Available {
                    return None;
                }
                status.post_action = Some(ActionDone { action: action.order.name.clone(), time: Time(self.now) });
            }
        }
        Some(self.go_on(status))
    }

    /// A cluster that has got something done after all. What is left to do waits for its turn.
    fn go_on(&self, status: Status) -> Found {
        let next = self.after_platform(status.clone());
        let is_over = next.standing == Standing::Complete;
        if is_over { next } else { Found::new(self.waits(status, &Reason::Resuming), Standing::Resumable) }
    }

    /// When somebody has asked to try again what has failed, if that is still to be done.
    fn asked_again(&self, status: &Status) -> Option<Timestamp> {
        self.course.retried.filter(|retried| wants_retry(status, *retried))
    }

    fn retry(&self, mut status: Status, retried: Timestamp) -> Found {
        let acknowledged = status.acknowledged.get_or_insert_with(Acknowledged::default);
        acknowledged.retried = Some(Time(retried));
        let is_resumable = status.platform_completed.is_some();
        (status.delivered, status.operators) = (None, None);
        if status.platform_completed.is_none() {
            // It is asked again.
            status.current_version = None;
        }
        let status = self.waits(status, &Reason::Retried);
        let standing = if is_resumable { Standing::Resumable } else { Standing::Barred };
        Found::new(status, standing)
    }

    /// Whether the action before the upgrade has failed, or has taken too long.
    pub(super) fn has_failed(&self, action: &Action) -> bool {
        match self.doing(Part::PreAction, action) {
            Some(Doing::Degraded(_)) => true,
            Some(Doing::Sent | Doing::Progressing) => matches!(self.running(action), Preparation::Failed { .. }),
            Some(Doing::Available) | None => false,
        }
    }

    /// Whether somebody has asked to try the action before the upgrade again since it was sent.
    pub(super) fn is_retried(&self, status: &Status) -> bool {
        let Some(work) = self.work(Part::PreAction) else { return false };
        let taken_up = status.acknowledged.as_ref().and_then(|acknowledged| acknowledged.retried.as_ref());
        let retried = self.course.retried.max(taken_up.map(|time| time.0));
        // One that lies ahead was asked for before the clock was set back: nothing could be sent after it.
        retried.is_some_and(|retried| work.since() < retried && retried <= self.now)
    }

    /// Whether nothing is asked for but the platform.
    fn is_platform_all(&self) -> bool {
        self.course.operators.is_none()
    }

    /// A cluster that is found to be there. If it was begun before, what comes after its upgrade is still to be done.
    fn arrived(&self, mut status: Status) -> Found {
        if status.started.is_none() {
            return self.complete(status, &Reason::AlreadyThere);
        }
        status.platform_completed = Some(Time(self.now));
        self.go_on(status)
    }

    fn beyond(&self, status: Status, version: &str) -> Found {
        let reason = Reason::Downgrade { from: version.to_owned(), to: self.target().title().to_owned() };
        self.fail(status, Phase::Waiting, &reason, false)
    }

    /// A cluster that somebody else has brought beyond the target meanwhile.
    fn overtaken(&self, mut status: Status, version: &str) -> Found {
        status.current_version = Some(version.to_owned());
        let reason = Reason::Overtaken { at: version.to_owned(), target: self.target().title().to_owned() };
        self.fail(status, Phase::Waiting, &reason, false)
    }

    fn complete(&self, mut status: Status, reason: &Reason) -> Found {
        status.finished = Some(Time(self.now));
        Found::new(self.enter(status, Phase::Complete, reason), Standing::Complete)
    }

    fn fail(&self, mut status: Status, at: Phase, reason: &Reason, is_moving: bool) -> Found {
        status.finished = Some(Time(self.now));
        let mut status = self.enter(status, Phase::Failed, reason);
        status.failed_phase = Some(at);
        let was_begun = status.started.is_some();
        Found::new(status, Standing::Failed { was_begun, is_moving })
    }

    /// A cluster that waits.
    pub(super) fn waits(&self, mut status: Status, reason: &Reason) -> Status {
        status.finished = None;
        self.enter(status, Phase::Waiting, reason)
    }

    fn enter(&self, mut status: Status, phase: Phase, reason: &Reason) -> Status {
        if status.phase != Some(phase) {
            status.phase = Some(phase);
            status.phase_started = Some(Time(self.now));
            status.failed_phase = None;
        }
        stays(status, reason)
    }
}

/// What is said of something that no agent has taken up.
const NEVER_TAKEN_UP: &str = "its agent has not taken it up";

/// A cluster that has to be told first whose it is.
fn claimed(status: Status, standing: Standing) -> Found {
    Found { needs_claim: true, ..Found::new(status, standing) }
}

fn stays(mut status: Status, reason: &Reason) -> Status {
    status.reason = Some(reason.word().to_owned());
    status.message = Some(reason.to_string());
    status
}

fn wants_retry(status: &Status, retried: Timestamp) -> bool {
    let is_before = status.finished.as_ref().is_some_and(|finished| finished.0 <= retried);
    is_before && !took_up(status, retried)
}

fn took_up(status: &Status, retried: Timestamp) -> bool {
    let taken_up = status.acknowledged.as_ref().and_then(|acknowledged| acknowledged.retried.as_ref());
    taken_up.is_some_and(|time| time.0 >= retried)
}

/// How far a cluster says that its upgrade is.
fn progress(work: &PartWork) -> Option<String> {
    let text = |name| work.feedback.text(name).map(str::to_owned);
    let is_failing = work.feedback.text("failing") == Some("True");
    let is_refused = work.feedback.text("accepted") == Some("False");
    let trouble = if is_refused { text("acceptedMessage") } else { text("failingMessage").filter(|_| is_failing) };
    trouble.or_else(|| text("message"))
}
