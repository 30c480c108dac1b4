//! How the works of a cluster are brought to what was made of a template.
//!
//! An object can move from one work to another, when a template grows or shrinks. An agent that sees the one that loses it first would remove the
//! object from its cluster, and with a definition all that it defines. So the one that loses it holds it besides what is its own, until the
//! one that gains it has applied it. Nobody waits for that: what is gained may depend on something new in the one that loses.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::{AddOnWork, Expected, Holds, work_prefix};
use crate::condition;

/// The works of an add-on that are there, by name, beside those that are to be there.
#[derive(Debug)]
pub struct Order<'a> {
    works: BTreeMap<String, &'a AddOnWork>,
    expected: &'a [Expected],
}

impl<'a> Order<'a> {
    /// The order for an add-on's works on one cluster. Works that no template has made are left out.
    pub fn new(addon: &str, works: impl IntoIterator<Item = &'a AddOnWork>, expected: &'a [Expected]) -> Self {
        let prefix = work_prefix(addon);
        let works = works.into_iter().map(|work| (work.name_any(), work));
        Self { works: works.filter(|(name, _)| name.starts_with(&prefix)).collect(), expected }
    }

    /// The work of that name, if it is there.
    #[must_use]
    pub fn work(&self, name: &str) -> Option<&'a AddOnWork> {
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
                Some(work) if work.is_leaving() => true,
                Some(work) if holds.is_empty() => expected.is_made(work),
                Some(work) => expected.is_holding(work),
            };
            (!is_there).then(|| (expected.name.clone(), holds))
        });
        turns.collect()
    }

    /// The works that are not made any more, and are to be removed now. None goes before all others are there.
    #[must_use]
    pub fn surplus(&self) -> Vec<&'a AddOnWork> {
        let is_surplus = |work: &&AddOnWork| {
            let name = work.name_any();
            let is_expected = self.expected.iter().any(|expected| expected.name == name);
            !work.is_leaving() && !is_expected && self.holds(&name, &[]).is_empty()
        };
        let works = self.works.values().copied().filter(|_| self.turn().is_empty());
        works.filter(is_surplus).collect()
    }

    /// The objects that a work still has and is to lose to others, as long as those have not applied them.
    fn holds(&self, name: &str, kept: &[String]) -> Vec<String> {
        let has = self.works.get(name).map(|work| work.objects()).unwrap_or_default();
        let is_awaited = |object: &&String| {
            let mut heirs = self.expected.iter().filter(|heir| heir.objects.contains(*object));
            heirs.any(|heir| !self.is_applied(heir))
        };
        has.iter().filter(|object| !kept.contains(object) && is_awaited(object)).cloned().collect()
    }

    /// Whether a work is there with all that is its own, and its agent has applied it.
    fn is_applied(&self, expected: &Expected) -> bool {
        let work = self.work(&expected.name).filter(|work| !work.is_leaving());
        let work = work.filter(|work| expected.is_made(work) || expected.is_holding(work));
        work.is_some_and(|work| {
            work.applied().is_some_and(|applied| {
                applied.status == condition::Holds::Yes && applied.observed_generation == work.generation()
            })
        })
    }
}

#[cfg(test)]
mod tests;
