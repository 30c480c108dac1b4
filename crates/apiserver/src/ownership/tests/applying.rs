//! Applying.

use serde_json::json;

use super::*;

#[test]
fn who_applies_owns_what_it_says() {
    let object = applied(None, &widget_of(&json!({"size": 1, "tags": ["t"], "sizes": {"a": 1}, "free": {}})), "a", T1);
    let owned = json!({"f:spec": {"f:size": {}, "f:tags": {"v:\"t\"": {}}, "f:sizes": {"f:a": {}}, "f:free": {}}});
    assert_eq!(*entries(&object.unwrap()), json!([entry("a", "Apply", T1, &owned)]));
}

#[test]
fn items_are_owned_with_their_keys_even_those_by_default() {
    let patch = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
    }}});
    let object = apply(None, &patch, &deployment(), &native("a", T1), false).unwrap();
    let port = json!({"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}});
    let container = json!({"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:ports": port}});
    let owned = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": container}}}});
    assert_eq!(entries(&object)[0]["fieldsV1"], owned);
    assert_eq!(object["status"], json!({}));
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let patch = widget_of(&json!({"size": 1, "items": [{"name": "a", "one": "1"}]}));
    let first = applied(None, &patch, "a", T1).unwrap();
    assert_eq!(applied(Some(&first), &patch, "a", T2).unwrap(), first);
}

#[test]
fn who_says_what_others_say_owns_it_with_them_and_without_a_time_as_nothing_was_written() {
    let patch = widget_of(&json!({"size": 1}));
    let first = applied(None, &patch, "a", T1).unwrap();
    let both = applied(Some(&first), &patch, "b", T2).unwrap();
    let fields = json!({"f:spec": {"f:size": {}}});
    let mut of_b = entry("b", "Apply", T2, &fields);
    of_b.as_object_mut().unwrap().remove("time");
    assert_eq!(*entries(&both), json!([of_b, entry("a", "Apply", T1, &fields)]));
}

#[test]
fn who_says_otherwise_is_in_conflict() {
    let mut live = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "u"},
        "spec": {"replicas": 1}, "status": {},
    });
    update(None, &mut live, &deployment(), &native("kubectl", T1));
    let patch =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}});
    let failure = apply(Some(&live), &patch, &deployment(), &native("me", T2), false).unwrap_err();
    assert_eq!((failure.code, failure.reason), (409, "Conflict"));
    assert_eq!(
        failure.message,
        "Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: .spec.replicas"
    );
    let causes = failure.details.unwrap().causes;
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].reason, "FieldManagerConflict");
    assert_eq!(causes[0].message, "conflict with \"kubectl\" using apps/v1");
    assert_eq!(causes[0].field, ".spec.replicas");
}

