//! What `drover crds` prints, as a user installs it and as `kubectl` shows it.

use std::{fs, process::Command};

use drover_testkit::{World, golden, wait};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use serde_json::Value;

use crate::documents::{Document, read, repository};

drover_testkit::scenarios! {
    Bare { a_server_takes_what_drover_crds_prints_and_kubectl_shows_it }
}

async fn a_server_takes_what_drover_crds_prints_and_kubectl_shows_it(world: World) {
    world.kubectl_with_input(["apply", "--server-side", "-f", "-"], &printed()).await.success();
    let crds = Api::<CustomResourceDefinition>::all(world.client());
    for crd in drover_api::crds() {
        wait::until(&crds, &crd.name_any(), "it is established", is_established).await;
    }
    golden::assert_matches("crates/scenarios/tests/golden/kubectl-get.txt", &kubectl_get(&world).await);
    let explained = world.kubectl(["explain", "clustermanagementaddon.spec.installStrategy"]).await.success();
    golden::assert_matches("crates/scenarios/tests/golden/kubectl-explain.txt", &explained);
}

/// What `kubectl get` prints for an object of each kind.
async fn kubectl_get(world: &World) -> String {
    let namespace = world.namespace_named("cluster1").await;
    let mut shown = Vec::new();
    for object in read::<Value>(&repository().join("crates/scenarios/tests/one-of-each-kind.yaml")) {
        let document = Document::new(object);
        if let Err(refused) = document.store(world, &namespace).await {
            panic!("{} {}: {}", document.kind(), document.name(), refused.message);
        }
        let kind = document.kind().to_lowercase();
        let table = world.kubectl(["get", &kind, document.name(), "--namespace", &namespace]).await.success();
        shown.push(format!("$ kubectl get {kind} {}\n{}", document.name(), without_age(&table)));
    }
    let kinds = drover_api::crds().len();
    assert_eq!(shown.len(), kinds, "one-of-each-kind.yaml has an object of each of the {kinds} kinds");
    shown.join("\n")
}

/// A table without the values of its last column, AGE, which depend on when it was printed.
pub(crate) fn without_age(table: &str) -> String {
    let mut lines = table.lines();
    let header = lines.next().expect("a table has a header");
    let age_at = header.rfind("AGE").expect("the last column is the age");
    let rows = lines.map(|row| format!("{}<age>\n", row.get(..age_at).unwrap_or(row)));
    format!("{header}\n{}", rows.collect::<String>())
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn printed() -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_drover-under-test")).arg("crds").output().expect("drover can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn every_policy_is_printed_after_the_definitions() {
    let printed = String::from_utf8(printed()).expect("YAML is text");
    let folder = fs::read_dir(repository().join("deploy/policies")).expect("the folder is there");
    let mut policies: Vec<_> = folder.map(|entry| entry.expect("readable").path()).collect();
    policies.sort();
    let policies: Vec<_> = policies.iter().map(|file| fs::read_to_string(file).expect("text")).collect();
    let policies = format!("---\n{}", policies.join("---\n"));
    assert!(printed.ends_with(&policies), "add the new file to the policies that `drover crds` prints");
    let definitions = printed.strip_suffix(&policies).expect("it was just seen to end with them");
    assert_eq!(definitions.matches("\nkind: CustomResourceDefinition\n").count(), drover_api::crds().len());
}

#[test]
fn the_folder_deploy_crds_is_what_the_types_make() {
    let fresh = tempfile::tempdir().expect("there is room for temporary files");
    let written = Command::new(env!("CARGO_BIN_EXE_drover-under-test"))
        .arg("crds")
        .arg("--output-dir")
        .arg(fresh.path())
        .output();
    assert!(written.expect("drover can be run").status.success());
    let folder = |path: &std::path::Path| {
        let entries = fs::read_dir(path).expect("the folder is there").map(|entry| entry.expect("readable").path());
        let files =
            entries.map(|file| (file.file_name().map(ToOwned::to_owned), fs::read_to_string(file).expect("text")));
        files.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (fresh_files, stored_files) = (folder(fresh.path()), folder(&repository().join("deploy/crds")));
    assert!(fresh_files == stored_files, "run `cargo run -- crds --output-dir deploy/crds` and commit what it changes");
}
