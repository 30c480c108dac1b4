//! What it costs a hub to install an add-on on many clusters and to upgrade it, a quarter of them at a time.
//!
//! It drives any hub through the API alone. The clusters are made up; the placement's decisions are written here, so that nobody has to
//! make them; the add-on's manager and all agents are played by a [`Crowd`].

mod addon;
mod change;
mod findings;
mod fleet;
mod meter;
#[cfg(test)]
mod naive_hub;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::ensure;
use clap::{Args, ValueEnum};
use drover_api::{
    addon::{ConfigReference, ManagedClusterAddOn},
    grammar::{GoDuration, SpecHash},
    names::PROGRESSING,
};
use drover_testkit::{
    Server,
    play::{Behaviour, Crowd},
};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::info;

use self::{
    addon::Maker,
    findings::{Findings, Measured, Phase},
    fleet::Fleet,
    meter::Meter,
};
use crate::{
    hub_process::HubProcess,
    own_requests::OwnRequests,
    report::Report,
    setup::{as_hub, config, drover},
};

/// The part of the hub that is measured. Nobody else is to act on the clusters.
const CONTROLLERS: &str = "addon";
/// How many clusters may be on their way at a time.
const WINDOW: &str = "25%";
/// How often it is looked whether all clusters are done.
const INTERVAL: Duration = Duration::from_millis(20);
/// A rollout in which no cluster gets done for so long has come to a halt.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often something of one cluster is changed, if nothing else is said.
const CHANGES: u32 = 50;

/// What it costs a hub to install an add-on and to upgrade it, a quarter of the clusters at a time.
///
/// Without --kubeconfig, a server and a hub are started for this, under the role in deploy/hub. With it, any hub is measured whose
/// API is OCM's: clusters, their namespaces, a placement with its decisions and an add-on are made there, all with names that begin with
/// `bench-`, and removed at the end. On such a hub nothing else should be going on, because all requests that this program did not send
/// count as the hub's.
///
/// This program answers the works of the add-on, as the agents would, and makes them, as the add-on's own manager would, unless the add-on
/// is made from a template.
#[derive(Debug, Args)]
pub(crate) struct Rollout {
    /// How many clusters there are. Several numbers, such as 500,4000, are measured one after the other, and compared with the first.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "500")]
    clusters: Vec<usize>,
    /// An administrator's kubeconfig of the hub that is measured.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The number of the hub's process on this machine, to read its CPU time and memory.
    #[arg(long, requires = "kubeconfig")]
    pid: Option<u32>,
    /// How long agents take to answer, such as 500ms or 2s.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    delay: GoDuration,
    /// How many clusters can not apply the upgrade. The strategy allows them to fail, and they are not waited for.
    #[arg(long, value_name = "N", default_value_t = 0)]
    failures: usize,
    /// How a change reaches the clusters; progressive with --ocm, else rolling-update.
    #[arg(long)]
    strategy: Option<Strategy>,
    /// The hub is OCM's add-on manager: write the hashes of configurations into the add-on's status, which it leaves to add-ons.
    #[arg(long, requires = "kubeconfig")]
    ocm: bool,
    /// The add-on is made from a template, so that the hub makes its works; it is upgraded to another template.
    #[arg(long, conflicts_with = "ocm")]
    templated: bool,
    /// How often the status of one work is changed at the end, to find out what one change costs; and the settings of one cluster, if
    /// the add-on is made from a template.
    #[arg(long, value_name = "N", default_value_t = CHANGES, value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// The program `drover`; the one beside this program if it is not set.
    #[arg(long, value_name = "FILE", conflicts_with = "kubeconfig")]
    drover: Option<PathBuf>,
    /// The folder that the findings are written to, one file for each number of clusters; docs/benchmarks if it is not set, and
    /// then docs/benchmarks.md is made anew.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
}

/// How a change reaches the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// Drover's RollingUpdate.
    RollingUpdate,
    /// OCM's Progressive.
    Progressive,
}

impl Strategy {
    fn spec(self, failures: usize) -> Value {
        match self {
            Self::RollingUpdate => json!({
                "type": "RollingUpdate",
                "rollingUpdate": { "maxConcurrentlyUpdating": WINDOW, "maxFailures": failures },
            }),
            Self::Progressive => json!({
                "type": "Progressive",
                "progressive": { "maxConcurrency": WINDOW, "maxFailures": failures },
            }),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::RollingUpdate => "RollingUpdate",
            Self::Progressive => "Progressive",
        }
    }
}

