//! What a certificate says, before it is signed.
//!
//! All of it is decided here, so that who has the CA's key only signs. Of the request it has the subject and the public key, and nothing else.

use k8s_openapi::{
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt;
use sha2::{Digest, Sha256};
use x509_cert::{
    certificate::{Rfc5280, Version},
    der::{
        self, Any, Decode, Encode, Tag, TagNumber,
        asn1::{BitString, GeneralizedTime, Null, OctetString, UtcTime},
        flagset::FlagSet,
        oid::{
            AssociatedOid, ObjectIdentifier,
            db::{rfc5280::ID_KP_CLIENT_AUTH, rfc5912, rfc8410::ID_ED_25519},
        },
        pem::{self, LineEnding},
    },
    ext::{
        Extension,
        pkix::{AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages},
    },
    serial_number::SerialNumber,
    spki::AlgorithmIdentifierOwned,
    time::{Time, Validity},
};

use super::{
    Authority, SigningFlaw,
    request::{Asked, DIGITAL_SIGNATURE, KEY_ENCIPHERMENT},
};

/// How long it is valid at least, whatever is asked for: as with Kubernetes' own signers.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
/// How far a clock may be behind that is to find it valid at once.
const LEEWAY: SignedDuration = SignedDuration::from_mins(5);

/// How a certificate is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA as in PKCS#1, with SHA-256.
    RsaSha256,
    /// ECDSA with SHA-256, for P-256.
    EcdsaSha256,
    /// ECDSA with SHA-384, for P-384.
    EcdsaSha384,
    /// Ed25519.
    Ed25519,
}

impl Algorithm {
    fn identifier(self) -> AlgorithmIdentifierOwned {
        let (oid, parameters) = match self {
            Self::RsaSha256 => (rfc5912::SHA_256_WITH_RSA_ENCRYPTION, Some(Null.into())),
            Self::EcdsaSha256 => (rfc5912::ECDSA_WITH_SHA_256, None),
            Self::EcdsaSha384 => (rfc5912::ECDSA_WITH_SHA_384, None),
            Self::Ed25519 => (ID_ED_25519, None),
        };
        AlgorithmIdentifierOwned { oid, parameters }
    }
}

/// A certificate that lacks nothing but its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    contents: Any,
    encoded: Vec<u8>,
    algorithm: Algorithm,
}

impl Draft {
    /// What is signed.
    #[must_use]
    pub fn to_be_signed(&self) -> &[u8] {
        &self.encoded
    }

    /// The certificate with its signature, in PEM.
    pub fn signed(self, signature: &[u8]) -> Result<String, SigningFlaw> {
        let Self { contents, algorithm, .. } = self;
        let certificate = || {
            let parts = [contents, any(&algorithm.identifier())?, any(&BitString::from_bytes(signature)?)?];
            parts.to_vec().to_der()
        };
        let certificate = certificate().map_err(unwritable)?;
        pem::encode_string("CERTIFICATE", LineEnding::LF, &certificate).map_err(|error| unwritable(error.into()))
    }
}

/// The certificate that an approved request gets from a CA which signs in this way, and for no longer than this.
pub fn draft(
    request: &CertificateSigningRequest,
    ca: &Authority,
    algorithm: Algorithm,
    longest: SignedDuration,
    now: Timestamp,
) -> Result<Draft, SigningFlaw> {
    let asked = Asked::read(&request.spec)?;
    let (not_before, not_after) = validity(&request.spec, ca, longest, now)?;
    let contents = || {
        let validity = Validity::<Rfc5280>::new(time(not_before)?, time(not_after)?);
        let parts = [
            explicit(0, &Version::V3)?,
            any(&serial_number(request)?)?,
            any(&algorithm.identifier())?,
            ca.name.clone(),
            any(&validity)?,
            asked.name,
            asked.key,
            explicit(3, &extensions(&request.spec, ca)?)?,
        ];
        any(&parts.to_vec())
    };
    let contents = contents().map_err(unwritable)?;
    let encoded = contents.to_der().map_err(unwritable)?;
    Ok(Draft { contents, encoded, algorithm })
}

