//! What `drover` can be told to do, one module for each command.

mod crds;
mod hub;

use std::{io, process::ExitCode};

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Crds(crds::Crds),
    Hub(Box<hub::HubCommand>),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
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
