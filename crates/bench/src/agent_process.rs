//! An agent as a process of its own, between a hub and a cluster, and all that it asks of them.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::Context;
use drover_testkit::{
    World,
    play::{Asked, Wish},
    proxy::{Proxy, Seen},
};
use http::Request;
use rustix::process::{Pid, Signal, kill_process};

use crate::{own_requests::sort, process::Process, server_counts::Requests};

/// Who may bring clusters in.
const BOOTSTRAP: (&str, &str) = ("system:bootstrap:bench", "system:bootstrappers:managedcluster");

/// The ways of an agent to its hub and to its cluster. Somebody stands there and counts.
pub(crate) struct Ways {
    hub: Proxy,
    managed: Proxy,
    bootstrap: PathBuf,
    kubeconfig: PathBuf,
}

/// What an agent has asked for.
#[derive(Debug)]
pub(crate) struct Asks {
    pub(crate) hub: Requests,
    pub(crate) managed: Requests,
}

impl Ways {
    pub(crate) async fn new(hub: &World, managed: &World) -> Self {
        let bootstrap = Asked::approved(hub, &Wish::to_be(BOOTSTRAP.0, &[BOOTSTRAP.1])).await.kubeconfig(hub).await;
        let proxies = (Proxy::start(hub.kubeconfig()).await, Proxy::start(managed.kubeconfig()).await);
        let (bootstrap, kubeconfig) = (proxies.0.kubeconfig(&bootstrap), proxies.1.kubeconfig(managed.kubeconfig()));
        Self { hub: proxies.0, managed: proxies.1, bootstrap, kubeconfig }
    }

    /// What was asked for since this was last called.
    pub(crate) fn take(&self) -> Asks {
        Asks { hub: counted(&self.hub.take_seen()), managed: counted(&self.managed.take_seen()) }
    }
}

fn counted(seen: &[Seen]) -> Requests {
    let mut requests = Requests::default();
    for seen in seen {
        let mut request = Request::new(());
        (*request.method_mut(), *request.uri_mut()) = (seen.method.clone(), seen.uri.clone());
        request.headers_mut().extend(seen.content_type.clone().map(|kind| (http::header::CONTENT_TYPE, kind)));
        // What is no resource is counted by its path.
        let other = || (seen.uri.path().to_owned(), seen.method.to_string());
        requests.add(sort(&request).unwrap_or_else(other), 1);
    }
    requests
}

/// A running agent.
pub(crate) struct AgentProcess(Child);

impl AgentProcess {
    pub(crate) fn start(drover: &Path, cluster: &str, ways: &Ways) -> anyhow::Result<Self> {
        let child = Command::new(drover)
            .args(["agent", "--cluster-name", cluster, "--health-listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&ways.kubeconfig)
            .arg("--bootstrap-kubeconfig")
            .arg(&ways.bootstrap)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("could not run {}: build it with `cargo build --release`", drover.display()))?;
        Ok(Self(child))
    }

    /// What the system knows of it.
    pub(crate) fn process(&self) -> Process {
        Process(self.0.id())
    }

    /// Ends it as Kubernetes would.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).context("a process has a number")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.0.wait()?;
        anyhow::ensure!(status.success(), "the agent ended with {status}");
        Ok(())
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
