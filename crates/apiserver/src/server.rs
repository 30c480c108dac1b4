//! The server: what requests read and change, and what it keeps beside the objects so that they are quickly answered.
//!
//! All changes of objects go through here. What follows from an object, such as the kind that a CustomResourceDefinition brings or the
//! rights that a role gives, is in force before whoever wrote it has the answer.

mod admission;
mod answer;
mod call;
mod create;
mod delete;
mod documents;
mod list;
mod object;
mod options;
mod patch;
mod review;
mod scale;
mod served;
mod settle;
mod update;
mod watch;

use std::sync::Arc;

use drover_runtime::clock::Clock;
use k8s_openapi::jiff::{Timestamp, tz::TimeZone};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use serde_json::Value;
use tokio::sync::mpsc;

pub(crate) use self::{
    answer::{Answer, Body, Head},
    call::MAX_BODY,
    delete::{FOREGROUND, Gone, ORPHAN, Propagation, Terms},
    object::{Subject, shown_value},
    served::Served,
    watch::Watching,
};
use crate::{
    access::Rules,
    failure::Failure,
    identity::{Issuer, Why},
    keeping::{Owners, Task, Ties},
    kind::Kind,
    policy::Policies,
    store::{Key, Resource, Store, Stored, WriteError},
    user::User,
};

/// The name of this server in tokens, and for whom tokens are if nothing else is said.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Everything that requests share.
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    served: RwLock<Arc<Served>>,
    rules: RwLock<Rules>,
    policies: RwLock<Policies>,
    owners: Mutex<Owners>,
    issuer: Issuer,
    ids: Arc<dyn Ids>,
    tasks: mpsc::UnboundedSender<Task>,
}

/// Where names come from that nobody else has.
pub trait Ids: Send + Sync {
    /// A uid.
    fn uid(&self) -> String;
    /// Five letters and digits that make a name unique.
    fn suffix(&self) -> String;
}

/// What a server is made of.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) issuer: Issuer,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) tasks: mpsc::UnboundedSender<Task>,
}

impl Server {
    /// A server over what is kept.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { store, clock, issuer, ids, tasks } = parts;
        let server = Self {
            store,
            clock,
            served: RwLock::default(),
            rules: RwLock::default(),
            policies: RwLock::default(),
            owners: Mutex::default(),
            issuer,
            ids,
            tasks,
        };
        server.take_stock();
        server
    }

    /// What is served now.
    pub(crate) fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read())
    }

    /// Who may do what now.
    pub(crate) fn rules(&self) -> RwLockReadGuard<'_, Rules> {
        self.rules.read()
    }

    fn policies(&self) -> RwLockReadGuard<'_, Policies> {
        self.policies.read()
    }

    pub(crate) fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock()
    }

    /// The time, as objects have it.
    pub(crate) fn now(&self) -> String {
        in_seconds(self.clock.now())
    }

    /// Has something done later.
    pub(crate) fn remind(&self, task: Task) {
        // Who does it ends with the process.
        let _ = self.tasks.send(task);
    }

    /// A uid that nobody else has.
    pub(crate) fn uid(&self) -> String {
        self.ids.uid()
    }

    /// Keeps an object that every server has, if it is not there.
    pub(crate) async fn make(&self, subject: &Subject, object: Value) -> Result<(), Failure> {
        match self.keep(subject, object).await {
            Ok(_) | Err(WriteError::Exists(_)) => Ok(()),
            Err(error) => Err(unkept(&error)),
        }
    }

    /// Who a token is of; nothing if it is none of ours.
    pub(crate) fn holder(&self, token: &str) -> Option<User> {
        self.verified(token, &[AUDIENCE.to_owned()]).ok().map(|verified| verified.user)
    }

    fn verified(&self, token: &str, audiences: &[String]) -> Result<crate::identity::Verified, Why> {
        let accounts = Resource::new("", "serviceaccounts");
        self.issuer.verify(token, audiences, self.clock.now(), |namespace, name| {
            let account = self.store.get(&Key::new(&accounts, Some(namespace), name))?.value();
            account.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned)
        })
    }

    /// Keeps a new object.
    async fn keep(&self, subject: &Subject, object: Value) -> Result<Stored, WriteError> {
        let form = subject.kept_form(object);
        let ties = Ties::of(&form);
        let stored = self.store.create(subject.key.clone(), form).await?;
        self.settle(subject, &stored, &ties);
        Ok(stored)
    }

    /// Keeps a changed object in the place of what it was made of.
    async fn replace(&self, subject: &Subject, old: &Stored, object: Value) -> Result<Stored, WriteError> {
        let form = subject.kept_form(object);
        let ties = Ties::of(&form);
        let stored = self.store.update(subject.key.clone(), old.revision(), form).await?;
        if stored.revision() != old.revision() {
            self.settle(subject, &stored, &ties);
        }
        Ok(stored)
    }

    /// Lets an object go. Who follows sees it as it was last.
    async fn drop_object(&self, subject: &Subject, old: &Stored, last: Value) -> Result<Stored, WriteError> {
        let form = subject.kept_form(last);
        let ties = Ties::of(&form);
        let stored = self.store.delete(subject.key.clone(), old.revision(), form).await?;
        self.settle_end(subject, &ties);
        Ok(stored)
    }
}

/// A time as Kubernetes writes it: in whole seconds.
pub(crate) fn in_seconds(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What a failed write means to whoever asked for it, where nobody was faster.
fn unkept(error: &WriteError) -> Failure {
    match error {
        WriteError::TooLarge => Failure { code: 500, reason: "", message: error.to_string(), details: None },
        WriteError::TooDeep(error) => Failure::unprocessable(error.to_string()),
        error => Failure::internal(error),
    }
}

/// Whether a failed write is worth another try: somebody else was faster.
fn was_outrun(error: &WriteError) -> bool {
    matches!(error, WriteError::Changed(_) | WriteError::Gone | WriteError::Exists(_))
}

/// The kinds in a slice, as descriptions want them.
fn all_kinds(served: &Served) -> Vec<Arc<Kind>> {
    served.kinds.iter().cloned().collect()
}
