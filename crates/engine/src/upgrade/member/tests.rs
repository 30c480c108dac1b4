//! Each phase of a cluster, what makes it go on, and what is done about it.

use drover_api::{
    cluster::{TargetVersion, UpgradeAction},
    drover::Acknowledged,
    grammar::SetFingerprint,
    work::{ManifestWork, ManifestWorkSpec},
};
use serde_json::json;

use super::*;
use crate::{upgrade::feedback::Feedback, workreport::Note};

const HOUR: i64 = 3600;
const FROM: &str = "4.11.9";
const TO: &str = "4.12.0";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

fn target(version: &str) -> Target {
    Target::of(&TargetVersion { version: Some(version.to_owned()), ..TargetVersion::default() })
}

fn job(name: &str) -> Action {
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "ops" } });
    let written: UpgradeAction =
        serde_json::from_value(json!({ "manifestWork": { "workload": { "manifests": [job] } } })).expect("an action");
    Action::of(&written, Duration::from_hours(1))
}

/// A cluster with all that it is decided by. Nothing is asked for but the platform, which takes two hours at most.
#[derive(Clone)]
struct Case {
    course: Course,
    membership: Membership,
    cluster: Option<Cluster>,
    record: Option<ClusterUpgrade>,
    works: BTreeMap<Part, PartWork>,
    now: Timestamp,
}

impl Case {
    /// One that is selected, can be reached, is this upgrade's, and waits.
    fn new() -> Self {
        let upgrade = UpgradeRef { namespace: "default".to_owned(), name: "up".to_owned(), uid: None };
        let course = Course {
            upgrade,
            errand: Errand::of(target(TO)),
            operators: None,
            operator_order: None,
            pre_action: None,
            post_action: None,
            platform_limit: Duration::from_hours(2),
            operators_limit: Duration::from_mins(10),
            may_upgrade_hub: false,
            retried: None,
            is_at_rest: false,
            attentive_since: at(-HOUR),
        };
        let cluster = Cluster {
            uid: Some("a".to_owned()),
            reach: Reach::Online,
            takes_works: true,
            version: Some(FROM.to_owned()),
            owner: Owner::Us,
            is_hub: false,
        };
        let membership = Membership::In { is_canary: false };
        let record = Some(ClusterUpgrade::new("up", spec(&course, &cluster, false)));
        let case = Self { course, membership, cluster: Some(cluster), record, works: BTreeMap::new(), now: at(0) };
        case.says(|status| status.phase = Some(Phase::Waiting))
    }

    /// One in that phase since noon, with its works. What comes before is done.
    fn in_phase(phase: Phase) -> Self {
        let mut case = Self::new().says(|status| {
            status.phase = Some(phase);
            status.phase_started = Some(Time(at(0)));
            let is_begun = !matches!(phase, Phase::Waiting | Phase::PreAction);
            status.started = is_begun.then(|| Time(at(0)));
            status.from_version = is_begun.then(|| FROM.to_owned());
            if matches!(phase, Phase::Operators | Phase::PostAction | Phase::Complete) {
                status.platform_completed = Some(Time(at(0)));
            }
            if matches!(phase, Phase::PostAction | Phase::Complete) {
                status.operators_completed = Some(Time(at(0)));
            }
        });
        if phase == Phase::PreAction {
            case = case.runs(Part::Preflight, FROM, "Completed");
        }
        if matches!(phase, Phase::Upgrading | Phase::Operators | Phase::PostAction) {
            case = case.runs(Part::Platform, FROM, "Completed");
        }
        case
    }

    /// One that has failed at that, an hour after noon.
    fn failed_at(phase: Phase) -> Self {
        let case = Self::in_phase(phase).says(|status| {
            (status.phase, status.failed_phase) = (Some(Phase::Failed), Some(phase));
            (status.reason, status.finished) = (Some("TimedOut".to_owned()), Some(Time(at(HOUR))));
        });
        case.later(2 * HOUR)
    }

