//! Sends writes. What the server answers is in the cache before the key of the write is planned again.

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use axum::http;
use drover_engine::plan::{Body, Precondition, Subresource, Write, WriteOperation};
use kube::{
    Client,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
    core::Request,
};
use serde::Deserialize;

use crate::{
    cache::SharedCache,
    clock::Clock,
    kinds::{Cached, CachedKinds, Caches},
};

/// Sends writes in the name of one controller.
pub struct Writer<F: Caches> {
    /// The client that it writes with.
    pub client: Client,
    /// The cache that answers enter.
    pub cache: SharedCache<F>,
    /// The time.
    pub clock: Clock,
    pub(crate) kinds: Arc<CachedKinds<F>>,
    /// The owner of the fields that it writes.
    pub(crate) manager: &'static str,
}

impl<F: Caches> Clone for Writer<F> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            cache: self.cache.clone(),
            clock: self.clock.clone(),
            kinds: Arc::clone(&self.kinds),
            manager: self.manager,
        }
    }
}

impl<F: Caches> fmt::Debug for Writer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").field(&self.manager).finish()
    }
}

impl<F: Caches> Writer<F> {
    /// A writer in the name of a manager.
    #[must_use]
    pub fn new(client: Client, cache: SharedCache<F>, clock: Clock, manager: &'static str) -> Self {
        Self { client, cache, clock, kinds: Arc::new(F::kinds()), manager }
    }
}

/// The kind of a write is in no table of the process.
#[derive(Debug, thiserror::Error)]
#[error("this is a bug: {0} is not among the kinds that this process caches")]
struct NotCached(String);

impl<F: Caches> Writer<F> {
    /// Sends a write. What the server answers enters the cache before this returns.
    pub async fn send(&self, write: &Write) -> Result<(), kube::Error> {
        let kind = write.kind();
        let cached =
            self.kinds.get(kind).ok_or_else(|| kube::Error::Service(NotCached(kind.kind.to_string()).into()))?;
        let request = request(write, self.manager).map_err(kube::Error::BuildRequest)?;
        let answer = self.client.request_text(request).await;
        if matches!(&answer, Err(kube::Error::Api(status)) if status.is_not_found()) {
            self.remove(cached, write);
        }
        let object = answer?;
        match write.operation() {
            WriteOperation::Delete if is_gone(&object).map_err(kube::Error::SerdeError)? => self.remove(cached, write),
            _ => (cached.receive)(&self.cache, &object).map_err(kube::Error::SerdeError)?,
        }
        Ok(())
    }

    /// Takes an object that is gone out of the cache, as it was last read.
    fn remove(&self, cached: &Cached<F>, write: &Write) {
        if let Some(last) = last_read(write) {
            (cached.remove)(&self.cache, &last);
        }
    }
}

/// The request that a write is.
fn request(write: &Write, manager: &str) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
    let (name, manager) = (&*write.key().name, Some(manager.to_owned()));
    let request = Request::new(write.kind().url_path(&write.key().namespace));
    let post = || PostParams { field_manager: manager.clone(), ..PostParams::default() };
    match write.operation() {
        WriteOperation::Create(object) => request.create(&post(), object.to_bytes().map_err(serialize)?),
        WriteOperation::Patch { patch, subresource } => {
            let params = PatchParams { field_manager: manager, ..PatchParams::default() };
            patched(&request, write, (&params, &Patch::Merge(patch)), *subresource)
        }
        WriteOperation::Delete => request.delete(name, &deletion(write.precondition())),
    }
}

fn serialize(error: serde_json::Error) -> kube::core::request::Error {
    kube::core::request::Error::SerializeBody(error)
}

fn patched(
    request: &Request,
    write: &Write,
    (params, patch): (&PatchParams, &Patch<&Body>),
    subresource: Option<Subresource>,
) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
    let name = &*write.key().name;
    match subresource {
        Some(part) => request.patch_subresource(part.as_str(), name, params, patch),
        None if write.kind().is_metadata_only => request.patch_metadata(name, params, patch),
        None => request.patch(name, params, patch),
    }
}

fn deletion(precondition: &Precondition) -> DeleteParams {
    let (uid, resource_version) = match precondition.clone() {
        Precondition::Unchanged { uid, resource_version } => (Some(uid), Some(resource_version)),
        Precondition::Absent | Precondition::None => (None, None),
    };
    DeleteParams::default().preconditions(Preconditions { uid, resource_version })
}

/// What is known of the object that a write changes, to tell that it is gone. `None` if the write
/// creates it.
fn last_read(write: &Write) -> Option<ObjectMeta> {
    let (uid, resource_version) = match write.precondition().clone() {
        Precondition::Absent => return None,
        Precondition::Unchanged { uid, resource_version } => (Some(uid), Some(resource_version)),
        Precondition::None => (None, None),
    };
    let key = write.key();
    let namespace = (!key.namespace.is_empty()).then(|| key.namespace.to_string());
    Some(ObjectMeta { name: Some(key.name.to_string()), namespace, uid, resource_version, ..ObjectMeta::default() })
}

/// Whether the answer to a deletion says that the object is gone: it does not show the object, or
/// shows one without finalizers. The rest is skipped, however deeply it is nested.
fn is_gone(answer: &str) -> Result<bool, serde_json::Error> {
    #[derive(Deserialize)]
    struct Answer {
        kind: Option<String>,
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    struct Metadata {
        #[serde(default)]
        finalizers: Option<Vec<String>>,
    }
    let answer: Answer = serde_json::from_str(answer)?;
    Ok(answer.kind.as_deref() == Some("Status") || answer.metadata.finalizers.is_none_or(|keys| keys.is_empty()))
}
