//! What holds for the approval of install plans, whatever a cluster has of operators and whatever was asked for.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    cluster::OperatorRef,
    olm::{ClusterServiceVersion, InstallPlan, Subscription},
};
use drover_engine::upgrade::approval::{Approval, Decision, Facts, Scope, Standing, Targets, Wish, decide, pin};
use kube::ResourceExt as _;
use proptest::{prelude::*, sample::subsequence, strategy::Strategy};
use serde_json::json;

use crate::counterexample::{Checked, counterexample, holds_for_the_engine};

const NAMES: [&str; 4] = ["a", "a-a", "b", "c"];
const NAMESPACES: [&str; 2] = ["one", "two"];

/// A cluster, what is wished for, and what was pinned some time ago.
#[derive(Clone, Debug)]
struct Case {
    wish: Wish,
    targets: Targets,
    subscriptions: Vec<Subscription>,
    plans: Vec<InstallPlan>,
    versions: Vec<ClusterServiceVersion>,
}

impl Case {
    fn facts(&self) -> Facts<'_> {
        Facts::new(&self.subscriptions, &self.plans, &self.versions)
    }
}

/// Somebody who decides.
trait Decider {
    fn decide(&self, case: &Case) -> Decision;
}

struct Engine;

impl Decider for Engine {
    fn decide(&self, case: &Case) -> Decision {
        decide(&case.wish, &case.targets, &case.facts())
    }
}

fn every_operator() -> Vec<OperatorRef> {
    let named = |namespace: &str, name: &str| OperatorRef { name: name.to_owned(), namespace: namespace.to_owned() };
    NAMESPACES.iter().flat_map(|namespace| NAMES.map(|name| named(namespace, name))).collect()
}

fn some_operators() -> impl Strategy<Value = BTreeSet<OperatorRef>> {
    let count = every_operator().len();
    subsequence(every_operator(), 0..=count).prop_map(|operators| operators.into_iter().collect())
}

fn wishes() -> impl Strategy<Value = Wish> {
    let scope = prop_oneof![Just(Scope::All), some_operators().prop_map(Scope::Only)];
    let exclude = prop_oneof![Just(BTreeSet::new()), some_operators()];
    (scope, exclude).prop_map(|(scope, exclude)| Wish { scope, exclude })
}

fn version(name: &str, number: u8) -> String {
    format!("{name}.v{number}")
}

fn subscription(operator: &OperatorRef) -> impl Strategy<Value = Subscription> + use<> {
    let operator = operator.clone();
    (prop::bool::weighted(0.8), 1..3_u8, 1..4_u8, 0..4_u8).prop_map(move |(is_manual, installed, current, plan)| {
        let approval = if is_manual { "Manual" } else { "Automatic" };
        let object = json!({
            "metadata": { "namespace": operator.namespace, "name": operator.name },
            "spec": { "installPlanApproval": approval },
            "status": {
                "currentCSV": version(&operator.name, current), "installedCSV": version(&operator.name, installed),
                "installPlanRef": { "namespace": operator.namespace, "name": format!("plan-{plan}") },
            },
        });
        serde_json::from_value(object).expect("a valid subscription")
    })
}

fn plan(namespace: &str, number: usize) -> impl Strategy<Value = InstallPlan> + use<> {
    let namespace = namespace.to_owned();
    let carried = prop::collection::btree_set((0..NAMES.len(), 1..4_u8), 1..3);
    (carried, prop::bool::weighted(0.2)).prop_map(move |(carried, approved)| {
        let names: Vec<_> = carried.iter().map(|(name, number)| version(NAMES[*name], *number)).collect();
        let object = json!({
            "metadata": { "namespace": namespace, "name": format!("plan-{number}") },
            "spec": { "approved": approved, "clusterServiceVersionNames": names },
        });
        serde_json::from_value(object).expect("a valid plan")
    })
}

