//! The scheduler's rules, one by one.

use drover_engine::placement::{LeftOut, Outcome, Program, Scores, status};
use serde_json::{Value, json};

use crate::fleet::{Case, at, cluster, condition, noon, placement, plain, program, selected, tainted};

fn labelled(name: &str, key: &str, value: &str) -> drover_api::cluster::ManagedCluster {
    cluster(name, &json!({ key: value }), &json!({}))
}

fn with_claim(name: &str, claim: &str, value: &str) -> drover_api::cluster::ManagedCluster {
    cluster(name, &json!({}), &json!({ "status": { "clusterClaims": [{ "name": claim, "value": value }] } }))
}

fn with_cpu(name: &str, cpu: &str) -> drover_api::cluster::ManagedCluster {
    cluster(name, &json!({}), &json!({ "status": { "allocatable": { "cpu": cpu } } }))
}

fn predicate(selector: &Value) -> Value {
    json!({ "predicates": [{ "requiredClusterSelector": selector }] })
}

fn prioritizers(mode: &str, configurations: &Value) -> Value {
    json!({ "numberOfClusters": 1, "prioritizerPolicy": { "mode": mode, "configurations": configurations } })
}

fn score(cluster: &str, value: i32, valid_until: Option<i64>) -> drover_api::cluster::AddOnPlacementScore {
    let mut score = json!({
        "metadata": { "name": "load", "namespace": cluster },
        "status": { "scores": [{ "name": "free", "value": value }] },
    });
    if let Some(seconds) = valid_until {
        score["status"]["validUntil"] = at(seconds).to_string().into();
    }
    serde_json::from_value(score).expect("a score")
}

fn chosen(spec: &Value, clusters: Vec<drover_api::cluster::ManagedCluster>) -> Vec<String> {
    selected(&Case::new(spec, clusters).decide()).into_iter().map(str::to_owned).collect()
}

fn complaint(spec: &Value) -> String {
    Program::compile(&placement(spec)).expect_err("makes no sense").to_string()
}

// ---- Predicates

#[test]
fn without_predicates_every_cluster_matches() {
    assert_eq!(chosen(&json!({}), vec![plain("b"), plain("a")]), ["a", "b"]);
}

#[test]
fn one_predicate_is_enough_and_all_of_it_has_to_hold() {
    let spec = json!({ "predicates": [
        { "requiredClusterSelector": { "labelSelector": { "matchLabels": { "env": "prod" } } } },
        { "requiredClusterSelector": {
            "labelSelector": { "matchLabels": { "env": "dev" } },
            "claimSelector": { "matchExpressions": [{ "key": "region", "operator": "In", "values": ["eu"] }] },
        } },
    ] });
    let fleet = vec![
        labelled("prod", "env", "prod"),
        labelled("dev", "env", "dev"),
        with_claim("claim", "region", "eu"),
        cluster(
            "both",
            &json!({ "env": "dev" }),
            &json!({ "status": { "clusterClaims": [{ "name": "region", "value": "eu" }] } }),
        ),
    ];
    assert_eq!(chosen(&spec, fleet), ["both", "prod"]);
}

#[test]
fn claims_go_by_the_operators_of_label_selectors() {
    let by = |requirement: Value| predicate(&json!({ "claimSelector": { "matchExpressions": [requirement] } }));
    let fleet = || vec![with_claim("eu", "region", "eu"), with_claim("us", "region", "us"), plain("none")];
    assert_eq!(chosen(&by(json!({ "key": "region", "operator": "In", "values": ["eu"] })), fleet()), ["eu"]);
    assert_eq!(chosen(&by(json!({ "key": "region", "operator": "NotIn", "values": ["eu"] })), fleet()), ["none", "us"]);
    assert_eq!(chosen(&by(json!({ "key": "region", "operator": "Exists" })), fleet()), ["eu", "us"]);
    assert_eq!(chosen(&by(json!({ "key": "region", "operator": "DoesNotExist" })), fleet()), ["none"]);
}

#[test]
fn an_expression_that_fails_leaves_the_cluster_out() {
    let spec =
        predicate(&json!({ "celSelector": { "celExpressions": ["managedCluster.metadata.labels.env == 'prod'"] } }));
    assert_eq!(chosen(&spec, vec![plain("none"), labelled("prod", "env", "prod")]), ["prod"]);
}

