//! Watches: nothing is left out, nothing comes twice, and nobody is in anybody's way.

use std::{future::Future, pin::pin, sync::atomic::Ordering, task};

use super::*;
use crate::store::{Change, Event, Stored, Watch, WatchEnd};

fn seen(events: &[Arc<Event>]) -> Vec<(Change, u64, String)> {
    events.iter().map(|event| (event.change, event.revision(), event.object.position().to_owned())).collect()
}

/// What a watch has to say now, without waiting.
fn poll(watch: &mut Watch) -> Option<Result<Vec<Arc<Event>>, WatchEnd>> {
    let next = pin!(watch.next_batch(usize::MAX));
    match next.poll(&mut task::Context::from_waker(task::Waker::noop())) {
        task::Poll::Ready(answer) => Some(answer),
        task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_watch_shows_what_happened_after_its_revision() {
    let store = in_memory();
    create(&store, "a", "x").await;
    store.update(key("a", "x"), 2, object("new")).await.unwrap();
    store.delete(key("a", "x"), 3, object("last")).await.unwrap();
    let mut watch = store.watch(&maps(), &Scope::all(), 1).unwrap();
    let events = watch.next_batch(10).await.unwrap();
    let x = || "a/x".to_owned();
    assert_eq!(seen(&events), [(Change::Added, 2, x()), (Change::Modified, 3, x()), (Change::Deleted, 4, x())]);
    assert_eq!(events[0].old, None);
    assert_eq!(events[1].old, Some(events[0].object.clone()));
    assert_eq!(events[2].old, Some(events[1].object.clone()));
    assert_eq!(events[2].object.value()["data"], "last");
    assert_eq!(poll(&mut watch), None);
    let mut later = store.watch(&maps(), &Scope::all(), 3).unwrap();
    assert_eq!(later.next().await.unwrap().revision(), 4);
}

#[tokio::test]
async fn a_watch_waits_for_what_happens_next() {
    let store = in_memory();
    let mut watch = store.watch(&maps(), &Scope::all(), 1).unwrap();
    let waiting = tokio::spawn(async move { watch.next().await.map(|event| event.revision()) });
    tokio::task::yield_now().await;
    create(&store, "a", "x").await;
    assert_eq!(waiting.await.unwrap(), Ok(2));
}

#[tokio::test]
async fn a_watch_shows_its_scope_alone() {
    let store = in_memory();
    let mut namespace = store.watch(&maps(), &Scope::namespace("a"), 1).unwrap();
    let mut object = store.watch(&maps(), &Scope::object(Some("a"), "y"), 1).unwrap();
    let mut resource = store.watch(&Resource::new("", "secrets"), &Scope::all(), 1).unwrap();
    for (namespace, name) in [("a", "x"), ("b", "x"), ("a", "y"), ("a-b", "y")] {
        create(&store, namespace, name).await;
    }
    let late = store.watch(&maps(), &Scope::namespace("b"), 1).unwrap();
    let positions = |watch: &mut Watch| poll(watch).map(|events| seen(&events.unwrap()));
    assert_eq!(
        positions(&mut namespace).unwrap(),
        [(Change::Added, 2, "a/x".to_owned()), (Change::Added, 4, "a/y".to_owned())]
    );
    assert_eq!(positions(&mut object).unwrap(), [(Change::Added, 4, "a/y".to_owned())]);
    assert_eq!(positions(&mut resource), None);
    let mut late = late;
    assert_eq!(positions(&mut late).unwrap(), [(Change::Added, 3, "b/x".to_owned())]);
}

#[tokio::test]
async fn a_start_is_a_list_and_what_follows_it() {
    let store = in_memory();
    create(&store, "a", "x").await;
    let (objects, mut watch) = store.start(&maps(), &Scope::namespace("a"));
    assert_eq!(watch.revision(), 2);
    create(&store, "a", "y").await;
    assert_eq!(objects.iter().map(Stored::position).collect::<Vec<_>>(), ["a/x"]);
    assert_eq!(watch.next().await.unwrap().revision(), 3);
    assert_eq!(watch.revision(), 3);
}

#[tokio::test]
async fn a_bookmark_is_for_who_has_seen_everything() {
    let store = in_memory();
    let mut watch = store.watch(&maps(), &Scope::namespace("a"), 1).unwrap();
    assert_eq!(watch.caught_up(), Some(1));
    create(&store, "b", "x").await;
    assert_eq!(watch.caught_up(), Some(2));
    create(&store, "a", "x").await;
    assert_eq!(watch.caught_up(), None);
    watch.next().await.unwrap();
    assert_eq!(watch.caught_up(), Some(3));
}

#[tokio::test]
async fn who_is_too_slow_is_told_and_nobody_else() {
    let keep = Keep { bytes: 4096, ..Keep::default() };
    let store = Store::open(&Journal::Memory, keep, still()).unwrap();
    let mut slow = store.watch(&maps(), &Scope::all(), 1).unwrap();
    let mut slow_part = store.watch(&maps(), &Scope::namespace("a"), 1).unwrap();
    let mut quick = store.watch(&maps(), &Scope::all(), 1).unwrap();
    let mut quiet = store.watch(&maps(), &Scope::namespace("quiet"), 1).unwrap();
    for number in 0..100 {
        create(&store, "a", &format!("x{number}")).await;
        quick.next().await.unwrap();
    }
    let Some(Err(WatchEnd::TooOld(error))) = poll(&mut slow) else { panic!("it has seen everything") };
    assert!(error.asked == 1 && error.oldest > 80, "{error}");
    assert_eq!(poll(&mut slow_part), Some(Err(WatchEnd::TooOld(error))));
    assert_eq!(store.watch(&maps(), &Scope::all(), 1).err(), Some(TooOld { asked: 1, oldest: error.oldest }));
    store.watch(&maps(), &Scope::all(), error.oldest).unwrap();
    // Nothing that it wanted to see is forgotten.
    create(&store, "quiet", "x").await;
    assert_eq!(quiet.next().await.unwrap().object.position(), "quiet/x");
}

#[tokio::test]
async fn what_is_old_is_forgotten() {
    let (now, seconds) = clock();
    let keep = Keep { age: Duration::from_secs(75), ..Keep::default() };
    let store = Store::open(&Journal::Memory, keep, now).unwrap();
    create(&store, "a", "x").await;
    seconds.store(75, Ordering::Relaxed);
    create(&store, "a", "y").await;
    store.watch(&maps(), &Scope::all(), 1).unwrap();
    seconds.store(76, Ordering::Relaxed);
    create(&store, "a", "z").await;
    assert_eq!(store.watch(&maps(), &Scope::all(), 1).err(), Some(TooOld { asked: 1, oldest: 2 }));
}

#[tokio::test]
async fn new_objects_alone_do_not_make_watches_too_slow() {
    let keep = Keep { bytes: 100_000, ..Keep::default() };
    let store = Store::open(&Journal::Memory, keep, still()).unwrap();
    let mut watch = store.watch(&maps(), &Scope::all(), 1).unwrap();
    for number in 0..100 {
        store.create(key("a", &format!("x{number}")), object("long".repeat(10_000))).await.unwrap();
    }
    assert_eq!(poll(&mut watch).unwrap().unwrap().len(), 100);
}

#[tokio::test]
async fn compaction_does_not_end_watches_that_have_seen_everything() {
    let store = in_memory();
    let (_, mut watch) = store.start(&maps(), &Scope::all());
    let pods = Resource::new("", "pods");
    store.create(Key::new(&pods, None, "x"), object(1)).await.unwrap();
    store.compact(None, 2);
    create(&store, "a", "x").await;
    assert_eq!(watch.next().await.unwrap().revision(), 3);
}

#[tokio::test]
async fn a_resource_ends_with_its_objects_and_watches() {
    let store = in_memory();
    create(&store, "a", "x").await;
    create(&store, "b", "y").await;
    let (_, mut all) = store.start(&maps(), &Scope::all());
    let (_, mut part) = store.start(&maps(), &Scope::namespace("b"));
    let (_, mut empty) = store.start(&maps(), &Scope::namespace("c"));
    assert_eq!(store.drop_resource(maps()).await, Ok(5));
    // It comes back, and that is none of theirs.
    create(&store, "c", "z").await;

    let events = all.next_batch(10).await.unwrap();
    assert_eq!(seen(&events), [(Change::Deleted, 4, "a/x".to_owned()), (Change::Deleted, 5, "b/y".to_owned())]);
    assert_eq!(events[1].object.value()["metadata"]["resourceVersion"], "5");
    assert_eq!(seen(&part.next_batch(10).await.unwrap()), [(Change::Deleted, 5, "b/y".to_owned())]);
    for watch in [&mut all, &mut part, &mut empty] {
        assert_eq!(watch.next_batch(10).await, Err(WatchEnd::ResourceGone));
    }
    let (objects, mut anew) = store.start(&maps(), &Scope::all());
    assert_eq!((objects.len(), poll(&mut anew)), (1, None));
}

#[tokio::test]
async fn a_waiting_watch_hears_of_the_end_of_an_empty_resource() {
    let store = in_memory();
    let (_, mut watch) = store.start(&maps(), &Scope::all());
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    store.drop_resource(maps()).await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(WatchEnd::ResourceGone));
}

#[tokio::test]
async fn nothing_is_left_of_watches_that_are_gone() {
    let store = in_memory();
    let parts = || store.shared.read().collection(&maps()).unwrap().parts();
    let one = store.watch(&maps(), &Scope::namespace("a"), 1).unwrap();
    let two = store.watch(&maps(), &Scope::namespace("a"), 1).unwrap();
    assert_eq!(parts(), 1);
    drop(one);
    assert_eq!(parts(), 1);
    drop(two);
    assert_eq!(parts(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thousands_can_watch() {
    let store = in_memory();
    let watchers: Vec<_> = (0..4000)
        .map(|number| {
            let scope = if number % 2 == 0 { Scope::all() } else { Scope::namespace("a") };
            let mut watch = store.watch(&maps(), &scope, 1).unwrap();
            tokio::spawn(async move {
                for revision in 2..52 {
                    assert_eq!(watch.next().await.unwrap().revision(), revision);
                }
            })
        })
        .collect();
    for number in 0..50 {
        create(&store, "a", &format!("x{number}")).await;
    }
    for watcher in watchers {
        watcher.await.unwrap();
    }
}