fn unwritable(error: der::Error) -> SigningFlaw {
    SigningFlaw::Unwritable(error.to_string())
}

/// From when and until when the certificate is valid: never when its CA is not.
fn validity(
    spec: &CertificateSigningRequestSpec,
    ca: &Authority,
    longest: SignedDuration,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), SigningFlaw> {
    if now < ca.not_before {
        return Err(SigningFlaw::NotYetValid(ca.not_before));
    }
    if now >= ca.not_after {
        return Err(SigningFlaw::Expired(ca.not_after));
    }
    let asked = spec.expiration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
    let lifetime = asked.map_or(longest, |asked| asked.clamp(SHORTEST.min(longest), longest));
    let not_before = now.saturating_sub(LEEWAY).unwrap_or(now).max(ca.not_before);
    let not_after = now.saturating_add(lifetime).unwrap_or(ca.not_after).min(ca.not_after);
    Ok((not_before, not_after))
}

/// A number that no other request gets, and this one each time that it is signed.
fn serial_number(request: &CertificateSigningRequest) -> der::Result<SerialNumber> {
    let hash = Sha256::new().chain_update(request.uid().unwrap_or_default()).chain_update(&request.spec.request.0);
    let mut number = [0; 16];
    number.copy_from_slice(&hash.finalize()[..16]);
    // It has to be positive, and to have its whole length.
    number[0] = number[0] & 0x7f | 0x40;
    SerialNumber::new(&number)
}

fn extensions(spec: &CertificateSigningRequestSpec, ca: &Authority) -> der::Result<Vec<Extension>> {
    let mut extensions = vec![extension(true, &BasicConstraints { ca: false, path_len_constraint: None })?];
    let usages = key_usages(spec);
    if !usages.is_empty() {
        extensions.push(extension(true, &KeyUsage(usages))?);
    }
    extensions.push(extension(false, &ExtendedKeyUsage(vec![ID_KP_CLIENT_AUTH]))?);
    if let Some(key_identifier) = ca.key_identifier.clone() {
        let authority = AuthorityKeyIdentifier { key_identifier: Some(key_identifier), ..Default::default() };
        extensions.push(extension(false, &authority)?);
    }
    Ok(extensions)
}

/// What the key may be used for, of what the request asks for. That it is for clients is said elsewhere.
fn key_usages(spec: &CertificateSigningRequestSpec) -> FlagSet<KeyUsages> {
    let mut usages = FlagSet::default();
    for usage in spec.usages.iter().flatten() {
        match usage.as_str() {
            DIGITAL_SIGNATURE => usages |= KeyUsages::DigitalSignature,
            KEY_ENCIPHERMENT => usages |= KeyUsages::KeyEncipherment,
            _ => {}
        }
    }
    usages
}

fn extension<T: Encode + AssociatedOid>(critical: bool, value: &T) -> der::Result<Extension> {
    let extn_id: ObjectIdentifier = T::OID;
    Ok(Extension { extn_id, critical, extn_value: OctetString::new(value.to_der()?)? })
}

/// A time as certificates have it: with two digits for the year as long as that will do.
fn time(time: Timestamp) -> der::Result<Time> {
    let since = std::time::Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let short = UtcTime::from_unix_duration(since).map(Time::UtcTime);
    short.or_else(|_| GeneralizedTime::from_unix_duration(since).map(Time::GeneralTime))
}

fn any<T: Encode>(value: &T) -> der::Result<Any> {
    Any::from_der(&value.to_der()?)
}

/// A part that is told by its number.
fn explicit<T: Encode>(number: u32, value: &T) -> der::Result<Any> {
    Any::new(Tag::ContextSpecific { constructed: true, number: TagNumber(number) }, value.to_der()?)
}