impl Rollout {
    /// Measures fleets of all sizes, and hands over what was found as soon as it was.
    pub(crate) fn measure(&self, mut publish: impl FnMut(&Report) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for size in &self.clusters {
            ensure!(self.failures < *size, "{} of {size} clusters can not fail: leave some that do not", self.failures);
        }
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
            let mut first = None;
            for &size in &self.clusters {
                let findings = match &self.kubeconfig {
                    Some(kubeconfig) => self.measure_there(kubeconfig, size).await?,
                    None => self.measure_here(size).await?,
                };
                publish(&findings.report(self.measured(), &self.about(size), &self.command(), first.as_ref()))?;
                first.get_or_insert(findings);
            }
            Ok(())
        })
    }

    /// Measures a hub that is started for this.
    async fn measure_here(&self, size: usize) -> anyhow::Result<Findings> {
        let drover = drover(self.drover.as_deref())?;
        let server = Server::start();
        let kubeconfig = as_hub(&server)?;
        let own = OwnRequests::default();
        let fleet = Fleet::new(own.client(config(server.kubeconfig()).await?)?, size, self.maker());
        fleet.make().await?;
        let hub = HubProcess::start(&drover, kubeconfig.path(), CONTROLLERS)?;
        hub.rest().await?;
        let meter = Meter::new(fleet.client(), own, Some(hub.process())).asking(hub.health());
        let findings = self.drive(&fleet, &meter).await?;
        hub.stop()?;
        Ok(findings)
    }

    /// Measures a hub that is there, and leaves it as it was.
    async fn measure_there(&self, kubeconfig: &Path, size: usize) -> anyhow::Result<Findings> {
        let own = OwnRequests::default();
        let fleet = Fleet::new(own.client(config(kubeconfig).await?)?, size, self.maker());
        fleet.make().await?;
        let meter = Meter::new(fleet.client(), own, self.pid.map(crate::process::Process));
        let findings = self.drive(&fleet, &meter).await;
        info!("removing what was made");
        fleet.remove().await?;
        findings
    }

    /// Installs the add-on, upgrades it, and changes one work again and again.
    async fn drive(&self, fleet: &Fleet, meter: &Meter) -> anyhow::Result<Findings> {
        let crowd = Crowd::gather(fleet.client(), fleet.name());
        if self.delay.get() > Duration::ZERO {
            fleet.clusters().for_each(|cluster| crowd.behave(&cluster, Behaviour::Slow(self.delay.get())));
        }
        meter.quiet().await?;
        let rate = fleet.rate().await?;
        let install = phase("install", meter, || self.install(fleet, &crowd, meter)).await?;

        fleet.clusters().take(self.failures).for_each(|cluster| crowd.behave(&cluster, Behaviour::Fails));
        let before = fleet.applied(&fleet.cluster(0)).await?;
        let upgrade = phase("upgrade", meter, || self.upgrade(fleet, &crowd, meter, &before)).await?;

        let cluster = fleet.cluster(self.failures);
        let mut touched = vec![change::of_work(fleet, &crowd, meter, &cluster, self.changes).await?];
        if self.templated {
            touched.push(change::of_settings(fleet, &crowd, meter, &cluster, self.changes).await?);
        }
        Ok(Findings { clusters: fleet.size(), rate, phases: vec![install, upgrade], touched })
    }

    async fn install(&self, fleet: &Fleet, crowd: &Crowd, meter: &Meter) -> anyhow::Result<()> {
        fleet.install(&self.strategy().spec(self.failures)).await?;
        if self.ocm {
            fleet.write_hash().await?;
        }
        until(crowd, meter, fleet.size(), |addon| is_done(addon, None)).await
    }

    async fn upgrade(&self, fleet: &Fleet, crowd: &Crowd, meter: &Meter, before: &[SpecHash]) -> anyhow::Result<()> {
        fleet.upgrade(&self.strategy().spec(self.failures)).await?;
        if self.ocm {
            fleet.write_hash().await?;
        }
        until(crowd, meter, fleet.size() - self.failures, |addon| is_done(addon, Some(before))).await
    }

    fn maker(&self) -> Maker {
        if self.templated { Maker::Template } else { Maker::Manager }
    }

    fn measured(&self) -> Measured {
        match self.maker() {
            _ if self.ocm => Measured::Ocm,
            Maker::Manager => Measured::Drover,
            Maker::Template => Measured::Templates,
        }
    }

    fn strategy(&self) -> Strategy {
        self.strategy.unwrap_or(if self.ocm { Strategy::Progressive } else { Strategy::RollingUpdate })
    }

    fn about(&self, size: usize) -> String {
        let answers = match self.delay.get() {
            Duration::ZERO => "at once".to_owned(),
            delay => format!("after {} s", delay.as_secs_f64()),
        };
        let failures = match self.failures {
            0 => String::new(),
            failures => format!(" {failures} clusters can not apply the upgrade, and are not waited for."),
        };
        let (what, change, works) = match self.maker() {
            Maker::Manager => (
                "An add-on with a configuration",
                "the configuration's content is changed",
                "The benchmark itself makes the add-on's works and answers them",
            ),
            Maker::Template => (
                "An add-on from the template in examples/template, without registration and with settings,",
                "its placement names another template",
                "The hub makes the add-on's works, at most 6 writes per cluster installed and 4 per cluster upgraded being the budget for all that \
                 it writes; the benchmark itself answers them",
            ),
        };
        format!(
            "{what} is installed on {size} clusters, then {change}; the strategy is {} with {WINDOW}. Agents answer {answers}.{failures} {works}: \
             what it sends is not counted as the hub's. A phase takes until all clusters report that they are done; what it costs is counted \
             until the hub has come to rest.",
            self.strategy().name()
        )
    }

    fn command(&self) -> String {
        let sizes: Vec<_> = self.clusters.iter().map(ToString::to_string).collect();
        let mut command = format!("rollout --clusters {}", sizes.join(","));
        let mut add = |argument: std::fmt::Arguments<'_>| _ = write!(command, " {argument}");
        if self.kubeconfig.is_some() {
            add(format_args!("--kubeconfig FILE"));
        }
        if self.pid.is_some() {
            add(format_args!("--pid PID"));
        }
        if self.ocm {
            add(format_args!("--ocm"));
        }
        if self.templated {
            add(format_args!("--templated"));
        }
        if let Some(strategy) = self.strategy.and_then(|strategy| strategy.to_possible_value()) {
            add(format_args!("--strategy {}", strategy.get_name()));
        }
        if self.delay.get() > Duration::ZERO {
            add(format_args!("--delay {}", self.delay));
        }
        if self.failures > 0 {
            add(format_args!("--failures {}", self.failures));
        }
        if self.changes != CHANGES {
            add(format_args!("--changes {}", self.changes));
        }
        command
    }
}

