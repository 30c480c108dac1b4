//! What is approved and what is said, case by case.

use drover_api::olm::{InstallPlanRef, SubscriptionStatus};
use serde_json::json;

use super::*;

/// A cluster with operators, all in one namespace.
#[derive(Clone, Default)]
struct Cluster {
    subscriptions: Vec<Subscription>,
    plans: Vec<InstallPlan>,
    versions: Vec<ClusterServiceVersion>,
}

impl Cluster {
    /// An operator with the version that it has, the one that it moves to, and the plan for that.
    fn operator(mut self, name: &str, installed: &str, current: &str, plan: &str) -> Self {
        let mut subscription: Subscription = object(name, json!({ "spec": { "installPlanApproval": "Manual" } }));
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        subscription.status = Some(SubscriptionStatus {
            current_csv: some(current),
            installed_csv: some(installed),
            install_plan_ref: some(plan).map(|name| InstallPlanRef { namespace: None, name: Some(name) }),
        });
        self.subscriptions.retain(|known| known.name_any() != name);
        self.subscriptions.push(subscription);
        self
    }

    /// The last operator is upgraded without approval.
    fn automatic(mut self) -> Self {
        let last = self.subscriptions.last_mut().expect("there is an operator");
        last.spec.install_plan_approval = Some("Automatic".to_owned());
        self
    }

    fn plan(mut self, name: &str, versions: &[&str], approved: bool, phase: &str) -> Self {
        let spec = json!({ "approved": approved, "clusterServiceVersionNames": versions });
        let status = json!({ "phase": phase, "message": "so it is" });
        self.plans.retain(|known| known.name_any() != name);
        self.plans.push(object(name, json!({ "spec": spec, "status": status })));
        self
    }

    fn waiting_plan(self, name: &str, versions: &[&str]) -> Self {
        self.plan(name, versions, false, "RequiresApproval")
    }

    fn version(mut self, name: &str, replaces: &str, phase: &str) -> Self {
        let status = json!({ "phase": phase, "message": "so it is" });
        self.versions.retain(|known| known.name_any() != name);
        self.versions.push(object(name, json!({ "spec": { "replaces": replaces }, "status": status })));
        self
    }

    fn facts(&self) -> Facts<'_> {
        Facts::new(&self.subscriptions, &self.plans, &self.versions)
    }
}

fn object<K: k8s_openapi::serde::de::DeserializeOwned>(name: &str, mut object: serde_json::Value) -> K {
    object["metadata"] = json!({ "namespace": "ns", "name": name, "resourceVersion": "7" });
    serde_json::from_value(object).expect("a valid object")
}

fn operators(names: &[&str]) -> BTreeSet<OperatorRef> {
    names.iter().map(|name| format!("ns/{name}").parse().expect("an operator")).collect()
}

fn all() -> Wish {
    Wish { scope: Scope::All, exclude: BTreeSet::new() }
}

fn only(names: &[&str]) -> Wish {
    Wish { scope: Scope::Only(operators(names)), exclude: BTreeSet::new() }
}

fn without(wish: Wish, names: &[&str]) -> Wish {
    Wish { exclude: operators(names), ..wish }
}

/// What is approved, and what is said of whom, on a cluster that was like this when the upgrade began and still is.
fn at_first(wish: &Wish, cluster: &Cluster) -> (Vec<String>, Vec<String>) {
    later(wish, cluster, cluster)
}

/// What is approved, and what is said of whom, on a cluster that was otherwise when the upgrade began.
fn later(wish: &Wish, start: &Cluster, now: &Cluster) -> (Vec<String>, Vec<String>) {
    let decision = decide(wish, &pin(wish, &start.facts()), &now.facts());
    let said = decision.operators.iter().map(|(operator, standing)| format!("{}: {standing}", operator.name)).collect();
    (decision.approve.into_iter().map(|approval| approval.name).collect(), said)
}

