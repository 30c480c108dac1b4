//! Answers to who asks what somebody may do, or who somebody is. Nothing of it is kept.
//!
//! Each takes the object that was sent, as its kind has it, and gives it back with a status.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Attributes, Resource, Rules};
use crate::{
    failure::{About, Failure},
    field::{ErrorKind, FieldError, Path},
    user::User,
};

/// What is asked about: objects, or an address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Option<Vec<String>>,
    uid: String,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<SelectorAttributes>,
    label_selector: Option<SelectorAttributes>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SelectorAttributes {
    raw_selector: String,
    requirements: Option<Vec<Value>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NonResourceAttributes {
    path: String,
    verb: String,
}

/// Who a bearer of a token is, or why nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHolder {
    /// The user.
    pub user: User,
    /// For whom the token is, of those who were asked for.
    pub audiences: Vec<String>,
}

/// Whether somebody may do something.
pub fn subject_access(mut review: Value, rules: &Rules) -> Result<Value, Failure> {
    let spec = Spec::read(&review)?;
    let mut errors = spec.errors();
    if spec.user.is_empty() && spec.groups.as_deref().unwrap_or_default().is_empty() {
        let detail = "at least one of user or group must be specified";
        errors.insert(spec.errors_before_user(), invalid("spec.user", "", detail));
    }
    errors.extend(metadata_flaw(&review, false));
    refuse_if_any(&errors)?;
    review["status"] = spec.status(&spec.subject(), rules);
    Ok(review)
}

/// Whether who asks may do something.
pub fn self_subject_access(mut review: Value, user: &User, rules: &Rules) -> Result<Value, Failure> {
    let spec = Spec::read(&review)?;
    let mut errors = spec.errors();
    errors.extend(metadata_flaw(&review, false));
    refuse_if_any(&errors)?;
    review["status"] = spec.status(user, rules);
    Ok(review)
}

/// Whether somebody may do something in the namespace of the request.
pub fn local_subject_access(mut review: Value, namespace: &str, rules: &Rules) -> Result<Value, Failure> {
    let spec = Spec::read(&review)?;
    let own = review["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut errors = spec.errors();
    if spec.user.is_empty() && spec.groups.as_deref().unwrap_or_default().is_empty() {
        let detail = "at least one of user or group must be specified";
        errors.insert(spec.errors_before_user(), invalid("spec.user", "", detail));
    }
    errors.extend(metadata_flaw(&review, true));
    if let Some(asked) = spec.resource_attributes.as_ref().filter(|asked| asked.namespace != own) {
        let detail = "must match metadata.namespace";
        errors.push(invalid("spec.resourceAttributes.namespace", asked.namespace.as_str(), detail));
    }
    if let Some(asked) = &spec.non_resource_attributes {
        let detail = "disallowed on this kind of request";
        errors.push(invalid("spec.nonResourceAttributes", asked.in_go(), detail));
    }
    refuse_if_any(&errors)?;
    if own != namespace {
        let message = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
        return Err(Failure::bad_request(message));
    }
    review["status"] = spec.status(&spec.subject(), rules);
    Ok(review)
}

/// All that who asks may do in a namespace.
pub fn self_subject_rules(review: &Value, user: &User, rules: &Rules) -> Result<Value, Failure> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Failure::bad_request("no namespace on request"));
    }
    let held = rules.rules_for(user, namespace);
    let mut status = json!({ "resourceRules": [], "nonResourceRules": [], "incomplete": false });
    for rule in &held.rules {
        if !rule.resources.is_empty() {
            let rule = super::Rule { non_resource_urls: Vec::new(), ..rule.clone() };
            push(&mut status["resourceRules"], json!(rule));
        }
        if !rule.non_resource_urls.is_empty() {
            let (verbs, urls) = (&rule.verbs, &rule.non_resource_urls);
            push(&mut status["nonResourceRules"], json!({ "verbs": verbs, "nonResourceURLs": urls }));
        }
    }
    if !held.errors.is_empty() {
        status["evaluationError"] = super::rules::aggregate(&held.errors).into();
    }
    Ok(json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

/// Who asks. The time is that of the answer, as objects spell it.
#[must_use]
pub fn self_subject(user: &User, now: &str) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
        "metadata": { "creationTimestamp": now },
        "status": { "userInfo": user_info(user) },
    })
}

