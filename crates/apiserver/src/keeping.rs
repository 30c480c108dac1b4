//! What is done after requests are answered: what nobody owns any more goes, namespaces and kinds are emptied before they go, certificates are
//! signed, and roles are put together.
//!
//! There is one who does all this, task by task. Every change of an object leaves the tasks that follow from it; a task that finds nothing to do does nothing.

mod certificates;
mod definitions;
mod garbage;
mod namespaces;
mod owners;
mod roles;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use tokio::sync::mpsc;
use tracing::warn;

pub(crate) use self::{
    definitions::FINALIZER as DEFINITION_FINALIZER,
    owners::{Address, Owners, Ties},
};
use crate::{
    failure::Failure,
    metadata,
    pki::Pair,
    server::{Gone, Server, Subject, Terms},
};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// To see whether an object is still owned by somebody.
    Dependent(Address),
    /// To see whether an object that waits for those that depend on it can go.
    Owner(Address),
    /// To empty a namespace.
    Namespace(String),
    /// To empty a kind.
    Definition(String),
    /// To sign a certificate.
    Request(String),
    /// To sign all certificates that wait for it.
    Requests,
    /// To put roles together.
    Roles,
}

/// Who does it.
pub(crate) struct Keeper {
    server: Arc<Server>,
    authority: Pair,
}

impl Keeper {
    pub(crate) fn new(server: Arc<Server>, authority: Pair) -> Self {
        Self { server, authority }
    }

    /// Does what there is to do, until nobody can leave any task.
    pub(crate) async fn run(self, mut tasks: mpsc::UnboundedReceiver<Task>) {
        let mut waiting = BTreeSet::new();
        while let Some(first) = tasks.recv().await {
            waiting.insert(first);
            // What was asked for several times is done once.
            while let Ok(next) = tasks.try_recv() {
                waiting.insert(next);
            }
            while let Some(task) = waiting.pop_first() {
                if let Err(failure) = self.work(&task).await {
                    warn!(?task, message = failure.message, "could not tidy up");
                }
            }
        }
    }

    async fn work(&self, task: &Task) -> Result<(), Failure> {
        match task {
            Task::Dependent(address) => self.look_after_dependent(address).await,
            Task::Owner(address) => self.look_after_owner(address).await,
            Task::Namespace(name) => self.empty_namespace(name).await,
            Task::Definition(name) => self.empty_definition(name).await,
            Task::Request(name) => self.sign(name).await,
            Task::Requests => self.sign_all().await,
            Task::Roles => self.put_roles_together().await,
        }
    }

    /// The object at an address, if its kind is served.
    fn subject(&self, address: &Address) -> Option<Subject> {
        let served = self.server.served();
        let kind = served.kinds.iter().find(|kind| kind.group == address.group && kind.plural == address.plural)?;
        Some(Subject::new(kind, address.namespace.as_deref(), &address.name))
    }

    fn stored(&self, subject: &Subject) -> Option<Value> {
        self.server.store.get(&subject.key).map(|stored| stored.value())
    }

    /// Lets an object go, if it is there.
    async fn let_go(&self, subject: &Subject, terms: &Terms) -> Result<(), Failure> {
        match self.server.let_go(subject, terms, &|_| Ok(())).await {
            Ok(Gone::Now(_) | Gone::Later(_)) => Ok(()),
            Err(failure) if failure.code == 404 => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Takes a finalizer from an object.
    async fn release(&self, subject: &Subject, finalizer: &str) -> Result<(), Failure> {
        self.server
            .revise(subject, |object| {
                let finalizers = metadata::field(object, "finalizers").and_then(Value::as_array)?;
                let kept: Vec<_> = finalizers.iter().filter(|it| *it != finalizer).cloned().collect();
                if kept.len() == finalizers.len() {
                    return None;
                }
                let mut new = object.clone();
                metadata::set(&mut new, "finalizers", (!kept.is_empty()).then_some(Value::Array(kept)));
                Some(new)
            })
            .await
    }
}
