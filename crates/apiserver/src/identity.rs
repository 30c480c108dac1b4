//! Who sends a request: by a client's certificate, by a service account's token, by a token that is written down somewhere, or nobody.

mod certificate;
mod token;

pub use self::{
    certificate::{Unidentified, of_certificate},
    token::{Account, Issuer, TokenRequest, Verified, Why},
};

use crate::{
    access::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED},
    user::User,
};

/// What is proven besides of who it is: by which certificate or token.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Nobody in particular.
#[must_use]
pub fn anonymous() -> User {
    User { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..User::default() }
}

/// A user who has a token that is written down somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticToken {
    /// The token.
    pub token: String,
    /// Who has it, without the group of all who are known.
    pub user: User,
}

/// Who has this token, of those that are written down. How long it takes says nothing about how much of it is right.
#[must_use]
pub fn of_static_token(token: &str, known: &[StaticToken]) -> Option<User> {
    let mut found = None;
    for candidate in known {
        if is_same(token.as_bytes(), candidate.token.as_bytes()) && !token.is_empty() {
            found = found.or(Some(&candidate.user));
        }
    }
    found.cloned().map(authenticated)
}

/// Compares without telling by the time where the first difference is.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0, |difference, (left, right)| difference | (left ^ right));
    std::hint::black_box(difference) == 0 && left.len() == right.len()
}

/// The user with the group of all who are known.
fn authenticated(mut user: User) -> User {
    if !user.groups.iter().any(|group| group == AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

#[cfg(test)]
mod tests;
