//! Creating, replacing and patching.

use serde_json::json;

use super::*;
use crate::ownership::is_noop;

#[test]
fn the_creator_of_a_custom_object_owns_all_of_it_and_the_maps_too() {
    let mut new = widget_of(&json!({"size": 1, "parts": ["a"], "tags": ["t"], "sizes": {"a": 1}, "place": {"x": 1}}));
    new["metadata"]["labels"] = json!({"app": "w"});
    new["metadata"]["finalizers"] = json!(["x.io/f"]);
    new["metadata"]["ownerReferences"] = json!([{"uid": "u", "name": "o"}]);
    update(None, &mut new, &widget(), &write("creator", T1));
    let owned = json!({
        "f:metadata": {
            "f:labels": {".": {}, "f:app": {}},
            "f:finalizers": {".": {}, "v:\"x.io/f\"": {}},
            "f:ownerReferences": {".": {}, "k:{\"uid\":\"u\"}": {}},
        },
        "f:spec": {
            ".": {}, "f:size": {}, "f:parts": {}, "f:tags": {".": {}, "v:\"t\"": {}}, "f:sizes": {".": {}, "f:a": {}},
            "f:place": {},
        },
    });
    assert_eq!(*entries(&new), json!([entry("creator", "Update", T1, &owned)]));
}

#[test]
fn the_structures_of_built_in_kinds_are_nobodys() {
    let mut new = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"app": "d"}},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "d"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{
                    "name": "c", "image": "i", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}],
                }]},
            },
        },
        "status": {},
    });
    update(None, &mut new, &deployment(), &native("kubectl-create", T1));
    let container = json!({".": {}, "f:image": {}, "f:name": {}, "f:resources": {}, "f:ports": {
        ".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
    }});
    let owned = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {".": {}, "f:containers": {".": {}, "k:{\"name\":\"c\"}": container}},
            },
        },
    });
    let entries = &new["metadata"]["managedFields"];
    assert_eq!(entries[0]["fieldsV1"], owned);
    assert_eq!(entries[0]["apiVersion"], "apps/v1");
}

#[test]
fn who_changes_a_field_takes_it_from_others() {
    let mut live = widget_of(&json!({"size": 1, "color": "red"}));
    update(None, &mut live, &widget(), &write("a", T1));
    let new = changed(&kept(live), |it| it["spec"]["size"] = json!(2), "b", T2);
    let of_a = entry("a", "Update", T1, &json!({"f:spec": {".": {}, "f:color": {}}}));
    let of_b = entry("b", "Update", T2, &json!({"f:spec": {"f:size": {}}}));
    assert_eq!(*entries(&new), json!([of_a, of_b]));
}

#[test]
fn what_is_removed_is_nobodys_and_who_owns_nothing_is_forgotten() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let live = changed(&kept(live), |it| it["spec"]["color"] = json!("red"), "b", T2);
    let remove = |it: &mut Value| it["spec"] = json!({"size": 1});
    let new = changed(&live, remove, "c", T3);
    assert_eq!(*entries(&new), json!([entry("a", "Update", T1, &json!({"f:spec": {".": {}, "f:size": {}}}))]));
}

#[test]
fn the_entries_of_one_manager_are_one_and_have_the_last_time() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let new = changed(&kept(live), |it| it["spec"]["color"] = json!("red"), "a", T2);
    let owned = json!({"f:spec": {".": {}, "f:color": {}, "f:size": {}}});
    assert_eq!(*entries(&new), json!([entry("a", "Update", T2, &owned)]));
}

#[test]
fn an_update_that_changes_nothing_keeps_the_time() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let live = kept(live);
    let new = changed(&live, |_| {}, "a", T2);
    assert_eq!(new, live);
    assert!(is_noop(&live, &new));
}

#[test]
fn only_the_time_of_an_entry_does_not_matter() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!(T2);
    assert!(is_noop(&live, &new));
    new["metadata"]["managedFields"][0]["manager"] = json!("b");
    assert!(!is_noop(&live, &new));
    let mut other = live.clone();
    other["spec"]["size"] = json!(2);
    assert!(!is_noop(&live, &other));
}

#[test]
fn nobody_owns_what_such_a_write_can_not_change() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let live = kept(live);
    let mut new = live.clone();
    new["spec"]["size"] = json!(2);
    new["status"] = json!({"phase": "Ready"});
    let status = Write { subresource: "status", reset: &["metadata", "spec"], ..write("controller", T2) };
    update(Some(&live), &mut new, &widget(), &status);
    let mut of_status = entry("controller", "Update", T2, &json!({"f:status": {".": {}, "f:phase": {}}}));
    of_status["subresource"] = json!("status");
    assert_eq!(entries(&new)[0]["fieldsV1"], json!({"f:spec": {".": {}, "f:size": {}}}));
    assert_eq!(entries(&new)[1], of_status);
}

#[test]
fn the_client_can_say_that_nobody_owns_anything() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    for reset in [json!([]), json!([{}])] {
        let new = changed(&kept(live.clone()), |it| it["metadata"]["managedFields"] = reset, "b", T2);
        assert_eq!(new["metadata"].get("managedFields"), None);
    }
}

