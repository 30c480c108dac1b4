//! What the store promises.

mod disk;
mod files;
mod histories;
mod watches;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use super::{Continue, Journal, Keep, Key, ListError, Now, Resource, Scope, Store, TooNew, TooOld, WriteError};

fn still() -> Now {
    Arc::new(|| Duration::ZERO)
}

/// A clock, and what sets it.
fn clock() -> (Now, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let read = seconds.clone();
    (Arc::new(move || Duration::from_secs(read.load(Ordering::Relaxed))), seconds)
}

fn in_memory() -> Store {
    Store::open(&Journal::Memory, Keep::default(), still()).unwrap()
}

fn maps() -> Resource {
    Resource::new("", "configmaps")
}

fn key(namespace: &str, name: &str) -> Key {
    Key::new(&maps(), Some(namespace), name)
}

fn object(content: impl Into<Value>) -> Value {
    json!({ "kind": "ConfigMap", "metadata": { "labels": { "color": "red" } }, "data": content.into() })
}

async fn create(store: &Store, namespace: &str, name: &str) -> u64 {
    store.create(key(namespace, name), object(name)).await.unwrap().revision()
}

fn names(page: &super::Page) -> Vec<String> {
    page.items.iter().map(|item| item.position().to_owned()).collect()
}

#[tokio::test]
async fn an_object_says_its_revision() {
    let store = in_memory();
    let made = store.create(key("a", "x"), object(1)).await.unwrap();
    assert_eq!(made.revision(), 2);
    assert_eq!(made.value()["metadata"]["resourceVersion"], "2");
    let changed = store.update(key("a", "x"), 2, object(2)).await.unwrap();
    assert_eq!(changed.value()["metadata"]["resourceVersion"], "3");
    assert_eq!(store.get(&key("a", "x")), Some(changed));
    assert_eq!(store.revision(), 3);
}

#[tokio::test]
async fn an_object_is_kept_as_it_is_written() {
    let store = in_memory();
    let written = json!({
        "apiVersion": "v1", "zoo": { "labels": { "not": "these" }, "resourceVersion": "9" }, "text": "a \"b\" \\ \u{1F600}\n",
        "metadata": { "name": "x", "resourceVersion": "77", "labels": { "a": "b", "q": "\"" }, "annotations": { "metadata": "{}" } },
        "list": [1, 1.5, null, true, -3, u64::MAX],
    });
    let made = store.create(key("a", "x"), written.clone()).await.unwrap();
    let mut expected = written;
    expected["metadata"]["resourceVersion"] = json!("2");
    assert_eq!(made.value(), expected);
    assert_eq!(made.bytes(), &serde_json::to_vec(&expected).unwrap());
    assert_eq!(made.labels(), [("a", "b"), ("q", "\"")].map(|(a, b)| (a.to_owned(), b.to_owned())).into());
    assert_eq!((made.namespace(), made.name()), (Some("a"), "x"));
}

#[tokio::test]
async fn an_object_without_labels_has_none() {
    let store = in_memory();
    let made = store.create(Key::new(&maps(), None, "x"), json!({})).await.unwrap();
    assert_eq!(made.value(), json!({ "metadata": { "resourceVersion": "2" } }));
    assert!(made.labels().is_empty());
    assert_eq!((made.namespace(), made.name()), (None, "x"));
}

#[tokio::test]
async fn what_is_not_an_object_is_refused() {
    let store = in_memory();
    for value in [json!([]), json!("x"), json!({ "metadata": 1 })] {
        assert_eq!(store.create(key("a", "x"), value).await, Err(WriteError::NotAnObject));
    }
}

#[tokio::test]
async fn an_object_is_created_once() {
    let store = in_memory();
    let made = store.create(key("a", "x"), object(1)).await.unwrap();
    assert_eq!(store.create(key("a", "x"), object(2)).await, Err(WriteError::Exists(made)));
    assert_eq!(store.revision(), 2);
}

#[tokio::test]
async fn a_change_of_another_revision_is_refused() {
    let store = in_memory();
    assert_eq!(store.update(key("a", "x"), 1, object(1)).await, Err(WriteError::Gone));
    assert_eq!(store.delete(key("a", "x"), 1, object(1)).await, Err(WriteError::Gone));
    create(&store, "a", "x").await;
    let newer = store.update(key("a", "x"), 2, object(2)).await.unwrap();
    assert_eq!(store.update(key("a", "x"), 2, object(3)).await, Err(WriteError::Changed(newer.clone())));
    assert_eq!(store.delete(key("a", "x"), 2, object(3)).await, Err(WriteError::Changed(newer)));
}

