//! Waiting for something to become true: by watching, or where nobody tells, by trying.

use std::{fmt::Debug, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::time::{sleep, timeout};

/// Long enough for a machine that does many things at once.
const PATIENCE: Duration = Duration::from_mins(1);

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

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
    such(api, fields, "it is there", |_| true).await
}

/// Waits until an object is there that the field selector selects and that satisfies `condition`. `what` is what is waited for, in words.
pub async fn such<K>(api: &Api<K>, fields: &str, what: &str, condition: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut seen = Vec::new();
    let watch = watcher(api.clone(), watcher::Config::default().fields(fields));
    let found = timeout(PATIENCE, async {
        let mut objects = watch.default_backoff().applied_objects().boxed();
        loop {
            // A watch that breaks is begun again.
            match objects.next().await.expect("a watch has no end") {
                Ok(object) if condition(&object) => return object,
                Ok(object) => seen.push(format!("{object:?}")),
                Err(_) => {}
            }
        }
    });
    found.await.unwrap_or_else(|_| {
        panic!("waited in vain for an object with {fields}: {what}. Those that were seen are {seen:#?}")
    })
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

/// Repeats an attempt until it comes out as it should, and returns what came of it. `what` is what is waited for, in words.
///
/// This is for roles, policies and new kinds alone, because a server tells nobody when it has taken them up. An attempt that fails says how.
pub async fn attempt<T>(what: &str, attempt: impl AsyncFnMut() -> Result<T, String>) -> T {
    attempt_within(PATIENCE, what, attempt).await
}

async fn attempt_within<T>(patience: Duration, what: &str, mut attempt: impl AsyncFnMut() -> Result<T, String>) -> T {
    let mut last = "no attempt came to an end".to_owned();
    let succeeded = timeout(patience, async {
        let mut pause = Duration::from_millis(1);
        loop {
            match attempt().await {
                Ok(outcome) => return outcome,
                Err(complaint) => last = complaint,
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    });
    succeeded.await.unwrap_or_else(|_| panic!("tried in vain: {what}. The last attempt: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_attempt_is_repeated_until_it_comes_out_right() {
        let mut attempts = 0;
        let third = attempt("the third", async || {
            attempts += 1;
            if attempts == 3 { Ok(attempts) } else { Err("too early".to_owned()) }
        });
        assert_eq!(third.await, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "tried in vain: pigs fly. The last attempt: they do not")]
    async fn an_attempt_is_not_repeated_for_ever() {
        attempt_within::<()>(Duration::ZERO, "pigs fly", async || Err("they do not".to_owned())).await;
    }
}
