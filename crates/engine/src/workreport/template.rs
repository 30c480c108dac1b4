//! What the template of a set says, as far as its works are judged by it.

use std::collections::BTreeSet;

use drover_api::{
    grammar::SetFingerprint,
    names::{WORK_DEGRADED, WORK_PROGRESSING},
    work::ManifestWorkSpec,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hash::{content, drop_nulls};

/// How many bytes of manifests a work may hold: as many as OCM takes.
const LIMIT: usize = 500 * 1024;

/// Why no works can be made from a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There is nothing in it.
    #[error("there are no manifests: add what the works are to apply")]
    Empty,
    /// A manifest that nobody can name.
    #[error("manifest {0} has no kind or no metadata.name: add it")]
    Nameless(usize),
    /// One object twice.
    #[error("{0} is there twice: remove one of them")]
    Twice(String),
    /// It is more than a work can hold.
    #[error("the manifests have {size} bytes, and a work takes {LIMIT}: make them smaller, or divide them")]
    TooLarge {
        /// How many bytes there are.
        size: usize,
    },
}

/// What is wrong with a template.
#[must_use]
pub fn flaw(template: &ManifestWorkSpec) -> Option<Flaw> {
    let manifests = template.manifests();
    if manifests.is_empty() {
        return Some(Flaw::Empty);
    }
    let mut seen = BTreeSet::new();
    for (index, manifest) in manifests.iter().enumerate() {
        let Some(name) = name_of(manifest) else { return Some(Flaw::Nameless(index)) };
        if !seen.insert(name.clone()) {
            return Some(Flaw::Twice(name));
        }
    }
    let size = manifests.iter().map(|manifest| manifest.to_string().len()).sum();
    (size > LIMIT).then_some(Flaw::TooLarge { size })
}

/// What a manifest is called: its kind, with group and version, and its name.
fn name_of(manifest: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (kind, name) = (text(&manifest["kind"])?, text(&manifest["metadata"]["name"])?);
    let version = text(&manifest["apiVersion"]).unwrap_or_default();
    let namespace =
        text(&manifest["metadata"]["namespace"]).map(|namespace| format!("{namespace}/")).unwrap_or_default();
    Some(format!("the {kind} ({version}) {namespace}{name}"))
}

/// The name of what a work says. Works of the same one apply the same. Fields that are null do not
/// count: a server drops them from a merge patch.
#[must_use]
pub fn fingerprint(spec: &ManifestWorkSpec) -> SetFingerprint {
    let mut object = json!({ "spec": spec });
    drop_nulls(&mut object);
    let digest = Sha256::digest(content(&object));
    let mut name = [0; 8];
    name.copy_from_slice(&digest[..8]);
    SetFingerprint::of(name)
}

/// Which conditions a template makes besides those of every work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether it says when what is applied is still coming up.
    pub tell_progressing: bool,
    /// Whether it says when what is applied is not well.
    pub tell_degraded: bool,
}

impl Rules {
    /// Those of a template.
    #[must_use]
    pub fn of(template: &ManifestWorkSpec) -> Self {
        let rules = || template.manifest_configs.iter().flat_map(|config| &config.condition_rules);
        let tell = |condition: &str| rules().any(|rule| rule.condition == condition);
        Self { tell_progressing: tell(WORK_PROGRESSING), tell_degraded: tell(WORK_DEGRADED) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(manifests: &Value) -> ManifestWorkSpec {
        serde_json::from_value(json!({ "workload": { "manifests": manifests } })).expect("a template")
    }

    fn map(name: &str) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": name } })
    }

    #[test]
    fn a_template_that_no_work_can_be_made_from_is_named() {
        let wrong = |manifests: &Value| flaw(&template(manifests)).map(|flaw| flaw.to_string()).unwrap_or_default();
        assert_eq!(flaw(&template(&json!([map("a"), map("b")]))), None);
        assert_eq!(flaw(&ManifestWorkSpec::default()), Some(Flaw::Empty));
        assert!(wrong(&json!([map("a"), map("a")])).contains("the ConfigMap (v1) default/a is there twice"));
        assert_eq!(flaw(&template(&json!([{ "kind": "ConfigMap" }]))), Some(Flaw::Nameless(0)));
        let mut large = map("a");
        large["data"] = json!({ "text": "x".repeat(LIMIT) });
        assert!(wrong(&json!([large])).contains("make them smaller, or divide them"));
    }

    #[test]
    fn what_says_the_same_has_the_same_name() {
        let one = template(&json!([{ "kind": "A", "metadata": { "name": "a", "namespace": "b" } }]));
        let same = template(&json!([{ "metadata": { "namespace": "b", "name": "a" }, "kind": "A" }]));
        assert_eq!(fingerprint(&one), fingerprint(&same));
        assert_ne!(fingerprint(&one), fingerprint(&template(&json!([map("a")]))));
        let mut with_null = map("a");
        with_null["metadata"]["creationTimestamp"] = Value::Null;
        assert_eq!(fingerprint(&template(&json!([with_null]))), fingerprint(&template(&json!([map("a")]))));
    }

    #[test]
    fn rules_that_make_conditions_are_found() {
        let rule = json!({ "condition": "Progressing", "type": "CEL", "celExpressions": ["true"] });
        let config = json!({ "resourceIdentifier": { "resource": "pods", "name": "a" }, "conditionRules": [rule] });
        let spec: ManifestWorkSpec =
            serde_json::from_value(json!({ "manifestConfigs": [config] })).expect("a template");
        assert_eq!(Rules::of(&spec), Rules { tell_progressing: true, tell_degraded: false });
        assert_eq!(Rules::of(&ManifestWorkSpec::default()), Rules::default());
    }
}
