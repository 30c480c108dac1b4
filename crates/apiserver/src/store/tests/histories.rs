//! Random histories: whatever is written, listed, watched, forgotten and lost, everybody sees what a plain log says.

mod model;

use proptest::{collection::vec, prelude::*, sample::Index};

use super::{disk::Disk, *};
use crate::store::{Change, Stored, Watch, WatchEnd};
use model::{Entry, Model};

/// A change of one object.
#[derive(Clone, Debug)]
enum Write {
    Create(Key, u8),
    /// Of the revision that is there, or of another.
    Update(Key, bool, u8),
    Delete(Key, bool, u8),
}

#[derive(Clone, Debug)]
enum Step {
    /// All at the same time.
    Write(Vec<Write>),
    Drop(Resource),
    Watch(Resource, Scope, Index),
    Start(Resource, Scope),
    Read(Index, usize),
    List(Resource, Scope, usize),
    Continue(Index, usize),
    Compact(Option<Resource>, Index),
    Reopen,
    /// The power fails while the last changes are written.
    Crash(Index, u64),
}

fn resource() -> impl Strategy<Value = Resource> {
    prop_oneof![Just(maps()), Just(Resource::new("apps", "things"))]
}

fn namespace() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("a-b"), Just("b")]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("x"), Just("y"), Just("x-y")]
}

