use serde_json::json;

use super::*;

fn object() -> Value {
    json!({ "spec": {
        "replicas": 3,
        "a-b": { "c": 1 },
        "containers": [{ "name": "web", "image": "a", "on": true }, { "name": "log", "image": "b", "on": false }],
    }})
}

/// The places that an expression leads to, as JSON pointers.
fn found(expression: &str) -> Vec<String> {
    let places = parse(expression).unwrap_or_else(|problem| panic!("{expression} {problem}")).places(&object());
    let text = |stride: &Stride| match stride {
        Stride::Field(field) => format!("/{field}"),
        Stride::Item(item) => format!("/{item}"),
    };
    places.iter().map(|place| place.iter().map(text).collect()).collect()
}

#[test]
fn paths_lead_through_fields_and_lists() {
    assert_eq!(found(".spec.replicas"), ["/spec/replicas"]);
    assert_eq!(found(" .spec[\"a-b\"].c "), ["/spec/a-b/c"]);
    assert_eq!(found(".spec.\"a-b\""), ["/spec/a-b"]);
    assert_eq!(found(".[\"spec\"].containers[].image"), ["/spec/containers/0/image", "/spec/containers/1/image"]);
    assert_eq!(found(".spec.containers.[0]?"), ["/spec/containers/0"]);
    assert_eq!(found(".spec.containers[-1]"), ["/spec/containers/1"]);
    assert_eq!(found(".spec[\"a-b\"][]"), ["/spec/a-b/c"]);
}

#[test]
fn paths_can_be_joined_and_chosen_from() {
    assert_eq!(found(r#".spec.containers[] | select(.name == "log") | .image"#), ["/spec/containers/1/image"]);
    assert_eq!(found(r#".spec.containers[] | select(.name != "log").image"#), ["/spec/containers/0/image"]);
    assert_eq!(found(".spec.containers[] | select(.on)"), ["/spec/containers/0"]);
    assert_eq!(found(".spec.containers[] | select(.on == false)"), ["/spec/containers/1"]);
    assert_eq!(found(".spec.containers[] | select(.none == null)").len(), 2);
    assert_eq!(found(".spec | (.replicas, .containers[0]) "), ["/spec/containers/0", "/spec/replicas"]);
    assert_eq!(found(".spec.replicas, .spec.replicas"), ["/spec/replicas"]);
}

#[test]
fn what_is_not_there_is_left_out() {
    for expression in
        [".none", ".spec.replicas.none", ".spec.replicas[]", ".spec.containers[7]", ".spec.containers[-7]"]
    {
        assert_eq!(found(expression), [] as [&str; 0], "{expression}");
    }
}

#[test]
fn the_rest_of_jq_is_refused() {
    for expression in [
        "",
        "spec",
        "..",
        ".. | .a",
        ".a | until(false; .)",
        ".a | length",
        ".a + .b",
        ".[1:2]",
        ".a as $x | .b",
        "def f: f; f",
        "select(.a > 1)",
        ".a[",
        ".a[\"b]",
        "(.a",
        ".a)",
        ".a |",
        ".a.",
        "if .a then .b else .c end",
        ".a = 1",
    ] {
        assert!(parse(expression).is_err(), "{expression}");
    }
    let problem = parse(".spec.replicas | length").unwrap_err().to_string();
    assert!(
        problem.starts_with("at \"length\" there should be a path that begins with a dot; only paths are supported")
    );
}

#[test]
fn hostile_expressions_are_refused_or_done_at_once() {
    assert_eq!(parse(&"(".repeat(500)), Err(Unsupported::TooDeep(4)));
    assert_eq!(parse(&".a".repeat(2000)), Err(Unsupported::TooLong(2048)));
    let doubling = vec!["(.,.)"; 300].join("|");
    assert_eq!(found(&doubling), [""]);
    let wide = vec!["(.[],.)"; 200].join("|");
    assert_eq!(found(&wide).len(), 14, "each place once");
}
