//! One watch for each kind, which keeps the fleet up to date.
//!
//! Most kinds are known beforehand, and nothing works without them. Others are known only when somebody mentions them: such a
//! kind may be missing, or kept from us, and nobody waits for it then.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::Arc,
};

use futures_util::{Stream, StreamExt};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, ObjectMeta},
    core::NamespaceResourceScope,
    runtime::{WatchStreamExt, watcher},
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::{
    cache::{SharedCache, Tracks},
    decode::{Damaged, Decoded, RawObject},
    metrics::Metrics,
    store::ObjectKey,
};

/// What tells informers to list everything anew, and tells others when they have.
///
/// A new leader asks for a fresh list before it acts: what it has may be older than what the former leader did.
#[derive(Clone, Debug)]
pub struct Freshness {
    wanted: Arc<watch::Sender<u64>>,
    reached: Arc<watch::Sender<BTreeMap<u64, Reached>>>,
}

/// How far one member is.
#[derive(Clone, Debug)]
struct Reached {
    kind: String,
    /// The number of the fresh list that it has completed, if any.
    list: Option<u64>,
}

impl Default for Freshness {
    fn default() -> Self {
        Self { wanted: Arc::new(watch::Sender::new(0)), reached: Arc::new(watch::Sender::new(BTreeMap::new())) }
    }
}

impl Freshness {
    /// Asks all informers for a fresh list, and waits until each has completed one that it began after this.
    pub async fn renew(&self) {
        self.wanted.send_modify(|list| *list += 1);
        self.complete().await;
    }

    /// Waits until all informers have completed the list that was last asked for.
    pub async fn complete(&self) {
        let wanted = *self.wanted.borrow();
        let mut reached = self.reached.subscribe();
        // The sender is ours, so the wait does not fail.
        let _ = reached.wait_for(|reached| reached.values().all(|member| member.list >= Some(wanted))).await;
    }

    /// The kinds that have not been listed yet.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let reached = self.reached.borrow();
        reached.values().filter(|member| member.list.is_none()).map(|member| member.kind.clone()).collect()
    }

    /// Adds a kind, which from now on has to be waited for, as long as there is what is returned.
    #[must_use]
    pub fn join(&self, kind: &str) -> Member {
        let mut number = 0;
        self.reached.send_modify(|reached| {
            number = reached.last_key_value().map_or(0, |(last, _)| last + 1);
            reached.insert(number, Reached { kind: kind.to_owned(), list: None });
        });
        Member { freshness: self.clone(), number }
    }
}

/// A kind that has to be waited for until this is dropped.
#[derive(Debug)]
pub struct Member {
    freshness: Freshness,
    number: u64,
}

impl Member {
    /// The number of the fresh list that is asked for, and will be.
    #[must_use]
    pub fn wanted(&self) -> watch::Receiver<u64> {
        self.freshness.wanted.subscribe()
    }

    /// Takes note that everything there is of the kind is known as of that list, even if that is nothing.
    pub fn reached(&self, list: u64) {
        self.freshness.reached.send_modify(|reached| {
            if let Some(member) = reached.get_mut(&self.number) {
                member.list = member.list.max(Some(list));
            }
        });
    }

    fn has_reached(&self, list: u64) -> bool {
        self.freshness.reached.borrow().get(&self.number).is_some_and(|member| member.list >= Some(list))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.freshness.reached.send_modify(|reached| {
            reached.remove(&self.number);
        });
    }
}

/// What an informer sees.
#[derive(Debug)]
pub enum Sighting<K> {
    /// All objects are about to be listed.
    ListBegins,
    /// An object, as it is now.
    Object(K),
    /// An object of which some value cannot be parsed.
    Damaged(Box<Damaged<K>>),
    /// An object that is gone, as it last was.
    Gone(Box<ObjectMeta>),
    /// All objects have been listed.
    ListEnds,
    /// The watch broke, and is begun again.
    Broken,
    /// There is nothing to be seen. Only whoever runs [until then](Informer::run_until_refused) is told so.
    Refused(Refusal),
}

impl<K> Sighting<K> {
    /// The same, of objects in another shape.
    pub fn map<T>(self, shape: impl FnOnce(K) -> T) -> Sighting<T> {
        match self {
            Self::ListBegins => Sighting::ListBegins,
            Self::Object(object) => Sighting::Object(shape(object)),
            Self::Damaged(damaged) => Sighting::Damaged(Box::new(damaged.in_shape())),
            Self::Gone(last) => Sighting::Gone(last),
            Self::ListEnds => Sighting::ListEnds,
            Self::Broken => Sighting::Broken,
            Self::Refused(refusal) => Sighting::Refused(refusal),
        }
    }
}

/// Why a kind can not be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server knows no such kind.
    NoSuchKind,
    /// We may not read it.
    Forbidden,
    /// The server says that it can not list it, whatever the cause.
    Failing,
}

