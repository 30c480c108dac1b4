//! Roles that are put together from others.

use serde_json::{Value, json};

use super::Keeper;
use crate::{access::aggregation::aggregated, failure::Failure, server::Subject, store::Stored};

impl Keeper {
    pub(super) async fn put_roles_together(&self) -> Result<(), Failure> {
        let served = self.server.served();
        let Some((kind, _)) = served.kinds.get("rbac.authorization.k8s.io", "v1", "clusterroles") else {
            return Ok(());
        };
        let roles: Vec<_> = self.server.objects_of(&kind).iter().map(Stored::value).collect();
        for role in roles.iter().filter(|role| role.get("aggregationRule").is_some_and(Value::is_object)) {
            let name = crate::metadata::text(role, "name");
            let others = roles.iter().filter(|other| crate::metadata::text(other, "name") != name);
            let Some(rules) = aggregated(role, others) else { continue };
            let rules = json!(rules);
            let subject = Subject::new(&kind, None, name);
            let is_known = |object: &Value| {
                let known = object.get("rules").filter(|rules| !rules.is_null());
                known.cloned().unwrap_or_else(|| json!([])) == rules
            };
            let put = |object: &Value| {
                let mut new = object.clone();
                new["rules"] = rules.clone();
                (!is_known(object)).then_some(new)
            };
            self.server.revise(&subject, put).await?;
        }
        Ok(())
    }
}
