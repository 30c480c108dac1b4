use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{Headings, Include, MetaVersion, Options, Printer, metadata_only, metadata_only_list, table};
use crate::{
    kind::{Column, Kind, Origin, Scope, Subresources, Version},
    schema::Schema,
};

fn kind(group: &str, plural: &str, origin: Origin, columns: Vec<Column>) -> Kind {
    let version = Version {
        name: "v1".to_owned(),
        is_served: true,
        is_stored: true,
        deprecation: None,
        schema: Arc::new(Schema::default()),
        openapi: Arc::new(Value::Null),
        columns,
        subresources: Subresources::default(),
        selectable_fields: Vec::new(),
    };
    Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: String::new(),
        kind: String::new(),
        list_kind: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: vec![version],
        origin,
    }
}

fn column(name: &str, type_: &str, path: &str) -> Column {
    Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        path: path.to_owned(),
    }
}

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn shown(kind: &Kind, object: &Value, options: Options) -> Value {
    table(kind, &kind.versions[0], std::slice::from_ref(object), &object["metadata"], options, now())
}

fn cells(group: &str, plural: &str, object: &Value) -> Value {
    let kind = kind(group, plural, Origin::BuiltIn, Vec::new());
    let table = shown(&kind, object, Options::default());
    let headings = table["columnDefinitions"].as_array().unwrap().len();
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), headings, "a cell for every column");
    table["rows"][0]["cells"].clone()
}

fn with(mut object: Value) -> Value {
    object["metadata"]["name"] = json!("a");
    object["metadata"]["creationTimestamp"] = json!("2026-11-16T11:00:00Z");
    object
}

#[test]
fn custom_kinds_are_shown_by_their_columns() {
    let ready = r#".status.conditions[?(@.type=="Ready")].status"#;
    let columns = vec![
        column("Ready", "string", ready),
        column("Count", "integer", ".status.count"),
        column("Ratio", "number", ".status.count"),
        column("Accepted", "boolean", ".spec.accepted"),
        column("Labels", "string", ".metadata.labels"),
        column("Missing", "string", ".spec.missing"),
        column("Wrong", "integer", ".spec.accepted"),
        column("Age", "date", ".metadata.creationTimestamp"),
        column("Never", "date", ".spec.never"),
    ];
    let kind = kind("example.com", "things", Origin::Custom, columns);
    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {
            "name": "a", "resourceVersion": "7", "labels": {"b": "c"}, "creationTimestamp": "2026-11-16T11:57:30Z",
        },
        "spec": {"accepted": true, "never": "soon"},
        "status": {"count": 3, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let table = shown(&kind, &object, Options::default());
    assert_eq!(
        table["rows"],
        json!([{
            "cells": ["a", "True", 3, 3.0, true, "{\"b\":\"c\"}", null, null, "2m30s", "<invalid>"],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]},
        }])
    );
    assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(
        table["columnDefinitions"][1],
        json!({
            "name": "Ready", "type": "string", "format": "", "priority": 0,
            "description": format!("Custom resource definition column (in JSONPath format): {ready}"),
        })
    );
}

#[test]
fn what_comes_with_a_row_is_as_asked_for() {
    let kind = kind("", "configmaps", Origin::BuiltIn, Vec::new());
    let object = with(json!({"kind": "ConfigMap", "data": {"x": "y"}, "binaryData": {"z": ""}}));
    let of = |include| shown(&kind, &object, Options { include, ..Options::default() })["rows"][0].clone();
    assert_eq!(of(Include::None), json!({"cells": ["a", 2, "60m"], "object": null}));
    assert_eq!(of(Include::Object)["object"], object);
    let old = shown(&kind, &object, Options { meta: MetaVersion::V1Beta1, ..Options::default() });
    assert_eq!((&old["apiVersion"], &old["kind"]), (&json!("meta.k8s.io/v1beta1"), &json!("Table")));
    assert_eq!(old["rows"][0]["object"]["apiVersion"], json!("meta.k8s.io/v1beta1"));
}

#[test]
fn what_can_not_come_with_a_row_is_refused() {
    assert_eq!(Include::parse(""), Ok(Include::Metadata));
    assert_eq!(
        Include::parse("All").unwrap_err().message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', \
         'None', or empty"
    );
}