impl Refusal {
    /// What an error of the server means for a kind.
    #[must_use]
    pub fn of(error: &kube::Error) -> Option<Self> {
        // Who did not answer has not refused.
        let kube::Error::Api(status) = error else { return None };
        // By the code: the answer for a group that is not served is no status, and has no reason.
        Some(match status.code {
            404 => Self::NoSuchKind,
            403 => Self::Forbidden,
            _ => Self::Failing,
        })
    }
}

/// Somebody who is told what an informer sees.
pub trait Observer<K>: Send + Sync {
    /// Takes note of it.
    fn observe(&self, sighting: Sighting<K>);
}

impl<K, F: Tracks<K>> Observer<K> for SharedCache<F>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    fn observe(&self, sighting: Sighting<K>) {
        match sighting {
            Sighting::ListBegins => self.begin_list::<K>(),
            Sighting::Object(object) => self.apply(object),
            Sighting::Damaged(damaged) => self.apply_damaged(&damaged),
            Sighting::Gone(last) => self.delete::<K>(&last),
            Sighting::ListEnds => self.end_list::<K>(),
            // Until now nothing was seen; nobody tells when the next attempt is through.
            Sighting::Broken => self.sees::<K>(true),
            Sighting::Refused(_) => {}
        }
    }
}

/// Watches a kind. It has to be waited for from the moment that it is made, and works when it is [`run`](Self::run).
pub struct Informer<K> {
    watch: KindWatch,
    trim: fn(&mut K),
    is_meant: fn(&K) -> bool,
    /// The objects that are damaged now.
    damaged: Mutex<BTreeSet<ObjectKey>>,
}

/// The watch of a kind. It is the same code for all kinds: objects are decoded by who observes it.
struct KindWatch {
    client: Client,
    resource: ApiResource,
    is_metadata_only: bool,
    namespace: Option<String>,
    config: watcher::Config,
    member: Arc<Member>,
    metrics: Metrics,
}

/// Whether the watch of a kind ends when the server refuses it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It does not: nothing works without the kind.
    Needed,
    /// It does.
    Optional,
}

impl<K> Informer<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// An informer on all objects of the kind that `config` selects.
    #[must_use]
    pub fn new(client: Client, config: watcher::Config, freshness: &Freshness, metrics: &Metrics) -> Self {
        let mut informer = Self::of(client, &(), Arc::new(freshness.join(&K::kind(&()))), metrics);
        informer.watch.config = config;
        informer
    }

    /// The informer, on the objects of one namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        self.watch.namespace = Some(namespace.to_owned());
        self
    }
}

impl<K> Informer<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// An informer on all objects of a kind that may be known only now. Who waits for it says `member`.
    #[must_use]
    pub fn of(client: Client, kind: &K::DynamicType, member: Arc<Member>, metrics: &Metrics) -> Self {
        let watch = KindWatch {
            client,
            resource: ApiResource::erase::<K>(kind),
            is_metadata_only: K::metadata_api(),
            namespace: None,
            config: watcher::Config::default(),
            member,
            metrics: metrics.clone(),
        };
        Self {
            watch,
            // Who owns which field is of no interest here, and is half of what an object weighs.
            trim: |object| object.managed_fields_mut().clear(),
            is_meant: |_| true,
            damaged: Mutex::default(),
        }
    }

    /// The informer, keeping only objects that are meant, where the server can not select them.
    #[must_use]
    pub fn only(self, is_meant: fn(&K) -> bool) -> Self {
        Self { is_meant, ..self }
    }

    /// The informer, keeping of each object only what `trim` leaves.
    #[must_use]
    pub fn trimmed(self, trim: fn(&mut K)) -> Self {
        Self { trim, ..self }
    }

    /// Keeps somebody up to date for ever.
    pub async fn run(self, observer: impl Observer<K>) {
        self.watch.run(&Decoder { informer: &self, observer: &observer }).await;
    }

    /// Keeps somebody up to date until the server refuses to. The last that is seen is why. Nobody waits for the kind then.
    pub async fn run_until_refused(&self, observer: &impl Observer<K>) -> Refusal {
        self.watch.follow(&Decoder { informer: self, observer }, Need::Optional).await
    }

    /// Hands an object to the observer.
    fn apply(&self, observer: &impl Observer<K>, text: &RawValue) {
        let decoded = match Decoded::<K>::parse(text.get()) {
            Ok(decoded) => decoded,
            Err(error) => {
                warn!(kind = %self.watch.resource.kind, %error, "cannot parse an object, not even its name");
                return;
            }
        };
        let key = ObjectKey::of_meta(decoded.meta());
        match decoded.0 {
            Ok(object) if !(self.is_meant)(&object) => {}
            Ok(mut object) => {
                self.count_damaged(|damaged| damaged.remove(&key));
                (self.trim)(&mut object);
                observer.observe(Sighting::Object(object));
            }
            Err(damaged) if damaged.without_defects().is_some_and(|object| !(self.is_meant)(&object)) => {}
            Err(damaged) => {
                warn!(kind = %self.watch.resource.kind, object = %key, defect = %damaged.defect, "cannot parse an object completely");
                self.count_damaged(|damaged| damaged.insert(key));
                observer.observe(Sighting::Damaged(damaged));
            }
        }
    }

    fn count_damaged<T>(&self, change: impl FnOnce(&mut BTreeSet<ObjectKey>) -> T) {
        let mut damaged = self.damaged.lock();
        let before = damaged.len();
        change(&mut damaged);
        self.watch.metrics.damaged(&self.watch.resource.kind, before, damaged.len());
    }
}

