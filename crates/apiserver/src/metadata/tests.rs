use serde_json::json;

use super::*;
use crate::{
    kind::{Origin, Scope},
    metadata::names::NameRule,
};

fn kind(group: &str, plural: &str, kind: &str, scope: Scope, origin: Origin) -> crate::kind::Kind {
    crate::kind::Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope,
        versions: Vec::new(),
        origin,
    }
}

fn config_map() -> crate::kind::Kind {
    kind("", "configmaps", "ConfigMap", Scope::Namespaced, Origin::BuiltIn)
}

fn told(errors: &[crate::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn named(metadata: &Value) -> Value {
    let mut object = json!({ "metadata": { "name": "a", "namespace": "default" } });
    for (name, value) in metadata.as_object().unwrap() {
        object["metadata"][name] = value.clone();
    }
    object
}

#[test]
fn a_bad_name_is_told_with_the_pattern() {
    let errors = rules(&config_map(), &named(&json!({ "name": "A_b" })), NameRule::Subdomain);
    let expected = "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of lower case \
        alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
        regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    assert_eq!(told(&errors), [expected]);
}

#[test]
fn a_label_with_dots_is_told_so() {
    assert_eq!(names::label("a.b"), ["must not contain dots"]);
    assert_eq!(names::label(&"a".repeat(64)), ["must be no more than 63 characters"]);
}

#[test]
fn a_generated_name_may_begin_with_a_trailing_dash() {
    let object = named(&json!({ "generateName": "job-", "name": "job-abcde" }));
    assert_eq!(told(&rules(&config_map(), &object, NameRule::Label)), Vec::<String>::new());
    assert_eq!(NameRule::Label.problems("-", true).len(), 1);
}

#[test]
fn names_of_roles_only_have_to_fit_a_path() {
    assert_eq!(names::path_segment("system:node"), Vec::<String>::new());
    assert_eq!(names::path_segment(".."), ["may not be '..'"]);
    assert_eq!(names::path_segment("a/b%c"), ["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn keys_of_labels_are_told_by_part() {
    assert_eq!(names::qualified("example.com/a"), Vec::<String>::new());
    let problems = names::qualified("Example.com/");
    assert!(problems[0].starts_with("prefix part a lowercase RFC 1123 subdomain must consist"), "{problems:?}");
    assert_eq!(problems[1], "name part must be non-empty");
    assert!(names::qualified("a/b/c")[0].starts_with("a valid label key must consist of"));
    assert!(
        names::qualified("a/b/c")[0]
            .ends_with("with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")
    );
}

#[test]
fn values_of_labels_are_checked() {
    let errors = check_labels(Some(&json!({ "a": "-" })), &crate::field::Path::Root.field("labels"));
    let expected = "labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, \
        '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
        regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    assert_eq!(told(&errors), [expected]);
}

#[test]
fn too_large_annotations_are_told_by_size() {
    let object = named(&json!({ "annotations": { "a": "x".repeat(256 * 1024) } }));
    let errors = told(&rules(&config_map(), &object, NameRule::Subdomain));
    assert_eq!(errors, ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

#[test]
fn owners_have_to_be_complete_and_only_one_controls() {
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1", "controller": true });
    let object = named(&json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "A", "name": "b" }] }));
    let errors = told(&rules(&config_map(), &object, NameRule::Subdomain));
    assert_eq!(errors, ["metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"]);
    let object = named(&json!({ "ownerReferences": [owner, owner] }));
    let errors = told(&rules(&config_map(), &object, NameRule::Subdomain));
    assert!(errors[0].ends_with(
        "Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/o and ConfigMap/o"
    ));
}

#[test]
fn namespaces_belong_to_kinds_that_are_in_them() {
    let cluster = kind("", "nodes", "Node", Scope::Cluster, Origin::BuiltIn);
    let errors = told(&rules(&cluster, &named(&json!({})), NameRule::Subdomain));
    assert_eq!(errors, ["metadata.namespace: Forbidden: not allowed on this type"]);
    let errors = told(&rules(&config_map(), &json!({ "metadata": {} }), NameRule::Subdomain));
    assert_eq!(
        errors,
        ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"]
    );
}

#[test]
fn nothing_gets_a_finalizer_on_its_way_out() {
    let old = named(&json!({ "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["a.b/c"] }));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["a.b/c", "x.y/z"]);
    let expected = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, \
        found new finalizers []string{\"x.y/z\"}";
    assert_eq!(told(&update_rules(&new, &old)), [expected]);
}

#[test]
fn who_an_object_is_stays() {
    let old = named(&json!({ "resourceVersion": "1", "uid": "u" }));
    let new = named(&json!({ "resourceVersion": "1", "uid": "other" }));
    assert_eq!(told(&update_rules(&new, &old)), ["metadata.uid: Invalid value: \"other\": field is immutable"]);
}

#[test]
fn what_the_server_says_is_not_taken_from_others() {
    let mut object = json!({ "metadata": {
        "generateName": "x-", "uid": "mine", "creationTimestamp": "t0", "deletionTimestamp": "t1", "selfLink": "/x",
    }});
    stamp_new(&mut object, "u", "now", &mut || "abcde".to_owned());
    let expected = json!({ "generateName": "x-", "name": "x-abcde", "uid": "u", "creationTimestamp": "now" });
    assert_eq!(object["metadata"], expected);
}

#[test]
fn generated_names_are_no_longer_than_labels() {
    assert_eq!(generate_name(&"a".repeat(80), "12345").len(), 63);
}

#[test]
fn a_change_keeps_what_it_may_not_touch() {
    let old = named(&json!({ "uid": "u", "creationTimestamp": "t", "deletionTimestamp": "d", "generation": 3 }));
    let mut new = named(&json!({ "creationTimestamp": "other", "generation": 9 }));
    carry_over(&mut new, &old);
    assert_eq!(new, old);
}

#[test]
fn being_deleted_counts_as_a_change_once() {
    let mut object = named(&json!({ "generation": 3 }));
    begin_deletion(&mut object, "t1");
    begin_deletion(&mut object, "t2");
    assert_eq!(object["metadata"]["generation"], 4);
    assert_eq!(object["metadata"]["deletionTimestamp"], "t1");
}

#[test]
fn objects_fit_into_the_namespace_of_the_request() {
    let mut object = json!({ "metadata": { "name": "a" } });
    expected_namespace(&config_map(), &mut object, "default").unwrap();
    assert_eq!(object["metadata"]["namespace"], "default");
    let failure = expected_namespace(&config_map(), &mut object, "other").unwrap_err();
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!((failure.code, failure.message.as_str()), (400, message));
}

#[test]
fn objects_have_the_name_of_the_request() {
    let failure = expected_name(&named(&json!({})), "b").unwrap_err();
    assert_eq!(failure.message, "the name of the object (a) does not match the name on the URL (b)");
}

#[test]
fn changes_of_custom_objects_say_what_they_were_made_of() {
    let foo = kind("example.com", "foos", "Foo", Scope::Namespaced, Origin::Custom);
    let old = named(&json!({ "resourceVersion": "5" }));
    let failure = check_version(&foo, &mut named(&json!({})), &old).unwrap_err();
    let message = "foos.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!((failure.code, failure.message.as_str()), (422, message));
    let mut new = named(&json!({}));
    check_version(&config_map(), &mut new, &old).unwrap();
    assert_eq!(new["metadata"]["resourceVersion"], "5");
    let failure = check_version(&foo, &mut named(&json!({ "resourceVersion": "4" })), &old).unwrap_err();
    assert_eq!(failure.code, 409);
}

#[test]
fn what_is_meant_for_another_of_the_name_conflicts() {
    let old = named(&json!({ "uid": "b" }));
    let failure = check_uid(&config_map(), &named(&json!({ "uid": "a" })), &old).unwrap_err();
    let expected = "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: \
        /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
        a, UID in object meta: b";
    assert_eq!(failure.message, expected);
}

#[test]
fn owners_are_kept_once() {
    let owner = json!({ "apiVersion": "v1", "kind": "A", "name": "b", "uid": "1" });
    let mut object = named(&json!({ "ownerReferences": [owner, owner] }));
    let warning = dedup_owners(&mut object).unwrap();
    assert!(warning.ends_with("duplicate UID(s) observed: 1"));
    assert_eq!(object["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    assert_eq!(dedup_owners(&mut object), None);
}

#[test]
fn finalizers_without_a_domain_are_warned_of() {
    let warnings = finalizer_warnings(&named(&json!({ "finalizers": ["mine", "orphan", "a.b/c"] })), None);
    let expected = "metadata.finalizers: \"mine\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
    assert_eq!(warnings, [expected]);
}
