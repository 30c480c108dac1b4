//! The order of lists that a strategic patch merges: what the patch says goes first, and what it does not say stays around it as
//! it was.

use serde_json::Value;

use super::refused;
use crate::{
    failure::Failure,
    ownership::{
        unforeseen,
        values::{plain, type_name},
    },
};

/// What an item is merged by.
pub(super) fn key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value, Failure> {
    let Some(fields) = item.as_object() else {
        let type_ = type_name(item);
        return Err(unforeseen(format!("expected a map[string]interface {{}}, but received a {type_}")));
    };
    let missing = || unforeseen(format!("map: {} does not contain declared merge key: {key}", plain(item)));
    fields.get(key).ok_or_else(missing)
}

/// What an item is told apart by: its key, or itself where there is none.
fn identity<'a>(item: &'a Value, key: &str) -> Result<&'a Value, Failure> {
    if key.is_empty() { Ok(item) } else { key_of(item, key) }
}

fn place(list: &[Value], item: &Value, key: &str) -> Option<usize> {
    let of = |item: &Value| if key.is_empty() { Some(item.clone()) } else { item.get(key).cloned() };
    list.iter().position(|other| of(other) == of(item))
}

/// The items without those that are there already.
pub(super) fn unique<'a>(items: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut unique: Vec<Value> = Vec::new();
    for item in items {
        if !unique.contains(item) {
            unique.push(item.clone());
        }
    }
    unique
}

/// Checks that the items of two lists are of one type, and that it is one that can be merged.
pub(super) fn check_types(live: &[Value], patch: &[Value]) -> Result<(), Failure> {
    let mut items = live.iter().chain(patch);
    let first = items.next().ok_or_else(|| unforeseen("no elements in any of the given slices".to_owned()))?;
    if first.is_array() {
        return Err(refused());
    }
    if items.any(|item| type_name(item) != type_name(first)) {
        let lists = plain(&Value::Array(vec![live.into(), patch.into()]));
        return Err(unforeseen(format!("list element types are not identical: {lists}")));
    }
    Ok(())
}

/// Checks that the items of a patch come in the order that the patch says.
pub(super) fn check(patch: &[Value], order: &[Value], key: &str) -> Result<(), Failure> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let stays = |item: &&Value| key.is_empty() || item.get("$patch").is_none_or(|directive| directive != "delete");
    let mut said = patch.iter().filter(stays).peekable();
    let mut places = order.iter().peekable();
    while let (Some(item), Some(place)) = (said.peek(), places.peek()) {
        if item.get("$patch").is_some() {
            said.next();
            continue;
        }
        if identity(item, key)? == identity(place, key)? {
            said.next();
        }
        places.next();
    }
    if said.peek().is_some() {
        let list = |items: &[Value]| plain(&Value::Array(items.to_vec()));
        return Err(unforeseen(format!(
            "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
            list(patch),
            list(order)
        )));
    }
    Ok(())
}

/// The order of a list after a patch deleted items of it: to Kubernetes, new items take the places that became free at the end.
pub(super) fn refilled(live: Vec<Value>, patch: &[Value], key: &str) -> Vec<Value> {
    let says = |item: &Value, directive: &str| item.get("$patch").is_some_and(|said| said == directive);
    let deleted: Vec<Value> = patch.iter().filter(|item| says(item, "delete")).cloned().collect();
    if key.is_empty() || deleted.is_empty() || patch.iter().any(|item| says(item, "replace")) {
        return live;
    }
    let places = live.len();
    let mut left: Vec<Value> = live.into_iter().filter(|item| place(&deleted, item, key).is_none()).collect();
    let new = patch.iter().filter(|item| item.get("$patch").is_none() && place(&left, item, key).is_none());
    let new: Vec<Value> = new.take(places - left.len()).cloned().collect();
    left.extend(new);
    left
}

/// Brings merged items into order: those that are in the patch as it says, and the others as they were.
pub(super) fn ordered(
    merged: Vec<Value>,
    patch_order: &[Value],
    live_order: &[Value],
    key: &str,
) -> Result<Vec<Value>, Failure> {
    for item in &merged {
        identity(item, key)?;
    }
    let (mut said, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(patch_order, item, key).is_some());
    said.sort_by_key(|item| place(patch_order, item, key));
    others.sort_by_key(|item| place(live_order, item, key));
    let (mut said, mut others) = (said.into_iter().peekable(), others.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let goes_before = match (others.peek(), said.peek()) {
            (None, None) => return Ok(all),
            (Some(other), Some(said)) => {
                let places = (place(live_order, other, key), place(live_order, said, key));
                matches!(places, (Some(other), Some(said)) if other < said)
            }
            (other, _) => other.is_some(),
        };
        all.extend(if goes_before { others.next() } else { said.next() });
    }
}