fn any_key() -> impl Strategy<Value = Key> {
    (resource(), namespace(), name()).prop_map(|(resource, namespace, name)| Key::new(&resource, Some(namespace), name))
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        Just(Scope::all()),
        namespace().prop_map(Scope::namespace),
        (namespace(), name()).prop_map(|(namespace, name)| Scope::object(Some(namespace), name)),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let right = || prop::bool::weighted(0.9);
    prop_oneof![
        3 => (any_key(), 0..3_u8).prop_map(|(key, content)| Write::Create(key, content)),
        3 => (any_key(), right(), 0..3_u8).prop_map(|(key, right, content)| Write::Update(key, right, content)),
        2 => (any_key(), right(), 0..3_u8).prop_map(|(key, right, content)| Write::Delete(key, right, content)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        12 => vec(write(), 1..6).prop_map(Step::Write),
        1 => resource().prop_map(Step::Drop),
        3 => (resource(), scope(), index()).prop_map(|(resource, scope, from)| Step::Watch(resource, scope, from)),
        2 => (resource(), scope()).prop_map(|(resource, scope)| Step::Start(resource, scope)),
        6 => (index(), 1..4_usize).prop_map(|(watch, limit)| Step::Read(watch, limit)),
        2 => (resource(), scope(), 1..4_usize).prop_map(|(resource, scope, limit)| Step::List(resource, scope, limit)),
        4 => (index(), 1..4_usize).prop_map(|(list, limit)| Step::Continue(list, limit)),
        1 => (prop::option::of(resource()), index()).prop_map(|(resource, at)| Step::Compact(resource, at)),
        1 => Just(Step::Reopen),
        1 => (index(), any::<u64>()).prop_map(|(at, chance)| Step::Crash(at, chance)),
    ]
}

fn content(of: u8) -> Value {
    object(of)
}

/// Somebody who watches, and what they have to see.
struct Watcher {
    watch: Watch,
    resource: Resource,
    scope: Scope,
    place: u64,
    /// The revision at which their resource ended.
    ended: Option<u64>,
}

/// A list that goes on, and what is still to come.
struct Listing {
    resource: Resource,
    scope: Scope,
    next: Continue,
    rest: Vec<Stored>,
}

struct World {
    disk: Option<Disk>,
    keep: Keep,
    store: Store,
    model: Model,
    watchers: Vec<Watcher>,
    listings: Vec<Listing>,
    /// How far the disk and the model were before the last changes.
    before: (usize, u64),
}

impl World {
    fn new(on_disk: bool, keep: Keep) -> Self {
        let disk = on_disk.then(Disk::default);
        let open = |disk: &Disk| disk.open(keep).unwrap();
        let in_memory = || Store::open(&Journal::Memory, keep, still()).unwrap();
        let store = disk.as_ref().map_or_else(in_memory, open);
        let before = (disk.as_ref().map_or(0, Disk::steps), store.revision());
        Self { disk, keep, store, model: Model::new(), watchers: Vec::new(), listings: Vec::new(), before }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Write(writes) => self.write(writes).await,
            Step::Drop(resource) => self.drop_resource(&resource).await,
            Step::Watch(resource, scope, from) => self.watch(resource, scope, from.index(self.model.next()) as u64),
            Step::Start(resource, scope) => {
                let (objects, watch) = self.store.start(&resource, &scope);
                assert_eq!(objects, self.model.list(&resource, &scope, self.model.revision()));
                let place = self.model.revision();
                self.watchers.push(Watcher { watch, resource, scope, place, ended: None });
            }
            Step::Read(watcher, limit) if !self.watchers.is_empty() => {
                self.read(watcher.index(self.watchers.len()), limit).await;
            }
            Step::List(resource, scope, limit) => {
                let next = Continue { revision: self.model.revision(), after: String::new() };
                let rest = self.model.list(&resource, &scope, next.revision);
                self.page(Listing { resource, scope, next, rest }, limit, true);
            }
            Step::Continue(listing, limit) if !self.listings.is_empty() => {
                let listing = self.listings.swap_remove(listing.index(self.listings.len()));
                self.page(listing, limit, false);
            }
            Step::Compact(resource, at) => self.store.compact(resource.as_ref(), at.index(self.model.next()) as u64),
            Step::Reopen => self.reopen(None).await,
            Step::Crash(at, chance) => self.reopen(Some((at, chance))).await,
            Step::Read(..) | Step::Continue(..) => {}
        }
        assert_eq!(self.store.revision(), self.model.revision());
    }

    fn mark(&mut self) {
        self.before = (self.disk.as_ref().map_or(0, Disk::steps), self.model.revision());
    }

    async fn write(&mut self, writes: Vec<Write>) {
        self.mark();
        let is_alone = writes.len() == 1;
        let tasks: Vec<_> = writes
            .into_iter()
            .map(|write| (self.model.expect(&write), tokio::spawn(perform(self.store.clone(), self.model.aim(write)))))
            .collect();
        let mut entries = Vec::new();
        for (expected, task) in tasks {
            let (entry, answer) = task.await.unwrap();
            if is_alone {
                assert_eq!(answer.as_ref().err(), expected.as_ref());
            }
            entries.extend(answer.ok().map(|object| Entry { object, ..entry }));
        }
        // Those that changed nothing have a revision of before.
        entries.retain(|entry| entry.object.revision() > self.before.1);
        entries.sort_by_key(|entry| entry.object.revision());
        for entry in entries {
            self.model.append(entry);
        }
    }

    async fn drop_resource(&mut self, resource: &Resource) {
        self.mark();
        let gone = self.model.list(resource, &Scope::all(), self.model.revision());
        let revision = self.store.drop_resource(resource.clone()).await.unwrap();
        assert_eq!(revision, self.model.revision() + gone.len() as u64);
        for object in gone {
            self.model.append_end(resource, &object);
        }
        for watcher in self.watchers.iter_mut().filter(|watcher| watcher.resource == *resource) {
            watcher.ended.get_or_insert(revision);
        }
    }

    fn watch(&mut self, resource: Resource, scope: Scope, place: u64) {
        match self.store.watch(&resource, &scope, place) {
            Ok(watch) => self.watchers.push(Watcher { watch, resource, scope, place, ended: None }),
            // Why it is forgotten is tested elsewhere.
            Err(error) => assert!(error.asked == place && error.oldest > place),
        }
    }

    async fn read(&mut self, number: usize, limit: usize) {
        let watcher = &mut self.watchers[number];
        let last = watcher.ended.unwrap_or(u64::MAX);
        let expected = self.model.events(&watcher.resource, &watcher.scope, watcher.place, last);
        let caught_up = watcher.watch.caught_up();
        let answer = tokio::time::timeout(Duration::ZERO, watcher.watch.next_batch(limit)).await;
        let Ok(answer) = answer else {
            assert!(expected.is_empty() && watcher.ended.is_none());
            assert_eq!(caught_up, Some(self.model.revision().max(watcher.place)));
            watcher.place = self.model.revision().max(watcher.place);
            return;
        };
        match answer {
            Ok(events) => {
                let expected: Vec<_> = expected.into_iter().take(limit).collect();
                let seen = events.iter().map(|event| (event.change, event.object.clone(), event.old.clone()));
                assert_eq!(seen.collect::<Vec<_>>(), expected);
                assert_eq!(caught_up, None);
                watcher.place = events.last().unwrap().revision();
            }
            Err(WatchEnd::TooOld(error)) => {
                // It is told so only if it did miss something: an event, or the end of the resource.
                let missed = expected.iter().any(|(_, object, _)| object.revision() <= error.oldest);
                assert!(missed || watcher.ended.is_some_and(|ended| ended < error.oldest));
                self.watchers.swap_remove(number);
            }
            Err(WatchEnd::ResourceGone) => {
                assert!(expected.is_empty() && watcher.ended.is_some());
                self.watchers.swap_remove(number);
            }
        }
    }

    fn page(&mut self, mut listing: Listing, limit: usize, is_first: bool) {
        let from = (!is_first).then_some(&listing.next);
        match self.store.list(&listing.resource, &listing.scope, from, Some(limit)) {
            Ok(page) => {
                let rest = listing.rest.split_off(limit.min(listing.rest.len()));
                assert_eq!((page.items, page.remaining), (listing.rest, rest.len()));
                assert_eq!((page.revision, page.next.is_some()), (listing.next.revision, !rest.is_empty()));
                self.listings.extend(page.next.map(|next| Listing { next, rest, ..listing }));
            }
            Err(error) => {
                assert!(!is_first && matches!(error, ListError::TooOld(error) if error.oldest > listing.next.revision));
            }
        }
    }

    /// Closes the store in order, or leaves of the disk what the power left of it, and opens it again.
    async fn reopen(&mut self, crash: Option<(Index, u64)>) {
        let Some(disk) = &self.disk else { return };
        self.watchers.clear();
        self.listings.clear();
        let (steps, durable) = self.before;
        let bytes = crash.map(|(at, chance)| disk.crash(steps + at.index(disk.steps() - steps + 1), chance));
        self.store.close().await;
        let disk = Disk::of(bytes.unwrap_or_else(|| disk.crash(disk.steps(), 0)));
        self.store = disk.open(self.keep).unwrap();
        let revision = self.store.revision();
        assert!(revision >= durable, "{revision} is before {durable}, which somebody has seen");
        self.model.lose_after(revision);
        self.disk = Some(disk);
        self.check_all();
        self.mark();
    }

    fn check_all(&self) {
        for resource in [maps(), Resource::new("apps", "things")] {
            let page = self.store.list(&resource, &Scope::all(), None, None).unwrap();
            assert_eq!(page.items, self.model.list(&resource, &Scope::all(), self.model.revision()));
        }
    }

    /// Everybody reads to the end.
    async fn finish(mut self) {
        while let Some(last) = self.watchers.len().checked_sub(1) {
            let place = self.watchers[last].place;
            self.read(last, 2).await;
            if self.watchers.get(last).is_some_and(|watcher| {
                watcher.place == place || watcher.ended.is_none() && watcher.place == self.model.revision()
            }) {
                self.watchers.truncate(last);
            }
        }
        self.check_all();
    }
}

async fn perform(store: Store, (entry_key, aim): (Key, model::Aim)) -> (Entry, Result<Stored, WriteError>) {
    let key = entry_key.clone();
    let (change, answer) = match aim {
        model::Aim::Create(value) => (Change::Added, store.create(key, value).await),
        model::Aim::Update(revision, value) => (Change::Modified, store.update(key, revision, value).await),
        model::Aim::Delete(revision, value) => (Change::Deleted, store.delete(key, revision, value).await),
    };
    let object = answer.as_ref().ok().cloned().unwrap_or_else(Model::nothing);
    (Entry { key: entry_key, change, object }, answer)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn everybody_sees_what_happened(on_disk: bool, is_forgetful: bool, steps in vec(step(), 1..60)) {
        let keep = if is_forgetful { Keep { bytes: 4000, ..Keep::default() } } else { Keep::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(on_disk, keep);
            for step in steps {
                world.take(step).await;
            }
            world.finish().await;
        });
    }
}
