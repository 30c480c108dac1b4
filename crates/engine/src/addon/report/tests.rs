//! What is said of add-ons that are made from templates.

use drover_api::{
    addon::ManagedClusterAddOnSpec, cluster::ManagedClusterSpec, names::ADDON_NAME_LABEL, work::ManifestWork,
};
use serde_json::{Value, json};

use super::*;
use crate::template::{Marks, Workload, WorkloadKind, digest, fixtures::view};

const NAME: &str = "addon-hello-deploy-0";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a valid time")
}

fn says(type_: &str, status: &str, generation: i64) -> Value {
    json!({ "type": type_, "status": status, "reason": "Test", "message": "as was said",
        "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

/// A work that has these conditions, and whose Deployment has that one, if it has said anything.
fn work(conditions: &[Value], available: Option<&str>) -> ManifestWork {
    let value = |text| json!({ "name": "drover-condition", "fieldValue": { "type": "String", "string": text } });
    let values: Vec<_> = available.map(value).into_iter().collect();
    let meta = json!({ "ordinal": 0, "group": "apps", "kind": "Deployment", "namespace": "agents", "name": "agent" });
    let manifest = json!({ "resourceMeta": meta, "statusFeedback": { "values": values }, "conditions": [] });
    let object = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": NAME, "generation": 2, "labels": { ADDON_NAME_LABEL: "hello" } }, "spec": {},
        "status": { "conditions": conditions, "resourceStatus": { "manifests": [manifest] } },
    });
    serde_json::from_value(object).expect("a work")
}

fn expected() -> Vec<Expected> {
    let work = work(&[], None);
    let (kind, namespace, name) = (WorkloadKind::Deployment, "agents".to_owned(), "agent".to_owned());
    let workloads = vec![Workload { kind, namespace, name, is_stamped: true }];
    vec![Expected {
        name: NAME.to_owned(),
        digest: digest(&work.spec),
        objects: Vec::new(),
        marks: Marks::of(&work),
        workloads,
    }]
}

fn on_cluster() -> ManagedClusterAddOn {
    let mut addon = ManagedClusterAddOn::new("hello", ManagedClusterAddOnSpec::default());
    addon.metadata.namespace = Some("one".to_owned());
    addon
}

/// What is said of an add-on with these works, whose conditions were these.
fn said(maker: Maker<'_>, works: &[ManifestWork], before: &[Value]) -> Vec<String> {
    let views: Vec<_> = works.iter().map(view).collect();
    let works: Vec<_> = views.iter().collect();
    let on_cluster = on_cluster();
    let report = Report {
        on_cluster: &on_cluster,
        blueprint: None,
        namespace: None,
        maker,
        works: &works,
        cluster: None,
        registered: None,
        dialect: Dialect::Drover,
    };
    let conditions = serde_json::from_value(json!(before)).expect("conditions");
    let status = ManagedClusterAddOnStatus { conditions, ..ManagedClusterAddOnStatus::default() };
    let status = report.written(status, at(0));
    status.conditions.iter().map(|said| format!("{} {}/{}", said.type_, said.status, said.reason)).collect()
}

#[test]
fn works_are_applied_when_all_are_there_and_say_so() {
    let expected = expected();
    let template = || Maker::Template(&expected);
    let applied = says("Applied", "True", 2);
    let rows = [
        (template(), vec![work(std::slice::from_ref(&applied), None)], "ManifestApplied True/AddonManifestApplied"),
        (
            template(),
            vec![work(&[says("Applied", "False", 2)], None)],
            "ManifestApplied False/AddonManifestAppliedFailed",
        ),
        (Maker::Nobody("why not"), Vec::new(), "ManifestApplied False/ManifestWorkApplyFailed"),
        (Maker::Former, vec![work(&[applied], None)], "ManifestApplied True/AddonManifestApplied"),
    ];
    for (maker, works, sentence) in rows {
        assert_eq!(said(maker, &works, &[])[0], sentence);
    }
}

#[test]
fn as_long_as_nobody_knows_it_is_said_what_was_said_unless_that_was_a_failure() {
    let expected = expected();
    let template = || Maker::Template(&expected);
    let was = |status| {
        json!({ "type": "ManifestApplied", "status": status, "reason": "Before", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    for works in [Vec::new(), vec![work(&[], None)], vec![work(&[says("Applied", "True", 1)], None)]] {
        assert_eq!(said(template(), &works, &[was("True")])[0], "ManifestApplied True/Before");
        assert!(!said(template(), &works, &[was("False")]).iter().any(|said| said.starts_with("ManifestApplied")));
    }
}

#[test]
fn an_add_on_is_as_well_as_what_it_deploys_says() {
    let expected = expected();
    let template = || Maker::Template(&expected);
    let available = |status| [says("Available", status, 2)];
    let rows = [
        (work(&available("True"), Some("True")), "Available True/ProbeAvailable"),
        (work(&available("True"), Some("False")), "Available False/ProbeUnavailable"),
        (work(&available("True"), None), "Available Unknown/NoProbeResult"),
        (work(&available("False"), Some("True")), "Available False/WorkNotApplied"),
        (work(&[], Some("True")), "Available Unknown/NoProbeResult"),
        (work(&[says("Available", "True", 1)], Some("True")), "Available True/ProbeAvailable"),
    ];
    for (work, sentence) in rows {
        let said = said(template(), std::slice::from_ref(&work), &[]);
        assert_eq!(said.last().map(String::as_str), Some(sentence), "{work:?}");
    }
    let was = says("Available", "True", 2);
    assert_eq!(said(template(), &[], &[was]), ["Available True/Test"], "a work that is made again changes nothing");
}

#[test]
fn the_types_that_can_be_configured_are_known() {
    let on_cluster = on_cluster();
    let report = Report {
        on_cluster: &on_cluster,
        blueprint: None,
        namespace: Some("agents"),
        maker: Maker::NotYet,
        works: &[],
        cluster: None,
        registered: Some(Registered::NotNeeded),
        dialect: Dialect::Drover,
    };
    let status = report.written(ManagedClusterAddOnStatus::default(), at(0));
    let types: Vec<_> = status.supported_configs.iter().map(|type_| type_.resource.as_str()).collect();
    assert_eq!(types, ["addontemplates", "addondeploymentconfigs"]);
    assert_eq!(status.namespace.as_deref(), Some("agents"));
    assert_eq!(condition::holds(&status.conditions, "RegistrationApplied"), Some(Holds::Yes));
}

#[test]
fn health_that_an_agent_tells_stays_the_agents_though_the_template_is_lost() {
    let on_cluster = on_cluster();
    let work = work(&[says("Available", "True", 2), says("Applied", "True", 2)], Some("True"));
    let said = |mode: Option<HealthCheckMode>| {
        let report = Report {
            on_cluster: &on_cluster,
            blueprint: None,
            namespace: None,
            maker: Maker::Former,
            works: &[&view(&work)],
            cluster: None,
            registered: None,
            dialect: Dialect::Drover,
        };
        let conditions = serde_json::from_value(json!([says("Available", "False", 1)])).expect("conditions");
        let health_check = mode.map(|mode| HealthCheck { mode: Some(mode) });
        let status = ManagedClusterAddOnStatus { conditions, health_check, ..ManagedClusterAddOnStatus::default() };
        condition::holds(&report.written(status, at(0)).conditions, AVAILABLE)
    };
    assert_eq!(said(Some(HealthCheckMode::Lease)), Some(Holds::No));
    assert_eq!(said(Some(HealthCheckMode::Customized)), Some(Holds::Yes));
    assert_eq!(said(None), Some(Holds::Yes));
}

#[test]
fn nobody_knows_how_an_add_on_is_whose_cluster_is_not_heard_of() {
    let cluster = |status: &str| {
        let mut cluster = ManagedCluster::new("one", ManagedClusterSpec::default());
        let said = json!([{ "type": "ManagedClusterConditionAvailable", "status": status, "reason": "Whatever",
            "message": "not heard of", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        cluster.status.get_or_insert_default().conditions = serde_json::from_value(said).expect("conditions");
        cluster
    };
    let well: Vec<Condition> = serde_json::from_value(json!([says("Available", "True", 1)])).expect("conditions");
    let lost = reachable(well.clone(), &cluster("Unknown"), at(0));
    let said: Vec<_> = lost.iter().map(|said| (&*said.status, &*said.reason, &*said.message)).collect();
    assert_eq!(said, [("Unknown", UNREACHABLE, "not heard of")]);
    for status in ["True", "False"] {
        assert_eq!(reachable(well.clone(), &cluster(status), at(0)), well, "{status}");
    }
    assert!(reachable(Vec::new(), &cluster("Unknown"), at(0)).is_empty(), "it has never said anything");
}

#[test]
fn an_add_on_whose_cluster_is_not_heard_of_says_the_same_each_time() {
    let expected = expected();
    let mut cluster = ManagedCluster::new("one", ManagedClusterSpec::default());
    let said = json!([{ "type": "ManagedClusterConditionAvailable", "status": "Unknown", "reason": "Whatever",
        "message": "not heard of", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    cluster.status.get_or_insert_default().conditions = serde_json::from_value(said).expect("conditions");
    let work = work(&[says("Available", "True", 2), says("Applied", "True", 2)], Some("True"));
    let on_cluster = on_cluster();
    let look = |before: ManagedClusterAddOnStatus, now| {
        let report = Report {
            on_cluster: &on_cluster,
            blueprint: None,
            namespace: None,
            maker: Maker::Template(&expected),
            works: &[&view(&work)],
            cluster: Some(&cluster),
            registered: None,
            dialect: Dialect::Drover,
        };
        let mut status = report.written(before, now);
        status.conditions = reachable(status.conditions, &cluster, now);
        status
    };
    let well = serde_json::from_value(json!([says("Available", "True", 1)])).expect("conditions");
    let first = look(ManagedClusterAddOnStatus { conditions: well, ..ManagedClusterAddOnStatus::default() }, at(0));
    assert_eq!(condition::holds(&first.conditions, AVAILABLE), Some(Holds::Unknown));
    assert_eq!(look(first.clone(), at(60)), first);
}