#[tokio::test]
async fn an_update_that_changes_nothing_is_none() {
    let store = in_memory();
    let made = store.create(key("a", "x"), object(1)).await.unwrap();
    let mut same = made.value();
    assert_eq!(store.update(key("a", "x"), 2, same.clone()).await, Ok(made.clone()));
    same["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(store.update(key("a", "x"), 2, same).await, Ok(made));
    assert_eq!(store.revision(), 2);
}

#[tokio::test]
async fn a_deleted_object_has_the_revision_of_its_end() {
    let store = in_memory();
    create(&store, "a", "x").await;
    let last = store.delete(key("a", "x"), 2, object(1)).await.unwrap();
    assert_eq!(last.value()["metadata"]["resourceVersion"], "3");
    assert_eq!(store.get(&key("a", "x")), None);
}

#[tokio::test]
async fn lists_are_sorted_like_the_keys_of_etcd() {
    let store = in_memory();
    for (namespace, name) in [("a", "z"), ("a", "b"), ("a-b", "x"), ("b", "a"), ("a.b", "y")] {
        create(&store, namespace, name).await;
    }
    let all = store.list(&maps(), &Scope::all(), None, None).unwrap();
    assert_eq!(names(&all), ["a-b/x", "a.b/y", "a/b", "a/z", "b/a"]);
    assert_eq!((all.revision, all.next, all.remaining), (6, None, 0));
    let one = store.list(&maps(), &Scope::namespace("a"), None, None).unwrap();
    assert_eq!(names(&one), ["a/b", "a/z"]);
    let single = store.list(&maps(), &Scope::object(Some("a"), "z"), None, None).unwrap();
    assert_eq!(names(&single), ["a/z"]);
    assert!(store.list(&Resource::new("", "pods"), &Scope::all(), None, None).unwrap().items.is_empty());
}

#[tokio::test]
async fn a_list_goes_on_as_it_began() {
    let store = in_memory();
    for name in ["a", "b", "c", "d", "e"] {
        create(&store, "n", name).await;
    }
    let first = store.list(&maps(), &Scope::namespace("n"), None, Some(2)).unwrap();
    assert_eq!((names(&first), first.remaining), (vec!["n/a".to_owned(), "n/b".to_owned()], 3));

    let of = |name| store.get(&key("n", name)).unwrap().revision();
    store.delete(key("n", "c"), of("c"), object("c")).await.unwrap();
    store.update(key("n", "d"), of("d"), object("other")).await.unwrap();
    store.update(key("n", "d"), of("d"), object("yet another")).await.unwrap();
    create(&store, "n", "dd").await;
    create(&store, "n", "f").await;

    let second = store.list(&maps(), &Scope::namespace("n"), first.next.as_ref(), Some(2)).unwrap();
    assert_eq!((names(&second), second.remaining), (vec!["n/c".to_owned(), "n/d".to_owned()], 1));
    assert_eq!((second.revision, second.items[1].value()["data"].clone()), (first.revision, json!("d")));
    let third = store.list(&maps(), &Scope::namespace("n"), second.next.as_ref(), Some(2)).unwrap();
    assert_eq!((names(&third), third.remaining, third.next), (vec!["n/e".to_owned()], 0, None));
}

#[tokio::test]
async fn a_list_of_a_time_that_is_forgotten_or_to_come_is_refused() {
    let store = in_memory();
    for name in ["a", "b", "c"] {
        create(&store, "n", name).await;
    }
    let list = |revision| {
        let from = Continue { revision, after: String::new() };
        store.list(&maps(), &Scope::all(), Some(&from), None).map(|page| names(&page))
    };
    assert_eq!(list(3), Ok(vec!["n/a".to_owned(), "n/b".to_owned()]));
    assert_eq!(list(5), Err(ListError::TooNew(TooNew { asked: 5, current: 4 })));
    store.compact(Some(&maps()), 4);
    assert_eq!(list(3), Err(ListError::TooOld(TooOld { asked: 3, oldest: 4 })));
    assert_eq!(list(4).map(|names| names.len()), Ok(3));
}

#[tokio::test(start_paused = true)]
async fn a_revision_can_be_waited_for() {
    let store = in_memory();
    assert_eq!(store.wait_for(1, Duration::ZERO).await, Ok(()));
    let too_new = TooNew { asked: 2, current: 1 };
    assert_eq!(store.wait_for(2, Duration::from_secs(3)).await, Err(too_new));
    let other = store.clone();
    let waiting = tokio::spawn(async move { other.wait_for(2, Duration::from_secs(3)).await });
    tokio::task::yield_now().await;
    create(&store, "a", "x").await;
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

/// All who change one counter agree in the end, in memory and with a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_at_the_same_time_do_not_undo_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for journal in [Journal::Memory, Journal::Folder(folder.path().to_owned())] {
        let store = Store::open(&journal, Keep::default(), still()).unwrap();
        store.create(key("a", "x"), object(0)).await.unwrap();
        let (_, mut watch) = store.start(&maps(), &Scope::all());
        let tasks: Vec<_> = (0..8).map(|_| tokio::spawn(count(store.clone(), 25))).collect();
        for wanted in 1..=200 {
            let event = watch.next().await.unwrap();
            assert_eq!((event.revision(), event.object.value()["data"].as_u64()), (2 + wanted, Some(wanted)));
        }
        for task in tasks {
            task.await.unwrap();
        }
        store.close().await;
    }
}

async fn count(store: Store, times: u32) {
    for _ in 0..times {
        let mut done = false;
        while !done {
            let read = store.get(&key("a", "x")).unwrap();
            let next = read.value()["data"].as_u64().unwrap() + 1;
            done = store.update(key("a", "x"), read.revision(), object(next)).await.is_ok();
        }
    }
}
