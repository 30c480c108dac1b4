//! How soon the hub is there that has nothing under it.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use clap::Args;
use drover_api::cluster::ManagedCluster;
use kube::{Api, api::ListParams};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    cpu_time::median,
    process::Process,
    report::{Report, Table},
    rounded,
    setup::{cluster, connect, create, drover, for_each},
};

/// How soon an embedded hub is there, with nothing stored and with some clusters.
#[derive(Debug, Args)]
pub(crate) struct Embedded {
    /// How often it is started in each way.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// How many clusters are stored when it is started again.
    #[arg(long, default_value_t = 1000)]
    clusters: usize,
    /// The program `drover`; the one beside this program if it is not set.
    #[arg(long, value_name = "FILE")]
    drover: Option<PathBuf>,
}

/// One start of a hub, and what it had cost when it had answered.
#[derive(Clone, Copy, Debug)]
struct Start {
    answers: Duration,
    cpu: Duration,
    memory_megabytes: f64,
}

/// A hub that answers.
struct Running {
    child: Child,
    start: Start,
}

impl Embedded {
    pub(crate) fn measure(&self) -> anyhow::Result<Report> {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(self.run())
    }

    async fn run(&self) -> anyhow::Result<Report> {
        let drover = drover(self.drover.as_deref())?;
        let mut rows = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..self.rounds {
            let folder = tempfile::tempdir()?;
            starts.push(Running::start(&drover, folder.path()).await?.stop()?);
        }
        rows.push(row("in an empty folder", &starts));
        let folder = tempfile::tempdir()?;
        let hub = Running::start(&drover, folder.path()).await?;
        let clusters = Api::all(connect(&kubeconfig(folder.path())).await?);
        for_each(0..self.clusters, async |index| create(&clusters, &cluster(&format!("c{index:05}"), index)).await)
            .await?;
        hub.stop()?;
        starts.clear();
        for _ in 0..self.rounds {
            starts.push(Running::start(&drover, folder.path()).await?.stop()?);
        }
        rows.push(row(&format!("again, with {} clusters", self.clusters), &starts));
        let mut report = Report::new(
            "embedded",
            "The start of an embedded hub",
            "A hub is started with an API server of its own. It is there when it has answered a request for clusters, over TLS, by the \
             kubeconfig that it has written. The budget for an empty folder is 0.2 s.",
            &format!("embedded --rounds {} --clusters {}", self.rounds, self.clusters),
        );
        let columns = ["start", "answers after, s (median)", "at best", "at worst", "CPU, s (median)", "memory, MB"];
        let mut table = Table::new(&format!("{} starts of each kind", self.rounds), &columns);
        table.rows = rows;
        report.tables.push(table);
        Ok(report)
    }
}

fn row(name: &str, starts: &[Start]) -> Vec<String> {
    let seconds = |time: Duration| rounded(time.as_secs_f64());
    let of = |what: fn(&Start) -> Duration| {
        let mut times = starts.iter().map(what);
        median(starts.len(), || times.next().unwrap_or_default())
    };
    let memory = starts.iter().map(|start| start.memory_megabytes).fold(0.0, f64::max);
    let extreme = |time: Option<Duration>| seconds(time.unwrap_or_default());
    vec![
        name.to_owned(),
        seconds(of(|start| start.answers)),
        extreme(starts.iter().map(|start| start.answers).min()),
        extreme(starts.iter().map(|start| start.answers).max()),
        seconds(of(|start| start.cpu)),
        rounded(memory),
    ]
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("hub/admin.kubeconfig")
}

impl Running {
    /// Starts a hub in a folder, and waits until it answers.
    async fn start(drover: &Path, folder: &Path) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut child = Command::new(drover)
            .args(["hub", "--embedded", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("hub"))
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not run {}: build it with `cargo build --release`", drover.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("it is piped")?).read_line(&mut line)?;
        ensure!(line.contains("the API is at"), "the hub did not say where it is, but {line:?}");
        let clusters = Api::<ManagedCluster>::all(connect(&kubeconfig(folder)).await?);
        clusters.list_metadata(&ListParams::default().limit(1)).await?;
        let answers = begun.elapsed();
        let process = Process(child.id());
        let start = Start { answers, cpu: process.cpu()?, memory_megabytes: process.memory_megabytes()? };
        Ok(Self { child, start })
    }

    /// Ends it as Kubernetes would, and says how it had started.
    fn stop(mut self) -> anyhow::Result<Start> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process has a number")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the hub ended with {status}");
        Ok(self.start)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
