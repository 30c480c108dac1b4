//! An expression of a rule, and what is found wrong with it before it is ever evaluated.

use drover_engine::cel::syntax::Mistake;

use crate::{
    cel::{
        Expression as Evaluated,
        types::{BOOL, TEXT, Type},
        unparsable,
    },
    schema::Schema,
};

/// How many mistakes are told.
const MAX_MISTAKES: usize = 100;
/// The longest line that is shown.
const MAX_SHOWN: usize = 16_384;
/// What objects are called that have no name of their own.
const OWN_TYPE: &str = "selfType";

/// An expression that was found to be sound.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) evaluated: Evaluated,
    /// Whether it asks what was before.
    pub(super) is_about_change: bool,
}

/// What an expression is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// True or false.
    Truth,
    /// A text.
    Text,
}

/// What is wrong with an expression.
#[derive(Debug)]
pub(super) enum Fault {
    /// It can not be compiled.
    Compilation(String),
    /// It makes something else than it should.
    Sort(Sort),
}

impl Fault {
    /// What is said about it, where this step has failed.
    pub(super) fn of(&self, step: &str) -> String {
        match self {
            Self::Compilation(why) => format!("{step} failed: {why}"),
            Self::Sort(Sort::Truth) => "cel expression must evaluate to a bool".to_owned(),
            Self::Sort(Sort::Text) => "messageExpression must evaluate to a string".to_owned(),
        }
    }
}

/// The types of what rules name that stand at one place.
pub(super) struct Types<'s> {
    own: Type<'s>,
}

impl<'s> Types<'s> {
    /// The types where values are as this schema describes them; nothing where rules can not see such values.
    pub(super) fn at(schema: &'s Schema, is_resource: bool) -> Option<Self> {
        Some(Self { own: Type::of(schema, is_resource, OWN_TYPE)? })
    }

    /// Compiles an expression, where what was before may be wrapped.
    pub(super) fn compile(&self, source: &str, sort: Sort, wraps_old: bool) -> Result<Expression, Fault> {
        if let Some(problem) = unparsable(source) {
            return Err(Fault::Compilation(nowhere(&problem)));
        }
        let old = if wraps_old { Type::optional(self.own.clone()) } else { self.own.clone() };
        let compiled = Evaluated::compile_typed(source, &[("self", self.own.clone()), ("oldSelf", old)]);
        let typed = compiled.map_err(|mistakes| Fault::Compilation(told(&mistakes, source)))?;
        let expected = if sort == Sort::Truth { BOOL } else { TEXT };
        if typed.type_ != expected && typed.type_ != Type::Error {
            return Err(Fault::Sort(sort));
        }
        let is_about_change = typed.uses.contains("oldSelf");
        Ok(Expression { evaluated: typed.expression, is_about_change })
    }
}

fn nowhere(text: &str) -> String {
    format!("ERROR: <input>:-1:0: {text}")
}

/// What is wrong with an expression, each with its line and a mark under its place.
fn told(mistakes: &[Mistake], source: &str) -> String {
    let mut all: Vec<_> = mistakes.iter().take(MAX_MISTAKES).map(|mistake| shown(mistake, source)).collect();
    if mistakes.len() > MAX_MISTAKES {
        all.push(format!("{} more errors were truncated", mistakes.len() - MAX_MISTAKES));
    }
    all.join("\n")
}

fn shown(mistake: &Mistake, source: &str) -> String {
    let Mistake { line, column, text } = mistake;
    let told = format!("ERROR: <input>:{line}:{}: {text}", column + 1);
    let Some(shown) = source.split('\n').nth(line - 1).filter(|line| line.len() <= MAX_SHOWN) else { return told };
    let shown = shown.replace('\t', " ");
    // Wide characters are given wide marks.
    let mark = |narrow, wide| move |character: char| if character.len_utf8() > 1 { wide } else { narrow };
    let before: String = shown.chars().take(*column).map(mark('.', '．')).collect();
    let here = shown.chars().nth(*column).map_or('^', mark('^', '＾'));
    format!("{told}\n | {shown}\n | {before}{here}")
}
