//! What `drover` can be told to do, one module for each command.

mod agent;
mod approve_operators;
mod crds;
mod hub;

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Subcommand;
use drover_runtime::client;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tracing::info;
use tracing_subscriber::EnvFilter;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Agent(Box<agent::AgentCommand>),
    ApproveOperators(Box<approve_operators::ApproveOperators>),
    Crds(crds::Crds),
    Hub(Box<hub::HubCommand>),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Agent(command) => command.run(),
            Self::ApproveOperators(command) => command.run(),
            Self::Crds(command) => command.run(),
            Self::Hub(command) => command.run(),
        }
    }
}

/// Tells the user what went wrong. A reader who has seen enough, such as `head`, is nothing wrong.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let reader_left = error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    if reader_left {
        return ExitCode::SUCCESS;
    }
    // Standard error is where a command's complaints belong; if it is gone there is nobody left to tell.
    let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("drover: {error:#}\n"));
    ExitCode::FAILURE
}

/// Has everything that is logged go to standard error.
fn log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,kube=warn"));
    let is_terminal = io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(is_terminal).with_writer(io::stderr).init();
}

/// Tells whoever reads standard output. Who runs goes on where nobody does, or not any more.
fn announce(line: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout(), "{line}") {
        info!(%error, "nobody reads that {line}");
    }
}

/// A client of the Kubernetes of a kubeconfig; of the pod's, or the usual one, where none is named.
async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let config = match kubeconfig {
        None => Config::infer().await.context("found no Kubernetes to run on: name a kubeconfig with --kubeconfig")?,
        Some(file) => {
            let read = Kubeconfig::read_from(file).with_context(|| format!("could not read {}", file.display()))?;
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
            config.with_context(|| format!("{} names no Kubernetes that can be used", file.display()))?
        }
    };
    Ok(client::connect(config)?)
}
