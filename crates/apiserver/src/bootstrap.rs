//! What a new server begins with: the usual namespaces, and the usual roles.

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::{
    access::bootstrap,
    failure::Failure,
    metadata,
    server::{Server, Subject},
};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Server {
    /// Makes what is missing of what every server has. What is there stays as it is.
    pub(crate) async fn bootstrap(&self) -> Result<(), Failure> {
        let namespaces = NAMESPACES.map(|name| {
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name,
                "labels": { "kubernetes.io/metadata.name": name } },
                "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" } })
        });
        // All at once, so that they are written to the disk together.
        try_join_all(namespaces.into_iter().chain(bootstrap()).map(|object| self.ensure(object))).await?;
        Ok(())
    }

    async fn ensure(&self, mut object: Value) -> Result<(), Failure> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let served = self.served();
        let Some((kind, _)) = served.kinds.by_kind(group, version, text("kind")) else { return Ok(()) };
        let namespace = metadata::text(&object, "namespace").to_owned();
        let namespace = (!namespace.is_empty()).then_some(namespace.as_str());
        let subject = Subject::new(&kind, namespace, metadata::text(&object, "name"));
        if self.store.get(&subject.key).is_some() {
            return Ok(());
        }
        metadata::stamp_new(&mut object, &self.uid(), &self.now(), &mut String::new);
        self.make(&subject, object).await
    }
}
