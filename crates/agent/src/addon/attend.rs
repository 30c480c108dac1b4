//! Who sees to it that everything that add-ons need of the cluster is attended to, and that nothing is left of what they do not need any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::names::KEPT_BY_LABEL;
use drover_engine::registration::enrolment::{Enrolment, Home, Imprint, Place};
use drover_runtime::{
    backoff::Backoff,
    informer::{Freshness, Informer},
    pace::answered,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Secret};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Preconditions},
    runtime::watcher,
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

use super::{
    Post, Wanted,
    keep::{Keeping, Trade},
    lease::LeaseWatch,
};
use crate::Clusters;

/// How long what could not be cleared waits.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));
/// After how many seconds the watch of a Lease is begun anew: before the last renewal that was seen is so old that it tells against the add-on.
const LEASE_WATCH: u32 = 120;

/// Who attends.
pub(crate) struct Attending {
    pub(crate) trade: Trade,
    pub(crate) clusters: Clusters,
    /// What is written into Secrets, on each of the clusters.
    pub(crate) imprints: BTreeMap<Home, Imprint>,
}

/// Somebody who keeps a Secret.
struct Kept {
    enrolment: Enrolment,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Kept {
    async fn stop(self) {
        self.end.cancel();
        if self.task.await.is_err() {
            warn!(addon = self.enrolment.addon, "this is a bug: who kept the credentials of an add-on panicked");
        }
    }
}

/// Secrets that may be left of add-ons that do not need them any more.
struct Leftovers {
    places: BTreeSet<Place>,
    /// The clusters on which nobody has looked yet for what former lives have left.
    unlisted: BTreeSet<Home>,
}

impl Leftovers {
    /// Whether something is left to do at the moment, for who knows what is wanted.
    fn is_clear(&self, wanted: &Wanted) -> bool {
        self.places.is_empty() && (self.unlisted.is_empty() || !wanted.is_whole)
    }
}

impl Attending {
    /// Attends until the end.
    pub(crate) async fn run(self, end: CancellationToken) {
        let mut news = self.trade.roster.read().wanted();
        let mut keeping = BTreeMap::<Place, Kept>::new();
        let mut posts = BTreeMap::<Post, AbortOnDropHandle<()>>::new();
        let mut leftovers = Leftovers { places: BTreeSet::new(), unlisted: self.imprints.keys().copied().collect() };
        let mut failures = 0;
        while !end.is_cancelled() {
            let Some(wanted) = news.borrow_and_update().clone() else {
                end.run_until_cancelled(news.changed()).await;
                continue;
            };
            leftovers.places.extend(self.keep(&mut keeping, &wanted).await);
            self.watch(&mut posts, &wanted);
            end.run_until_cancelled(self.clear(&mut leftovers, &wanted)).await;
            let is_clear = leftovers.is_clear(&wanted);
            tokio::select! {
                () = end.cancelled() => {}
                _ = news.changed() => {}
                () = self.trade.clock.sleep(RETRY_BACKOFF.delay(failures)), if !is_clear => {}
            }
            failures = if is_clear { 0 } else { failures + 1 };
        }
        for (_, kept) in keeping {
            kept.stop().await;
        }
    }

    /// Has every Secret that is wanted kept, and no other. Returns where there may be one now that is not wanted.
    async fn keep(&self, keeping: &mut BTreeMap<Place, Kept>, wanted: &Wanted) -> BTreeSet<Place> {
        let is_wanted = |place: &Place, kept: &Kept| wanted.enrolments.get(place) == Some(&kept.enrolment);
        let unwanted: Vec<_> = keeping.extract_if(.., |place, kept| !is_wanted(place, kept)).collect();
        let mut left = BTreeSet::new();
        for (place, kept) in unwanted {
            kept.stop().await;
            left.insert(place);
        }
        for (place, enrolment) in &wanted.enrolments {
            keeping.entry(place.clone()).or_insert_with(|| self.start(place, enrolment));
        }
        left
    }

