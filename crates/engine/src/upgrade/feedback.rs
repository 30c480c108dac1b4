//! What the agent of a cluster reports of its ClusterVersion. A value that is missing, or of another type than it should be, says nothing.

use drover_api::work::{FieldValue, ManifestWorkStatus};

/// The values that an agent reports of one object of a work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feedback(Vec<(String, FieldValue)>);

impl Feedback {
    /// The values that are reported of the object of that resource.
    #[must_use]
    pub fn read(status: &ManifestWorkStatus, resource: &str) -> Self {
        let manifests = status.resource_status.iter().flat_map(|status| &status.manifests);
        let of_resource = |meta: &Option<String>| meta.as_deref() == Some(resource);
        let found = manifests.filter(|manifest| of_resource(&manifest.resource_meta.resource));
        let values =
            found.filter_map(|manifest| manifest.status_feedback.as_ref()).flat_map(|feedback| &feedback.values);
        Self(values.map(|value| (value.name.clone(), value.field_value.clone())).collect())
    }

    /// A text that is not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.string.as_deref().filter(|text| !text.is_empty())
    }

    fn value(&self, name: &str) -> Option<&FieldValue> {
        self.0.iter().find(|(reported, _)| reported == name).map(|(_, value)| value)
    }
}

/// What a ClusterVersion says its cluster runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The version that the cluster runs, or is on its way to.
    pub version: Option<String>,
    /// The image of that.
    pub image: Option<String>,
    /// Whether it has got there.
    pub is_complete: bool,
    /// Whether it is on its way.
    pub is_moving: bool,
    /// The channel that it takes updates from.
    pub channel: Option<String>,
}

impl Running {
    /// What is reported.
    #[must_use]
    pub fn read(feedback: &Feedback) -> Self {
        let text = |name| feedback.text(name).map(str::to_owned);
        Self {
            version: text("version"),
            image: text("image"),
            is_complete: feedback.text("state") == Some("Completed"),
            is_moving: feedback.text("state") == Some("Partial"),
            channel: text("channel"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn feedback(values: &Value) -> Feedback {
        let manifest = json!({ "resourceMeta": { "ordinal": 0, "resource": "clusterversions" }, "conditions": [],
            "statusFeedback": { "values": values } });
        let other = json!({ "resourceMeta": { "ordinal": 1, "resource": "clusterroles" }, "conditions": [],
            "statusFeedback": { "values": [{ "name": "version", "fieldValue": { "type": "String", "string": "9.9.9" } }] } });
        let status = json!({ "resourceStatus": { "manifests": [other, manifest] } });
        Feedback::read(&serde_json::from_value(status).expect("a status"), "clusterversions")
    }

    #[test]
    fn values_of_the_right_object_and_type_count() {
        let text =
            |name: &str, value: &str| json!({ "name": name, "fieldValue": { "type": "String", "string": value } });
        let running = Running::read(&feedback(&json!([text("version", "4.12.0"), text("state", "Completed")])));
        assert_eq!((running.version.as_deref(), running.is_complete), (Some("4.12.0"), true));
        let number = json!({ "name": "version", "fieldValue": { "type": "Integer", "integer": 4 } });
        assert_eq!(Running::read(&feedback(&json!([number, text("state", "")]))), Running::default());
        assert_eq!(Running::read(&Feedback::default()), Running::default());
    }
}
