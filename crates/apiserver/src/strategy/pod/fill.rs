//! What pods say where nothing is said.

use serde_json::{Map, Value, json};

use super::super::look::{fill, list_mut, member, object, put, text};

/// The mode of files where none is said.
const MODE: i32 = 420;

/// Fills in a pod.
pub(super) fn pod_defaults(pod: &mut Value) {
    let Some(spec) = object(pod, "spec") else { return };
    spec_defaults(spec);
    fill(spec, "enableServiceLinks", true);
    for name in ["/containers", "/initContainers"] {
        list_mut(spec, name).for_each(request_limits);
    }
}

/// Fills in a template of pods.
pub(in super::super) fn template_defaults(owner: &mut Value) {
    let Some(template) = object(owner, "template") else { return };
    object(template, "metadata");
    if let Some(spec) = object(template, "spec") {
        spec_defaults(spec);
    }
}

fn spec_defaults(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    object(spec, "securityContext");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    mirror_account(spec);
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for name in ["/containers", "/initContainers", "/ephemeralContainers"] {
        list_mut(spec, name).for_each(|container| container_defaults(container, on_host));
    }
    list_mut(spec, "/volumes").for_each(volume_defaults);
}

/// The account has an older name, which says the same.
fn mirror_account(spec: &mut Value) {
    let (name, older) = (text(spec, "/serviceAccountName"), text(spec, "/serviceAccount"));
    let account = if name.is_empty() { older } else { name }.to_owned();
    if !account.is_empty() {
        put(spec, "serviceAccountName", Some(json!(account)));
        put(spec, "serviceAccount", Some(json!(account)));
    }
}

fn container_defaults(container: &mut Value, on_host: bool) {
    let pull = pull_policy(text(container, "/image"));
    fill(container, "imagePullPolicy", pull);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    object(container, "resources");
    for port in list_mut(container, "/ports") {
        fill(port, "protocol", "TCP");
        if on_host {
            let same = port.get("containerPort").cloned().unwrap_or_default();
            fill(port, "hostPort", same);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) {
            probe_defaults(probe);
        }
    }
    for name in ["postStart", "preStop"] {
        if let Some(get) = container.pointer_mut(&format!("/lifecycle/{name}/httpGet")) {
            http_defaults(get);
        }
    }
    for variable in list_mut(container, "/env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            fill(field, "apiVersion", "v1");
        }
    }
}

/// An image whose tag moves is pulled every time.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map(|(_, tag)| tag);
    let moves = !last.contains('@') && tag.is_none_or(|tag| tag == "latest");
    if moves && !image.is_empty() { "Always" } else { "IfNotPresent" }
}

fn probe_defaults(probe: &mut Value) {
    for (name, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if probe.get(name).and_then(Value::as_i64).unwrap_or_default() == 0 {
            put(probe, name, Some(json!(value)));
        }
    }
    if let Some(get) = probe.get_mut("httpGet") {
        http_defaults(get);
    }
    if let Some(call) = probe.get_mut("grpc") {
        // The empty service is a service like any other.
        if member(call, "service").is_none() {
            put(call, "service", Some(json!("")));
        }
    }
}

fn http_defaults(get: &mut Value) {
    fill(get, "path", "/");
    fill(get, "scheme", "HTTP");
}

fn volume_defaults(volume: &mut Value) {
    let names: Vec<String> = volume.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    let says_source = names.iter().any(|name| name != "name" && member(volume, name).is_some());
    if !says_source {
        put(volume, "emptyDir", Some(json!({})));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(name).filter(|source| source.is_object()) {
            fill(source, "defaultMode", MODE);
        }
    }
    if let Some(host) = volume.get_mut("hostPath").filter(|host| host.is_object() && host.get("type").is_none()) {
        put(host, "type", Some(json!("")));
    }
    for source in list_mut(volume, "/projected/sources") {
        if let Some(token) = source.get_mut("serviceAccountToken").filter(|token| token.is_object()) {
            fill(token, "expirationSeconds", 3600);
        }
        list_mut(source, "/downwardAPI/items").for_each(item_defaults);
    }
    list_mut(volume, "/downwardAPI/items").for_each(item_defaults);
}

fn item_defaults(item: &mut Value) {
    if let Some(field) = item.get_mut("fieldRef").filter(|field| field.is_object()) {
        fill(field, "apiVersion", "v1");
    }
}

/// What is limited is requested as well, where nothing else is said.
fn request_limits(container: &mut Value) {
    let Some(limits) = container.pointer("/resources/limits").and_then(Value::as_object).cloned() else { return };
    let requests = container.get_mut("resources").and_then(|resources| object(resources, "requests"));
    let Some(requests) = requests else { return };
    for (name, amount) in limits {
        fill(requests, &name, amount);
    }
}
