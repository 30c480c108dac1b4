//! What is written about a ClusterVersion, and what is read from it.

use drover_api::{cluster::TargetVersion, work::ManifestWork};

use super::*;
use crate::{upgrade::naming::Part, workreport::Note};

fn target(version: &str, channel: &str) -> Target {
    let some = |text: &str| Some(text.to_owned());
    // As the specification's example has it: what is not meant is empty.
    Target::of(&TargetVersion { channel: some(channel), version: some(version), upstream: some(""), image: some("") })
}

fn path(name: &str, path: &str) -> Value {
    json!({ "name": name, "path": path })
}

#[test]
fn the_upgrade_of_the_specification_is_written_so() {
    let target = target("4.12.0", "stable-4.12");
    let of = |type_: &str, field: &str| format!(".status.conditions[?(@.type==\"{type_}\")].{field}");
    let identifier =
        json!({ "group": "config.openshift.io", "resource": "clusterversions", "name": "version", "namespace": "" });
    let role = json!({ "name": "drover-cluster-version" });
    let rbac = "rbac.authorization.k8s.io";
    let expected = json!({
        "deleteOption": {
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": { "orphaningRules": [identifier] },
        },
        "manifestConfigs": [{
            "resourceIdentifier": identifier,
            "updateStrategy": { "type": "ServerSideApply", "serverSideApply": {
                "force": true, "fieldManager": format!("work-agent-upgrade-{}", target.name()) } },
            "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": [
                path("version", ".status.history[0].version"),
                path("state", ".status.history[0].state"),
                path("image", ".status.history[0].image"),
                path("channel", ".spec.channel"),
                path("verified", ".status.history[0].verified"),
                path("message", &of("Progressing", "message")),
                path("failing", &of("Failing", "status")),
                path("failingMessage", &of("Failing", "message")),
                path("accepted", &of("ReleaseAccepted", "status")),
                path("acceptedMessage", &of("ReleaseAccepted", "message")),
                path("desired", ".status.desired.version"),
            ] }],
        }],
        "workload": { "manifests": [
            { "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": role, "rules": [
                { "apiGroups": ["config.openshift.io"], "resources": ["clusterversions"], "resourceNames": ["version"],
                    "verbs": ["get", "patch", "update"] },
                { "apiGroups": ["config.openshift.io"], "resources": ["clusterversions"], "verbs": ["list", "watch"] },
            ] },
            { "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": role,
                "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": "drover-cluster-version" },
                "subjects": [{ "kind": "ServiceAccount", "namespace": "open-cluster-management-agent",
                    "name": "klusterlet-work-sa" }] },
            // No clusterID, no upstream, no image, and never force.
            { "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": { "name": "version" },
                "spec": { "channel": "stable-4.12", "desiredUpdate": { "version": "4.12.0" } } },
        ] },
    });
    let written = serde_json::to_value(&*upgrade(&target).spec).expect("it is JSON");
    assert_eq!(written, expected, "{written:#}");
}

#[test]
fn only_what_the_target_names_is_set() {
    let digest = format!("example.com/release@sha256:{}", "a".repeat(64));
    let some = |text: &str| Some(text.to_owned());
    let cases = [
        (TargetVersion { channel: some("fast-4.12"), ..TargetVersion::default() }, json!({ "channel": "fast-4.12" })),
        (
            TargetVersion { image: some(&digest), ..TargetVersion::default() },
            json!({ "desiredUpdate": { "image": digest } }),
        ),
        (
            TargetVersion { version: some("4.12.0"), upstream: some("https://u"), ..TargetVersion::default() },
            json!({ "upstream": "https://u", "desiredUpdate": { "version": "4.12.0" } }),
        ),
    ];
    for (written, expected) in cases {
        let order = upgrade(&Target::of(&written));
        assert_eq!(order.spec.manifests().last().expect("a ClusterVersion")["spec"], expected);
    }
    let read = preflight(&target("4.12.0", "stable-4.12"));
    assert_eq!(read.spec.manifests().last().expect("a ClusterVersion").get("spec"), None, "it only reads");
    assert!(!serde_json::to_string(&*read.spec).expect("it is JSON").contains("patch"));
}

#[test]
fn a_work_that_would_take_the_cluster_version_with_it_is_known() {
    let target = target("4.12.0", "stable-4.12");
    assert!([upgrade(&target), preflight(&target)].iter().all(|order| keeps_cluster_version(&order.spec)));
    // The first is the specification's own, which matches nothing.
    let rules = [
        json!({ "group": "", "name": "version", "namespace": "", "resource": "ClusterVersion.config.openshift.io" }),
        json!({ "group": "config.openshift.io", "name": "version", "namespace": "", "resource": "clusterversion" }),
        json!({ "group": "config.openshift.io", "name": "other", "namespace": "", "resource": "clusterversions" }),
        json!({ "group": "config.openshift.io", "name": "version", "namespace": "x", "resource": "clusterversions" }),
    ];
    for rule in rules {
        let mut spec = upgrade(&target).spec.as_ref().clone();
        let orphans =
            spec.delete_option.as_mut().and_then(|option| option.selectively_orphans.as_mut()).expect("rules");
        orphans.orphaning_rules = vec![serde_json::from_value(rule.clone()).expect("a rule")];
        assert!(!keeps_cluster_version(&spec), "{rule}");
    }
    let spec = ManifestWorkSpec { delete_option: None, ..upgrade(&target).spec.as_ref().clone() };
    assert!(!keeps_cluster_version(&spec));
}

