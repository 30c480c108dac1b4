//! Groups of the Kubernetes community, for which somebody has to have approved an API.

use serde_json::Value;

use crate::schema::format;

/// The annotation that says who did.
pub(super) const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// The group needs none.
    NotNeeded,
    /// Nothing.
    Missing,
    /// That it is done without.
    Bypassed,
    /// Where it was approved.
    Approved,
    /// Something else.
    Invalid,
}

pub(super) fn of(crd: &Value) -> Approval {
    let group = super::text(crd, "/spec/group");
    let is_protected = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return Approval::NotNeeded;
    }
    match annotation(crd) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if is_address(text) => Approval::Approved,
        _ => Approval::Invalid,
    }
}

pub(super) fn annotation(crd: &Value) -> &str {
    crd.pointer("/metadata/annotations").and_then(|all| all.get(ANNOTATION)).and_then(Value::as_str).unwrap_or_default()
}

fn is_address(text: &str) -> bool {
    let has_host = text
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.starts_with('/') && !rest.is_empty());
    has_host && format::check_of("uri").is_some_and(|check| check(text))
}

impl Approval {
    /// What is told about it.
    pub(super) fn reason(&self, crd: &Value) -> String {
        let said = annotation(crd);
        match self {
            Self::NotNeeded => String::new(),
            Self::Missing => format!("protected groups must have approval annotation {ANNOTATION:?}, {SEE}"),
            Self::Bypassed => format!("not approved: {said:?}"),
            Self::Approved => format!("approved in {said}"),
            Self::Invalid => format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {SEE}"
            ),
        }
    }
}
