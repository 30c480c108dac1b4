//! Which types go where others are expected, and what follows for those that are not known yet.

use super::Type;

/// How many steps may be taken for one expression. Types can be made so that it would never end.
const MAX_STEPS: usize = 1_000_000;
/// The names of types that are no more than values of the language; all others are kept by libraries, and may be null.
const PLAIN: [&str; 10] = ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "null"];

/// What is known of the types that were not.
#[derive(Default)]
pub(super) struct Known<'s> {
    types: Vec<Option<Type<'s>>>,
    /// What was known before, to go back to.
    trail: Vec<(usize, Option<Type<'s>>)>,
    steps: usize,
}

impl<'s> Known<'s> {
    /// So many new types; the number of the first.
    pub(super) fn fresh(&mut self, count: usize) -> usize {
        let first = self.types.len();
        self.types.resize(first + count, None);
        first
    }

    /// Whether it was too much, so that nothing that was found means anything.
    pub(super) fn is_lost(&self) -> bool {
        self.steps > MAX_STEPS
    }

    fn set(&mut self, var: usize, type_: Type<'s>) {
        if let Some(known) = self.types.get_mut(var) {
            self.trail.push((var, known.replace(type_)));
        }
    }

    fn find(&self, var: usize) -> Option<Type<'s>> {
        self.types.get(var).cloned().flatten()
    }

    /// Whether all of these go where those are expected. If not, nothing has become known.
    pub(super) fn all_go(&mut self, given: &[Type<'s>], expected: &[Type<'s>]) -> bool {
        let mark = self.trail.len();
        let go = self.go(given, expected);
        if !go {
            for (var, before) in self.trail.split_off(mark).into_iter().rev() {
                self.types[var] = before;
            }
        }
        go
    }

    pub(super) fn goes(&mut self, given: &Type<'s>, expected: &Type<'s>) -> bool {
        self.all_go(std::slice::from_ref(given), std::slice::from_ref(expected))
    }

    fn go(&mut self, given: &[Type<'s>], expected: &[Type<'s>]) -> bool {
        given.len() == expected.len()
            && given.iter().zip(expected).all(|(given, expected)| self.one_goes(given, expected))
    }

    fn one_goes(&mut self, given: &Type<'s>, expected: &Type<'s>) -> bool {
        self.steps += 1;
        if self.is_lost() {
            return true;
        }
        if let Type::Var(var) = expected {
            match self.may_be(*var, given) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Var(var) = given {
            return self.may_be(*var, expected).0;
        }
        if given.is_open() || expected.is_open() {
            return true;
        }
        match (given, expected) {
            (Type::Named("null", _), other) | (other, Type::Named("null", _)) => may_be_null(other),
            (Type::Named("type", _), Type::Named("type", _)) => true,
            (Type::Named(given, of), Type::Named(expected, other)) => given == expected && self.go(of, other),
            (Type::Object(given), Type::Object(expected)) => given == expected,
            _ => false,
        }
    }

    /// Whether a type that is not known may be this one, and whether something was known about it.
    fn may_be(&mut self, var: usize, type_: &Type<'s>) -> (bool, bool) {
        if *type_ == Type::Var(var) {
            return (true, true);
        }
        let Some(known) = self.find(var) else {
            let is_free = !self.is_in(var, type_);
            if is_free {
                self.set(var, type_.clone());
            }
            return (is_free, false);
        };
        if known == *type_ {
            return (true, true);
        }
        if !self.one_goes(type_, &known) {
            return (false, true);
        }
        let general = more_general(type_, &known).clone();
        if !self.is_in(var, &general) {
            self.set(var, general);
        }
        (true, true)
    }

    /// Whether a type that is not known is a part of another.
    fn is_in(&mut self, var: usize, type_: &Type<'s>) -> bool {
        self.steps += 1;
        if self.is_lost() {
            return true;
        }
        match type_ {
            Type::Var(own) if *own == var => true,
            Type::Var(own) => self.find(*own).is_some_and(|known| self.is_in(var, &known)),
            Type::Named(_, of) => of.iter().any(|part| self.is_in(var, part)),
            _ => false,
        }
    }

    /// A type with all in it that has become known.
    pub(super) fn resolved(&mut self, type_: &Type<'s>) -> Type<'s> {
        self.steps += 1;
        if self.is_lost() {
            return Type::Dyn;
        }
        match type_ {
            Type::Var(var) => match self.find(*var) {
                Some(known) => self.resolved(&known),
                None => type_.clone(),
            },
            Type::Named(name, of) => Type::made(name, of.iter().map(|part| self.resolved(part)).collect()),
            other => other.clone(),
        }
    }

    /// The same at the end, when what is not known yet will never be.
    pub(super) fn settled(&mut self, type_: &Type<'s>) -> Type<'s> {
        let resolved = self.resolved(type_);
        without_vars(&resolved)
    }
}

fn without_vars<'s>(type_: &Type<'s>) -> Type<'s> {
    match type_ {
        Type::Var(_) => Type::Dyn,
        Type::Named(name, of) => Type::Named(name, of.iter().map(without_vars).collect()),
        other => other.clone(),
    }
}

fn may_be_null(type_: &Type<'_>) -> bool {
    match type_ {
        Type::Named(name, _) => *name == "null" || !PLAIN.contains(name),
        _ => true,
    }
}

/// Of two types that go for each other, the one that says less.
pub(super) fn more_general<'t, 's>(left: &'t Type<'s>, right: &'t Type<'s>) -> &'t Type<'s> {
    if says_no_more(left, right) { left } else { right }
}

fn says_no_more(left: &Type<'_>, right: &Type<'_>) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Var(_), _) | (Type::Named("type", _), Type::Named("type", _)) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::Named(left, of), Type::Named(right, other)) => {
            left == right
                && of.len() == other.len()
                && of.iter().zip(other).all(|(left, right)| says_no_more(left, right))
        }
        _ => left == right,
    }
}
