//! What is done with lists and maps as a whole.

use std::{cmp::Ordering, collections::BTreeMap, rc::Rc};

use super::{
    Budget, Result,
    equality::equal,
    error,
    fields::escaped,
    no_such_overload,
    operators::compare,
    value::{Key, Value},
};
use crate::schema::ListKind;

/// What an item of a list is told apart by: the fields that are its key.
pub(super) type ItemKey = Vec<Option<Key>>;

/// The key of an item; nothing for what is no object.
pub(super) fn key_of(item: &Value<'_>, keys: &[String]) -> Option<ItemKey> {
    let field = |name: &String| item.field(&escaped(name)?)?.as_key();
    item.is_map().then(|| keys.iter().map(field).collect())
}

/// Whether something is in a list, or a key of a map.
pub(super) fn contained<'a>(item: &Value<'a>, container: &Value<'a>, budget: &Budget) -> Result<Value<'a>> {
    if let Some(items) = container.items() {
        for other in &items {
            if equal(item, other, budget)? {
                return Ok(Value::Bool(true));
            }
        }
        return Ok(Value::Bool(false));
    }
    if !container.is_map() {
        return no_such_overload();
    }
    Ok(Value::Bool(item.as_key().is_some_and(|key| container.entry(&key).is_some())))
}

/// Both lists one after the other. Of sets and lists with keys, what comes again takes the place that it has.
pub(super) fn sum<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
    let (Some(mut items), Some(others)) = (left.items(), right.items()) else { return no_such_overload() };
    let kind = if let Value::Array(left) = left { left.kind() } else { &ListKind::Atomic };
    let key = |item: &Value<'a>| match kind {
        ListKind::Atomic => None,
        ListKind::Set => item.as_key().map(|key| vec![Some(key)]),
        ListKind::Map(keys) => key_of(item, keys),
    };
    let mut places: BTreeMap<ItemKey, usize> =
        items.iter().enumerate().filter_map(|(at, item)| Some((key(item)?, at))).collect();
    for other in others {
        let key = key(&other);
        if let Some(item) = key.as_ref().and_then(|key| places.get(key)).and_then(|at| items.get_mut(*at)) {
            *item = other;
        } else {
            places.extend(key.map(|key| (key, items.len())));
            items.push(other);
        }
    }
    Ok(Value::List(Rc::new(items)))
}

/// The items of a list in the order of the keys that were made of them.
pub(super) fn sorted_by<'a>(list: &Value<'a>, keys: &Value<'a>) -> Result<Value<'a>> {
    let (Some(items), Some(keys)) = (list.items(), keys.items()) else { return no_such_overload() };
    for pair in keys.windows(2) {
        compare(&pair[0], &pair[1])?;
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(left, _), (right, _)| compare(left, right).ok().flatten().unwrap_or(Ordering::Equal));
    Ok(Value::List(Rc::new(pairs.into_iter().map(|(_, item)| item).collect())))
}

/// The items from one index to another.
pub(super) fn slice<'a>(list: &Value<'a>, start: i64, end: i64) -> Result<Value<'a>> {
    let Some(items) = list.items() else { return no_such_overload() };
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return error(format!("cannot slice({start}, {end}), negative indexes not supported"));
    };
    if from > to {
        return error(format!("cannot slice({start}, {end}), start index must be less than or equal to end index"));
    }
    match items.get(from..to) {
        Some(items) => Ok(Value::List(Rc::new(items.to_vec()))),
        None => error(format!("cannot slice({start}, {end}), list is length {}", items.len())),
    }
}

/// Puts an entry into a map that has none for the key.
pub(super) fn insert<'a>(map: &mut BTreeMap<Key, Value<'a>>, key: Key, value: Value<'a>) -> Result<()> {
    if map.contains_key(&key) {
        return error(format!("insert failed: key {} already exists", key.shown()));
    }
    map.insert(key, value);
    Ok(())
}

/// What is in the optionals of a list that have something.
pub(super) fn unwrapped<'a>(list: &Value<'a>) -> Result<Value<'a>> {
    let Some(items) = list.items() else { return no_such_overload() };
    let mut found = Vec::new();
    for item in items {
        match item {
            Value::Optional(inner) => found.extend(inner.map(|inner| inner.as_ref().clone())),
            _ => return no_such_overload(),
        }
    }
    Ok(Value::List(Rc::new(found)))
}
