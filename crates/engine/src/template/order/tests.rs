//! In which order works are written.

use drover_api::work::{ManifestWorkSpec, ManifestsTemplate};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::template::Marks;

fn spec(objects: &[&str]) -> ManifestWorkSpec {
    let manifest = |name: &&str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let manifests: Vec<Value> = objects.iter().map(manifest).collect();
    ManifestWorkSpec { workload: Some(ManifestsTemplate { manifests }), ..ManifestWorkSpec::default() }
}

fn name(number: usize) -> String {
    format!("addon-hello-deploy-{number}")
}

/// A work with these objects, which its agent has applied or not.
fn work(number: usize, objects: &[&str], is_applied: bool) -> ManifestWork {
    let mut work = ManifestWork::new(&name(number), spec(objects));
    work.metadata.generation = Some(1);
    let applied = json!([{ "type": "Applied", "status": "True", "reason": "", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    if is_applied {
        work.status.get_or_insert_default().conditions = serde_json::from_value(applied).expect("conditions");
    }
    work.spec = super::super::abridged(&work.spec);
    work
}

/// What is written, given which works there are and what they are to have: the numbers of those that are brought to it, and of those that go.
fn written(works: &[ManifestWork], wanted: &[&[&str]]) -> (Vec<usize>, Vec<String>) {
    let expected: Vec<_> = wanted
        .iter()
        .enumerate()
        .map(|(number, objects)| {
            let made = work(number, objects, false);
            Expected {
                name: name(number),
                digest: digest(&spec(objects)),
                objects: super::super::objects(&spec(objects)),
                marks: Marks::of(&made),
                workloads: Vec::new(),
            }
        })
        .collect();
    let order = Order::new("hello", works, &expected);
    let turn = order.turn();
    let numbers = (0..wanted.len()).filter(|number| turn.contains(&&*name(*number))).collect();
    (numbers, order.surplus().iter().map(|work| work.name_any()).collect())
}

#[test]
fn works_that_are_as_they_were_made_are_not_written() {
    assert_eq!(written(&[work(0, &["a"], false)], &[&["a"]]), (vec![], vec![]));
    assert_eq!(written(&[], &[&["a"], &["b"]]), (vec![0, 1], vec![]));
    assert_eq!(written(&[work(0, &["a"], true), work(1, &["b"], true)], &[&["a"], &["c"]]), (vec![1], vec![]));
}

#[test]
fn who_gains_an_object_applies_it_before_who_loses_it() {
    let (first, second) = (work(0, &["a", "b"], true), work(1, &["c"], true));
    // The template has grown: b moves to the second work.
    let grown: [&[&str]; 2] = [&["a"], &["b", "c"]];
    assert_eq!(written(&[first.clone(), second], &grown).0, [1]);
    assert_eq!(written(&[first.clone(), work(1, &["b", "c"], false)], &grown).0, [0; 0], "it is not applied yet");
    assert_eq!(written(&[first, work(1, &["b", "c"], true)], &grown).0, [0]);
}

#[test]
fn a_work_goes_when_what_it_had_is_applied_by_others() {
    let shrunk: [&[&str]; 1] = [&["a", "b"]];
    let last = || work(1, &["b"], true);
    assert_eq!(written(&[work(0, &["a"], true), last()], &shrunk), (vec![0], vec![]));
    assert_eq!(written(&[work(0, &["a", "b"], false), last()], &shrunk), (vec![], vec![]));
    let gone = vec![name(1)];
    assert_eq!(written(&[work(0, &["a", "b"], true), last()], &shrunk), (vec![], gone.clone()));
    let other = work(1, &["x"], true);
    assert_eq!(written(&[work(0, &["a", "b"], false), other], &shrunk), (vec![], gone), "nobody else has what it had");
    let mut going = work(0, &["a", "b"], true);
    going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(written(&[going, last()], &shrunk), (vec![], vec![]), "the other one is on its way out");
}

#[test]
fn who_gives_to_each_other_does_not_wait_for_each_other() {
    let works = [work(0, &["a"], true), work(1, &["b"], true)];
    assert_eq!(written(&works, &[&["b"], &["a"]]).0, [0, 1]);
}
