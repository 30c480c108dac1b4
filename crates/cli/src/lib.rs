//! The `drover` command. It is a library so that scenario tests run the same code as the program.

mod commands;

use std::process::ExitCode;

use clap::Parser;
use commands::Command;

/// A hub for fleets of Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "drover", bin_name = "drover", version, arg_required_else_help = true)]
struct Drover {
    #[command(subcommand)]
    command: Command,
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    match Drover::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report(&error),
    }
}
