//! The definitions that OCM itself ships.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The Go module with the definitions that OCM ships.
pub(crate) const OCM_API: &str = "open-cluster-management.io/api@v1.3.0";

/// The module's folders that hold kinds of ours. The remaining one, `operator`, is about installing OCM itself.
const GROUPS: [&str; 3] = ["addon", "cluster", "work"];

/// All of them. Kinds that got another version later are there twice.
pub(crate) fn ocm_definitions() -> Vec<CustomResourceDefinition> {
    let module = ocm_module();
    let mut definitions = Vec::new();
    for group in GROUPS {
        let files = definition_files(&module.join(group));
        assert!(!files.is_empty(), "{OCM_API} no longer has the definitions of {group} where they were");
        definitions.extend(files.iter().map(|file| read_definition(file)));
    }
    definitions
}

/// The folder into which Go puts the module.
fn ocm_module() -> PathBuf {
    let output = Command::new("go")
        .args(["mod", "download", "-json", OCM_API])
        // Whatever module or workspace the caller is in has no say in this.
        .current_dir(std::env::temp_dir())
        .env("GOFLAGS", "-mod=mod")
        .env("GOWORK", "off")
        .output()
        .unwrap_or_else(|error| panic!("{OCM_API} is fetched with Go: install Go from https://go.dev/dl ({error})"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "Go could not download {OCM_API}: install a current Go from https://go.dev/dl and let it reach its module proxy\n{stdout}{stderr}"
    );
    let answer: Value = serde_json::from_str(&stdout).expect("go answers in JSON");
    answer["Dir"].as_str().expect("go says where the module is").into()
}

/// The definitions in a folder and the folders in it.
fn definition_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{} can not be read: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry of a folder can be read").path());
    paths
        .flat_map(|path| if path.is_dir() { definition_files(&path) } else { vec![path] })
        .filter(|path| path.to_string_lossy().ends_with(".crd.yaml"))
        .collect()
}

fn read_definition(file: &Path) -> CustomResourceDefinition {
    let yaml = fs::read_to_string(file).unwrap_or_else(|error| panic!("{} can not be read: {error}", file.display()));
    serde_saphyr::from_str(&yaml).unwrap_or_else(|error| panic!("{} is no definition: {error}", file.display()))
}
