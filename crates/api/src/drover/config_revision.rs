//! The content of a configuration at one moment, kept so that a rollout can finish what it began.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    addon::{ConfigGroupResource, ConfigReferent},
    grammar::SpecHash,
    schema::rules,
};

/// One content of a configuration.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "drover.dev",
    version = "v1alpha1",
    kind = "ConfigRevision",
    doc = "The content that a configuration had when it was first rolled out. Clusters are rendered from revisions, never from the live object, so that an edit reaches no cluster before its turn. Made and removed by the hub.",
    namespaced,
    shortname = "crev",
    category = "drover",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.resource"),
    printcolumn(name = "Source", type_ = "string", json_path = ".spec.source.name"),
    printcolumn(name = "Hash", type_ = "string", json_path = ".spec.specHash"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!(has(self.group) && self.group == '' && self.resource == 'secrets' && has(self.content))",
        "the content of a Secret is never kept: leave content out"
    ),
    ("self == oldSelf", "a revision never changes: edit the configuration itself, and the hub makes a new revision of it"),
])))]
pub struct ConfigRevisionSpec {
    /// The configuration's type.
    #[serde(flatten)]
    pub group_resource: ConfigGroupResource,
    /// The object that the content was first seen in. Other objects with the same content share the revision.
    pub source: ConfigReferent,
    /// The hash of the content.
    pub spec_hash: SpecHash,
    /// The content: the JSON text that the hash is of. Left out for Secrets, of which only the hash is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}
