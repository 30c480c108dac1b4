//! Certificates of the server's own.

use std::{fmt::Display, net::IpAddr, time::Duration};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use p256::{
    ecdsa::{DerSignature, SigningKey},
    elliptic_curve::Generate,
    pkcs8::LineEnding,
};
use sha2::{Digest, Sha256};
use x509_cert::{
    Certificate, TbsCertificate,
    builder::{self, Builder, CertificateBuilder, profile::BuilderProfile},
    der::{
        self, DecodePem, Encode, EncodePem,
        asn1::{GeneralizedTime, Ia5String, OctetString, UtcTime},
        oid::{
            AssociatedOid,
            db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH},
        },
    },
    ext::{
        Extension,
        pkix::{
            AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
            SubjectKeyIdentifier, name::GeneralName,
        },
    },
    name::Name,
    serial_number::SerialNumber,
    spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef},
    time::{Time, Validity},
};

use super::{Hosts, NAMES, Pair, key_in, pem};

/// How far a clock may be behind that is to find a certificate valid at once.
const LEEWAY: SignedDuration = SignedDuration::from_mins(5);

/// A key or certificate that can not be made, written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unwritable(String);

impl Unwritable {
    pub(super) fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose<'a> {
    /// To sign others.
    Authority,
    /// To be shown to clients, by who is reached there.
    Server(&'a Hosts),
    /// To be shown to servers.
    Client,
}

/// A certificate and its key.
pub(super) struct Certified {
    certificate: Certificate,
    key: SigningKey,
}

impl Certified {
    /// A new authority of that name.
    pub(super) fn authority(name: &str, now: Timestamp, lifetime: SignedDuration) -> Result<Self, Unwritable> {
        let name: Name = format!("CN={name}").parse().map_err(Unwritable::new)?;
        let key = SigningKey::generate();
        let profile = Profile { issuer: name.clone(), subject: name, purpose: Purpose::Authority };
        certify(profile, key.clone(), &key, now, lifetime)
    }

    /// Reads a certificate and its key.
    pub(super) fn read(pair: &Pair) -> Result<Self, Unwritable> {
        let certificate = Certificate::from_pem(&pair.certificate).map_err(Unwritable::new)?;
        Ok(Self { certificate, key: key_in(&pair.key).map_err(Unwritable::new)? })
    }

    /// A new certificate with a key of its own, signed by this one.
    pub(super) fn certify(
        &self,
        subject: &str,
        purpose: Purpose<'_>,
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<Self, Unwritable> {
        let issuer = self.certificate.tbs_certificate().subject().clone();
        let subject = subject.parse().map_err(Unwritable::new)?;
        certify(Profile { issuer, subject, purpose }, SigningKey::generate(), &self.key, now, lifetime)
    }

    pub(super) fn pair(&self) -> Result<Pair, Unwritable> {
        let certificate = self.certificate.to_pem(LineEnding::LF).map_err(Unwritable::new)?;
        Ok(Pair { certificate, key: pem(&self.key)? })
    }
}

fn certify(
    profile: Profile<'_>,
    key: SigningKey,
    signer: &SigningKey,
    now: Timestamp,
    lifetime: SignedDuration,
) -> Result<Certified, Unwritable> {
    let made = || {
        let public = SubjectPublicKeyInfoOwned::from_key(key.verifying_key())?;
        let number = serial_number(&public)?;
        let from = now.saturating_sub(LEEWAY).unwrap_or(now);
        let until = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let builder = CertificateBuilder::new(profile, number, Validity::new(time(from)?, time(until)?), public)?;
        builder.build::<_, DerSignature>(signer)
    };
    let certificate = made().map_err(Unwritable::new)?;
    Ok(Certified { certificate, key })
}

/// A number that no other key gets.
fn serial_number(key: &SubjectPublicKeyInfoOwned) -> der::Result<SerialNumber> {
    let mut number = [0; 16];
    number.copy_from_slice(&Sha256::digest(key.to_der()?)[..16]);
    // It has to be positive, and to have its whole length.
    number[0] = number[0] & 0x7f | 0x40;
    SerialNumber::new(&number)
}

fn time(time: Timestamp) -> der::Result<Time> {
    let since = Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let short = UtcTime::from_unix_duration(since).map(Time::UtcTime);
    short.or_else(|_| GeneralizedTime::from_unix_duration(since).map(Time::GeneralTime))
}

/// What a certificate says.
struct Profile<'a> {
    issuer: Name,
    subject: Name,
    purpose: Purpose<'a>,
}

impl BuilderProfile for Profile<'_> {
    fn get_issuer(&self, _: &Name) -> Name {
        self.issuer.clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        key: SubjectPublicKeyInfoRef<'_>,
        issuer_key: SubjectPublicKeyInfoRef<'_>,
        _: &TbsCertificate,
    ) -> builder::Result<Vec<Extension>> {
        let is_authority = matches!(self.purpose, Purpose::Authority);
        let constraints = BasicConstraints { ca: is_authority, path_len_constraint: None };
        let usages = if is_authority {
            KeyUsages::KeyCertSign | KeyUsages::CRLSign | KeyUsages::DigitalSignature
        } else {
            KeyUsages::DigitalSignature.into()
        };
        let issuer = AuthorityKeyIdentifier { key_identifier: Some(identifier(&issuer_key)?), ..Default::default() };
        let mut extensions = vec![
            extension(true, &constraints)?,
            extension(true, &KeyUsage(usages))?,
            extension(false, &SubjectKeyIdentifier(identifier(&key)?))?,
            extension(false, &issuer)?,
        ];
        match self.purpose {
            Purpose::Authority => {}
            Purpose::Server(hosts) => {
                extensions.push(extension(false, &ExtendedKeyUsage(vec![ID_KP_SERVER_AUTH]))?);
                extensions.push(extension(false, &alternative_names(hosts)?)?);
            }
            Purpose::Client => extensions.push(extension(false, &ExtendedKeyUsage(vec![ID_KP_CLIENT_AUTH]))?),
        }
        Ok(extensions)
    }
}

fn identifier(key: &SubjectPublicKeyInfoRef<'_>) -> der::Result<OctetString> {
    OctetString::new(&Sha256::digest(key.subject_public_key.raw_bytes())[..20])
}

fn alternative_names(hosts: &Hosts) -> der::Result<SubjectAltName> {
    let names = NAMES.into_iter().chain(hosts.names.iter().map(String::as_str));
    let names = names.map(|name| Ia5String::new(name).map(GeneralName::DnsName));
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    let addresses = loopback.iter().chain(&hosts.addresses).map(|address| {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        OctetString::new(octets).map(GeneralName::IpAddress)
    });
    names.chain(addresses).collect::<Result<_, _>>().map(SubjectAltName)
}

fn extension<T: Encode + AssociatedOid>(critical: bool, value: &T) -> der::Result<Extension> {
    Ok(Extension { extn_id: T::OID, critical, extn_value: OctetString::new(value.to_der()?)? })
}
