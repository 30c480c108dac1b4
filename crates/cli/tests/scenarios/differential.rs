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
use serde_json::Value;

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
const ENOUGH: usize = 300;

async fn both_servers_answer_alike(kube: World) {
    let (mut kube, mut drover) = (Side::of(kube), Side::of(World::embedded().await));
    let mut differences = Differences::read();
    let mut complaints = Vec::new();
    let sequences = sequences();
    let compared = sequences.iter().map(|(_, steps)| steps.len()).sum::<usize>();
    for (name, steps) in sequences {
        for step in steps {
            let answers = (kube.answer(&step).await, drover.answer(&step).await);
            let found = answers.0.differences_to(&answers.1);
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
    format!("{sequence}: {} {body}\n  {path}\n    kube:   {kube}\n    drover: {drover}", step.send)
}

/// Every sequence of requests, by its name.
fn sequences() -> Vec<(&'static str, Vec<Step>)> {
    let written = [
        "apply",
        "collections",
        "changes",
        "deletion",
        "custom",
        "definitions",
        "encodings",
        "identities",
        "validation",
        "watches",
    ];
    let folder = repository().join("crates/cli/tests/scenarios/differential");
    let read = |name: &'static str| (name, step::read(&folder.join(name).with_extension("yaml")));
    let mut sequences: Vec<_> = written.into_iter().map(read).collect();
    sequences.extend(generated::sequences());
    sequences
}

/// One of the servers, and what it has answered that later requests refer to.
struct Side {
    world: World,
    kept: BTreeMap<String, Value>,
}

impl Side {
    fn of(world: World) -> Self {
        Self { world, kept: BTreeMap::new() }
    }

    async fn answer(&mut self, step: &Step) -> Answer {
        let answer = answer::ask(&self.world.client(), &step.referring_to(&self.kept)).await;
        if let Some(name) = &step.keep {
            self.kept.insert(name.clone(), answer.body.clone());
        }
        answer
    }
}
