use serde_json::json;

use super::*;
use crate::template::fixtures::{Case, config_map, manifest, workload};

fn registered(registration: &Value) -> Result<Blueprint, Flaw> {
    Case::new([config_map("a")]).with("/registration", json!([{ "type": "KubeClient" }, registration])).blueprint()
}

fn permission(permission: &Value) -> Result<Blueprint, Flaw> {
    registered(&json!({ "type": "KubeClient", "kubeClient": { "hubPermissions": [permission] } }))
}

#[test]
fn a_template_is_read_from_what_was_kept_of_it() {
    let blueprint = Case::new([config_map("a")]).with("/registration", json!([{ "type": "KubeClient" }])).blueprint();
    let blueprint = blueprint.expect("it makes sense");
    assert_eq!((blueprint.name(), blueprint.addon()), ("hello-template", "hello"));
    assert_eq!(blueprint.registrations().len(), 1);
    assert_eq!(blueprint.health(), HealthCheckMode::Customized);
}

#[test]
fn a_template_may_ask_for_a_lease() {
    for mode in [HealthCheckMode::Lease, HealthCheckMode::Customized] {
        let blueprint = Case::new([config_map("a")]).with("/healthCheck", json!({ "mode": mode })).blueprint();
        assert_eq!(blueprint.expect("it makes sense").health(), mode);
    }
}

#[test]
fn what_nobody_can_read_says_so() {
    for content in ["", "{}", "[]", r#"{"spec":{}}"#, r#"{"spec":{"addonName":"a","agentSpec":1}}"#] {
        let flaw = Blueprint::read("broken", content).expect_err("nobody can read it");
        assert!(flaw.to_string().starts_with("the AddOnTemplate broken can not be read: "), "{flaw}");
    }
    for content in ["", r#"{"spec":{"registries":1}}"#, r#"{"spec":{"proxyConfig":{"caBundle":"?"}}}"#] {
        let flaw = settings("ns/broken", content).expect_err("nobody can read it");
        assert!(flaw.to_string().starts_with("the AddOnDeploymentConfig ns/broken can not be read: "), "{flaw}");
    }
}

#[test]
fn settings_may_say_nothing() {
    for content in ["{}", r#"{"spec":{}}"#, r#"{"spec":null}"#] {
        assert_eq!(settings("ns/empty", content), Ok(AddOnDeploymentConfigSpec::default()));
    }
    let found = settings("ns/some", r#"{"spec":{"agentInstallNamespace":"home"}}"#).expect("it can be read");
    assert_eq!(found.agent_install_namespace.as_deref(), Some("home"));
}

#[test]
fn certificates_in_settings_have_to_be_some() {
    let flaw = settings("ns/proxy", r#"{"spec":{"proxyConfig":{"caBundle":"AAAA"}}}"#).expect_err("these are none");
    assert_eq!(flaw, Flaw::CaBundle { settings: "ns/proxy".to_owned() });
    assert!(flaw.to_string().contains("ns/proxy has a spec.proxyConfig.caBundle that is no list of certificates"));
}

#[test]
fn a_template_has_to_deploy_something() {
    let flaw = Flaw::NoManifests { template: "hello-template".to_owned() };
    assert_eq!(Case::new([]).blueprint().err(), Some(flaw.clone()));
    assert_eq!(Case::new([]).with("/agentSpec", json!({})).blueprint().err(), Some(flaw));
}

#[test]
fn every_manifest_has_to_be_one() {
    let mut nameless = config_map("a");
    nameless["metadata"] = json!({ "generateName": "a-" });
    let flaw = Case::new([config_map("a"), nameless]).flaw();
    let expected =
        "in the AddOnTemplate hello-template, spec.agentSpec.workload.manifests[1] has no metadata.name: set it";
    assert!(flaw.starts_with(expected), "{flaw}");
    let mut hook = manifest("batch/v1", "Job", "a");
    hook["metadata"]["labels"] = json!({ "addon.open-cluster-management.io/addon-pre-delete": "" });
    let flaw = Case::new([hook]).flaw();
    assert!(flaw.contains("the Job ns/a is to run before") && flaw.contains("not supported with templates"), "{flaw}");
    let mut hosted = config_map("a");
    hosted["metadata"]["annotations"] =
        json!({ "addon.open-cluster-management.io/hosted-manifest-location": "hosting" });
    let flaw = Case::new([hosted]).flaw();
    assert!(
        flaw.contains("hosted-manifest-location=hosting") && flaw.contains("not supported with templates"),
        "{flaw}"
    );
}

#[test]
fn no_two_manifests_are_for_one_object() {
    let other_version = manifest("apps/v1beta1", "Deployment", "agent");
    let twice = Case::new([workload("Deployment", &json!({})), config_map("agent"), other_version]).blueprint().err();
    let manifest = "the Deployment ns/agent".to_owned();
    assert_eq!(twice, Some(Flaw::Manifest { template: "hello-template".to_owned(), manifest, fault: Fault::Twice }));
}

#[test]
fn a_permission_needs_a_role_and_a_place() {
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" });
    for well in [
        json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "admin" } }),
        json!({ "type": "CurrentCluster", "roleRef": role }),
        json!({ "type": "SingleNamespace", "singleNamespace": { "namespace": "ns", "roleRef": role } }),
        json!({ "type": "SingleNamespace", "singleNamespace": { "namespace": "ns" }, "roleRef": role }),
    ] {
        assert!(permission(&well).is_ok(), "{well}");
    }
    let nameless = json!({ "apiGroup": "", "kind": "", "name": "" });
    for bad in [
        json!({ "type": "CurrentCluster" }),
        json!({ "type": "CurrentCluster", "currentCluster": { "clusterRoleName": "" } }),
        json!({ "type": "CurrentCluster", "singleNamespace": { "namespace": "ns", "roleRef": role } }),
        json!({ "type": "SingleNamespace", "singleNamespace": { "namespace": "ns" } }),
        json!({ "type": "SingleNamespace", "singleNamespace": { "namespace": "ns", "roleRef": nameless } }),
    ] {
        let flaw = permission(&bad).expect_err("there is no role");
        assert!(matches!(flaw, Flaw::NoRole { registration: 1, permission: 0, .. }), "{bad}: {flaw}");
    }
    for bad in [
        json!({ "type": "SingleNamespace", "roleRef": role }),
        json!({ "type": "SingleNamespace", "singleNamespace": { "namespace": "", "roleRef": role } }),
    ] {
        let flaw = permission(&bad).expect_err("there is no namespace");
        assert!(matches!(flaw, Flaw::NoNamespace { registration: 1, permission: 0, .. }), "{bad}: {flaw}");
    }
}

#[test]
fn a_signer_has_to_be_named() {
    let flaw = registered(&json!({ "type": "CustomSigner" })).expect_err("there is no signer");
    assert!(matches!(flaw, Flaw::NoSigner { registration: 1, .. }));
    assert!(flaw.to_string().contains("in spec.registration[1]"), "{flaw}");
}