#[test]
fn only_the_first_table_of_a_watch_has_headings() {
    let kind = kind("", "namespaces", Origin::BuiltIn, Vec::new());
    let hidden = shown(&kind, &with(json!({})), Options { headings: Headings::Hidden, ..Options::default() });
    assert_eq!(hidden["columnDefinitions"], Value::Null);
    assert_eq!(hidden["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn a_list_passes_on_where_it_ends() {
    let secrets = kind("", "secrets", Origin::BuiltIn, Vec::new());
    let metadata = json!({"resourceVersion": "9", "continue": "x", "remainingItemCount": 3, "selfLink": "no"});
    let printer = Printer::of(&secrets, &secrets.versions[0]);
    let table = printer.table(&[], &metadata, Options::default(), now());
    assert_eq!(table["metadata"], json!({"resourceVersion": "9", "continue": "x", "remainingItemCount": 3}));
    assert_eq!(table["rows"], json!([]));
    let roles = kind("rbac.authorization.k8s.io", "roles", Origin::BuiltIn, Vec::new());
    let table = Printer::of(&roles, &roles.versions[0]).table(&[], &metadata, Options::default(), now());
    assert_eq!(table["rows"], Value::Null);
}

#[test]
fn the_kinds_of_the_hub_have_columns_of_their_own() {
    assert_eq!(cells("", "namespaces", &with(json!({"status": {"phase": "Active"}}))), json!(["a", "Active", "60m"]));
    assert_eq!(
        cells("", "secrets", &with(json!({"type": "Opaque", "data": {"x": ""}}))),
        json!(["a", "Opaque", 1, "60m"])
    );
    assert_eq!(cells("", "serviceaccounts", &with(json!({}))), json!(["a", "60m"]));
    assert_eq!(
        cells("coordination.k8s.io", "leases", &with(json!({"spec": {"holderIdentity": "me"}}))),
        json!(["a", "me", "60m"])
    );
    assert_eq!(
        cells("apiextensions.k8s.io", "customresourcedefinitions", &with(json!({}))),
        json!(["a", "2026-11-16T11:00:00Z"])
    );
    assert_eq!(
        cells(
            "rbac.authorization.k8s.io",
            "clusterrolebindings",
            &with(json!({
                "roleRef": {"kind": "ClusterRole", "name": "view"},
                "subjects": [
                    {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "Group", "name": "h"},
                    {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
                ],
            }))
        ),
        json!(["a", "ClusterRole/view", "60m", "u", "g, h", "n/s"])
    );
}

#[test]
fn certificate_requests_show_what_was_decided() {
    let request = |status: Value| {
        let spec =
            json!({"signerName": "kubernetes.io/kube-apiserver-client", "username": "u", "expirationSeconds": 3600});
        cells("certificates.k8s.io", "certificatesigningrequests", &with(json!({"spec": spec, "status": status})))
    };
    assert_eq!(request(json!({})), json!(["a", "60m", "kubernetes.io/kube-apiserver-client", "u", "60m", "Pending"]));
    let issued = json!({"conditions": [{"type": "Approved"}], "certificate": "LS0t"});
    assert_eq!(request(issued)[5], "Approved,Issued");
    assert_eq!(request(json!({"conditions": [{"type": "Denied"}, {"type": "Failed"}]}))[5], "Denied,Failed");
}

#[test]
fn events_show_when_and_about_what() {
    let told = |event: Value| cells("", "events", &with(event));
    assert_eq!(
        told(json!({
            "firstTimestamp": "2026-11-16T11:50:00Z", "lastTimestamp": "2026-11-16T11:59:00Z", "count": 4, "type": "Normal",
            "reason": "Pulled", "message": " done\n", "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
            "source": {"component": "kubelet", "host": "node"},
        })),
        json!(["60s", "Normal", "Pulled", "pod/p", "spec", "kubelet, node", "done", "10m", 4, "a"])
    );
    assert_eq!(
        told(json!({
            "eventTime": "2026-11-16T11:59:30.000000Z", "firstTimestamp": null, "lastTimestamp": null, "source": {},
            "reportingComponent": "drover", "involvedObject": {"kind": "Namespace"},
        })),
        json!(["30s", "", "", "namespace", "", "drover", "", "30s", 1, "a"])
    );
    assert_eq!(
        cells(
            "events.k8s.io",
            "events",
            &with(json!({"note": "n", "regarding": {"kind": "Pod", "name": "p"}, "deprecatedCount": 2}))
        ),
        json!(["<unknown>", "", "", "pod/p", "", "", "n", "<unknown>", 2, "a"])
    );
}

#[test]
fn admission_policies_show_their_parameters() {
    let group = "admissionregistration.k8s.io";
    let policy = json!({"spec": {"validations": [{}, {}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    assert_eq!(cells(group, "validatingadmissionpolicies", &with(policy)), json!(["a", 2, "v1/ConfigMap", "60m"]));
    let binding = |reference: Value| {
        let spec = json!({"policyName": "p", "paramRef": reference});
        cells(group, "validatingadmissionpolicybindings", &with(json!({"spec": spec})))[2].clone()
    };
    assert_eq!(binding(Value::Null), "<unset>");
    assert_eq!(binding(json!({"name": "x"})), "*/x");
    assert_eq!(binding(json!({"name": "x", "namespace": "n"})), "n/x");
    assert_eq!(
        binding(json!({"selector": {"matchLabels": {"a": "b"}}})),
        "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"
    );
}

#[test]
fn workloads_show_how_many_there_are() {
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}});
    let selector = json!({"matchLabels": {"app": "x"}});
    let spec = json!({"replicas": 3, "template": template, "selector": selector});
    let status = json!({"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1});
    let object = with(json!({"spec": spec, "status": status}));
    assert_eq!(cells("apps", "deployments", &object), json!(["a", "2/3", 3, 1, "60m", "c,d", "i,j", "app=x"]));
    assert_eq!(cells("apps", "replicasets", &object), json!(["a", 3, 3, 2, "60m", "c,d", "i,j", "app=x"]));
    assert_eq!(cells("apps", "statefulsets", &object), json!(["a", "2/3", "60m", "c,d", "i,j"]));
    assert_eq!(
        cells("apps", "daemonsets", &object),
        json!(["a", 0, 0, 0, 0, 0, "<none>", "60m", "c,d", "i,j", "app=x"])
    );
    let job = with(json!({
        "spec": {"completions": 2, "template": template},
        "status": {"succeeded": 2, "startTime": "2026-11-16T11:00:00Z", "completionTime": "2026-11-16T11:00:42Z",
                   "conditions": [{"type": "Complete", "status": "True"}]},
    }));
    assert_eq!(cells("batch", "jobs", &job), json!(["a", "Complete", "2/2", "42s", "60m", "c,d", "i,j", "<none>"]));
    let cron = with(
        json!({"spec": {"schedule": "@daily", "suspend": false, "jobTemplate": {"spec": {"template": template}}}}),
    );
    assert_eq!(
        cells("batch", "cronjobs", &cron),
        json!(["a", "@daily", "<none>", "False", 0, "<none>", "60m", "c,d", "i,j", "<none>"])
    );
}

#[test]
fn services_and_nodes_show_their_addresses() {
    let service = with(json!({
        "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "selector": {"a": "b"},
                 "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]},
    }));
    assert_eq!(
        cells("", "services", &service),
        json!(["a", "LoadBalancer", "10.0.0.1", "<pending>", "80:30080/TCP,53/UDP", "60m", "a=b"])
    );
    let mut node = with(json!({
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
                   "nodeInfo": {"kubeletVersion": "v1.36.4", "kernelVersion": "6.1", "architecture": "amd64"}},
    }));
    node["metadata"]["labels"] = json!({"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "etcd"});
    assert_eq!(
        cells("", "nodes", &node),
        json!([
            "a",
            "Ready,SchedulingDisabled",
            "control-plane,etcd",
            "60m",
            "v1.36.4",
            "1.2.3.4",
            "<none>",
            "<unknown>",
            "6.1 (amd64)",
            "<unknown>"
        ])
    );
}

#[test]
fn pods_show_the_state_of_their_containers() {
    let pod = |spec: Value, status: Value| cells("", "pods", &with(json!({"spec": spec, "status": status})));
    let one = json!({"containers": [{"name": "c"}]});
    let running = json!({"name": "c", "ready": true, "restartCount": 2, "state": {"running": {}},
                         "lastState": {"terminated": {"finishedAt": "2026-11-16T11:55:00Z"}}});
    assert_eq!(
        pod(one.clone(), json!({"phase": "Running", "containerStatuses": [running], "podIPs": [{"ip": "10.1.1.1"}]})),
        json!(["a", "1/1", "Running", "2 (5m ago)", "60m", "10.1.1.1", "<none>", "<none>", "<none>"])
    );
    let waiting = json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    assert_eq!(pod(one.clone(), json!({"phase": "Running", "containerStatuses": [waiting]}))[2], "CrashLoopBackOff");
    let killed = json!({"state": {"terminated": {"exitCode": 137, "signal": 9}}});
    assert_eq!(pod(one, json!({"phase": "Failed", "containerStatuses": [killed]}))[2], "Signal:9");
    let with_init = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
    let statuses = json!([{"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {"waiting": {"reason": "PodInitializing"}}}]);
    assert_eq!(pod(with_init, json!({"phase": "Pending", "initContainerStatuses": statuses}))[2], "Init:1/2");
}

#[test]
fn a_pod_that_is_done_says_so_beside_its_row() {
    let kind = kind("", "pods", Origin::BuiltIn, Vec::new());
    let done = shown(&kind, &with(json!({"status": {"phase": "Succeeded"}})), Options::default());
    assert_eq!(
        done["rows"][0]["conditions"],
        json!([{"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}])
    );
    let running = shown(&kind, &with(json!({"status": {"phase": "Running"}})), Options::default());
    assert_eq!(running["rows"][0].get("conditions"), None);
}

#[test]
fn objects_are_reduced_to_their_metadata() {
    let object = with(json!({"apiVersion": "v1", "kind": "Secret", "data": {"x": "y"}}));
    let reduced =
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
    assert_eq!(metadata_only(&object, MetaVersion::V1), reduced);
    assert_eq!(
        metadata_only_list(&[object], &json!({"resourceVersion": "5"}), MetaVersion::V1),
        json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "5"},
            "items": [reduced],
        })
    );
    assert_eq!(metadata_only_list(&[], &json!({}), MetaVersion::V1)["items"], Value::Null);
}
