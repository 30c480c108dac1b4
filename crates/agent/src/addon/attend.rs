//! Who sees to it that everything that add-ons need of the cluster is attended to, and that nothing is left of what they do not need any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::names::KEPT_BY_LABEL;
use drover_engine::registration::enrolment::{Enrolment, Home, Place};
use drover_runtime::{
    informer::{Freshness, Informer},
    pace::answered,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Secret};
use kube::{
    Api, Client, ResourceExt as _,
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

/// How long it is waited before something that is left is looked for again: first, and at most.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_mins(5);

/// Who attends.
pub(crate) struct Attending {
    pub(crate) trade: Trade,
    pub(crate) clusters: Clusters,
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

impl Attending {
    /// Attends until the end.
    pub(crate) async fn run(self, end: CancellationToken) {
        let mut news = self.trade.roster.read().wanted();
        let mut keeping = BTreeMap::<Place, Kept>::new();
        let mut posts = BTreeMap::<Post, AbortOnDropHandle<()>>::new();
        let mut rest = FIRST_REST;
        while !end.is_cancelled() {
            let wanted = news.borrow_and_update().clone();
            let is_clear = match &wanted {
                None => true,
                Some(wanted) => {
                    self.keep(&mut keeping, wanted).await;
                    self.watch(&mut posts, wanted);
                    end.run_until_cancelled(self.clear(wanted)).await.unwrap_or(true)
                }
            };
            rest = if is_clear { FIRST_REST } else { (rest * 2).min(LONGEST_REST) };
            tokio::select! {
                () = end.cancelled() => {}
                _ = news.changed() => {}
                () = self.trade.clock.sleep(rest), if !is_clear => {}
            }
        }
        for (_, kept) in keeping {
            kept.stop().await;
        }
    }

    /// Has every Secret that is wanted kept, and no other.
    async fn keep(&self, keeping: &mut BTreeMap<Place, Kept>, wanted: &Wanted) {
        let is_wanted = |place: &Place, kept: &Kept| wanted.enrolments.get(place) == Some(&kept.enrolment);
        let unwanted: Vec<_> = keeping.extract_if(.., |place, kept| !is_wanted(place, kept)).collect();
        for (_, kept) in unwanted {
            kept.stop().await;
        }
        for (place, enrolment) in &wanted.enrolments {
            keeping.entry(place.clone()).or_insert_with(|| self.start(place, enrolment));
        }
    }

    fn start(&self, place: &Place, enrolment: &Enrolment) -> Kept {
        let end = CancellationToken::new();
        let keeping = Keeping {
            trade: self.trade.clone(),
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
                let informer = Informer::<Lease>::new(home, only, &Freshness::default(), &self.trade.metrics);
                let watch = LeaseWatch::new(self.trade.roster.clone(), post.clone());
                AbortOnDropHandle::new(tokio::spawn(informer.within(&post.namespace).run(watch)))
            });
        }
    }

    /// Removes the Secrets that nobody wants any more, those of a former life among them. Whether all are gone.
    async fn clear(&self, wanted: &Wanted) -> bool {
        let mut is_clear = true;
        for home in self.clusters.homes() {
            let names: BTreeSet<_> = wanted.enrolments.keys().filter(|place| place.home == home).collect();
            if let Err(error) = self.clear_at(home, &names).await {
                warn!(%error, "credentials of add-ons that are gone could not be removed, and it will be tried again");
                is_clear = false;
            }
        }
        is_clear
    }

    async fn clear_at(&self, home: Home, wanted: &BTreeSet<&Place>) -> Result<(), kube::Error> {
        let client: &Client = self.clusters.at(home);
        let ours = ListParams::default().labels(&format!("{KEPT_BY_LABEL}={}", self.trade.imprint.kept_by));
        let clock = &self.trade.clock;
        for secret in answered(clock, Api::<Secret>::all(client.clone()).list_metadata(&ours)).await? {
            let namespace = secret.namespace().unwrap_or_default();
            let place = Place { home, namespace, name: secret.name_any() };
            if wanted.contains(&place) {
                continue;
            }
            let this = Preconditions { uid: secret.uid(), resource_version: None };
            let secrets = Api::<Secret>::namespaced(client.clone(), &place.namespace);
            let this = DeleteParams::default().preconditions(this);
            match answered(clock, secrets.delete(&place.name, &this)).await {
                Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
                deleted => drop(deleted?),
            }
            info!(
                namespace = place.namespace,
                secret = place.name,
                "credentials that nobody wants any more are removed"
            );
        }
        Ok(())
    }
}