#[test]
fn expressions_see_scores_until_they_are_out_of_date() {
    let spec = predicate(&json!({ "celSelector": { "celExpressions": [
        "managedCluster.scores('load').exists(s, s.name == 'free' && s.value > 50)",
    ] } }));
    let mut case = Case::new(&spec, [plain("free"), plain("busy"), plain("unknown")]);
    case.scores = vec![score("free", 60, Some(30)), score("busy", 40, None)];
    let decision = case.decide();
    assert_eq!(selected(&decision), ["free"]);
    assert_eq!(decision.wake_up, Some(at(30)));
    assert!(case.program().reads_score("load") && !case.program().reads_score("other"));
    case.now = at(30);
    assert!(selected(&case.decide()).is_empty());
}

#[test]
fn a_terminating_cluster_is_never_selected() {
    let mut terminating = plain("a");
    terminating.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(noon()));
    let mut case = Case::new(&json!({}), [terminating.clone(), plain("b")]);
    assert_eq!(selected(&case.decide()), ["b"]);
    case.clusters = vec![plain("a"), plain("b")];
    let mut settled = case.settled();
    settled.clusters = vec![terminating, plain("b")];
    assert_eq!(selected(&settled.decide()), ["b"]);
}

// ---- Taints

#[test]
fn a_taint_is_tolerated_by_key_value_and_effect() {
    let taint = json!({ "key": "gpu", "value": "yes", "effect": "NoSelect" });
    let subject = cluster("c", &json!({}), &json!({ "spec": { "taints": [taint] } }));
    let tolerates = |toleration: Value| {
        let program = program(&json!({ "tolerations": [toleration] }));
        program.judge(&subject, &Scores::default(), false, noon()).candidate().is_some()
    };
    assert!(tolerates(json!({ "operator": "Exists" })));
    assert!(tolerates(json!({ "key": "gpu", "operator": "Exists" })));
    assert!(tolerates(json!({ "key": "gpu", "value": "yes" })));
    assert!(tolerates(json!({ "key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSelect" })));
    assert!(!tolerates(json!({ "key": "gpu" })));
    assert!(!tolerates(json!({ "key": "gpu", "value": "no" })));
    assert!(!tolerates(json!({ "key": "other", "operator": "Exists" })));
    assert!(!tolerates(json!({ "key": "gpu", "value": "yes", "effect": "PreferNoSelect" })));
}

#[test]
fn a_toleration_runs_out_after_its_seconds() {
    let spec = json!({ "tolerations": [{ "key": "t", "operator": "Exists", "tolerationSeconds": 60 }] });
    let mut case = Case::new(&spec, [tainted("c", "t", "NoSelect", noon())]);
    let decision = case.decide();
    assert_eq!((selected(&decision), decision.wake_up), (vec!["c"], Some(at(60))));
    case.now = at(60);
    let decision = case.decide();
    assert_eq!((selected(&decision), decision.wake_up), (vec![], None));
    assert_eq!(decision.left_out, [(LeftOut::Tainted { key: "t".into() }, 1)].into());
}

#[test]
fn an_expired_toleration_falls_through_to_the_next() {
    let spec = json!({ "tolerations": [
        { "key": "t", "operator": "Exists", "tolerationSeconds": 60 },
        { "key": "t", "operator": "Exists", "tolerationSeconds": 300 },
    ] });
    let case = Case::new(&spec, [tainted("c", "t", "NoSelect", noon())]);
    assert_eq!(case.decide().wake_up, Some(at(300)));
}

#[test]
fn a_taint_that_is_not_stamped_yet_was_added_just_now() {
    let taint = json!({ "key": "t", "effect": "NoSelect" });
    let subject = cluster("c", &json!({}), &json!({ "spec": { "taints": [taint] } }));
    let spec = json!({ "tolerations": [{ "key": "t", "operator": "Exists", "tolerationSeconds": 60 }] });
    assert_eq!(chosen(&spec, vec![subject]), ["c"]);
}

