//! The `drover` command.

mod commands;

use std::process::ExitCode;

use clap::Parser;
use commands::Command;

/// A hub for fleets of Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "drover", version, arg_required_else_help = true)]
struct Drover {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    match Drover::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report(&error),
    }
}
