//! The limit, and what is read of objects that exceed it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A value of so many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| if level % 2 == 0 { json!({ "a": inner }) } else { json!([inner]) })
}

/// The text of an object of so many levels, which is never a value: dropping that would recurse.
fn nested_text(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

#[test]
fn object_itself_is_one_level() {
    assert_eq!((of(&json!(1)), of(&json!({})), of(&json!({ "a": [] }))), (0, 1, 2));
    assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
    assert_eq!(check(&nested(MAX_DEPTH + 1)), Err(TooDeep));
    let object = |levels| json!({ "metadata": { "labels": nested(levels) } });
    assert_eq!((check(&object(MAX_DEPTH - 2)), check(&object(MAX_DEPTH - 1))), (Ok(()), Err(TooDeep)));
}

#[test]
fn managed_fields_may_be_as_deep_as_the_object_makes_them() {
    let object = |levels| json!({ "metadata": { "managedFields": [{ "fieldsV1": nested(levels) }] } });
    assert_eq!((check(&object(MAX_DEPTH + 1)), check(&object(MAX_DEPTH + 2))), (Ok(()), Err(TooDeep)));
    assert_eq!(of(&object(MAX_DEPTH + 1)), MAX_MANAGED_FIELDS_DEPTH);
}

#[test]
fn text_is_measured_without_recursion() {
    assert_eq!(of_text(nested_text(1_000_000).as_bytes()), 1_000_000);
    assert_eq!(of_text(br#"{"[[[": "]\"[[", "b": [ [ ], "[" ]}"#), 3);
    assert_eq!(of_text(br#"]]]"\"#), 0);
    assert!(parse(nested_text(MAX_PARSED_DEPTH).as_bytes()).is_ok());
    assert!(parse(nested_text(MAX_PARSED_DEPTH + 1).as_bytes()).is_err_and(|error| error.contains("100 levels")));
}

#[test]
fn what_exceeds_the_limit_reads_as_empty_containers() {
    for levels in [MAX_DEPTH + 1, 200, 100_000] {
        let text = format!(r#"{{"data":{},"metadata":{{"name":"a"}}}}"#, nested_text(levels - 1));
        assert!(is_exceeded_in(text.as_bytes()));
        let value: Value = serde_json::from_slice(&cut(text.as_bytes())).unwrap();
        assert_eq!(of(&value), MAX_DEPTH);
        assert_eq!(value["metadata"], json!({ "name": "a" }));
        assert!(!is_exceeded_in(&cut(text.as_bytes())));
    }
    let at_limit = nested(MAX_DEPTH).to_string();
    assert!(!is_exceeded_in(at_limit.as_bytes()));
    assert_eq!(cut(at_limit.as_bytes()), at_limit.as_bytes());
}

#[test]
fn managed_fields_are_cut_at_their_own_limit() {
    let text = |levels: usize| format!(r#"{{"metadata":{{"managedFields":[{{"f":{}}}]}}}}"#, nested_text(levels));
    assert!(!is_exceeded_in(text(MAX_DEPTH + 1).as_bytes()));
    assert!(is_exceeded_in(text(MAX_DEPTH + 2).as_bytes()));
    // A field of that name elsewhere has no such limit.
    let other = format!(r#"{{"metadata":{{"a":1}},"spec":{{"managedFields":{}}}}}"#, nested_text(MAX_DEPTH - 1));
    assert!(is_exceeded_in(other.as_bytes()));
}

#[test]
fn members_are_found_in_the_text() {
    let found = members(br#"{"a":[1,{"b":2}],"c\"d":"x,]","e":-1.5,"f":{},"g":null}"#);
    let expected: [(&str, &[u8]); 5] =
        [("a", br#"[1,{"b":2}]"#), ("c\"d", br#""x,]""#), ("e", b"-1.5"), ("f", b"{}"), ("g", b"null")];
    assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text)));
    let items: Vec<_> = members(br#"[1,"a",[],{"b":1}]"#).into_iter().map(|(_, text)| text).collect();
    assert_eq!(items, [&b"1"[..], br#""a""#, b"[]", br#"{"b":1}"#]);
    assert!(members(b"{}").is_empty() && members(b"[]").is_empty());
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,4}".prop_map(Value::from), Just(Value::Null)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(".{0,3}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn text_and_value_have_the_same_depth_and_members(value in values()) {
        let text = value.to_string();
        prop_assert_eq!(of_text(text.as_bytes()), of(&value));
        prop_assert_eq!(cut(text.as_bytes()), text.as_bytes());
        match &value {
            Value::Object(fields) => {
                let found = members(text.as_bytes()).into_iter().map(|(name, text)| (name, text.to_vec()));
                let expected = fields.iter().map(|(name, field)| (name.clone(), field.to_string().into_bytes()));
                prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
            Value::Array(items) => {
                let found: Vec<_> = members(text.as_bytes()).into_iter().map(|(_, text)| text.to_vec()).collect();
                prop_assert_eq!(found, items.iter().map(|item| item.to_string().into_bytes()).collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in proptest::collection::vec(prop_oneof![
        Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b'\\'), Just(b':'), Just(b','), any::<u8>(),
    ], 0..400)) {
        let _ = parse(&text);
        let _ = cut(&text);
        let _ = members(&text);
        let _ = is_exceeded_in(&text);
    }
}
