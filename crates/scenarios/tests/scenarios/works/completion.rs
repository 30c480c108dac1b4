//! Works that have done what they were for.

use std::time::Duration;

use drover_api::{names::REPLICA_SET_LABEL, work::ManifestWork};
use drover_runtime::clock::after;
use drover_testkit::{World, objects::Described as _, play::Behaviour, wait};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Field, template};
use crate::running::{change, create};

drover_testkit::scenarios! {
    Own { a_completed_work_goes_when_its_time_has_come }
}

fn work(name: &str, seconds: Option<i64>) -> ManifestWork {
    let mut spec = template("v1");
    spec["deleteOption"] = json!({ "propagationPolicy": "Orphan", "ttlSecondsAfterFinished": seconds });
    ManifestWork::new(name, serde_json::from_value(spec).expect("a valid work"))
}

/// Has an agent say that a work is complete, or not, since then.
async fn complete(field: &Field, name: &str, status: &str, since: Timestamp) {
    let condition = json!({ "type": "Complete", "status": status, "reason": "ConditionRulesAggregated", "message": "",
        "lastTransitionTime": since });
    let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    field.works("a").patch_status(name, &PatchParams::default(), &patch).await.expect("a work has a status");
}

async fn a_completed_work_goes_when_its_time_has_come(world: World) {
    let field = Field::new(world).await;
    field.clusters(&["a"]).await;
    field.behave(&["a"], Behaviour::Silent);
    let of_set = work("of-a-set", Some(0)).labelled(REPLICA_SET_LABEL, "default.somebody");
    let spared = work("spared", Some(0));
    for work in [work("soon", Some(60)), work("later", Some(3600)), work("stays", None), of_set, spared] {
        create(&field.works("a"), work).await;
    }
    change(&field.works("a"), "spared", json!({ "spec": { "deleteOption": { "ttlSecondsAfterFinished": null } } }))
        .await;
    let now = field.clock.clock().now();
    for name in ["soon", "later", "stays", "of-a-set", "spared"] {
        complete(&field, name, "True", now).await;
    }
    // This one is last, so that all others have been seen when it goes.
    create(&field.works("a"), work("unfinished", Some(0))).await;
    complete(&field, "unfinished", "False", now).await;

    field.clock.advance(Duration::from_mins(1));
    wait::gone(&field.works("a"), "soon").await;
    let later = field.works("a").get("later").await.expect("it stays for now");
    assert_eq!(later.metadata.deletion_timestamp, None);
    complete(&field, "unfinished", "True", after(now, Duration::from_secs(1))).await;
    wait::gone(&field.works("a"), "unfinished").await;
    let field = field.restart().await;
    field.clock.advance(Duration::from_hours(1));
    wait::gone(&field.works("a"), "later").await;
    for name in ["stays", "of-a-set", "spared"] {
        let work = field.works("a").get(name).await.expect("it stays");
        assert_eq!(work.metadata.deletion_timestamp, None, "{name}");
    }
    field.hub.stop().await;
}
