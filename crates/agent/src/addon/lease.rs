//! The Lease by which an add-on's agent shows that it is alive.

use std::sync::atomic::{AtomicBool, Ordering};

use drover_engine::registration::health::Lease as Seen;
use drover_runtime::{
    cache::SharedCache,
    informer::{Observer, Sighting},
};
use k8s_openapi::api::coordination::v1::Lease;

use super::{Post, Roster};

/// Who watches one Lease.
pub(super) struct LeaseWatch {
    pub(super) roster: SharedCache<Roster>,
    pub(super) post: Post,
    /// Whether it was there since everything was last listed.
    was_listed: AtomicBool,
}

impl LeaseWatch {
    pub(super) fn new(roster: SharedCache<Roster>, post: Post) -> Self {
        Self { roster, post, was_listed: AtomicBool::new(false) }
    }

    fn saw(&self, lease: impl Into<Option<Seen>>) {
        let lease = lease.into();
        self.roster.update(|roster, queue| roster.saw(&self.post, lease, queue));
    }
}

impl Observer<Lease> for LeaseWatch {
    fn observe(&self, sighting: Sighting<Lease>) {
        match sighting {
            Sighting::ListBegins => self.was_listed.store(false, Ordering::Relaxed),
            Sighting::Object(lease) => {
                self.was_listed.store(true, Ordering::Relaxed);
                let renewed = lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0);
                self.saw(Seen::Renewed(renewed));
            }
            Sighting::Damaged(_) => self.was_listed.store(true, Ordering::Relaxed),
            Sighting::Gone(_) => self.saw(Seen::Missing),
            Sighting::ListEnds if !self.was_listed.load(Ordering::Relaxed) => self.saw(Seen::Missing),
            // Who can not look does not know whether it is renewed.
            Sighting::Broken => self.saw(None),
            Sighting::ListEnds | Sighting::Refused(_) => {}
        }
    }
}
