//! Keeps one watch for each type of configurations that somebody refers to.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use drover_api::addon::ConfigGroupResource;
use drover_runtime::{
    cache::SharedCache,
    clock::Clock,
    informer::{Informer, Observer, Refusal, Sighting},
    metrics::Metrics,
};
use kube::{
    Client,
    api::{ApiResource, DynamicObject},
    runtime::watcher::DefaultBackoff,
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::{Ticket, Wanted, content::Config, definition::served};
use crate::cache::Cache;

/// After how long it is looked at again whether a type is served and may be read, where nobody tells.
const PATIENCE: Duration = Duration::from_mins(1);

/// Who keeps the watches.
#[derive(Clone)]
pub(crate) struct Watching {
    pub(crate) client: Client,
    pub(crate) cache: SharedCache<Cache>,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Clock,
}

/// A type that is watched.
struct Running {
    ticket: Arc<Ticket>,
    task: AbortOnDropHandle<()>,
}

impl Watching {
    /// Watches what is wanted, for ever.
    pub(crate) async fn run(self) {
        let mut wanted = self.cache.read().configs.wanted();
        let mut running = BTreeMap::new();
        loop {
            let now = wanted.borrow_and_update().clone();
            stop(&mut running, &now).await;
            for (group_resource, ticket) in now {
                running.entry(group_resource.clone()).or_insert_with(|| self.start(group_resource, ticket));
            }
            // It ends with the fleet, which this holds.
            let _ = wanted.changed().await;
        }
    }

    fn start(&self, group_resource: ConfigGroupResource, ticket: Arc<Ticket>) -> Running {
        let watch = TypeWatch { with: self.clone(), group_resource, ticket: Arc::clone(&ticket) };
        Running { ticket, task: AbortOnDropHandle::new(tokio::spawn(watch.run())) }
    }
}

/// Stops what is not wanted any more, and waits until it has ended: no type is ever watched twice.
async fn stop(running: &mut BTreeMap<ConfigGroupResource, Running>, wanted: &Wanted) {
    let is_over = |group_resource: &ConfigGroupResource, running: &mut Running| {
        wanted.get(group_resource).is_none_or(|ticket| !Arc::ptr_eq(ticket, &running.ticket))
    };
    let over: Vec<_> = running.extract_if(.., is_over).collect();
    for (_, Running { task, .. }) in over {
        task.abort();
        let _ = task.await;
    }
}

/// The watch of one type.
struct TypeWatch {
    with: Watching,
    group_resource: ConfigGroupResource,
    ticket: Arc<Ticket>,
}

/// How a type may come to be watched that is not.
enum Hope {
    /// It should be served any moment, so it is asked for again soon, and then less and less often.
    Soon(Duration),
    /// Somebody has to do something.
    Later,
}

impl Observer<DynamicObject> for TypeWatch {
    fn observe(&self, sighting: Sighting<DynamicObject>) {
        // Hashing takes its time, so it is done before others have to wait for the fleet.
        let sighting = sighting.map(|object| Config::store(&self.group_resource, &object));
        self.with.cache.update(|cache, queues| {
            cache.see_config(&self.group_resource, &self.ticket, sighting, queues);
        });
    }
}

impl TypeWatch {
    /// Watches the type as it is served, for ever.
    async fn run(self) {
        let (mut renewal, mut definition) = (self.ticket.member.wanted(), self.ticket.definition.subscribe());
        let mut rests = DefaultBackoff::default();
        let mut soon = || Hope::Soon(rests.next().unwrap_or(PATIENCE));
        let mut last = None;
        loop {
            let list = *renewal.borrow_and_update();
            definition.mark_unchanged();
            let hope = match served(&self.with.client, &self.group_resource).await {
                Ok(Some(resource)) => {
                    if last.replace(resource.clone()).is_some_and(|last| last != resource) {
                        self.with.cache.update(|cache, queues| {
                            cache.start_config_anew(&self.group_resource, &self.ticket, queues);
                        });
                    }
                    match self.follow(&resource, &mut definition).await {
                        None => continue,
                        Some(Refusal::Forbidden) => Hope::Later,
                        Some(Refusal::NoSuchKind | Refusal::Failing) => soon(),
                    }
                }
                Ok(None) => {
                    self.give_up(Refusal::NoSuchKind, list);
                    Hope::Later
                }
                Err(error) => {
                    warn!(type = %self.group_resource, %error, "could not find out how this type of configurations is served");
                    if Refusal::of(&error).is_some() {
                        self.give_up(Refusal::Failing, list);
                    }
                    soon()
                }
            };
            self.rest(hope, &mut renewal, &mut definition).await;
        }
    }

    /// Watches the type as it is served until it is refused, or served otherwise.
    async fn follow(&self, resource: &ApiResource, definition: &mut watch::Receiver<()>) -> Option<Refusal> {
        let Watching { client, metrics, .. } = &self.with;
        let informer = Informer::of(client.clone(), resource, Arc::clone(&self.ticket.member), metrics);
        tokio::select! {
            refusal = informer.run_until_refused(self) => Some(refusal),
            () = self.redefined(resource, definition) => None,
        }
    }

    /// Waits until the type is served otherwise.
    async fn redefined(&self, resource: &ApiResource, definition: &mut watch::Receiver<()>) {
        loop {
            changed(definition).await;
            // Where that can not be found out, the watch itself finds out what has become of it.
            if matches!(served(&self.with.client, &self.group_resource).await, Ok(now) if now.as_ref() != Some(resource))
            {
                return;
            }
        }
    }

    /// Nothing can be known of the type, so that nobody has to wait for it.
    fn give_up(&self, refusal: Refusal, list: u64) {
        self.observe(Sighting::Refused(refusal));
        self.ticket.member.reached(list);
    }

    async fn rest(&self, hope: Hope, renewal: &mut watch::Receiver<u64>, definition: &mut watch::Receiver<()>) {
        let soon = async {
            match hope {
                // A server is waited for as watches wait for it: by the machine's time.
                Hope::Soon(rest) => tokio::time::sleep(rest).await,
                Hope::Later => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed(renewal) => {}
            () = changed(definition) => {}
            () = self.with.clock.sleep(PATIENCE) => {}
            () = soon => {}
        }
    }
}

/// Waits for a change; for ever if there can be none.
async fn changed<T>(what: &mut watch::Receiver<T>) {
    if what.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