/// What is found out about a cluster that reports this, with a version and all else that there is to say.
fn found(feedback: &[(&str, &str)], target: &Target, is_applied: bool) -> Preflight {
    let value =
        |(name, value): &(&str, &str)| json!({ "name": name, "fieldValue": { "type": "String", "string": value } });
    let values: Vec<_> = feedback.iter().map(value).collect();
    let status = if is_applied { "True" } else { "False" };
    let work: ManifestWork = serde_json::from_value(json!({
        "metadata": { "name": "work", "generation": 1 }, "spec": {},
        "status": {
            "conditions": [{ "type": "Applied", "status": status, "reason": "", "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2027-01-15T08:00:00Z" }],
            "resourceStatus": { "manifests": [{ "resourceMeta": { "ordinal": 2, "resource": "clusterversions" },
                "conditions": [], "statusFeedback": { "values": values } }] },
        },
    }))
    .expect("a work");
    let note = Note { set: SetFingerprint::of([0; 8]), since: k8s_openapi::jiff::Timestamp::UNIX_EPOCH };
    Preflight::read(&PartWork::of(&work, Part::Preflight, note), target)
}

#[test]
fn what_keeps_a_cluster_from_an_upgrade_is_found_before_it() {
    let minor = || target("4.12.0", "stable-4.12");
    let patch = || target("4.11.30", "stable-4.11");
    let at = |version: &'static str| [("version", version), ("state", "Completed")];
    let with = |version, more: &[(&'static str, &'static str)]| [&at(version), more].concat();
    let clear = |place, version: &str| Preflight::Clear { place, version: Some(version.to_owned()) };
    let from = "4.11.9";
    let no_path = |to: &str| Preflight::Blocked(Reason::NoUpdatePath { from: from.to_owned(), to: to.to_owned() });
    let blocked = Preflight::Blocked(Reason::NotUpgradeable { why: "acknowledge".to_owned() });
    let busy = |with: &str| Preflight::Blocked(Reason::Busy { with: with.to_owned() });
    let not_upgradeable = [("upgradeable", "False"), ("upgradeableMessage", "acknowledge")];
    let (asked, elsewhere) =
        ([("retrieved", "True"), ("channel", "stable-4.12")], [("retrieved", "True"), ("channel", "fast-4.11")]);
    let here = [("retrieved", "True"), ("channel", "stable-4.11")];
    let cases = [
        (vec![], minor(), Preflight::Pending),
        (at(from).into(), minor(), clear(Place::Below, from)),
        (at("4.12.0").into(), minor(), clear(Place::There, "4.12.0")),
        (at("4.12.1").into(), minor(), clear(Place::Above, "4.12.1")),
        // A cluster that says that it can not be upgraded can still have a patch.
        (with(from, &not_upgradeable), minor(), blocked),
        (with(from, &not_upgradeable), patch(), clear(Place::Below, from)),
        (with("4.12.0", &not_upgradeable), minor(), clear(Place::There, "4.12.0")),
        // There is no update only if the cluster has looked for one where it will look.
        (with(from, &asked), minor(), no_path("4.12.0")),
        (with(from, &here), patch(), no_path("4.11.30")),
        (with(from, &elsewhere), minor(), clear(Place::Below, from)),
        (with(from, &[("retrieved", "False"), ("channel", "stable-4.12")]), minor(), clear(Place::Below, from)),
        (with(from, &[asked[0], asked[1], ("update", "4.12.0")]), minor(), clear(Place::Below, from)),
        (with(from, &[asked[0], asked[1], ("conditionalUpdate", "4.12.0")]), minor(), clear(Place::Below, from)),
        // Who is on its way elsewhere is let be; who is on its way there is not stopped.
        (vec![("version", "4.11.20"), ("state", "Partial")], minor(), busy("4.11.20")),
        (vec![("version", "4.12.0"), ("state", "Partial"), asked[0], asked[1]], minor(), clear(Place::Below, "4.12.0")),
    ];
    for (feedback, target, expected) in cases {
        assert_eq!(found(&feedback, &target, true), expected, "{feedback:?}");
        assert_eq!(found(&feedback, &target, false), Preflight::Pending, "what was not applied says nothing");
    }
}
