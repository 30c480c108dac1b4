//! What is served at a moment, with what was made of it: what objects are checked by, and the documents about it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::all_kinds;
use crate::{
    catalog::{Kinds, definitions},
    field::FieldError,
    kind::{Kind, Version},
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
    documents: Arc<OnceLock<Vec<Document>>>,
}

/// What objects of one version of a custom kind are checked by. It is made when it is first needed.
#[derive(Debug)]
pub(crate) struct Checks {
    version: Version,
    made: OnceLock<(Validator, Option<Rules>)>,
}

impl Served {
    /// The same, with a custom kind besides, or instead of the one with its name.
    pub(crate) fn with(&self, kind: Kind) -> Self {
        let mut served = self.changed();
        let checks = |version: &Version| Arc::new(Checks { version: version.clone(), made: OnceLock::new() });
        let versions = kind.versions.iter().map(|version| (version.name.clone(), checks(version))).collect();
        served.checks.insert((kind.group.clone(), kind.plural.clone()), versions);
        served.kinds.insert_custom(Arc::new(kind));
        served
    }

    /// The same, without a custom kind.
    pub(crate) fn without(&self, group: &str, plural: &str) -> Self {
        let mut served = self.changed();
        served.kinds.remove_custom(group, plural);
        served.checks.remove(&(group.to_owned(), plural.to_owned()));
        served
    }

    fn changed(&self) -> Self {
        Self { documents: Arc::default(), ..self.clone() }
    }

    /// What is said about all that is served.
    pub(crate) fn documents(&self) -> &[Document] {
        self.documents.get_or_init(|| documents(&all_kinds(self), definitions()))
    }

    /// What objects of a version are checked by; nothing for built-in kinds, which have rules of their own.
    pub(crate) fn checks(&self, kind: &Kind, version: &str) -> Option<Arc<Checks>> {
        self.checks.get(&(kind.group.clone(), kind.plural.clone()))?.get(version).cloned()
    }
}

impl Checks {
    fn made(&self) -> &(Validator, Option<Rules>) {
        self.made.get_or_init(|| {
            // Rules that can not be compiled were refused with their definition.
            (Validator::new(&self.version.schema), Rules::compile(&self.version.openapi).ok())
        })
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
        let (_, Some(rules)) = self.made() else { return errors };
        if rules.is_empty() {
            return errors;
        }
        match rules::blocked(&errors) {
            Some(blocked) => errors.push(blocked),
            None => errors.extend(rules.check(object, old)),
        }
        errors
    }
}
