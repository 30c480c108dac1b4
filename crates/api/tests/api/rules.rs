//! Every rule of the API is shown by a case in `rules.yaml`, and kube-cel judges the cases as the API server does.

use std::collections::{BTreeMap, BTreeSet};

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::{Value, json};

use crate::{
    case::{By, Case, cases},
    schema::{fields, versions},
};

/// The rules of every CustomResourceDefinition as kube-cel understands them, by kind and version.
struct Judge {
    validator: Validator,
    schemas: BTreeMap<(String, String), CompiledSchema>,
}

/// What a judge has against an object: the field, as the API server spells it, and the message.
type Objection = (String, String);

impl Judge {
    fn new() -> Self {
        let compiled = |(kind, version, schema)| ((kind, version), compile_schema(&schema));
        Self { validator: Validator::new(), schemas: versions().into_iter().map(compiled).collect() }
    }

    /// What is wrong with writing `object` over `before`, once the defaults are filled in.
    fn objections(&self, object: &Value, before: Option<&Value>) -> Vec<Objection> {
        let verdict = self.validator.validate_compiled(self.schema_of(object), object, before);
        let errors = verdict.err().into_iter().flatten();
        errors.map(|error| (as_the_api_server_spells(&error.field_path), error.message)).collect()
    }

    fn schema_of(&self, object: &Value) -> &CompiledSchema {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let schema = self.schemas.get(&(kind, version));
        schema.unwrap_or_else(|| panic!("there is no CustomResourceDefinition for {object}"))
    }

    /// Judges the objects of a case and says where that differs from what the case says.
    fn disagreements(&self, case: &Case) -> Vec<String> {
        let before = case.before.as_ref();
        let mut checks = vec![("accepted", self.objections(&case.accepted, before), Vec::new())];
        if let Some(before) = before {
            checks.push(("before", self.objections(before, None), Vec::new()));
        }
        if case.by == By::Cel {
            let refused = case.refused.as_ref().expect("a case in CEL has an object that is refused");
            let field = case.field.clone().expect("a case in CEL names a field");
            checks.push(("refused", self.objections(refused, before), vec![(field, case.rule.clone())]));
        }
        let differing = checks.into_iter().filter(|(_, found, expected)| found != expected);
        differing.map(|(which, found, _)| format!("{}: kube-cel has against {which}: {found:?}", case.rule)).collect()
    }
}

/// kube-cel begins the path that a rule at the object's root names with a dot.
fn as_the_api_server_spells(field: &str) -> String {
    field.strip_prefix('.').unwrap_or(field).to_owned()
}

/// All rules of all CustomResourceDefinitions, each with its message and the first place where it stands.
fn rules() -> BTreeMap<(String, String), String> {
    let mut rules = BTreeMap::new();
    for (kind, version, schema) in versions() {
        for field in fields(&schema) {
            for rule in field.schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
                let text = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
                let at = format!("{kind} {version} {}", field.path);
                rules.entry((text("rule"), text("message"))).or_insert(at);
            }
        }
    }
    rules
}

#[test]
fn every_rule_has_a_case_and_every_case_a_rule() {
    let rules: Vec<_> = rules().into_keys().collect();
    let messages: BTreeSet<_> = rules.iter().map(|(_, message)| message.clone()).collect();
    assert_eq!(
        messages.len(),
        rules.len(),
        "two rules share a message, so a case can not say which it means: {rules:#?}"
    );
    let shown: BTreeSet<_> = cases().into_iter().filter(|case| case.by == By::Cel).map(|case| case.rule).collect();
    let missing: Vec<_> = messages.difference(&shown).collect();
    assert!(missing.is_empty(), "add cases to rules.yaml for: {missing:#?}");
    let stale: Vec<_> = shown.difference(&messages).collect();
    assert!(stale.is_empty(), "no CustomResourceDefinition says what these cases expect: {stale:#?}");
}

#[test]
fn every_case_is_complete() {
    for case in cases() {
        let refuses = case.by != By::Ocm;
        assert_eq!(
            case.refused.is_some(),
            refuses,
            "{} needs an object that is refused, unless it is by ocm",
            case.rule
        );
        assert_eq!(case.field.is_some(), refuses, "{} needs the field that is named, unless it is by ocm", case.rule);
        assert!(!case.keep_name || case.before.is_none(), "{} would be created twice under one name", case.rule);
        for object in [&case.before, &case.refused, &Some(case.accepted)].into_iter().flatten() {
            assert!(object["metadata"]["name"].is_string(), "an object needs a name: {object}");
        }
    }
}

#[test]
fn no_two_cases_use_one_name_for_objects_of_a_kind() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        let object = case.accepted;
        let id = (object["kind"].to_string(), object["metadata"]["name"].to_string());
        assert!(seen.insert(id), "another case has an object of this kind and name: {object}");
    }
}

#[test]
fn kube_cel_judges_the_cases_as_they_say() {
    let judge = Judge::new();
    let disagreements: Vec<_> = cases().iter().flat_map(|case| judge.disagreements(case)).collect();
    assert!(disagreements.is_empty(), "{disagreements:#?}");
}

#[test]
fn messages_tell_users_what_to_change() {
    let reads_badly = |((rule, message), at): ((String, String), String)| {
        let fault = if message.is_empty() {
            "has no message"
        } else if message.ends_with('.') {
            "ends with a full stop, and the API server goes on after it"
        } else if message.contains(&rule) || message.contains("self.") || message.contains("has(") {
            "repeats the rule"
        } else {
            return None;
        };
        Some(format!("{at}: {message:?} for {rule:?} {fault}"))
    };
    let faults: Vec<_> = rules().into_iter().filter_map(reads_badly).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// A case that holds, for [`a_wrong_case_is_caught`] to spoil.
fn sound_case() -> Case {
    let upgrade = |max_concurrency: i32| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "ManagedClustersUpgrade",
            "metadata": { "name": "sound" },
            "spec": {
                "placement": [{ "namespace": "fleet", "name": "everywhere" }],
                "clusterVersion": { "version": "4.12.0" },
                "upgradeStrategy": { "maxConcurrency": max_concurrency },
            },
        })
    };
    Case {
        rule: "let at least 1 cluster be upgraded at a time".into(),
        by: By::Cel,
        field: Some("spec.upgradeStrategy.maxConcurrency".into()),
        before: None,
        refused: Some(upgrade(0)),
        accepted: upgrade(1),
        keep_name: false,
    }
}

#[test]
fn a_wrong_case_is_caught() {
    let judge = Judge::new();
    let sound = sound_case();
    assert_eq!(judge.disagreements(&sound), Vec::<String>::new());

    let mut broken_twice = sound.refused.clone().expect("the sound case refuses");
    broken_twice["spec"]["clusterVersion"]["version"] = json!("latest");
    let refused = sound.refused.clone();
    let wrong = [
        ("refused holds", Case { refused: Some(sound.accepted.clone()), ..sound.clone() }),
        ("refused breaks another rule as well", Case { refused: Some(broken_twice), ..sound.clone() }),
        ("accepted does not hold", Case { accepted: refused.clone().expect("as above"), ..sound.clone() }),
        ("before does not hold", Case { before: refused, ..sound.clone() }),
        ("the message is another", Case { rule: "let 2 clusters be upgraded at a time".into(), ..sound.clone() }),
        ("the field is another", Case { field: Some("spec".into()), ..sound }),
    ];
    for (fault, case) in wrong {
        assert_eq!(judge.disagreements(&case).len(), 1, "{fault}, and nobody noticed");
    }
}
