//! One Secret with the credentials of an add-on's agent, which are got, kept, and renewed in time.

use std::time::Duration;

use drover_api::{
    addon::Subject,
    names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL},
};
use drover_engine::registration::{
    enrolment::{Enrolment, Imprint, Outcome, Place, Proof, Verdict, judge},
    identity,
};
use drover_runtime::{
    backoff::Backoff,
    cache::SharedCache,
    clock::{Clock, Tick},
    informer::{Freshness, Informer},
    metrics::Metrics,
    pace::answered,
};
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{Namespace, Secret, ServiceAccount},
    },
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::{wait::await_condition, watcher},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

use super::{
    Roster,
    drawer::{Drawer, Fresh, kept},
};
use crate::join::{
    MANAGER,
    request::{NotIssued, Wish},
};

/// How long credentials that could not be stored, or are changed again and again, wait.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));
/// So often in a row a Secret is made good at once. Somebody may want it to be otherwise, and go on for ever.
const FREE_REPAIRS: u32 = 3;
/// How long a namespace may be missing before that is told: whoever deploys the add-on makes it.
const NAMESPACE_GRACE: Duration = Duration::from_secs(30);

/// What all who keep credentials work with.
#[derive(Clone)]
pub(crate) struct Trade {
    pub(crate) hub: Client,
    pub(crate) roster: SharedCache<Roster>,
    pub(crate) terms: Terms,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
}

/// For how long credentials are asked for; as long as the hub likes, where nothing is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) certificate_seconds: Option<i32>,
    pub(crate) token_seconds: Option<i64>,
}

/// Who keeps one Secret.
pub(super) struct Keeping {
    pub(super) trade: Trade,
    pub(super) imprint: Imprint,
    /// A client of the cluster that the Secret is on.
    pub(super) home: Client,
    pub(super) place: Place,
    pub(super) enrolment: Enrolment,
}

/// Why there are no good credentials in a Secret.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("{0}")]
    NotIssued(#[from] NotIssued),
    #[error("the hub gave no token of the service account {account}: {source}")]
    NoToken { account: String, source: kube::Error },
    #[error("what the hub gave is of no use: {0}")]
    Useless(String),
    #[error("the Secret {0} is not the add-on's: delete it, or call the add-on otherwise")]
    Foreign(Place),
    #[error("there is no namespace {0} on the cluster that the credentials could be kept in")]
    NoNamespace(String),
    #[error("the Secret {place} could not be written: {source}")]
    Unwritten { place: Place, source: kube::Error },
}

/// How it goes on if nothing is heard.
enum Next {
    /// There is something to do at that time.
    At(Timestamp),
    /// Something is tried again then.
    Again(Tick),
    /// There is nothing to do.
    Rest,
}

/// How often something was done lately, whatever came of it.
#[derive(Clone, Copy, Default)]
struct Attempts {
    many: u32,
    last: Option<Tick>,
    /// Before that nothing is done again.
    until: Option<Tick>,
}

impl Attempts {
    /// After one more, which may be followed by another at once or not.
    fn after(self, now: Tick, is_free: bool) -> Self {
        let is_again = self.last.is_some_and(|last| now.since(last) < RETRY_BACKOFF.longest() * 2);
        let many = if is_again { self.many.saturating_add(1) } else { 1 };
        let beyond = if is_free { many.saturating_sub(FREE_REPAIRS) } else { many };
        let until = beyond.checked_sub(1).map(|before| now.after(RETRY_BACKOFF.delay(before)));
        Self { many, last: Some(now), until }
    }
}

impl Keeping {
    /// Keeps it until the end. What is being written is finished.
    pub(super) async fn run(self, end: CancellationToken) {
        let drawer = SharedCache::new(Drawer::default(), ());
        let mut seen = drawer.read().seen();
        let watching = AbortOnDropHandle::new(tokio::spawn(self.informer().run(drawer.clone())));
        let (mut unsaved, mut attempts) = (None, Attempts::default());
        let clock = &self.trade.clock;
        while !end.is_cancelled() {
            seen.mark_unchanged();
            let next = self.look(&drawer, &mut unsaved, &mut attempts, &end).await;
            tokio::select! {
                () = end.cancelled() => {}
                _ = seen.changed() => {}
                () = async {
                    match next {
                        Next::At(time) => clock.sleep_until(time).await,
                        Next::Again(tick) => clock.wait_for(tick).await,
                        Next::Rest => std::future::pending().await,
                    }
                } => {}
            }
        }
        drop(watching);
    }

