//! Bad input is refused by the server with a sentence that says what to change.

use std::fmt::Write;

use drover_testkit::{World, golden};
use kube::core::Status;
use serde_json::Value;

use crate::{
    case::{By, Case, cases},
    documents::Document,
};

drover_testkit::scenarios! {
    Shared { every_rule_is_enforced_by_the_server_with_its_message }
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
    if let Err(refusal) = attempt(world, case, &case.accepted).await {
        return Some(format!("the accepted object is refused: {}", refusal.message));
    }
    let Some(refused) = &case.refused else {
        return (case.by != By::Ocm).then(|| "there is no object that is refused".to_owned());
    };
    match attempt(world, case, refused).await {
        Ok(()) => Some("the refused object is accepted".to_owned()),
        Err(refusal) if is_for_this_alone(&refusal, case) => None,
        Err(refusal) => Some(format!("the user is told something else: {}", refusal.message)),
    }
}

/// Whether a refusal names the case's field and rule, and nothing else.
fn is_for_this_alone(refusal: &Status, case: &Case) -> bool {
    let causes = refusal.details.iter().flat_map(|details| &details.causes);
    // Where the schema refuses, the server adds that it did not get to the rules.
    let mut causes = causes.filter(|cause| !cause.message.contains("some validation rules were not checked"));
    let (Some(cause), None) = (causes.next(), causes.next()) else { return false };
    case.field.as_ref() == Some(&cause.field) && cause.message.contains(&case.rule)
}

/// Sends an object, as new or as a change of the one before.
async fn attempt(world: &World, case: &Case, object: &Value) -> Result<(), Box<Status>> {
    let namespace = world.namespace("rules").await;
    let name = if case.keep_name { None } else { Some(world.unique("case")) };
    let document = |object: &Value| {
        let mut document = Document::new(object.clone());
        if let Some(name) = &name {
            document.rename(name.clone());
        }
        document
    };
    match &case.before {
        None => document(object).store(world, &namespace).await.map(drop),
        Some(before) => {
            document(before).store(world, &namespace).await.expect("the object before the change is accepted");
            document(object).replace(world, &namespace).await
        }
    }
}

#[test]
fn the_table_of_rules_in_the_documentation_is_current() {
    let mut table = String::from(
        "# What the API server refuses\n\n\
         Every rule is part of the CustomResourceDefinitions: the API server refuses what breaks it, with the message below,\n\
         and nothing is stored. This page is generated from the cases in `crates/api/tests/rules.yaml`, each of which is sent to a\n\
         real API server and evaluated in Rust by the tests; `DROVER_BLESS=1 ./test` writes it anew.\n\n\
         Where the schema refuses an object, the server adds that some rules were not checked: mend the first complaint, and it goes on.\n\n\
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
    Some(format!("| {kind} | `{}` | {} |", case.field.as_ref()?, case.rule))
}
