//! How an add-on's agent is to register, as the add-on's status says it.
//!
//! The status has two shapes: v1alpha1 has a signer and a subject, v1beta1 a type and what belongs to it. Both are filled, unless the CRDs are
//! OCM's own: those store the former alone, and whatever else is written would be missing at the next look, and be written again. Agents say
//! there how they prove themselves, which is kept.

use drover_api::{
    addon::{
        CustomSignerRegistration, KubeClientDriver, KubeClientRegistration, KubeClientSubject,
        ManagedClusterAddOnStatus, RegistrationConfig, RegistrationKind, RegistrationSpec, RegistrationType, Subject,
    },
    reference::ClusterName,
};

use super::{identity, token_infrastructure};
use crate::{certificate::CLIENT_SIGNER, dialect::Dialect};

/// How the agent of an add-on on a cluster registers, given what stands in the add-on's status. With the hub's API server it
/// registers once.
#[must_use]
pub fn registrations(
    cluster: &ClusterName,
    addon: &str,
    specs: &[RegistrationSpec],
    stored: &ManagedClusterAddOnStatus,
    dialect: Dialect,
) -> Vec<RegistrationConfig> {
    let mut registrations: Vec<RegistrationConfig> = Vec::new();
    for spec in specs {
        let Some(signer) = identity::signer(spec) else { continue };
        let subject = identity::subject(cluster, addon, spec);
        let registration = match spec.kind {
            RegistrationType::KubeClient => with_hub(subject, stored),
            RegistrationType::CustomSigner => with_other(signer, subject),
        };
        let registration = match dialect {
            Dialect::Drover => registration,
            Dialect::Ocm => flat(registration),
        };
        if !registrations.contains(&registration) {
            registrations.push(registration);
        }
    }
    registrations
}

/// How an agent registers with the hub's API server.
fn with_hub(default: Subject, stored: &ManagedClusterAddOnStatus) -> RegistrationConfig {
    let stored_one = stored.registrations.iter().find(|registration| token_infrastructure::is_for_hub(registration));
    let driver = stored_one.and_then(|registration| registration.kube_client.as_ref()?.driver);
    let uses_tokens = driver.or(stored.kube_client_driver) == Some(KubeClientDriver::Token);
    let own = stored_one.filter(|_| uses_tokens).and_then(|registration| own_subject(registration, &default));
    let subject = own.unwrap_or(default);
    let client = KubeClientSubject { user: subject.user.clone(), groups: subject.groups.clone() };
    RegistrationConfig {
        signer_name: Some(CLIENT_SIGNER.to_owned()),
        subject: Some(subject),
        kind: Some(RegistrationKind::KubeClient),
        kube_client: Some(KubeClientRegistration { subject: Some(client), driver }),
        custom_signer: None,
    }
}

/// As whom an agent says that it acts. It says so in one of the shapes, and in the other there is still what the hub has written.
fn own_subject(stored: &RegistrationConfig, default: &Subject) -> Option<Subject> {
    let client = stored.kube_client.as_ref().and_then(|client| client.subject.clone());
    let client = client.map(|KubeClientSubject { user, groups }| Subject { user, groups, ..Subject::default() });
    client
        .into_iter()
        .chain(stored.subject.clone())
        .find(|subject| subject.user.is_some() && subject.user != default.user)
}

/// How an agent registers with something else.
fn with_other(signer: &str, subject: Subject) -> RegistrationConfig {
    RegistrationConfig {
        signer_name: Some(signer.to_owned()),
        subject: Some(subject.clone()),
        kind: Some(RegistrationKind::CustomSigner),
        kube_client: None,
        custom_signer: Some(CustomSignerRegistration { signer_name: signer.to_owned(), subject: Some(subject) }),
    }
}

