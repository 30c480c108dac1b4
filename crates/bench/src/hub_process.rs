//! A hub as a process of its own, and what can be learned of it from outside.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use crate::process::Process;

/// How often it is asked.
const INTERVAL: Duration = Duration::from_millis(20);
/// A hub that has done nothing for so long is at rest.
const REST: Duration = Duration::from_secs(3);
/// A hub that has not come to rest by then never will.
const PATIENCE: Duration = Duration::from_mins(10);

/// A running hub.
pub(crate) struct HubProcess {
    process: Child,
    health: Health,
    begun: Instant,
}

/// Where a hub tells how it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health(SocketAddr);

/// What a hub that has come to rest was like.
#[derive(Debug)]
pub(crate) struct Rest {
    /// When it had read the fleet.
    pub(crate) ready: Duration,
    /// When it did the last thing that it did.
    pub(crate) last_active: Duration,
    /// The writes that it counted, by kind and verb.
    pub(crate) writes: BTreeMap<String, u64>,
    pub(crate) memory_megabytes: f64,
    pub(crate) cpu: Duration,
}

impl HubProcess {
    /// Runs these controllers.
    pub(crate) fn start(drover: &Path, kubeconfig: &Path, controllers: &str) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut process = Command::new(drover)
            .args(["hub", "--health-listen", "127.0.0.1:0", "--identity", "bench", "--controllers", controllers])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not run {}: build it with `cargo build --release`", drover.display()))?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("it is piped")?).read_line(&mut line)?;
        let health = line.rsplit("http://").next().and_then(|address| address.trim().parse().ok());
        let health = health.with_context(|| format!("the hub did not say where it is, but {line:?}"))?;
        Ok(Self { process, health: Health(health), begun })
    }

    /// What the system knows of it.
    pub(crate) fn process(&self) -> Process {
        Process(self.process.id())
    }

    /// Where it tells how it is.
    pub(crate) fn health(&self) -> Health {
        self.health
    }

    /// Waits until it has nothing to do any more.
    pub(crate) async fn rest(&self) -> anyhow::Result<Rest> {
        while !self.get("/readyz").await?.starts_with("HTTP/1.1 200") {
            sleep(INTERVAL).await;
        }
        let ready = self.begun.elapsed();
        let (mut activity, mut last) = (Activity::default(), Instant::now());
        while last.elapsed() < REST || !activity.is_leading {
            let now = Activity::read(&self.get("/metrics").await?);
            if now != activity {
                (activity, last) = (now, Instant::now());
            }
            anyhow::ensure!(self.begun.elapsed() < PATIENCE, "the hub does not come to rest: {activity:?}");
            sleep(INTERVAL).await;
        }
        Ok(Rest {
            ready,
            last_active: last.duration_since(self.begun),
            writes: activity.writes,
            memory_megabytes: self.process().memory_megabytes()?,
            cpu: self.process().cpu()?,
        })
    }

    /// Ends it as Kubernetes would.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).context("a process has a number")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.process.wait()?;
        anyhow::ensure!(status.success(), "the hub ended with {status}");
        Ok(())
    }

    async fn get(&self, path: &str) -> anyhow::Result<String> {
        self.health.get(path).await
    }
}

impl Health {
    /// What it answers, with all that goes before the text itself.
    pub(crate) async fn get(self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(self.0).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What changes as long as a hub does something.
#[derive(Debug, Default, PartialEq, Eq)]
struct Activity {
    is_leading: bool,
    writes: BTreeMap<String, u64>,
    reconciles: u64,
}

impl Activity {
    fn read(metrics: &str) -> Self {
        let mut activity = Self::default();
        for (name, labels, value) in metrics.lines().filter_map(sample) {
            match name {
                "drover_leader" => activity.is_leading = value == 1,
                "drover_writes_total" => _ = activity.writes.insert(labels.to_owned(), value),
                "drover_reconciles_total" => activity.reconciles += value,
                _ => {}
            }
        }
        activity
    }
}

/// A line of metrics with a whole number: name, labels and value.
pub(crate) fn sample(line: &str) -> Option<(&str, &str, u64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    Some((name, labels.trim_end_matches('}'), value.parse().ok()?))
}
