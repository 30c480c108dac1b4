//! What is served at a moment, with what was made of it: what objects are checked by, and the documents about it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::all_kinds;
use crate::{
    catalog::{Kinds, definitions},
    failure::Failure,
    field::{ErrorKind, FieldError, Path},
    kind::{Kind, Origin, Version},
    openapi::{Document, documents},
    schema::{
        rules::{self, Rules},
        validate::Validator,
    },
};

/// Everything that is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    pub(crate) kinds: Kinds,
    /// What objects of custom kinds are checked by, by group and name in addresses, and by version.
    checks: BTreeMap<(String, String), BTreeMap<String, Arc<Checks>>>,
    documents: Arc<OnceLock<Vec<Arc<Document>>>>,
    /// The documents that were made before the last change, and are still right.
    unchanged: Vec<Arc<Document>>,
}

/// What objects of one version of a custom kind are checked by. It is made when it is first needed.
#[derive(Debug)]
pub(crate) struct Checks {
    version: Version,
    made: OnceLock<(Validator, Result<Rules, Vec<FieldError>>)>,
}

impl Served {
    /// The same, with a custom kind besides, or instead of the one with its name.
    pub(crate) fn with(&self, kind: Kind) -> Self {
        let mut served = self.changed(&kind.group);
        let checks = |version: &Version| Arc::new(Checks { version: version.clone(), made: OnceLock::new() });
        let versions = kind.versions.iter().map(|version| (version.name.clone(), checks(version))).collect();
        served.checks.insert((kind.group.clone(), kind.plural.clone()), versions);
        served.kinds.insert_custom(Arc::new(kind));
        served
    }

    /// The same, without a custom kind.
    pub(crate) fn without(&self, group: &str, plural: &str) -> Self {
        let mut served = self.changed(group);
        served.kinds.remove_custom(group, plural);
        served.checks.remove(&(group.to_owned(), plural.to_owned()));
        served
    }

    /// The same, where something of a group is about to change.
    fn changed(&self, group: &str) -> Self {
        let made = self.documents.get().unwrap_or(&self.unchanged).iter();
        let unchanged = made.filter(|document| !document.is_of_group(group)).cloned().collect();
        Self { documents: Arc::default(), unchanged, ..self.clone() }
    }

    /// The failure of what is not in a group: where no built-in kinds are, nobody knows of it at all.
    pub(crate) fn nothing_in(&self, group: &str) -> Failure {
        let is_built_in = |kind: &Arc<Kind>| kind.group == group && kind.origin != Origin::Custom;
        if self.kinds.iter().any(is_built_in) { Failure::no_such_path() } else { Failure::no_such_page() }
    }

    /// What is said about all that is served.
    pub(crate) fn documents(&self) -> &[Arc<Document>] {
        self.documents.get_or_init(|| documents(&all_kinds(self), definitions(), &self.unchanged))
    }

    /// What objects of a version are checked by; nothing for built-in kinds, which have rules of their own.
    pub(crate) fn checks(&self, kind: &Kind, version: &str) -> Option<Arc<Checks>> {
        self.checks.get(&(kind.group.clone(), kind.plural.clone()))?.get(version).cloned()
    }
}

impl Checks {
    fn made(&self) -> &(Validator, Result<Rules, Vec<FieldError>>) {
        self.made.get_or_init(|| (Validator::new(&self.version.schema), Rules::compile(&self.version.openapi)))
    }

    /// What is wrong with an object, besides what was found already.
    pub(crate) fn check(&self, mut found: Vec<FieldError>, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let (validator, _) = self.made();
        found.extend(validator.check(object, old));
        self.with_rules(found, object, old)
    }

    /// The same for an object of which only the status is written.
    pub(crate) fn check_status(&self, mut found: Vec<FieldError>, object: &Value, old: &Value) -> Vec<FieldError> {
        let (validator, _) = self.made();
        found.extend(validator.check_status(object, old));
        self.with_rules(found, object, Some(old))
    }

    fn with_rules(&self, mut errors: Vec<FieldError>, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let rules = match &self.made().1 {
            Ok(rules) if rules.is_empty() => return errors,
            Ok(rules) => rules,
            // They were refused with their definition, unless that was kept by a server that knew less. Who relies on a rule must not find it gone.
            Err(faults) => {
                let uncompiled = |fault: &FieldError| {
                    let detail = format!("rule compile error: {}: {}", fault.field, fault.detail);
                    FieldError::new(ErrorKind::Invalid, &Path::Root, Value::Null, detail)
                };
                errors.extend(faults.iter().map(uncompiled));
                return errors;
            }
        };
        match rules::blocked(&errors) {
            Some(blocked) => errors.push(blocked),
            None => errors.extend(rules.check(object, old)),
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition;

    #[test]
    fn a_rule_that_can_not_be_compiled_any_more_is_not_forgotten() {
        let schema = json!({ "type": "object", "properties": { "spec": {
            "type": "object", "properties": { "size": { "type": "integer" } },
            "x-kubernetes-validations": [{ "rule": "self.none > 1" }],
        } } });
        let definition = json!({ "spec": {
            "group": "kept.example", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        } });
        let served = Served::default().with(definition::kind(&definition));
        let (kind, _) = served.kinds.get("kept.example", "v1", "widgets").expect("it is served");
        let checks = served.checks(&kind, "v1").expect("it is checked");
        let errors = checks.check(Vec::new(), &json!({ "spec": { "size": 1 } }), None);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].detail.contains("rule compile error") && errors[0].detail.contains("none"), "{errors:?}");
    }
}
