//! What is written is there again.

use std::{fs, path::Path};

use super::{disk::Disk, *};
use crate::store::{OpenError, Stored};

fn open(folder: &Path) -> Result<Store, OpenError> {
    Store::open(&Journal::Folder(folder.to_owned()), Keep::default(), still())
}

fn all(store: &Store) -> Vec<Stored> {
    store.list(&maps(), &Scope::all(), None, None).unwrap().items
}

#[tokio::test]
async fn objects_and_revisions_survive() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made/on/demand");
    let store = open(&folder).unwrap();
    for name in ["x", "y", "z"] {
        create(&store, "a", name).await;
    }
    store.update(key("a", "x"), 2, object("new")).await.unwrap();
    // What came last is gone, and its revision must not come again.
    store.delete(key("a", "z"), 4, object("z")).await.unwrap();
    let before = all(&store);
    store.close().await;
    assert_eq!(store.create(key("a", "q"), object(1)).await, Err(WriteError::Closed));
    drop(store);

    let store = open(&folder).unwrap();
    assert_eq!((all(&store), store.revision()), (before, 6));
    assert_eq!(store.get(&key("a", "x")).unwrap().labels()["color"], "red");
    assert_eq!(create(&store, "a", "z").await, 7);
    store.close().await;
}

#[tokio::test]
async fn who_has_seen_everything_can_follow_after_a_restart() {
    let disk = Disk::default();
    let store = disk.open(Keep::default()).unwrap();
    create(&store, "a", "x").await;
    store.create(Key::new(&Resource::new("", "pods"), None, "p"), object(1)).await.unwrap();
    store.close().await;
    let store = disk.open(Keep::default()).unwrap();
    let mut watch = store.watch(&maps(), &Scope::all(), 2).unwrap();
    create(&store, "a", "y").await;
    assert_eq!(watch.next().await.unwrap().revision(), 4);
    assert_eq!(store.watch(&maps(), &Scope::all(), 1).err(), Some(TooOld { asked: 1, oldest: 2 }));
}

#[tokio::test]
async fn a_folder_is_for_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let Err(OpenError::InUse(path)) = open(folder.path()) else { panic!("both are open") };
    assert_eq!(path, folder.path());
    store.close().await;
    open(folder.path()).unwrap().close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap().path().join("store");
    open(&folder).unwrap().close().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("store.redb"))), (0o700, 0o600));
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_folder_that_can_not_be_used_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    assert!(matches!(open(&path), Err(OpenError::Unusable { .. })));
}

/// The bytes of a store with some objects that was closed in order.
async fn written() -> Vec<u8> {
    let disk = Disk::default();
    let store = disk.open(Keep::default()).unwrap();
    for number in 0..50 {
        store.create(key("a", &format!("x{number}")), object("content".repeat(100))).await.unwrap();
    }
    store.close().await;
    disk.crash(disk.steps(), u64::MAX)
}

#[tokio::test]
async fn a_damaged_file_is_said_to_be() {
    let good = written().await;
    let text = good.windows(7).position(|window| window == b"content").unwrap();
    let damages: [(&str, Vec<u8>); 4] = [
        ("no database", b"hello, this is some text that is long enough to be something".repeat(100)),
        ("cut off", good[..good.len() / 2].to_vec()),
        ("its beginning is lost", [vec![0; 4096], good[4096..].to_vec()].concat()),
        ("an object is not what it was", [&good[..text], b"CONTENT", &good[text + 7..]].concat()),
    ];
    for (damage, bytes) in damages {
        let Err(error) = Disk::of(bytes).open(Keep::default()) else { panic!("{damage}: it opens") };
        assert!(matches!(error, OpenError::Damaged { .. }), "{damage}: {error}");
    }
}

