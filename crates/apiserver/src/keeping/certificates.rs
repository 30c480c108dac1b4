//! Certificates for those whose requests were approved.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use drover_engine::certificate::{Algorithm, Authority, draft};
use k8s_openapi::{api::certificates::v1::CertificateSigningRequest, jiff::SignedDuration};
use p256::ecdsa::{DerSignature, SigningKey, signature::Signer as _};
use p256::pkcs8::DecodePrivateKey as _;
use serde_json::{Value, json};
use x509_cert::der::pem;

use super::Keeper;
use crate::{
    access::{AUTHENTICATED, is_allowed_for_signer},
    failure::Failure,
    server::Subject,
    user::User,
};

/// The signer of clients of this server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// What a client's certificate is for.
const CLIENT_AUTH: &str = "client auth";
/// For how long a certificate is valid at most, as with Kubernetes' own controller.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

impl Keeper {
    /// Signs a request, if it is approved and waits for this server to sign it.
    pub(super) async fn sign(&self, name: &str) -> Result<(), Failure> {
        let served = self.server.served();
        let Some((kind, version)) = served.kinds.get("certificates.k8s.io", "v1", "certificatesigningrequests") else {
            return Ok(());
        };
        let subject = Subject::new(&kind, None, name);
        let Some(object) = self.stored(&subject).filter(waits).filter(|_| self.may_sign()) else { return Ok(()) };
        let object = crate::server::shown_value(object, &kind, version);
        let request: CertificateSigningRequest = serde_json::from_value(object).map_err(Failure::internal)?;
        let outcome = self.signed(&request);
        self.server
            .revise(&subject, |object| {
                let mut new = waits(object).then(|| object.clone())?;
                match &outcome {
                    Ok(certificate) => new["status"]["certificate"] = BASE64_STANDARD.encode(certificate).into(),
                    Err(why) => fail(&mut new, why, &self.server.now()),
                }
                Some(new)
            })
            .await
    }

    /// Signs what waits, if that has become possible by a change of rights.
    pub(super) async fn sign_all(&self) -> Result<(), Failure> {
        let served = self.server.served();
        let Some((kind, _)) = served.kinds.get("certificates.k8s.io", "v1", "certificatesigningrequests") else {
            return Ok(());
        };
        for stored in self.server.objects_of(&kind) {
            self.sign(stored.name()).await?;
        }
        Ok(())
    }

    /// Whether whom Kubernetes' own signer acts as may sign. Whoever wants another signer takes that right away.
    fn may_sign(&self) -> bool {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED];
        let signer = User {
            name: "system:serviceaccount:kube-system:certificate-controller".to_owned(),
            groups: groups.map(str::to_owned).to_vec(),
            ..User::default()
        };
        is_allowed_for_signer(&self.server.rules(), &signer, "sign", CLIENT_SIGNER)
    }

    /// The certificate, in PEM.
    fn signed(&self, request: &CertificateSigningRequest) -> Result<String, String> {
        check_usages(request)?;
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (_, certificate) = pem::decode_vec(self.authority.certificate.as_bytes()).map_err(|error| text(&error))?;
        let authority = Authority::read(&certificate).map_err(|error| text(&error))?;
        let key = SigningKey::from_pkcs8_pem(&self.authority.key).map_err(|error| text(&error))?;
        let now = self.server.clock.now();
        let draft = draft(request, &authority, Algorithm::EcdsaSha256, LIFETIME, now).map_err(|error| text(&error))?;
        let signature: DerSignature = key.sign(draft.to_be_signed());
        draft.signed(signature.as_bytes()).map_err(|error| text(&error))
    }
}

/// Whether a certificate is for what clients have certificates for, and for nothing else.
fn check_usages(request: &CertificateSigningRequest) -> Result<(), String> {
    let usages = request.spec.usages.as_deref().unwrap_or_default();
    let others = ["digital signature", "key encipherment", CLIENT_AUTH];
    if let Some(usage) = usages.iter().find(|usage| !others.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {usage}"));
    }
    if usages.iter().any(|usage| usage == CLIENT_AUTH) {
        return Ok(());
    }
    Err(format!("missing required usage for client certificate: {CLIENT_AUTH}"))
}

/// Whether a request is approved, and waits for this server to sign it.
fn waits(request: &Value) -> bool {
    let conditions = request.pointer("/status/conditions").and_then(Value::as_array);
    let says = |type_: &str| conditions.is_some_and(|list| list.iter().any(|it| it["type"] == type_));
    let signer = request.pointer("/spec/signerName").and_then(Value::as_str);
    let has_certificate = request.pointer("/status/certificate").is_some_and(Value::is_string);
    signer == Some(CLIENT_SIGNER) && says("Approved") && !says("Denied") && !says("Failed") && !has_certificate
}

/// Says that a request can not be signed.
fn fail(request: &mut Value, why: &str, now: &str) {
    let condition = json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
        "lastUpdateTime": now, "lastTransitionTime": now,
    });
    if let Some(conditions) = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.push(condition);
    }
}