fn targets() -> impl Strategy<Value = Targets> {
    let pinned = every_operator().into_iter().map(|operator| {
        prop::option::weighted(0.9, 1..4_u8)
            .prop_map(move |number| number.map(|number| (operator.clone(), version(&operator.name, number))))
    });
    pinned.collect::<Vec<_>>().prop_map(|pinned| pinned.into_iter().flatten().collect())
}

/// Anything that can be: plans that have nothing to do with who names them, targets that nobody offers.
fn cases() -> impl Strategy<Value = Case> {
    let subscriptions =
        every_operator().iter().map(|operator| prop::option::weighted(0.8, subscription(operator))).collect::<Vec<_>>();
    let plans: Vec<_> = NAMESPACES.iter().flat_map(|namespace| (0..4).map(|number| plan(namespace, number))).collect();
    (wishes(), targets(), subscriptions, plans).prop_map(|(wish, targets, subscriptions, plans)| Case {
        wish,
        targets,
        subscriptions: subscriptions.into_iter().flatten().collect(),
        plans,
        versions: Vec::new(),
    })
}

/// Whether an operator is asked for, said once more and in other words than the engine's.
fn is_asked_for(wish: &Wish, operator: &OperatorRef) -> bool {
    let is_excluded = wish.exclude.iter().any(|other| other == operator);
    let is_included = matches!(&wish.scope, Scope::Only(list) if list.iter().any(|other| other == operator));
    !is_excluded && (is_included || wish.scope == Scope::All)
}

fn name_of(subscription: &Subscription) -> OperatorRef {
    OperatorRef { name: subscription.name_any(), namespace: subscription.namespace().unwrap_or_default() }
}

/// The operators that a plan would move, by who says that the version is the one that it moves to.
fn moved<'a>(case: &'a Case, approval: &'a Approval) -> impl Iterator<Item = (OperatorRef, &'a String)> {
    approval.versions.iter().flat_map(|version| {
        let of_namespace = case.subscriptions.iter().filter(|of| of.namespace().as_ref() == Some(&approval.namespace));
        let moves = move |of: &&Subscription| {
            of.status.as_ref().is_some_and(|status| status.current_csv.as_ref() == Some(version))
        };
        of_namespace.filter(moves).map(move |of| (name_of(of), version))
    })
}

fn nobody_is_upgraded_who_was_not_asked_for(decider: &impl Decider, case: &Case) -> Checked {
    for approval in decider.decide(case).approve {
        for (operator, version) in moved(case, &approval) {
            prop_assert!(is_asked_for(&case.wish, &operator), "{} brings {version} of {operator}", approval.name);
        }
    }
    Ok(())
}

fn nothing_unknown_is_approved_where_somebody_is_not_asked_for(decider: &impl Decider, case: &Case) -> Checked {
    for approval in decider.decide(case).approve {
        let known: BTreeSet<_> = case
            .subscriptions
            .iter()
            .filter(|of| of.namespace().as_ref() == Some(&approval.namespace))
            .filter_map(|of| of.status.as_ref())
            .flat_map(|status| [&status.current_csv, &status.installed_csv])
            .flatten()
            .collect();
        let all_asked = every_operator()
            .iter()
            .filter(|operator| operator.namespace == approval.namespace)
            .all(|operator| is_asked_for(&case.wish, operator));
        let is_clear = matches!(case.wish.scope, Scope::All) && all_asked;
        prop_assert!(is_clear || approval.versions.iter().all(|version| known.contains(version)), "{approval:?}");
    }
    Ok(())
}

fn nobody_who_needs_approval_goes_beyond_what_was_pinned(decider: &impl Decider, case: &Case) -> Checked {
    let manual: BTreeMap<_, _> =
        case.subscriptions.iter().filter(|of| of.spec.is_manual()).map(|of| (name_of(of), of)).collect();
    for approval in decider.decide(case).approve {
        for (operator, version) in moved(case, &approval).filter(|(operator, _)| manual.contains_key(operator)) {
            let installed = manual[&operator].status.as_ref().and_then(|status| status.installed_csv.as_ref());
            let is_allowed = case.targets.get(&operator) == Some(version) || installed == Some(version);
            prop_assert!(is_allowed, "{} brings {version} of {operator}", approval.name);
        }
    }
    Ok(())
}

