//! Tokens of service accounts: signed claims that end by themselves.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use k8s_openapi::jiff::Timestamp;
use p256::{
    ecdsa::{
        Signature, SigningKey, VerifyingKey,
        signature::{Signer, Verifier},
    },
    pkcs8::EncodePublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{CREDENTIAL, authenticated};
use crate::{
    failure::{About, Failure},
    field::{ErrorKind, FieldError, Path},
    user::User,
};

/// How long a token lasts where nobody says.
const LIFETIME: i64 = 3600;
/// The shortest that may be asked for, and the longest.
const MIN_LIFETIME: i64 = 600;
const MAX_LIFETIME: i64 = 1 << 32;
/// By how much the clocks of two machines may differ.
const LEEWAY: i64 = 60;

/// Who signs tokens, and knows its own.
pub struct Issuer {
    key: SigningKey,
    public: VerifyingKey,
    key_id: String,
    name: String,
}

/// A service account that a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// The request as it was sent.
    pub body: Value,
    /// When it is.
    pub now: Timestamp,
    /// The token's own name, which no other has.
    pub id: String,
}

/// Who a token is of, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The service account.
    pub user: User,
    /// Of those that were asked for, whom it is for.
    pub audiences: Vec<String>,
}

/// Why a token proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It is none of ours, so that others may look at it.
    #[error("the token was not issued here")]
    Foreign,
    /// Somebody else has signed it.
    #[error("invalid signature")]
    Signature,
    /// It is for others.
    #[error("token audiences {token} is invalid for the target audiences {asked}")]
    Audience {
        /// Whom it is for.
        token: String,
        /// Whom it should be for.
        asked: String,
    },
    /// Its time is over.
    #[error("service account token has expired")]
    Expired,
    /// Its time has not come.
    #[error("service account token is not valid yet")]
    NotYet,
    /// There is no such service account.
    #[error("serviceaccounts {0:?} not found")]
    Gone(String),
    /// There is another of the name.
    #[error("service account UID ({live}) does not match claim ({claimed})")]
    Another {
        /// The uid of the one that is there.
        live: String,
        /// The uid of the one that the token is of.
        claimed: String,
    },
}

#[derive(Debug, Deserialize, Serialize)]
struct Claims {
    aud: Vec<String>,
    exp: i64,
    iat: i64,
    iss: String,
    jti: String,
    #[serde(rename = "kubernetes.io")]
    kubernetes: Kubernetes,
    nbf: i64,
    sub: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Kubernetes {
    namespace: String,
    serviceaccount: Reference,
}

#[derive(Debug, Deserialize, Serialize)]
struct Reference {
    name: String,
    uid: String,
}

impl Issuer {
    /// Signs with this key, under this name, which is an address such as `https://kubernetes.default.svc`.
    #[must_use]
    pub fn new(key: SigningKey, name: &str) -> Self {
        let public = *key.verifying_key();
        // How the key is told from others by who has several.
        let der = public.to_public_key_der().map(|der| der.as_bytes().to_vec()).unwrap_or_default();
        let key_id = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        Self { key, public, key_id, name: name.to_owned() }
    }

    /// The public key, as those read it who check tokens themselves.
    #[must_use]
    pub fn key_set(&self) -> Value {
        let point = self.public.to_sec1_point(false);
        let coordinate = |bytes: Option<&[u8]>| BASE64_URL_SAFE_NO_PAD.encode(bytes.unwrap_or_default());
        let (x, y) = (point.x().map(AsRef::as_ref), point.y().map(AsRef::as_ref));
        let key = json!({
            "use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256",
            "x": coordinate(x), "y": coordinate(y),
        });
        json!({ "keys": [key] })
    }

    /// The TokenRequest with the token in its status. Audiences are those of this server where none are asked for.
    pub fn issue(&self, request: TokenRequest, account: &Account<'_>, audiences: &[String]) -> Result<Value, Failure> {
        let TokenRequest { mut body, now, id } = request;
        confirm_account(&body, account)?;
        let asked = Vec::<String>::deserialize(&body["spec"]["audiences"]).unwrap_or_default();
        let audiences = if asked.is_empty() { audiences.to_vec() } else { asked };
        let lifetime = body["spec"]["expirationSeconds"].as_i64().unwrap_or(LIFETIME);
        confirm_lifetime(lifetime)?;
        let bound = &body["spec"]["boundObjectRef"];
        if bound.is_object() && !matches!(bound["kind"].as_str(), Some("Node" | "Pod" | "Secret")) {
            let text = |name: &str| bound[name].as_str().unwrap_or_default();
            let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
            let kind = text("kind");
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Failure::bad_request(message));
        }
        if bound.is_object() {
            return Err(Failure::bad_request("cannot bind token to an object: that is not served here"));
        }
        let second = now.as_second();
        let claims = Claims {
            aud: audiences.clone(),
            exp: second.saturating_add(lifetime),
            iat: second,
            iss: self.name.clone(),
            jti: id,
            kubernetes: Kubernetes {
                namespace: account.namespace.to_owned(),
                serviceaccount: Reference { name: account.name.to_owned(), uid: account.uid.to_owned() },
            },
            nbf: second,
            sub: account.user_name(),
        };
        let token = self.sign(&claims)?;
        body["metadata"] = json!({
            "name": account.name,
            "namespace": account.namespace,
            "uid": account.uid,
            "creationTimestamp": time(second)?,
        });
        body["spec"] = json!({ "audiences": audiences, "expirationSeconds": lifetime, "boundObjectRef": null });
        body["status"] = json!({ "token": token, "expirationTimestamp": time(claims.exp)? });
        Ok(body)
    }

