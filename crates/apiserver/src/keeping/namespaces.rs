//! Namespaces go with all that is in them.

use serde_json::{Value, json};

use super::Keeper;
use crate::{
    failure::Failure,
    kind::{Origin, Scope},
    metadata,
    server::{Subject, Terms},
    store,
};

/// What holds a namespace as long as there is something in it.
const FINALIZER: &str = "kubernetes";

impl Keeper {
    /// Empties a namespace that is on its way out, and lets it go when it is empty.
    pub(super) async fn empty_namespace(&self, name: &str) -> Result<(), Failure> {
        let served = self.server.served();
        let Some((kind, _)) = served.kinds.get("", "v1", "namespaces") else { return Ok(()) };
        let subject = Subject::new(&kind, None, name);
        let is_going = |object: &Value| metadata::field(object, "deletionTimestamp").is_some();
        if !self.stored(&subject).is_some_and(|object| is_going(&object)) {
            return Ok(());
        }
        let mut is_empty = true;
        let kinds = served.kinds.iter().filter(|kind| kind.scope == Scope::Namespaced && kind.origin != Origin::Review);
        // Events of both groups are the same.
        for kind in kinds.filter(|kind| kind.group != "events.k8s.io") {
            let resource = store::Resource::new(&kind.group, &kind.plural);
            let page = self.server.store.list(&resource, &store::Scope::namespace(name), None, None);
            for stored in page.map_err(Failure::internal)?.items {
                let content = Subject::new(kind, Some(name), stored.name());
                self.let_go(&content, &Terms::usual()).await?;
                is_empty &= self.server.store.get(&content.key).is_none();
            }
        }
        if is_empty { self.finalize(&subject).await } else { Ok(()) }
    }

    async fn finalize(&self, namespace: &Subject) -> Result<(), Failure> {
        self.server
            .revise(namespace, |object| {
                let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array)?;
                let kept: Vec<_> = finalizers.iter().filter(|it| *it != FINALIZER).cloned().collect();
                if kept.len() == finalizers.len() {
                    return None;
                }
                let mut new = object.clone();
                new["spec"]["finalizers"] = json!(kept);
                Some(new)
            })
            .await
    }
}
