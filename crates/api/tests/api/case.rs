//! The cases of `rules.yaml`: rules, objects that break them, and objects that keep them.

use serde::Deserialize;
use serde_json::Value;

/// One case; the head of the file says what its parts mean.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) rule: String,
    pub(crate) by: By,
    pub(crate) field: Option<String>,
    pub(crate) before: Option<Value>,
    pub(crate) refused: Option<Value>,
    pub(crate) accepted: Value,
    #[serde(default)]
    pub(crate) keep_name: bool,
}

/// Who refuses an object.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    Cel,
    Schema,
    /// Nobody: OCM accepts it.
    Ocm,
}

pub(crate) fn cases() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("../rules.yaml")).expect("rules.yaml holds cases")
}
