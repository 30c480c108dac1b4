//! Rows of workloads, and of what they run on.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Row, duration,
    look::{age, condition, flag, joined, labels, list, map, number, selector, since, some, text, text_or, time},
};
use crate::selector::Labels;

pub(super) fn deployment(object: &Value, now: Timestamp) -> Row {
    let selector = Labels::read(object.pointer("/spec/selector")).map(|selector| selector.to_string());
    let mut cells = vec![
        json!(text(object, "/metadata/name")),
        json!(format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"))),
        json!(number(object, "/status/updatedReplicas")),
        json!(number(object, "/status/availableReplicas")),
        json!(age(object, now)),
    ];
    cells.extend(containers(object, "/spec/template"));
    cells.push(json!(selector.as_deref().unwrap_or("<invalid>")));
    cells.into()
}

pub(super) fn replica_set(object: &Value, now: Timestamp) -> Row {
    let mut cells = vec![
        json!(text(object, "/metadata/name")),
        json!(number(object, "/spec/replicas")),
        json!(number(object, "/status/replicas")),
        json!(number(object, "/status/readyReplicas")),
        json!(age(object, now)),
    ];
    cells.extend(containers(object, "/spec/template"));
    cells.push(json!(selector(object, "/spec/selector")));
    cells.into()
}

pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Row {
    let mut cells = vec![
        json!(text(object, "/metadata/name")),
        json!(format!("{}/{}", number(object, "/status/readyReplicas"), number(object, "/spec/replicas"))),
        json!(age(object, now)),
    ];
    cells.extend(containers(object, "/spec/template"));
    cells.into()
}

pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Row {
    let mut cells = vec![
        json!(text(object, "/metadata/name")),
        json!(number(object, "/status/desiredNumberScheduled")),
        json!(number(object, "/status/currentNumberScheduled")),
        json!(number(object, "/status/numberReady")),
        json!(number(object, "/status/updatedNumberScheduled")),
        json!(number(object, "/status/numberAvailable")),
        json!(labels(object, "/spec/template/spec/nodeSelector")),
        json!(age(object, now)),
    ];
    cells.extend(containers(object, "/spec/template"));
    cells.push(json!(selector(object, "/spec/selector")));
    cells.into()
}

pub(super) fn job(object: &Value, now: Timestamp) -> Row {
    let mut cells = vec![
        json!(text(object, "/metadata/name")),
        json!(job_state(object)),
        json!(completions(object)),
        json!(job_duration(object, now)),
        json!(age(object, now)),
    ];
    cells.extend(containers(object, "/spec/template"));
    cells.push(json!(selector(object, "/spec/selector")));
    cells.into()
}

fn completions(object: &Value) -> String {
    let done = number(object, "/status/succeeded");
    match (some(object, "/spec/completions"), number(object, "/spec/parallelism")) {
        (Some(completions), _) => format!("{done}/{completions}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    }
}

fn job_duration(object: &Value, now: Timestamp) -> String {
    let end = time(object, "/status/completionTime").unwrap_or(now);
    time(object, "/status/startTime").map_or_else(String::new, |start| duration::since(start, end))
}

fn job_state(object: &Value) -> &'static str {
    let is = |type_: &str| condition(object, type_).unwrap_or(false);
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if some(object, "/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Row {
    let suspended = match some(object, "/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let scheduled = some(object, "/status/lastScheduleTime").map(|_| since(object, "/status/lastScheduleTime", now));
    let mut cells = vec![
        json!(text(object, "/metadata/name")),
        json!(text(object, "/spec/schedule")),
        json!(some(object, "/spec/timeZone").and_then(Value::as_str).unwrap_or("<none>")),
        json!(suspended),
        json!(list(object, "/status/active").len()),
        json!(scheduled.as_deref().unwrap_or("<none>")),
        json!(age(object, now)),
    ];
    cells.extend(containers(object, "/spec/jobTemplate/spec/template"));
    cells.push(json!(selector(object, "/spec/jobTemplate/spec/selector")));
    cells.into()
}

/// The names and the images of the containers of a pod template.
fn containers(object: &Value, template: &str) -> [Value; 2] {
    let containers = list(object, &format!("{template}/spec/containers"));
    [json!(joined(containers, "/name")), json!(joined(containers, "/image"))]
}

pub(super) fn service(object: &Value, now: Timestamp) -> Row {
    let ports = list(object, "/spec/ports").iter().map(port).collect::<Vec<_>>().join(",");
    vec![
        json!(text(object, "/metadata/name")),
        json!(text(object, "/spec/type")),
        json!(text_or(object, "/spec/clusterIPs/0", "<none>")),
        json!(external_address(object)),
        json!(if ports.is_empty() { "<none>" } else { &ports }),
        json!(age(object, now)),
        json!(labels(object, "/spec/selector")),
    ]
    .into()
}

fn port(port: &Value) -> String {
    let (own, protocol) = (number(port, "/port"), text(port, "/protocol"));
    match number(port, "/nodePort") {
        node if node > 0 => format!("{own}:{node}/{protocol}"),
        _ => format!("{own}/{protocol}"),
    }
}

fn external_address(object: &Value) -> String {
    let own: Vec<_> = list(object, "/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    let (addresses, none): (Vec<_>, _) = match text(object, "/spec/type") {
        "ClusterIP" | "NodePort" => (own, "<none>"),
        "LoadBalancer" => {
            let ingress = list(object, "/status/loadBalancer/ingress").iter();
            let addresses: BTreeSet<_> = ingress.map(|it| text_or(it, "/ip", text(it, "/hostname"))).collect();
            (addresses.into_iter().filter(|address| !address.is_empty()).chain(own).collect(), "<pending>")
        }
        "ExternalName" => return text(object, "/spec/externalName").to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    if addresses.is_empty() { none.to_owned() } else { addresses.join(",") }
}

pub(super) fn node(object: &Value, now: Timestamp) -> Row {
    let ready = match condition(object, "Ready") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if flag(object, "/spec/unschedulable") { ",SchedulingDisabled" } else { "" };
    let architecture = text(object, "/status/nodeInfo/architecture");
    let mut kernel = text_or(object, "/status/nodeInfo/kernelVersion", "<unknown>").to_owned();
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        json!(text(object, "/metadata/name")),
        json!(format!("{ready}{cordoned}")),
        json!(node_roles(object)),
        json!(age(object, now)),
        json!(text(object, "/status/nodeInfo/kubeletVersion")),
        json!(node_address(object, "InternalIP")),
        json!(node_address(object, "ExternalIP")),
        json!(text_or(object, "/status/nodeInfo/osImage", "<unknown>")),
        json!(kernel),
        json!(text_or(object, "/status/nodeInfo/containerRuntimeVersion", "<unknown>")),
    ]
    .into()
}

fn node_roles(object: &Value) -> String {
    let labels = map(object, "/metadata/labels").into_iter().flatten();
    let roles = labels.filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role),
        None if key == "kubernetes.io/role" => value.as_str(),
        None => None,
    });
    let roles: BTreeSet<_> = roles.filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn node_address<'a>(object: &'a Value, type_: &str) -> &'a str {
    let address = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == type_);
    address.map_or("<none>", |address| text(address, "/address"))
}
