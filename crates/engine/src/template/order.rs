//! How the works of a cluster are brought to what was made of a template.
//!
//! An object can move from one work to another, when a template grows or shrinks. An agent that sees the one that loses it first would remove the
//! object from its cluster, and with a definition all that it defines. So the one that loses it holds it besides what is its own, until the
//! one that gains it has applied it. Nobody waits for that: what is gained may depend on something new in the one that loses.

use std::collections::BTreeMap;

use drover_api::{names::WORK_APPLIED, work::ManifestWork};
use kube::ResourceExt;

use super::{Expected, Holds, objects, work_prefix};

/// The works of an add-on that are there, by name, beside those that are to be there.
#[derive(Debug)]
pub struct Order<'a> {
    works: BTreeMap<String, &'a ManifestWork>,
    expected: &'a [Expected],
}

impl<'a> Order<'a> {
    /// The order for an add-on's works on one cluster. Works that no template has made are left out.
    pub fn new(addon: &str, works: impl IntoIterator<Item = &'a ManifestWork>, expected: &'a [Expected]) -> Self {
        let prefix = work_prefix(addon);
        let works = works.into_iter().map(|work| (work.name_any(), work));
        Self { works: works.filter(|(name, _)| name.starts_with(&prefix)).collect(), expected }
    }

    /// The work of that name, if it is there.
    #[must_use]
    pub fn work(&self, name: &str) -> Option<&'a ManifestWork> {
        self.works.get(name).copied()
    }

    /// The works that are to be written now, by name, with what each has to hold of others.
    #[must_use]
    pub fn turn(&self) -> Holds {
        let turns = self.expected.iter().filter_map(|expected| {
            let holds = self.holds(&expected.name, &expected.objects);
            let is_there = match self.works.get(&expected.name) {
                None => false,
                // One that is on its way out has to be gone first.
                Some(work) if is_going(work) => true,
                Some(work) if holds.is_empty() => expected.is_made(work),
                Some(work) => expected.is_holding(work),
            };
            (!is_there).then(|| (expected.name.clone(), holds))
        });
        turns.collect()
    }

    /// The works that are not made any more, and are to be removed now. None goes before all others are there.
    #[must_use]
    pub fn surplus(&self) -> Vec<&'a ManifestWork> {
        let is_surplus = |work: &&ManifestWork| {
            let name = work.name_any();
            let is_expected = self.expected.iter().any(|expected| expected.name == name);
            !is_going(work) && !is_expected && self.holds(&name, &[]).is_empty()
        };
        let works = self.works.values().copied().filter(|_| self.turn().is_empty());
        works.filter(is_surplus).collect()
    }

    /// The objects that a work still has and is to lose to others, as long as those have not applied them.
    fn holds(&self, name: &str, kept: &[String]) -> Vec<String> {
        let has = self.works.get(name).map(|work| objects(&work.spec)).unwrap_or_default();
        let is_awaited = |object: &String| {
            let mut heirs = self.expected.iter().filter(|heir| heir.objects.contains(object));
            heirs.any(|heir| !self.is_applied(heir))
        };
        has.into_iter().filter(|object| !kept.contains(object) && is_awaited(object)).collect()
    }

    /// Whether a work is there with all that is its own, and its agent has applied it.
    fn is_applied(&self, expected: &Expected) -> bool {
        let work = self.work(&expected.name).filter(|work| !is_going(work));
        let work = work.filter(|work| expected.is_made(work) || expected.is_holding(work));
        work.is_some_and(|work| {
            let mut conditions = work.status.iter().flat_map(|status| &status.conditions);
            let is_current = |generation| generation == work.metadata.generation;
            conditions
                .any(|said| said.type_ == WORK_APPLIED && said.status == "True" && is_current(said.observed_generation))
        })
    }
}

fn is_going(work: &ManifestWork) -> bool {
    work.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests;
