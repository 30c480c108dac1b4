//! The digest of a work survives what an API server with our definition of works does to it.

use drover_api::work::ManifestWorkSpec;
use drover_engine::template::digest;
use serde_json::Value;

use crate::template_world::{World, documents};

/// Fills in the defaults of a schema, as an API server does it.
fn fill_in_defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let (None, Some(default)) = (fields.get(name), schema.get("default")) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    fill_in_defaults(field, schema);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in_defaults(item, &schema["items"])),
        _ => {}
    }
}

fn schema() -> Value {
    let definition = documents("deploy/crds/manifestworks.work.open-cluster-management.io.yaml").remove(0);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// A spec, and what a server makes of it.
fn sent_and_stored(sent: Value) -> (ManifestWorkSpec, ManifestWorkSpec) {
    let mut stored = sent.clone();
    fill_in_defaults(&mut stored, &schema());
    assert_ne!(sent, stored, "there is nothing to fill in, so this proves nothing");
    let read = |value| serde_json::from_value(value).expect("the spec of a work");
    (read(sent), read(stored))
}

#[test]
fn rendered_works_have_the_same_digest_when_they_come_back() {
    for name in ["everything", "orphans"] {
        let world = World::new(&documents(&format!("crates/engine/tests/template/{name}.yaml")), None);
        for work in world.render().works {
            let value = serde_json::to_value(&work.work.spec).expect("it can be written");
            let (sent, stored) = sent_and_stored(value);
            assert_eq!((digest(&sent), digest(&stored)), (work.digest.clone(), work.digest));
        }
    }
}

#[test]
fn every_default_of_the_definition_counts_as_written() {
    let sent = serde_json::json!({
        "workload": { "manifests": [] },
        "deleteOption": {},
        "manifestConfigs": [{
            "resourceIdentifier": { "resource": "configmaps", "name": "a" },
            "updateStrategy": { "serverSideApply": { "ignoreFields": [{}] } },
        }],
    });
    let (sent, stored) = sent_and_stored(sent);
    assert_eq!(digest(&sent), digest(&stored));
    let written = serde_json::to_value(&stored).expect("it can be written").to_string();
    for default in ["Foreground", "Poll", "work-agent", "OnSpokePresent", "\"Update\""] {
        assert!(written.contains(default), "{default}: {written}");
    }
}
