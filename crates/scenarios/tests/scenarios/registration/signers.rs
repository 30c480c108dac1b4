//! Certificates that the hub signs itself: for signers of templates with CAs of every kind, and for clients of an API server that signs for none.

use std::{fs, time::Duration};

use drover_api::{addon::ManagedClusterAddOn, cluster::ManagedCluster, names::CERTIFICATES_SIGNED};
use drover_hub::Options;
use drover_runtime::{clock::after, store::ObjectKey};
use drover_testkit::{
    World,
    certificate::{Ca, Certificate},
    play::{Agent, Applicant, Wish},
    wait,
};
use k8s_openapi::{
    api::{
        authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
        rbac::v1::ClusterRoleBinding,
    },
    jiff::Timestamp,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{Ground, Site, decision, file, secret, secrets, who};
use crate::running::{NAMESPACE, change, options};

drover_testkit::scenarios! {
    Own {
        cas_of_every_kind_sign_what_was_asked_for,
        what_is_wrong_with_a_ca_is_said_and_once_it_is_right_it_signs,
        where_kubernetes_signs_for_no_clients_the_hub_does,
    }
}

/// The files of CAs, and under which names a Secret has the certificate and the key.
const CAS: [(&str, &str, [&str; 2]); 5] = [
    ("rsa.crt", "rsa.pkcs1.key", TLS),
    ("rsa.crt", "rsa.pkcs8.key", PLAIN),
    ("p256.crt", "p256.sec1.key", PLAIN),
    ("p256.crt", "p256.pkcs8.key", TLS),
    ("ed25519.crt", "ed25519.pkcs8.key", PLAIN),
];
const TLS: [&str; 2] = ["tls.crt", "tls.key"];
const PLAIN: [&str; 2] = ["ca.crt", "ca.key"];
/// The numbers of what certificates may be used for, and of other names in them.
const CLIENT_AUTH: &str = "1.3.6.1.5.5.7.3.2";
const ALTERNATIVE_NAMES: &str = "2.5.29.17";
/// How long a certificate of the hub's is valid at most, and how long before it was signed it is.
const LIFETIME: Duration = Duration::from_hours(24);
const LEEWAY: Duration = Duration::from_mins(5);

fn before(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_sub(duration).expect("a time")
}

/// A registration with a signer that signs with the CA in this Secret.
fn custom(name: &str, secret: &str) -> Value {
    json!({ "type": "CustomSigner", "customSigner": {
        "signerName": format!("example.com/{name}"),
        "subject": { "user": format!("user-of-{name}"), "groups": ["g1", "g2"], "organizationUnit": ["o1", "o2"] },
        "signingCA": { "name": secret },
    } })
}

/// Holds a certificate to what was asked for: whom it is for, what it is for and no more, and who has signed it.
fn check(certificate: &Certificate, wish: &Wish, ca: &[u8], now: Timestamp) {
    assert_eq!(certificate.subject(), wish.subject());
    let uses: Vec<_> = certificate.uses().iter().map(ToString::to_string).collect();
    assert_eq!(uses, [CLIENT_AUTH]);
    assert!(!certificate.extensions().iter().any(|number| number.to_string() == ALTERNATIVE_NAMES));
    assert_eq!(certificate.lets_in(ca, now), Ok(()));
}

async fn cas_of_every_kind_sign_what_was_asked_for(world: World) {
    let ground = Ground::prepare(world).await;
    let now = Timestamp::now();
    let short = Ca::valid(before(now, Duration::from_mins(1)), after(now, Duration::from_hours(2)));
    ground.store("short", &[("tls.crt", short.certificate.clone()), ("tls.key", short.key.clone())]).await;
    for (certificate, key, names) in CAS {
        ground.store(key, &[(names[0], file(certificate)), (names[1], file(key))]).await;
    }
    let cas: Vec<_> = CAS.iter().map(|(_, key, _)| *key).chain(["short"]).collect();
    ground.lend(&cas).await;
    let signers: Vec<_> = cas.iter().map(|ca| format!("example.com/{ca}")).collect();
    ground.grant_signers("signers", &signers.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let site = ground.start().await;
    let agent = site.join("c1").await;
    site.deploy("hello", cas.iter().map(|ca| custom(ca, ca)).collect(), &["c1"]).await;
    let registrations = site.registrations("c1", "hello").await;
    assert_eq!(registrations.len(), cas.len());

    for ((certificate, key, _), registration) in CAS.iter().zip(&registrations) {
        let wish = Wish::of_addon("c1", "hello", registration);
        assert!(wish.subject().contains(&format!("user-of-{key}")), "{}", wish.subject());
        let signed = signed(&site, &agent, &wish).await;
        check(&signed, &wish, &file(certificate), site.now());
        let other = if *certificate == "rsa.crt" { "p256.crt" } else { "rsa.crt" };
        assert!(signed.lets_in(&file(other), site.now()).is_err(), "{key} is not the key of {other}");
        let (_, until) = signed.validity();
        assert_eq!(until.as_second(), after(site.now(), LIFETIME).as_second(), "{key}");
    }

    // Nothing outlives its CA, nor was it there before.
    let wish = Wish::of_addon("c1", "hello", &registrations[CAS.len()]);
    let signed = signed(&site, &agent, &wish).await;
    check(&signed, &wish, &short.certificate, site.now());
    assert_eq!(signed.validity(), Certificate::read(&short.certificate).validity());
    site.hub.stop().await;
}

/// The certificate that an agent gets for its add-on.
async fn signed(site: &Site, agent: &Agent, wish: &Wish) -> Certificate {
    let asked = site.ask(&agent.client(), wish).await;
    Certificate::read(&asked.certificate(site.world()).await)
}

async fn what_is_wrong_with_a_ca_is_said_and_once_it_is_right_it_signs(world: World) {
    let site = Ground::prepare(world).await.start().await;
    let agent = site.join("c1").await;
    site.deploy("hello", json!([custom("signer-name", "ca-secret")]), &["c1"]).await;
    let wish = Wish::of_addon("c1", "hello", &site.registrations("c1", "hello").await[0]);
    let asked = site.ask(&agent.client(), &wish).await;
    let failed = (CERTIFICATES_SIGNED, "False", "SigningFailed");
    site.later(site.says("c1", "hello", failed, "a ClusterRole with the label drover.dev/hub-signs")).await;
    let request = site.requests().get(asked.name()).await.expect("the request is there");
    assert_eq!(decision(&request), None, "the hub may not approve it");
    site.ground.grant_signers("signers", &["example.com/signer-name"]).await;
    let says = async |what: &str| {
        site.later(site.says("c1", "hello", failed, what)).await;
        site.says("c1", "hello", failed, &format!("the Secret {NAMESPACE}/ca-secret is of no use")).await;
        site.says("c1", "hello", failed, &format!("could not sign the request {}", asked.name())).await;
        let request = site.requests().get(asked.name()).await.expect("the request is there");
        assert_eq!(decision(&request).map(|(type_, ..)| type_).as_deref(), Some("Approved"), "{what}");
        assert_eq!(request.status.and_then(|status| status.certificate), None, "{what}");
    };
    let put = async |parts: &[(&str, Vec<u8>)]| {
        let apply = PatchParams::apply("scenario").force();
        let stored = Patch::Apply(secret("ca-secret", parts));
        secrets(site.world()).patch("ca-secret", &apply, &stored).await.expect("a Secret can be stored");
    };

    says("the hub needs a Role that lets it get it").await;
    site.ground.apply(&["signca-secret-role.yaml", "signca-secret-rolebinding.yaml"]).await;
    says("secrets \"ca-secret\" not found").await;
    put(&[("other", b"nothing".to_vec())]).await;
    says("it has neither tls.crt and tls.key nor ca.crt and ca.key").await;
    put(&[("tls.crt", b"nonsense".to_vec()), ("tls.key", file("p256.pkcs8.key"))]).await;
    says("its certificate can not be read").await;
    put(&[("tls.crt", file("p256.crt")), ("tls.key", file("rsa.pkcs8.key"))]).await;
    says("its key does not belong to its certificate").await;
    let (now, day) = (Timestamp::now(), Duration::from_hours(24));
    let old = Ca::valid(before(now, 2 * day), before(now, day));
    put(&[("tls.crt", old.certificate), ("tls.key", old.key)]).await;
    says(&format!("its certificate has expired on {}", seconds(before(now, day)))).await;

    put(&[("tls.crt", file("ed25519.crt")), ("tls.key", file("ed25519.pkcs8.key"))]).await;
    let certificate = Certificate::read(&site.later(asked.certificate(site.world())).await);
    check(&certificate, &wish, &file("ed25519.crt"), site.now());
    let (from, until) = certificate.validity();
    let span = Duration::try_from(until.duration_since(from)).expect("it ends after it begins");
    assert_eq!(span, LIFETIME + LEEWAY);
    // It may take a second attempt, if the add-on is reported on at the same time.
    site.later(site.says("c1", "hello", (CERTIFICATES_SIGNED, "True", "Signed"), "")).await;
    site.hub.stop().await;
}

/// A time, as certificates have it.
fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("a time")
}

async fn where_kubernetes_signs_for_no_clients_the_hub_does(world: World) {
    let ground = Ground::prepare(world).await;
    let pki = ground.world.kubeconfig().with_file_name("pki");
    let part = |name: &str| fs::read(pki.join(name)).expect("the server has a CA");
    let ca = part("ca.crt");
    ground.store("client-ca", &[("tls.crt", ca.clone()), ("tls.key", part("ca.key"))]).await;
    ground.lend(&["client-ca"]).await;
    ground.grant_signers("clients", &["kubernetes.io/kube-apiserver-client"]).await;
    let client_ca = Some(ObjectKey::namespaced(NAMESPACE, "client-ca"));
    let site = ground.start_with(Options { client_ca, ..options() }).await;
    let applicant = Applicant::new(site.world(), "c1").await;
    let request = applicant.request().to_owned();
    silence_the_signer(&site).await;

    let clusters = Api::<ManagedCluster>::all(site.client());
    change(&clusters, "c1", json!({ "spec": { "hubAcceptsClient": true } })).await;
    let agent = applicant.join(site.world()).await;
    drop(agent.obey());
    let reserved = json!({ "type": "CustomSigner", "customSigner": { "signerName": "example.com/signer-name",
        "subject": { "user": "kubernetes-admin" }, "signingCA": { "name": "client-ca" } } });
    site.ground.grant_signers("signers", &["example.com/signer-name"]).await;
    site.deploy("hello", json!([{ "type": "KubeClient", "kubeClient": {} }, reserved]), &["c1"]).await;
    let registrations = site.registrations("c1", "hello").await;
    let wish = Wish::of_addon("c1", "hello", &registrations[0]);
    let asked = site.ask(&agent.client(), &wish).await;

    let (user, groups) = who(&asked.client(site.world()).await).await;
    assert_eq!(user, "system:open-cluster-management:cluster:c1:addon:hello:agent:hello-agent");
    assert_eq!(groups, wish.groups().iter().cloned().collect());
    let own = Certificate::read(&asked.certificate(site.world()).await);
    check(&own, &wish, &ca, site.now());
    // The control plane's own signer gives a year.
    let agents = site.requests().get(&request).await.expect("the request is there");
    let agents = agents.status.and_then(|status| status.certificate).expect("the agent has it");
    for certificate in [own, Certificate::read(&agents.0)] {
        assert_eq!(certificate.validity().1.as_second(), after(site.now(), LIFETIME).as_second());
    }

    // Whoever writes a template does not get a name of his choice from that CA.
    let forged = site.ask(&agent.client(), &Wish::of_addon("c1", "hello", &registrations[1])).await;
    let failed = (CERTIFICATES_SIGNED, "False", "SigningFailed");
    site.says("c1", "hello", failed, "has the CA for clients of the API server").await;
    let request = site.requests().get(forged.name()).await.expect("the request is there");
    assert_eq!(request.status.and_then(|status| status.certificate), None);

    // Once it is gone, nothing is left that could not be signed; nor was it signed.
    site.requests().delete(forged.name(), &DeleteParams::default()).await.expect("a request can be deleted");
    let says_nothing = |addon: &ManagedClusterAddOn| {
        let mut conditions = addon.status.iter().flat_map(|status| &status.conditions);
        conditions.all(|condition| condition.type_ != CERTIFICATES_SIGNED)
    };
    site.later(wait::until(&site.on("c1"), "hello", "it says nothing of signatures", says_nothing)).await;
    site.hub.stop().await;
}

/// Takes from the control plane's own signer the right to sign, and waits until it has it no longer.
async fn silence_the_signer(site: &Site) {
    let bindings = Api::<ClusterRoleBinding>::all(site.client());
    let name = "system:controller:certificate-controller";
    bindings.delete(name, &DeleteParams::default()).await.expect("a binding can be deleted");
    let attributes = ResourceAttributes {
        verb: Some("sign".to_owned()),
        group: Some("certificates.k8s.io".to_owned()),
        resource: Some("signers".to_owned()),
        name: Some("kubernetes.io/kube-apiserver-client".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some("system:serviceaccount:kube-system:certificate-controller".to_owned()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews = Api::<SubjectAccessReview>::all(site.client());
    wait::attempt("the control plane signs no longer", async || {
        let answer = reviews.create(&PostParams::default(), &review).await.expect("an administrator may ask");
        let is_allowed = answer.status.as_ref().is_none_or(|status| status.allowed);
        if is_allowed { Err(format!("{:?}", answer.status)) } else { Ok(()) }
    })
    .await;
}
