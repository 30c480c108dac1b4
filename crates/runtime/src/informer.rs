//! One watch for each kind, which keeps the fleet up to date.

use std::{borrow::Cow, fmt::Debug, sync::Arc};

use futures_util::StreamExt;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::ObjectMeta,
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::{
    fleet::{Shared, Tracks},
    metrics::Metrics,
    store::ObjectKey,
};

/// What tells informers to list everything anew, and tells others when they have.
///
/// A new leader asks for a fresh list before it acts: what it has may be older than what the former leader did.
#[derive(Clone, Debug)]
pub struct Freshness {
    wanted: Arc<watch::Sender<u64>>,
    reached: Arc<watch::Sender<Vec<Reached>>>,
}

/// How far one informer is.
#[derive(Clone, Debug)]
struct Reached {
    kind: String,
    /// The number of the fresh list that it has completed, if any.
    list: Option<u64>,
}

impl Default for Freshness {
    fn default() -> Self {
        Self { wanted: Arc::new(watch::Sender::new(0)), reached: Arc::new(watch::Sender::new(Vec::new())) }
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
        let _ = reached.wait_for(|reached| reached.iter().all(|informer| informer.list >= Some(wanted))).await;
    }

    /// The kinds that have not been listed yet.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.reached
            .borrow()
            .iter()
            .filter(|informer| informer.list.is_none())
            .map(|informer| informer.kind.clone())
            .collect()
    }

    /// Adds an informer, which from now on has to be waited for.
    fn join(&self, kind: &str) -> usize {
        let mut index = 0;
        self.reached.send_modify(|reached| {
            index = reached.len();
            reached.push(Reached { kind: kind.to_owned(), list: None });
        });
        index
    }
}

/// Watches a kind. It has to be waited for from the moment that it is made, and works when it is [`run`](Self::run).
#[derive(Debug)]
pub struct Informer<K> {
    api: Api<Guarded<K>>,
    config: watcher::Config,
    trim: fn(&mut K),
    is_meant: fn(&K) -> bool,
    freshness: Freshness,
    index: usize,
    metrics: Metrics,
}

impl<K> Informer<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// An informer on all objects of the kind that `config` selects.
    #[must_use]
    pub fn new(client: Client, config: watcher::Config, freshness: &Freshness, metrics: &Metrics) -> Self {
        let index = freshness.join(&K::kind(&()));
        // Who owns which field is of no interest here, and is half of what an object weighs.
        let trim = |object: &mut K| object.managed_fields_mut().clear();
        Self {
            api: Api::all(client),
            config,
            trim,
            is_meant: |_| true,
            freshness: freshness.clone(),
            index,
            metrics: metrics.clone(),
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

    /// Keeps the fleet up to date for ever.
    pub async fn run<F: Tracks<K>>(self, fleet: Shared<F>) {
        let mut wanted = self.freshness.wanted.subscribe();
        loop {
            let list = *wanted.borrow_and_update();
            tokio::select! {
                () = self.watch(&fleet, list) => {}
                _ = wanted.changed() => debug!(kind = %K::kind(&()), "listing anew"),
            }
        }
    }

    async fn watch<F: Tracks<K>>(&self, fleet: &Shared<F>, list: u64) {
        let mut events = watcher(self.api.clone(), self.config.clone()).default_backoff().boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => fleet.begin_list::<K>(),
                Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => self.apply(fleet, object),
                Ok(watcher::Event::Delete(object)) => fleet.delete::<K>(object.meta()),
                Ok(watcher::Event::InitDone) => {
                    fleet.end_list::<K>();
                    self.freshness.reached.send_modify(|reached| reached[self.index].list = Some(list));
                }
                Err(error) => {
                    // Until now nothing was seen; nobody tells when the next attempt is through.
                    fleet.sees::<K>(true);
                    self.metrics.watch_restarted(&K::kind(&()));
                    warn!(kind = %K::kind(&()), %error, "the watch broke and is begun again");
                }
            }
        }
    }

    /// Takes note of an object. One that can not be read stays as it was last known: that it changed into something
    /// unreadable does not mean that it is gone, and must not stop the watch of all the others.
    fn apply<F: Tracks<K>>(&self, fleet: &Shared<F>, object: Guarded<K>) {
        match object.0.0 {
            Ok(object) if !(self.is_meant)(&object) => {}
            Ok(mut object) => {
                (self.trim)(&mut object);
                fleet.apply(object);
            }
            Err(unreadable) => {
                let key = ObjectKey::of_meta(&unreadable.metadata);
                warn!(kind = %K::kind(&()), object = %key, error = %unreadable.error, "an object can not be read, and is taken to be as it was");
                fleet.keep::<K>(&key);
            }
        }
    }
}

/// An object that may turn out to be unreadable. It is asked for as its kind is: of some, only metadata is.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "K: Resource + DeserializeOwned"))]
struct Guarded<K>(DeserializeGuard<K>);

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }
}
