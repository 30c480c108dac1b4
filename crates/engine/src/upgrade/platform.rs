//! The works that upgrade a cluster's platform, and that find out before whether it can be upgraded.
//!
//! Both are about the one ClusterVersion of a cluster, which is never theirs: it stays when they go. They bring the agent the rights that it
//! needs for it, and take them away again.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use drover_api::{
    grammar::SetFingerprint,
    work::{ManifestWorkSpec, OrphaningRule},
};
use serde_json::{Value, json};

use super::{
    feedback::Running,
    reason::Reason,
    target::{Place, Target},
    work::PartWork,
};
use crate::workreport::template::fingerprint;

const GROUP: &str = "config.openshift.io";
const RESOURCE: &str = "clusterversions";
const NAME: &str = "version";

/// What an agent needs rights for, and where it stands on the cluster.
const AGENT: (&str, &str) = ("open-cluster-management-agent", "klusterlet-work-sa");

/// What a work says, and by which that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// What it says.
    pub spec: Arc<ManifestWorkSpec>,
    /// Its name.
    pub name: SetFingerprint,
}

impl Order {
    /// A work that says this.
    #[must_use]
    pub fn of(spec: ManifestWorkSpec) -> Self {
        Self { name: fingerprint(&spec), spec: Arc::new(spec) }
    }
}

/// What is sent to a cluster to bring it to a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Errand {
    /// The target.
    pub target: Target,
    /// The work that finds out whether the cluster can be upgraded to it.
    pub preflight: Order,
    /// The work that upgrades it.
    pub upgrade: Order,
}

impl Errand {
    /// What is sent for a target.
    #[must_use]
    pub fn of(target: Target) -> Self {
        Self { preflight: preflight(&target), upgrade: upgrade(&target), target }
    }
}

/// The work that upgrades the platform of a cluster. Only the fields are set that the target names; whoever else has set them loses them.
#[must_use]
pub fn upgrade(target: &Target) -> Order {
    let written = target.written();
    let mut spec = json!({});
    for (field, value) in [("channel", &written.channel), ("upstream", &written.upstream)] {
        if let Some(value) = value {
            spec[field] = json!(value);
        }
    }
    for (field, value) in [("version", &written.version), ("image", &written.image)] {
        if let Some(value) = value {
            spec["desiredUpdate"][field] = json!(value);
        }
    }
    let manifest = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterVersion", "metadata": { "name": NAME }, "spec": spec });
    // Each target has an owner of fields of its own: the next upgrade, if it does not name a channel, does not take away this one's.
    let manager = format!("work-agent-upgrade-{}", target.name());
    let strategy = json!({ "type": "ServerSideApply", "serverSideApply": { "force": true, "fieldManager": manager } });
    let mut paths = running_paths();
    paths.extend([
        ("verified", ".status.history[0].verified".to_owned()),
        ("message", condition("Progressing", "message")),
        ("failing", condition("Failing", "status")),
        ("failingMessage", condition("Failing", "message")),
        ("accepted", condition("ReleaseAccepted", "status")),
        ("acceptedMessage", condition("ReleaseAccepted", "message")),
        ("desired", ".status.desired.version".to_owned()),
    ]);
    work("drover-cluster-version", &json!(["get", "patch", "update"]), &manifest, &strategy, &paths)
}

