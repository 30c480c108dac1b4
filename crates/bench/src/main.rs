//! `drover-bench`: measures what Drover costs, and writes it into `docs/benchmarks`.
//!
//! Not a test: times differ from machine to machine. What can be counted is counted, since counts do not.

mod at_rest;
mod hub_process;
mod placement;
mod report;
mod server_counts;

use std::io::Write as _;

use clap::Parser;

use crate::report::Report;

/// Measure what Drover costs, and write it into docs/benchmarks.
#[derive(Debug, Parser)]
enum Bench {
    /// What the decision of one placement costs, for fleets of different sizes.
    Placement,
    /// What a hub does that is started again on a fleet at rest.
    AtRest(at_rest::AtRest),
}

fn main() -> anyhow::Result<()> {
    let report = match Bench::parse() {
        Bench::Placement => placement::measure(),
        Bench::AtRest(bench) => bench.measure()?,
    };
    let text = report.write()?;
    write!(std::io::stdout(), "{text}")?;
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