/// Who has a token: the verifier says, given the token and for whom it has to be. It gives nothing for a token of nobody's, and an
/// error for one that is known to be wrong.
pub fn token(
    mut review: Value,
    api_audiences: &[String],
    verify: impl FnOnce(&str, &[String]) -> Result<Option<TokenHolder>, String>,
) -> Result<Value, Failure> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let asked = Vec::<String>::deserialize(&review["spec"]["audiences"]).unwrap_or_default();
    let audiences = if asked.is_empty() { api_audiences } else { &asked };
    review["status"] = match verify(token, audiences) {
        Ok(Some(holder)) => {
            let mut status = json!({ "authenticated": true, "user": user_info(&holder.user) });
            if !holder.audiences.is_empty() {
                status["audiences"] = json!(holder.audiences);
            }
            status
        }
        Ok(None) => json!({ "user": {}, "error": "invalid bearer token" }),
        Err(why) => json!({ "user": {}, "error": why }),
    };
    Ok(review)
}

/// A user as reviews and requests for admission spell it.
#[must_use]
pub fn user_info(user: &User) -> Value {
    let mut info = json!({});
    let texts = [("username", &user.name), ("uid", &user.uid)];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        info[field] = text.as_str().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

impl Spec {
    fn read(review: &Value) -> Result<Self, Failure> {
        match &review["spec"] {
            Value::Null => Ok(Self::default()),
            spec => Self::deserialize(spec).map_err(|error| Failure::bad_request(error.to_string())),
        }
    }

    /// How many errors are told before the one about the user.
    fn errors_before_user(&self) -> usize {
        usize::from(self.resource_attributes.is_some() == self.non_resource_attributes.is_some())
    }

    fn errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(_), Some(other)) => {
                let detail = "cannot be specified in combination with resourceAttributes";
                errors.push(invalid("spec.nonResourceAttributes", other.in_go(), detail));
            }
            (None, None) => {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                errors.push(invalid("spec.resourceAttributes", Value::Null, detail));
            }
            _ => {}
        }
        if let Some(asked) = &self.resource_attributes {
            for (name, selector) in [("fieldSelector", &asked.field_selector), ("labelSelector", &asked.label_selector)]
            {
                errors.extend(selector.as_ref().and_then(|selector| selector.flaw(name)));
            }
        }
        errors
    }

    fn subject(&self) -> User {
        User {
            name: self.user.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone().unwrap_or_default(),
            extra: self.extra.clone().unwrap_or_default(),
        }
    }

    fn status(&self, user: &User, rules: &Rules) -> Value {
        let attributes = match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(asked), _) => Attributes::resource(user, &asked.verb, asked.resource()),
            (None, asked) => {
                let (verb, path) = asked.as_ref().map_or(("", ""), |asked| (&asked.verb, &asked.path));
                Attributes::path(user, verb, path)
            }
        };
        let decision = rules.allows(&attributes);
        let mut status = json!({ "allowed": decision.allowed });
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        status
    }
}

impl ResourceAttributes {
    fn resource(&self) -> Resource<'_> {
        Resource {
            group: &self.group,
            version: if self.version.is_empty() { "*" } else { &self.version },
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
        }
    }
}

impl NonResourceAttributes {
    /// As messages have it, which do not know the names of fields in JSON.
    fn in_go(&self) -> Value {
        json!({ "Path": self.path, "Verb": self.verb })
    }
}

impl SelectorAttributes {
    fn flaw(&self, name: &str) -> Option<FieldError> {
        let field = format!("spec.resourceAttributes.{name}");
        let has_requirements = self.requirements.as_ref().is_some_and(|requirements| !requirements.is_empty());
        match (self.raw_selector.is_empty(), has_requirements) {
            (false, true) => {
                let detail = "may not specified at the same time as requirements";
                Some(invalid(&format!("{field}.rawSelector"), self.raw_selector.as_str(), detail))
            }
            (true, false) => {
                let detail = format!("when {field} is specified, requirements or rawSelector is required");
                let field = format!("{field}.requirements");
                Some(FieldError::bare(ErrorKind::Required, &Path::Field(&Path::Root, &field), detail))
            }
            _ => None,
        }
    }
}

/// Reviews have no name, and nothing else that objects have.
fn metadata_flaw(review: &Value, may_have_namespace: bool) -> Option<FieldError> {
    let metadata = review["metadata"].as_object()?;
    let is_said = |(field, value): (&String, &Value)| {
        let allowed = field == "managedFields" || (may_have_namespace && field == "namespace");
        !allowed && !value.is_null()
    };
    let detail = if may_have_namespace { "must be empty except for namespace" } else { "must be empty" };
    metadata.iter().any(is_said).then(|| invalid("metadata", review["metadata"].clone(), detail))
}

fn invalid(field: &str, value: impl Into<Value>, detail: &str) -> FieldError {
    FieldError::new(ErrorKind::Invalid, &Path::Field(&Path::Root, field), value, detail)
}

/// The kind is not said, because the real server has lost it by then.
fn refuse_if_any(errors: &[FieldError]) -> Result<(), Failure> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(About { group: "authorization.k8s.io", name: "" }, "", errors))
}

fn push(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