fn only_plans_that_wait_and_that_an_operator_of_the_wish_names_are_approved(
    decider: &impl Decider,
    case: &Case,
) -> Checked {
    for approval in decider.decide(case).approve {
        let plan = case
            .plans
            .iter()
            .find(|plan| plan.name_any() == approval.name && plan.namespace().as_ref() == Some(&approval.namespace));
        prop_assert!(plan.is_some_and(|plan| !plan.spec.approved), "{} waits for nobody", approval.name);
        let names_it = |of: &Subscription| {
            let named = of.status.as_ref().and_then(|status| status.install_plan_ref.as_ref());
            let is_named = named.is_some_and(|named| named.name.as_ref() == Some(&approval.name));
            is_named && of.namespace().as_ref() == Some(&approval.namespace)
        };
        let is_ours = |of: &&Subscription| of.spec.is_manual() && is_asked_for(&case.wish, &name_of(of));
        prop_assert!(case.subscriptions.iter().filter(is_ours).any(names_it), "nobody names {}", approval.name);
    }
    Ok(())
}

fn everybody_who_was_asked_for_is_spoken_of_and_nobody_else(decider: &impl Decider, case: &Case) -> Checked {
    let spoken_of: BTreeSet<_> = decider.decide(case).operators.into_keys().collect();
    let there = case.subscriptions.iter().map(name_of);
    let named = match &case.wish.scope {
        Scope::All => Vec::new(),
        Scope::Only(operators) => operators.iter().cloned().collect(),
    };
    let asked: BTreeSet<_> = there.chain(named).filter(|operator| is_asked_for(&case.wish, operator)).collect();
    prop_assert_eq!(spoken_of, asked);
    Ok(())
}

/// The same where each operator has a plan of its own, and is to be brought to what it is offered now.
fn with_own_plans(mut case: Case) -> Case {
    case.plans.clear();
    for subscription in &mut case.subscriptions {
        let (namespace, name) = (subscription.namespace(), subscription.name_any());
        let status = subscription.status.as_mut().expect("it has a status");
        let spec = json!({ "approved": false, "clusterServiceVersionNames": [status.current_csv] });
        let plan = json!({ "metadata": { "namespace": namespace, "name": name }, "spec": spec });
        case.plans.push(serde_json::from_value(plan).expect("a valid plan"));
        status.install_plan_ref.as_mut().expect("it names a plan").name = Some(name);
    }
    case.versions = case.subscriptions.iter().filter_map(installed_version).collect();
    case.targets = pin(&case.wish, &case.facts());
    case
}

/// The Operator Lifecycle Manager carries out what is approved: then all come to their versions.
fn where_plans_carry_nothing_else_all_are_upgraded(decider: &impl Decider, case: &Case) -> Checked {
    let mut case = with_own_plans(case.clone());
    for _ in 0..3 {
        let decision = decider.decide(&case);
        for approval in decision.approve {
            carry_out(&mut case, &approval);
        }
        for version in &mut case.versions {
            version.status = Some(serde_json::from_value(json!({ "phase": "Succeeded" })).expect("a valid status"));
        }
    }
    for (operator, standing) in decider.decide(&case).operators {
        let is_settled = matches!(standing, Standing::Upgraded { .. } | Standing::Missing | Standing::Automatic);
        prop_assert!(is_settled, "{operator}: {standing}");
    }
    Ok(())
}

fn installed_version(of: &Subscription) -> Option<ClusterServiceVersion> {
    Some(new_version(&of.namespace()?, of.status.as_ref()?.installed_csv.as_deref()?))
}

