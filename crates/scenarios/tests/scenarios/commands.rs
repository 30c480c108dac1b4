//! The repository's own command for tests, on a machine that lacks what the tests on a real Kubernetes need.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output},
};

use crate::documents::repository;

/// Runs `./test` where there is neither Go nor Python, and where `cargo` only writes down how it was called.
fn test_without_go(ci: &str) -> (Output, String) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    for tool in ["awk", "bash", "dirname", "env", "head", "readlink", "sort"] {
        symlink(find(tool), folder.path().join(tool)).expect("the folder is writable");
    }
    let calls = folder.path().join("calls");
    fs::write(folder.path().join("cargo"), format!("#!/usr/bin/env bash\necho \"$*\" >>'{}'\n", calls.display()))
        .expect("writable");
    fs::set_permissions(folder.path().join("cargo"), fs::Permissions::from_mode(0o755)).expect("writable");
    let output = Command::new(repository().join("test"))
        .env_clear()
        .env("PATH", folder.path())
        .env("HOME", folder.path())
        .env("CI", ci)
        .output()
        .expect("./test can be run");
    (output, fs::read_to_string(&calls).unwrap_or_default())
}

fn find(tool: &str) -> std::path::PathBuf {
    let path = env::var_os("PATH").expect("there is a PATH");
    let mut candidates = env::split_paths(&path).map(|folder| folder.join(tool));
    candidates.find(|candidate| Path::is_file(candidate)).unwrap_or_else(|| panic!("there is no {tool} on PATH"))
}

#[test]
fn without_go_the_tests_that_need_it_are_left_out_loudly() {
    let (output, calls) = test_without_go("false");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("LEFT OUT: all tests on a real Kubernetes"), "{told}");
    assert!(told.ends_with("WITHOUT the tests on a real Kubernetes: install Go and run this again\n"), "{told}");
    assert!(calls.contains("--skip on::kube::"), "{calls}");
}

#[test]
fn in_ci_no_test_is_left_out() {
    for ci in ["true", "1"] {
        let (output, calls) = test_without_go(ci);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{told}");
        assert!(told.contains("in CI they are not left out"), "{told}");
        assert_eq!(calls, "");
    }
}