#[test]
fn who_is_selected_stays_under_no_select_if_new() {
    let mut case = Case::new(&json!({}), [plain("a"), tainted("b", "t", "NoSelectIfNew", noon())]);
    assert_eq!(selected(&case.decide()), ["a"]);
    assert!(case.verdicts()[1].hinges_on_selection && !case.verdicts()[0].hinges_on_selection);
    case.clusters[1] = plain("b");
    let mut settled = case.settled();
    settled.clusters[1] = tainted("b", "t", "NoSelectIfNew", noon());
    assert_eq!(selected(&settled.decide()), ["a", "b"]);
}

#[test]
fn prefer_no_select_comes_behind_all_others() {
    let fleet = || vec![tainted("a", "t", "PreferNoSelect", noon()), plain("b"), plain("c")];
    assert_eq!(chosen(&json!({ "numberOfClusters": 2 }), fleet()), ["b", "c"]);
    assert_eq!(chosen(&json!({ "numberOfClusters": 3 }), fleet()), ["a", "b", "c"]);
    let tolerating = json!({ "numberOfClusters": 2, "tolerations": [{ "operator": "Exists" }] });
    assert_eq!(chosen(&tolerating, fleet()), ["a", "b"]);
}

// ---- Ranking

#[test]
fn clusters_as_good_as_each_other_go_by_name() {
    assert_eq!(chosen(&json!({ "numberOfClusters": 2 }), vec![plain("c"), plain("a"), plain("b")]), ["a", "b"]);
}

#[test]
fn who_is_selected_stays_though_others_came() {
    let mut case = Case::new(&json!({ "numberOfClusters": 1 }), [plain("b")]).settled();
    case.clusters.push(plain("a"));
    assert_eq!(selected(&case.decide()), ["b"]);
}

#[test]
fn balance_prefers_clusters_that_others_did_not_select() {
    let mut case = Case::new(&json!({ "numberOfClusters": 1 }), [plain("a"), plain("b")]);
    case.elsewhere = [("a".to_owned(), 2), ("b".to_owned(), 1)].into();
    assert_eq!(selected(&case.decide()), ["b"]);
    let columns = case
        .with_facts(&|name| case.elsewhere[name.as_str()], |program, facts| program.scores(&case.verdicts(), facts));
    let balance = columns.iter().find(|column| column.prioritizer == "Balance").expect("Balance counts");
    assert_eq!(balance.scores, [("a".into(), -100), ("b".into(), 0)]);
}

#[test]
fn balance_drives_nobody_out_while_steady_counts() {
    let mut case = Case::new(&json!({ "numberOfClusters": 1 }), [plain("a"), plain("b")]).settled();
    case.elsewhere = [("a".to_owned(), 9)].into();
    assert_eq!(selected(&case.decide()), ["a"]);
    let only_balance = json!([{ "scoreCoordinate": { "builtIn": "Balance" }, "weight": 1 }]);
    case.placement = placement(&prioritizers("Exact", &only_balance));
    assert_eq!(selected(&case.decide()), ["b"]);
}

#[test]
fn resources_are_compared_by_amount() {
    let cpu = |weight| json!([{ "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": weight }]);
    let fleet = || vec![with_cpu("a", "500m"), with_cpu("b", "2"), with_cpu("c", "1")];
    assert_eq!(chosen(&prioritizers("Additive", &cpu(1)), fleet()), ["b"]);
    assert_eq!(chosen(&prioritizers("Additive", &cpu(-1)), fleet()), ["a"]);
    assert_eq!(chosen(&prioritizers("Additive", &cpu(0)), fleet()), ["a"]);
}

#[test]
fn an_add_on_score_counts_until_it_is_out_of_date() {
    let add_on = json!([{
        "scoreCoordinate": { "type": "AddOn", "addOn": { "resourceName": "load", "scoreName": "free" } }, "weight": 1,
    }]);
    let mut case = Case::new(&prioritizers("Exact", &add_on), [plain("a"), plain("b"), plain("c")]);
    case.scores = vec![score("a", -20, None), score("c", 80, Some(30))];
    let decision = case.decide();
    assert_eq!((selected(&decision), decision.wake_up), (vec!["c"], Some(at(30))));
    case.now = at(30);
    assert_eq!(selected(&case.decide()), ["b"]);
}

