//! The columns of built-in kinds.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{Row, built_in, pod, workload};

/// A column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading {
    name: &'static str,
    type_: &'static str,
    format: &'static str,
    description: &'static str,
    priority: i32,
}

impl Heading {
    pub(super) fn to_value(self) -> Value {
        json!({
            "name": self.name,
            "type": self.type_,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

const fn text(name: &'static str) -> Heading {
    Heading { name, type_: "string", format: "", description: "", priority: 0 }
}

const fn wide(name: &'static str) -> Heading {
    Heading { priority: 1, ..text(name) }
}

const fn number(name: &'static str) -> Heading {
    Heading { type_: "integer", ..text(name) }
}

/// The name, which every kind has.
pub(super) const NAME: Heading = Heading {
    format: "name",
    description: "The object's name, which no other of its kind has in its namespace.",
    ..text("Name")
};
const AGE: Heading = Heading { description: "How long ago the object was created.", ..text("Age") };

/// The columns of kinds that have none of their own.
pub(super) const PLAIN: &[Heading] =
    &[NAME, Heading { type_: "date", description: "When the object was created.", ..text("Created At") }];

const NAMESPACE: &[Heading] = &[NAME, text("Status"), AGE];
const SECRET: &[Heading] = &[NAME, text("Type"), text("Data"), AGE];
const CONFIG_MAP: &[Heading] = &[NAME, text("Data"), AGE];
const SERVICE_ACCOUNT: &[Heading] = &[NAME, AGE];
const LEASE: &[Heading] = &[NAME, text("Holder"), AGE];
const POLICY: &[Heading] = &[NAME, number("Validations"), text("ParamKind"), AGE];
const POLICY_BINDING: &[Heading] = &[NAME, text("PolicyName"), text("ParamRef"), AGE];
const STATEFUL_SET: &[Heading] = &[NAME, text("Ready"), AGE, wide("Containers"), wide("Images")];
const SCALED: &[Heading] = &[
    NAME,
    number("Desired"),
    number("Current"),
    number("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const BINDING: &[Heading] = &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];
const EVENT: &[Heading] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    Heading { priority: 1, ..NAME },
];
const CERTIFICATE_REQUEST: &[Heading] =
    &[NAME, AGE, text("SignerName"), text("Requestor"), text("RequestedDuration"), text("Condition")];
const POD: &[Heading] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];
const SERVICE: &[Heading] =
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, wide("Selector")];
const NODE: &[Heading] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];
const DEPLOYMENT: &[Heading] = &[
    NAME,
    text("Ready"),
    text("Up-to-date"),
    text("Available"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const DAEMON_SET: &[Heading] = &[
    NAME,
    number("Desired"),
    number("Current"),
    number("Ready"),
    number("Up-to-date"),
    number("Available"),
    text("Node Selector"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const JOB: &[Heading] = &[
    NAME,
    text("Status"),
    text("Completions"),
    text("Duration"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const CRON_JOB: &[Heading] = &[
    NAME,
    text("Schedule"),
    text("Timezone"),
    Heading { type_: "boolean", ..text("Suspend") },
    number("Active"),
    text("Last Schedule"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

/// What makes a row of an object.
pub(super) type MakeRow = fn(&Value, Timestamp) -> Row;

/// The columns of a kind, and what makes rows of its objects; nothing if it has no columns of its own.
pub(super) fn of(group: &str, plural: &str) -> Option<(&'static [Heading], MakeRow)> {
    Some(match (group, plural) {
        ("", "namespaces") => (NAMESPACE, built_in::namespace),
        ("", "secrets") => (SECRET, built_in::secret),
        ("", "configmaps") => (CONFIG_MAP, built_in::config_map),
        ("", "serviceaccounts") => (SERVICE_ACCOUNT, built_in::service_account),
        ("" | "events.k8s.io", "events") => (EVENT, built_in::event),
        ("", "services") => (SERVICE, workload::service),
        ("", "nodes") => (NODE, workload::node),
        ("", "pods") => (POD, pod::row),
        ("coordination.k8s.io", "leases") => (LEASE, built_in::lease),
        ("certificates.k8s.io", "certificatesigningrequests") => (CERTIFICATE_REQUEST, built_in::certificate_request),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => (BINDING, built_in::binding),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => (POLICY, built_in::policy),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => {
            (POLICY_BINDING, built_in::policy_binding)
        }
        ("apps", "deployments") => (DEPLOYMENT, workload::deployment),
        ("apps", "replicasets") => (SCALED, workload::replica_set),
        ("apps", "statefulsets") => (STATEFUL_SET, workload::stateful_set),
        ("apps", "daemonsets") => (DAEMON_SET, workload::daemon_set),
        ("batch", "jobs") => (JOB, workload::job),
        ("batch", "cronjobs") => (CRON_JOB, workload::cron_job),
        _ => return None,
    })
}
