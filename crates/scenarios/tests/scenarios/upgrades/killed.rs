//! A hub that is killed after every single write it makes: what it has begun comes to the same end, and no cluster is touched twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use drover_api::{
    names::{UPGRADE_LABEL, UPGRADE_PART_LABEL, UPGRADED_BY_ANNOTATION},
    work::ManifestWork,
};
use drover_testkit::World;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde_json::json;

use super::{Field, TO, UPGRADE, action, canary, operators, said, start};
use crate::{
    life::Life,
    observer::{Observer, Sight},
};

drover_testkit::scenarios! {
    Own {
        decision_67_a_hub_that_is_killed_after_every_write_comes_to_the_same_end,
        a_hub_that_is_restarted_after_an_upgrade_writes_nothing,
    }
}

const LIMIT: usize = 5;

async fn decision_67_a_hub_that_is_killed_after_every_write_comes_to_the_same_end(world: World) {
    let names: Vec<_> = (0..20).map(|number| format!("c{number:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let field = Field::of(world, &names).await;
    field.hub.stop().await;
    let mut life = Life::of_one_write(&field.client);
    let mut field = Field { hub: start(life.client(), &field.clock).await, ..field };
    let observer = Observer::start(&field.world).await;
    let rest = json!({ "preUpgradeAction": action("backup"), "postUpgradeAction": action("check"), "ocpOperators": operators() });
    field.upgrade(json!({ "maxConcurrency": LIMIT, "canaryClusters": canary(&["c07", "c13"]) }), rest).await;
    loop {
        life.end().await;
        if is_over(&field).await {
            break;
        }
        field.clock.advance(Duration::from_secs(1));
        life = Life::of_one_write(&field.client);
        // The one that was before is gone with this, whatever it was about to do.
        field.hub = start(life.client(), &field.clock).await;
    }
    field.hub = start(field.client.clone(), &field.clock).await;
    field.is_complete().await;
    field.counts([20, 20, 0, 20, 0, 0]).await;
    let seen = Seen::of(&observer.finish().await);
    for name in &names {
        assert_eq!(field.spokes.get(name).version, TO);
        assert_eq!(seen.platforms.get(*name).map(BTreeSet::len), Some(1), "{name} was asked once");
    }
    assert!(seen.most <= LIMIT, "{} were asked at one time", seen.most);
    field.hub.stop().await;
}

/// Whether all is upgraded, and all is removed that was made for it.
async fn is_over(field: &Field) -> bool {
    let status = field.upgrades().get(UPGRADE).await.expect("it is there").status.unwrap_or_default();
    let works = Api::<ManifestWork>::all(field.world.client());
    let works = works.list(&ListParams::default().labels(UPGRADE_LABEL)).await.expect("works can be listed");
    let claimed = field.managed().list(&ListParams::default()).await.expect("clusters can be listed");
    let is_claimed = claimed.iter().any(|cluster| cluster.annotations().contains_key(UPGRADED_BY_ANNOTATION));
    said(&status, "Complete").as_deref() == Some("True/ManagedClustersUpgradeComplete")
        && works.items.is_empty()
        && !is_claimed
}

async fn a_hub_that_is_restarted_after_an_upgrade_writes_nothing(world: World) {
    let field = Field::of(world, &["a", "b", "c"]).await;
    let rest = json!({ "postUpgradeAction": action("check") });
    field.upgrade(json!({ "canaryClusters": canary(&["a"]) }), rest).await;
    field.is_complete().await;
    field.settle().await;
    field.hub.stop().await;
    field.clock.advance(Duration::from_hours(24));
    let life = Life::without_end(&field.client);
    let field = Field { hub: start(life.client(), &field.clock).await, ..field };
    field.settle().await;
    field.hub.stop().await;
    let mut writes = life.writes();
    assert!(writes.iter().any(|write| write.contains("marker")), "{writes:?}");
    writes.retain(|write| !write.contains("marker"));
    assert_eq!(writes, [""; 0]);
}

/// What was seen of works that upgrade platforms.
#[derive(Debug, Default)]
struct Seen {
    /// The works that each cluster had, by what tells them apart.
    platforms: BTreeMap<String, BTreeSet<String>>,
    /// Those that are there.
    there: BTreeSet<String>,
    /// How many there were at one time.
    most: usize,
}

impl Seen {
    fn of(sights: &[Sight]) -> Self {
        let mut seen = Self::default();
        for sight in sights {
            let (Sight::There(work) | Sight::Gone(work)) = sight;
            if work.labels().get(UPGRADE_PART_LABEL).map(String::as_str) != Some("platform") {
                continue;
            }
            let cluster = work.namespace().unwrap_or_default();
            if matches!(sight, Sight::There(_)) {
                seen.platforms.entry(cluster.clone()).or_default().insert(work.uid().unwrap_or_default());
                seen.there.insert(cluster);
            } else {
                seen.there.remove(&cluster);
            }
            seen.most = seen.most.max(seen.there.len());
        }
        seen
    }
}
