//! Waiting for something to become true, by watching.

use std::{fmt::Debug, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::time::timeout;

/// Long enough for a machine that does many things at once.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until the object of that name satisfies `condition`, and returns it. `what` is what is waited for, in words.
pub async fn until<K>(api: &Api<K>, name: &str, what: &str, condition: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut last = "nothing".to_owned();
    let watch = watcher(api.clone(), watcher::Config::default().fields(&format!("metadata.name={name}")));
    let found = timeout(PATIENCE, async {
        let mut objects = watch.default_backoff().applied_objects().boxed();
        loop {
            // A watch that breaks is begun again.
            match objects.next().await.expect("a watch has no end") {
                Ok(object) if condition(&object) => return object,
                Ok(object) => last = format!("{object:#?}"),
                Err(error) => last = format!("an error of the watch: {error}"),
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("waited for {name} in vain: {what}. The last that was seen is {last}"))
}

/// Waits until an object is there that the field selector selects.
pub async fn some<K>(api: &Api<K>, fields: &str) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let watch = watcher(api.clone(), watcher::Config::default().fields(fields));
    let found = timeout(PATIENCE, async {
        let mut objects = watch.default_backoff().applied_objects().boxed();
        loop {
            // A watch that breaks is begun again.
            if let Ok(object) = objects.next().await.expect("a watch has no end") {
                return object;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("waited in vain for an object with {fields}"))
}

/// Waits until no object of that name is there.
pub async fn gone<K>(api: &Api<K>, name: &str)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let watch = watcher(api.clone(), watcher::Config::default().fields(&format!("metadata.name={name}")));
    let is_gone = timeout(PATIENCE, async {
        let mut seen = false;
        let mut events = watch.default_backoff().boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::InitApply(object)) => seen = object.name_any() == name,
                Ok(watcher::Event::InitDone) if !seen => return,
                Ok(watcher::Event::Delete(object)) if object.name_any() == name => return,
                Ok(watcher::Event::Init) => seen = false,
                _ => {}
            }
        }
    });
    assert!(is_gone.await.is_ok(), "waited in vain for {name} to be gone");
}
