//! What holds whatever is applied.

use proptest::{collection::btree_map, prelude::*};
use serde_json::json;

use super::{
    super::{fields::fields_of, set::FieldSet, shape::Shape},
    *,
};

/// Specs of widgets, with only some of their fields.
fn spec() -> impl Strategy<Value = Value> {
    let items = btree_map("[a-d]", (proptest::option::of("[0-1]"), proptest::option::of("[0-1]")), 0..3);
    let sizes = btree_map("[a-d]", 0..2i64, 0..3);
    let tags = proptest::collection::btree_set("[a-d]", 0..3);
    let parts = proptest::option::of(proptest::collection::vec("[a-b]", 0..3));
    (proptest::option::of(0..3i64), items, sizes, tags, parts).prop_map(|(size, items, sizes, tags, parts)| {
        let mut spec = json!({});
        if let Some(size) = size {
            spec["size"] = json!(size);
        }
        if let Some(parts) = parts {
            spec["parts"] = json!(parts);
        }
        if !items.is_empty() {
            let items = items.into_iter().map(|(name, (one, two))| {
                let mut item = json!({"name": name});
                for (key, value) in [("one", one), ("two", two)] {
                    if let Some(value) = value {
                        item[key] = json!(value);
                    }
                }
                item
            });
            spec["items"] = items.collect();
        }
        if !sizes.is_empty() {
            spec["sizes"] = json!(sizes);
        }
        if !tags.is_empty() {
            spec["tags"] = json!(tags);
        }
        spec
    })
}

fn forced(live: Option<&Value>, spec: &Value, who: &str) -> Value {
    kept(apply(live, &widget_of(spec), &widget(), &write(who, T1), true).unwrap())
}

fn all_fields(object: &Value) -> FieldSet {
    fields_of(object, Shape::root(&widget()))
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        // Kubernetes makes a map null from which the last field is removed.
        (Value::Null, Value::Object(part)) => part.is_empty(),
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        _ => whole == part,
    }
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(live in spec(), patch in spec()) {
        let live = forced(None, &live, "other");
        let once = forced(Some(&live), &patch, "me");
        prop_assert_eq!(forced(Some(&once), &patch, "me"), once);
    }

    #[test]
    fn applying_nothing_takes_back_all_that_was_applied_alone(live in spec(), patch in spec()) {
        let live = forced(None, &live, "other");
        let with = apply(Some(&live), &widget_of(&patch), &widget(), &write("me", T1), false);
        prop_assume!(with.is_ok());
        let mut nothing = widget_of(&json!({}));
        nothing.as_object_mut().unwrap().remove("spec");
        let mut without = apply(Some(&with.unwrap()), &nothing, &widget(), &write("me", T1), false).unwrap();
        prop_assert_eq!(entries(&without), entries(&live));
        let mut live = live;
        // The order of what is not applied may have followed what was; and what is empty now may still be there.
        for spec in [&mut without["spec"], &mut live["spec"]] {
            if spec.is_null() {
                *spec = json!({});
            }
            spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            for list in ["items", "tags"] {
                if let Some(list) = spec.get_mut(list).and_then(Value::as_array_mut) {
                    list.sort_by_key(ToString::to_string);
                }
            }
        }
        prop_assert_eq!(&without["spec"], &live["spec"]);
    }

    #[test]
    fn who_says_different_fields_is_never_in_conflict(one in spec(), other in spec()) {
        let first = forced(None, &one, "one");
        let (ours, theirs) = (all_fields(&widget_of(&one)), all_fields(&widget_of(&other)));
        let common = ours.intersection(&theirs).difference(&FieldSet::of(["apiVersion", "kind"]));
        let common = common.difference(&FieldSet::of(["metadata.name", "metadata.namespace"]));
        prop_assume!(common.is_empty());
        prop_assert!(applied(Some(&first), &widget_of(&other), "other", T2).is_ok());
    }

    #[test]
    fn what_is_applied_is_there_afterwards(live in spec(), first in spec(), patch in spec()) {
        let live = forced(None, &live, "other");
        let before = forced(Some(&live), &first, "me");
        let after = forced(Some(&before), &patch, "me");
        prop_assert!(contains(&after["spec"], &patch), "{after}");
    }

    #[test]
    fn only_fields_that_are_there_have_owners(specs in proptest::collection::vec((spec(), 0..3usize, any::<bool>()), 1..6)) {
        let mut live: Option<Value> = None;
        for (spec, who, applies) in specs {
            let who = ["a", "b", "c"][who];
            live = Some(match live {
                Some(live) if !applies => changed(&live, |it| it["spec"] = spec, who, T1),
                live => forced(live.as_ref(), &spec, who),
            });
            let object = live.as_ref().unwrap();
            let mut there = all_fields(object);
            for path in there.paths() {
                for length in 1..path.len() {
                    there.insert(&path[..length]);
                }
            }
            for entry in entries(object).as_array().into_iter().flatten() {
                let gone = FieldSet::read(&entry["fieldsV1"]).unwrap().difference(&there);
                // Lists and maps that were emptied stay.
                let gone = gone.difference(&FieldSet::of(["spec", "spec.items", "spec.sizes", "spec.tags"]));
                prop_assert!(gone.is_empty(), "{} owns {}", entry["manager"], gone.write());
            }
        }
    }
}
