//! Ownership that was written down under another schema: what was owned in parts and is one thing now is owned as that.

use super::{
    set::{Element, FieldSet, Path},
    shape::{Form, Shape},
};
use crate::schema::ListKind;

/// The same fields under this schema.
pub(crate) fn reconciled(set: &FieldSet, shape: Shape<'_>) -> FieldSet {
    let mut walk = Walk { path: Vec::new(), wholes: FieldSet::default() };
    walk.visit(Some(set), false, shape);
    if walk.wholes.is_empty() { set.clone() } else { set.recursive_difference(&walk.wholes).union(&walk.wholes) }
}

struct Walk {
    path: Path,
    /// The fields that are one thing now.
    wholes: FieldSet,
}

impl Walk {
    fn visit(&mut self, set: Option<&FieldSet>, is_whole: bool, shape: Shape<'_>) {
        // Without a value to look at, what may be anything is taken for a map.
        match shape.form(None) {
            Form::Scalar => {}
            Form::List => {
                if !is_whole && *shape.list() == ListKind::Atomic {
                    self.wholes.insert(&self.path);
                } else if let Some(set) = set {
                    self.visit_steps(set, |_| Some(shape.item()));
                }
            }
            Form::Map if shape.is_untold_map() => {}
            Form::Map => {
                if !is_whole && shape.is_atomic_map() {
                    if set.is_some_and(|set| !set.is_empty()) {
                        self.wholes.insert(&self.path);
                    }
                } else if let Some(set) = set {
                    self.visit_steps(set, |element| match element {
                        Element::Field(name) => shape.field(name),
                        _ => shape.field(""),
                    });
                }
            }
        }
    }

    fn visit_steps<'a>(&mut self, set: &FieldSet, shape_of: impl Fn(&Element) -> Option<Shape<'a>>) {
        for (element, is_member) in set.steps() {
            let Some(shape) = shape_of(element) else { continue };
            let below = set.child(element);
            self.path.push(element.clone());
            self.visit(below, is_member && below.is_none(), shape);
            self.path.pop();
        }
    }
}
