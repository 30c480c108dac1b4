//! What one change costs that concerns one cluster, while nothing else is going on.

use std::time::{Duration, Instant};

use drover_testkit::play::{Behaviour, Crowd};
use kube::ResourceExt;
use tokio::time::sleep;

use super::{
    findings::{Change, Touched},
    fleet::Fleet,
    is_done,
    meter::Meter,
    until,
};

/// The time between two changes, in which the hub may do what it does about one.
const PAUSE: Duration = Duration::from_millis(100);

/// Changes the status of the work of one cluster again and again.
pub(super) async fn of_work(
    fleet: &Fleet,
    crowd: &Crowd,
    meter: &Meter,
    cluster: &str,
    changes: u32,
) -> anyhow::Result<Touched> {
    crowd.behave(cluster, Behaviour::Silent);
    let work = fleet.work(cluster).await?;
    let touched =
        cost_of(Change::Work, meter, changes, async |number| fleet.report(&work, number % 2 == 1).await).await?;
    crowd.behave(cluster, Behaviour::Well);
    Ok(touched)
}

/// Gives one cluster settings of its own, and edits them again and again.
pub(super) async fn of_settings(
    fleet: &Fleet,
    crowd: &Crowd,
    meter: &Meter,
    cluster: &str,
    changes: u32,
) -> anyhow::Result<Touched> {
    let write = async |number: u32| -> anyhow::Result<()> {
        let before = fleet.applied(cluster).await?;
        fleet.write_settings(cluster, number).await?;
        let is_it = |name: Option<String>| name.as_deref() == Some(cluster);
        until(crowd, meter, 1, |addon| is_it(addon.namespace()) && is_done(addon, Some(&before))).await
    };
    // Their numbers differ from those of the edits.
    write(changes).await?;
    meter.quiet().await?;
    cost_of(Change::Settings, meter, changes, write).await
}

/// Makes so many changes, one after the other, and finds out what one costs.
async fn cost_of(
    what: Change,
    meter: &Meter,
    changes: u32,
    mut change: impl AsyncFnMut(u32) -> anyhow::Result<()>,
) -> anyhow::Result<Touched> {
    let (before, begun) = (meter.read().await?, Instant::now());
    let mut cpu = meter.cpu_finely()?;
    for number in 0..changes {
        change(number).await?;
        sleep(PAUSE).await;
    }
    let time = begun.elapsed();
    cpu = meter.cpu_since(cpu)?;
    meter.quiet().await?;
    let cost = meter.read().await?.since(&before);

    // What the hub does in the same time without any change.
    let mut idle = meter.cpu_finely()?;
    sleep(time).await;
    idle = meter.cpu_since(idle)?;
    let cpu = cpu.zip(idle).map(|(cpu, idle)| cpu.saturating_sub(idle) / changes);
    Ok(Touched { what, changes, cpu, cost })
}
