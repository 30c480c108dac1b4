//! Writes: only what differs, only if nobody else was faster, and what comes of it is known at once.

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
    core::{ClusterResourceScope, NamespaceResourceScope, Request},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    decode::Decoded,
    fleet::{Shared, Tracks},
    metrics::{Metrics, Verb},
    pace::is_busy,
    store::ObjectKey,
};

/// A kind that can be written.
pub trait Kind:
    Resource<DynamicType = (), Scope: Place> + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope: Place>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Where the objects of a kind are.
pub trait Place: Sized {
    /// The objects of a kind, in that namespace if the kind has namespaces.
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client, namespace: &str) -> Api<K>;
}

impl Place for NamespaceResourceScope {
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client, namespace: &str) -> Api<K> {
        Api::namespaced(client, namespace)
    }
}

impl Place for ClusterResourceScope {
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client, _: &str) -> Api<K> {
        Api::all(client)
    }
}

/// Something to be written. It is decided on with the fleet in view, and carried out without it.
pub struct Write<F> {
    kind: String,
    verb: Verb,
    key: ObjectKey,
    /// Whether it is more than one request.
    is_several: bool,
    send: Box<Call<F>>,
}

/// How a write is sent: by a client, for a fleet, and in whose name.
type Call<F> = dyn Fn(Client, Shared<F>, &'static str) -> BoxFuture<'static, Result<(), kube::Error>> + Send + Sync;

impl<F> fmt::Debug for Write<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} {}", self.verb, self.kind, self.key)
    }
}

