//! What the kinds that run pods say where nothing is said.

use serde_json::{Value, json};

use super::super::{
    look::{alike, at, fill, member, number, object, put, text},
    pod::template_defaults,
};
use crate::metadata;

/// Fills in an object of such a kind.
pub(in super::super) fn defaults(plural: &str, value: &mut Value) {
    if plural == "controllerrevisions" {
        return;
    }
    let labels = at(value, "/spec/template/metadata/labels").cloned();
    let Some(spec) = object(value, "spec") else { return };
    if plural != "cronjobs" {
        template_defaults(spec);
    }
    match plural {
        "deployments" => deployment_defaults(spec),
        "daemonsets" => daemon_set_defaults(spec),
        "statefulsets" => stateful_set_defaults(spec),
        "replicasets" => fill(spec, "replicas", 1),
        "jobs" => job_defaults(spec),
        "cronjobs" => cron_job_defaults(spec),
        _ => {}
    }
    if plural == "daemonsets" {
        first_template(value);
    }
    if plural == "jobs" && alike(metadata::field(value, "labels"), None) {
        // Jobs without labels have those of their pods.
        let labels = labels.filter(|labels| !alike(Some(labels), None));
        metadata::set(value, "labels", labels);
    }
}

fn deployment_defaults(spec: &mut Value) {
    fill(spec, "replicas", 1);
    if let Some(strategy) = object(spec, "strategy") {
        fill(strategy, "type", "RollingUpdate");
        rolling_defaults(strategy, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
}

fn rolling_defaults(strategy: &mut Value, values: &[(&str, Value)]) {
    if text(strategy, "/type") != "RollingUpdate" {
        return;
    }
    if let Some(rolling) = object(strategy, "rollingUpdate") {
        for (name, value) in values {
            fill(rolling, name, value.clone());
        }
    }
}

fn daemon_set_defaults(spec: &mut Value) {
    if let Some(strategy) = object(spec, "updateStrategy") {
        fill(strategy, "type", "RollingUpdate");
        rolling_defaults(strategy, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    }
    fill(spec, "revisionHistoryLimit", 10);
}

fn stateful_set_defaults(spec: &mut Value) {
    fill(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = object(spec, "updateStrategy") {
        if text(strategy, "/type").is_empty() {
            fill(strategy, "type", "RollingUpdate");
            object(strategy, "rollingUpdate");
        }
        if member(strategy, "rollingUpdate").is_some() {
            rolling_defaults(strategy, &[("partition", json!(0))]);
        }
    }
    if let Some(policy) = object(spec, "persistentVolumeClaimRetentionPolicy") {
        fill(policy, "whenDeleted", "Retain");
        fill(policy, "whenScaled", "Retain");
    }
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
}

fn job_defaults(spec: &mut Value) {
    if member(spec, "completions").is_none() && member(spec, "parallelism").is_none() {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let per_index = member(spec, "backoffLimitPerIndex").is_some();
    fill(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let has_policy = member(spec, "podFailurePolicy").is_some();
    fill(spec, "podReplacementPolicy", if has_policy { "Failed" } else { "TerminatingOrFailed" });
    fill(spec, "manualSelector", false);
}

fn cron_job_defaults(spec: &mut Value) {
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    let Some(template) = object(spec, "jobTemplate") else { return };
    object(template, "metadata");
    if let Some(job) = object(template, "spec") {
        template_defaults(job);
    }
}

/// A job selects its own pods, and no others.
pub(in super::super) fn select_own_pods(job: &mut Value) {
    let (name, uid) = (metadata::text(job, "name").to_owned(), metadata::text(job, "uid").to_owned());
    if job.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let of_pods = "/spec/template/metadata/labels";
    let has_own =
        !alike(metadata::field(job, "labels"), None) && !alike(metadata::field(job, "labels"), at(job, of_pods));
    let Some(spec) = object(job, "spec") else { return };
    let template = object(spec, "template").and_then(|template| object(template, "metadata"));
    if let Some(labels) = template.and_then(|metadata| object(metadata, "labels")) {
        for (label, value) in [
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("batch.kubernetes.io/controller-uid", &uid),
        ] {
            fill(labels, label, value.as_str());
        }
    }
    if let Some(labels) = object(spec, "selector").and_then(|selector| object(selector, "matchLabels")) {
        fill(labels, "batch.kubernetes.io/controller-uid", uid);
    }
    if !has_own {
        let labels = at(job, of_pods).cloned();
        metadata::set(job, "labels", labels);
    }
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The first template of a DaemonSet is counted, for those who still read the count.
fn first_template(set: &mut Value) {
    let counted = metadata::field(set, "annotations").and_then(|annotations| annotations.get(TEMPLATE_GENERATION));
    if counted.is_none() {
        write_template_generation(set, 1);
    }
}

/// A new template of a DaemonSet is counted.
pub(in super::super) fn next_template(new: &mut Value, old: &Value) {
    let annotation = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
    let before = text(old, &annotation).parse::<i64>().ok().or_else(|| number(old, &annotation)).unwrap_or(1);
    let changed = !alike(at(new, "/spec/template"), at(old, "/spec/template"));
    write_template_generation(new, before + i64::from(changed));
}

fn write_template_generation(set: &mut Value, count: i64) {
    let annotations = object(set, "metadata").and_then(|metadata| object(metadata, "annotations"));
    if let Some(annotations) = annotations {
        put(annotations, TEMPLATE_GENERATION, Some(json!(count.to_string())));
    }
}
