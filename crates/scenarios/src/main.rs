//! The command `drover`, as scenarios run it: the same code as the program of the crate `cli`, built
//! by Cargo with the scenarios, so that what they run is never older than the sources.

use std::process::ExitCode;

fn main() -> ExitCode {
    drover_cli::main()
}