    fn start(&self, place: &Place, enrolment: &Enrolment) -> Kept {
        let end = CancellationToken::new();
        let keeping = Keeping {
            trade: self.trade.clone(),
            imprint: self.imprints[&place.home].clone(),
            home: self.clusters.at(place.home).clone(),
            place: place.clone(),
            enrolment: enrolment.clone(),
        };
        let task = tokio::spawn(keeping.run(end.clone()));
        Kept { enrolment: enrolment.clone(), end, task }
    }

    /// Has every Lease watched that tells of an add-on, and no other.
    fn watch(&self, posts: &mut BTreeMap<Post, AbortOnDropHandle<()>>, wanted: &Wanted) {
        posts.retain(|post, _| wanted.posts.get(&post.addon) == Some(post));
        for post in wanted.posts.values() {
            posts.entry(post.clone()).or_insert_with(|| {
                let only = watcher::Config::default().fields(&format!("metadata.name={}", post.addon));
                let home = self.clusters.at(post.home).clone();
                let freshness = Freshness::default();
                let informer = Informer::<Lease>::new(home, only.timeout(LEASE_WATCH), &freshness, &self.trade.metrics);
                let watch = LeaseWatch::new(self.trade.roster.clone(), post.clone());
                AbortOnDropHandle::new(tokio::spawn(informer.within(&post.namespace).run(watch)))
            });
        }
    }

    /// Removes the Secrets that nobody wants any more, those of a former life among them. What can not be removed stays in the list.
    async fn clear(&self, leftovers: &mut Leftovers, wanted: &Wanted) {
        let is_left = |place: &Place| !wanted.enrolments.contains_key(place);
        // An add-on that can not be read at the moment may want any of them.
        for home in leftovers.unlisted.clone().into_iter().filter(|_| wanted.is_whole) {
            match self.ours(home).await {
                Ok(places) => {
                    leftovers.places.extend(places);
                    leftovers.unlisted.remove(&home);
                }
                Err(error) => {
                    warn!(%error, "it is not known what former add-ons have left, and will be looked for again");
                }
            }
        }
        leftovers.places.retain(is_left);
        for place in leftovers.places.clone() {
            match self.remove(&place).await {
                Ok(()) => drop(leftovers.places.remove(&place)),
                Err(error) => {
                    warn!(secret = %place, %error, "credentials that nobody wants could not be removed, and it will be tried again");
                }
            }
        }
    }

    /// The Secrets on a cluster that this agent keeps.
    async fn ours(&self, home: Home) -> Result<Vec<Place>, kube::Error> {
        let secrets = Api::<Secret>::all(self.clusters.at(home).clone());
        let ours = ListParams::default().labels(&format!("{KEPT_BY_LABEL}={}", self.imprints[&home].kept_by));
        let found = answered(&self.trade.clock, secrets.list_metadata(&ours)).await?;
        let place = |namespace: Option<String>, name| Place { home, namespace: namespace.unwrap_or_default(), name };
        Ok(found.iter().map(|secret| place(secret.namespace(), secret.name_any())).collect())
    }

    /// Removes a Secret, if it is this agent's.
    async fn remove(&self, place: &Place) -> Result<(), kube::Error> {
        let clock = &self.trade.clock;
        let secrets = Api::<Secret>::namespaced(self.clusters.at(place.home).clone(), &place.namespace);
        let Some(found) = answered(clock, secrets.get_metadata_opt(&place.name)).await? else { return Ok(()) };
        if found.labels().get(KEPT_BY_LABEL) != Some(&self.imprints[&place.home].kept_by) {
            return Ok(());
        }
        let this = Preconditions { uid: found.uid(), resource_version: found.resource_version() };
        let this = DeleteParams::default().preconditions(this);
        match answered(clock, secrets.delete(&place.name, &this)).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => {
                deleted?;
                info!(secret = %place, "credentials that nobody wants any more are removed");
                Ok(())
            }
        }
    }
}
