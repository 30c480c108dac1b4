//! One Secret with the credentials of an add-on's agent, which are got, kept, and renewed in time.

use std::{sync::Arc, time::Duration};

use drover_api::{
    addon::Subject,
    names::{ADDON_NAME_LABEL, CLUSTER_NAME_LABEL, KEPT_BY_LABEL},
};
use drover_engine::registration::{
    enrolment::{Enrolment, Outcome, Place, Proof, Verdict, judge},
    identity,
};
use drover_runtime::{
    clock::Clock,
    fleet::Shared,
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
use serde_json::json;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{info, warn};

use super::{
    Roster,
    drawer::{Drawer, Fresh, Imprint, kept},
};
use crate::join::{
    MANAGER,
    request::{NotIssued, Wish},
};

/// How long it is waited before something is tried again: first, and at most.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_mins(5);
/// How long a namespace may be missing before that is told: whoever deploys the add-on makes it.
const NAMESPACE_GRACE: Duration = Duration::from_secs(30);

/// What all who keep credentials work with.
#[derive(Clone)]
pub(crate) struct Trade {
    pub(crate) hub: Client,
    pub(crate) roster: Shared<Roster>,
    pub(crate) imprint: Arc<Imprint>,
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
    #[error("the Secret {secret} could not be written: {source}")]
    Unwritten { secret: String, source: kube::Error },
}

/// How it goes on.
enum Next {
    /// There is nothing to do before that time.
    At(Timestamp),
    /// It failed, and is tried again after a rest.
    Later,
    /// There is nothing to do before something is heard.
    News,
}

impl Keeping {
    /// Keeps it until the end. What is being written is finished.
    pub(super) async fn run(self, end: CancellationToken) {
        let drawer = Shared::new(Drawer::default());
        let mut seen = drawer.read().seen();
        let watching = AbortOnDropHandle::new(tokio::spawn(self.informer().run(drawer.clone())));
        let mut unsaved = None;
        let mut rest = FIRST_REST;
        while !end.is_cancelled() {
            seen.mark_unchanged();
            let wait = match self.look(&drawer, &mut unsaved, &end).await {
                Next::News => None,
                Next::At(time) => {
                    rest = FIRST_REST;
                    Some(time)
                }
                Next::Later => {
                    end.run_until_cancelled(self.trade.clock.sleep(rest)).await;
                    rest = (rest * 2).min(LONGEST_REST);
                    continue;
                }
            };
            tokio::select! {
                () = end.cancelled() => {}
                _ = seen.changed() => {}
                () = self.trade.clock.sleep_until(wait.unwrap_or(Timestamp::MAX)) => {}
            }
        }
        drop(watching);
    }

    fn informer(&self) -> Informer<Secret> {
        let only = watcher::Config::default().fields(&format!("metadata.name={}", self.place.name));
        Informer::new(self.home.clone(), only, &Freshness::default(), &self.trade.metrics).within(&self.place.namespace)
    }

    /// Looks at what is there, and gets what is not.
    async fn look(&self, drawer: &Shared<Drawer>, unsaved: &mut Option<Fresh>, end: &CancellationToken) -> Next {
        let Some(kept) = drawer.read().kept() else { return Next::News };
        let verdict = judge(&self.enrolment.proof, &kept, &self.trade.imprint.hub, self.trade.clock.now());
        match verdict {
            None => return Next::News,
            Some(Verdict::Good { renew, until }) => {
                if !drawer.read().is_marked(&self.trade.imprint.kept_by) {
                    self.mark().await;
                }
                self.note(Outcome::Kept { until });
                return Next::At(renew);
            }
            Some(Verdict::Renew) => {
                info!(addon = self.enrolment.addon, secret = self.place.name, "renewing credentials")
            }
            Some(Verdict::Useless(flaw)) => {
                info!(addon = self.enrolment.addon, secret = self.place.name, %flaw, "getting credentials");
            }
        }
        match end.run_until_cancelled(self.get(unsaved)).await {
            None => return Next::News,
            Some(Err(error)) => return self.failed(&error),
            Some(Ok(())) => {}
        }
        match self.save(drawer, unsaved, end).await {
            Err(error) => self.failed(&error),
            // What was written is judged at once.
            Ok(()) => Next::At(self.trade.clock.now()),
        }
    }

    fn failed(&self, error: &NotKept) -> Next {
        warn!(addon = self.enrolment.addon, secret = self.place.name, %error, "there are no good credentials, and it will be tried again");
        self.note(Outcome::Failed(error.to_string()));
        Next::Later
    }

    fn note(&self, outcome: Outcome) {
        self.trade.roster.update(|roster| roster.note(&self.place, &self.enrolment.addon, outcome));
    }

    /// Gets credentials from the hub, unless there are some that could not be written.
    async fn get(&self, unsaved: &mut Option<Fresh>) -> Result<(), NotKept> {
        if unsaved.as_ref().is_some_and(|fresh| self.check(fresh).is_ok()) {
            return Ok(());
        }
        let fresh = match &self.enrolment.proof {
            Proof::Certificate { signer, subject } => {
                Fresh::Certificate(self.wish(signer, subject).fulfil(self.trade.hub.clone(), &self.trade.clock).await?)
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
        let Trade { imprint, clock, .. } = &self.trade;
        let secret = fresh.secret(imprint, &self.place, &self.enrolment.proof);
        match judge(&self.enrolment.proof, &kept(&secret), &imprint.hub, clock.now()) {
            Some(Verdict::Useless(flaw)) => Err(NotKept::Useless(flaw.to_string())),
            Some(Verdict::Renew) => Err(NotKept::Useless("it expires too soon".to_owned())),
            Some(Verdict::Good { .. }) | None => Ok(()),
        }
    }

    fn wish(&self, signer: &str, subject: &Subject) -> Wish {
        let (cluster, addon) = (&self.trade.imprint.cluster, &self.enrolment.addon);
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
        let accounts = Api::<ServiceAccount>::namespaced(self.trade.hub.clone(), &self.trade.imprint.cluster);
        let spec =
            TokenRequestSpec { expiration_seconds: self.trade.terms.token_seconds, ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let params = PostParams::default();
        let asked = accounts.create_token_request(account, &params, &request);
        let answer = answered(&self.trade.clock, asked).await.map_err(failed)?;
        Ok(answer.status.and_then(|status| status.token).unwrap_or_default())
    }

    /// Writes what was got, as soon as there is a namespace for it.
    async fn save(
        &self,
        drawer: &Shared<Drawer>,
        unsaved: &mut Option<Fresh>,
        end: &CancellationToken,
    ) -> Result<(), NotKept> {
        let Some(fresh) = unsaved else { return Ok(()) };
        let secret = fresh.secret(&self.trade.imprint, &self.place, &self.enrolment.proof);
        let written = match self.write(&secret).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                end.run_until_cancelled(self.until_there_is_a_namespace()).await;
                self.write(&secret).await
            }
            written => written,
        };
        let secret =
            |source| NotKept::Unwritten { secret: format!("{}/{}", self.place.namespace, self.place.name), source };
        drawer.apply(written.map_err(secret)?);
        *unsaved = None;
        info!(addon = self.enrolment.addon, secret = self.place.name, "there are good credentials");
        Ok(())
    }

    async fn write(&self, secret: &Secret) -> Result<Secret, kube::Error> {
        let secrets = Api::<Secret>::namespaced(self.home.clone(), &self.place.namespace);
        let (params, wanted) = (PatchParams::apply(MANAGER).force(), Patch::Apply(secret));
        answered(&self.trade.clock, secrets.patch(&self.place.name, &params, &wanted)).await
    }

    /// Marks a good Secret that another agent has left, so that it goes with its add-on.
    async fn mark(&self) {
        let secrets = Api::<Secret>::namespaced(self.home.clone(), &self.place.namespace);
        let mark = json!({ "metadata": { "labels": { KEPT_BY_LABEL: self.trade.imprint.kept_by } } });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let marked = answered(&self.trade.clock, secrets.patch(&self.place.name, &params, &Patch::Merge(mark))).await;
        if let Err(error) = marked {
            warn!(addon = self.enrolment.addon, secret = self.place.name, %error, "the Secret could not be marked as ours");
        }
    }

    async fn until_there_is_a_namespace(&self) {
        let namespaces = Api::<Namespace>::all(self.home.clone());
        let there =
            await_condition(namespaces, &self.place.namespace, |namespace: Option<&Namespace>| namespace.is_some());
        tokio::select! {
            _ = there => {}
            () = self.trade.clock.sleep(NAMESPACE_GRACE) => {}
        }
    }
}
