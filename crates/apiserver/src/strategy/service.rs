//! Services. No addresses are given to them: nothing here routes to pods.

use serde_json::{Value, json};

use super::look::{fill, list_mut, object, text};

/// Fills in what services say where nothing is said.
pub(super) fn defaults(service: &mut Value) {
    let Some(spec) = object(service, "spec") else { return };
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    for port in list_mut(spec, "/ports") {
        fill(port, "protocol", "TCP");
        let same = port.get("port").cloned().unwrap_or_default();
        fill(port, "targetPort", same);
    }
    let type_ = text(spec, "/type").to_owned();
    if matches!(type_.as_str(), "NodePort" | "LoadBalancer") {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(type_.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if type_ == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}
