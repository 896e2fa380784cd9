//! `pillion completions`: a script that teaches a shell the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use super::exit::Exit;
use super::failure::Failure;
use super::{Cli, output};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pillion", &mut script);
    output::raw(&script)?;
    Ok(Exit::Done)
}