impl<F: Send + Sync + 'static> Write<F> {
    /// Makes an object.
    pub fn create<K: Kind>(object: K) -> Self
    where
        F: Tracks<K>,
    {
        let object = Arc::new(Decoded(Ok(object)));
        Self::new(Verb::Create, ObjectKey::of(&*object), None, move |api, manager| {
            let object = Arc::clone(&object);
            Box::pin(async move {
                let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
                api.create(&params, &object).await.map(Some)
            })
        })
    }

    /// Makes an object. If one of its name is there already, which whoever watches does not see, that one is read and made what `over` makes
    /// of it; if `over` makes nothing of it, it stays as it is, and the write fails.
    pub fn take<K: Kind>(object: K, over: impl Fn(&K) -> Option<K> + Send + Sync + 'static) -> Self
    where
        F: Tracks<K>,
    {
        let (object, over) = (Arc::new(Decoded(Ok(object))), Arc::new(over));
        Self::new(Verb::Create, ObjectKey::of(&*object), None, move |api: Api<Decoded<K>>, manager| {
            let (object, over) = (Arc::clone(&object), Arc::clone(&over));
            Box::pin(async move {
                let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
                let taken = match api.create(&params, &object).await {
                    Err(kube::Error::Api(status)) if status.is_already_exists() => status,
                    made => return made.map(Some),
                };
                let name = object.name_any();
                // What cannot be parsed is not taken over.
                let Decoded(Ok(there)) = api.get(&name).await? else { return Err(kube::Error::Api(taken)) };
                let Some(wanted) = over(&there) else { return Err(kube::Error::Api(taken)) };
                api.replace(&name, &params, &Decoded(Ok(for_state_of(&there, wanted)))).await.map(Some)
            })
        })
    }

    /// Makes an object be there with everything that `wanted` says of it; nothing if it is. Fields that `wanted` does not have stay;
    /// a list is as `wanted` has it.
    pub fn ensure<K: Kind>(stored: Option<&K>, wanted: K) -> Option<Self>
    where
        F: Tracks<K>,
    {
        match stored {
            None => Some(Self::create(wanted)),
            Some(stored) => Self::patch(lack_of(stored, &wanted)?, stored, None),
        }
    }

    /// Makes the status of an object be that of `wanted`; nothing if it is already.
    pub fn status<K: Kind>(stored: &K, wanted: &K) -> Option<Self>
    where
        F: Tracks<K>,
    {
        Self::patch(difference_of(stored, wanted, |field| field == "status")?, stored, Some("status"))
    }

    /// Makes the status of an object be that of what `make` makes of another object, the source. That one is kept nowhere: it is read when
    /// the write is sent, so that only what comes of it stays.
    pub fn status_from<K: Kind, S: Kind>(
        stored: &K,
        source: ObjectKey,
        make: impl Fn(&S) -> Result<K, BoxError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Tracks<K>,
    {
        let (stored, source, make) = (Arc::new(stored.clone()), Arc::new(source), Arc::new(make));
        let (key, last) = (ObjectKey::of(&*stored), last_seen(&*stored));
        Self::new(Verb::Patch, key, Some(last), move |api: Api<Decoded<K>>, manager| {
            let (stored, source, make) = (Arc::clone(&stored), Arc::clone(&source), Arc::clone(&make));
            Box::pin(async move {
                let read = read::<S>(api.clone().into_client(), &source).await?;
                let wanted = make(&read).map_err(|error| Useless::new::<S>(&source, error))?;
                let Some(patch) = difference_of(&*stored, &wanted, |field| field == "status") else {
                    return Ok(Some(Decoded(Ok(K::clone(&stored)))));
                };
                let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
                api.patch_status(&stored.name_any(), &params, &Patch::Merge(&patch)).await.map(Some)
            })
        })
    }

    /// Makes what is decided of a request, which is part of its status, be that of `wanted`; nothing if it is already.
    pub fn approval<K: Kind>(stored: &K, wanted: &K) -> Option<Self>
    where
        F: Tracks<K>,
    {
        Self::patch(difference_of(stored, wanted, |field| field == "status")?, stored, Some("approval"))
    }

    /// Makes an object be `wanted`, but for its status; nothing if it is already.
    pub fn update<K: Kind>(stored: &K, wanted: &K) -> Option<Self>
    where
        F: Tracks<K>,
    {
        Self::patch(difference_of(stored, wanted, |field| field != "status")?, stored, None)
    }

    /// Makes an object be `wanted` in all that is not its status, whatever it was before. This is for objects of which not everything is
    /// kept, so that nobody can tell what differs.
    pub fn replace<K: Kind>(stored: &K, wanted: K) -> Self
    where
        F: Tracks<K>,
    {
        let last = last_seen(stored);
        let name = last.name.clone().unwrap_or_default();
        let wanted = Arc::new(Decoded(Ok(for_state_of(stored, wanted))));
        Self::new(Verb::Update, ObjectKey::of(stored), Some(last), move |api: Api<Decoded<K>>, manager| {
            let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
            let (name, wanted) = (name.clone(), Arc::clone(&wanted));
            Box::pin(async move { api.replace(&name, &params, &wanted).await.map(Some) })
        })
    }

    fn patch<K: Kind>(patch: Value, stored: &K, subresource: Option<&'static str>) -> Option<Self>
    where
        F: Tracks<K>,
    {
        let (name, patch) = (stored.meta().name.clone()?, Arc::new(patch));
        let (key, last) = (ObjectKey::of(stored), last_seen(stored));
        Some(Self::new(Verb::Patch, key, Some(last), move |api: Api<Decoded<K>>, manager| {
            let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
            let (name, patch) = (name.clone(), Arc::clone(&patch));
            Box::pin(async move {
                let patch = Patch::Merge(&*patch);
                match subresource {
                    None => api.patch(&name, &params, &patch).await.map(Some),
                    Some(subresource) => api.patch_subresource(subresource, &name, &params, &patch).await.map(Some),
                }
            })
        }))
    }

    /// Deletes an object, if it is still the one that is meant and has not changed.
    pub fn delete<K: Kind>(stored: &K) -> Self
    where
        F: Tracks<K>,
    {
        let last = last_seen(stored);
        Self::new(Verb::Delete, ObjectKey::of(stored), Some(last.clone()), move |api: Api<Decoded<K>>, _| {
            let ObjectMeta { name, uid, resource_version, .. } = last.clone();
            let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version });
            Box::pin(async move {
                let left = delete(api, &name.unwrap_or_default(), &params).await?;
                // What waits for its finalizers is still there.
                Ok(left.filter(|object| !object.finalizers().is_empty()))
            })
        })
    }

    /// Something that is more than one write, or is about objects whose kind is known only now. What comes of it, the call enters into the fleet itself.
    /// It may take as long as it likes, but each of its requests has to be answered in time.
    pub fn act(
        kind: &str,
        verb: Verb,
        key: ObjectKey,
        call: impl Fn(Client, Shared<F>, &'static str) -> BoxFuture<'static, Result<(), kube::Error>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { kind: kind.to_owned(), verb, key, is_several: true, send: Box::new(call) }
    }

    /// A write whose answer is the object as it is then, or nothing if it is gone. `last` is what was known of it before.
    fn new<K: Kind>(
        verb: Verb,
        key: ObjectKey,
        last: Option<ObjectMeta>,
        call: impl Fn(Api<Decoded<K>>, &'static str) -> BoxFuture<'static, Result<Option<Decoded<K>>, kube::Error>>
        + Send
        + Sync
        + 'static,
    ) -> Self
    where
        F: Tracks<K>,
    {
        let namespace = Arc::clone(&key.namespace);
        let send = move |client, fleet: Shared<F>, manager| -> BoxFuture<'static, Result<(), kube::Error>> {
            let answer = call(<K::Scope as Place>::api(client, &namespace), manager);
            let last = last.clone();
            Box::pin(async move {
                let answer = answer.await;
                match (&answer, last) {
                    (Ok(None), Some(last)) => fleet.delete::<K>(&last),
                    (Err(kube::Error::Api(status)), Some(last)) if status.is_not_found() => fleet.delete::<K>(&last),
                    _ => {}
                }
                if let Some(mut object) = answer? {
                    object.meta_mut().managed_fields = None;
                    fleet.receive(object);
                }
                Ok(())
            })
        };
        Self { kind: K::kind(&()).into_owned(), verb, key, is_several: false, send: Box::new(send) }
    }

    /// Whether it is more than one request.
    #[must_use]
    pub fn is_several(&self) -> bool {
        self.is_several
    }

    /// Carries the write out. What the server answers enters the fleet before this returns.
    pub async fn send(
        &self,
        client: Client,
        fleet: Shared<F>,
        manager: &'static str,
        metrics: &Metrics,
    ) -> Result<(), kube::Error> {
        (self.send)(client, fleet, manager).await?;
        metrics.wrote(&self.kind, self.verb);
        Ok(())
    }
}

/// Why something could not be made of an object.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// That nothing could be made of an object that a write depends on. It says nothing of the object that was to be written: an answer that the one
/// is not there must not be taken for one that the other is gone.
#[derive(Debug, thiserror::Error)]
#[error("the {kind} {key} is of no use: {source}")]
pub struct Useless {
    kind: String,
    key: ObjectKey,
    source: BoxError,
}

impl Useless {
    /// Nothing could be made of an object of that kind, for this reason.
    pub fn new<S: Kind>(key: &ObjectKey, source: impl Into<BoxError>) -> Self {
        Self { kind: S::kind(&()).into_owned(), key: key.clone(), source: source.into() }
    }

    /// What a write says that failed for this reason.
    #[must_use]
    pub fn in_error(error: &kube::Error) -> Option<&Self> {
        match error {
            kube::Error::Service(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl From<Useless> for kube::Error {
    fn from(useless: Useless) -> Self {
        Self::Service(Box::new(useless))
    }
}

/// Reads an object that is kept nowhere.
async fn read<S: Kind>(client: Client, key: &ObjectKey) -> Result<S, kube::Error> {
    let api = <S::Scope as Place>::api::<S>(client, &key.namespace);
    api.get(&key.name).await.map_err(|error| match error {
        kube::Error::Api(status) if !is_busy(&status) => Useless::new::<S>(key, status.message.clone()).into(),
        error => error,
    })
}

/// Deletes an object. The answer is the object, if that is still there. kube's own call parses the
/// answer in a way that fails for an
/// object that is nested deeply.
async fn delete<K: Kind>(
    api: Api<Decoded<K>>,
    name: &str,
    params: &DeleteParams,
) -> Result<Option<Decoded<K>>, kube::Error> {
    #[derive(Deserialize)]
    struct Answer {
        kind: Option<String>,
    }
    let request = Request::new(api.resource_url()).delete(name, params).map_err(kube::Error::BuildRequest)?;
    let text = api.into_client().request_text(request).await?;
    let answer: Answer = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
    if answer.kind.as_deref() == Some("Status") {
        return Ok(None);
    }
    Decoded::parse(&text).map(Some).map_err(kube::Error::SerdeError)
}

/// What has to be known of an object to tell that it is gone.
fn last_seen<K: Kind>(stored: &K) -> ObjectMeta {
    let ObjectMeta { name, namespace, uid, resource_version, .. } = stored.meta().clone();
    ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() }
}

/// What is wanted, for the state of an object that it was made for and no other.
fn for_state_of<K: Kind>(stored: &K, mut wanted: K) -> K {
    let ObjectMeta { uid, resource_version, .. } = stored.meta().clone();
    (wanted.meta_mut().uid, wanted.meta_mut().resource_version) = (uid, resource_version);
    wanted
}

/// The merge patch that turns one state of an object into another, looking at some of its fields only; nothing if there
/// is no difference. It holds for the state that was compared and no later one.
fn difference_of<K: Kind>(stored: &K, wanted: &K, is_meant: impl Fn(&str) -> bool) -> Option<Value> {
    let part = |object: &K| fields_of(object).into_iter().filter(|(field, _)| is_meant(field)).collect();
    Some(for_this_state(stored, difference(&part(stored), &part(wanted))?))
}

/// The merge patch that adds to an object what it lacks of another; nothing if it lacks nothing.
fn lack_of<K: Kind>(stored: &K, wanted: &K) -> Option<Value> {
    Some(for_this_state(stored, lack(&fields_of(stored), &fields_of(wanted))?))
}

/// The fields of an object, or of a part of it.
type Fields = Map<String, Value>;

fn fields_of<K: Kind>(object: &K) -> Fields {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(object) else { return Fields::new() };
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        // No labels, finalizers or owners are none, however that is written down.
        metadata.retain(|_, value| *value != json!({}) && *value != json!([]));
    }
    fields
}

/// The patch, for the state of an object that it was made for and no other.
fn for_this_state<K: Kind>(stored: &K, mut patch: Fields) -> Value {
    let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        let ObjectMeta { uid, resource_version, .. } = stored.meta().clone();
        metadata.extend([("uid".to_owned(), json!(uid)), ("resourceVersion".to_owned(), json!(resource_version))]);
    }
    Value::Object(patch)
}

fn difference(stored: &Fields, wanted: &Fields) -> Option<Fields> {
    let removed = stored.keys().filter(|field| !wanted.contains_key(*field)).map(|field| (field.clone(), Value::Null));
    let changed = changed(stored, wanted, difference);
    let patch: Map<_, _> = removed.chain(changed).collect();
    (!patch.is_empty()).then_some(patch)
}

fn lack(stored: &Fields, wanted: &Fields) -> Option<Fields> {
    let patch: Map<_, _> = changed(stored, wanted, lack).collect();
    (!patch.is_empty()).then_some(patch)
}

/// The fields of `wanted` that are not so in `stored`; objects inside are compared by `inside`.
fn changed<'a>(
    stored: &'a Fields,
    wanted: &'a Fields,
    inside: fn(&Fields, &Fields) -> Option<Fields>,
) -> impl Iterator<Item = (String, Value)> + 'a {
    wanted.iter().filter_map(move |(field, wanted)| {
        let change = match (stored.get(field), wanted) {
            (Some(stored), wanted) if stored == wanted => return None,
            (Some(Value::Object(stored)), Value::Object(wanted)) => Value::Object(inside(stored, wanted)?),
            (_, wanted) => wanted.clone(),
        };
        Some((field.clone(), change))
    })
}

#[cfg(test)]
mod tests;
