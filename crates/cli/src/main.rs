//! The program `drover`.

use std::process::ExitCode;

fn main() -> ExitCode {
    drover_cli::main()
}
