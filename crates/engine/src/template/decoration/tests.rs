use crate::template::fixtures::{Case, config_map, manifest, workload};

use super::*;

fn registered() -> Value {
    let signer = json!({ "signerName": "example.com/signer-name", "signingCA": { "name": "ca" } });
    json!([{ "type": "KubeClient" }, { "type": "CustomSigner", "customSigner": signer }])
}

fn agent(container: &Value) -> Case {
    Case::new([workload("Deployment", container)])
}

/// The only container of the only pod.
fn container(case: &Case) -> Value {
    case.pod()["containers"][0].clone()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn containers_are_told_who_they_are_and_what_they_prove_it_with() {
    let case = agent(&json!({ "name": "main" })).with("/registration", registered());
    let expected = json!({
        "name": "main",
        "env": [
            { "name": "HUB_KUBECONFIG", "value": "/managed/hub-kubeconfig/kubeconfig" },
            { "name": "CLUSTER_NAME", "value": "one" },
            { "name": "INSTALL_NAMESPACE", "value": "ns" },
        ],
        "volumeMounts": [
            { "name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig" },
            { "name": "cert-example-com-signer-name", "mountPath": "/managed/example.com-signer-name" },
        ],
    });
    assert_eq!(container(&case), expected);
    let secret = |name: &str| json!({ "secretName": name, "defaultMode": 420 });
    let expected = json!([
        { "name": "hub-kubeconfig", "secret": secret("hello-hub-kubeconfig") },
        { "name": "cert-example-com-signer-name", "secret": secret("hello-example.com-signer-name-client-cert") },
    ]);
    assert_eq!(case.pod()["volumes"], expected);
}

#[test]
fn who_does_not_register_gets_no_credentials() {
    let case = agent(&json!({ "name": "main" }));
    assert_eq!(names(&container(&case)["env"]), ["CLUSTER_NAME", "INSTALL_NAMESPACE"]);
    assert_eq!((case.pod().get("volumes"), container(&case).get("volumeMounts")), (None, None));
}

#[test]
fn what_is_added_takes_the_place_of_what_has_the_same_name() {
    let mut manifest = workload(
        "Deployment",
        &json!({
            "name": "main",
            "env": [
                { "name": "A", "value": "1" },
                { "name": "CLUSTER_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "B", "value": "{{HUB_KUBECONFIG}}" },
                { "name": "CLUSTER_NAME", "value": "again" },
            ],
            "volumeMounts": [
                { "name": "old", "mountPath": "/managed/hub-kubeconfig", "readOnly": true },
                { "name": "own", "mountPath": "/own" },
            ],
        }),
    );
    manifest["spec"]["template"]["spec"]["volumes"] =
        json!([{ "name": "own", "emptyDir": {} }, { "name": "hub-kubeconfig", "emptyDir": {} }]);
    let registration = json!([{ "type": "KubeClient" }]);
    let variables = json!({ "customizedVariables": [{ "name": "HUB_KUBECONFIG", "value": "/mine" }] });
    let case = Case::new([manifest]).with("/registration", registration).settings(variables);
    let expected = json!([
        { "name": "A", "value": "1" },
        { "name": "CLUSTER_NAME", "value": "one" },
        { "name": "B", "value": "/mine" },
        { "name": "HUB_KUBECONFIG", "value": "/mine" },
        { "name": "INSTALL_NAMESPACE", "value": "ns" },
    ]);
    assert_eq!(container(&case)["env"], expected);
    let mounts = json!([{ "name": "hub-kubeconfig", "mountPath": "/managed/hub-kubeconfig" }, { "name": "own", "mountPath": "/own" }]);
    assert_eq!(container(&case)["volumeMounts"], mounts);
    assert_eq!(names(&case.pod()["volumes"]), ["own", "hub-kubeconfig"]);
    assert_eq!(case.pod()["volumes"][1]["secret"]["secretName"], "hello-hub-kubeconfig");
}

#[test]
fn every_kind_with_pods_is_decorated_init_containers_too() {
    let pod = json!({
        "initContainers": [{ "name": "first" }],
        "containers": [{ "name": "main" }],
        "ephemeralContainers": [{ "name": "later" }],
    });
    let template = json!({ "template": { "spec": pod } });
    for (version, kind, spec, path) in [
        ("apps/v1", "Deployment", template.clone(), "/spec/template/spec"),
        ("apps/v1beta2", "DaemonSet", template.clone(), "/spec/template/spec"),
        ("apps/v1", "StatefulSet", template.clone(), "/spec/template/spec"),
        ("apps/v1", "ReplicaSet", template.clone(), "/spec/template/spec"),
        ("v1", "ReplicationController", template.clone(), "/spec/template/spec"),
        ("v1", "Pod", pod.clone(), "/spec"),
        ("batch/v1", "Job", template.clone(), "/spec/template/spec"),
        ("batch/v1", "CronJob", json!({ "jobTemplate": { "spec": template } }), "/spec/jobTemplate/spec/template/spec"),
    ] {
        let mut manifest = manifest(version, kind, "agent");
        manifest["spec"] = spec;
        let rendered = Case::new([manifest]).with("/registration", registered()).manifests();
        let pod = rendered[0].pointer(path).expect("the pod is where it was");
        for list in ["initContainers", "containers"] {
            assert_eq!(names(&pod[list][0]["env"]).len(), 3, "{kind} {list}");
            assert_eq!(names(&pod[list][0]["volumeMounts"]).len(), 2, "{kind} {list}");
        }
        assert_eq!(pod["ephemeralContainers"], json!([{ "name": "later" }]), "{kind}");
        assert_eq!(names(&pod["volumes"]).len(), 2, "{kind}");
    }
}

#[test]
fn other_kinds_and_workloads_without_pods_are_left_alone() {
    let mut other = manifest("example.com/v1", "Deployment", "other");
    other["spec"] = json!({ "template": { "spec": { "containers": [{ "name": "main" }] } } });
    let bare = manifest("batch/v1", "Job", "bare");
    let case = Case::new([other.clone(), bare.clone(), config_map("a")]).with("/registration", registered());
    assert_eq!(case.manifests(), [other, bare, config_map("a")]);
}

#[test]
fn lists_that_are_none_are_a_flaw_of_their_manifest() {
    for (containers, field) in [
        (json!({}), "containers in another form than a list"),
        (json!(["main"]), "containers in another form than a list of containers"),
        (json!([{ "name": "main", "env": "A=1" }]), "env in another form than a list"),
    ] {
        let mut manifest = workload("Deployment", &json!({}));
        manifest["spec"]["template"]["spec"]["containers"] = containers;
        let flaw = Case::new([manifest]).flaw();
        assert_eq!(
            flaw,
            format!("in the AddOnTemplate hello-template, the Deployment ns/agent has {field}: correct it")
        );
    }
    let nothing = agent(&json!({ "name": "main", "env": null }));
    assert_eq!(names(&container(&nothing)["env"]).len(), 2);
}

#[test]
fn nodes_are_chosen_and_tolerated_independently() {
    let own = json!([{ "key": "own" }]);
    let mut manifest = workload("Deployment", &json!({ "name": "main" }));
    manifest["spec"]["template"]["spec"]["nodeSelector"] = json!({ "own": "1" });
    manifest["spec"]["template"]["spec"]["tolerations"] = own.clone();
    let placed = |placement: Value| {
        let pod = Case::new([manifest.clone()]).settings(json!({ "nodePlacement": placement })).pod();
        (pod["nodeSelector"].clone(), pod["tolerations"].clone())
    };
    let (selector, tolerations) = (json!({ "gpu": "yes" }), json!([{ "key": "gpu", "operator": "Exists" }]));
    assert_eq!(placed(json!({ "nodeSelector": selector })), (selector.clone(), own.clone()));
    assert_eq!(placed(json!({ "tolerations": tolerations })), (json!({ "own": "1" }), tolerations.clone()));
    let both = json!({ "nodeSelector": selector, "tolerations": tolerations });
    assert_eq!(placed(both), (selector, tolerations));
    assert_eq!(placed(json!({ "nodeSelector": {}, "tolerations": [] })), (json!({ "own": "1" }), own));
}

#[test]
fn images_come_from_the_registries_of_the_settings_or_else_of_the_cluster() {
    let mirror = |mirror: &str| ImageMirror { source: Some("quay.io/a".to_owned()), mirror: mirror.to_owned() };
    let mut case = agent(&json!({ "name": "main", "image": "quay.io/a/b:1" }));
    assert_eq!(container(&case)["image"], "quay.io/a/b:1");
    case.registries = vec![mirror("cluster.io")];
    assert_eq!(container(&case)["image"], "cluster.io/b:1");
    let case = case.settings(json!({ "registries": [mirror("settings.io")] }));
    assert_eq!(container(&case)["image"], "settings.io/b:1");
}

#[test]
fn resources_are_replaced_as_a_whole() {
    let asked = json!({ "requests": { "cpu": "1" }, "limits": { "memory": "1Gi" } });
    let case = agent(&json!({ "name": "main", "resources": asked }));
    let wanted = json!({ "requests": { "cpu": "100m", "pods": 3 } });
    let requirements = |id: &str| json!({ "resourceRequirements": [{ "containerID": id, "resources": wanted }] });
    assert_eq!(container(&case.clone().settings(requirements("deployments:agent:*")))["resources"], wanted);
    assert_eq!(container(&case.settings(requirements("daemonsets:agent:*")))["resources"], asked);
}

#[test]
fn the_proxy_and_its_certificates_reach_containers() {
    let pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
    // The same in base64, as an AddOnDeploymentConfig has it.
    let base64 = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=";
    let agent = workload("Deployment", &json!({ "name": "main" }));
    let case = Case::new([config_map("a"), agent, config_map("b")]);
    let alone = case.clone().settings(json!({ "proxyConfig": { "caBundle": base64, "noProxy": "x" } }));
    let manifests = alone.manifests();
    let order: Vec<_> = manifests.iter().map(|manifest| manifest["metadata"]["name"].clone()).collect();
    assert_eq!(order, ["a", "hello-proxy-ca", "agent", "b"]);
    assert_eq!(manifests[1]["data"]["ca-bundle.crt"], pem);
    assert_eq!(manifests[1]["metadata"]["namespace"], "ns");
    let found = container(&alone);
    assert_eq!(names(&found["env"]), ["CLUSTER_NAME", "INSTALL_NAMESPACE", "CA_BUNDLE_FILE_PATH"]);
    assert_eq!(found["env"][2]["value"], "/managed/proxy-ca/ca-bundle.crt");
    assert_eq!(found["volumeMounts"], json!([{ "name": "proxy-ca-bundle", "mountPath": "/managed/proxy-ca" }]));
    assert_eq!(alone.pod()["volumes"][0]["configMap"]["name"], "hello-proxy-ca");

    // A value that looks like a variable is none.
    let both = case.settings(json!({ "proxyConfig": { "httpsProxy": "https://{{A}}", "caBundle": base64 } }));
    let expected = ["CLUSTER_NAME", "INSTALL_NAMESPACE", "HTTPS_PROXY", "https_proxy", "CA_BUNDLE_FILE_PATH"];
    assert_eq!(names(&container(&both)["env"]), expected);
    assert_eq!(container(&both)["env"][2]["value"], "https://{{A}}");
}