    fn sign(&self, claims: &Claims) -> Result<String, Failure> {
        let header = json!({ "alg": "ES256", "kid": self.key_id });
        let claims = serde_json::to_vec(claims).map_err(Failure::internal)?;
        let part = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", part(header.to_string().as_bytes()), part(&claims));
        let signature: Signature = self.key.sign(signed.as_bytes());
        Ok(format!("{signed}.{}", part(&signature.to_bytes())))
    }

    /// Who a token is of. The uid of a service account that is there is looked up by namespace and name.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
        uid_of: impl FnOnce(&str, &str) -> Option<String>,
    ) -> Result<Verified, Why> {
        let claims = self.claims(token)?;
        let common: Vec<_> = claims.aud.iter().filter(|own| audiences.contains(own)).cloned().collect();
        if common.is_empty() {
            let (token, asked) = (in_go(&claims.aud), in_go(audiences));
            return Err(Why::Audience { token, asked });
        }
        let second = now.as_second();
        if second.saturating_add(LEEWAY) < claims.nbf {
            return Err(Why::NotYet);
        }
        if second.saturating_sub(LEEWAY) > claims.exp {
            return Err(Why::Expired);
        }
        let Reference { name, uid } = &claims.kubernetes.serviceaccount;
        let account = Account { namespace: &claims.kubernetes.namespace, name, uid };
        match uid_of(account.namespace, name) {
            None => Err(Why::Gone(name.clone())),
            Some(live) if live != *uid => Err(Why::Another { live, claimed: uid.clone() }),
            Some(_) => Ok(Verified { user: account.user(&claims.jti), audiences: common }),
        }
    }

    fn claims(&self, token: &str) -> Result<Claims, Why> {
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Why::Foreign);
        let (signed, signature) = token.rsplit_once('.').ok_or(Why::Foreign)?;
        let (header, claims) = signed.split_once('.').ok_or(Why::Foreign)?;
        let claims: Claims = serde_json::from_slice(&decode(claims)?).map_err(|_| Why::Foreign)?;
        if claims.iss != self.name {
            return Err(Why::Foreign);
        }
        let header: Value = serde_json::from_slice(&decode(header)?).map_err(|_| Why::Foreign)?;
        let signature = Signature::from_slice(&decode(signature)?).map_err(|_| Why::Signature)?;
        if header["alg"] != "ES256" || self.public.verify(signed.as_bytes(), &signature).is_err() {
            return Err(Why::Signature);
        }
        Ok(claims)
    }
}

impl Account<'_> {
    fn user_name(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn user(&self, token: &str) -> User {
        let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{}", self.namespace)];
        let extra = [(CREDENTIAL.to_owned(), vec![format!("JTI={token}")])].into();
        authenticated(User { name: self.user_name(), uid: self.uid.to_owned(), groups, extra })
    }
}

/// The request may say again which service account it is for, but no other.
fn confirm_account(body: &Value, account: &Account<'_>) -> Result<(), Failure> {
    let kind = About { group: "authentication.k8s.io", name: "TokenRequest" };
    let metadata = &body["metadata"];
    for (field, own) in [("name", account.name), ("namespace", account.namespace)] {
        let Some(said) = metadata[field].as_str().filter(|said| !said.is_empty() && *said != own) else { continue };
        let field_path = format!("metadata.{field}");
        let detail = format!("must match the service account {field} if specified");
        let flaw = FieldError::new(ErrorKind::Invalid, &Path::Field(&Path::Root, &field_path), said, detail);
        return Err(Failure::invalid(kind, account.name, &[flaw]));
    }
    if let Some(said) = metadata["uid"].as_str().filter(|said| !said.is_empty() && *said != account.uid) {
        let uid = account.uid;
        let why =
            format!("the UID in the token request ({said}) does not match the UID of the service account ({uid})");
        return Err(Failure::conflict(kind, account.name, why));
    }
    Ok(())
}

fn confirm_lifetime(lifetime: i64) -> Result<(), Failure> {
    let detail = match lifetime {
        ..MIN_LIFETIME => "may not specify a duration less than 10 minutes",
        MIN_LIFETIME..=MAX_LIFETIME => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let flaw =
        FieldError::new(ErrorKind::Invalid, &Path::Root.field("spec").field("expirationSeconds"), lifetime, detail);
    Err(Failure::invalid(About { group: "authentication.k8s.io", name: "TokenRequest" }, "", &[flaw]))
}

fn time(second: i64) -> Result<String, Failure> {
    Timestamp::from_second(second).map(|time| time.to_string()).map_err(Failure::internal)
}

/// A list of texts, as Go prints it.
fn in_go(list: &[String]) -> String {
    let items: Vec<_> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}
