//! In which order the works of a cluster are brought to what was made of a template.
//!
//! An object can move from one work to another, when a template grows or shrinks. An agent that sees the one that loses it first would remove the
//! object from its cluster, and with a definition all that it defines. So the one that gains it is written first, and has to be applied.

use std::collections::BTreeMap;

use drover_api::{names::WORK_APPLIED, work::ManifestWork};
use kube::ResourceExt;

use super::{Expected, digest, objects, work_prefix};

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

    /// The works that are to be written now, by name.
    #[must_use]
    pub fn turn(&self) -> Vec<&'a str> {
        let lacking: Vec<_> = self.expected.iter().filter(|expected| self.lacks(expected)).collect();
        let ready: Vec<_> =
            lacking.iter().filter(|expected| self.heirs(&expected.name, &expected.objects).is_empty()).collect();
        // Who gives to each other can not wait for each other.
        let is_knot = ready.is_empty()
            && lacking
                .iter()
                .all(|expected| self.heirs(&expected.name, &expected.objects).iter().all(|heir| self.lacks(heir)));
        let turn = if is_knot { lacking.iter().collect() } else { ready };
        turn.into_iter().map(|expected| expected.name.as_str()).collect()
    }

    /// The works that are not made any more, and are to be removed now. None goes before all others are there.
    #[must_use]
    pub fn surplus(&self) -> Vec<&'a ManifestWork> {
        let is_surplus = |work: &&ManifestWork| {
            let (name, is_going) = (work.name_any(), work.metadata.deletion_timestamp.is_some());
            let is_expected = self.expected.iter().any(|expected| expected.name == name);
            !is_going && !is_expected && self.heirs(&name, &[]).is_empty()
        };
        let works = self.works.values().copied().filter(|_| self.turn().is_empty());
        works.filter(is_surplus).collect()
    }

    /// The works that are to have objects which this one still has and is to lose, and that do not apply them yet.
    fn heirs(&self, name: &str, kept: &[String]) -> Vec<&'a Expected> {
        let has = self.works.get(name).map(|work| objects(&work.spec)).unwrap_or_default();
        let lost: Vec<_> = has.into_iter().filter(|object| !kept.contains(object)).collect();
        let is_heir = |heir: &&Expected| heir.objects.iter().any(|object| lost.contains(object));
        self.expected.iter().filter(is_heir).filter(|heir| !self.is_applied(heir)).collect()
    }

    /// Whether a work is there as it was made, and its agent has applied it.
    fn is_applied(&self, expected: &Expected) -> bool {
        let work = self.work(&expected.name).filter(|work| work.metadata.deletion_timestamp.is_none());
        let applied = |work: &ManifestWork| {
            let mut conditions = work.status.iter().flat_map(|status| &status.conditions);
            let is_current = |generation| generation == work.metadata.generation;
            conditions
                .any(|said| said.type_ == WORK_APPLIED && said.status == "True" && is_current(said.observed_generation))
        };
        !self.lacks(expected) && work.is_some_and(applied)
    }

    /// Whether a work is not there, or not as it was made. One that is on its way out has to be gone first.
    fn lacks(&self, expected: &Expected) -> bool {
        match self.works.get(&expected.name) {
            None => true,
            Some(work) if work.metadata.deletion_timestamp.is_some() => false,
            Some(work) => digest(&work.spec) != expected.digest || !expected.marks.are_on(work),
        }
    }
}

#[cfg(test)]
mod tests;