    fn informer(&self) -> Informer<Secret> {
        let only = watcher::Config::default().fields(&format!("metadata.name={}", self.place.name));
        Informer::new(self.home.clone(), only, &Freshness::default(), &self.trade.metrics).within(&self.place.namespace)
    }

    /// Looks at what is there, and makes it good if it is not.
    async fn look(
        &self,
        drawer: &SharedCache<Drawer>,
        unsaved: &mut Option<Fresh>,
        attempts: &mut Attempts,
        end: &CancellationToken,
    ) -> Next {
        let Some(verdict) = self.judge(drawer) else { return Next::Rest };
        match verdict {
            Verdict::Good { renew, until } => {
                self.note(Outcome::Kept { until });
                return Next::At(renew);
            }
            Verdict::Foreign => {
                self.failed(&NotKept::Foreign(self.place.clone()));
                return Next::Rest;
            }
            _ => {}
        }
        let clock = &self.trade.clock;
        if let Some(until) = attempts.until.filter(|until| clock.tick() < *until) {
            return Next::Again(until);
        }
        let done = self.make_good(&verdict, drawer, unsaved, end).await;
        *attempts = attempts.after(clock.tick(), done.is_ok());
        match done {
            // What was written is looked at at once.
            Ok(()) => Next::Again(clock.tick()),
            Err(error) => {
                self.failed(&error);
                attempts.until.map_or(Next::Rest, Next::Again)
            }
        }
    }

    /// What becomes of what is there, once that is known.
    fn judge(&self, drawer: &SharedCache<Drawer>) -> Option<Verdict> {
        let drawer = drawer.read();
        let kept = drawer.is_known().then(|| drawer.secret().map(kept))?;
        judge(&self.enrolment.proof, kept.as_ref(), &self.imprint, self.trade.clock.now())
    }

    fn failed(&self, error: &NotKept) {
        warn!(addon = self.enrolment.addon, secret = %self.place, %error, "there are no good credentials");
        self.note(Outcome::Failed(error.to_string()));
    }

    fn note(&self, outcome: Outcome) {
        self.trade.roster.update(|roster, queue| roster.note(&self.place, &self.enrolment.addon, outcome, queue));
    }

    /// Gets credentials from the hub where there are none that are good, and writes them. It ends early when it is told to.
    async fn make_good(
        &self,
        verdict: &Verdict,
        drawer: &SharedCache<Drawer>,
        unsaved: &mut Option<Fresh>,
        end: &CancellationToken,
    ) -> Result<(), NotKept> {
        info!(addon = self.enrolment.addon, secret = %self.place, ?verdict, "the credentials are made good");
        let good = match verdict {
            Verdict::Untidy => drawer.read().secret().and_then(|secret| Fresh::of(secret, &self.enrolment.proof)),
            _ => None,
        };
        if good.is_some() {
            *unsaved = good;
        }
        match end.run_until_cancelled(self.get(unsaved)).await {
            Some(got) => got?,
            None => return Ok(()),
        }
        self.save(drawer, unsaved, end).await
    }

    /// Gets credentials from the hub, unless there are some that were not written.
    async fn get(&self, unsaved: &mut Option<Fresh>) -> Result<(), NotKept> {
        if unsaved.as_ref().is_some_and(|fresh| self.check(fresh).is_ok()) {
            return Ok(());
        }
        let fresh = match &self.enrolment.proof {
            Proof::Certificate { signer, subject } => {
                let wish = self.wish(signer, subject);
                Fresh::Certificate(wish.fulfil(self.trade.hub.clone(), &self.trade.clock).await?)
            }
            Proof::Token { account, .. } => Fresh::Token(self.token(account).await?),
            Proof::Awaited => return Ok(()),
        };
        self.check(&fresh)?;
        *unsaved = Some(fresh);
        Ok(())
    }

