//! A client certificate, as far as it matters to whom it was given.

use std::collections::BTreeSet;

use drover_api::addon::Subject;
use k8s_openapi::jiff::Timestamp;
use x509_cert::{
    Certificate as X509,
    der::{Decode, pem},
};

use crate::certificate::{authority::timestamp, request::Subject as Said};

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The user that it makes of who has it.
    pub user: String,
    /// The groups that the user is in.
    pub groups: BTreeSet<String>,
    /// The units of the user's organisation.
    pub units: BTreeSet<String>,
    /// From when it is valid.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
}

/// Why a certificate can not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has to be an X.509 certificate in PEM, for one user")]
pub struct Unreadable;

impl Certificate {
    /// Reads the first certificate in a text, in PEM: others that follow are those of who has signed it.
    pub fn read(text: &[u8]) -> Result<Self, Unreadable> {
        let block = first(text).ok_or(Unreadable)?;
        let (_, encoded) = pem::decode_vec(block).map_err(|_| Unreadable)?;
        let read = X509::from_der(&encoded).map_err(|_| Unreadable)?;
        let contents = read.tbs_certificate();
        let said = Said::of(contents.subject()).ok_or(Unreadable)?;
        Ok(Self {
            user: said.name().ok_or(Unreadable)?.to_owned(),
            groups: said.organisations,
            units: said.units,
            not_before: timestamp(contents.validity().not_before),
            not_after: timestamp(contents.validity().not_after),
        })
    }

    /// Whether it is for that user, in those groups and units and no others, in whatever order.
    #[must_use]
    pub fn is_for(&self, subject: &Subject) -> bool {
        let are = |there: &BTreeSet<String>, wanted: &[String]| there.iter().eq(wanted.iter().collect::<BTreeSet<_>>());
        subject.user.as_deref() == Some(&self.user)
            && are(&self.groups, &subject.groups)
            && are(&self.units, subject.units())
    }
}

/// The first of several certificates in PEM.
fn first(text: &[u8]) -> Option<&[u8]> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = str::from_utf8(text).ok()?.trim_start();
    let end = text.find(END)? + END.len();
    text.starts_with("-----BEGIN CERTIFICATE-----").then(|| &text.as_bytes()[..end])
}
