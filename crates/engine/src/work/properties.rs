//! What holds whatever the manifests, the objects and the facts are.

use std::sync::LazyLock;

use drover_api::work::{AppliedResource, ConditionRule, FeedbackRule, ManifestResourceMeta};
use k8s_openapi::jiff::Timestamp;
use proptest::{collection::vec, option, prelude::*, sample::Index};
use serde_json::{Value, json};

use super::{
    Applied, Fact, Fate, Known, Moment, Presence, RawJson, Removal, Rules, Sight, Step, Strategy as Way, Target,
    Wanted, digest,
    fixtures::{owner, owner_reference, target},
    leftovers, removal,
    status::status,
};

/// What no manifest says.
const DRIFT: &str = "drifted";

/// A bit of content. Its fields are none by which items of lists are told apart, so that an item is always the same.
fn content() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        prop_oneof![Just("x"), Just("1"), Just("1000m"), Just("")].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let field = prop_oneof![Just("a"), Just("b"), Just("c"), Just("limits")].prop_map(str::to_owned);
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((field, inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn gadget(spec: &Value) -> Target {
    let metadata = json!({ "name": "a", "namespace": "b", "labels": { "app": "x" } });
    let object = json!({ "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata, "spec": spec });
    target("gadgets", &object)
}

fn step(target: &Target, live: Option<&Value>, known: &Known) -> Step {
    Wanted { target, strategy: &Way::Update, owner: &owner(), fate: Fate::Removed }.step(live, known).unwrap()
}

/// What a server makes of what it is sent: nulls go, and defaults are filled in, inside of lists too.
fn served(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["uid"] = json!("1");
    object["metadata"]["resourceVersion"] = json!("7");
    if let Some(spec) = object.get_mut("spec") {
        fill_in(spec);
    }
    drop_nulls(&mut object);
    object
}

fn fill_in(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(fill_in),
        Value::Object(fields) => {
            fields.values_mut().for_each(fill_in);
            fields.entry("default").or_insert(json!("filled in"));
            // A null leaves the choice to the server.
            fields.values_mut().filter(|value| value.is_null()).for_each(|value| *value = json!("chosen"));
        }
        _ => {}
    }
}

/// A server has a spelling of its own for amounts, and leaves out lists that are empty.
fn respell(value: &mut Value, is_amount: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| respell(item, is_amount)),
        Value::Object(fields) => {
            fields.retain(|_, value| *value != json!([]));
            fields.iter_mut().for_each(|(field, value)| respell(value, is_amount || field == "limits"));
        }
        Value::Number(number) if is_amount => *value = json!(number.to_string()),
        Value::String(text) if is_amount && text == "1000m" => *value = json!("1"),
        _ => {}
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(drop_nulls);
    }
}

/// The pointers to all that is set in a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().filter(|(_, value)| !value.is_null()).for_each(|(item, value)| {
                found.push(format!("{at}/{item}"));
                pointers(value, &format!("{at}/{item}"), found);
            });
        }
        Value::Object(fields) => fields.iter().filter(|(_, value)| !value.is_null()).for_each(|(field, value)| {
            found.push(format!("{at}/{field}"));
            pointers(value, &format!("{at}/{field}"), found);
        }),
        _ => {}
    }
}

/// Whether a value has all that another one sets, with no mercy for spellings.
fn has_all(value: &Value, of: &Value) -> bool {
    match (of, value) {
        (Value::Null, _) => true,
        (Value::Object(of), Value::Object(had)) => {
            of.iter().all(|(field, of)| has_all(had.get(field).unwrap_or(&Value::Null), of))
        }
        (Value::Array(of), Value::Array(had)) => {
            of.len() == had.len() && of.iter().zip(had).all(|(of, had)| has_all(had, of))
        }
        (of, had) => of == had,
    }
}

fn written() -> Known {
    Known::Written { settled: None }
}

fn sent(step: Step) -> Option<Value> {
    match step {
        Step::Create(object) | Step::Replace(object) => Some(object),
        _ => None,
    }
}

