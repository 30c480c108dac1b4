//! Kinds go with all their objects.

use serde_json::Value;

use super::Keeper;
use crate::{
    failure::Failure,
    metadata,
    server::{Subject, Terms},
    store,
};

/// What holds a definition as long as there are objects of its kind.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Keeper {
    /// Lets all objects of a kind go that is on its way out, and the kind when there are none left.
    pub(super) async fn empty_definition(&self, name: &str) -> Result<(), Failure> {
        let served = self.server.served();
        let Some((definitions, _)) = served.kinds.get("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
            return Ok(());
        };
        let subject = Subject::new(&definitions, None, name);
        let Some(crd) = self.stored(&subject) else { return Ok(()) };
        if metadata::field(&crd, "deletionTimestamp").is_none() {
            return Ok(());
        }
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
        let kind = served.kinds.iter().find(|kind| kind.group == group && kind.plural == plural);
        if let Some(kind) = kind {
            for stored in self.server.objects_of(kind) {
                self.let_go(&Subject::new(kind, stored.namespace(), stored.name()), &Terms::usual()).await?;
            }
            if !self.server.objects_of(kind).is_empty() {
                return Ok(());
            }
        }
        self.release(&subject, FINALIZER).await?;
        if self.stored(&subject).is_none() {
            let gone = self.server.store.drop_resource(store::Resource::new(group, plural)).await;
            gone.map_err(Failure::internal)?;
        }
        Ok(())
    }
}