    /// Makes sure that what was got is what was asked for: it would be asked for again and again otherwise.
    fn check(&self, fresh: &Fresh) -> Result<(), NotKept> {
        let secret = fresh.secret(&self.imprint, &self.place, &self.enrolment.proof);
        match judge(&self.enrolment.proof, Some(&kept(&secret)), &self.imprint, self.trade.clock.now()) {
            Some(Verdict::Useless(flaw)) => Err(NotKept::Useless(flaw.to_string())),
            Some(Verdict::Renew) => Err(NotKept::Useless("it expires too soon".to_owned())),
            Some(Verdict::Good { .. } | Verdict::Untidy | Verdict::Foreign) | None => Ok(()),
        }
    }

    fn wish(&self, signer: &str, subject: &Subject) -> Wish {
        let (cluster, addon) = (&self.imprint.cluster, &self.enrolment.addon);
        let labels = [(CLUSTER_NAME_LABEL, cluster), (ADDON_NAME_LABEL, addon)];
        Wish {
            prefix: format!("addon-{cluster}-{addon}-"),
            labels: labels.map(|(key, value)| (key.to_owned(), value.clone())).into(),
            signer: signer.to_owned(),
            subject: subject.clone(),
            host: Some(identity::host(addon)),
            expiration_seconds: self.trade.terms.certificate_seconds,
        }
    }

    async fn token(&self, account: &str) -> Result<String, NotKept> {
        let failed = |source| NotKept::NoToken { account: account.to_owned(), source };
        let accounts = Api::<ServiceAccount>::namespaced(self.trade.hub.clone(), &self.imprint.cluster);
        let spec =
            TokenRequestSpec { expiration_seconds: self.trade.terms.token_seconds, ..TokenRequestSpec::default() };
        let (params, request) = (PostParams::default(), TokenRequest { spec: Some(spec), ..TokenRequest::default() });
        let asked = accounts.create_token_request(account, &params, &request);
        let answer = answered(&self.trade.clock, asked).await.map_err(failed)?;
        Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
    }

    /// Writes what was got, as soon as there is a namespace for it.
    async fn save(
        &self,
        drawer: &SharedCache<Drawer>,
        unsaved: &mut Option<Fresh>,
        end: &CancellationToken,
    ) -> Result<(), NotKept> {
        let Some(fresh) = unsaved else { return Ok(()) };
        let secret = fresh.secret(&self.imprint, &self.place, &self.enrolment.proof);
        let written = match self.write(&secret).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                end.run_until_cancelled(self.until_there_is_a_namespace()).await;
                self.write(&secret).await
            }
            written => written,
        };
        drawer.apply(written.map_err(|source| NotKept::Unwritten { place: self.place.clone(), source })?);
        *unsaved = None;
        Ok(())
    }

    async fn write(&self, secret: &Secret) -> Result<Secret, kube::Error> {
        let secrets = Api::<Secret>::namespaced(self.home.clone(), &self.place.namespace);
        let (params, wanted) = (PatchParams::apply(MANAGER).force(), Patch::Apply(secret));
        answered(&self.trade.clock, secrets.patch(&self.place.name, &params, &wanted)).await
    }

    /// Waits for the namespace, and says so if that takes long.
    async fn until_there_is_a_namespace(&self) {
        let namespaces = Api::<Namespace>::all(self.home.clone());
        let is_there = |namespace: Option<&Namespace>| namespace.is_some();
        let complain = async {
            self.trade.clock.sleep(NAMESPACE_GRACE).await;
            self.failed(&NotKept::NoNamespace(self.place.namespace.clone()));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            // A watch that can not be begun is no sign of a namespace, but nothing better is to be had.
            _ = await_condition(namespaces, &self.place.namespace, is_there) => {}
            () = complain => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_makes_good_again_and_again_takes_a_rest() {
        let now = Tick::default();
        let rests = |is_free: bool| {
            let mut attempts = Attempts::default();
            let mut rest = || {
                attempts = attempts.after(now, is_free);
                attempts.until.map_or(0, |until| until.since(now).as_secs())
            };
            std::array::from_fn::<_, 6, _>(|_| rest())
        };
        assert_eq!(rests(true), [0, 0, 0, 1, 2, 4]);
        assert_eq!(rests(false), [1, 2, 4, 8, 16, 32]);
        let attempts = (0..20).fold(Attempts::default(), |attempts, _| attempts.after(now, false));
        assert_eq!(attempts.until, Some(now.after(RETRY_BACKOFF.longest())));
        assert_eq!(
            attempts.after(now.after(RETRY_BACKOFF.longest() * 2), true).until,
            None,
            "after a while it is forgotten"
        );
    }
}
