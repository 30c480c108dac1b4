//! Who somebody is to the API server: by a certificate, or by a service account's token.

use std::path::PathBuf;

use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        certificates::v1::CertificateSigningRequest,
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject},
    },
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    config::AuthInfo,
};
use p256::{
    ecdsa::SigningKey,
    elliptic_curve::Generate,
    pkcs8::{EncodePrivateKey, LineEnding},
};
use serde_json::json;

use super::wish::Wish;
use crate::{World, wait};

/// A client that acts as `user` in `groups`, by a certificate that the server's own signer has made.
pub(crate) async fn by_certificate(world: &World, user: &str, groups: &[&str]) -> Client {
    Asked::approved(world, &Wish::to_be(user, groups)).await.client(world).await
}

/// Somebody who has asked for a certificate.
pub struct Asked {
    key: SigningKey,
    requests: Api<CertificateSigningRequest>,
    name: String,
}

impl Asked {
    /// Asks for a certificate, in the name of whose `client` it is.
    pub async fn new(world: &World, client: Client, wish: &Wish) -> Self {
        let key = SigningKey::generate();
        let requests = Api::<CertificateSigningRequest>::all(client);
        let request = wish.request(&world.unique(wish.name()), &key);
        let name = requests.create(&PostParams::default(), &request).await.expect("a request can be made").name_any();
        Self { key, requests, name }
    }

    /// Asks for a certificate as an administrator, who approves it.
    pub async fn approved(world: &World, wish: &Wish) -> Self {
        let asked = Self::new(world, world.client(), wish).await;
        let approved =
            json!({ "type": "Approved", "status": "True", "reason": "Scenario", "message": "part of a scenario" });
        let approval = Patch::Merge(json!({ "status": { "conditions": [approved] } }));
        let params = PatchParams::default();
        asked.requests.patch_approval(&asked.name, &params, &approval).await.expect("a request can be approved");
        asked
    }

    /// The name of the request.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The certificate in PEM, once it is there.
    pub async fn certificate(&self, world: &World) -> Vec<u8> {
        let requests = Api::<CertificateSigningRequest>::all(world.client());
        let signed = wait::until(&requests, &self.name, "it is signed", |request| certificate(request).is_some()).await;
        certificate(&signed).expect("it was waited for").0.clone()
    }

    /// The client that the certificate makes, once it is there.
    pub async fn client(&self, world: &World) -> Client {
        let mut config = world.anonymous();
        config.auth_info = self.credentials(world).await;
        connect(config)
    }

    /// A file with the certificate for `kubectl`, once it is there. It goes with the server.
    pub async fn kubeconfig(&self, world: &World) -> PathBuf {
        world.write_kubeconfig(&self.name, &self.credentials(world).await)
    }

    async fn credentials(&self, world: &World) -> AuthInfo {
        let key = self.key.to_pkcs8_pem(LineEnding::LF).expect("a key can be written as PEM");
        AuthInfo {
            client_certificate_data: Some(base64(&self.certificate(world).await)),
            client_key_data: Some(base64(key.as_bytes()).into()),
            ..AuthInfo::default()
        }
    }
}

/// Makes a service account.
pub(super) async fn make_account(world: &World, namespace: &str, name: &str) {
    let accounts = Api::<ServiceAccount>::namespaced(world.client(), namespace);
    let account = ServiceAccount { metadata: named(name), ..ServiceAccount::default() };
    accounts.create(&PostParams::default(), &account).await.expect("a service account can be made");
}

/// A client that acts as a service account, by a token.
pub(crate) async fn by_token(world: &World, namespace: &str, name: &str) -> Client {
    with_token(world, token(world, namespace, name).await)
}

/// A kubeconfig of a service account, which goes with the server.
pub(crate) async fn kubeconfig_with_token(world: &World, namespace: &str, name: &str) -> PathBuf {
    let credentials = bearer(token(world, namespace, name).await);
    world.write_kubeconfig(&format!("{namespace}-{name}"), &credentials)
}

async fn token(world: &World, namespace: &str, name: &str) -> TokenRequest {
    let accounts = Api::<ServiceAccount>::namespaced(world.client(), namespace);
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request(name, &PostParams::default(), &request).await;
    token.expect("a token is given out")
}

/// A client that acts as the service account that a token was given out for.
pub(crate) fn with_token(world: &World, token: TokenRequest) -> Client {
    let mut config = world.anonymous();
    config.auth_info = bearer(token);
    connect(config)
}

fn bearer(token: TokenRequest) -> AuthInfo {
    let status = token.status.expect("a token request is answered at once");
    AuthInfo { token: status.token.map(Into::into), ..AuthInfo::default() }
}

/// Lets a subject do what `rules` say everywhere.
pub(super) async fn allow_everywhere(world: &World, subject: Subject, name: &str, rules: Vec<PolicyRule>) {
    let role = ClusterRole { metadata: named(name), rules: Some(rules), ..ClusterRole::default() };
    let roles = Api::<ClusterRole>::all(world.client());
    roles.create(&PostParams::default(), &role).await.expect("a role can be made");
    let binding = ClusterRoleBinding {
        metadata: named(name),
        role_ref: role_ref("ClusterRole", name),
        subjects: Some(vec![subject]),
    };
    let bindings = Api::<ClusterRoleBinding>::all(world.client());
    bindings.create(&PostParams::default(), &binding).await.expect("a role can be bound");
}

/// A rule that allows `verbs` on `resources` of one API group.
pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(texts(resources)),
        verbs: texts(verbs),
        ..PolicyRule::default()
    }
}

fn connect(config: Config) -> Client {
    Client::try_from(config).expect("a client can be made")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some("rbac.authorization.k8s.io".to_owned()), kind: kind.to_owned(), name: name.to_owned() }
}

fn certificate(request: &CertificateSigningRequest) -> Option<&ByteString> {
    request.status.as_ref()?.certificate.as_ref()
}

/// Base64, as kubeconfigs have their credentials.
fn base64(bytes: &[u8]) -> String {
    let text = serde_json::to_value(ByteString(bytes.to_vec())).expect("bytes are JSON");
    text.as_str().expect("bytes are a text in JSON").to_owned()
}
