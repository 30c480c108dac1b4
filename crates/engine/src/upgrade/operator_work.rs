//! The work that has a cluster's operators upgraded: a Job that approves install plans, with an account that may do nothing else.
//!
//! Its names are the specification's. Everything that it makes is removed with the work.

#[cfg(test)]
mod tests;

use std::time::Duration;

use drover_api::{
    cluster::{OperatorRef, OperatorUpgrades},
    work::{
        DeleteOption, DeletePropagationPolicy, FeedbackRule, FeedbackType, FieldValue, FieldValueType, JsonPath,
        ManifestConfig, ManifestStatus, ManifestWorkSpec, ManifestWorkStatus, ManifestsTemplate, ResourceIdentifier,
        UpdateStrategy, UpdateStrategyType,
    },
};
use serde_json::{Value, json};

/// The name of everything that the work makes: the namespace, and in it the account, its roles, the Job and the record.
pub const NAME: &str = "installplan-approver";

/// The annotation of the Job that says what its success means.
pub const SUCCESS_ANNOTATION: &str = "drover.dev/success-means";

/// How often the Job's pod is tried again.
const RETRIES: i32 = 3;

/// The Job's script, for clusters that have no image of Drover.
const SCRIPT: &str = include_str!("operator_work/approve-operators.sh");

/// What of the record is reported: where the operators are, as the approver says it.
pub const REPORT: &str = "operators";
/// How many characters of that there are at most.
pub const REPORTED: usize = 2000;

/// What of the Job's status is reported, by name and path. The first three are the specification's. A pod that failed may be tried again, so how many have is not
/// whether the Job has; the last one is.
const FEEDBACK: [(&str, &str); 4] = [
    (SUCCEEDED, ".status.succeeded"),
    (ACTIVE, ".status.active"),
    (FAILED, ".status.failed"),
    (GIVEN_UP, r#".status.conditions[?(@.type=="Failed")].status"#),
];

const SUCCEEDED: &str = "succeeded";
const ACTIVE: &str = "active";
const FAILED: &str = "failed";
const GIVEN_UP: &str = "givenUp";

/// What approves install plans on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approver {
    /// `drover approve-operators`, which ends well when the operators are upgraded.
    Drover {
        /// The image that has it.
        image: String,
    },
    /// A script with `oc`, which ends well when the plans are approved.
    Oc {
        /// The image that has `oc` and `bash`.
        image: String,
    },
}

/// Whether any operators are to be upgraded at all.
#[must_use]
pub fn wants_operators(operators: &OperatorUpgrades) -> bool {
    operators.approve_all_upgrades == Some(true) || !operators.include.is_empty()
}

/// The work that has these operators upgraded within that time.
#[must_use]
pub fn work(operators: &OperatorUpgrades, timeout: Duration, approver: &Approver) -> ManifestWorkSpec {
    let mut manifests = vec![named("v1", "Namespace", None), named("v1", "ServiceAccount", Some(NAME))];
    manifests.extend(cluster_role(approver));
    manifests.extend(record(approver));
    manifests.push(job(operators, timeout, approver));
    ManifestWorkSpec {
        workload: Some(ManifestsTemplate { manifests }),
        delete_option: Some(DeleteOption {
            propagation_policy: DeletePropagationPolicy::Foreground,
            ..DeleteOption::default()
        }),
        manifest_configs: configs(approver),
        executor: None,
    }
}

/// How the Job and the record are applied, and what is reported of them. A Job can not be changed, and the record is the approver's: both are made, and
/// left alone after that.
fn configs(approver: &Approver) -> Vec<ManifestConfig> {
    let job = made_once("batch", "jobs", &FEEDBACK);
    match approver {
        Approver::Drover { .. } => vec![made_once("", "configmaps", &[(REPORT, ".data.operators")]), job],
        Approver::Oc { .. } => vec![job],
    }
}

