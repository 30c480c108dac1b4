//! Every example in the repository is accepted, and so is what the hub will report; nothing of it is lost.

use std::{
    fs,
    path::{Path, PathBuf},
};

use drover_testkit::World;
use serde_json::Value;

use crate::documents::{Document, read, repository};

drover_testkit::scenarios! {
    Shared { every_example_is_accepted_and_comes_back_whole }
}

async fn every_example_is_accepted_and_comes_back_whole(world: World) {
    let namespace = world.namespace("examples").await;
    let mut complaints = Vec::new();
    let full_status = repository().join("crates/cli/tests/full-status.yaml");
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