/// Decodes what a watch sees, for an observer of the kind.
struct Decoder<'a, K, O> {
    informer: &'a Informer<K>,
    observer: &'a O,
}

impl<K, O> Observer<Box<RawValue>> for Decoder<'_, K, O>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    O: Observer<K>,
{
    fn observe(&self, sighting: Sighting<Box<RawValue>>) {
        let seen = match sighting {
            Sighting::Object(text) => return self.informer.apply(self.observer, &text),
            Sighting::Damaged(damaged) => Sighting::Damaged(Box::new(damaged.in_shape())),
            Sighting::ListBegins => {
                self.informer.count_damaged(BTreeSet::clear);
                Sighting::ListBegins
            }
            Sighting::Gone(last) => {
                self.informer.count_damaged(|damaged| damaged.remove(&ObjectKey::of_meta(&last)));
                Sighting::Gone(last)
            }
            Sighting::ListEnds => Sighting::ListEnds,
            Sighting::Broken => Sighting::Broken,
            Sighting::Refused(refusal) => Sighting::Refused(refusal),
        };
        self.observer.observe(seen);
    }
}

impl KindWatch {
    async fn run(&self, observer: &dyn Observer<Box<RawValue>>) {
        loop {
            self.follow(observer, Need::Needed).await;
        }
    }

    /// Watches, and lists anew whenever that is asked for.
    async fn follow(&self, observer: &dyn Observer<Box<RawValue>>, need: Need) -> Refusal {
        if self.is_metadata_only {
            self.follow_raw::<true>(observer, need).await
        } else {
            self.follow_raw::<false>(observer, need).await
        }
    }

    async fn follow_raw<const METADATA_ONLY: bool>(
        &self,
        observer: &dyn Observer<Box<RawValue>>,
        need: Need,
    ) -> Refusal {
        let mut wanted = self.member.wanted();
        loop {
            let list = *wanted.borrow_and_update();
            tokio::select! {
                refusal = self.watch::<METADATA_ONLY>(observer, list, need) => return refusal,
                _ = wanted.changed() => debug!(kind = %self.resource.kind, "listing anew"),
            }
        }
    }

    async fn watch<const METADATA_ONLY: bool>(
        &self,
        observer: &dyn Observer<Box<RawValue>>,
        list: u64,
        need: Need,
    ) -> Refusal {
        let mut events = self.events::<METADATA_ONLY>();
        loop {
            let Some(event) = events.next().await else {
                events = self.events::<METADATA_ONLY>();
                continue;
            };
            match event {
                Ok(watcher::Event::Init) => observer.observe(Sighting::ListBegins),
                Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                    observer.observe(Sighting::Object(object.text));
                }
                Ok(watcher::Event::Delete(object)) => {
                    observer.observe(Sighting::Gone(Box::new(object.meta().clone())));
                }
                Ok(watcher::Event::InitDone) => {
                    observer.observe(Sighting::ListEnds);
                    self.member.reached(list);
                }
                Err(error) => {
                    self.metrics.watch_restarted(&self.resource.kind);
                    if let Some(refusal) = self.refusal(&error, list).filter(|_| need == Need::Optional) {
                        debug!(kind = %self.resource.kind, %error, "the kind can not be watched");
                        observer.observe(Sighting::Refused(refusal));
                        self.member.reached(list);
                        return refusal;
                    }
                    observer.observe(Sighting::Broken);
                    warn!(kind = %self.resource.kind, %error, "the watch broke and is begun again");
                }
            }
        }
    }

    fn events<const METADATA_ONLY: bool>(
        &self,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<RawObject<METADATA_ONLY>>>> + Unpin + use<METADATA_ONLY>
    {
        let api: Api<RawObject<METADATA_ONLY>> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.resource),
            None => Api::all_with(self.client.clone(), &self.resource),
        };
        watcher(api, self.config.clone()).default_backoff().boxed()
    }

    /// Whether the server refuses the kind. What was listed once and fails now may well come back by itself.
    fn refusal(&self, error: &watcher::Error, list: u64) -> Option<Refusal> {
        let (watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error)) = error
        else {
            return None;
        };
        Refusal::of(error).filter(|refusal| *refusal != Refusal::Failing || !self.member.has_reached(list))
    }
}