    fn says(mut self, change: impl FnOnce(&mut ClusterUpgradeStatus)) -> Self {
        change(self.record.as_mut().expect("a record").status.get_or_insert_default());
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Course)) -> Self {
        change(&mut self.course);
        self
    }

    fn is(mut self, change: impl FnOnce(&mut Cluster)) -> Self {
        change(self.cluster.as_mut().expect("a cluster"));
        self
    }

    fn later(mut self, seconds: i64) -> Self {
        self.now = at(seconds);
        self
    }

    fn with_pre_action(self) -> Self {
        self.with(|course| course.pre_action = Some(job("backup")))
    }

    fn with_post_action(self) -> Self {
        self.with(|course| course.post_action = Some(job("check")))
    }

    fn with_operators(mut self) -> Self {
        if let Some(record) = &mut self.record {
            record.spec.operators = Some(OperatorUpgrades::default());
        }
        self.with(|course| {
            course.operators = Some(OperatorUpgrades::default());
            course.operator_order = Some(Order::of(ManifestWorkSpec::default()));
        })
    }

    /// A work that was sent at noon, of which its agent says this.
    fn work(mut self, part: Part, conditions: &[(&str, &str)], feedback: &[(&str, &str)]) -> Self {
        let condition = |(type_, status): &(&str, &str)| {
            json!({ "type": type_, "status": status, "reason": "", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2027-01-15T08:00:00Z" })
        };
        let value = |(name, value): &(&str, &str)| match value.parse::<i64>() {
            Ok(count) => json!({ "name": name, "fieldValue": { "type": "Integer", "integer": count } }),
            Err(_) => json!({ "name": name, "fieldValue": { "type": "String", "string": value } }),
        };
        let meta = match part {
            Part::Operators => json!({ "ordinal": 0, "group": "batch", "resource": "jobs",
                "namespace": "installplan-approver", "name": "installplan-approver" }),
            _ => json!({ "ordinal": 0, "resource": "clusterversions" }),
        };
        let values: Vec<_> = feedback.iter().map(value).collect();
        let manifest = json!({ "resourceMeta": meta, "conditions": [], "statusFeedback": { "values": values } });
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        let work: ManifestWork = serde_json::from_value(json!({
            "metadata": { "name": "work", "generation": 1 }, "spec": {},
            "status": { "conditions": conditions, "resourceStatus": { "manifests": [manifest] } },
        }))
        .expect("a work");
        let note = Note { set: self.order(part), since: at(0) };
        self.works.insert(part, PartWork::of(&work, part, note));
        self
    }

    /// What the work of a part is to say.
    fn order(&self, part: Part) -> SetFingerprint {
        let target = Target::of(&self.record.as_ref().expect("a record").spec.target);
        let action = |action: &Option<Action>| action.as_ref().expect("an action").order.name.clone();
        match part {
            Part::Preflight => Errand::of(target).preflight.name,
            Part::Platform => Errand::of(target).upgrade.name,
            Part::PreAction => action(&self.course.pre_action),
            Part::PostAction => action(&self.course.post_action),
            Part::Operators => self.course.operator_order.as_ref().expect("operators").name.clone(),
        }
    }

    /// A work about the ClusterVersion, which says this.
    fn runs(self, part: Part, version: &str, state: &str) -> Self {
        self.work(part, &[("Applied", "True"), ("Available", "True")], &[("version", version), ("state", state)])
    }

    /// A work of an action that is under way, done or failed.
    fn does(self, part: Part, how: &Doing) -> Self {
        let [complete, degraded] = match how {
            Doing::Available => ["True", "False"],
            Doing::Degraded(_) => ["False", "True"],
            Doing::Sent | Doing::Progressing => ["False", "False"],
        };
        let said = [("Applied", "True"), ("Available", "True"), ("Complete", complete), ("Degraded", degraded)];
        self.work(part, &said, &[])
    }

    fn leaving(mut self, part: Part) -> Self {
        self.works.get_mut(&part).expect("a work").is_leaving = true;
        self
    }

    fn look(&self, permit: Permit) -> Look {
        let facts = Facts {
            membership: self.membership,
            cluster: self.cluster.as_ref(),
            record: self.record.as_ref(),
            works: &self.works,
        };
        look(facts, &self.course, permit, self.now)
    }

    /// What it is told, and what becomes of it once that is stored.
    fn told(&self, permit: Permit) -> (Phase, String, Standing) {
        let Some(Act::Tell(status)) = self.look(permit).act else { panic!("{:?}", self.look(permit)) };
        let stored = self.clone().says(|stored| *stored = (*status).clone());
        let standing = stored.look(Permit::Wait).standing;
        (status.phase.expect("a phase"), status.reason.expect("a reason"), standing)
    }

    fn act(&self) -> String {
        word(self.look(Permit::Wait).act.as_ref())
    }
}

/// What is done, in a word.
fn word(act: Option<&Act>) -> String {
    match act {
        None => "nothing".to_owned(),
        Some(Act::Make(_)) => "make".to_owned(),
        Some(Act::Retarget(_)) => "retarget".to_owned(),
        Some(Act::Tell(status)) => format!("tell {:?}", status.phase.unwrap_or(Phase::Waiting)),
        Some(Act::Claim) => "claim".to_owned(),
        Some(Act::Release) => "release".to_owned(),
        Some(Act::Send(part, _)) => format!("send {part}"),
        Some(Act::Withdraw(parts)) => {
            format!("withdraw {}", parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        }
        Some(Act::Drop) => "drop".to_owned(),
    }
}

fn expect((phase, reason, standing): (Phase, String, Standing), in_phase: Phase, why: &str, stands: Standing) {
    assert_eq!((phase, reason.as_str(), standing), (in_phase, why, stands));
}

const BEGUN_AND_FAILED: Standing = Standing::Failed { was_begun: true, is_moving: false };

// ---- The way through

/// Does what is to be done about a cluster, until nothing is. Every work does what it is for at once.
fn follow(mut case: Case, permit: impl Fn(&Standing) -> Permit) -> (Case, Vec<String>) {
    let mut acts = Vec::new();
    for _ in 0..60 {
        let permit = permit(&case.look(Permit::Wait).standing);
        let Some(act) = case.look(permit).act else { return (case, acts) };
        acts.push(word(Some(&act)));
        match act {
            Act::Make(spec) => case.record = Some(ClusterUpgrade::new("up", *spec)),
            Act::Tell(status) => case = case.says(|stored| *stored = *status),
            Act::Claim => case = case.is(|cluster| cluster.owner = Owner::Us),
            Act::Release => case = case.is(|cluster| cluster.owner = Owner::Nobody),
            Act::Withdraw(parts) => case.works.retain(|part, _| !parts.contains(part)),
            Act::Send(Part::Preflight, _) => case = case.runs(Part::Preflight, FROM, "Completed"),
            Act::Send(Part::Platform, _) => case = case.runs(Part::Platform, TO, "Completed"),
            Act::Send(Part::Operators, _) => {
                case = case.work(Part::Operators, &[("Applied", "True")], &[("succeeded", "1")]);
            }
            Act::Send(part, _) => case = case.does(part, &Doing::Available),
            Act::Drop => case.record = None,
            Act::Retarget(_) => panic!("nobody has edited anything"),
        }
    }
    panic!("it never ends: {acts:?}");
}

#[test]
fn a_cluster_goes_from_phase_to_phase() {
    let mut case = Case::new().with_pre_action().with_operators().with_post_action();
    case = case.is(|cluster| cluster.owner = Owner::Nobody);
    case.record = None;
    let by_standing = |standing: &Standing| match standing {
        Standing::Queued { .. } => Permit::Prepare,
        Standing::Ready => Permit::Start,
        _ => Permit::Wait,
    };
    let (case, acts) = follow(case, by_standing);
    let expected = [
        "make",
        "claim",
        "tell PreAction",
        "send preflight",
        "tell PreAction",
        "send pre-action",
        "tell Upgrading",
        "withdraw preflight",
        "send platform",
        "tell Operators",
        "send operators",
        "tell PostAction",
        "send post-action",
        "tell Complete",
        "withdraw platform operators",
        "release",
    ];
    assert_eq!(acts, expected);
    assert_eq!(case.look(Permit::Wait).standing, Standing::Complete);
    assert_eq!(
        case.works.keys().copied().collect::<Vec<_>>(),
        [Part::PreAction, Part::PostAction],
        "others may not be done"
    );
    let (case, acts) = follow(case.with(|course| course.is_at_rest = true), by_standing);
    assert_eq!((acts, case.works.len()), (vec!["withdraw pre-action post-action".to_owned()], 0));
}

#[test]
fn nothing_is_done_without_a_turn() {
    let (case, acts) = follow(Case::new().is(|cluster| cluster.owner = Owner::Nobody), |_| Permit::Wait);
    assert_eq!(acts, ["tell Waiting"]);
    assert_eq!(case.look(Permit::Wait).standing, Standing::Queued { is_claimed: false });
    let prepared = Case::in_phase(Phase::PreAction).says(|status| status.reason = Some("Prepared".to_owned()));
    let (case, acts) = follow(prepared, |_| Permit::Prepare);
    assert_eq!(
        (acts.as_slice(), case.look(Permit::Wait).standing),
        (["tell PreAction".to_owned()].as_slice(), Standing::Ready)
    );
    let unused = Case::new().says(|status| status.reason = Some("Queued".to_owned()));
    let told = unused.told(Permit::Wait);
    assert_eq!(told.2, Standing::Queued { is_claimed: true });
}

#[test]
fn a_promise_that_is_not_kept_is_taken_back() {
    let (_, acts) = follow(Case::new(), |_| Permit::Wait);
    assert_eq!(acts, ["tell Waiting", "release"]);
}

// ---- What keeps a cluster from its turn

#[test]
fn who_can_not_have_its_turn_waits_and_says_why() {
    let other = || Owner::Other("default/other".to_owned());
    let mut unsure = Case::new();
    unsure.membership = Membership::Unsure;
    let cases = [
        (Case::new().is(|cluster| cluster.takes_works = false), "NotAccepted"),
        (Case::new().is(|cluster| cluster.reach = Reach::Offline { since: None }), "Offline"),
        (Case::new().is(|cluster| cluster.owner = other()), "OwnedByAnotherUpgrade"),
        (Case::new().is(|cluster| cluster.is_hub = true), "HubItself"),
        (unsure, "Unselected"),
        (Case::new().runs(Part::Preflight, "4.11.20", "Partial"), "Busy"),
        (
            Case::in_phase(Phase::PreAction).with_pre_action().does(Part::PreAction, &Doing::Degraded(None)).says(
                |status| {
                    status.phase = Some(Phase::Waiting);
                },
            ),
            "PreActionDegraded",
        ),
    ];
    for (case, reason) in cases {
        for permit in [Permit::Wait, Permit::Prepare, Permit::Start] {
            expect(case.told(permit), Phase::Waiting, reason, Standing::Barred);
        }
        // In the middle of what comes before, its place is free again.
        let preparing = case.says(|status| status.phase = Some(Phase::PreAction));
        expect(preparing.told(Permit::Start), Phase::Waiting, reason, Standing::Barred);
        assert_eq!(preparing.look(Permit::Wait).standing, Standing::Preparing, "its place is free once that is stored");
    }
    let hub = Case::new().is(|cluster| cluster.is_hub = true).with(|course| course.may_upgrade_hub = true);
    expect(hub.told(Permit::Wait), Phase::Waiting, "HubComesLast", Standing::Queued { is_claimed: true });
}

#[test]
fn who_has_no_place_for_works_gets_no_record() {
    let mut case = Case::new().is(|cluster| cluster.takes_works = false);
    case.record = None;
    assert_eq!((case.act().as_str(), case.look(Permit::Start).standing), ("nothing", Standing::Barred));
    assert_eq!(case.is(|cluster| cluster.takes_works = true).act(), "make");
}

#[test]
fn who_is_there_or_beyond_is_not_upgraded() {
    let there = || Case::new().is(|cluster| cluster.version = Some(TO.to_owned()));
    expect(there().told(Permit::Start), Phase::Complete, "AlreadyAtTarget", Standing::Complete);
    expect(there().with_post_action().told(Permit::Wait), Phase::Complete, "AlreadyAtTarget", Standing::Complete);
    expect(there().with_operators().told(Permit::Prepare), Phase::PreAction, "Preflight", Standing::Preparing);
    let beyond = Case::new().is(|cluster| cluster.version = Some("4.13.0".to_owned()));
    let failed = Standing::Failed { was_begun: false, is_moving: false };
    expect(beyond.told(Permit::Start), Phase::Failed, "Downgrade", failed.clone());
    // The same if only its ClusterVersion says so.
    let silent = || Case::in_phase(Phase::PreAction).is(|cluster| cluster.version = None);
    let (told_there, told_beyond) =
        (silent().runs(Part::Preflight, TO, "Completed"), silent().runs(Part::Preflight, "4.13.0", "Completed"));
    expect(told_there.told(Permit::Start), Phase::Complete, "AlreadyAtTarget", Standing::Complete);
    expect(told_beyond.told(Permit::Start), Phase::Failed, "Downgrade", failed);
    // Whose platform is there goes on with what is left of what was asked for.
    let silent = silent().with_operators().runs(Part::Preflight, TO, "Completed");
    expect(silent.told(Permit::Start), Phase::Operators, "OperatorsRunning", Standing::Partial);
}

#[test]
fn who_was_begun_and_is_found_there_is_checked_all_the_same() {
    let begun = Case::new().with_post_action().is(|cluster| cluster.version = Some(TO.to_owned()));
    let begun = begun.says(|status| status.started = Some(Time(at(-HOUR))));
    expect(begun.told(Permit::Wait), Phase::Waiting, "Resuming", Standing::Resumable);
}

#[test]
fn what_is_found_out_before_may_take_its_time_but_not_for_ever() {
    let sent = || Case::in_phase(Phase::PreAction).work(Part::Preflight, &[], &[]);
    let waits = sent().later(60).look(Permit::Wait);
    assert_eq!((waits.standing, waits.wake), (Standing::Preparing, Some(at(300))));
    expect(sent().later(300).told(Permit::Wait), Phase::Waiting, "Unreported", Standing::Barred);
    let refused = || sent().work(Part::Preflight, &[("Applied", "False")], &[]);
    assert_eq!(refused().later(30).look(Permit::Wait).wake, Some(at(60)));
    expect(refused().later(60).told(Permit::Wait), Phase::Waiting, "Unreadable", Standing::Barred);
}

#[test]
fn what_was_found_out_for_another_target_is_found_out_anew() {
    let stale = Case::in_phase(Phase::PreAction).runs(Part::Preflight, FROM, "Completed");
    let mut stale = stale.says(|status| {
        status.reason = Some("Preflight".to_owned());
        status.message = Some(Reason::Preflight.to_string());
    });
    stale.works.get_mut(&Part::Preflight).expect("a work").sent.set = SetFingerprint::of([7; 8]);
    assert_eq!((stale.act().as_str(), stale.look(Permit::Start).standing), ("withdraw preflight", Standing::Preparing));
    let leaving = stale.clone().leaving(Part::Preflight);
    assert_eq!(leaving.told(Permit::Wait).1, "MakingRoom");
    stale.works.clear();
    assert_eq!(stale.act(), "send preflight");
}

#[test]
fn what_was_too_late_stays_so_for_who_has_just_begun_to_look() {
    let unreported = Case::in_phase(Phase::PreAction).work(Part::Preflight, &[], &[]);
    let endless = Case::in_phase(Phase::PreAction).with_pre_action().does(Part::PreAction, &Doing::Progressing);
    for case in [unreported, endless] {
        let case = case.later(2 * HOUR);
        let Some(Act::Tell(status)) = case.look(Permit::Wait).act else { panic!("{:?}", case.look(Permit::Wait)) };
        let told = case.says(|stored| *stored = *status).is(|cluster| cluster.owner = Owner::Nobody);
        let restarted = told.with(|course| course.attentive_since = at(2 * HOUR));
        assert_eq!((restarted.act().as_str(), restarted.look(Permit::Wait).standing), ("nothing", Standing::Barred));
    }
}

// ---- The action before

#[test]
fn an_action_before_gates_its_cluster() {
    let case = |how| Case::in_phase(Phase::PreAction).with_pre_action().does(Part::PreAction, &how);
    let running = case(Doing::Progressing).look(Permit::Start);
    assert_eq!((running.standing, running.wake), (Standing::Preparing, Some(at(HOUR))));
    expect(case(Doing::Available).told(Permit::Wait), Phase::PreAction, "Prepared", Standing::Ready);
    expect(case(Doing::Degraded(None)).told(Permit::Start), Phase::Waiting, "PreActionDegraded", Standing::Barred);
    expect(
        case(Doing::Progressing).later(HOUR).told(Permit::Start),
        Phase::Waiting,
        "PreActionDegraded",
        Standing::Barred,
    );
    // It recovers by itself.
    let waits = case(Doing::Available).says(|status| status.phase = Some(Phase::Waiting));
    expect(waits.told(Permit::Wait), Phase::Waiting, "Queued", Standing::Queued { is_claimed: true });
}

#[test]
fn an_action_that_was_done_stays_done_unless_it_turns_bad() {
    let done = |case: Case| {
        let action = case.course.pre_action.as_ref().expect("an action").order.name.clone();
        case.says(|status| status.pre_action = Some(drover_api::drover::ActionDone { action, time: Time(at(0)) }))
    };
    let case = || Case::in_phase(Phase::PreAction).with_pre_action();
    expect(done(case()).told(Permit::Start), Phase::Upgrading, "NotDelivered", Standing::Begun);
    let bad = done(case().does(Part::PreAction, &Doing::Degraded(None)));
    expect(bad.told(Permit::Start), Phase::Waiting, "PreActionDegraded", Standing::Barred);
    // Also if somebody has asked for a retry of others meanwhile: it is done again.
    let asked = bad.with(|course| course.retried = Some(at(60))).later(120);
    let (_, acts) = follow(asked, |standing| match standing {
        Standing::Queued { .. } => Permit::Prepare,
        _ => Permit::Start,
    });
    let again = acts.iter().position(|act| act == "send pre-action").expect("it is done again");
    let begun = acts.iter().position(|act| act == "tell Upgrading").expect("it is begun");
    assert!(acts.contains(&"withdraw pre-action".to_owned()) && again < begun, "{acts:?}");
    // Another action has not been done.
    let edited = done(case()).with(|course| course.pre_action = Some(job("another")));
    expect(edited.told(Permit::Start), Phase::PreAction, "PreActionRunning", Standing::Preparing);
}

#[test]
fn an_edited_action_is_made_anew() {
    let before = Case::in_phase(Phase::PreAction).with_pre_action().does(Part::PreAction, &Doing::Progressing);
    let before = before.with(|course| course.pre_action = Some(job("another")));
    let after = Case::in_phase(Phase::PostAction).with_post_action().does(Part::PostAction, &Doing::Progressing);
    let after = after.with(|course| course.post_action = Some(job("another")));
    for (case, part) in [(before, Part::PreAction), (after, Part::PostAction)] {
        let Some(Act::Tell(status)) = case.look(Permit::Wait).act else { panic!("{:?}", case.look(Permit::Wait)) };
        let mut case = case.says(|stored| *stored = *status);
        assert_eq!(case.act(), format!("withdraw {part}"));
        let leaving = case.clone().leaving(part);
        assert!(leaving.works.contains_key(&part) && !leaving.act().contains("send"), "it makes room first");
        case.works.remove(&part);
        assert_eq!(case.act(), format!("send {part}"));
    }
}

#[test]
fn what_can_not_be_applied_yet_may_be_in_a_moment() {
    let refused = |phase, part| {
        let case = Case::in_phase(phase).with_pre_action().with_post_action();
        case.work(part, &[("Applied", "False")], &[])
    };
    for (phase, part, over) in [
        (Phase::PreAction, Part::PreAction, (Phase::Waiting, "PreActionDegraded")),
        (Phase::PostAction, Part::PostAction, (Phase::Failed, "PostActionDegraded")),
    ] {
        let soon = refused(phase, part).later(59);
        assert_eq!((soon.told(Permit::Wait).0, soon.look(Permit::Wait).wake), (phase, Some(at(60))));
        let (phase, reason, _) = refused(phase, part).later(60).told(Permit::Wait);
        assert_eq!((phase, reason.as_str()), over);
    }
}

#[test]
fn a_retry_does_again_what_has_failed_before_and_nothing_else() {
    let case = |how| {
        let case = Case::new().with_pre_action().does(Part::PreAction, &how).later(120);
        case.is(|cluster| cluster.owner = Owner::Nobody).says(|status| {
            status.reason = Some("PreActionDegraded".to_owned());
            status.message = Some("the action before the upgrade has failed".to_owned());
        })
    };
    let retried = |case: Case| case.with(|course| course.retried = Some(at(60)));
    assert_eq!(case(Doing::Degraded(None)).act(), "nothing");
    let (again, acts) = follow(retried(case(Doing::Degraded(None))), |_| Permit::Wait);
    assert_eq!((acts.join(", "), again.works.len()), ("tell Waiting, withdraw pre-action".to_owned(), 0));
    let (kept, _) = follow(retried(case(Doing::Progressing)), |_| Permit::Wait);
    assert!(kept.works.contains_key(&Part::PreAction), "what is under way is not interrupted");
    // A clock that was set back since makes nobody try without end.
    let ahead = case(Doing::Degraded(None)).with(|course| course.retried = Some(at(HOUR)));
    assert_eq!((ahead.act().as_str(), ahead.look(Permit::Wait).wake), ("nothing", Some(at(HOUR))));
}

// ---- Under way

#[test]
fn a_start_is_made_sure_of_first() {
    let nobodys = Case::in_phase(Phase::PreAction).is(|cluster| cluster.owner = Owner::Nobody);
    assert_eq!(word(nobodys.look(Permit::Start).act.as_ref()), "claim");
    for part in [Part::Platform, Part::Operators] {
        let phase = if part == Part::Platform { Phase::Upgrading } else { Phase::Operators };
        let settled = |owner: Owner| {
            let mut case = Case::in_phase(phase).with_operators().is(|cluster| cluster.owner = owner);
            case.works.clear();
            let Some(Act::Tell(status)) = case.look(Permit::Wait).act else { panic!("it is told") };
            case.says(|stored| *stored = *status).act()
        };
        let other = Owner::Other("default/other".to_owned());
        assert_eq!([settled(Owner::Us), settled(Owner::Nobody)], [format!("send {part}"), "claim".to_owned()]);
        assert_eq!(settled(other), "nothing", "what is another's is sent nothing");
    }
}

#[test]
fn what_is_found_counts_once_it_is_stored() {
    let done = Case::in_phase(Phase::Upgrading).runs(Part::Platform, TO, "Completed");
    assert_eq!((done.act().as_str(), done.look(Permit::Wait).standing), ("tell Complete", Standing::Begun));
    expect(done.told(Permit::Wait), Phase::Complete, "Upgraded", Standing::Complete);
    let failed = Case::failed_at(Phase::Upgrading).runs(Part::Platform, TO, "Completed");
    assert_eq!(failed.look(Permit::Wait).standing, BEGUN_AND_FAILED);
}

#[test]
fn time_counts_from_when_the_agent_has_taken_it_up() {
    let delivered = |seconds: i64| {
        Case::in_phase(Phase::Upgrading).says(|status| status.delivered = Some(Time(at(600)))).later(seconds)
    };
    assert_eq!(delivered(700).look(Permit::Wait).wake, Some(at(600 + 2 * HOUR)));
    assert_eq!(delivered(599 + 2 * HOUR).told(Permit::Wait).0, Phase::Upgrading);
    expect(delivered(600 + 2 * HOUR).told(Permit::Wait), Phase::Failed, "TimedOut", BEGUN_AND_FAILED);
    // Who never takes it up has a while on top.
    let sent = || Case::in_phase(Phase::Upgrading).work(Part::Platform, &[], &[]);
    assert_eq!(sent().look(Permit::Wait).wake, Some(at(300 + 2 * HOUR)));
    expect(sent().later(300 + 2 * HOUR).told(Permit::Wait), Phase::Failed, "TimedOut", BEGUN_AND_FAILED);
    // Who is still on its way when its time is up is told from who is not.
    let moving = delivered(600 + 2 * HOUR).runs(Part::Platform, TO, "Partial");
    assert_eq!(moving.told(Permit::Wait).2, Standing::Failed { was_begun: true, is_moving: true });
}

#[test]
fn nothing_took_too_long_for_who_has_just_begun_to_look() {
    let phases = [
        (Case::in_phase(Phase::Upgrading), "TimedOut"),
        (Case::in_phase(Phase::Operators).with_operators().work(Part::Operators, &[], &[]), "OperatorsTimedOut"),
        (
            Case::in_phase(Phase::PostAction).with_post_action().does(Part::PostAction, &Doing::Progressing),
            "PostActionDegraded",
        ),
    ];
    for (case, reason) in phases {
        let case = case.says(|status| status.delivered = Some(Time(at(0)))).later(3 * HOUR);
        expect(case.told(Permit::Wait), Phase::Failed, reason, BEGUN_AND_FAILED);
        let restarted = case.with(|course| course.attentive_since = at(3 * HOUR - 3));
        let look = restarted.look(Permit::Wait);
        assert!(look.standing.has_slot(), "{reason}: {look:?}");
        assert_eq!(look.wake, Some(at(3 * HOUR + 7)), "{reason}");
    }
}

#[test]
fn a_clock_that_is_set_back_gives_no_more_than_the_limit_anew() {
    let ahead = Case::in_phase(Phase::Upgrading).says(|status| {
        status.delivered = Some(Time(at(10 * HOUR)));
        status.phase_started = Some(Time(at(10 * HOUR)));
    });
    let Some(Act::Tell(status)) = ahead.look(Permit::Wait).act else { panic!("{:?}", ahead.look(Permit::Wait)) };
    assert_eq!((&status.delivered, &status.phase_started), (&Some(Time(at(0))), &Some(Time(at(0)))));
    assert_eq!(ahead.look(Permit::Wait).wake, Some(at(2 * HOUR)));
}

#[test]
fn who_is_asked_for_something_else_is_contested() {
    let said = |desired: &str| {
        let feedback = [("version", FROM), ("state", "Completed"), ("desired", desired)];
        Case::in_phase(Phase::Upgrading).work(Part::Platform, &[("Applied", "True")], &feedback).told(Permit::Wait).1
    };
    assert_eq!([said("4.12.9"), said(FROM), said(TO)], ["Contested", "Upgrading", "Upgrading"]);
}

#[test]
fn who_is_brought_beyond_the_target_is_not_asked_for_it_any_more() {
    let overtaken = Case::in_phase(Phase::Upgrading).runs(Part::Platform, "4.13.0", "Completed");
    expect(overtaken.told(Permit::Wait), Phase::Failed, "Overtaken", BEGUN_AND_FAILED);
    let (failed, acts) = follow(overtaken, |_| Permit::Start);
    assert_eq!(acts, ["tell Failed", "withdraw platform", "release"]);
    assert_eq!(failed.look(Permit::Start).standing, BEGUN_AND_FAILED);
    let retried = failed.with(|course| course.retried = Some(at(HOUR))).later(2 * HOUR);
    assert_eq!(retried.told(Permit::Wait).1, "Retried", "it is asked again, and no more");
}

#[test]
fn who_failed_and_is_brought_beyond_the_target_later_is_let_go_too() {
    let failed = Case::failed_at(Phase::Upgrading).runs(Part::Platform, "4.13.0", "Completed");
    expect(failed.told(Permit::Wait), Phase::Failed, "Overtaken", BEGUN_AND_FAILED);
    let (_, acts) = follow(failed, |_| Permit::Wait);
    assert_eq!(acts, ["tell Failed", "withdraw platform", "release"]);
}

#[test]
fn who_is_beyond_is_looked_at_again_if_somebody_asks_or_its_claim_was_wrong() {
    let claimed = Case::new().is(|cluster| cluster.version = Some("4.13.0".to_owned()));
    let (claimed, _) = follow(claimed, |_| Permit::Wait);
    let corrected = claimed.clone().is(|cluster| cluster.version = Some(FROM.to_owned()));
    expect(corrected.told(Permit::Wait), Phase::Waiting, "Queued", Standing::Queued { is_claimed: false });
    // What it has told itself counts more than what it claims.
    let told = Case::in_phase(Phase::PreAction).is(|cluster| cluster.version = None);
    let (told, _) = follow(told.runs(Part::Preflight, "4.13.0", "Completed"), |_| Permit::Wait);
    let lagging = told.is(|cluster| cluster.version = Some(FROM.to_owned()));
    assert_eq!(lagging.act(), "nothing");
    let retried = lagging.with(|course| course.retried = Some(at(HOUR))).later(2 * HOUR);
    assert_eq!(retried.told(Permit::Wait).1, "Retried");
}

#[test]
fn who_can_not_be_sent_anything_gives_its_place_to_others_for_a_while() {
    let mut unsent = Case::in_phase(Phase::PreAction);
    unsent.works.clear();
    let waits = unsent.look(Permit::Wait);
    assert_eq!((waits.standing, waits.wake), (Standing::Preparing, Some(at(600))));
    expect(unsent.clone().later(600).told(Permit::Wait), Phase::Waiting, "NotSent", Standing::Barred);
    let rests = unsent.says(|status| {
        (status.phase, status.phase_started) = (Some(Phase::Waiting), Some(Time(at(600))));
        status.reason = Some("NotSent".to_owned());
    });
    let look = rests.clone().later(899).look(Permit::Prepare);
    assert_eq!((look.standing, look.wake), (Standing::Barred, Some(at(900))));
    assert_eq!(rests.later(900).told(Permit::Prepare).0, Phase::PreAction);
    // Who was ready for long has just been given something else to do.
    let ready = Case::in_phase(Phase::PreAction).says(|status| status.reason = Some("Prepared".to_owned()));
    let edited = ready.with_pre_action().later(HOUR);
    expect(edited.told(Permit::Wait), Phase::PreAction, "PreActionRunning", Standing::Preparing);
    // Nor does anybody hold a place while something makes room.
    let leaving = Case::in_phase(Phase::PreAction).leaving(Part::Preflight);
    expect(leaving.told(Permit::Wait), Phase::Waiting, "MakingRoom", Standing::Barred);
}

#[test]
fn what_is_said_of_operators_is_passed_on() {
    let case = |outcome: &[(&str, &str)]| {
        let mut case = Case::in_phase(Phase::Operators).with_operators();
        case = case.work(Part::Operators, &[("Applied", "True")], outcome);
        let said = json!([{ "name": "operators", "fieldValue": { "type": "String", "string": "0 of 1 upgraded" } }]);
        let manifest = json!({ "resourceMeta": { "ordinal": 1, "resource": "configmaps" }, "conditions": [],
            "statusFeedback": { "values": said } });
        let status = json!({ "resourceStatus": { "manifests": [manifest] } });
        let status = serde_json::from_value(status).expect("a status");
        case.works.get_mut(&Part::Operators).expect("a work").feedback = Feedback::read(&status, "configmaps");
        case
    };
    let told = |case: Case| match case.look(Permit::Wait).act {
        Some(Act::Tell(status)) => (status.message.unwrap_or_default(), status.operators.unwrap_or_default()),
        act => panic!("{act:?}"),
    };
    let said = "0 of 1 upgraded";
    let running = told(case(&[("active", "1")]));
    assert_eq!(running, (format!("the operators are being upgraded: {said}"), said.to_owned()));
    let late = case(&[("active", "1")]).says(|status| status.delivered = Some(Time(at(0)))).later(HOUR);
    for failed in [case(&[("failed", "1"), ("givenUp", "True")]), late] {
        let (message, operators) = told(failed);
        assert!(message.ends_with(&format!("on the cluster: {said}")) && operators == said, "{message}");
    }
    assert_eq!(told(case(&[("succeeded", "1")])).1, said, "it stays when all is done");
}

#[test]
fn operators_and_the_check_decide_on_the_end() {
    let operators = |feedback: &[(&str, &str)]| {
        Case::in_phase(Phase::Operators).with_operators().work(Part::Operators, &[("Applied", "True")], feedback)
    };
    expect(operators(&[("succeeded", "1")]).told(Permit::Wait), Phase::Complete, "Upgraded", Standing::Complete);
    let checked = operators(&[("succeeded", "1")]).with_post_action();
    expect(checked.told(Permit::Wait), Phase::PostAction, "PostActionRunning", Standing::Partial);
    expect(operators(&[("active", "1")]).told(Permit::Wait), Phase::Operators, "OperatorsRunning", Standing::Partial);
    let stale = operators(&[("succeeded", "1")]).work(Part::Operators, &[("Applied", "False")], &[("succeeded", "1")]);
    assert_eq!(stale.told(Permit::Wait).0, Phase::Operators, "that is not said of the work as it is");
    let given_up = operators(&[("failed", "3"), ("givenUp", "True")]);
    expect(given_up.told(Permit::Wait), Phase::Failed, "OperatorsFailed", BEGUN_AND_FAILED);
    let check = |how| Case::in_phase(Phase::PostAction).with_post_action().does(Part::PostAction, &how);
    expect(check(Doing::Available).told(Permit::Wait), Phase::Complete, "Upgraded", Standing::Complete);
    expect(check(Doing::Degraded(None)).told(Permit::Wait), Phase::Failed, "PostActionDegraded", BEGUN_AND_FAILED);
    let late = check(Doing::Progressing).later(HOUR);
    assert!(late.look(Permit::Wait).post_action.degraded, "it counts as soon as it has failed");
}

#[test]
fn who_can_not_be_reached_in_the_middle_stays_where_it_is() {
    for phase in [Phase::Upgrading, Phase::Operators, Phase::PostAction] {
        let case = Case::in_phase(phase).with_operators().with_post_action();
        let away = case.is(|cluster| cluster.reach = Reach::Offline { since: Some(at(0)) }).later(60);
        assert_eq!(away.told(Permit::Wait).0, phase);
    }
}

// ---- Afterwards

#[test]
fn late_success_repairs() {
    let platform = || Case::failed_at(Phase::Upgrading).runs(Part::Platform, TO, "Completed");
    expect(platform().told(Permit::Wait), Phase::Complete, "Upgraded", Standing::Complete);
    expect(platform().with_operators().told(Permit::Wait), Phase::Waiting, "Resuming", Standing::Resumable);
    expect(platform().with_post_action().told(Permit::Wait), Phase::Waiting, "Resuming", Standing::Resumable);
    let operators = Case::failed_at(Phase::Operators).with_operators();
    let operators = operators.work(Part::Operators, &[("Applied", "True")], &[("succeeded", "1")]);
    expect(operators.told(Permit::Wait), Phase::Complete, "Upgraded", Standing::Complete);
    expect(operators.with_post_action().told(Permit::Wait), Phase::Waiting, "Resuming", Standing::Resumable);
    let check = Case::failed_at(Phase::PostAction).with_post_action().does(Part::PostAction, &Doing::Available);
    expect(check.told(Permit::Wait), Phase::Complete, "Upgraded", Standing::Complete);
    // What is said of it still is no success.
    let still = Case::failed_at(Phase::Upgrading).runs(Part::Platform, TO, "Partial");
    assert_eq!(still.look(Permit::Wait).standing, Standing::Failed { was_begun: true, is_moving: true });
}

#[test]
fn what_is_left_is_done_in_its_turn() {
    let resumable = || Case::in_phase(Phase::Waiting).says(|status| status.platform_completed = Some(Time(at(0))));
    let left = || resumable().with_operators().with_post_action();
    expect(left().told(Permit::Start), Phase::Operators, "OperatorsRunning", Standing::Partial);
    let checked = left().says(|status| status.operators_completed = Some(Time(at(0))));
    expect(checked.told(Permit::Start), Phase::PostAction, "PostActionRunning", Standing::Partial);
    expect(left().told(Permit::Prepare), Phase::Waiting, "Resuming", Standing::Resumable);
    let nobodys = left().is(|cluster| cluster.owner = Owner::Nobody);
    assert_eq!(word(nobodys.look(Permit::Start).act.as_ref()), "claim");
    let away = left().is(|cluster| cluster.reach = Reach::Offline { since: None });
    expect(away.told(Permit::Start), Phase::Waiting, "Offline", Standing::Barred);
}

#[test]
fn a_retry_is_for_what_failed_before_it() {
    let asked = |seconds: i64| Case::failed_at(Phase::Upgrading).with(|course| course.retried = Some(at(seconds)));
    expect(asked(HOUR).told(Permit::Wait), Phase::Waiting, "Retried", Standing::Queued { is_claimed: true });
    assert_eq!(asked(HOUR - 1).act(), "nothing", "it has failed after that");
    let acknowledged = Acknowledged { retried: Some(Time(at(HOUR))), ..Acknowledged::default() };
    let done = asked(HOUR).says(|status| status.acknowledged = Some(acknowledged));
    assert_eq!(done.act(), "nothing", "that was done");
}

#[test]
fn what_failed_is_withdrawn_before_it_is_tried_again() {
    let operators = Case::failed_at(Phase::Operators).with_operators();
    let operators = operators.work(Part::Operators, &[("Applied", "True")], &[("failed", "1"), ("givenUp", "True")]);
    let check = Case::failed_at(Phase::PostAction).with_post_action().does(Part::PostAction, &Doing::Degraded(None));
    for (case, part) in [(operators, Part::Operators), (check, Part::PostAction)] {
        let case = case.with(|course| course.retried = Some(at(HOUR)));
        let Some(Act::Tell(status)) = case.look(Permit::Wait).act else { panic!("it is told") };
        let case = case.says(|stored| *stored = *status);
        let withdraws =
            |case: &Case| matches!(case.look(Permit::Start).act, Some(Act::Withdraw(parts)) if parts.contains(&part));
        assert!(withdraws(&case), "{part}: {:?}", case.look(Permit::Start));
        assert_eq!(case.look(Permit::Wait).standing, Standing::Barred);
        let leaving = case.clone().leaving(part);
        assert!(leaving.look(Permit::Start).standing == Standing::Barred, "{part}");
        let mut gone = case;
        gone.works.clear();
        assert_eq!(gone.look(Permit::Wait).standing, Standing::Resumable);
    }
}

#[test]
fn an_edited_target_is_for_who_is_not_under_way() {
    let edited = |phase| Case::in_phase(phase).with(|course| course.errand = Errand::of(target("4.12.5")));
    for phase in [Phase::Waiting, Phase::Complete] {
        assert_eq!(
            (edited(phase).act().as_str(), edited(phase).look(Permit::Wait).standing),
            ("retarget", Standing::Barred)
        );
    }
    let failed = Case::failed_at(Phase::Upgrading).with(|course| course.errand = Errand::of(target("4.12.5")));
    assert_eq!(failed.act(), "retarget");
    assert_eq!(edited(Phase::PreAction).act(), "tell Waiting");
    for phase in [Phase::Upgrading, Phase::Operators, Phase::PostAction] {
        let case = edited(phase).with_operators().with_post_action();
        assert!(!case.act().contains("retarget") && case.look(Permit::Wait).standing.has_slot(), "{phase:?}");
    }
    // What was said of another target is void.
    let mut void = Case::in_phase(Phase::Complete);
    void.record.as_mut().expect("a record").metadata.generation = Some(2);
    assert_eq!(void.told(Permit::Wait).0, Phase::Waiting);
    // Who is not selected any more is not done with a target that it never had, either.
    let mut out = edited(Phase::Complete);
    out.membership = Membership::Out;
    assert_eq!(out.look(Permit::Wait).standing, Standing::Leaving);
    let mut same = Case::in_phase(Phase::Complete);
    same.membership = Membership::Out;
    assert_eq!(same.look(Permit::Wait).standing, Standing::Complete);
    // A canary that may be back is not done with a target that it never had.
    let mut unsure = edited(Phase::Complete);
    unsure.membership = Membership::Unsure;
    assert_eq!(unsure.look(Permit::Wait).standing, Standing::Barred);
    assert_ne!(unsure.act(), "retarget");
}

#[test]
fn who_leaves_before_it_has_begun_is_let_go() {
    let out = |mut case: Case| {
        case.membership = Membership::Out;
        follow(case, |_| Permit::Wait)
    };
    for phase in [Phase::Waiting, Phase::PreAction] {
        let case = Case::in_phase(phase).runs(Part::Preflight, FROM, "Completed");
        assert_eq!(out(case).1, ["withdraw preflight", "release", "drop"], "{phase:?}");
    }
    assert_eq!(out(Case::failed_at(Phase::Upgrading)).1, ["withdraw platform", "release", "drop"]);
    let retried = Case::new().says(|status| status.started = Some(Time(at(-HOUR))));
    assert_eq!(out(retried).1, ["release", "drop"], "what failed and waits to be tried again");
    let resuming = Case::new().with_operators().says(|status| status.platform_completed = Some(Time(at(-HOUR))));
    assert_eq!(out(resuming).0.look(Permit::Wait).standing, Standing::Resumable, "what is left is still done");
    let mut under_way = Case::in_phase(Phase::Upgrading);
    under_way.membership = Membership::Out;
    assert!(under_way.look(Permit::Wait).standing.has_slot(), "it is not interrupted");
}

#[test]
fn another_cluster_of_the_name_starts_afresh() {
    let other = Case::in_phase(Phase::Upgrading).is(|cluster| {
        (cluster.uid, cluster.owner) = (Some("b".to_owned()), Owner::Nobody);
    });
    assert_eq!((other.act().as_str(), other.look(Permit::Wait).standing), ("withdraw platform", Standing::Barred));
    let (_, acts) = follow(other, |_| Permit::Wait);
    assert_eq!(acts, ["withdraw platform", "drop", "make", "tell Waiting"]);
    let mut gone = Case::in_phase(Phase::Upgrading);
    gone.cluster = None;
    assert_eq!((gone.act().as_str(), gone.look(Permit::Wait).standing), ("withdraw platform", Standing::Leaving));
}
