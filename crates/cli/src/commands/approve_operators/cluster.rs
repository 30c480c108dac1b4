//! What a cluster has of operators, kept up to date by watching.

use std::{fmt::Debug, sync::Arc};

use drover_api::olm::{ClusterServiceVersion, InstallPlan, Subscription};
use drover_engine::upgrade::approval::{Decision, Facts, Targets, Wish, decide, pin};
use drover_runtime::{
    clock::Clock,
    informer::{Freshness, Informer, Observer, Refusal, Sighting},
    metrics::Metrics,
    store::{ObjectKey, Store},
};
use kube::{Client, CustomResourceExt, Resource, runtime::watcher};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::PAUSE;

/// The Operator Lifecycle Manager copies each version into every namespace that its operator watches. These copies say nothing of their own, and may be thousands.
const NO_COPIES: &str = "!olm.copiedFrom";

/// Why operators can not be watched: the resource that the server refuses.
pub(super) enum Refused {
    /// The server knows no such resource.
    NotServed(&'static str),
    /// We may not read it.
    Forbidden(&'static str),
}

/// What a cluster has of operators.
pub(super) struct Cluster {
    view: View,
    freshness: Freshness,
    clock: Clock,
}

impl Cluster {
    pub(super) fn new(clock: Clock) -> Self {
        Self { view: View::default(), freshness: Freshness::default(), clock }
    }

    /// Keeps up to date until the server refuses.
    pub(super) async fn watch(&self, client: &Client) -> Refused {
        let all = watcher::Config::default;
        tokio::select! {
            refused = self.follow::<Subscription>(client, all()) => refused,
            refused = self.follow::<InstallPlan>(client, all()) => refused,
            refused = self.follow::<ClusterServiceVersion>(client, all().labels(NO_COPIES)) => refused,
        }
    }

    async fn follow<K>(&self, client: &Client, config: watcher::Config) -> Refused
    where
        K: Resource<DynamicType = ()> + CustomResourceExt + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        Stores: Keeps<K>,
    {
        let informer = Informer::<K>::new(client.clone(), config, &self.freshness, &Metrics::new());
        loop {
            match informer.run_until_refused(&self.view).await {
                Refusal::NoSuchKind => return Refused::NotServed(K::crd_name()),
                Refusal::Forbidden => return Refused::Forbidden(K::crd_name()),
                // It may be on its way up, or have too much to do.
                Refusal::Failing => self.clock.sleep(PAUSE).await,
            }
        }
    }

    /// Waits until everything has been seen once.
    pub(super) async fn is_listed(&self) {
        while !self.view.stores().is_complete() {
            self.changes().await;
        }
    }

    /// Waits until something has changed since this was last waited for.
    pub(super) async fn changes(&self) {
        self.view.0.changed.notified().await;
    }

    /// Lists everything anew.
    pub(super) async fn look_again(&self) {
        self.freshness.renew().await;
    }

    /// Takes note of what became of a plan.
    pub(super) fn has_become(&self, plan: InstallPlan) {
        self.view.stores().plans.objects.apply(plan);
    }

    /// What operators are upgraded to, if that begins now.
    pub(super) fn pin(&self, wish: &Wish) -> Targets {
        pin(wish, &self.view.stores().facts())
    }

    /// What is to be done now.
    pub(super) fn decide(&self, wish: &Wish, targets: &Targets) -> Decision {
        decide(wish, targets, &self.view.stores().facts())
    }
}

/// What the watches see. Clones see the same.
#[derive(Clone, Default)]
struct View(Arc<Seen>);

#[derive(Default)]
struct Seen {
    stores: Mutex<Stores>,
    changed: Notify,
}

impl View {
    fn stores(&self) -> MutexGuard<'_, Stores> {
        self.0.stores.lock()
    }
}

/// The objects of all three kinds.
#[derive(Default)]
struct Stores {
    subscriptions: Shelf<Subscription>,
    plans: Shelf<InstallPlan>,
    versions: Shelf<ClusterServiceVersion>,
}

/// The objects of one kind.
struct Shelf<K> {
    objects: Store<K>,
    /// Whether all have been seen.
    is_listed: bool,
}

impl<K> Default for Shelf<K> {
    fn default() -> Self {
        Self { objects: Store::default(), is_listed: false }
    }
}

impl Stores {
    fn is_complete(&self) -> bool {
        self.subscriptions.is_listed && self.plans.is_listed && self.versions.is_listed
    }

    fn facts(&self) -> Facts<'_> {
        Facts::new(
            self.subscriptions.objects.iter().map(|(_, object)| &**object),
            self.plans.objects.iter().map(|(_, object)| &**object),
            self.versions.objects.iter().map(|(_, object)| &**object),
        )
    }
}

/// Where the objects of a kind are.
trait Keeps<K> {
    fn shelf(&mut self) -> &mut Shelf<K>;
}

impl Keeps<Subscription> for Stores {
    fn shelf(&mut self) -> &mut Shelf<Subscription> {
        &mut self.subscriptions
    }
}

impl Keeps<InstallPlan> for Stores {
    fn shelf(&mut self) -> &mut Shelf<InstallPlan> {
        &mut self.plans
    }
}

impl Keeps<ClusterServiceVersion> for Stores {
    fn shelf(&mut self) -> &mut Shelf<ClusterServiceVersion> {
        &mut self.versions
    }
}

impl<K: Resource> Observer<K> for View
where
    Stores: Keeps<K>,
{
    fn observe(&self, sighting: Sighting<K>) {
        {
            let mut stores = self.stores();
            let shelf = stores.shelf();
            match sighting {
                Sighting::ListBegins => shelf.objects.begin_list(),
                Sighting::Object(object) => drop(shelf.objects.apply(object)),
                Sighting::Damaged(damaged) => {
                    shelf.objects.keep(&ObjectKey::of_meta(&damaged.metadata), damaged.defect);
                }
                Sighting::Gone(last) => drop(shelf.objects.delete(&last)),
                Sighting::ListEnds => {
                    shelf.objects.end_list();
                    shelf.is_listed = true;
                }
                Sighting::Broken | Sighting::Refused(_) => {}
            }
        }
        self.0.changed.notify_one();
    }
}