/// A registration in the shape of v1alpha1 alone.
fn flat(registration: RegistrationConfig) -> RegistrationConfig {
    let RegistrationConfig { signer_name, subject, .. } = registration;
    let subject = subject.map(|subject| Subject { organization_units: Vec::new(), ..subject });
    RegistrationConfig { signer_name, subject, ..RegistrationConfig::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(stored: Value) -> Value {
        status_in(Dialect::Drover, stored)
    }

    fn status_in(dialect: Dialect, stored: Value) -> Value {
        let specs = json!([
            { "type": "KubeClient" },
            { "type": "CustomSigner", "customSigner": { "signerName": "example.com/signer", "signingCA": { "name": "ca" },
                "subject": { "user": "u", "groups": ["g"], "organizationUnits": ["o"] } } },
            { "type": "KubeClient" },
            { "type": "CustomSigner", "customSigner": { "signerName": CLIENT_SIGNER, "signingCA": { "name": "ca" },
                "subject": { "user": "admin" } } },
        ]);
        let specs: Vec<RegistrationSpec> = serde_json::from_value(specs).expect("registrations");
        let stored: ManagedClusterAddOnStatus = serde_json::from_value(stored).expect("a status");
        json!(registrations(&"c1".into(), "a", &specs, &stored, dialect))
    }

    fn default() -> Value {
        json!({ "user": identity::user(&"c1".into(), "a"), "groups": identity::groups(&"c1".into(), "a") })
    }

    fn account() -> Value {
        json!({ "user": "system:serviceaccount:c1:a-agent", "groups": ["system:serviceaccounts"] })
    }

    fn registers(subject: &Value, driver: Option<&str>) -> Value {
        let mut client = json!({ "subject": subject });
        if let Some(driver) = driver {
            client["driver"] = json!(driver);
        }
        json!({ "signerName": CLIENT_SIGNER, "subject": subject, "type": "kubeClient", "kubeClient": client })
    }

    #[test]
    fn both_shapes_say_the_same() {
        let custom = json!({ "user": "u", "groups": ["g"], "organizationUnit": ["o"], "organizationUnits": ["o"] });
        let signer = "example.com/signer";
        let other = json!({ "signerName": signer, "subject": custom, "type": "customSigner",
            "customSigner": { "signerName": signer, "subject": custom } });
        assert_eq!(status(json!({})), json!([registers(&default(), None), other]));
    }

    #[test]
    fn the_agents_driver_is_kept_and_with_tokens_its_subject() {
        let of = |stored: Value| status(stored)[0].clone();
        let entry = |driver: Value, client: Value, flat: Value| json!({ "type": "kubeClient", "kubeClient": { "driver": driver, "subject": client }, "subject": flat });
        let v1beta1 = json!({ "registrations": [entry(json!("token"), account(), default())] });
        assert_eq!(of(v1beta1), registers(&account(), Some("token")));
        let v1alpha1 =
            json!({ "kubeClientDriver": "token", "registrations": [entry(Value::Null, default(), account())] });
        assert_eq!(of(v1alpha1), registers(&account(), None));
        let nothing_yet = json!({ "registrations": [entry(json!("token"), default(), default())] });
        assert_eq!(of(nothing_yet), registers(&default(), Some("token")));
        let back = json!({ "registrations": [entry(json!("csr"), account(), account())] });
        assert_eq!(of(back), registers(&default(), Some("csr")));
    }

    #[test]
    fn what_is_so_stays_so() {
        for stored in [json!({}), json!({ "registrations": [registers(&account(), Some("token"))] })] {
            let once = status(stored);
            assert_eq!(status(json!({ "registrations": once })), once);
        }
    }

    #[test]
    fn where_the_crds_are_ocms_there_is_one_shape_and_it_stays() {
        let custom = json!({ "user": "u", "groups": ["g"], "organizationUnit": ["o"] });
        let of = |subject: Value| {
            json!([{ "signerName": CLIENT_SIGNER, "subject": subject },
                { "signerName": "example.com/signer", "subject": custom }])
        };
        for (driver, subject) in [(Value::Null, default()), (json!("csr"), default()), (json!("token"), account())] {
            let stored = json!({ "kubeClientDriver": driver, "registrations": of(subject.clone()) });
            assert_eq!(status_in(Dialect::Ocm, stored), of(subject), "{driver}");
        }
        assert_eq!(status_in(Dialect::Ocm, json!({})), of(default()));
    }
}
