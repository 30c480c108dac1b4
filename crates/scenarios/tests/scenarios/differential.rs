//! Drover's own API server beside the real one: both are sent the same requests, and answer alike, but for what is listed.
//!
//! The requests are in the YAML files of the folder, and made by [`generated`]; what may differ is in `differences.yaml`.

mod answer;
mod differences;
mod generated;
mod redaction;
mod step;

use std::collections::BTreeMap;

use drover_testkit::World;
use kube::Client;
use serde_json::{Value, json};

use self::{
    answer::{Answer, Difference},
    differences::Differences,
    step::Step,
};
use crate::documents::repository;

drover_testkit::scenarios! { on kube
    Own { both_servers_answer_alike }
}

/// So many requests are compared at least.
const ENOUGH: usize = 2000;

async fn both_servers_answer_alike(kube: World) {
    let (mut kube, mut drover) = (Side::of(kube), Side::of(World::embedded().await));
    let mut differences = Differences::read();
    let mut complaints = Vec::new();
    let sequences = sequences();
    let compared = sequences.iter().map(|(_, steps)| steps.len()).sum::<usize>();
    for (name, steps) in sequences {
        for step in steps {
            let answers = tokio::join!(kube.answer(&step), drover.answer(&step));
            let found = answers.0.differences_to(&answers.1, &step);
            let unexpected = found.into_iter().filter(|difference| !differences.allow(&step, difference));
            complaints.extend(unexpected.map(|difference| complaint(name, &step, &difference)));
        }
    }
    complaints.extend(differences.needless());
    assert!(complaints.is_empty(), "{} of {compared}:\n{}", complaints.len(), complaints.join("\n"));
    assert!(compared >= ENOUGH, "only {compared} requests are compared");
}

fn complaint(sequence: &str, step: &Step, difference: &Difference) -> String {
    let Difference { path, kube, drover } = difference;
    let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
    let body: String = body.chars().take(300).collect();
    format!("{sequence}: {} {body}\n  {path}\n    kube:   {}\n    drover: {}", step.send, short(kube), short(drover))
}

/// A value for people to read, of which no more is shown than that.
fn short(value: &Value) -> String {
    value.to_string().chars().take(2000).collect()
}

/// Every sequence of requests, by its name.
fn sequences() -> Vec<(&'static str, Vec<Step>)> {
    let written = [
        // Those that follow define kinds of which they leave some.
        "discovery",
        "apply",
        "cel",
        "collections",
        "changes",
        "deletion",
        "custom",
        "definitions",
        "encodings",
        "identities",
        "validation",
        "watches",
        "certificates",
        "yaml",
        "names",
        "managers",
        "strategic",
        "dependents",
        "refused",
        "large",
        "expiry",
    ];
    let folder = repository().join("crates/scenarios/tests/scenarios/differential");
    let read = |name: &'static str| (name, step::read(&folder.join(name).with_extension("yaml")));
    let mut sequences: Vec<_> = written.into_iter().map(read).collect();
    sequences.extend(generated::sequences());
    sequences
}

/// One of the servers, and what it has answered that later requests refer to.
struct Side {
    /// It goes with its world.
    _world: World,
    client: Client,
    kept: BTreeMap<String, Value>,
}

impl Side {
    /// Large bodies are not written down, so that there are texts to refer to that nobody has answered.
    fn of(world: World) -> Self {
        let text = |length: usize| "x".repeat(length);
        let texts = json!({ "kibibyte": text(1 << 10), "most": text(1_000_000), "mebibyte": text(1 << 20) });
        Self { client: world.impatient_client(), _world: world, kept: BTreeMap::from([("text".to_owned(), texts)]) }
    }

    async fn answer(&mut self, step: &Step) -> Answer {
        let answer = answer::ask(&self.client, &step.referring_to(&self.kept)).await;
        if let Some(name) = &step.keep {
            self.kept.insert(name.clone(), answer.body.clone());
        }
        answer
    }
}
