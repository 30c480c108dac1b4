//! Every example in the repository is accepted, and so is what the hub will report; nothing of it is lost.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use drover_api::{cluster::ManagedClustersUpgrade, grammar::Timeout};
use drover_engine::upgrade::{
    operator_work::{Approver, work},
    platform,
    target::Target,
};
use drover_testkit::{World, golden};
use serde_json::{Value, json};

use crate::documents::{Document, read, repository};

drover_testkit::scenarios! {
    Shared { every_example_is_accepted_and_comes_back_whole }
}

async fn every_example_is_accepted_and_comes_back_whole(world: World) {
    let namespace = world.namespace("examples").await;
    let mut complaints = Vec::new();
    let full_status = repository().join("crates/scenarios/tests/full-status.yaml");
    for file in example_files().into_iter().chain([full_status]) {
        for object in read::<Value>(&file) {
            complaints.extend(complaint(&world, &namespace, &file, object).await);
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What is wrong with one example, if anything is.
async fn complaint(world: &World, namespace: &str, file: &Path, object: Value) -> Option<String> {
    let mut document = Document::new(object);
    // Two examples may show one object at two times. A binding's name is that of its set.
    if document.kind() != "ManagedClusterSetBinding" {
        document.rename(world.unique(document.name()));
    }
    let complaint = match document.store(world, namespace).await {
        Ok(stored) => document.lost_in(&stored).join("; "),
        Err(refused) if refused.is_already_exists() => String::new(),
        Err(refused) => refused.message.clone(),
    };
    (!complaint.is_empty()).then(|| format!("{} {}: {complaint}", file.display(), document.kind()))
}

/// All files with example objects.
pub(crate) fn example_files() -> Vec<PathBuf> {
    let files = yaml_files(&repository().join("examples"));
    assert!(files.len() > 20, "the examples are somewhere else: {files:?}");
    files
}

/// All files with objects under a folder, in order. What kustomize reads is no object.
fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if is_object_file(&path) {
            files.push(path);
        }
    }
    files
}

fn is_object_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.extension().is_some_and(|extension| extension == "yaml")
        && !["kustomization.yaml", "nameReference.yaml"].contains(&name)
}

/// The work of the example upgrade for one cluster's platform, made as a hub would make it.
#[test]
fn the_work_for_the_platform_is_what_a_hub_makes() {
    let upgrade = repository().join("examples/cluster-upgrade/managed-clusters-upgrade.yaml");
    let [upgrade] = &read::<ManagedClustersUpgrade>(&upgrade)[..] else { panic!("the example is one upgrade") };
    let order = platform::upgrade(&Target::of(&upgrade.spec.cluster_version));
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": { "name": "spoke1-cluster-upgrade", "namespace": "spoke1" },
        "spec": *order.spec,
    });
    let text = format!(
        "# The work that sets the target version of cluster spoke1. Deleting the work leaves the ClusterVersion in place, only the fields given here\n\
         # are set, and the agent gets a role for this one object.\n{}",
        serde_saphyr::to_string(&work).expect("a work can be written")
    );
    golden::assert_matches("examples/cluster-upgrade/works/cluster-upgrade.yaml", &text);
}

/// The work of the example upgrade for one cluster, made as a hub would make it.
#[test]
fn the_work_for_operators_is_what_a_hub_makes() {
    let upgrade = repository().join("examples/cluster-upgrade/managed-clusters-upgrade.yaml");
    let [upgrade] = &read::<ManagedClustersUpgrade>(&upgrade)[..] else { panic!("the example is one upgrade") };
    let operators = upgrade.spec.ocp_operators.as_ref().expect("the example upgrades operators");
    let strategy = upgrade.spec.upgrade_strategy.as_ref().expect("the example has a strategy");
    let timeout = strategy.operators_upgrade_timeout.as_ref().map_or(Duration::from_mins(10), Timeout::get);
    let approver = Approver::Drover { image: "registry.example.com/drover/drover:0.1.0".to_owned() };
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": { "name": "spoke1-operators-upgrade", "namespace": "spoke1" },
        "spec": work(operators, timeout, &approver),
    });
    let text = format!(
        "# The work that upgrades operators on cluster spoke1: a Job that approves their install plans, as an account that may do nothing else.\n{}",
        serde_saphyr::to_string(&work).expect("a work can be written")
    );
    golden::assert_matches("examples/cluster-upgrade/works/operators-upgrade.yaml", &text);
}