/// Whatever happens to a file: nobody is shown anything that was not written.
#[tokio::test]
async fn a_file_with_wrong_bytes_is_what_it_was_or_said_to_be_damaged() {
    let good = written().await;
    let expected = all(&Disk::of(good.clone()).open(Keep::default()).unwrap());
    let used: Vec<_> = good.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(at, _)| at).collect();
    for at in (0..32).chain((32..used.len()).step_by(used.len() / 64)).map(|number| used[number]) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        match Disk::of(bytes).open(Keep::default()) {
            Ok(store) => assert_eq!((all(&store), store.revision()), (expected.clone(), 51), "byte {at}"),
            Err(OpenError::Damaged { .. } | OpenError::Unusable { .. }) => {}
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}

#[tokio::test]
async fn a_file_of_another_format_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).unwrap().close().await;
    let database = redb::Database::open(folder.path().join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let about: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("about");
    transaction.open_table(about).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(open(folder.path()), Err(OpenError::OtherFormat { format: 2, .. })));
}

#[tokio::test]
async fn nothing_is_visible_before_it_is_safe() {
    let disk = Disk::default();
    let store = disk.open(Keep::default()).unwrap();
    let (_, mut watch) = store.start(&maps(), &Scope::all());
    disk.hold(true);
    let other = store.clone();
    let made = tokio::spawn(async move { create(&other, "a", "x").await });
    let soon = Duration::from_millis(50);
    assert!(tokio::time::timeout(soon, watch.next()).await.is_err());
    assert!(!made.is_finished());
    assert_eq!((store.revision(), store.get(&key("a", "x"))), (1, None));
    disk.hold(false);
    assert_eq!(made.await.unwrap(), 2);
    assert_eq!(watch.next().await.unwrap().revision(), 2);
}

#[tokio::test]
async fn what_waits_is_made_safe_together() {
    let disk = Disk::default();
    let store = disk.open(Keep::default()).unwrap();
    disk.hold(true);
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { create(&store, "a", &format!("x{number}")).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = disk.steps();
    disk.hold(false);
    for task in tasks {
        task.await.unwrap();
    }
    // The first one, and all the others.
    assert!(disk.syncs_since(before) <= 4, "{} syncs", disk.syncs_since(before));
}

#[tokio::test]
async fn what_a_full_disk_does_not_take_did_not_happen() {
    let disk = Disk::default();
    let store = disk.open(Keep::default()).unwrap();
    create(&store, "a", "x").await;
    let (_, mut watch) = store.start(&maps(), &Scope::all());
    disk.fill();
    for name in ["y", "z"] {
        let answer = store.create(key("a", name), object("y".repeat(10_000))).await;
        assert!(matches!(answer, Err(WriteError::Unsafe(_))), "{answer:?}");
    }
    assert_eq!(
        (names(&store.list(&maps(), &Scope::all(), None, None).unwrap()), store.revision()),
        (vec!["a/x".to_owned()], 2)
    );
    assert_eq!(watch.caught_up(), Some(2));
}

#[tokio::test]
async fn a_file_can_be_made_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let size = || fs::metadata(folder.path().join("store.redb")).unwrap().len();
    let long = "long".repeat(100_000);
    for number in 0..20 {
        store.create(key("a", &format!("x{number}")), object(long.clone())).await.unwrap();
    }
    let large = size();
    store.drop_resource(maps()).await.unwrap();
    create(&store, "a", "y").await;
    store.compact_file().await.unwrap();
    assert!(size() * 2 < large, "{} of {large}", size());
    assert_eq!(create(&store, "a", "z").await, 43);
    store.close().await;
    assert_eq!(all(&open(folder.path()).unwrap()).len(), 2);
}

#[tokio::test]
async fn a_file_that_is_mostly_air_is_made_smaller_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let size = || fs::metadata(folder.path().join("store.redb")).unwrap().len() >> 20;
    let store = open(folder.path()).unwrap();
    let long = "long".repeat(250_000);
    for number in 0..24 {
        store.create(key("a", &format!("x{number}")), object(long.clone())).await.unwrap();
    }
    store.close().await;
    let store = open(folder.path()).unwrap();
    assert!(size() >= 24, "{} MB: what is needed is kept", size());
    store.drop_resource(maps()).await.unwrap();
    store.close().await;
    let store = open(folder.path()).unwrap();
    assert!(size() < 8, "{} MB", size());
    assert_eq!(store.revision(), 49);
    store.close().await;
}
