//! `drover-bench`: measures what Drover costs, and writes it into `docs/benchmarks`.
//!
//! Not a test: times differ from machine to machine. What can be counted is counted, since counts do not.

mod agent;
mod agent_process;
mod at_rest;
mod cpu_time;
mod embedded;
mod hub_counts;
mod hub_process;
mod own_requests;
mod placement;
mod process;
mod render;
mod report;
mod rollout;
mod server_counts;
mod setup;
mod suite;
mod upgrade;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
};

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::report::Report;

/// Measure what Drover costs, and write it into docs/benchmarks.
#[derive(Debug, Parser)]
enum Bench {
    /// What the decision of one placement costs, for fleets of different sizes.
    Placement,
    /// What it costs to make works from a template, for fleets of different sizes.
    Render,
    /// What a hub does that is started again on a fleet at rest.
    AtRest(at_rest::AtRest),
    Rollout(rollout::Rollout),
    /// What an agent costs that has many works: its cluster, its hub, and the machine that it runs on.
    Agent(agent::Agent),
    Embedded(embedded::Embedded),
    Upgrade(upgrade::Upgrade),
    /// How long the scenarios take on a real kube-apiserver, and on Drover's own.
    Suite,
}

fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,kube=warn"));
    let is_terminal = io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(is_terminal).with_writer(io::stderr).init();
    match Bench::parse() {
        Bench::Placement => publish(&placement::measure(), None),
        Bench::Render => publish(&render::measure()?, None),
        Bench::AtRest(bench) => publish(&bench.measure()?, None),
        Bench::Agent(bench) => publish(&bench.measure()?, None),
        Bench::Embedded(bench) => publish(&bench.measure()?, None),
        Bench::Upgrade(bench) => publish(&bench.measure()?, None),
        Bench::Suite => publish(&suite::measure()?, None),
        Bench::Rollout(bench) => bench.measure(|report| publish(report, bench.output.as_deref())),
    }
}

/// Writes a report down, into the documentation or somewhere else, and shows it.
fn publish(report: &Report, folder: Option<&Path>) -> anyhow::Result<()> {
    match folder {
        Some(folder) => report.write_to(folder)?,
        None => report.document()?,
    }
    write!(io::stdout(), "{}", report.section())?;
    Ok(())
}

/// What is measured, and how to measure it again.
fn command(arguments: &str) -> String {
    format!("cargo build --release && cargo run --release -p drover-bench -- {arguments}")
}

/// A number with as many digits as say something.
fn rounded(number: f64) -> String {
    match number {
        number if number < 10.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

impl Report {
    /// A report on what this command measures.
    fn new(name: &str, title: &str, about: &str, arguments: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            about: about.to_owned(),
            command: command(arguments),
            machine: report::machine(),
            tables: Vec::new(),
        }
    }
}
