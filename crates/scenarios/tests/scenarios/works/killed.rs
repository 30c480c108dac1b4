//! A hub that is killed after every single write it makes: what it has begun comes to the same end.

use std::{collections::BTreeMap, time::Duration};

use drover_api::{
    names::{PLACEMENT_ROLLED_OUT, REPLICA_SET_LABEL},
    work::ManifestWork,
};
use drover_testkit::{World, play::Behaviour};
use kube::ResourceExt as _;
use serde_json::json;

use super::{Field, SET, said, start, version_of};
use crate::{
    life::Life,
    observer::{Observer, Sight},
};

drover_testkit::scenarios! {
    Own {
        a_hub_that_is_killed_after_every_write_comes_to_the_same_end,
        a_hub_that_is_restarted_after_a_rollout_writes_nothing,
        a_hub_that_is_restarted_in_the_middle_writes_nothing_superfluous,
    }
}

const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];

async fn a_hub_that_is_killed_after_every_write_comes_to_the_same_end(world: World) {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 2 } });
    let field = Field::new(world).await;
    field.clusters(&CLUSTERS).await;
    field.select("all", &CLUSTERS).await;
    field.hub.stop().await;
    let mut life = Life::of_one_write(&field.client);
    let mut field = Field { hub: start(life.client(), &field.clock).await, ..field };
    let observer = Observer::start(&field.world).await;
    field.make(SET, json!([{ "name": "all", "rolloutStrategy": strategy }]), "v1").await;
    let mut is_changed = false;
    loop {
        life.end().await;
        if is_complete(&field, if is_changed { "v2" } else { "v1" }).await {
            if is_changed {
                break;
            }
            field.roll_out("v2").await;
            is_changed = true;
        }
        life = Life::of_one_write(&field.client);
        // The one that was before is gone with this, whatever it was about to do.
        field.hub = start(life.client(), &field.clock).await;
    }
    field.hub = start(field.client.clone(), &field.clock).await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    field.counts(SET, [5, 5, 5, 5, 5, 0, 0]).await;
    let moments = moments(observer.finish().await);
    for moment in &moments {
        let moving = moment.values().filter(|seen| !seen.is_well).count();
        assert!(moving <= 2, "too many are on their way: {moment:#?}");
    }
    let made: std::collections::BTreeSet<_> =
        moments.iter().flat_map(|moment| moment.values()).map(|seen| &seen.uid).collect();
    assert_eq!(made.len(), CLUSTERS.len(), "each cluster had one work");
    let generation = |moment: &Moment| moment.values().map(|seen| seen.generation).max();
    assert_eq!(moments.last().and_then(generation), Some(Some(2)), "each was changed once");
    field.hub.stop().await;
}

async fn is_complete(field: &Field, version: &str) -> bool {
    let set = field.sets().get(SET).await.expect("the set is there");
    let status = set.status.clone().unwrap_or_default();
    let is_current = status.conditions.iter().all(|it| it.observed_generation == set.metadata.generation);
    is_current
        && said(&status, PLACEMENT_ROLLED_OUT).as_deref() == Some("True/Complete")
        && field.clusters_on(version).await.len() == CLUSTERS.len()
}

/// What a hub writes that is started again a day later, but for the markers that tell when it is through.
async fn writes_a_day_later(field: Field) -> Vec<String> {
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
    writes
}

async fn a_hub_that_is_restarted_after_a_rollout_writes_nothing(world: World) {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 2, "progressDeadline": "1h" } });
    let field = Field::of_one_placement(world, &CLUSTERS, strategy).await;
    field.roll_out("v2").await;
    field.counts(SET, [5, 5, 5, 5, 5, 0, 0]).await;
    field.says(SET, PLACEMENT_ROLLED_OUT, "True/Complete").await;
    assert_eq!(writes_a_day_later(field).await, [""; 0]);
}

async fn a_hub_that_is_restarted_in_the_middle_writes_nothing_superfluous(world: World) {
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 2 } });
    let field = Field::of_one_placement(world, &CLUSTERS, strategy).await;
    field.behave(&CLUSTERS, Behaviour::Silent);
    field.roll_out("v2").await;
    field.counts(SET, [5, 5, 2, 0, 0, 2, 0]).await;
    assert_eq!(writes_a_day_later(field).await, [""; 0]);
}

/// One state of a work.
#[derive(Clone, Debug)]
struct Seen {
    uid: String,
    generation: Option<i64>,
    /// Whether its agent has said that it is applied and available as it is.
    is_well: bool,
}

impl Seen {
    fn of(work: &ManifestWork) -> Self {
        let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let says = |type_: &str| {
            conditions.iter().any(|it| {
                it.type_ == type_ && it.status == "True" && it.observed_generation == work.metadata.generation
            })
        };
        let is_well = says("Applied") && says("Available");
        Self { uid: work.uid().unwrap_or_default(), generation: work.metadata.generation, is_well }
    }
}

/// All works at one moment, by cluster.
type Moment = BTreeMap<String, Seen>;

/// Every moment that there was.
fn moments(sights: Vec<Sight>) -> Vec<Moment> {
    let (mut known, mut moments) = (Moment::new(), Vec::new());
    for sight in sights {
        match sight {
            Sight::There(work) => {
                assert!(work.labels().contains_key(REPLICA_SET_LABEL) && version_of(&work).is_some());
                known.insert(work.namespace().unwrap_or_default(), Seen::of(&work));
            }
            Sight::Gone(work) => drop(known.remove(&work.namespace().unwrap_or_default())),
        }
        moments.push(known.clone());
    }
    moments
}
