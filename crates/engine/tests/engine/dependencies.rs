//! Decisions are made where there is no client and no runtime.

use std::process::Command;

#[test]
fn no_client_and_no_runtime_come_with_the_engine() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "drover-engine", "--edges", "normal", "--prefix", "none", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints text");
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"kube-core"), "this looks at the wrong tree: {tree}");
    for unwanted in ["tokio", "hyper", "tower", "kube-client", "kube-runtime", "rand"] {
        assert!(!names.contains(&unwanted), "{unwanted} comes with drover-engine");
    }
}