fn new_version(namespace: &str, name: &str) -> ClusterServiceVersion {
    let version = json!({ "metadata": { "namespace": namespace, "name": name }, "spec": {} });
    serde_json::from_value(version).expect("a valid version")
}

fn carry_out(case: &mut Case, approval: &Approval) {
    let is_there = |namespace: Option<String>| namespace.as_ref() == Some(&approval.namespace);
    for plan in &mut case.plans {
        plan.spec.approved |= plan.name_any() == approval.name && is_there(plan.namespace());
    }
    for subscription in case.subscriptions.iter_mut().filter(|of| is_there(of.namespace())) {
        let Some(status) = &mut subscription.status else { continue };
        if status.current_csv.as_ref().is_some_and(|current| approval.versions.contains(current)) {
            status.installed_csv.clone_from(&status.current_csv);
        }
    }
    case.versions.extend(approval.versions.iter().map(|name| new_version(&approval.namespace, name)));
}

holds_for_the_engine! {
    nobody_is_upgraded_who_was_not_asked_for in cases();
    nothing_unknown_is_approved_where_somebody_is_not_asked_for in cases();
    nobody_who_needs_approval_goes_beyond_what_was_pinned in cases();
    only_plans_that_wait_and_that_an_operator_of_the_wish_names_are_approved in cases();
    everybody_who_was_asked_for_is_spoken_of_and_nobody_else in cases();
    where_plans_carry_nothing_else_all_are_upgraded in cases();
}

#[test]
fn the_cases_are_not_all_refused() {
    let approves = counterexample(&cases(), |case| {
        prop_assert!(Engine.decide(&case).approve.is_empty());
        Ok(())
    });
    assert!(approves.is_some(), "properties of what is approved say nothing where nothing is");
}

/// Approves the plan that an operator names, whatever else it brings, as a script would that looks at one operator at a time.
struct LooksAtOneOnly;

impl Decider for LooksAtOneOnly {
    fn decide(&self, case: &Case) -> Decision {
        let asked = case.subscriptions.iter().filter(|of| of.spec.is_manual() && case.wish.asks_for(&name_of(of)));
        let named = asked.filter_map(|of| {
            let name = of.status.as_ref()?.install_plan_ref.as_ref()?.name.clone()?;
            case.plans.iter().find(|plan| plan.name_any() == name && plan.namespace() == of.namespace())
        });
        let approve = named.filter(|plan| !plan.spec.approved).map(|plan| Approval {
            namespace: plan.namespace().unwrap_or_default(),
            name: plan.name_any(),
            resource_version: None,
            versions: plan.spec.cluster_service_version_names.clone(),
        });
        Decision { approve: approve.collect(), ..Engine.decide(case) }
    }
}

#[test]
fn who_looks_at_one_operator_only_is_caught() {
    let caught = counterexample(&cases(), |case| nobody_is_upgraded_who_was_not_asked_for(&LooksAtOneOnly, &case));
    assert!(caught.is_some());
    let caught =
        counterexample(&cases(), |case| nobody_who_needs_approval_goes_beyond_what_was_pinned(&LooksAtOneOnly, &case));
    assert!(caught.is_some());
}

/// Takes an operator for included whose name is part of one that is.
struct ComparesParts;

impl Decider for ComparesParts {
    fn decide(&self, case: &Case) -> Decision {
        let mut case = case.clone();
        if let Scope::Only(operators) = &mut case.wish.scope {
            let is_part =
                |other: &OperatorRef| operators.iter().any(|listed| listed.to_string().contains(&other.to_string()));
            *operators = every_operator().into_iter().filter(is_part).collect();
        }
        case.targets = pin(&case.wish, &case.facts());
        Engine.decide(&case)
    }
}

#[test]
fn who_compares_parts_of_names_is_caught() {
    let cases = cases().prop_map(with_own_plans);
    let caught = counterexample(&cases, |case| nobody_is_upgraded_who_was_not_asked_for(&ComparesParts, &case));
    assert!(caught.is_some());
}
