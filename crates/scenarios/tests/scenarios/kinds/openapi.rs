//! What objects are made of.

use std::collections::{BTreeMap, BTreeSet};

use drover_apiserver::kind::Origin;
use drover_testkit::{World, golden};
use serde_json::{Map, Value, json};

use super::{OTHERS, VERSION, get, group_path, kinds, lines};

pub(super) async fn a_server_has_the_same_openapi(world: World) {
    let definitions = fetch(&world).await;
    let mut reduced = BTreeMap::new();
    let mut wanted: Vec<_> = definitions.iter().filter(|(_, it)| is_served(it)).map(|(name, _)| name.clone()).collect();
    while let Some(name) = wanted.pop() {
        let Some(definition) = definitions.get(&name).filter(|_| !reduced.contains_key(&name)) else { continue };
        let definition = without_descriptions(definition);
        wanted.extend(references(&definition));
        reduced.insert(name, definition);
    }
    golden::assert_matches("crates/apiserver/kinds/openapi.json", &format!("{}\n", lines(reduced)));
}

/// All definitions of all groups. What is in several is taken from the core group, which knows of no other.
async fn fetch(world: &World) -> Map<String, Value> {
    let groups: BTreeSet<_> = kinds().into_iter().map(|kind| kind.group).collect();
    let mut definitions = Map::new();
    for group in groups {
        let mut document = get(world, &format!("/openapi/v3/{}", group_path(&group)), "application/json").await;
        let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).map(std::mem::take);
        for (name, definition) in schemas.expect("the document has schemas") {
            definitions.entry(name).or_insert(definition);
        }
    }
    definitions
}

/// Whether a definition is of something that is sent or answered.
fn is_served(definition: &Value) -> bool {
    let is_other = |of: &Value| {
        let (group, version) = (of["group"].as_str().unwrap_or_default(), of["version"].as_str().unwrap_or_default());
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        OTHERS.iter().any(|(other, kind)| *other == api_version && of["kind"] == *kind)
    };
    let is_kind = |of: &Value| {
        of["version"] == VERSION
            && kinds()
                .iter()
                .filter(|kind| of["group"] == kind.group)
                .any(|kind| of["kind"] == kind.kind || kind.origin == Origin::BuiltIn && of["kind"] == kind.list_kind)
    };
    let of = definition["x-kubernetes-group-version-kind"].as_array();
    of.into_iter().flatten().any(|of| is_kind(of) || is_other(of))
}

/// A schema without the sentences in it.
fn without_descriptions(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "description");
            kept.map(|(name, value)| (name.clone(), keyword(name, value))).collect()
        }
        Value::Array(schemas) => schemas.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

fn keyword(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("properties", Value::Object(properties)) => {
            properties.iter().map(|(name, schema)| (name.clone(), without_descriptions(schema))).collect()
        }
        ("items" | "additionalProperties" | "allOf" | "anyOf" | "oneOf" | "not", schema) => {
            without_descriptions(schema)
        }
        (_, value) => value.clone(),
    }
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(fields) => {
            let own =
                fields.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(schemas) => schemas.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn what_is_called_description_and_is_no_sentence_stays() {
    let schema = json!({ "description": "It is.", "properties": { "description": { "description": "It was." } } });
    assert_eq!(without_descriptions(&schema), json!({ "properties": { "description": {} } }));
}
