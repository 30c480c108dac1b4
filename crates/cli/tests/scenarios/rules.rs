//! Bad input is refused by the server with a sentence that says what to change.

use std::fmt::Write;

use drover_testkit::{World, golden};
use serde::Deserialize;
use serde_json::Value;

use crate::documents::{Document, read, repository};

drover_testkit::scenarios! {
    Shared { every_rule_is_enforced_by_the_server_with_its_message }
}

/// A rule, an object that breaks it, and one that keeps it. The same cases are evaluated in Rust by the tests of `drover-api`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    /// What the user is told.
    rule: String,
    by: Means,
    /// Where the user is told that it is wrong.
    #[serde(default)]
    field: String,
    /// For rules on changes, the object before the change.
    before: Option<Value>,
    refused: Option<Value>,
    accepted: Option<Value>,
    /// Whether the object's name is part of the case.
    #[serde(default)]
    keep_name: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Means {
    /// A CEL rule, with a message of ours.
    Cel,
    /// The schema, with a message of the server's.
    Schema,
    /// Nothing: it stays legal as it is in OCM.
    Ocm,
}

fn cases() -> Vec<Case> {
    let cases = read::<Vec<Case>>(&repository().join("crates/api/tests/rules.yaml"));
    cases.into_iter().flatten().collect()
}

async fn every_rule_is_enforced_by_the_server_with_its_message(world: World) {
    let mut complaints = Vec::new();
    for case in cases() {
        complaints.extend(complaint(&world, &case).await.map(|complaint| format!("{}: {complaint}", case.rule)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What the server does otherwise than a case says, if anything.
async fn complaint(world: &World, case: &Case) -> Option<String> {
    if let Some(accepted) = &case.accepted
        && let Err(told) = attempt(world, case, accepted).await
    {
        return Some(format!("the accepted object is refused: {told}"));
    }
    match (case.refused.as_ref(), case.by) {
        (None, Means::Ocm) => None,
        (None, _) => Some("there is no object that is refused".to_owned()),
        (Some(refused), _) => match attempt(world, case, refused).await {
            Ok(()) => Some("the refused object is accepted".to_owned()),
            Err(told) if told.contains(&case.rule) && told.contains(&case.field) => None,
            Err(told) => Some(format!("at {}, the user is told something else: {told}", case.field)),
        },
    }
}

/// Sends an object, as new or as a change of the one before, and returns what the user is told if it is refused.
async fn attempt(world: &World, case: &Case, object: &Value) -> Result<(), String> {
    let namespace = world.namespace("rules").await;
    let name = if case.keep_name { None } else { Some(world.unique("case")) };
    let document = |object: &Value| {
        let mut document = Document::new(object.clone());
        if let Some(name) = &name {
            document.rename(name.clone());
        }
        document
    };
    let outcome = match &case.before {
        None => document(object).store(world, &namespace).await.map(drop),
        Some(before) => {
            document(before).store(world, &namespace).await.expect("the object before the change is accepted");
            document(object).replace(world, &namespace).await
        }
    };
    outcome.map_err(|refused| refused.message.clone())
}

#[test]
fn the_table_of_rules_in_the_documentation_is_current() {
    let mut table = String::from(
        "# What the API server refuses\n\n\
         Every rule is part of the CustomResourceDefinitions: the API server refuses what breaks it, with the message below,\n\
         and nothing is stored. This page is generated from the cases in `crates/api/tests/rules.yaml`, each of which is sent to a\n\
         real API server and evaluated in Rust by the tests; `DROVER_BLESS=1 ./test` writes it anew.\n\n\
         | kind | field | what the user is told |\n| --- | --- | --- |\n",
    );
    let mut rows: Vec<_> = cases().iter().filter_map(row).collect();
    rows.dedup();
    assert!(rows.len() >= 24, "there are only {} rules", rows.len());
    for row in rows {
        writeln!(table, "{row}").expect("a text can be written to");
    }
    golden::assert_matches("docs/validation.md", &table);
}

fn row(case: &Case) -> Option<String> {
    let kind = case.refused.as_ref()?["kind"].as_str()?;
    Some(format!("| {kind} | `{}` | {} |", case.field, case.rule))
}
