//! The types of lists and maps that are written down, and of loops over them.

use kube_cel::cel::common::ast::{ComprehensionExpr, EntryExpr, IdedExpr, ListExpr, MapExpr};

use super::{BOOL, INT, Type, checker::Checker, literals::Literal, unify::more_general};
use crate::cel::fields::is_reserved;

impl<'s> Checker<'s> {
    pub(super) fn list(&mut self, list: &ListExpr) -> Type<'s> {
        let mut all = Literal::default();
        let mut item = None;
        for (at, element) in list.elements.iter().enumerate() {
            let type_ = self.part(element, list.optional_indices.contains(&at));
            all.note(element.id, type_.clone());
            item = Some(self.join(item, type_));
        }
        self.literals.note(all);
        let item = item.unwrap_or_else(|| Type::Var(self.known.fresh(1)));
        Type::list(item)
    }

    pub(super) fn map(&mut self, map: &MapExpr) -> Type<'s> {
        let (mut keys, mut values) = (Literal::default(), Literal::default());
        let mut of = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Type::Dyn };
            let key = self.part(&entry.key, false);
            keys.note(entry.key.id, key.clone());
            let value = self.part(&entry.value, entry.optional);
            values.note(entry.value.id, value.clone());
            of = Some(match of {
                None => (key, value),
                Some((keys, values)) => (self.join(Some(keys), key), self.join(Some(values), value)),
            });
        }
        self.literals.note_entries(keys, values);
        let (key, value) = of.unwrap_or_else(|| {
            let first = self.known.fresh(2);
            (Type::Var(first), Type::Var(first + 1))
        });
        Type::map(key, value)
    }

    /// The type of a part of a list or map, which may have to be an optional.
    fn part(&mut self, tree: &IdedExpr, is_optional: bool) -> Type<'s> {
        let type_ = self.visit(tree);
        match type_.unwrapped() {
            Some(inner) if is_optional => inner.clone(),
            None if is_optional && type_ != Type::Dyn => {
                self.mismatch(tree.id, &Type::optional(type_.clone()), &type_);
                type_
            }
            _ => type_,
        }
    }

    fn join(&mut self, before: Option<Type<'s>>, type_: Type<'s>) -> Type<'s> {
        match before {
            None => type_,
            Some(before) if self.known.goes(&before, &type_) => more_general(&before, &type_).clone(),
            Some(_) => Type::Dyn,
        }
    }

    pub(super) fn comprehension(&mut self, loop_: &ComprehensionExpr) -> Type<'s> {
        let range = self.visit(&loop_.iter_range);
        let gathered = self.visit(&loop_.accu_init);
        let (first, second) = self.round(&loop_.iter_range, &range, loop_.iter_var2.is_some());
        if is_reserved(&loop_.iter_var) {
            self.undeclared(loop_.loop_step.id, &loop_.iter_var);
        }
        let outside = self.variables.len();
        self.variables.push((loop_.accu_var.clone(), gathered.clone()));
        self.variables.push((loop_.iter_var.clone(), first));
        self.variables.extend(loop_.iter_var2.clone().map(|name| (name, second)));
        let condition = self.visit(&loop_.loop_cond);
        self.expect(&loop_.loop_cond, &BOOL, &condition);
        let step = self.visit(&loop_.loop_step);
        self.expect(&loop_.loop_step, &gathered, &step);
        self.variables.truncate(outside + 1);
        let result = self.visit(&loop_.result);
        self.variables.truncate(outside);
        self.known.resolved(&result)
    }

    fn expect(&mut self, tree: &IdedExpr, expected: &Type<'s>, found: &Type<'s>) {
        if !self.known.goes(expected, found) {
            self.mismatch(tree.id, expected, found);
        }
    }

    /// The types of what a loop names in each round.
    fn round(&mut self, tree: &IdedExpr, range: &Type<'s>, has_two: bool) -> (Type<'s>, Type<'s>) {
        let range = self.known.resolved(range);
        match &range {
            Type::Named("list", of) if has_two => (INT, of.first().cloned().unwrap_or(Type::Dyn)),
            Type::Named("list" | "map", of) => {
                let part = |at: usize| of.get(at).cloned().unwrap_or(Type::Dyn);
                (part(0), part(1))
            }
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.known.goes(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let text = "cannot be range of a comprehension (must be list, map, or dynamic)";
                self.wrong(tree.id, format!("expression of type '{range}' {text}"));
                (Type::Error, Type::Error)
            }
        }
    }
}
