//! Actions: work of a plan that takes more than one request.

use std::{borrow::Cow, fmt};

use drover_engine::plan::{NoAction, ObjectKey, Verb};

use crate::write::Writer;

/// Work that takes more than one request. It is a value, which plans hold; this is its executor.
pub trait Action<F>: Clone + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// What it counts as in metrics and messages.
    fn verb(&self) -> Verb;

    /// The kind of the object that it is about.
    fn kind(&self) -> Cow<'static, str>;

    /// The object that it is about.
    fn key(&self) -> ObjectKey;

    /// Does it. It may take as long as it likes, but each of its requests is answered in time, or
    /// fails. What it learns of objects it enters into the fleet.
    fn execute(&self, writer: Writer<F>) -> impl Future<Output = Result<(), kube::Error>> + Send;
}

impl<F: Send + Sync> Action<F> for NoAction {
    fn verb(&self) -> Verb {
        match *self {}
    }

    fn kind(&self) -> Cow<'static, str> {
        match *self {}
    }

    fn key(&self) -> ObjectKey {
        match *self {}
    }

    async fn execute(&self, _: Writer<F>) -> Result<(), kube::Error> {
        match *self {}
    }
}