#[test]
fn a_client_that_knows_nothing_of_owners_does_not_delete_them() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let live = kept(live);
    for unknowing in [Value::Null, json!([{"manager": "x", "operation": "Other"}])] {
        let new = changed(&live, |it| it["metadata"]["managedFields"] = unknowing, "b", T2);
        assert_eq!(entries(&new), entries(&live));
    }
}

#[test]
fn a_client_can_hand_entries_from_one_manager_to_another() {
    // That is what kubectl does when it begins to apply on the server what was applied from the client.
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("kubectl-client-side-apply", T1));
    let taken = json!([entry("kubectl", "Apply", T1, &json!({"f:spec": {"f:size": {}}}))]);
    let new = changed(&kept(live), |it| it["metadata"]["managedFields"] = taken.clone(), "kubectl", T2);
    assert_eq!(*entries(&new), taken);
}

#[test]
fn a_part_of_an_object_can_not_change_the_owners() {
    let mut live = widget_of(&json!({"size": 1}));
    update(None, &mut live, &widget(), &write("a", T1));
    let live = kept(live);
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([]);
    let status = Write { subresource: "status", reset: &["metadata", "spec"], ..write("b", T2) };
    update(Some(&live), &mut new, &widget(), &status);
    assert_eq!(entries(&new), entries(&live));
}

#[test]
fn an_object_without_owners_has_none_after_an_update() {
    let live = kept(widget_of(&json!({"size": 1})));
    let new = changed(&live, |it| it["spec"]["size"] = json!(2), "a", T1);
    assert_eq!(new["metadata"].get("managedFields"), None);
}

#[test]
fn the_oldest_of_too_many_updaters_become_one() {
    let mut live = widget_of(&json!({"sizes": {"k00": 0}}));
    update(None, &mut live, &widget(), &write("m00", "2024-01-01T00:00:00Z"));
    live = kept(live);
    for number in 1..12 {
        let (who, time) = (format!("m{number:02}"), format!("2024-01-01T00:00:{number:02}Z"));
        live = changed(&live, |it| it["spec"]["sizes"][format!("k{number:02}")] = json!(number), &who, &time);
    }
    let managers: Vec<&str> =
        entries(&live).as_array().unwrap().iter().map(|it| it["manager"].as_str().unwrap()).collect();
    let expected = ["ancient-changes", "m03", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11"];
    assert_eq!(managers, expected);
    let ancient = json!({"f:spec": {".": {}, "f:sizes": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}}});
    assert_eq!(entries(&live)[0], entry("ancient-changes", "Update", "2024-01-01T00:00:02Z", &ancient));
}

#[test]
fn what_does_not_fit_the_schema_has_no_owners() {
    let mut new = widget_of(&json!({"unheard": 1}));
    update(None, &mut new, &widget(), &write("a", T1));
    assert_eq!(new["metadata"].get("managedFields"), None);
}

#[test]
fn what_nothing_is_said_about_is_owned_field_by_field_and_lists_as_a_whole() {
    let mut new = widget_of(&json!({"free": {"a": {"b": 1}, "l": [{"c": 1}], "e": {}}}));
    update(None, &mut new, &widget(), &write("a", T1));
    let free = json!({".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}, "f:e": {}});
    assert_eq!(entries(&new)[0]["fieldsV1"], json!({"f:spec": {".": {}, "f:free": free}}));
}

#[test]
fn items_that_can_not_be_told_apart_are_owned_together() {
    let twice = json!([{"name": "a", "one": "1"}, {"name": "a", "one": "2"}]);
    let mut new = widget_of(&json!({"items": twice}));
    update(None, &mut new, &widget(), &write("a", T1));
    let items = json!({".": {}, "k:{\"name\":\"a\"}": {}});
    assert_eq!(entries(&new)[0]["fieldsV1"], json!({"f:spec": {".": {}, "f:items": items}}));
}

#[test]
fn what_became_one_thing_is_owned_as_that() {
    let mut live = kept(widget_of(&json!({"place": {"x": 1}, "parts": ["a"], "size": 1})));
    let old = json!({"f:spec": {"f:place": {"f:x": {}}, "f:parts": {".": {}, "v:\"a\"": {}}, "f:size": {}}});
    live["metadata"]["managedFields"] = json!([entry("a", "Apply", T1, &old)]);
    let new = changed(&live, |it| it["spec"]["color"] = json!("red"), "b", T2);
    let now = json!({"f:spec": {"f:place": {}, "f:parts": {}, "f:size": {}}});
    assert_eq!(entries(&new)[0], entry("a", "Apply", T1, &now));
}

/// `managedFields` repeats the nesting of an object that is as deep as it may be, and stays
/// readable.
#[test]
fn managed_fields_of_the_deepest_object_are_within_their_limit() {
    use crate::depth::{self, MAX_DEPTH, MAX_MANAGED_FIELDS_DEPTH};
    let schema = Schema::read(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), &|_| None);
    let nested = (0..MAX_DEPTH - 1).fold(json!(1), |inner, _| json!({ "a": inner }));
    let object = json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": nested});
    let mut created = object.clone();
    update(None, &mut created, &schema, &write("creator", T1));
    let applied = apply(None, &object, &schema, &write("applier", T1), false).unwrap();
    for written in [created, applied] {
        assert_eq!(depth::of(&written), MAX_MANAGED_FIELDS_DEPTH);
        assert_eq!(depth::check(&written), Ok(()));
    }
}