/// Times something until it is done, and counts what it cost until the hub has come to rest again.
async fn phase<F>(name: &'static str, meter: &Meter, run: impl FnOnce() -> F) -> anyhow::Result<Phase>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let before = meter.read().await?;
    let begun = Instant::now();
    run().await?;
    let time = begun.elapsed();
    info!("{name} took {:.1} s", time.as_secs_f64());
    meter.quiet().await?;
    Ok(Phase { name, time, cost: meter.read().await?.since(&before) })
}

/// Waits until as many clusters are done.
async fn until(
    crowd: &Crowd,
    meter: &Meter,
    wanted: usize,
    is_done: impl Fn(&ManagedClusterAddOn) -> bool,
) -> anyhow::Result<()> {
    let (mut done, mut last) = (0, Instant::now());
    while done < wanted {
        meter.check()?;
        ensure!(
            last.elapsed() < PATIENCE,
            "{done} of {wanted} clusters are done, and no other for {} minutes: does the hub run, and is it allowed to?",
            PATIENCE.as_secs() / 60
        );
        sleep(INTERVAL).await;
        let now = crowd.count(&is_done);
        if now != done {
            (done, last) = (now, Instant::now());
        }
    }
    Ok(())
}

/// Whether an add-on says, in whichever words, that it runs what it was given; and that is not the same as before.
fn is_done(addon: &ManagedClusterAddOn, before: Option<&[SpecHash]>) -> bool {
    let Some(status) = &addon.status else { return false };
    let is_success = status.conditions.iter().any(|condition| {
        let reasons = ["InstallSucceed", "UpgradeSucceed", "Succeed", "Completed"];
        condition.type_ == PROGRESSING && condition.status == "False" && reasons.contains(&condition.reason.as_str())
    });
    is_success && applied(addon).is_some_and(|applied| Some(applied.as_slice()) != before)
}

/// The hashes of the configurations that an add-on runs, if they are those that it was given.
fn applied(addon: &ManagedClusterAddOn) -> Option<Vec<SpecHash>> {
    let references = &addon.status.as_ref()?.config_references;
    let hash = |reference: &ConfigReference| {
        let applied = reference.last_applied_config.as_ref()?;
        let is_given = reference.desired_config.as_ref() == Some(applied);
        (is_given && !applied.spec_hash.is_missing()).then(|| applied.spec_hash.clone())
    };
    references.iter().map(hash).collect::<Option<Vec<_>>>().filter(|hashes| !hashes.is_empty())
}

#[expect(clippy::cast_precision_loss, reason = "no benchmark counts that far")]
fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
