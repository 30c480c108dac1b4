//! Who may do what: roles and bindings, as Kubernetes has them.

pub mod aggregation;
mod bootstrap;
pub mod escalation;
pub mod impersonation;
pub mod review;
mod rule;
mod rules;
mod signer;

pub use self::{
    bootstrap::bootstrap,
    rule::Rule,
    rules::{Held, Rules},
    signer::{is_allowed_for_signer, signer_attributes},
};

use crate::{
    failure::{About, Details, Failure},
    user::User,
};

/// The group of those who may do everything, whatever roles there are.
pub const MASTERS: &str = "system:masters";
/// The group of all whose identity was proven.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of all whose identity was not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user who is nobody in particular.
pub const ANONYMOUS: &str = "system:anonymous";
/// The API group of roles and bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who it is.
    pub user: &'a User,
    /// The verb, such as `list`.
    pub verb: &'a str,
    /// What it is done to.
    pub target: Target<'a>,
}

/// What something is done to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// Objects.
    Resource(Resource<'a>),
    /// Something else at this address.
    Path(&'a str),
}

/// Objects that something is done to. What is not said is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The name in addresses, such as `configmaps`.
    pub resource: &'a str,
    /// The part of the object, such as `status`.
    pub subresource: &'a str,
    /// The namespace; empty where all are meant, or there is none.
    pub namespace: &'a str,
    /// The object's name; empty where all are meant.
    pub name: &'a str,
}

/// Whether something may be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may.
    pub allowed: bool,
    /// What allows it, or what could not be looked at; mostly empty where nothing does.
    pub reason: String,
}

impl<'a> Attributes<'a> {
    /// Something done to objects.
    #[must_use]
    pub fn resource(user: &'a User, verb: &'a str, resource: Resource<'a>) -> Self {
        Self { user, verb, target: Target::Resource(resource) }
    }

    /// Something done at an address.
    #[must_use]
    pub fn path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        Self { user, verb, target: Target::Path(path) }
    }

    /// The refusal, with what the decision says besides.
    #[must_use]
    pub fn forbidden(&self, reason: &str) -> Failure {
        let said = self.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let why = if reason.is_empty() { said } else { format!("{said}: {reason}") };
        match self.target {
            Target::Resource(Resource { group, resource, name, .. }) if !(group.is_empty() && resource.is_empty()) => {
                Failure::forbidden(About { group, name: resource }, name, why)
            }
            _ => Failure {
                code: 403,
                reason: "Forbidden",
                message: format!("forbidden: {why}"),
                details: Some(Box::new(Details::default())),
            },
        }
    }
}

impl std::fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { user, verb, target } = self;
        match target {
            Target::Path(path) => write!(f, "User {:?} cannot {verb} path {path:?}", user.name),
            Target::Resource(target) => {
                let (resource, group) = (target.with_subresource(), target.group);
                write!(f, "User {:?} cannot {verb} resource {resource:?} in API group {group:?} ", user.name)?;
                match target.namespace {
                    "" => f.write_str("at the cluster scope"),
                    namespace => write!(f, "in the namespace {namespace:?}"),
                }
            }
        }
    }
}

impl<'a> Resource<'a> {
    /// The resource, and the part of it after a slash.
    pub(crate) fn with_subresource(&self) -> std::borrow::Cow<'a, str> {
        match self.subresource {
            "" => self.resource.into(),
            subresource => format!("{}/{subresource}", self.resource).into(),
        }
    }
}

/// The namespace and the name, if it is the user name of a service account.
#[must_use]
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_label = namespace.len() <= 63 && !namespace.contains('.') && is_subdomain(namespace);
    (is_label && is_subdomain(name)).then_some((namespace, name))
}

/// Whether a text is made like the name of a host, in small letters.
fn is_subdomain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part =
        |part: &str| part.starts_with(inner) && part.ends_with(inner) && part.chars().all(|c| inner(c) || c == '-');
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests;
