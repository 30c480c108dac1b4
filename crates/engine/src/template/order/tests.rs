//! How works are brought to what was made.

use std::collections::{BTreeMap, BTreeSet};

use drover_api::{
    names::{ADDON_NAME_LABEL, HOLDS_ANNOTATION, SET_ANNOTATION},
    work::{ManifestWork, ManifestWorkSpec, ManifestsTemplate},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::template::{
    Marks,
    digest::{digest, hold_mark, objects},
    fixtures::view,
};

fn spec(objects: &[&str]) -> ManifestWorkSpec {
    let manifest = |name: &&str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let manifests: Vec<Value> = objects.iter().map(manifest).collect();
    ManifestWorkSpec { workload: Some(ManifestsTemplate { manifests }), ..ManifestWorkSpec::default() }
}

fn name(number: usize) -> String {
    format!("addon-hello-deploy-{number}")
}

/// What an object is called in few digits.
fn short(object: &str) -> String {
    objects(&spec(&[object])).remove(0)
}

/// A work with these objects, made from that set, which its agent has applied or not.
fn work_of(set: &str, number: usize, objects: &[&str], is_applied: bool) -> ManifestWork {
    let mut work = ManifestWork::new(&name(number), spec(objects));
    work.metadata.generation = Some(1);
    work.labels_mut().insert(ADDON_NAME_LABEL.to_owned(), "hello".to_owned());
    work.annotations_mut().insert(SET_ANNOTATION.to_owned(), set.to_owned());
    let applied = json!([{ "type": "Applied", "status": "True", "reason": "", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    if is_applied {
        work.status.get_or_insert_default().conditions = serde_json::from_value(applied).expect("conditions");
    }
    work
}

fn work(number: usize, objects: &[&str], is_applied: bool) -> ManifestWork {
    work_of("new", number, objects, is_applied)
}

/// A work of the new set with these objects of its own, which holds others besides.
fn holding(number: usize, own: &[&str], held: &[&str], is_applied: bool) -> ManifestWork {
    let all: Vec<_> = own.iter().chain(held).copied().collect();
    let mut work = work(number, &all, is_applied);
    let mark = hold_mark(&digest(&spec(own)), &digest(&spec(&all)));
    work.annotations_mut().insert(HOLDS_ANNOTATION.to_owned(), mark);
    work
}

fn expected(wanted: &[&[&str]]) -> Vec<Expected> {
    let expected = |(number, own): (usize, &&[&str])| Expected {
        name: name(number),
        digest: digest(&spec(own)),
        objects: objects(&spec(own)),
        marks: Marks::of(&work(number, own, false)),
        workloads: Vec::new(),
    };
    wanted.iter().enumerate().map(expected).collect()
}

/// What is written, given which works there are and what they are to have: the numbers of those that are brought to it, with what they hold
/// besides, and those that go.
fn written(works: &[ManifestWork], wanted: &[&[&str]]) -> (Vec<(usize, Vec<String>)>, Vec<String>) {
    let expected = expected(wanted);
    let views: Vec<_> = works.iter().map(view).collect();
    let order = Order::new("hello", &views, &expected);
    let mut turn = order.turn();
    let numbers = (0..wanted.len()).filter_map(|number| Some((number, turn.remove(&name(number))?)));
    (numbers.collect(), order.surplus().iter().map(|work| work.name_any()).collect())
}

/// That so many works are written as they are to be in the end.
fn plainly(numbers: &[usize]) -> Vec<(usize, Vec<String>)> {
    numbers.iter().map(|number| (*number, Vec::new())).collect()
}

#[test]
fn works_that_are_as_they_were_made_are_not_written() {
    assert_eq!(written(&[work(0, &["a"], false)], &[&["a"]]), (vec![], vec![]));
    assert_eq!(written(&[], &[&["a"], &["b"]]), (plainly(&[0, 1]), vec![]));
    let works = [work(0, &["a"], true), work(1, &["b"], true)];
    assert_eq!(written(&works, &[&["a"], &["c"]]), (plainly(&[1]), vec![]));
}

#[test]
fn who_loses_an_object_holds_it_until_who_gains_it_has_applied_it() {
    // The template has grown: b moves to the second work.
    let grown: [&[&str]; 2] = [&["x", "a"], &["b", "c"]];
    let old = [work_of("old", 0, &["a", "b"], true), work_of("old", 1, &["c"], true)];
    assert_eq!(written(&old, &grown).0, [(0, vec![short("b")]), (1, vec![])], "nobody waits");
    let first = || holding(0, &["x", "a"], &["b"], true);
    assert_eq!(written(&[first(), work(1, &["b", "c"], false)], &grown).0, [], "it is not applied yet");
    assert_eq!(written(&[first(), work(1, &["b", "c"], true)], &grown).0, plainly(&[0]));
    assert_eq!(written(&[work(0, &["x", "a"], false), work(1, &["b", "c"], true)], &grown).0, []);
}

#[test]
fn what_somebody_does_to_a_work_that_holds_something_is_repaired() {
    let grown: [&[&str]; 2] = [&["a"], &["b", "c"]];
    let mut altered = holding(0, &["a"], &["b"], true);
    altered.spec = spec(&["a", "b", "y"]);
    let second = || work(1, &["b", "c"], false);
    assert_eq!(written(&[altered, second()], &grown).0, [(0, vec![short("b")])]);
    let mut former = holding(0, &["a"], &["b"], true);
    former.annotations_mut().insert(SET_ANNOTATION.to_owned(), "old".to_owned());
    assert_eq!(written(&[former, second()], &grown).0, [(0, vec![short("b")])], "it is of another set");
}

#[test]
fn a_work_goes_when_what_it_had_is_applied_by_others() {
    let shrunk: [&[&str]; 1] = [&["a", "b"]];
    let last = || work(1, &["b"], true);
    assert_eq!(written(&[work(0, &["a"], true), last()], &shrunk), (plainly(&[0]), vec![]));
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
fn who_gives_to_each_other_holds_what_it_gives() {
    let swapped: [&[&str]; 2] = [&["b"], &["a"]];
    let old = [work_of("old", 0, &["a"], true), work_of("old", 1, &["b"], true)];
    assert_eq!(written(&old, &swapped).0, [(0, vec![short("a")]), (1, vec![short("b")])]);
    let holding = [holding(0, &["b"], &["a"], true), holding(1, &["a"], &["b"], true)];
    assert_eq!(written(&holding, &swapped).0, plainly(&[0, 1]));
}

/// Objects by name. What is called r needs what is called x to be there before it.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "r", "x"];

/// A cluster, its works on the hub, and an agent that may see any of them at any time.
struct Cluster<'a> {
    wanted: &'a [&'a [&'a str]],
    works: BTreeMap<usize, ManifestWork>,
    /// What each work has on the cluster.
    owned: BTreeMap<usize, BTreeSet<&'a str>>,
    /// What was removed from the cluster though it is wanted.
    lost: BTreeSet<&'a str>,
}

impl<'a> Cluster<'a> {
    fn new(old: &[&'a [&'a str]], wanted: &'a [&'a [&'a str]]) -> Self {
        let numbered = || old.iter().enumerate();
        let works = numbered().map(|(number, own)| (number, work_of("old", number, own, true))).collect();
        let owned = numbered().map(|(number, own)| (number, own.iter().copied().collect())).collect();
        Self { wanted, works, owned, lost: BTreeSet::new() }
    }

    fn there(&self) -> BTreeSet<&'a str> {
        self.owned.values().flatten().copied().collect()
    }

    /// The hub writes one thing that it has to, if there is any.
    fn write(&mut self, choice: usize) -> bool {
        let works: Vec<_> = self.works.values().cloned().collect();
        let (turn, surplus) = written(&works, self.wanted);
        let Some(chosen) = choice.checked_rem(turn.len() + surplus.len()) else { return false };
        if let Some((number, held)) = turn.get(chosen) {
            let held: Vec<_> = NAMES.into_iter().filter(|name| held.contains(&short(name))).collect();
            let own = self.wanted[*number];
            let made = if held.is_empty() { work(*number, own, false) } else { holding(*number, own, &held, false) };
            self.works.insert(*number, made);
        } else {
            self.works.retain(|number, _| name(*number) != surplus[chosen - turn.len()]);
        }
        true
    }

    /// The agent looks at one work: it applies what it can, and removes what is not in it any more.
    fn look(&mut self, number: usize) {
        let before = self.there();
        let has = self.works.get(&number).map(|work| objects(&work.spec)).unwrap_or_default();
        let has: BTreeSet<_> = NAMES.into_iter().filter(|name| has.contains(&short(name))).collect();
        let is_needed = |name: &str| self.wanted.iter().any(|own| own.contains(&name));
        let is_possible = !has.contains("r") || !is_needed("x") || has.contains("x") || before.contains("x");
        let is_applied = |name: &&str| is_possible || *name != "r" || before.contains("r");
        let applied = has.iter().copied().filter(is_applied).collect();
        self.owned.insert(number, applied);
        if let Some(work) = self.works.get_mut(&number) {
            let objects: Vec<_> = has.into_iter().collect();
            let status = work_of("", number, &objects, is_possible).status;
            work.status = status;
        }
        let lost: Vec<_> = before.difference(&self.there()).copied().filter(|name| is_needed(name)).collect();
        self.lost.extend(lost);
    }
}

/// The objects in an order, divided in works.
fn division() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    let order = Just(NAMES.to_vec()).prop_shuffle();
    (order, 1..=NAMES.len(), prop::collection::vec(1..4_usize, 6)).prop_map(|(order, count, sizes)| {
        let mut rest = &order[..count];
        let mut works = Vec::new();
        for size in sizes {
            let (own, others) = rest.split_at(size.min(rest.len()));
            works.extend((!own.is_empty()).then(|| own.to_vec()));
            rest = others;
        }
        works
    })
}

proptest! {
    #[test]
    fn however_objects_move_none_is_ever_gone_and_all_get_there(
        old in division(),
        new in division(),
        steps in prop::collection::vec((any::<bool>(), 0..6_usize), 0..30),
    ) {
        let slices = |works: &'static [Vec<&'static str>]| works.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let (old, new) = (slices(old.leak()), slices(new.leak()));
        let mut cluster = Cluster::new(&old, &new);
        for (is_write, choice) in steps {
            if is_write {
                cluster.write(choice);
            } else {
                cluster.look(choice);
            }
        }
        for _ in 0..20 {
            while cluster.write(0) {}
            (0..6).for_each(|number| cluster.look(number));
        }
        prop_assert_eq!(cluster.lost, BTreeSet::new());
        let there: Vec<_> = cluster.works.values().map(|work| digest(&work.spec)).collect();
        let wanted: Vec<_> = new.iter().map(|own| digest(&spec(own))).collect();
        prop_assert_eq!(there, wanted);
        prop_assert!(cluster.works.values().all(|work| !work.annotations().contains_key(HOLDS_ANNOTATION)));
    }
}