/// Something that is made once, with what is reported of it.
fn made_once(group: &str, resource: &str, feedback: &[(&str, &str)]) -> ManifestConfig {
    let path =
        |(name, path): &(&str, &str)| JsonPath { name: (*name).to_owned(), version: None, path: (*path).to_owned() };
    ManifestConfig {
        resource_identifier: ResourceIdentifier {
            group: Some(group.to_owned()),
            resource: resource.to_owned(),
            name: NAME.to_owned(),
            namespace: Some(NAME.to_owned()),
        },
        feedback_rules: vec![FeedbackRule {
            kind: FeedbackType::JsonPaths,
            json_paths: feedback.iter().map(path).collect(),
        }],
        update_strategy: Some(UpdateStrategy { kind: UpdateStrategyType::CreateOnly, ..UpdateStrategy::default() }),
        ..ManifestConfig::default()
    }
}

/// What the approver may do with operators, and that it is the account which may.
fn cluster_role(approver: &Approver) -> [Value; 2] {
    let rule = |resources: &[&str], verbs: &[&str]| json!({ "apiGroups": ["operators.coreos.com"], "resources": resources, "verbs": verbs });
    let rules = match approver {
        Approver::Drover { .. } => json!([
            rule(&["installplans"], &["get", "list", "watch", "patch"]),
            rule(&["clusterserviceversions", "subscriptions"], &["get", "list", "watch"]),
        ]),
        Approver::Oc { .. } => {
            json!([rule(&["installplans"], &["get", "patch"]), rule(&["subscriptions"], &["get", "list"])])
        }
    };
    bound("ClusterRole", None, &rules)
}

/// The approver's record, and that it may keep it.
fn record(approver: &Approver) -> Vec<Value> {
    match approver {
        Approver::Drover { .. } => {
            let keep = json!({ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get", "patch"] });
            let [role, binding] = bound("Role", Some(NAME), &json!([keep]));
            vec![role, binding, named("v1", "ConfigMap", Some(NAME))]
        }
        Approver::Oc { .. } => Vec::new(),
    }
}

/// A role, and its binding to the approver's account.
fn bound(kind: &str, namespace: Option<&str>, rules: &Value) -> [Value; 2] {
    let version = "rbac.authorization.k8s.io/v1";
    let mut role = named(version, kind, namespace);
    role["rules"] = rules.clone();
    let mut binding = named(version, &format!("{kind}Binding"), namespace);
    binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME });
    binding["subjects"] = json!([{ "kind": "ServiceAccount", "name": NAME, "namespace": NAME }]);
    [role, binding]
}

fn named(api_version: &str, kind: &str, namespace: Option<&str>) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": NAME } });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

fn job(operators: &OperatorUpgrades, timeout: Duration, approver: &Approver) -> Value {
    let mut job = named("batch/v1", "Job", Some(NAME));
    job["metadata"]["annotations"] = json!({ SUCCESS_ANNOTATION: success(approver) });
    job["spec"] = json!({
        "activeDeadlineSeconds": seconds(timeout),
        "backoffLimit": RETRIES,
        "template": { "spec": {
            "serviceAccountName": NAME,
            "restartPolicy": "OnFailure",
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [container(operators, patience(timeout), approver)],
        } },
    });
    job
}

/// What it means that the Job has succeeded.
fn success(approver: &Approver) -> &'static str {
    match approver {
        Approver::Drover { .. } => "the operators run the versions that they were to be upgraded to",
        Approver::Oc { .. } => "the install plans are approved; whether the operators were upgraded is not looked at",
    }
}

fn container(operators: &OperatorUpgrades, patience: Duration, approver: &Approver) -> Value {
    let (Approver::Drover { image } | Approver::Oc { image }) = approver;
    let mut container = json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": { "requests": { "cpu": "10m", "memory": "32Mi" } },
        // What it says last is why it failed, and that is what the pod's status then shows.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
    });
    match approver {
        Approver::Drover { .. } => {
            container["command"] = json!(["drover", "approve-operators"]);
            container["args"] = arguments(operators, patience).into();
        }
        Approver::Oc { .. } => {
            container["command"] = json!(["/bin/bash", "-c", SCRIPT]);
            container["env"] = environment(operators, patience);
        }
    }
    container
}

