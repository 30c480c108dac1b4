//! Who may do what: a table of attempts, each made with a real certificate, and what the server says to it.
//!
//! Every attempt is a dry run, which the server checks like any other request, so that no row depends on another.

mod attempt;
mod table;

use std::{collections::BTreeSet, fs};

use drover_api::{addon::ManagedClusterAddOn, work::ManifestWork};
use drover_testkit::{World, objects, wait};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use self::{
    attempt::{Cast, Outcome, Row},
    table::{given, rows},
};
use crate::{
    documents::{documented, read, repository},
    running::{as_hub, create, start},
};

drover_testkit::scenarios! {
    Own { everybody_may_do_what_the_table_says }
}

async fn everybody_may_do_what_the_table_says(world: World) {
    let client = as_hub(&world).await;
    let hub = start(client.clone(), None).await;
    let cast = Cast::assemble(&world, client).await;
    hub.stop().await;
    world.namespace_named("fleet").await;
    world.kubectl_with_input(["apply", "--server-side", "-f", "-"], documented_roles().as_bytes()).await.success();
    let scene = repository().join("crates/scenarios/tests/policies.yaml");
    // By force, because the hub has put c1 into the default set.
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", scene.to_str().expect("a path is text")];
    world.kubectl(apply).await.success();
    create(&Api::namespaced(world.client(), "c1"), large_work()).await;
    let addons = Api::<ManagedClusterAddOn>::namespaced(world.client(), "c1");
    let noted = addons.patch_status("given", &PatchParams::default(), &Patch::Merge(given())).await;
    noted.expect("an administrator notes down what the hub would");
    let rows = rows();
    settle(&cast, &rows).await;
    let mut complaints = Vec::new();
    for row in &rows {
        complaints.extend(row.complaint(&cast).await);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A work with an executor and some 700 KiB to apply, in many small parts, because comparing them is what costs.
fn large_work() -> ManifestWork {
    let data: Value = (0..200).map(|line| (format!("line-{line}"), json!("x".repeat(20)))).collect();
    let manifests = (0..100).map(|at| {
        let mut manifest = objects::config_map(&format!("large-{at}"));
        manifest["data"] = data.clone();
        manifest
    });
    let mut work = objects::work("c1", "large", manifests);
    let account = json!({ "namespace": "apps", "name": "deployer" });
    let executor = json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account } });
    work.spec.executor = serde_json::from_value(executor).expect("it is an executor");
    work
}

/// The roles that the documentation shows, which are those that the table is tried with.
fn documented_roles() -> String {
    documented("docs/security.md").join("---\n")
}

/// Waits until the server has taken up every policy and everybody's roles. It tells nobody when it has, so one row of each policy,
/// and one of each who is allowed something, is attempted until it comes out as it should.
async fn settle(cast: &Cast, rows: &[Row]) {
    let mut seen = BTreeSet::new();
    let probes = rows.iter().filter(|row| match (row.policy(), &row.outcome) {
        (Some(policy), _) => seen.insert((None, policy)),
        (None, Outcome::Allowed) => seen.insert((Some(row.who), "")),
        (None, _) => false,
    });
    for row in probes {
        wait::attempt("policies and roles are in force", async || row.complaint(cast).await.map_or(Ok(()), Err)).await;
    }
}

#[test]
fn every_policy_is_bound_and_refuses_a_row() {
    let (mut policies, mut bound) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(repository().join("deploy/policies")).expect("the folder is there") {
        for object in read::<Value>(&entry.expect("readable").path()) {
            let (name, spec) = (object["metadata"]["name"].clone(), &object["spec"]);
            match object["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => {
                    assert_eq!(spec["failurePolicy"], "Fail", "{name}");
                    policies.insert(name.to_string());
                }
                Some("ValidatingAdmissionPolicyBinding") => {
                    assert_eq!(spec["validationActions"], serde_json::json!(["Deny"]), "{name}");
                    bound.insert(spec["policyName"].to_string());
                }
                kind => panic!("{kind:?} is no part of a policy"),
            }
        }
    }
    assert_eq!(policies, bound, "each policy needs its binding");
    let shown = rows().iter().filter_map(Row::policy).map(|policy| format!("\"{policy}.drover.dev\"")).collect();
    assert_eq!(policies, shown, "each policy needs a row of the table that it alone refuses");
}