#[test]
fn several_conflicts_are_told_by_manager() {
    let first = applied(None, &widget_of(&json!({"size": 1, "items": [{"name": "i", "one": "1"}]})), "a", T1).unwrap();
    let live = changed(&first, |it| it["spec"]["color"] = json!("red"), "b", T2);
    let other = widget_of(&json!({"size": 2, "color": "blue", "items": [{"name": "i", "one": "2"}]}));
    let failure = applied(Some(&live), &other, "c", T3).unwrap_err();
    assert_eq!(
        failure.message,
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.size\n- .spec.items[name=\"i\"].one\n\
         conflicts with \"b\" using x.io/v1:\n- .spec.color"
    );
}

#[test]
fn who_insists_takes_what_others_own() {
    let first = applied(None, &widget_of(&json!({"size": 1, "color": "red"})), "a", T1).unwrap();
    let patch = widget_of(&json!({"size": 2}));
    let forced = apply(Some(&first), &patch, &widget(), &write("b", T2), true).unwrap();
    assert_eq!(forced["spec"], json!({"size": 2, "color": "red"}));
    let of_a = entry("a", "Apply", T1, &json!({"f:spec": {"f:color": {}}}));
    let of_b = entry("b", "Apply", T2, &json!({"f:spec": {"f:size": {}}}));
    assert_eq!(*entries(&forced), json!([of_a, of_b]));
}

#[test]
fn what_is_not_applied_any_more_goes_unless_others_own_it() {
    let all = json!({"size": 1, "color": "red", "tags": ["a", "b"], "items": [{"name": "i"}, {"name": "j"}]});
    let first = applied(None, &widget_of(&all), "a", T1).unwrap();
    let shared = json!({"color": "red", "tags": ["b"], "items": [{"name": "j"}]});
    let both = applied(Some(&first), &widget_of(&shared), "b", T2).unwrap();
    let less = applied(Some(&both), &widget_of(&json!({})), "a", T3).unwrap();
    assert_eq!(less["spec"], shared);
}

#[test]
fn what_an_update_added_to_what_goes_stays() {
    let first = applied(None, &widget_of(&json!({"size": 1, "sizes": {"a": 1}})), "a", T1).unwrap();
    let live = changed(&first, |it| it["spec"]["sizes"]["b"] = json!(2), "b", T2);
    let less = applied(Some(&live), &widget_of(&json!({"size": 1})), "a", T3).unwrap();
    assert_eq!(less["spec"], json!({"size": 1, "sizes": {"b": 2}}));
}

#[test]
fn an_item_goes_with_all_that_was_updated_in_it() {
    let item = json!([{"name": "i", "one": "1"}]);
    let first = applied(None, &widget_of(&json!({"size": 1, "items": item})), "a", T1).unwrap();
    let live = changed(&first, |it| it["spec"]["items"][0]["two"] = json!("2"), "b", T2);
    let less = applied(Some(&live), &widget_of(&json!({"size": 1})), "a", T3).unwrap();
    assert_eq!(less["spec"], json!({"size": 1, "items": null}));
    assert_eq!(*entries(&less), json!([entry("a", "Apply", T3, &json!({"f:spec": {"f:size": {}}}))]));
}

#[test]
fn items_come_in_the_order_in_which_they_are_applied() {
    let names = |names: &[&str]| json!({"items": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
    let order = |object: &Value| -> Vec<String> {
        let items = object["spec"]["items"].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let live = applied(None, &widget_of(&names(&["a", "b", "c", "d"])), "a", T1).unwrap();
    for (patch, expected) in [
        (vec!["c", "a"], vec!["b", "c", "d", "a"]),
        (vec!["x", "b"], vec!["a", "x", "b", "c", "d"]),
        (vec!["b", "x"], vec!["a", "b", "c", "d", "x"]),
        (vec!["d", "c", "b", "a"], vec!["d", "c", "b", "a"]),
    ] {
        assert_eq!(order(&applied(Some(&live), &widget_of(&names(&patch)), "b", T2).unwrap()), expected, "{patch:?}");
    }
}

#[test]
fn what_is_one_thing_is_replaced_as_a_whole() {
    let first = applied(None, &widget_of(&json!({"place": {"x": 1, "y": 1}, "parts": ["a"]})), "a", T1).unwrap();
    let patch = widget_of(&json!({"place": {"x": 2}, "parts": ["b"]}));
    let failure = applied(Some(&first), &patch, "b", T2).unwrap_err();
    assert_eq!(failure.message, "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.parts\n- .spec.place");
    let forced = apply(Some(&first), &patch, &widget(), &write("b", T2), true).unwrap();
    assert_eq!(forced["spec"], json!({"place": {"x": 2}, "parts": ["b"]}));
}

#[test]
fn the_fields_of_objects_without_owners_belong_to_who_was_before() {
    let live = kept(widget_of(&json!({"size": 1, "color": "red"})));
    let object = applied(Some(&live), &widget_of(&json!({"size": 1})), "a", T1).unwrap();
    let of_a = json!({"f:spec": {"f:size": {}}});
    let before = json!({"f:spec": {".": {}, "f:color": {}, "f:size": {}}});
    let mut of_a = entry("a", "Apply", T1, &of_a);
    of_a.as_object_mut().unwrap().remove("time");
    assert_eq!(*entries(&object), json!([of_a, entry("before-first-apply", "Update", T1, &before)]));
    let failure = applied(Some(&live), &widget_of(&json!({"size": 2})), "a", T1).unwrap_err();
    assert_eq!(
        failure.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using x.io/v1: .spec.size"
    );
}

#[test]
fn owners_are_not_applied() {
    for owners in [json!([]), json!([{"manager": "a"}])] {
        let mut patch = widget_of(&json!({"size": 1}));
        patch["metadata"]["managedFields"] = owners;
        let failure = applied(None, &patch, "a", T1).unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (400, "metadata.managedFields must be nil"));
    }
}

#[test]
fn what_does_not_fit_the_schema_is_not_applied() {
    for (spec, message) in [
        (json!({"unheard": 1}), ".spec.unheard: field not declared in schema"),
        (json!({"size": "big"}), ".spec.size: expected numeric (int or float), got string"),
        (json!({"color": 7}), ".spec.color: expected string, got &value.valueUnstructured{Value:7}"),
        (json!({"tags": ["a", "a"]}), ".spec.tags: duplicate entries for key [=\"a\"]"),
        (json!({"items": [{"name": "a"}, {"name": "a"}]}), ".spec.items: duplicate entries for key [name=\"a\"]"),
        (json!({"items": {}}), ".spec.items: expected list, got &{map[]}"),
        (json!({"sizes": "x"}), ".spec.sizes: expected map, got &{x}"),
        (
            json!({"items": [{"one": "1"}]}),
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
    ] {
        let failure = applied(None, &widget_of(&spec), "a", T1).unwrap_err();
        assert_eq!((failure.code, failure.reason), (500, ""));
        let expected = format!("failed to create typed patch object (n/w; x.io/v1, Kind=Widget): {message}");
        assert_eq!(failure.message, expected);
    }
}

#[test]
fn another_version_is_not_applied_here() {
    let mut patch = widget_of(&json!({}));
    patch["apiVersion"] = json!("x.io/v2");
    let failure = applied(None, &patch, "a", T1).unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (400, "invalid object type: x.io/v2, Kind=Widget"));
}

#[test]
fn one_applier_is_the_same_in_all_versions() {
    let first = applied(None, &widget_of(&json!({"size": 1, "color": "red"})), "a", T1).unwrap();
    let mut patch = widget_of(&json!({"size": 1}));
    patch["apiVersion"] = json!("x.io/v2");
    let write = Write { api_version: "x.io/v2", ..write("a", T2) };
    let object = apply(Some(&first), &patch, &widget(), &write, false).unwrap();
    assert_eq!(object["spec"], json!({"size": 1}));
    assert_eq!(entries(&object).as_array().unwrap().len(), 1);
    assert_eq!(entries(&object)[0]["apiVersion"], "x.io/v2");
}

#[test]
fn the_status_is_applied_as_a_part_of_its_own() {
    let first = applied(None, &widget_of(&json!({"size": 1})), "a", T1).unwrap();
    let mut patch = widget_of(&json!({"size": 2}));
    patch["status"] = json!({"phase": "Ready"});
    let status = Write { subresource: "status", reset: &["metadata", "spec"], ..write("a", T2) };
    let object = apply(Some(&first), &patch, &widget(), &status, false).unwrap();
    let mut of_status = entry("a", "Apply", T2, &json!({"f:status": {"f:phase": {}}}));
    of_status["subresource"] = json!("status");
    assert_eq!(*entries(&object), json!([entry("a", "Apply", T1, &json!({"f:spec": {"f:size": {}}})), of_status]));
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn applied_from_the_client() -> Value {
    let mut live = widget_of(&json!({"size": 1}));
    live["metadata"]["annotations"] = json!({LAST_APPLIED: widget_of(&json!({"size": 1})).to_string()});
    update(None, &mut live, &widget(), &write("kubectl-client-side-apply", T1));
    kept(live)
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    let object = applied(Some(&applied_from_the_client()), &widget_of(&json!({"size": 2})), "kubectl", T2).unwrap();
    assert_eq!(object["spec"]["size"], 2);
    let renewed = format!("{}\n", widget_of(&json!({"size": 2})));
    assert_eq!(object["metadata"]["annotations"][LAST_APPLIED], renewed);
}

#[test]
fn others_do_not_take_over_what_kubectl_applied_nor_kubectl_what_others_changed() {
    let live = applied_from_the_client();
    assert!(applied(Some(&live), &widget_of(&json!({"size": 2})), "other", T2).is_err());
    let live = changed(&live, |it| it["spec"]["size"] = json!(7), "other", T2);
    let failure = applied(Some(&live), &widget_of(&json!({"size": 2})), "kubectl", T3).unwrap_err();
    assert_eq!(failure.message, "Apply failed with 1 conflict: conflict with \"other\" using x.io/v1: .spec.size");
}