/// What `drover approve-operators` is told.
fn arguments(operators: &OperatorUpgrades, patience: Duration) -> Vec<String> {
    let mut arguments = Vec::new();
    if operators.approve_all_upgrades == Some(true) {
        arguments.push("--all".to_owned());
    } else {
        arguments.extend(operators.include.iter().map(|operator| format!("--include={operator}")));
    }
    arguments.extend(operators.exclude.iter().map(|operator| format!("--exclude={operator}")));
    arguments.push(format!("--timeout={}s", seconds(patience)));
    arguments.push(format!("--record={NAME}/{NAME}"));
    arguments
}

/// What the script is told.
fn environment(operators: &OperatorUpgrades, patience: Duration) -> Value {
    let list = |operators: &[OperatorRef]| {
        let lines = operators.iter().map(|operator| format!("{},{}", operator.name, operator.namespace));
        lines.collect::<Vec<_>>().join("\n")
    };
    json!([
        { "name": "APPROVEALL", "value": (operators.approve_all_upgrades == Some(true)).to_string() },
        { "name": "INCLUDELIST", "value": list(&operators.include) },
        { "name": "EXCLUDELIST", "value": list(&operators.exclude) },
        { "name": "WAITTIME", "value": seconds(patience).to_string() },
    ])
}

/// How long the approver goes on: a tenth less than the Job may last, and at most a minute less, so that it can still say what it waited for.
fn patience(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / 10).clamp(Duration::from_secs(1), Duration::from_mins(1)))
}

/// Whole seconds, at least one. What Kubernetes can not count is as long as it can.
fn seconds(duration: Duration) -> i64 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i64::try_from(whole).unwrap_or(i64::MAX).max(1)
}

/// How far the operators of a cluster are, by what is reported of the Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is known, or nothing that makes sense.
    Unknown,
    /// The Job is at it.
    Running,
    /// The Job has succeeded.
    Succeeded,
    /// The Job has failed for good.
    Failed,
}

impl Outcome {
    /// What the status of the work says. Whether it is that of the work as it is now is for the caller to see.
    #[must_use]
    pub fn read(status: &ManifestWorkStatus) -> Self {
        let manifests = status.resource_status.iter().flat_map(|status| &status.manifests);
        let feedback = manifests.filter(|manifest| is_job(manifest)).find_map(|job| job.status_feedback.as_ref());
        let Some(feedback) = feedback else { return Self::Unknown };
        let find = |name: &str| feedback.values.iter().find(|value| value.name == name).map(|value| &value.field_value);
        let counts = [SUCCEEDED, ACTIVE, FAILED].map(|name| count(find(name)));
        let [Ok(succeeded), Ok(active), Ok(failed)] = counts else { return Self::Unknown };
        let Ok(given_up) = is_true(find(GIVEN_UP)) else { return Self::Unknown };
        match (succeeded > 0, given_up) {
            (true, false) => Self::Succeeded,
            (false, true) => Self::Failed,
            (false, false) if active > 0 || failed > 0 => Self::Running,
            // Both at once, or nothing yet.
            _ => Self::Unknown,
        }
    }
}

fn is_job(manifest: &ManifestStatus) -> bool {
    let meta = &manifest.resource_meta;
    let parts = [&meta.group, &meta.resource, &meta.namespace, &meta.name].map(Option::as_deref);
    parts == [Some("batch"), Some("jobs"), Some(NAME), Some(NAME)]
}

/// A value that is of another type than it has to be.
struct WrongType;

/// A count; Kubernetes leaves it out where it is zero.
fn count(value: Option<&FieldValue>) -> Result<i64, WrongType> {
    match value {
        None => Ok(0),
        Some(value) if value.kind == FieldValueType::Integer => value.integer.ok_or(WrongType),
        Some(_) => Err(WrongType),
    }
}

/// Whether a condition holds. One that nobody has spoken of does not.
fn is_true(value: Option<&FieldValue>) -> Result<bool, WrongType> {
    match value {
        None => Ok(false),
        Some(value) if value.kind == FieldValueType::String => Ok(value.string.as_deref() == Some("True")),
        Some(_) => Err(WrongType),
    }
}
