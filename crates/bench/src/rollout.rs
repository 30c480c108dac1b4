//! What it costs a hub to install an add-on on many clusters and to upgrade it, a quarter of them at a time.
//!
//! It drives any hub through the API alone. The clusters are made up; the placement's decisions are written here, so that nobody has to
//! make them; the add-on's manager and all agents are played by a [`Crowd`].

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
    addon::ManagedClusterAddOn,
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
    findings::{Findings, Phase, Touched, Whose},
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
/// How often one work's status is changed, if nothing else is said.
const CHANGES: u32 = 50;
/// The time between two such changes, in which the hub may do what it does about one.
const PAUSE: Duration = Duration::from_millis(100);

/// What it costs a hub to install an add-on and to upgrade it, a quarter of the clusters at a time.
///
/// Without --kubeconfig, a server and a hub are started for this, under the role in deploy/hub. With it, any hub is measured whose
/// API is OCM's: clusters, their namespaces, a placement with its decisions and an add-on are made there, all with names that begin with
/// `bench-`, and removed at the end. On such a hub nothing else should be going on, because all requests that this program did not send
/// count as the hub's.
///
/// This program makes the works of the add-on and answers them, as the add-on's own manager and the agents would.
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
    /// How often the status of one work is changed at the end, to find out what one change costs.
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
                publish(&findings.report(self.whose(), &self.about(size), &self.command(), first.as_ref()))?;
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
        let fleet = Fleet::new(own.client(config(server.kubeconfig()).await?)?, size);
        fleet.make().await?;
        let hub = HubProcess::start(&drover, kubeconfig.path(), CONTROLLERS)?;
        hub.rest().await?;
        let meter = Meter::new(fleet.client(), own, Some(hub.process()));
        let findings = self.drive(&fleet, &meter).await?;
        hub.stop()?;
        Ok(findings)
    }

    /// Measures a hub that is there, and leaves it as it was.
    async fn measure_there(&self, kubeconfig: &Path, size: usize) -> anyhow::Result<Findings> {
        let own = OwnRequests::default();
        let fleet = Fleet::new(own.client(config(kubeconfig).await?)?, size);
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
        let before = fleet.applied().await?;
        let upgrade = phase("upgrade", meter, || self.upgrade(fleet, &crowd, meter, &before)).await?;

        let touched = self.touch(fleet, &crowd, meter).await?;
        Ok(Findings { clusters: fleet.size(), rate, phases: vec![install, upgrade], touched })
    }

    async fn install(&self, fleet: &Fleet, crowd: &Crowd, meter: &Meter) -> anyhow::Result<()> {
        fleet.install(&self.strategy().spec(self.failures)).await?;
        if self.ocm {
            fleet.write_hash().await?;
        }
        until(crowd, meter, fleet.size(), |addon| is_done(addon, None)).await
    }

    async fn upgrade(&self, fleet: &Fleet, crowd: &Crowd, meter: &Meter, before: &SpecHash) -> anyhow::Result<()> {
        fleet.upgrade().await?;
        if self.ocm {
            fleet.write_hash().await?;
        }
        until(crowd, meter, fleet.size() - self.failures, |addon| is_done(addon, Some(before))).await
    }

    /// Changes the status of one work again and again, while nothing else is going on.
    async fn touch(&self, fleet: &Fleet, crowd: &Crowd, meter: &Meter) -> anyhow::Result<Touched> {
        let cluster = fleet.cluster(self.failures);
        crowd.behave(&cluster, Behaviour::Silent);
        let work = fleet.work(&cluster).await?;
        let (before, begun) = (meter.read().await?, Instant::now());
        let mut cpu = meter.cpu_finely()?;
        for change in 0..self.changes {
            fleet.report(&work, change % 2 == 1).await?;
            sleep(PAUSE).await;
        }
        let time = begun.elapsed();
        cpu = meter.cpu_since(cpu)?;
        meter.quiet().await?;
        let writes = meter.read().await?.since(&before).hub.writes();

        // What the hub does in the same time without any change.
        let mut idle = meter.cpu_finely()?;
        sleep(time).await;
        idle = meter.cpu_since(idle)?;
        let cpu = cpu.zip(idle).map(|(cpu, idle)| cpu.saturating_sub(idle) / self.changes);
        Ok(Touched { changes: self.changes, cpu, writes: count(writes) / f64::from(self.changes) })
    }

    fn whose(&self) -> Whose {
        if self.ocm { Whose::Ocm } else { Whose::Drover }
    }

    fn strategy(&self) -> Strategy {
        self.strategy.unwrap_or(match self.whose() {
            Whose::Drover => Strategy::RollingUpdate,
            Whose::Ocm => Strategy::Progressive,
        })
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
        format!(
            "An add-on with a configuration is installed on {size} clusters, then the configuration's content is changed; the strategy is {} with \
             {WINDOW}. Agents answer {answers}.{failures} The benchmark itself makes the add-on's works and answers them: what it sends is not \
             counted as the hub's. A phase takes until all clusters report that they are done; what it costs is counted until the hub has come \
             to rest.",
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

/// Whether an add-on says, in whichever words, that it runs what it was given; and that is not the configuration of before.
fn is_done(addon: &ManagedClusterAddOn, before: Option<&SpecHash>) -> bool {
    let Some(status) = &addon.status else { return false };
    let is_success = status.conditions.iter().any(|condition| {
        let reasons = ["InstallSucceed", "UpgradeSucceed", "Succeed", "Completed"];
        condition.type_ == PROGRESSING && condition.status == "False" && reasons.contains(&condition.reason.as_str())
    });
    is_success && applied(addon).is_some_and(|applied| Some(applied) != before)
}

/// The hash of the configuration that an add-on runs, if that is the one that it was given.
fn applied(addon: &ManagedClusterAddOn) -> Option<&SpecHash> {
    let reference = addon.status.as_ref()?.config_references.first()?;
    let applied =
        reference.last_applied_config.as_ref().filter(|applied| reference.desired_config.as_ref() == Some(applied))?;
    Some(&applied.spec_hash).filter(|hash| !hash.is_missing())
}

#[expect(clippy::cast_precision_loss, reason = "no benchmark counts that far")]
fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use drover_api::addon::AddOnRolloutStrategy;
    use drover_testkit::World;
    use kube::{Api, Client, api::ListParams};

    use super::{naive_hub::NaiveHub, *};

    drover_testkit::scenarios! {
        Own { a_hub_is_driven_and_its_requests_are_counted }
    }

    async fn a_hub_is_driven_and_its_requests_are_counted(world: World) {
        let _hub = NaiveHub::start(world.client());
        let rollout = Rollout { pid: Some(std::process::id()), failures: 1, changes: 2, ..rollout() };

        let findings = rollout.measure_there(world.kubeconfig(), 4).await.unwrap();

        let sent = |cost: &meter::Cost, resource: &str, verb: &str| {
            let sort = (resource.to_owned(), verb.to_owned());
            (cost.hub.of(&sort), cost.own.of(&sort))
        };
        let [install, upgrade] = findings.phases.as_slice() else { panic!("there are two phases") };
        assert_eq!(sent(&install.cost, "managedclusteraddons", "POST"), (4, 0));
        assert_eq!(sent(&install.cost, "manifestworks", "POST"), (0, 4));
        assert_eq!(sent(&install.cost, "manifestworks/status", "PATCH"), (0, 4));
        assert!(sent(&install.cost, "managedclusteraddons/status", "PATCH").0 >= 8);
        assert_eq!(sent(&upgrade.cost, "managedclusteraddons", "POST"), (0, 0));
        assert_eq!(sent(&upgrade.cost, "manifestworks", "PATCH"), (0, 4));
        assert_eq!(sent(&upgrade.cost, "addondeploymentconfigs", "PATCH"), (0, 1));
        assert!(sent(&upgrade.cost, "managedclusteraddons/status", "PATCH").0 >= 7);
        assert!(install.cost.cpu > Some(Duration::ZERO) && install.cost.peak_megabytes > Some(1.0));
        // To not available and back, each of which this hub writes down.
        assert!(findings.touched.writes >= 1.0, "{}", findings.touched.writes);
        assert_eq!(left(&world.client()).await, 0);
    }

    /// How much is left of what was made.
    async fn left(client: &Client) -> usize {
        let all = ListParams::default();
        let clusters = Api::<drover_api::cluster::ManagedCluster>::all(client.clone()).list(&all).await.unwrap();
        let addons = Api::<ManagedClusterAddOn>::all(client.clone()).list(&all).await.unwrap();
        clusters.items.len() + addons.items.len()
    }

    fn rollout() -> Rollout {
        Rollout {
            clusters: vec![4],
            kubeconfig: None,
            pid: None,
            delay: "0s".parse().unwrap(),
            failures: 0,
            strategy: None,
            ocm: false,
            changes: CHANGES,
            drover: None,
            output: None,
        }
    }

    #[test]
    fn strategies_are_of_the_api_and_have_the_window() {
        for strategy in [Strategy::RollingUpdate, Strategy::Progressive] {
            let spec = strategy.spec(3);
            let read: AddOnRolloutStrategy = serde_json::from_value(spec.clone()).unwrap();
            let written = serde_json::to_value(&read).unwrap();
            assert_eq!(written, spec);
        }
    }

    #[test]
    fn an_addon_is_done_when_it_says_so_and_runs_something_else_than_before() {
        let addon = |reason: &str, applied: Value| -> ManagedClusterAddOn {
            let progressing = json!({ "type": "Progressing", "status": "False", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z" });
            let reference = json!({ "group": "g", "resource": "r", "lastAppliedConfig": applied,
                "desiredConfig": { "name": "config", "specHash": "new" } });
            serde_json::from_value(json!({
                "metadata": { "name": "addon" }, "spec": {},
                "status": { "conditions": [progressing], "configReferences": [reference] },
            }))
            .unwrap()
        };
        let (new, old) =
            (json!({ "name": "config", "specHash": "new" }), json!({ "name": "config", "specHash": "old" }));
        let hash = |text: &str| text.parse::<SpecHash>().unwrap();
        for reason in ["InstallSucceed", "UpgradeSucceed", "Succeed", "Completed"] {
            assert!(is_done(&addon(reason, new.clone()), None));
            assert!(is_done(&addon(reason, new.clone()), Some(&hash("old"))));
            assert!(!is_done(&addon(reason, new.clone()), Some(&hash("new"))));
            assert!(!is_done(&addon(reason, old.clone()), None));
        }
        assert!(!is_done(&addon("UpgradeFailed", new), None));
        assert!(!is_done(&addon("Completed", Value::Null), None));
    }

    #[test]
    fn the_command_says_what_was_asked_for() {
        let plain = Rollout { clusters: vec![500, 4000], ..rollout() };
        assert_eq!(plain.command(), "rollout --clusters 500,4000");
        let ocm = Rollout {
            kubeconfig: Some("hub.yaml".into()),
            pid: Some(1),
            ocm: true,
            failures: 2,
            changes: 10,
            delay: "1s".parse().unwrap(),
            strategy: Some(Strategy::Progressive),
            ..rollout()
        };
        assert_eq!(
            ocm.command(),
            "rollout --clusters 4 --kubeconfig FILE --pid PID --ocm --strategy progressive --delay 1s --failures 2 --changes 10"
        );
    }
}
