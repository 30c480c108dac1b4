//! What an object becomes when a part of it is applied. Nothing is removed by that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    set::Element,
    shape::{Form, Shape},
};
use crate::schema::ListKind;

/// The object with what is applied in it.
pub(crate) fn merged(live: &Value, applied: &Value, shape: Shape<'_>) -> Value {
    merge(Some(live), Some(applied), shape).unwrap_or(Value::Null)
}

fn merge(live: Option<&Value>, applied: Option<&Value>, shape: Shape<'_>) -> Option<Value> {
    // The form of what is applied decides.
    match shape.form(applied.or(live)) {
        Form::Scalar => whole(live, applied),
        Form::Map => {
            let (live_fields, applied_fields) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
            let is_empty = |fields: Option<&Map<String, Value>>| fields.is_none_or(Map::is_empty);
            if shape.is_atomic_map() || is_empty(live_fields) && is_empty(applied_fields) {
                return whole(live, applied);
            }
            let fields = merge_fields(live_fields, applied_fields, shape);
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        Form::List => {
            let (live_items, applied_items) = (live.and_then(Value::as_array), applied.and_then(Value::as_array));
            let is_empty = |items: Option<&Vec<Value>>| items.is_none_or(Vec::is_empty);
            if *shape.list() == ListKind::Atomic || is_empty(live_items) && is_empty(applied_items) {
                return whole(live, applied);
            }
            let items = merge_items(&told_apart(live_items, shape), &told_apart(applied_items, shape), shape.item());
            (!items.is_empty()).then_some(Value::Array(items))
        }
    }
}

fn whole(live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    applied.or(live).cloned()
}

fn merge_fields(
    live: Option<&Map<String, Value>>,
    applied: Option<&Map<String, Value>>,
    shape: Shape<'_>,
) -> Map<String, Value> {
    let names: BTreeSet<&String> = live.into_iter().chain(applied).flat_map(Map::keys).collect();
    let merged = names.into_iter().filter_map(|name| {
        let (live, applied) = (live.and_then(|live| live.get(name)), applied.and_then(|applied| applied.get(name)));
        Some((name.clone(), merge(live, applied, shape.field(name).unwrap_or(Shape::Deduced))?))
    });
    merged.collect()
}

type Items<'a> = Vec<(Element, &'a Value)>;

fn told_apart<'a>(items: Option<&'a Vec<Value>>, shape: Shape<'_>) -> Items<'a> {
    items.into_iter().flatten().filter_map(|item| Some((shape.step(item).ok()?, item))).collect()
}

/// Merges the items of two lists. Those that are in both come in the order in which they are applied; those that are only live
/// stay where they are among them.
fn merge_items(live: &Items<'_>, applied: &Items<'_>, shape: Shape<'_>) -> Vec<Value> {
    let applied_by: BTreeMap<&Element, &Value> = applied.iter().map(|(step, item)| (step, *item)).collect();
    let mut live_by: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (step, item) in live {
        // What is there more than once is not merged with, but replaced.
        live_by.entry(step).and_modify(|known| *known = None).or_insert(Some(item));
    }
    let null = Value::Null;
    let of_both = |step: &Element, item: &Value| {
        let live = live_by.get(step).map(|live| live.unwrap_or(&null));
        merge(live, Some(item), shape)
    };
    let mut shared: VecDeque<&Element> =
        applied.iter().map(|(step, _)| step).filter(|step| live_by.contains_key(step)).collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let (mut out, mut at_live, mut at_applied) = (Vec::new(), 0, 0);
    while at_live < live.len() || at_applied < applied.len() {
        if let (Some((step, _)), Some((applied_step, item))) = (live.get(at_live), applied.get(at_applied)) {
            if step == applied_step {
                done.insert(step);
                out.extend(of_both(step, item));
                at_live += 1;
                at_applied += 1;
                next_shared = shared.pop_front();
                continue;
            }
            if applied_by.contains_key(step) && next_shared.is_some_and(|next| next != step) {
                at_live += 1;
                continue;
            }
        }
        if let Some((step, item)) = live.get(at_live) {
            if !applied_by.contains_key(step) {
                out.extend(merge(Some(item), None, shape));
                at_live += 1;
                continue;
            }
            if done.contains(step) {
                at_live += 1;
            }
        }
        if let Some((step, item)) = applied.get(at_applied) {
            done.insert(step);
            out.extend(of_both(step, item));
            at_applied += 1;
            if next_shared == Some(step) {
                next_shared = shared.pop_front();
            }
        }
    }
    out
}
