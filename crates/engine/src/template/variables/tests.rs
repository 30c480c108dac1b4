use std::collections::HashMap;

use proptest::{
    collection::{hash_map, vec},
    prelude::*,
    test_runner::{Config, TestCaseError, TestRng, TestRunner},
};
use serde_json::json;

use super::*;

fn customized(values: &[(&str, &str)]) -> Vec<CustomizedVariable> {
    let variable =
        |(name, value): &(&str, &str)| CustomizedVariable { name: (*name).to_owned(), value: (*value).to_owned() };
    values.iter().map(variable).collect()
}

fn filled(text: &str, own: &[(&str, &str)]) -> Result<String, Fault> {
    let own = customized(own);
    let variables = Variables::new("one", "/file", &own).in_namespace("ns");
    variables.filled_in(text).map(Cow::into_owned)
}

#[test]
fn a_variable_is_a_name_between_double_braces() {
    let own = [("A", "1"), ("_a9", "2"), ("EMPTY", "")];
    for (text, expected) in [
        ("", ""),
        ("{{A}}", "1"),
        ("x{{A}}{{_a9}}y", "x12y"),
        ("[{{EMPTY}}]", "[]"),
        ("{{CLUSTER_NAME}}/{{INSTALL_NAMESPACE}}/{{HUB_KUBECONFIG}}", "one/ns//file"),
        ("{\"a\":{\"b\":{{A}}}}", "{\"a\":{\"b\":1}}"),
        ("{{{A}}}", "{1}"),
        ("{{{{A}}", "{{1"),
        ("ü{{A}}ü", "ü1ü"),
    ] {
        assert_eq!(filled(text, &own).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn other_braces_are_left_alone() {
    for text in [
        "{{ A }}",
        "{{A }}",
        "{{ $labels.x }}",
        "{{.A}}",
        "{{A.B}}",
        "{{1A}}",
        "{{}}",
        "{{",
        "}}",
        "{{A",
        "{{A}",
        "{A}}",
        "{A}",
        "{{Ä}}",
        "{{A-B}}",
        "{{\"A\"}}",
        "}}{{",
    ] {
        assert_eq!(filled(text, &[("A", "1")]).as_deref(), Ok(text));
        assert!(!has_variables(&json!([{ "a": text }])), "{text}");
    }
    assert!(has_variables(&json!([{ "a": "x {{B}}" }])));
    assert!(!has_variables(&json!({ "{{A}}": [1, null, true] })));
}

#[test]
fn a_variable_without_a_value_is_named() {
    assert_eq!(filled("{{A}} {{B}}", &[("A", "1")]), Err(Fault::UnknownVariable("B".to_owned())));
    let said = Fault::UnknownVariable("B".to_owned()).to_string();
    assert!(said.starts_with("uses the variable {{B}}, which has no value: set one in"), "{said}");
}

#[test]
fn what_tells_clusters_apart_is_nobody_s_to_define() {
    let own = [("CLUSTER_NAME", "x"), ("INSTALL_NAMESPACE", "x"), ("HUB_KUBECONFIG", "mine")];
    assert_eq!(filled("{{CLUSTER_NAME}} {{INSTALL_NAMESPACE}} {{HUB_KUBECONFIG}}", &own).as_deref(), Ok("one ns mine"));
    let own = customized(&own);
    assert_eq!(Variables::new("one", "/file", &own).get(INSTALL_NAMESPACE), None);
}

#[test]
fn of_two_values_of_one_variable_the_last_counts() {
    assert_eq!(filled("{{A}}", &[("A", "1"), ("A", "2")]).as_deref(), Ok("2"));
}

// ---- Properties

type Checked = Result<(), TestCaseError>;
/// Who fills in variables.
type Filler = fn(&Value, &HashMap<String, String>) -> Option<Value>;

fn ours(value: &Value, values: &HashMap<String, String>) -> Option<Value> {
    let own: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let own = customized(&own);
    let mut value = value.clone();
    Variables::new("one", "/file", &own).fill_in(&mut value).ok()?;
    Some(value)
}

/// A part of a text.
#[derive(Clone, Debug)]
enum Part {
    Plain(String),
    Variable(&'static str),
    /// Somebody else's braces.
    Foreign(&'static str),
}

/// A manifest, of which it is known what it has to become.
#[derive(Clone, Debug)]
enum Tree {
    Text(Vec<Part>),
    Number(i32),
    List(Vec<Tree>),
    Fields(HashMap<String, Tree>),
}

impl Tree {
    /// The tree as a value, with each variable as it is written by `write`.
    fn value(&self, write: &impl Fn(&'static str) -> String) -> Value {
        match self {
            Self::Text(parts) => {
                let part = |part: &Part| match part {
                    Part::Plain(text) => text.clone(),
                    Part::Variable(name) => write(name),
                    Part::Foreign(text) => (*text).to_owned(),
                };
                // What stands between parts keeps them from growing together.
                parts.iter().map(part).collect::<Vec<_>>().join("·").into()
            }
            Self::Number(number) => json!(number),
            Self::List(items) => items.iter().map(|item| item.value(write)).collect(),
            Self::Fields(fields) => fields.iter().map(|(key, field)| (key.clone(), field.value(write))).collect(),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let plain = r#"[a-z"\\'\n\t ü☃:,\[\]]{0,5}"#;
    let foreign = ["{{ A }}", "{{ $labels.x }}", "{{", "}}", "{A}", "{{A", "A}}", "{{A.B}}", "{{1}}", "{\"a\":{}}"];
    let part = prop_oneof![
        plain.prop_map(Part::Plain),
        prop_oneof![Just("A"), Just("B_2")].prop_map(Part::Variable),
        proptest::sample::select(foreign.to_vec()).prop_map(Part::Foreign),
    ];
    let leaf = prop_oneof![4 => vec(part, 0..5).prop_map(Tree::Text), 1 => any::<i32>().prop_map(Tree::Number)];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![Just("{{A}}".to_owned()), "[a-z\"]{0,4}"];
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Tree::List), hash_map(key, inner, 0..4).prop_map(Tree::Fields)]
    })
}

/// Values with everything in them that could break what they are put into.
fn values() -> impl Strategy<Value = HashMap<String, String>> {
    let value =
        || prop_oneof![r#"[{}AB_2"\\\n ü☃,:]{0,12}"#, Just("{{A}}".to_owned()), Just("{{B_2}}{{A}}".to_owned())];
    (value(), value()).prop_map(|(a, b)| HashMap::from([("A".to_owned(), a), ("B_2".to_owned(), b)]))
}

/// Each variable is replaced once, whatever its value, and nothing else is touched: no key, no structure, no braces.
fn exactly_the_variables_are_filled_in(filler: Filler, tree: &Tree, values: &HashMap<String, String>) -> Checked {
    let template = tree.value(&|name| format!("{{{{{name}}}}}"));
    let expected = tree.value(&|name| values[name].clone());
    let found = filler(&template, values);
    prop_assert_eq!(found.as_ref(), Some(&expected));
    let read: Value = serde_json::from_str(&expected.to_string()).expect("valid JSON");
    prop_assert_eq!(Some(read), found);
    Ok(())
}

fn holds(filler: Filler) -> bool {
    let config = Config { cases: 512, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let check =
        |(tree, values): (Tree, HashMap<String, String>)| exactly_the_variables_are_filled_in(filler, &tree, &values);
    TestRunner::new_with_rng(config, rng).run(&(trees(), values()), check).is_ok()
}

#[test]
fn exactly_the_variables_are_filled_in_everywhere() {
    assert!(holds(ours));
}

/// Puts values into the JSON text, as if they could not contain any.
fn fills_in_json(value: &Value, values: &HashMap<String, String>) -> Option<Value> {
    let text =
        values.iter().fold(value.to_string(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value));
    serde_json::from_str(&text).ok()
}

fn fills_in_twice(value: &Value, values: &HashMap<String, String>) -> Option<Value> {
    ours(&ours(value, values)?, values)
}

fn fills_in_keys(value: &Value, values: &HashMap<String, String>) -> Option<Value> {
    let Value::Object(fields) = ours(value, values)? else { return ours(value, values) };
    Some(fields.into_iter().map(|(key, field)| (key.replace("{{A}}", &values["A"]), field)).collect())
}

fn fills_in_spaced_names(value: &Value, values: &HashMap<String, String>) -> Option<Value> {
    let text = value.to_string().replace("{{ A }}", "{{A}}");
    ours(&serde_json::from_str(&text).ok()?, values)
}

fn drops_what_is_foreign(value: &Value, values: &HashMap<String, String>) -> Option<Value> {
    let text = ours(value, values)?.to_string().replace("{{ $labels.x }}", "");
    serde_json::from_str(&text).ok()
}

#[test]
fn every_fault_is_caught() {
    for filler in [fills_in_json as Filler, fills_in_twice, fills_in_keys, fills_in_spaced_names, drops_what_is_foreign]
    {
        assert!(!holds(filler), "{filler:p} gets away with it");
    }
}

#[test]
fn braces_in_any_order_hold_the_variables_that_they_seem_to() {
    let names: Vec<_> = (1..=8).map(|length| "A".repeat(length)).collect();
    let values: HashMap<_, _> = names.iter().map(|name| (name.clone(), name.len().to_string())).collect();
    let config = Config { cases: 4096, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let check = |text: String| {
        let expected =
            names.iter().fold(text.clone(), |text, name| text.replace(&format!("{{{{{name}}}}}"), &values[name]));
        prop_assert_eq!(ours(&json!(text), &values), Some(json!(expected)));
        Ok(())
    };
    TestRunner::new_with_rng(config, rng).run(&"[{}A]{0,12}", check).expect("they do");
}