/// One operator with a plan that waits.
fn waiting() -> Cluster {
    Cluster::default().operator("a", "a.v1", "a.v2", "p").waiting_plan("p", &["a.v2"]).version("a.v1", "", "Succeeded")
}

/// Two operators that share a plan.
fn neighbours() -> Cluster {
    waiting().operator("b", "b.v1", "b.v2", "p").waiting_plan("p", &["a.v2", "b.v2"])
}

#[test]
fn the_plan_of_an_operator_that_was_asked_for_is_approved_as_it_was_judged() {
    let cluster = waiting();
    for wish in [all(), only(&["a"]), without(all(), &["other"])] {
        assert_eq!(at_first(&wish, &cluster).0, ["p"], "{wish:?}");
    }
    let decision = decide(&all(), &pin(&all(), &cluster.facts()), &cluster.facts());
    let approval = Approval {
        namespace: "ns".to_owned(),
        name: "p".to_owned(),
        resource_version: Some("7".to_owned()),
        versions: vec!["a.v2".to_owned()],
    };
    assert_eq!(decision.approve, [approval]);
    assert!(!decision.is_over() && !decision.is_done());
}

#[test]
fn who_was_not_asked_for_or_is_left_out_is_not_touched() {
    for wish in [only(&["b"]), only(&["aa"]), only(&[]), without(all(), &["a"]), without(only(&["a"]), &["a"])] {
        assert_eq!(at_first(&wish, &waiting()).0, Vec::<String>::new(), "{wish:?}");
    }
    assert_eq!(at_first(&without(only(&["a"]), &["a"]), &waiting()).1, Vec::<String>::new());
}

#[test]
fn a_name_is_not_meant_by_one_that_contains_it() {
    let cluster = waiting().operator("a-too", "x.v1", "x.v2", "q").waiting_plan("q", &["x.v2"]);
    assert_eq!(at_first(&only(&["a"]), &cluster).0, ["p"]);
    assert_eq!(at_first(&only(&["a-too"]), &cluster).0, ["q"]);
}

#[test]
fn a_plan_that_carries_more_is_not_approved_and_says_what() {
    let said = "a: the install plan p is not approved: it also brings b.v2 of ns/b, which was not asked for";
    for wish in [only(&["a"]), without(all(), &["b"]), without(only(&["a", "b"]), &["b"])] {
        assert_eq!(at_first(&wish, &neighbours()), (vec![], vec![said.to_owned()]), "{wish:?}");
    }
    let (cluster, wish) = (neighbours(), only(&["a"]));
    let decision = decide(&wish, &pin(&wish, &cluster.facts()), &cluster.facts());
    assert!(decision.is_over() && !decision.is_done());
}

#[test]
fn a_plan_of_several_that_were_all_asked_for_is_approved_once() {
    for wish in [all(), only(&["a", "b"])] {
        assert_eq!(at_first(&wish, &neighbours()).0, ["p"], "{wish:?}");
    }
}

#[test]
fn one_that_is_held_up_does_not_hold_up_others() {
    let cluster = neighbours().operator("c", "c.v1", "c.v2", "q").waiting_plan("q", &["c.v2"]);
    assert_eq!(at_first(&only(&["a", "c"]), &cluster).0, ["q"]);
}

#[test]
fn a_version_that_nobody_has_is_waited_out_unless_all_were_asked_for() {
    let cluster = waiting().waiting_plan("p", &["a.v2", "new.v1"]);
    let said =
        "a: the install plan p is not approved: it also brings new.v1, which no Subscription of the namespace has";
    for wish in [only(&["a"]), without(all(), &["b"])] {
        assert_eq!(at_first(&wish, &cluster), (vec![], vec![said.to_owned()]), "{wish:?}");
    }
    let elsewhere = Wish { exclude: BTreeSet::from(["elsewhere/b".parse().expect("an operator")]), ..all() };
    for wish in [all(), elsewhere] {
        assert_eq!(at_first(&wish, &cluster).0, ["p"], "{wish:?}");
    }
}

