use drover_api::work::FeedbackScrapeType;
use serde_json::{Value, json};

use super::*;
use crate::template::{
    RenderedWork, Rendering,
    fixtures::{Case, config_map, workload},
};

fn case(configs: Value) -> Case {
    Case::new([workload("Deployment", &json!({ "name": "main" })), config_map("a")])
        .with("/agentSpec/manifestConfigs", configs)
}

fn only(rendering: Rendering) -> RenderedWork {
    let [work] = rendering.works.try_into().expect("one work");
    work
}

fn rendered(configs: Value) -> Vec<ManifestConfig> {
    only(case(configs).render()).work.spec.manifest_configs
}

fn deployment(name: &str, more: &Value) -> Value {
    let mut config = json!({ "resourceIdentifier": { "group": "apps", "resource": "deployments", "namespace": "ns", "name": name } });
    let fields = more.as_object().expect("fields").clone();
    config.as_object_mut().expect("fields").extend(fields);
    config
}

fn of_config_map(name: &str, namespace: &str) -> Value {
    json!({
        "resourceIdentifier": { "resource": "configmaps", "namespace": namespace, "name": name },
        "updateStrategy": { "type": "CreateOnly" },
    })
}

fn reported(config: &ManifestConfig) -> Vec<&str> {
    config.feedback_rules.iter().flat_map(|rule| &rule.json_paths).map(|path| path.name.as_str()).collect()
}

#[test]
fn what_proves_a_set_is_reported_of_every_workload() {
    for (kind, wanted, count) in [
        ("Deployment", ".spec.replicas", 8),
        ("StatefulSet", ".spec.replicas", 7),
        ("DaemonSet", ".status.desiredNumberScheduled", 7),
    ] {
        let work = only(Case::new([workload(kind, &json!({ "name": "main" })), config_map("a")]).render());
        let [config] = &work.work.spec.manifest_configs[..] else { panic!("one is enough") };
        let identifier = &config.resource_identifier;
        assert_eq!(identifier.group.as_deref(), Some("apps"));
        assert_eq!(identifier.resource, format!("{}s", kind.to_lowercase()));
        assert_eq!((identifier.namespace.as_deref(), identifier.name.as_str()), (Some("ns"), "agent"));
        let [rule] = &config.feedback_rules[..] else { panic!("one rule is enough") };
        assert_eq!(rule.json_paths.len(), count);
        assert_eq!(rule.json_paths.iter().find(|path| path.name == "drover-wanted").expect("it is there").path, wanted);
        assert_eq!(config.update_strategy, None);
    }
}

#[test]
fn what_the_template_reports_is_reported_beside_ours() {
    let rules = json!([
        { "type": "WellKnownStatus" },
        { "type": "JSONPaths", "jsonPaths": [{ "name": "own", "path": ".status.x" }, { "name": "drover-set", "path": ".status.y" }] },
    ]);
    let more = json!({ "feedbackRules": rules, "updateStrategy": { "type": "ServerSideApply" }, "feedbackScrapeType": "Watch" });
    let configs = rendered(json!([deployment("agent", &more)]));
    let [config] = &configs[..] else { panic!("theirs and ours are one: {configs:?}") };
    assert_eq!(config.update_strategy.as_ref().expect("theirs").kind, UpdateStrategyType::ServerSideApply);
    assert_eq!(config.feedback_scrape_type, Some(FeedbackScrapeType::Watch));
    assert_eq!(config.feedback_rules[0].kind, FeedbackType::WellKnownStatus);
    assert_eq!((reported(config)[0], reported(config).len()), ("own", 9));
    let set = config.feedback_rules[1].json_paths.iter().filter(|path| path.name == "drover-set");
    assert_eq!(set.map(|path| path.path.as_str()).collect::<Vec<_>>(), [r".metadata.annotations.drover\.dev/set"]);
}

#[test]
fn patterns_are_merged_into_an_entry_in_front_of_them() {
    let broad = json!({ "updateStrategy": { "type": "ServerSideApply" }, "feedbackScrapeType": "Watch" });
    let exact = json!({ "feedbackRules": [{ "type": "WellKnownStatus" }], "feedbackScrapeType": "Poll" });
    let all = json!({ "resourceIdentifier": { "resource": "configmaps", "namespace": "*", "name": "*" } });
    let configs = rendered(json!([deployment("*", &broad), all, deployment("agent", &exact)]));
    assert_eq!(configs.len(), 2);
    assert_eq!(configs[0].resource_identifier.name, "agent");
    assert_eq!(configs[0].update_strategy.as_ref().expect("the pattern's").kind, UpdateStrategyType::ServerSideApply);
    assert_eq!(configs[0].feedback_rules[0].kind, FeedbackType::WellKnownStatus);
    // How often to look is the one thing in which agents take the last word.
    assert_eq!(configs[0].feedback_scrape_type, Some(FeedbackScrapeType::Poll));
    assert_eq!(configs[1], serde_json::from_value(all).expect("a config"));
}

#[test]
fn only_what_is_about_something_in_the_work_is_said() {
    let others = json!([
        of_config_map("b", "ns"),
        of_config_map("a", "other"),
        deployment("other", &json!({})),
        { "resourceIdentifier": { "group": "apps", "resource": "configmaps", "namespace": "ns", "name": "a" } },
        { "resourceIdentifier": { "resource": "secrets", "namespace": "ns", "name": "a" } },
        of_config_map("a", "ns"),
    ]);
    let configs = rendered(others);
    assert_eq!(configs.len(), 2);
    assert_eq!(configs[1], serde_json::from_value(of_config_map("a", "ns")).expect("a config"));
}

#[test]
fn what_is_not_kept_up_is_not_stamped() {
    for (strategy, is_stamped) in
        [("Update", true), ("ServerSideApply", true), ("CreateOnly", false), ("ReadOnly", false)]
    {
        for name in ["agent", "*", "ag*t"] {
            let more = json!({ "updateStrategy": { "type": strategy } });
            let work = only(case(json!([deployment(name, &more)])).render());
            assert_eq!(work.workloads[0].is_stamped, is_stamped, "{strategy}");
            let annotations = &work.work.spec.manifests()[0]["metadata"]["annotations"];
            assert_eq!(annotations.get("drover.dev/set").is_some(), is_stamped, "{strategy}");
        }
    }
    // The first that says anything decides.
    let (first, second) =
        (json!({ "updateStrategy": { "type": "Update" } }), json!({ "updateStrategy": { "type": "ReadOnly" } }));
    let work = only(case(json!([deployment("agent", &first), deployment("*", &second)])).render());
    assert!(work.workloads[0].is_stamped);
}

#[test]
fn what_is_said_of_an_object_follows_it_to_another_namespace() {
    let only_created = json!({ "updateStrategy": { "type": "CreateOnly" } });
    let configs = json!([deployment("agent", &only_created), of_config_map("a", "n*")]);
    let work = only(case(configs).settings(json!({ "agentInstallNamespace": "home" })).render());
    let configs = &work.work.spec.manifest_configs;
    assert_eq!(configs.len(), 2);
    for config in configs {
        assert_eq!(config.resource_identifier.namespace.as_deref(), Some("home"));
        assert_eq!(config.update_strategy.as_ref().expect("it is kept").kind, UpdateStrategyType::CreateOnly);
    }
    assert!(!work.workloads[0].is_stamped);
}
