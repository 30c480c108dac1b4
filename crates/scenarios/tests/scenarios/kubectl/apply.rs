//! Applying manifests: as kubectl does it itself, and as the server does.

use std::collections::BTreeSet;

use drover_testkit::World;

use super::Desk;

drover_testkit::scenarios! {
    Shared {
        kubectl_applies_what_has_changed,
        a_list_is_applied,
        the_server_applies_and_tells_of_conflicts,
        what_kubectl_has_applied_the_server_takes_over,
    }
}

fn manifest(data: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: applied}}, data: {{{data}}}}}")
}

const DATA: &str = "get cm applied -o jsonpath={.data}";

async fn kubectl_applies_what_has_changed(world: World) {
    let desk = Desk::new(world).await;
    let first = manifest("a: '1', b: '2'");
    assert_eq!(desk.feed("apply -f -", &first).await.success(), "configmap/applied created\n");
    desk.says_to("patch cm applied -p", r#"{"data":{"other":"stays"}}"#).await;

    let second = manifest("a: '1', c: '3'");
    // That there is a difference is no complaint, but no success either.
    let difference = desk.feed("diff -f -", &second).await;
    assert_eq!(difference.failure(), "");
    assert!(difference.printed().contains("\n-  b: \"2\"\n+  c: \"3\"\n"), "{}", difference.printed());
    assert_eq!(desk.feed("apply -f -", &second).await.success(), "configmap/applied configured\n");
    assert_eq!(desk.feed("apply -f -", &second).await.success(), "configmap/applied unchanged\n");
    assert_eq!(desk.feed("diff -f -", &second).await.success(), "");
    assert_eq!(desk.says(DATA).await, r#"{"a":"1","c":"3","other":"stays"}"#);
    let strict = desk.feed("apply -f -", &second.replace(" data:", " dates:")).await.failure();
    assert!(strict.contains("strict decoding error: unknown field \"dates\"\n"), "{strict}");
}

async fn a_list_is_applied(world: World) {
    let desk = Desk::new(world).await;
    let list = format!("{{apiVersion: v1, kind: List, items: [{}]}}", manifest("a: '1'"));
    assert_eq!(desk.feed("apply -f -", &list).await.success(), "configmap/applied created\n");
    assert_eq!(desk.feed("apply --server-side -f -", &list).await.success(), "configmap/applied serverside-applied\n");
}

async fn the_server_applies_and_tells_of_conflicts(world: World) {
    let desk = Desk::new(world).await;
    let text = manifest("a: '1', b: '2'");
    let applied = "configmap/applied serverside-applied\n";
    assert_eq!(desk.feed("apply --server-side -f -", &text).await.success(), applied);
    desk.says_to("patch cm applied -p", r#"{"data":{"a":"other"}}"#).await;
    let conflict = desk.feed("apply --server-side -f -", &text).await.failure();
    let expected = "error: Apply failed with 1 conflict: conflict with \"kubectl-patch\" using v1: .data.a\n";
    assert!(conflict.starts_with(expected), "{conflict}");
    assert_eq!(desk.says(DATA).await, r#"{"a":"other","b":"2"}"#);
    assert_eq!(desk.feed("apply --server-side --force-conflicts -f -", &text).await.success(), applied);
    assert_eq!(desk.says(DATA).await, r#"{"a":"1","b":"2"}"#);
    // What it does not say any more goes.
    assert_eq!(desk.feed("apply --server-side -f -", &manifest("b: '2'")).await.success(), applied);
    assert_eq!(desk.says(DATA).await, r#"{"b":"2"}"#);
}

async fn what_kubectl_has_applied_the_server_takes_over(world: World) {
    let desk = Desk::new(world).await;
    desk.feed("apply -f -", &manifest("a: '1', b: '2'")).await.success();
    desk.feed("apply --server-side -f -", &manifest("a: '1'")).await.success();
    assert_eq!(desk.says(DATA).await, r#"{"a":"1"}"#);
    let managers = "jsonpath={range .metadata.managedFields[*]}{.manager} {.operation},{end}";
    let managers = desk.says_to("get cm applied -o", managers).await;
    // Their order depends on the time.
    let managers: BTreeSet<_> = managers.split_terminator(',').collect();
    assert_eq!(managers, BTreeSet::from(["kubectl Apply", "kubectl-last-applied Apply"]));
}
