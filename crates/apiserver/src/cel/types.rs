//! The types of expressions, and whether an expression has one.
//!
//! Kubernetes checks the rules of a CustomResourceDefinition when it is written, with the checker of cel-go. This follows it: types are unified in
//! the same order, and what is wrong is told in the same words. Where it loses track, anything goes.

mod checker;
mod collections;
mod declarations;
mod described;
mod literals;
mod unify;

use std::fmt;

pub(crate) use self::{checker::check, described::Described};

/// The type of a part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type<'s> {
    /// Anything, to be seen at run time.
    Dyn,
    /// What has none because something is wrong, which was told already.
    Error,
    /// By its name, with the types that it is made of.
    Named(&'static str, Vec<Self>),
    /// An object with the fields of a schema.
    Object(Described<'s>),
    /// One that is not known yet.
    Var(usize),
}

pub(crate) const BOOL: Type<'static> = Type::Named("bool", Vec::new());
pub(crate) const TEXT: Type<'static> = Type::Named("string", Vec::new());
const INT: Type<'static> = Type::Named("int", Vec::new());

/// How many types a type may be made of before it is taken for any: each step of an expression can double them.
const MAX_SIZE: usize = 1000;

impl Type<'_> {
    /// A type that is made of others.
    fn made(name: &'static str, of: Vec<Self>) -> Self {
        let size: usize = of.iter().map(Self::size).sum();
        if size > MAX_SIZE { Self::Dyn } else { Self::Named(name, of) }
    }

    fn list(item: Self) -> Self {
        Self::made("list", vec![item])
    }

    fn map(key: Self, value: Self) -> Self {
        Self::made("map", vec![key, value])
    }

    /// One that may not be there.
    pub(crate) fn optional(of: Self) -> Self {
        Self::made("optional_type", vec![of])
    }

    fn size(&self) -> usize {
        match self {
            Self::Named(_, of) => 1 + of.iter().map(Self::size).sum::<usize>(),
            _ => 1,
        }
    }

    /// What is inside, if it is an optional.
    fn unwrapped(&self) -> Option<&Self> {
        match self {
            Self::Named("optional_type", of) => of.first(),
            _ => None,
        }
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Object(object) => object.fmt(f),
            Self::Var(number) => write!(f, "_var{number}"),
            Self::Named(name, of) => {
                f.write_str(name)?;
                if of.is_empty() { Ok(()) } else { write!(f, "({})", joined(of)) }
            }
        }
    }
}

fn joined(types: &[Type<'_>]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
