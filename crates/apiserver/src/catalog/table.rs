//! The kinds that are always there, by hand: their names, and which parts and fields of them can be asked for. A scenario
//! compares them with what a real server lists.

use crate::kind::{Origin, Scale, Scope, Subresources};

/// What there is to know of a built-in kind that its schema does not say.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) scope: Scope,
    pub(super) origin: Origin,
    pub(super) short_names: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    parts: &'static [&'static str],
    pub(super) selectable_fields: &'static [&'static str],
}

const fn row(kind: &'static str, plural: &'static str, scope: Scope) -> Row {
    Row {
        kind,
        plural,
        scope,
        origin: Origin::BuiltIn,
        short_names: &[],
        categories: &[],
        parts: &[],
        selectable_fields: &[],
    }
}

const fn namespaced(kind: &'static str, plural: &'static str) -> Row {
    row(kind, plural, Scope::Namespaced)
}

const fn cluster(kind: &'static str, plural: &'static str) -> Row {
    row(kind, plural, Scope::Cluster)
}

impl Row {
    const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn among(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    const fn with(self, parts: &'static [&'static str]) -> Self {
        Self { parts, ..self }
    }

    const fn selected_by(self, selectable_fields: &'static [&'static str]) -> Self {
        Self { selectable_fields, ..self }
    }

    const fn only_answered(self) -> Self {
        Self { origin: Origin::Review, ..self }
    }

    pub(super) fn subresources(&self) -> Subresources {
        Subresources {
            status: self.parts.contains(&"status"),
            scale: self.parts.contains(&"scale").then(|| Scale {
                spec_replicas: ".spec.replicas".to_owned(),
                status_replicas: ".status.replicas".to_owned(),
                label_selector: Some(".spec.selector".to_owned()),
            }),
            others: self.parts.iter().copied().filter(|part| !matches!(*part, "status" | "scale")).collect(),
        }
    }
}

/// The groups, in the order in which a server lists them, and the kinds of each.
pub(super) const GROUPS: &[(&str, &[Row])] = &[
    ("", CORE),
    ("apps", APPS),
    ("events.k8s.io", &[namespaced("Event", "events").short(&["ev"]).selected_by(REGARDING)]),
    (
        "authentication.k8s.io",
        &[
            cluster("SelfSubjectReview", "selfsubjectreviews").only_answered(),
            cluster("TokenReview", "tokenreviews").only_answered(),
        ],
    ),
    (
        "authorization.k8s.io",
        &[
            namespaced("LocalSubjectAccessReview", "localsubjectaccessreviews").only_answered(),
            cluster("SelfSubjectAccessReview", "selfsubjectaccessreviews").only_answered(),
            cluster("SelfSubjectRulesReview", "selfsubjectrulesreviews").only_answered(),
            cluster("SubjectAccessReview", "subjectaccessreviews").only_answered(),
        ],
    ),
    (
        "batch",
        &[
            namespaced("CronJob", "cronjobs").short(&["cj"]).among(ALL).with(&["status"]),
            namespaced("Job", "jobs").among(ALL).with(&["status"]).selected_by(&[".status.successful"]),
        ],
    ),
    (
        "certificates.k8s.io",
        &[cluster("CertificateSigningRequest", "certificatesigningrequests")
            .short(&["csr"])
            .with(&["approval", "status"])
            .selected_by(&[".spec.signerName"])],
    ),
    (
        "rbac.authorization.k8s.io",
        &[
            cluster("ClusterRoleBinding", "clusterrolebindings"),
            cluster("ClusterRole", "clusterroles"),
            namespaced("RoleBinding", "rolebindings"),
            namespaced("Role", "roles"),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            cluster("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
                .among(&["api-extensions"])
                .with(&["status"]),
            cluster("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings").among(&["api-extensions"]),
        ],
    ),
    (
        "apiextensions.k8s.io",
        &[cluster("CustomResourceDefinition", "customresourcedefinitions")
            .short(&["crd", "crds"])
            .among(&["api-extensions"])
            .with(&["status"])],
    ),
    ("coordination.k8s.io", &[namespaced("Lease", "leases")]),
];

const CORE: &[Row] = &[
    namespaced("ConfigMap", "configmaps").short(&["cm"]),
    namespaced("Event", "events").short(&["ev"]).selected_by(INVOLVED),
    cluster("Namespace", "namespaces").short(&["ns"]).with(&["finalize", "status"]).selected_by(&[".status.phase"]),
    cluster("Node", "nodes").short(&["no"]).with(&["status"]).selected_by(&[".spec.unschedulable"]),
    namespaced("PersistentVolumeClaim", "persistentvolumeclaims").short(&["pvc"]).with(&["status"]),
    namespaced("Pod", "pods").short(&["po"]).among(ALL).with(&["status"]).selected_by(&[
        ".spec.hostNetwork",
        ".spec.nodeName",
        ".spec.restartPolicy",
        ".spec.schedulerName",
        ".spec.serviceAccountName",
        ".status.nominatedNodeName",
        ".status.phase",
        ".status.podIP",
        ".status.podIPs",
    ]),
    namespaced("Secret", "secrets").selected_by(&[".type"]),
    namespaced("ServiceAccount", "serviceaccounts").short(&["sa"]).with(&["token"]),
    namespaced("Service", "services")
        .short(&["svc"])
        .among(ALL)
        .with(&["status"])
        .selected_by(&[".spec.clusterIP", ".spec.type"]),
];

const APPS: &[Row] = &[
    namespaced("ControllerRevision", "controllerrevisions"),
    namespaced("DaemonSet", "daemonsets").short(&["ds"]).among(ALL).with(&["status"]),
    namespaced("Deployment", "deployments").short(&["deploy"]).among(ALL).with(&["scale", "status"]),
    namespaced("ReplicaSet", "replicasets").short(&["rs"]).among(ALL).with(&["scale", "status"]),
    namespaced("StatefulSet", "statefulsets").short(&["sts"]).among(ALL).with(&["scale", "status"]),
];

const ALL: &[&str] = &["all"];

/// What events can be selected by.
const INVOLVED: &[&str] = &[
    ".involvedObject.apiVersion",
    ".involvedObject.fieldPath",
    ".involvedObject.kind",
    ".involvedObject.name",
    ".involvedObject.namespace",
    ".involvedObject.resourceVersion",
    ".involvedObject.uid",
    ".reason",
    ".reportingComponent",
    ".source",
    ".type",
];

/// The same, as the newer group calls it.
const REGARDING: &[&str] = &[
    ".reason",
    ".regarding.apiVersion",
    ".regarding.fieldPath",
    ".regarding.kind",
    ".regarding.name",
    ".regarding.namespace",
    ".regarding.resourceVersion",
    ".regarding.uid",
    ".reportingController",
    ".type",
];