#[test]
fn who_needs_no_approval_is_left_to_itself() {
    let cluster = Cluster::default().operator("a", "a.v1", "a.v2", "p").automatic().waiting_plan("p", &["a.v2"]);
    let said = vec!["a: is upgraded without approval, and is left to itself".to_owned()];
    assert_eq!(at_first(&only(&["a"]), &cluster), (vec![], said));
    // It may share a plan with one that does, and was asked for like it.
    let cluster = neighbours().operator("b", "b.v1", "b.v3", "p").automatic().waiting_plan("p", &["a.v2", "b.v3"]);
    assert_eq!(at_first(&all(), &cluster).0, ["p"]);
    assert_eq!(at_first(&only(&["a"]), &cluster).0, Vec::<String>::new());
}

#[test]
fn who_is_not_there_is_left_out_and_named() {
    let said = vec!["gone: is not on this cluster, and is left out".to_owned()];
    assert_eq!(at_first(&only(&["gone"]), &Cluster::default()), (vec![], said));
    assert!(decide(&only(&["gone"]), &Targets::new(), &Facts::default()).is_done());
    assert!(decide(&all(), &Targets::new(), &Facts::default()).is_done());
}

#[test]
fn where_nothing_waits_there_is_nothing_to_approve() {
    let at_its_version = Cluster::default().operator("a", "a.v1", "a.v1", "p").plan("p", &["a.v1"], true, "Complete");
    let well = at_its_version.clone().version("a.v1", "", "Succeeded");
    assert_eq!(at_first(&all(), &well), (vec![], vec!["a: runs a.v1".to_owned()]));
    let unheard = Cluster::default().operator("a", "", "", "");
    let said = "a: had no version to move to when the upgrade began: nothing to approve";
    assert_eq!(at_first(&all(), &unheard), (vec![], vec![said.to_owned()]));
    // A version that does not run is no success, even if nobody waits for approval.
    let unwell = at_its_version.version("a.v1", "", "Failed");
    let said = "a: waits for a.v1 to run; it is Failed: so it is";
    assert_eq!(at_first(&all(), &unwell), (vec![], vec![said.to_owned()]));
}

#[test]
fn an_operator_is_upgraded_when_its_version_runs_and_not_before() {
    let start = waiting();
    let approved = start.clone().plan("p", &["a.v2"], true, "Installing");
    let installed = approved.clone().operator("a", "a.v2", "a.v2", "p");
    let settling = installed.clone().version("a.v2", "a.v1", "Installing");
    let done = settling.clone().version("a.v2", "a.v1", "Succeeded");
    for (now, said) in [
        (&approved, "a: the install plan p is approved, and waits until a.v2 is installed"),
        (&installed, "a: waits for a.v2 to run; there is no such ClusterServiceVersion yet"),
        (&settling, "a: waits for a.v2 to run; it is Installing: so it is"),
        (&done, "a: runs a.v2"),
    ] {
        assert_eq!(later(&all(), &start, now), (vec![], vec![said.to_owned()]));
        let is_done = decide(&all(), &pin(&all(), &start.facts()), &now.facts()).is_done();
        assert_eq!(is_done, said == "a: runs a.v2");
    }
}

#[test]
fn what_is_offered_later_is_left_for_another_upgrade() {
    let start = waiting();
    let next = start.clone().operator("a", "a.v2", "a.v3", "q").waiting_plan("q", &["a.v3"]);
    let settling = next.clone().version("a.v2", "a.v1", "Installing");
    assert_eq!(later(&all(), &start, &settling).0, Vec::<String>::new());
    let done = next.version("a.v2", "a.v1", "Succeeded");
    assert_eq!(later(&all(), &start, &done), (vec![], vec!["a: runs a.v2".to_owned()]));
}