/// The work that only reads, to find out whether a cluster can be upgraded to a target.
#[must_use]
pub fn preflight(target: &Target) -> Order {
    let manifest =
        json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterVersion", "metadata": { "name": NAME } });
    let mut paths = running_paths();
    paths.extend([
        ("upgradeable", condition("Upgradeable", "status")),
        ("upgradeableMessage", condition("Upgradeable", "message")),
        ("retrieved", condition("RetrievedUpdates", "status")),
    ]);
    if let Some(version) = target.version() {
        paths.extend([
            ("update", format!(r#".status.availableUpdates[?(@.version=="{version}")].version"#)),
            (
                "conditionalUpdate",
                format!(r#".status.conditionalUpdates[?(@.release.version=="{version}")].release.version"#),
            ),
        ]);
    }
    work("drover-cluster-version-reader", &json!(["get"]), &manifest, &json!({ "type": "ReadOnly" }), &paths)
}

fn running_paths() -> Vec<(&'static str, String)> {
    let of_history = |field: &str| format!(".status.history[0].{field}");
    vec![
        ("version", of_history("version")),
        ("state", of_history("state")),
        ("image", of_history("image")),
        ("channel", ".spec.channel".to_owned()),
    ]
}

fn condition(type_: &str, field: &str) -> String {
    format!(r#".status.conditions[?(@.type=="{type_}")].{field}"#)
}

/// A work about the ClusterVersion, with a role of that name for these verbs.
fn work(role: &str, verbs: &Value, manifest: &Value, strategy: &Value, paths: &[(&str, String)]) -> Order {
    let paths: Vec<_> = paths.iter().map(|(name, path)| json!({ "name": name, "path": path })).collect();
    let identifier = json!({ "group": GROUP, "resource": RESOURCE, "name": NAME, "namespace": "" });
    let (namespace, account) = AGENT;
    let spec = json!({
        "deleteOption": {
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": { "orphaningRules": [identifier] },
        },
        "manifestConfigs": [{
            "resourceIdentifier": identifier,
            "updateStrategy": strategy,
            "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": paths }],
        }],
        "workload": { "manifests": [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": role },
                "rules": [
                    { "apiGroups": [GROUP], "resources": [RESOURCE], "resourceNames": [NAME], "verbs": verbs },
                    { "apiGroups": [GROUP], "resources": [RESOURCE], "verbs": ["list", "watch"] },
                ],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": role },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
                "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": account }],
            },
            manifest,
        ] },
    });
    Order::of(serde_json::from_value(spec).expect("a work of ours is a work"))
}

/// Whether the ClusterVersion stays when a work goes that says this. Without that, the work must not be written.
#[must_use]
pub fn keeps_cluster_version(spec: &ManifestWorkSpec) -> bool {
    let options = spec.delete_option.as_ref().and_then(|option| option.selectively_orphans.as_ref());
    let is_match = |rule: &OrphaningRule| {
        let empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
        rule.group.as_deref() == Some(GROUP) && rule.resource == RESOURCE && rule.name == NAME && empty(&rule.namespace)
    };
    options.is_some_and(|options| options.orphaning_rules.iter().any(is_match))
}

/// What was found out about a cluster before its upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preflight {
    /// Nothing yet.
    Pending,
    /// It can be upgraded.
    Clear {
        /// How it stands to the target.
        place: Place,
        /// The version that it runs.
        version: Option<String>,
    },
    /// It can not.
    Blocked(Reason),
}

impl Preflight {
    /// What an agent says of a cluster.
    #[must_use]
    pub fn read(work: &PartWork, target: &Target) -> Self {
        let running = Running::read(&work.feedback);
        let (Some(version), true) = (&running.version, work.is_applied()) else { return Self::Pending };
        let place = target.place(&running);
        if place == Place::There || place == Place::Above {
            return Self::Clear { place, version: running.version };
        }
        let is_elsewhere = running.is_moving && target.version().is_some_and(|wanted| wanted != version);
        if is_elsewhere {
            return Self::Blocked(Reason::Busy { with: version.clone() });
        }
        let text = |name| work.feedback.text(name);
        if text("upgradeable") == Some("False") && target.is_minor_step_from(version) {
            let why = text("upgradeableMessage").unwrap_or_default().to_owned();
            return Self::Blocked(Reason::NotUpgradeable { why });
        }
        if !running.is_moving && !has_path(work, &running, target) {
            return Self::Blocked(Reason::NoUpdatePath { from: version.clone(), to: target.title().to_owned() });
        }
        Self::Clear { place, version: running.version }
    }
}

/// Whether a cluster knows of an update to the target, as far as that can be told: a cluster that could not ask, or that would ask of another
/// channel, has not looked for it.
fn has_path(work: &PartWork, running: &Running, target: &Target) -> bool {
    let written = target.written();
    let has_asked = work.feedback.text("retrieved") == Some("True")
        && written.image.is_none()
        && written.upstream.is_none()
        && written.channel.as_ref().is_none_or(|channel| running.channel.as_ref() == Some(channel));
    let is_offered = ["update", "conditionalUpdate"].into_iter().any(|name| work.feedback.text(name).is_some());
    target.version().is_none() || !has_asked || is_offered
}
