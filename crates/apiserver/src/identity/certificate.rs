//! Who a client's certificate is for. That it was signed by somebody who may is up to TLS.

use sha2::{Digest, Sha256};
use x509_cert::{
    Certificate,
    der::{
        Any, Decode, Tag, Tagged,
        asn1::{BmpString, Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef},
        oid::{ObjectIdentifier, db::rfc4519},
    },
    name::RelativeDistinguishedName,
};

use super::{CREDENTIAL, authenticated};
use crate::user::User;

/// The part of a subject that tells one user from another who had the name before.
const UID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57683.2");

/// Why a certificate is nobody's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unidentified {
    /// It can not be read.
    #[error("the client's certificate can not be read")]
    Unreadable,
    /// It has no common name.
    #[error("the client's certificate has no common name")]
    Nameless,
    /// The uid is there more than once.
    #[error("expected 1 UID, but found multiple: [{0}]")]
    SeveralUids(String),
    /// The uid says nothing.
    #[error("UID cannot be an empty string")]
    EmptyUid,
}

/// The user that a certificate is for: the common name, and an organisation for each group.
pub fn of_certificate(der: &[u8]) -> Result<User, Unidentified> {
    let certificate = Certificate::from_der(der).map_err(|_| Unidentified::Unreadable)?;
    let subject = certificate.tbs_certificate().subject();
    let (mut name, mut groups, mut uids) = (String::new(), Vec::new(), Vec::new());
    // Of several organisations, some write one set and some many.
    for attribute in subject.iter_rdn().flat_map(RelativeDistinguishedName::iter) {
        let Some(text) = text(&attribute.value) else { continue };
        match attribute.oid {
            rfc4519::CN => name = text,
            rfc4519::O => groups.push(text),
            UID => uids.push(text),
            _ => {}
        }
    }
    let uid = match uids.as_slice() {
        [] => String::new(),
        [only] if only.is_empty() => return Err(Unidentified::EmptyUid),
        [only] => only.clone(),
        several => return Err(Unidentified::SeveralUids(several.join(" "))),
    };
    if name.is_empty() {
        return Err(Unidentified::Nameless);
    }
    let extra = [(CREDENTIAL.to_owned(), vec![format!("X509SHA256={}", hex(&Sha256::digest(der)))])].into();
    Ok(authenticated(User { name, uid, groups, extra }))
}

fn text(value: &Any) -> Option<String> {
    let text = match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::TeletexString => value.decode_as::<TeletexStringRef<'_>>().ok()?.as_str().to_owned(),
        Tag::BmpString => value.decode_as::<BmpString>().ok()?.to_string(),
        _ => return None,
    };
    Some(text)
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
