//! As whom the agent of an add-on acts. The names are OCM's.

use drover_api::{
    addon::{RegistrationSpec, RegistrationType, Subject},
    names::AGENT_PREFIX,
    reference::ClusterName,
};

use super::permission;
use crate::certificate::CLIENT_SIGNER;

/// What the names of signers begin with that are Kubernetes' own.
const KUBERNETES: &str = "kubernetes.io/";

/// The user that an add-on's agent is.
#[must_use]
pub fn user(cluster: &ClusterName, addon: &str) -> String {
    format!("{}:agent:{addon}-agent", group(cluster, addon))
}

/// The groups that an add-on's agent is in.
#[must_use]
pub fn groups(cluster: &ClusterName, addon: &str) -> Vec<String> {
    vec![group(cluster, addon), format!("{AGENT_PREFIX}addon:{addon}")]
}

/// The group of an add-on's agents on one cluster, which no agent of another cluster is in.
#[must_use]
pub fn group(cluster: &ClusterName, addon: &str) -> String {
    format!("{AGENT_PREFIX}cluster:{cluster}:addon:{addon}")
}

/// The name of a host that OCM's agents ask for with every certificate of an add-on. There is no such host, and nothing that the hub signs
/// has it.
#[must_use]
pub fn host(addon: &str) -> String {
    format!("{addon}.addon.open-cluster-management.io")
}

/// Who signs for an agent that registers in this way; nothing if nobody can. Kubernetes' own signers sign for nobody whose name a
/// template has chosen: who writes templates could act on the hub as anybody.
#[must_use]
pub fn signer(spec: &RegistrationSpec) -> Option<&str> {
    match spec.kind {
        RegistrationType::KubeClient => Some(CLIENT_SIGNER),
        RegistrationType::CustomSigner => {
            spec.custom_signer.as_ref().map(|custom| &*custom.signer_name).filter(|name| !name.starts_with(KUBERNETES))
        }
    }
}

/// What is wrong with how a template says that its agent registers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misconfigured {
    /// It names a signer of Kubernetes'.
    #[error(
        "the signer {0} is Kubernetes' own, and signs for nobody whom a template has named: use the type KubeClient, or a signer in a domain of \
         your own"
    )]
    KubernetesSigner(String),
    /// It names a role that the hub binds for itself or for clusters' agents.
    #[error(
        "the role {0} is for the hub itself or for agents of clusters, and no template can name it: make a role of your own with what the add-on's \
         agent needs, and let the hub bind that"
    )]
    ReservedRole(String),
}

/// Checks that an agent can register in all the ways that its template says, with all the roles that it names.
pub fn check(specs: &[RegistrationSpec]) -> Result<(), Misconfigured> {
    let mut custom = specs.iter().filter(|spec| signer(spec).is_none()).filter_map(|spec| spec.custom_signer.as_ref());
    if let Some(custom) = custom.next() {
        return Err(Misconfigured::KubernetesSigner(custom.signer_name.clone()));
    }
    permission::reserved_role(specs).map_or(Ok(()), |role| Err(Misconfigured::ReservedRole(role)))
}

/// Whom the certificate is for that an agent asks for. What a template does not say is as for the hub's API server.
#[must_use]
pub fn subject(cluster: &ClusterName, addon: &str, spec: &RegistrationSpec) -> Subject {
    let custom = spec.custom_signer.as_ref().filter(|_| spec.kind == RegistrationType::CustomSigner);
    let custom = custom.and_then(|custom| custom.subject.clone()).unwrap_or_default();
    let units = custom.units().to_vec();
    Subject {
        user: Some(custom.user.filter(|user| !user.is_empty()).unwrap_or_else(|| user(cluster, addon))),
        groups: if custom.groups.is_empty() { groups(cluster, addon) } else { custom.groups },
        organization_unit: units.clone(),
        organization_units: units,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(value: Value) -> RegistrationSpec {
        serde_json::from_value(value).expect("a registration")
    }

    #[test]
    fn an_agent_is_called_as_in_ocm() {
        let cluster = ClusterName::from("c1");
        assert_eq!(user(&cluster, "a"), "system:open-cluster-management:cluster:c1:addon:a:agent:a-agent");
        assert_eq!(
            groups(&cluster, "a"),
            ["system:open-cluster-management:cluster:c1:addon:a", "system:open-cluster-management:addon:a"]
        );
    }

    #[test]
    fn what_a_template_does_not_say_of_its_subject_is_the_default() {
        let custom = |subject: Value| {
            let signer =
                json!({ "signerName": "example.com/signer", "subject": subject, "signingCA": { "name": "ca" } });
            subject_of(&json!({ "type": "CustomSigner", "customSigner": signer }))
        };
        let subject_of_all = custom(json!({ "user": "u", "groups": ["g"], "organizationUnit": ["o"] }));
        assert_eq!((subject_of_all.user.as_deref(), &*subject_of_all.groups), (Some("u"), &["g".to_owned()][..]));
        assert_eq!(
            (subject_of_all.organization_unit, subject_of_all.organization_units),
            (vec!["o".to_owned()], vec!["o".to_owned()])
        );
        let default = subject_of(&json!({ "type": "KubeClient" }));
        assert_eq!((default.user, default.groups), (Some(user(&"c1".into(), "a")), groups(&"c1".into(), "a")));
        assert_eq!(custom(json!({ "user": "u" })).groups, groups(&"c1".into(), "a"));
        assert_eq!(custom(json!({ "user": "", "groups": ["g"] })).user, Some(user(&"c1".into(), "a")));
    }

    fn subject_of(value: &Value) -> Subject {
        subject(&"c1".into(), "a", &spec(value.clone()))
    }

    #[test]
    fn nobody_gets_a_name_of_his_choice_from_kubernetes_own_signers() {
        let custom = |name: &str| {
            let signer = json!({ "signerName": name, "subject": { "user": "admin" }, "signingCA": { "name": "ca" } });
            spec(json!({ "type": "CustomSigner", "customSigner": signer }))
        };
        assert_eq!(signer(&spec(json!({ "type": "KubeClient" }))), Some(CLIENT_SIGNER));
        assert_eq!(signer(&custom("example.com/signer")), Some("example.com/signer"));
        assert_eq!(check(&[spec(json!({ "type": "KubeClient" })), custom("example.com/signer")]), Ok(()));
        for kubernetes in [CLIENT_SIGNER, "kubernetes.io/kubelet-serving", "kubernetes.io/legacy-unknown"] {
            assert_eq!(signer(&custom(kubernetes)), None, "{kubernetes}");
            let flaw = Misconfigured::KubernetesSigner(kubernetes.to_owned());
            assert_eq!(check(&[custom("example.com/signer"), custom(kubernetes)]), Err(flaw));
        }
    }
}
