//! Who somebody is to the API server: by a certificate, or by a service account's token.

use drover_api::names::CLUSTER_NAME_LABEL;
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject},
    },
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use p256::{
    ecdsa::{DerSignature, SigningKey},
    elliptic_curve::Generate,
    pkcs8::{EncodePrivateKey, LineEnding},
};
use serde_json::json;
use x509_cert::{
    builder::{Builder, RequestBuilder},
    der::EncodePem,
    name::Name,
};

use crate::{World, wait};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A client that acts as `user` in `groups`, by a certificate that the server's own signer has made.
pub(crate) async fn by_certificate(world: &World, user: &str, groups: &[&str]) -> Client {
    let asked = Asked::new(world.client(), &world.unique("identity"), None, user, groups).await;
    asked.approve().await;
    asked.client(world).await
}

/// Somebody who has asked for a certificate.
pub(super) struct Asked {
    key: SigningKey,
    requests: Api<CertificateSigningRequest>,
    name: String,
}

impl Asked {
    /// Asks for a certificate, in the name of whose `client` it is; for a cluster if one is named.
    pub(super) async fn new(client: Client, name: &str, cluster: Option<&str>, user: &str, groups: &[&str]) -> Self {
        let key = SigningKey::generate();
        let requests = Api::<CertificateSigningRequest>::all(client);
        let usages = ["digital signature", "key encipherment", "client auth"];
        let spec = CertificateSigningRequestSpec {
            request: ByteString(signing_request(&key, user, groups)),
            signer_name: CLIENT_SIGNER.to_owned(),
            usages: Some(usages.map(str::to_owned).to_vec()),
            ..CertificateSigningRequestSpec::default()
        };
        let mut request = CertificateSigningRequest { metadata: named(name), spec, status: None };
        if let Some(cluster) = cluster {
            request.labels_mut().insert(CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned());
        }
        let name = requests.create(&PostParams::default(), &request).await.expect("a request can be made").name_any();
        Self { key, requests, name }
    }

    /// The name of the request.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Approves the request, in the name of who asked.
    async fn approve(&self) {
        let approved =
            json!({ "type": "Approved", "status": "True", "reason": "Scenario", "message": "part of a scenario" });
        let approval = Patch::Merge(json!({ "status": { "conditions": [approved] } }));
        let params = PatchParams::default();
        self.requests.patch_approval(&self.name, &params, &approval).await.expect("a request can be approved");
    }

    /// The client that the certificate makes, once it is there.
    pub(super) async fn client(self, world: &World) -> Client {
        let requests = Api::<CertificateSigningRequest>::all(world.client());
        let signed = wait::until(&requests, &self.name, "it is signed", |request| certificate(request).is_some()).await;
        let certificate = certificate(&signed).expect("it was waited for");
        let key = self.key.to_pkcs8_pem(LineEnding::LF).expect("a key can be written as PEM");
        let mut config = world.anonymous();
        config.auth_info.client_certificate_data = Some(base64(&certificate.0));
        config.auth_info.client_key_data = Some(base64(key.as_bytes()).into());
        connect(config)
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
    let accounts = Api::<ServiceAccount>::namespaced(world.client(), namespace);
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .expect("a token is given out")
        .status
        .expect("a token request is answered at once")
        .token;
    let mut config = world.anonymous();
    config.auth_info.token = token.map(Into::into);
    connect(config)
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

/// A signing request in PEM. All groups go into one multi-valued part of the subject, as Go's library does it.
fn signing_request(key: &SigningKey, user: &str, groups: &[&str]) -> Vec<u8> {
    let organisations: Vec<_> = groups.iter().map(|group| format!("O={group}")).collect();
    let subject: Name = format!("CN={user},{}", organisations.join("+")).parse().expect("a valid subject");
    let request = RequestBuilder::new(subject).expect("a request can be made");
    let request = request.build::<_, DerSignature>(key).expect("a request can be signed");
    request.to_pem(LineEnding::LF).expect("a request can be written as PEM").into_bytes()
}

fn certificate(request: &CertificateSigningRequest) -> Option<&ByteString> {
    request.status.as_ref()?.certificate.as_ref()
}

/// Base64, as kubeconfigs have their credentials.
fn base64(bytes: &[u8]) -> String {
    let text = serde_json::to_value(ByteString(bytes.to_vec())).expect("bytes are JSON");
    text.as_str().expect("bytes are a text in JSON").to_owned()
}
