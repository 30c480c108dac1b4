//! Applying a part of an object.

use serde_json::Value;

use super::{
    Operation, UNOWNED, Write,
    compare::Comparison,
    fields::{fields_of, with_structures},
    last_applied,
    managers::{Entry, Manager, Managers, clear},
    merge::merged,
    reconcile::reconciled,
    remove::without,
    set::{FieldSet, Path, path_text},
    shape::Shape,
    values::same,
};
use crate::failure::{Cause, Failure};

/// Somebody who applies a part of an object.
pub(super) struct Applier<'a> {
    /// The object as it is.
    pub(super) live: &'a Value,
    /// The part that is applied.
    pub(super) patch: &'a Value,
    pub(super) shape: Shape<'a>,
    pub(super) write: &'a Write<'a>,
    /// Who owns what of the object as it is.
    pub(super) managers: &'a Managers,
}

/// A field that is applied and that another manager owns.
struct Conflict {
    manager: Manager,
    path: Path,
}

impl Applier<'_> {
    /// The object after it.
    pub(super) fn apply(&self, force: bool) -> Result<Value, Failure> {
        let (mut object, managers) = match self.attempt(force) {
            Ok(applied) => applied,
            Err(conflicts) => {
                let conflicts = self.not_excused(conflicts);
                if !conflicts.is_empty() {
                    return Err(failure(&conflicts));
                }
                self.attempt(true).map_err(|conflicts| failure(&conflicts))?
            }
        };
        managers.write(&mut object);
        if self.write.manager == last_applied::MANAGER {
            last_applied::renew(&mut object, self.patch);
        }
        Ok(object)
    }

    /// Conflicts with what the same user applied from the client before are none.
    fn not_excused(&self, mut conflicts: Vec<Conflict>) -> Vec<Conflict> {
        if self.write.manager == last_applied::MANAGER
            && let Some(applied) = last_applied::fields(self.live, self.shape, self.write.api_version)
        {
            conflicts.retain(|conflict| !applied.has_path(&conflict.path));
        }
        conflicts
    }

    fn attempt(&self, force: bool) -> Result<(Value, Managers), Vec<Conflict>> {
        let reset = FieldSet::of(self.write.reset.iter().copied());
        let manager = self.write.by(Operation::Apply);
        let mut managers = self.managers.clone();
        managers.change(|_, fields| reconciled(fields, self.shape));
        let last = managers.get(&manager).cloned();
        let fields = fields_of(self.patch, self.shape).recursive_difference(&reset);
        let time = last.as_ref().and_then(|last| last.time.clone());
        let api_version = self.write.api_version.to_owned();
        managers.set(manager.clone(), Entry { fields, api_version, time });

        let merged = merged(self.live, self.patch, self.shape);
        let mut object = match last {
            Some(last) if !last.fields.is_empty() => self.pruned(&merged, &last.fields, &managers),
            _ => merged,
        };
        let difference = Comparison::between(self.live, &object, self.shape).without(&reset);
        let written = difference.written();
        let conflicts = conflicts(&managers, &manager, &written);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        managers.change(|other, fields| {
            if *other == manager {
                return fields.difference(&FieldSet::of(UNOWNED));
            }
            fields.difference(&written).difference(&difference.removed)
        });
        let is_changed = !same(self.live, &object);
        if is_changed && let Some(entry) = managers.get(&manager).cloned() {
            managers.set(manager, Entry { time: Some(self.write.time.to_owned()), ..entry });
        }
        clear(&mut object);
        Ok((object, managers))
    }

    /// The object without what this manager applied last and now does not, and that nobody else owns.
    fn pruned(&self, merged: &Value, last: &FieldSet, managers: &Managers) -> Value {
        let full = |set: &FieldSet| with_structures(set, Some(self.shape));
        let all = |object: &Value| full(&fields_of(object, self.shape));
        let (last, everything) = (full(last), all(merged));
        let mut owned = FieldSet::default();
        for (_, entry) in managers.iter() {
            owned.extend(&full(&entry.fields));
        }
        let bare = without(merged, &last, self.shape);
        let kept = all(&bare).union(&owned);
        let owned_only = without(merged, &everything.difference(&kept), self.shape);
        // Only what it applied itself goes.
        let gone = everything.difference(&all(&owned_only)).intersection(&last);
        without(merged, &gone, self.shape)
    }
}

fn conflicts(managers: &Managers, applier: &Manager, written: &FieldSet) -> Vec<Conflict> {
    let others = managers.iter().filter(|(manager, _)| *manager != applier);
    others
        .flat_map(|(manager, entry)| {
            let paths = entry.fields.intersection(written).paths();
            paths.into_iter().map(|path| Conflict { manager: manager.clone(), path })
        })
        .collect()
}

fn failure(conflicts: &[Conflict]) -> Failure {
    let causes = conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict",
        message: format!("conflict with {}", conflict.manager.told()),
        field: path_text(&conflict.path),
    });
    Failure::apply_conflict(message(conflicts), causes.collect())
}

fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        let (manager, path) = (only.manager.told(), path_text(&only.path));
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager.told()));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", path_text(&conflict.path)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
