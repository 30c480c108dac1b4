//! The loops that macros stand for, and what they do in each round.

use std::{collections::BTreeMap, rc::Rc};

use kube_cel::cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, operators as op};

use super::{
    Result,
    eval::Evaluation,
    lists::insert,
    macros::INSERT,
    no_such_overload,
    value::{Key, Value},
};

/// What it costs to make a list of one, and put it behind what is gathered.
const COST_OF_GATHERING: u64 = 11;

/// What the names of a loop mean, round for round.
type Rounds<'a> = Vec<(Value<'a>, Option<Value<'a>>)>;

/// A loop.
struct Loop<'a> {
    expr: &'a ComprehensionExpr,
    shape: Shape<'a>,
    /// What each round costs besides what is evaluated in it.
    cost_of_round: u64,
}

/// What a loop does.
#[derive(Clone, Copy)]
enum Shape<'a> {
    /// It makes a list or a map of what passes a filter. That would be copied in each round if it were evaluated as it is written.
    Gathers { filter: Option<&'a IdedExpr>, what: What<'a> },
    /// It is an `exists` or an `all`, which one round can decide.
    Decides(bool),
    /// Anything else.
    Other,
}

/// What a loop gathers in each round.
#[derive(Clone, Copy)]
enum What<'a> {
    /// An item of a list.
    Item(&'a IdedExpr),
    /// An entry of a map.
    Entry { key: &'a IdedExpr, value: &'a IdedExpr },
    /// Entries of a map.
    Entries(&'a IdedExpr),
}

impl<'a> Loop<'a> {
    fn of(expr: &'a ComprehensionExpr) -> Self {
        let shape = gathers(expr).or_else(|| decides(expr)).unwrap_or(Shape::Other);
        // What is gathered is looked at too.
        let cost_of_round = weight(&expr.loop_cond) + u64::from(!matches!(shape, Shape::Other));
        Self { expr, shape, cost_of_round }
    }

    /// All rounds over a list or a map; nothing over anything else.
    fn rounds(&self, range: &Value<'a>) -> Option<Rounds<'a>> {
        let index = |at: usize| Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
        let has_two = self.expr.iter_var2.is_some();
        if let Some(items) = range.items() {
            let round = |(at, item)| if has_two { (index(at), Some(item)) } else { (item, None) };
            return Some(items.into_iter().enumerate().map(round).collect());
        }
        let round = |(key, value): (Key, Value<'a>)| (key.into(), has_two.then_some(value));
        Some(range.entries()?.into_iter().map(round).collect())
    }

    /// What is asked in each round of a loop that one can decide.
    fn predicate(&self) -> &'a IdedExpr {
        match &self.expr.loop_step.expr {
            Expr::Call(call) => call.args.last().unwrap_or(&self.expr.loop_step),
            _ => &self.expr.loop_step,
        }
    }
}

impl<'a> Evaluation<'a, '_> {
    /// The value of a loop.
    pub(super) fn comprehension(&mut self, loop_: &'a ComprehensionExpr) -> Result<Value<'a>> {
        let range = self.value(&loop_.iter_range)?;
        let loop_ = Loop::of(loop_);
        let Some(rounds) = loop_.rounds(&range) else { return no_such_overload() };
        let outside = self.locals.len();
        let gathered = match loop_.shape {
            Shape::Gathers { filter, what } => self.gather(&loop_, rounds, filter, what),
            Shape::Decides(decisive) => self.decide(&loop_, rounds, decisive),
            Shape::Other => self.fold(&loop_, rounds),
        };
        self.locals.truncate(outside);
        self.locals.push((&loop_.expr.accu_var, gathered?));
        let result = self.value(&loop_.expr.result);
        self.locals.truncate(outside);
        result
    }

    /// Evaluates something where the names of a loop mean what they do in one round.
    fn in_round<T>(
        &mut self,
        loop_: &Loop<'a>,
        (first, second): (Value<'a>, Option<Value<'a>>),
        evaluate: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.budget.spend(loop_.cost_of_round)?;
        let outside = self.locals.len();
        self.locals.push((&loop_.expr.iter_var, first));
        self.locals.extend(loop_.expr.iter_var2.as_deref().zip(second));
        let value = evaluate(self);
        self.locals.truncate(outside);
        value
    }

    /// A list or a map of what is made of those that pass a filter.
    fn gather(
        &mut self,
        loop_: &Loop<'a>,
        rounds: Rounds<'a>,
        filter: Option<&'a IdedExpr>,
        what: What<'a>,
    ) -> Result<Value<'a>> {
        let mut items = Vec::new();
        let mut map = BTreeMap::new();
        for round in rounds {
            self.in_round(loop_, round, |this| {
                match filter.map_or(Ok(Value::Bool(true)), |filter| this.value(filter))? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => return Ok(()),
                    _ => return no_such_overload(),
                }
                this.budget.spend(COST_OF_GATHERING)?;
                match what {
                    What::Item(item) => items.push(this.value(item)?),
                    What::Entry { key, value } => insert(&mut map, this.key(key)?, this.value(value)?)?,
                    What::Entries(entries) => {
                        let Some(entries) = this.value(entries)?.entries() else { return no_such_overload() };
                        entries.into_iter().try_for_each(|(key, value)| insert(&mut map, key, value))?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(if let What::Item(_) = what { Value::List(Rc::new(items)) } else { Value::Map(Rc::new(map)) })
    }

    /// Whether one round decides. It goes on where a round has no value, for another may decide.
    fn decide(&mut self, loop_: &Loop<'a>, rounds: Rounds<'a>, decisive: bool) -> Result<Value<'a>> {
        let mut answer = Ok(Value::Bool(!decisive));
        for round in rounds {
            match self.in_round(loop_, round, |this| this.value(loop_.predicate())) {
                Ok(Value::Bool(truth)) if truth == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => answer = answer.and_then(|_| no_such_overload()),
                Err(error) => answer = answer.and(Err(error)),
            }
        }
        answer
    }

    /// Any other loop.
    fn fold(&mut self, loop_: &Loop<'a>, rounds: Rounds<'a>) -> Result<Value<'a>> {
        let mut gathered = self.value(&loop_.expr.accu_init)?;
        for round in rounds {
            gathered = self.in_round(loop_, round, |this| {
                this.locals.push((&loop_.expr.accu_var, gathered));
                this.value(&loop_.expr.loop_step)
            })?;
        }
        Ok(gathered)
    }
}

fn decides(expr: &ComprehensionExpr) -> Option<Shape<'_>> {
    match &expr.loop_step.expr {
        Expr::Call(call) if call.func_name == op::LOGICAL_AND => Some(Shape::Decides(false)),
        Expr::Call(call) if call.func_name == op::LOGICAL_OR => Some(Shape::Decides(true)),
        _ => None,
    }
}

fn gathers(expr: &ComprehensionExpr) -> Option<Shape<'_>> {
    let is_empty = match &expr.accu_init.expr {
        Expr::List(list) => list.elements.is_empty(),
        Expr::Map(map) => map.entries.is_empty(),
        _ => false,
    };
    let is_gathered = |tree: &IdedExpr| matches!(&tree.expr, Expr::Ident(name) if *name == expr.accu_var);
    let (filter, step) = match &expr.loop_step.expr {
        Expr::Call(call) if call.func_name == op::CONDITIONAL => match call.args.as_slice() {
            [filter, step, otherwise] if is_gathered(otherwise) => (Some(filter), step),
            _ => return None,
        },
        _ => (None, &expr.loop_step),
    };
    let Expr::Call(call) = &step.expr else { return None };
    let (gathered, args) = call.args.split_first()?;
    let what = match (call.func_name.as_str(), args) {
        (op::ADD, [IdedExpr { expr: Expr::List(list), .. }]) if list.optional_indices.is_empty() => {
            What::Item(list.elements.first().filter(|_| list.elements.len() == 1)?)
        }
        (INSERT, [key, value]) => What::Entry { key, value },
        (INSERT, [entries]) => What::Entries(entries),
        _ => return None,
    };
    (is_empty && is_gathered(gathered)).then_some(Shape::Gathers { filter, what })
}

/// How many names and operators there are in a condition.
fn weight(tree: &IdedExpr) -> u64 {
    match &tree.expr {
        Expr::Ident(_) => 1,
        Expr::Call(call) => 1 + call.args.iter().map(weight).sum::<u64>(),
        _ => 0,
    }
}
