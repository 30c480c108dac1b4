//! The request that policies judge.

use serde_json::{Value, json};

use crate::{
    access::review::user_info,
    kind::{Kind, Origin},
    user::{Part, User},
};

/// What is to be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is to be there.
    Create,
    /// It is to be otherwise.
    Update,
    /// It is to go.
    Delete,
}

/// A request to change something, after all that the server itself has to say about it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What is to be done.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: &'a Kind,
    /// The version that the request is made in.
    pub version: &'a str,
    /// The part of the object.
    pub part: Part,
    /// The namespace; empty if there is none.
    pub namespace: &'a str,
    /// The name in the address; empty when something is created.
    pub name: &'a str,
    /// Who asks.
    pub user: &'a User,
    /// The object as it is to be, in the version of the request; nothing when it is to go.
    pub object: Option<&'a Value>,
    /// The object as it is, in the version of the request; nothing when it is created.
    pub old: Option<&'a Value>,
    /// The namespace as an object, if there is one.
    pub namespace_object: Option<&'a Value>,
    /// The options, such as a CreateOptions.
    pub options: Option<&'a Value>,
    /// Whether nothing is to be kept of it.
    pub is_dry_run: bool,
    /// An object of the kind in another version, for policies that are written for that one.
    pub convert: &'a (dyn Fn(&Value, &str) -> Value + Sync),
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

impl<'a> Request<'a> {
    /// Whether no policy judges it: those that could lock everybody out, and questions that nothing is kept of.
    pub(super) fn is_exempt(&self) -> bool {
        let is_of_policies = self.kind.group == "admissionregistration.k8s.io"
            && (self.kind.kind.contains("AdmissionPolicy") || self.kind.kind.ends_with("WebhookConfiguration"));
        is_of_policies || self.kind.origin == Origin::Review
    }

    pub(super) fn is_of_namespaces(&self) -> bool {
        self.kind.group.is_empty() && self.kind.plural == "namespaces"
    }

    /// The namespace that it is in. One that is changed is in itself.
    pub(super) fn namespace(&self) -> &'a str {
        if self.is_of_namespaces() { self.name } else { self.namespace }
    }

    pub(super) fn subresource(&self) -> &'static str {
        match self.part {
            Part::Whole => "",
            Part::Status => "status",
            Part::Scale => "scale",
            Part::Approval => "approval",
            Part::Finalize => "finalize",
        }
    }

    /// The object's name; empty if it is still to be made.
    pub(super) fn name(&self) -> &'a str {
        match self.name {
            "" => self.said_in_object("name").unwrap_or_default(),
            name => name,
        }
    }

    /// The name as a refusal tells it.
    pub(super) fn told_name(&self) -> &'a str {
        match self.name() {
            "" => self.said_in_object("generateName").unwrap_or("Unknown"),
            name => name,
        }
    }

    fn said_in_object(&self, field: &str) -> Option<&'a str> {
        self.object?["metadata"][field].as_str().filter(|text| !text.is_empty())
    }

    /// What expressions see as `request`, in a version that a policy is written for.
    pub(super) fn seen_in(&self, version: &str) -> Value {
        let mut request = json!({
            "uid": "",
            "kind": self.kind_in(version),
            "resource": self.resource_in(version),
            "requestKind": self.kind_in(self.version),
            "requestResource": self.resource_in(self.version),
            "operation": self.operation.name(),
            "userInfo": user_info(self.user),
            "object": null,
            "oldObject": null,
            "dryRun": self.is_dry_run,
            "options": self.options,
        });
        let subresource = self.subresource();
        let texts = [
            ("subResource", subresource),
            ("requestSubResource", subresource),
            ("name", self.name()),
            ("namespace", self.namespace()),
        ];
        for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[field] = text.into();
        }
        request
    }

    fn kind_in(&self, version: &str) -> Value {
        match self.part {
            Part::Scale => json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }),
            _ => json!({ "group": self.kind.group, "version": version, "kind": self.kind.kind }),
        }
    }

    fn resource_in(&self, version: &str) -> Value {
        json!({ "group": self.kind.group, "version": version, "resource": self.kind.plural })
    }
}
