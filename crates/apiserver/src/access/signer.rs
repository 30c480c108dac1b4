//! Who may approve requests for certificates of a signer, and who may sign them.

use super::{Attributes, Resource, Rules};
use crate::user::User;

/// What somebody has to be allowed to who `approve`s or `sign`s for a signer of this name, or for all of a domain, which is `domain/*`.
#[must_use]
pub fn signer_attributes<'a>(user: &'a User, verb: &'a str, name: &'a str) -> Attributes<'a> {
    let group = "certificates.k8s.io";
    Attributes::resource(user, verb, Resource { group, version: "*", resource: "signers", name, ..Resource::default() })
}

/// Whether somebody may `approve` or `sign` requests of a signer, by its name or by its domain.
#[must_use]
pub fn is_allowed_for_signer(rules: &Rules, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let all_of_domain = format!("{domain}/*");
    [signer, &all_of_domain].into_iter().any(|name| rules.allows(&signer_attributes(user, verb, name)).allowed)
}
