//! Executors of actions: what runs the parts of a plan that take more than one request.

use drover_engine::plan::{NoAction, PlanStep, WriteResult};

use crate::{kinds::Caches, write::Writer};

/// An action with its executor.
pub trait Execute<F: Caches>: PlanStep {
    /// Does it. It may take as long as it likes, but each of its requests is answered in time, or
    /// fails. What it learns of objects it enters into the cache.
    fn execute(&self, writer: Writer<F>) -> impl Future<Output = Result<(), ActionError>> + Send;
}

/// Why an action has failed.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// One of its requests has failed.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// It is not possible, whatever the server answers.
    #[error("{0}")]
    Impossible(String),
}

impl ActionError {
    /// What the action came to.
    #[must_use]
    pub fn result(&self) -> WriteResult {
        match self {
            Self::Request(error) => crate::pace::result_of(error),
            Self::Impossible(why) => WriteResult::Rejected(why.clone()),
        }
    }
}

impl<F: Caches> Execute<F> for NoAction {
    async fn execute(&self, _: Writer<F>) -> Result<(), ActionError> {
        match *self {}
    }
}
