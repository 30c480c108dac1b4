//! Whole renderings, beside files that hold what they have to be. With `DROVER_BLESS=1` in the environment the files are written instead.

use std::{env, fmt::Write as _, fs};

use drover_api::addon::ImageMirror;
use drover_engine::template::{RenderedWork, Rendering};
use serde_json::{Value, json};

use crate::template_world::{World, documents, repository};

/// How long a text may be that a golden file shows.
const SHOWN: usize = 1000;

fn example() -> World {
    let files = ["examples/template/addon-template.yaml", "examples/template/addon-deployment-config.yaml"];
    let objects: Vec<_> = files.iter().flat_map(|file| documents(file)).collect();
    World::new(&objects, None)
}

fn from_file(name: &str) -> World {
    World::new(
        &documents(&format!("crates/engine/tests/template/{name}.yaml")),
        Some("v1.2.3".parse().expect("a version")),
    )
}

/// The rendering as text: one document for each work, fields in the order of their names.
fn written(rendering: &Rendering) -> String {
    let mut text = format!("# The agent runs in {}.\n", rendering.namespace);
    for RenderedWork { work, digest, workloads } in &rendering.works {
        write!(text, "---\n# {digest}").expect("a text takes everything");
        for workload in workloads {
            let stamp = if workload.is_stamped { "" } else { " (not stamped)" };
            write!(text, "; {workload}{stamp}").expect("a text takes everything");
        }
        let work = shown(&serde_json::to_value(work).expect("a work can be written"));
        writeln!(text, "\n{}", serde_saphyr::to_string(&work).expect("it is YAML").trim_end())
            .expect("a text takes everything");
    }
    text
}

fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > SHOWN => format!("{} bytes", text.len()).into(),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), shown(value))).collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            fields.into_iter().collect()
        }
        value => value.clone(),
    }
}

fn assert_golden(name: &str, world: &World) {
    let path = format!("crates/engine/tests/golden/template/{name}.yaml");
    let (file, actual) = (repository().join(&path), written(&world.render()));
    if env::var_os("DROVER_BLESS").is_some() {
        return fs::write(&file, actual).expect("the file can be written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let (expected, actual) = (expected.lines().chain(["(end)"]), actual.lines().chain(["(end)"]));
    let difference = (1..).zip(expected.zip(actual)).find(|(_, (expected, actual))| expected != actual);
    if let Some((line, (expected, actual))) = difference {
        panic!(
            "{path} is out of date at line {line}:\n  there: {expected:?}\n  now:   {actual:?}\n\
             If that is right, run the test with DROVER_BLESS=1 and commit the file."
        );
    }
}

#[test]
fn the_example_of_the_specification() {
    assert_golden("example", &example());
}

#[test]
fn everything_at_once() {
    let mut world = from_file("everything");
    // The settings have registries of their own, and these are not looked at.
    world.registries = vec![ImageMirror { source: None, mirror: "cluster.example.com".to_owned() }];
    assert_golden("everything", &world);
}

#[test]
fn what_is_kept_and_what_is_said_of_it() {
    assert_golden("orphans", &from_file("orphans"));
}

#[test]
fn more_than_one_work_holds() {
    let large = |name: &str, size: usize| {
        let metadata = json!({ "name": name, "namespace": "agents" });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "x": "x".repeat(size) } })
    };
    let mut objects = documents("examples/template/addon-template.yaml");
    objects.extend(documents("examples/template/addon-deployment-config.yaml"));
    let manifests = objects[0]["spec"]["agentSpec"]["workload"]["manifests"].as_array_mut().expect("a list");
    manifests.insert(0, large("first", 250_000));
    manifests.insert(1, large("second", 200_000));
    manifests.push(large("third", 300_000));
    assert_golden("split", &World::new(&objects, None));
}

#[test]
fn the_example_s_deployment_is_what_the_specification_expects() {
    let mut expected = documents("examples/template/expected/agent-deployment.yaml").remove(0);
    // The cluster's API server copies it from serviceAccountName.
    let pod = expected.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut).expect("a pod");
    pod.remove("serviceAccount").expect("the specification has it");
    let rendering = example().render();
    let mut deployment = rendering.works[0].work.spec.manifests()[0].clone();
    let metadata = deployment["metadata"].as_object_mut().expect("it has metadata");
    let annotations = metadata.remove("annotations").expect("it is stamped");
    assert_eq!(annotations, json!({ "drover.dev/set": example().set.fingerprint().as_str() }));
    assert_eq!(deployment, expected);
}