#[test]
fn nobody_is_scored_where_all_are_selected() {
    let case = Case::new(&json!({ "numberOfClusters": 2 }), [plain("a"), plain("b")]);
    let decision =
        case.with_facts(&|_| panic!("no score is needed"), |program, facts| program.decide(&case.verdicts(), facts));
    assert_eq!(selected(&decision), ["a", "b"]);
}

// ---- Spread

fn spread(when: &str, skew: i32, number: Option<i32>) -> Value {
    let mut spec = json!({ "spreadPolicy": { "spreadConstraints": [
        { "topologyKey": "region", "topologyKeyType": "Label", "maxSkew": skew, "whenUnsatisfiable": when },
    ] } });
    if let Some(number) = number {
        spec["numberOfClusters"] = number.into();
    }
    spec
}

fn two_regions() -> Vec<drover_api::cluster::ManagedCluster> {
    let mut fleet: Vec<_> = ["a", "b", "c", "d"].into_iter().map(|name| labelled(name, "region", "eu")).collect();
    fleet.extend([labelled("y", "region", "us"), plain("z")]);
    fleet
}

#[test]
fn do_not_schedule_selects_fewer_rather_than_uneven() {
    let case = Case::new(&spread("DoNotSchedule", 1, Some(4)), two_regions());
    let decision = case.decide();
    assert_eq!(selected(&decision), ["a", "b", "y"]);
    assert_eq!(decision.left_out[&LeftOut::SpreadTooFar], 3);
    let (satisfied, reason, message) = condition(&decision.status, status::SATISFIED);
    assert_eq!((satisfied.as_str(), reason.as_str()), ("False", "NotAllDecisionsScheduled"));
    assert_eq!(message, "3 of 6 clusters selected, 1 more wanted; left out: 3 kept back by spread constraints");
    assert_eq!(chosen(&spread("DoNotSchedule", 3, None), two_regions()), ["a", "b", "c", "d", "y"]);
}

#[test]
fn schedule_anyway_spreads_first_and_then_takes_what_there_is() {
    assert_eq!(chosen(&spread("ScheduleAnyway", 1, Some(2)), two_regions()), ["a", "y"]);
    assert_eq!(chosen(&spread("ScheduleAnyway", 1, Some(5)), two_regions()), ["a", "b", "c", "d", "y"]);
    assert_eq!(chosen(&spread("ScheduleAnyway", 1, None), two_regions()).len(), 6);
}