#[test]
fn a_plan_that_brings_a_neighbour_something_later_is_left() {
    let start = waiting().operator("b", "b.v1", "b.v1", "").version("b.v1", "", "Succeeded");
    let now = start.clone().operator("b", "b.v1", "b.v2", "q").operator("a", "a.v1", "a.v2", "q");
    let now = now.waiting_plan("q", &["a.v2", "b.v2"]);
    let (approved, said) = later(&all(), &start, &now);
    assert_eq!(approved, Vec::<String>::new());
    assert!(said[0].ends_with("it also brings b.v2 of ns/b, which was not offered when the upgrade began"), "{said:?}");
}

#[test]
fn a_version_that_has_taken_the_place_of_the_pinned_one_is_as_good_if_it_runs() {
    let start = waiting();
    let beyond = start.clone().operator("a", "a.v4", "a.v4", "r").version("a.v4", "a.v3", "Succeeded");
    let replaced = beyond.clone().version("a.v3", "a.v2", "Replacing");
    assert_eq!(later(&all(), &start, &replaced).1, ["a: runs a.v4"]);
    let mut skipped = beyond.clone();
    skipped.versions.last_mut().expect("there is one").spec.skips = vec!["a.v2".to_owned()];
    assert_eq!(later(&all(), &start, &skipped).1, ["a: runs a.v4"]);
    let unwell = replaced.version("a.v4", "a.v3", "Pending");
    assert_eq!(later(&all(), &start, &unwell).1, ["a: waits for a.v4 to run; it is Pending: so it is"]);
    // Nothing tells that this one came after the pinned one.
    let unrelated = beyond.version("a.v3", "a.v4", "Replacing");
    let said = "a: a.v2 is not offered any more, but a.v4 is: begin another upgrade to have that one";
    assert_eq!(later(&all(), &start, &unrelated).1, [said]);
}

#[test]
fn an_older_plan_that_nobody_approved_does_not_stand_in_the_way() {
    let cluster = waiting().waiting_plan("older", &["a.v1-1"]);
    assert_eq!(at_first(&all(), &cluster).0, ["p"]);
    // Nor is it what is approved when the operator moved on to another plan.
    let start = waiting();
    let now = start.clone().operator("a", "a.v1", "a.v3", "q").waiting_plan("q", &["a.v3"]);
    let said = "a: a.v2 is not offered any more, but a.v3 is: begin another upgrade to have that one";
    assert_eq!(later(&all(), &start, &now), (vec![], vec![said.to_owned()]));
}

#[test]
fn a_plan_that_is_not_there_or_of_something_else_is_waited_for() {
    let said = vec!["a: waits for an install plan that brings a.v2".to_owned()];
    let without_plan = Cluster::default().operator("a", "a.v1", "a.v2", "");
    let unknown_plan = Cluster::default().operator("a", "a.v1", "a.v2", "p");
    let of_something_else = waiting().waiting_plan("p", &["a.v1"]);
    for cluster in [without_plan, unknown_plan, of_something_else] {
        assert_eq!(at_first(&all(), &cluster), (vec![], said.clone()));
    }
}

#[test]
fn a_plan_that_failed_is_told_and_not_waited_for() {
    let said = vec!["a: the install plan p has failed: so it is".to_owned()];
    assert_eq!(at_first(&all(), &waiting().plan("p", &["a.v2"], true, "Failed")), (vec![], said));
}

#[test]
fn a_wish_is_read_from_an_upgrade() {
    let upgrades = |all: Option<bool>| OperatorUpgrades {
        approve_all_upgrades: all,
        include: operators(&["a"]).into_iter().collect(),
        exclude: operators(&["b"]).into_iter().collect(),
    };
    assert_eq!(Wish::from(&upgrades(Some(true))), without(all(), &["b"]));
    for not_all in [None, Some(false)] {
        assert_eq!(Wish::from(&upgrades(not_all)), without(only(&["a"]), &["b"]));
    }
}