proptest! {
    /// What was created, or replaced, and answered by a server needs nothing more.
    #[test]
    fn repairing_comes_to_an_end(spec in content(), there in option::of(content())) {
        let target = gadget(&spec);
        let live = there.map(|spec| served(&json!({ "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "a" }, "spec": spec })));
        for known in [Known::New, written()] {
            let Some(object) = sent(step(&target, live.as_ref(), &known)) else { continue };
            let mut answer = served(&object);
            respell(&mut answer["spec"], false);
            prop_assert_eq!(step(&target, Some(&answer), &written()), Step::Nothing);
        }
    }

    /// Whatever a webhook makes of a manifest, it is only told once.
    #[test]
    fn nobody_argues_with_a_webhook(spec in content(), mutated in content()) {
        let target = gadget(&spec);
        let mut answer = served(&sent(step(&target, None, &Known::New)).unwrap());
        answer["spec"] = mutated;
        let settled = Known::Written { settled: Some(digest(&answer)) };
        prop_assert_eq!(step(&target, Some(&answer), &settled), Step::Nothing);
    }

    /// A drift in anything that the manifest sets is repaired.
    #[test]
    fn drift_is_repaired(rest in content(), which: Index) {
        let spec = json!({ "kept": "x", "rest": rest });
        let target = gadget(&spec);
        let mut live = served(&sent(step(&target, None, &Known::New)).unwrap());
        let mut set = Vec::new();
        pointers(&target.manifest.object["spec"], "/spec", &mut set);
        *live.pointer_mut(which.get(&set).as_str()).unwrap() = json!(DRIFT);
        let repaired = sent(step(&target, Some(&live), &written()));
        prop_assert!(repaired.is_some_and(|object| has_all(&object["spec"], &spec)));
    }

    /// A repair of a single value changes that value and nothing else: not what the server has filled in, nor what others have added.
    #[test]
    fn what_others_have_set_survives_a_repair(rest in content(), which: Index) {
        let target = gadget(&json!({ "kept": "x", "rest": rest }));
        let mut live = served(&sent(step(&target, None, &Known::New)).unwrap());
        live["spec_of_others"] = json!({ "replicas": 5 });
        live["metadata"]["annotations"] = json!({ "theirs": "x" });
        let mut set = Vec::new();
        pointers(&target.manifest.object["spec"], "/spec", &mut set);
        set.retain(|pointer| live.pointer(pointer).is_some_and(|value| !value.is_object() && !value.is_array()));
        let mut drifted = live.clone();
        *drifted.pointer_mut(which.get(&set).as_str()).unwrap() = json!(DRIFT);
        prop_assert_eq!(step(&target, Some(&drifted), &written()), Step::Replace(live));
    }

    /// Nothing is deleted that another work owns, or that is not the object that was recorded.
    #[test]
    fn only_what_is_ours_alone_is_deleted(
        owners in vec(0..4_u8, 0..4),
        uid in 0..2_u8,
        recorded in option::of(0..2_u8),
        is_going: bool,
        fate in prop_oneof![Just(Fate::Removed), Just(Fate::Orphaned)],
    ) {
        let references: Vec<_> = owners.iter().map(|owner| reference(*owner)).collect();
        let mut live = json!({ "metadata": { "uid": uid.to_string(), "resourceVersion": "7", "ownerReferences": references } });
        if is_going {
            live["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        }
        let applied = AppliedResource { uid: recorded.map(|uid| uid.to_string()), ..AppliedResource::default() };
        if let Removal::Delete { uid: deleted } = removal(&applied, Some(&live), &owner(), fate) {
            prop_assert!(owners.contains(&0) && !owners.contains(&1), "{:?}", owners);
            prop_assert_eq!(&deleted, &uid.to_string());
            prop_assert!(recorded.is_none_or(|recorded| recorded == uid));
            prop_assert!(!is_going && fate == Fate::Removed);
        }
    }

    /// What a manifest is about is never left over, whether or not its kind was found.
    #[test]
    fn what_is_in_a_work_is_not_removed(names in vec(0..5_u8, 0..5), found in vec(any::<bool>(), 5), recorded in vec(0..5_u8, 0..5)) {
        let seen = |name: &u8| (meta(*name, found[usize::from(*name)]), Presence::Unknown);
        let metas: Vec<_> = names.iter().map(seen).collect();
        let recorded: Vec<_> = recorded.iter().map(|name| applied(*name)).collect();
        for left in leftovers(&recorded, &metas, true) {
            prop_assert!(!names.iter().any(|name| name.to_string() == left.name));
        }
    }

    /// The same facts say the same, however late they are told again, and whatever was said before.
    #[test]
    fn the_same_facts_give_the_same_status(before in vec(seen(), 0..4), after in vec(seen(), 0..4), moves: bool) {
        let former = status(None, &facts(&before), &moment(1, 5));
        let generation = if moves { 2 } else { 1 };
        let told = status(Some(&former), &facts(&after), &moment(generation, 9));
        prop_assert_eq!(&status(Some(&told), &facts(&after), &moment(generation, 99)), &told);
    }
}

/// Owners: ours, another work, and two that are no works.
fn reference(owner: u8) -> Value {
    let other = |api_version: &str, kind: &str, uid: &str| json!({ "apiVersion": api_version, "kind": kind, "name": "x", "uid": uid });
    match owner {
        0 => owner_reference(),
        1 => other("work.open-cluster-management.io/v1", "AppliedManifestWork", "theirs"),
        2 => other("example.com/v1", "AppliedManifestWork", "no work"),
        _ => other("v1", "ConfigMap", "no work either"),
    }
}

fn applied(name: u8) -> AppliedResource {
    AppliedResource {
        version: "v1".into(),
        resource: "gadgets".into(),
        name: name.to_string(),
        ..AppliedResource::default()
    }
}

fn meta(name: u8, is_found: bool) -> ManifestResourceMeta {
    ManifestResourceMeta {
        version: Some("v1".into()),
        resource: is_found.then(|| "gadgets".into()),
        name: Some(name.to_string()),
        ..ManifestResourceMeta::default()
    }
}

/// What was seen of a manifest: its name, whether its kind was found, what came of it, and its object.
type Seen = (u8, bool, u8, Option<u8>);

fn seen() -> impl Strategy<Value = Seen> {
    (0..3_u8, any::<bool>(), 0..4_u8, option::of(0..4_u8))
}

static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let object = |state: u8| json!({ "apiVersion": "v1", "kind": "Pod", "status": { "n": state, "ready": state > 1, "list": [state] } });
    (0..4).map(object).collect()
});

static FEEDBACK: LazyLock<Vec<FeedbackRule>> = LazyLock::new(|| {
    let paths = json!([{ "name": "n", "path": ".status.n" }, { "name": "list", "path": ".status.list" }]);
    serde_json::from_value(json!([{ "type": "WellKnownStatus" }, { "type": "JSONPaths", "jsonPaths": paths }])).unwrap()
});

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let rule = |condition: &str, expression: &str| json!({ "type": "CEL", "condition": condition, "celExpressions": [expression] });
    let rules = json!([
        rule("Complete", "object.status.ready"),
        rule("Available", "object.status.n != 2"),
        rule("Progressing", "object.status.n > 2"),
        rule("Broken", "object.none"),
    ]);
    Rules::compile(&serde_json::from_value::<Vec<ConditionRule>>(rules).unwrap())
});

fn facts(seen: &[Seen]) -> Vec<Fact<'static>> {
    static NONE: LazyLock<Rules> = LazyLock::new(Rules::default);
    let fact = |(ordinal, (name, is_found, applied, object)): (usize, &Seen)| Fact {
        meta: ManifestResourceMeta { ordinal: i32::try_from(ordinal).unwrap(), ..meta(*name, *is_found) },
        applied: match applied {
            0 => Applied::Done,
            1 => Applied::Failed("refused".into()),
            2 => Applied::IgnoreFields("unknown".into()),
            _ => Applied::Kept,
        },
        sight: match object {
            Some(0) => Sight::Unknown("busy".into()),
            Some(object) => Sight::Live(&OBJECTS[usize::from(*object)]),
            None => Sight::Missing,
        },
        feedback: if *is_found { &FEEDBACK } else { &[] },
        rules: if name % 2 == 0 { &RULES } else { &NONE },
    };
    seen.iter().enumerate().map(fact).collect()
}

fn moment(generation: i64, second: i64) -> Moment {
    Moment { generation, now: Timestamp::from_second(second).unwrap(), raw_json: RawJson::UpTo(100) }
}

#[test]
fn the_server_of_these_properties_fills_in() {
    let served = served(&json!({ "metadata": {}, "spec": { "a": [{ "b": null }] } }));
    assert_eq!(served["spec"], json!({ "a": [{ "b": "chosen", "default": "filled in" }], "default": "filled in" }));
}