#[test]
fn clusters_can_be_spread_over_a_claim() {
    let spec = json!({ "numberOfClusters": 2, "spreadPolicy": { "spreadConstraints": [
        { "topologyKey": "region", "topologyKeyType": "Claim", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule" },
    ] } });
    let fleet = vec![with_claim("a", "region", "eu"), with_claim("b", "region", "eu"), with_claim("c", "region", "us")];
    assert_eq!(chosen(&spec, fleet), ["a", "c"]);
}

// ---- Groups and slices

#[test]
fn a_cluster_is_in_the_first_group_that_it_matches_and_large_groups_are_divided() {
    let group = |name: &str, label: &str| {
        json!({ "groupName": name, "groupClusterSelector": { "labelSelector": { "matchExpressions": [
            { "key": label, "operator": "Exists" },
        ] } } })
    };
    let spec = json!({ "decisionStrategy": { "groupStrategy": {
        "decisionGroups": [group("canary", "canary"), group("stage", "stage"), group("empty", "nobody")],
        "clustersPerDecisionGroup": "40%",
    } } });
    let fleet = [
        labelled("c1", "canary", ""),
        cluster("c2", &json!({ "canary": "", "stage": "" }), &json!({})),
        labelled("c3", "canary", ""),
        labelled("s1", "stage", ""),
        plain("r1"),
    ];
    let decision = Case::new(&spec, fleet).decide();
    let groups: Vec<_> = decision
        .status
        .decision_groups
        .iter()
        .map(|group| {
            let name = group.decision_group_name.as_deref().unwrap_or_default();
            (group.decision_group_index, name, group.decisions.join(","), group.cluster_count)
        })
        .collect();
    assert_eq!(
        groups,
        [
            (0, "canary", "p-decision-1".to_owned(), 2),
            (1, "canary", "p-decision-2".to_owned(), 1),
            (2, "stage", "p-decision-3".to_owned(), 1),
            (3, "", "p-decision-4".to_owned(), 1),
        ]
    );
    let labels = decision.slices[1].labels("p");
    assert_eq!(labels["cluster.open-cluster-management.io/placement"], "p");
    assert_eq!(labels["cluster.open-cluster-management.io/decision-group-name"], "canary");
    assert_eq!(labels["cluster.open-cluster-management.io/decision-group-index"], "1");
}

#[test]
fn nothing_selected_is_one_empty_slice() {
    let decision = Case::new(&json!({}), []).decide();
    assert_eq!(decision.slices.len(), 1);
    assert_eq!((decision.slices[0].name.as_str(), decision.slices[0].decisions.len()), ("p-decision-1", 0));
    assert_eq!(decision.status.decision_groups.len(), 1);
}

#[test]
fn a_slice_of_a_name_that_is_not_ours_is_not_kept() {
    let mut case = Case::new(&json!({}), [plain("a")]).settled();
    case.current[0].name = "p-decision-01".into();
    assert_eq!(case.decide().slices[0].name, "p-decision-1");
}

#[test]
fn sorted_by_score_the_best_comes_first_with_its_score() {
    let mut spec =
        prioritizers("Exact", &json!([{ "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": 2 }]));
    spec["sortBy"] = "Score".into();
    spec["numberOfClusters"] = 2.into();
    let case = Case::new(&spec, [with_cpu("a", "1"), with_cpu("b", "3"), with_cpu("c", "2")]);
    let decision = case.decide();
    let scores: Vec<_> = decision.slices[0].decisions.iter().map(|d| (d.cluster_name.as_str(), d.score)).collect();
    assert_eq!(scores, [("b", Some(200)), ("c", Some(0))]);
    assert_eq!(decision.status.last_score_update_time.map(|time| time.0), Some(noon()));
}

#[test]
fn scores_alone_change_decisions_no_more_often_than_the_limit() {
    let spec = json!({ "sortBy": "Score", "scoreRateLimit": "30s", "prioritizerPolicy": { "mode": "Exact", "configurations": [
        { "scoreCoordinate": { "builtIn": "ResourceAllocatableCPU" }, "weight": 1 },
    ] } });
    let mut case = Case::new(&spec, [with_cpu("a", "1"), with_cpu("b", "2")]).settled();
    case.now = at(10);
    case.clusters[0] = with_cpu("a", "3");
    let decision = case.decide();
    assert_eq!((selected(&decision), decision.wake_up), (vec!["b", "a"], Some(at(30))));
    case.now = at(30);
    assert_eq!(selected(&case.decide()), ["a", "b"]);
    // Who comes or goes does not wait.
    case.now = at(10);
    case.clusters.push(with_cpu("c", "1"));
    assert_eq!(selected(&case.decide()), ["a", "b", "c"]);
}

// ---- Status

#[test]
fn the_message_counts_why_clusters_were_left_out() {
    let mut spec = predicate(&json!({ "labelSelector": { "matchLabels": { "env": "prod" } } }));
    spec["numberOfClusters"] = 3.into();
    let tainted = |name: &str| {
        let taint = json!({ "key": "unreachable", "effect": "NoSelect" });
        cluster(name, &json!({ "env": "prod" }), &json!({ "spec": { "taints": [taint] } }))
    };
    let fleet = [plain("a"), plain("b"), tainted("c"), labelled("d", "env", "prod")];
    let decision = Case::new(&spec, fleet).decide();
    let (satisfied, reason, message) = condition(&decision.status, status::SATISFIED);
    assert_eq!((satisfied.as_str(), reason.as_str()), ("False", "NotAllDecisionsScheduled"));
    let expected = "1 of 4 clusters selected, 2 more wanted; \
                    left out: 2 matching no predicate, 1 with the taint unreachable not tolerated";
    assert_eq!(message, expected);
    let (misconfigured, reason, _) = condition(&decision.status, status::MISCONFIGURED);
    assert_eq!((misconfigured.as_str(), reason.as_str()), ("False", "Succeedconfigured"));
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let mut case = Case::new(&json!({ "numberOfClusters": 1 }), [plain("a")]).settled();
    case.now = at(100);
    case.clusters.push(plain("b"));
    let decision = case.decide();
    assert!(decision.status.conditions.iter().all(|condition| condition.last_transition_time.0 == noon()));
    case.clusters.clear();
    let decision = case.decide();
    let satisfied = decision.status.conditions.iter().find(|c| c.type_ == status::SATISFIED).expect("it says so");
    assert_eq!(satisfied.last_transition_time.0, at(100));
}

#[test]
fn a_placement_that_becomes_invalid_keeps_its_decision_and_says_so() {
    let case = Case::new(&json!({}), [plain("a"), plain("b")]).settled();
    let error = Program::compile(&placement(&json!({ "numberOfClusters": -1 }))).expect_err("makes no sense");
    let before = status::Before { status: case.status.as_ref(), generation: Some(2), now: at(5) };
    let now = status::misconfigured(&error, &before);
    assert_eq!(now.number_of_selected_clusters, 2);
    assert_eq!(now.decision_groups, case.status.as_ref().expect("settled").decision_groups);
    let (misconfigured, reason, message) = condition(&now, status::MISCONFIGURED);
    assert_eq!((misconfigured.as_str(), reason.as_str()), ("True", "Misconfigured"));
    assert_eq!(
        message,
        "NumberOfClusters: numberOfClusters is -1: write 0 or more, or leave it out to select all that match"
    );
    assert_eq!(condition(&now, status::SATISFIED).0, "False");
}

#[test]
fn what_makes_no_sense_is_named() {
    let labels = |requirement: Value| predicate(&json!({ "labelSelector": { "matchExpressions": [requirement] } }));
    let place = "Predicate: predicates[0].requiredClusterSelector";
    assert_eq!(
        complaint(&labels(json!({ "key": "env", "operator": "Equals", "values": ["a"] }))),
        format!(
            "{place}.labelSelector: the operator \"Equals\" of \"env\" is none of In, NotIn, Exists and DoesNotExist"
        )
    );
    assert_eq!(
        complaint(&labels(json!({ "key": "env", "operator": "In" }))),
        format!("{place}.labelSelector: In of \"env\" needs values")
    );
    assert_eq!(
        complaint(&labels(json!({ "key": "env", "operator": "Exists", "values": ["a"] }))),
        format!("{place}.labelSelector: Exists of \"env\" takes no values")
    );
    assert_eq!(
        complaint(&predicate(&json!({ "celSelector": { "celExpressions": ["true", "cluster.name == 'a'"] } }))),
        format!(
            "{place}.celSelector.celExpressions[1]: the expression \"cluster.name == 'a'\" uses \"cluster\", \
             which there is not: the cluster is `managedCluster`"
        )
    );
    for (spec, words) in [
        (json!({ "tolerations": [{ "operator": "Equal", "value": "a" }] }), "tolerations[0]: write a key"),
        (json!({ "tolerations": [{ "key": "a", "operator": "Exists", "value": "b" }] }), "remove the value \"b\""),
        (json!({ "tolerations": [{ "key": "a", "operator": "Like" }] }), "neither Equal nor Exists"),
        (prioritizers("Additive", &json!([{ "scoreCoordinate": { "builtIn": "Spread" } }])), "no built-in \"Spread\""),
        (prioritizers("Additive", &json!([{ "scoreCoordinate": { "type": "AddOn" } }])), "write addOn"),
        (prioritizers("Most", &json!([])), "neither Additive nor Exact"),
        (spread("DoNotSchedule", 0, None), "maxSkew is 0: write 1 or more"),
        (json!({ "scoreRateLimit": "soon" }), "scoreRateLimit is \"soon\""),
    ] {
        let complaint = complaint(&spec);
        assert!(complaint.contains(words), "{complaint}");
    }
}

#[test]
fn verdicts_name_the_reason() {
    let outcome = |cluster| program(&json!({})).judge(cluster, &Scores::default(), false, noon()).outcome;
    assert_eq!(
        outcome(&tainted("c", "unreachable", "NoSelect", noon())),
        Outcome::LeftOut(LeftOut::Tainted { key: "unreachable".into() })
    );
}
