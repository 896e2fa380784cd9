//! Chores of the repository: `cargo xtask <chore>`.

mod bench;
mod browser;
mod checks;
mod codegen;
mod conformance;
mod editors;
mod fuzz;
mod host;
mod hosting;
mod install;
mod listening;
mod login;
mod processes;
mod rest;
mod servers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Writes what is made from the types: the schema
    Codegen(codegen::Arguments),
    /// Runs the MCP conformance suite against the binary
    Conformance(conformance::Arguments),
    /// The client that the conformance suite starts
    #[command(hide = true)]
    ConformanceDriver { url: String },
    /// Drives real MCP servers from npm and PyPI through the binary
    Servers(servers::Arguments),
    /// Logs in at a real authorization server, for real MCP servers behind it
    Login(login::Arguments),
    /// Drives the editor clients in real editors against the binary
    Editors(editors::Arguments),
    /// Runs the hosts of docs/hosting.md against the binary
    Hosting(hosting::Arguments),
    /// Tests the plain HTTP routes from their description
    Rest(rest::Arguments),
    /// Feeds the readers of foreign texts what nobody would write
    Fuzz(fuzz::Arguments),
    /// Measures the binary beside a bare pipe and a sidecar that does nothing
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Codegen(arguments) => codegen::run(&arguments),
        Chore::Conformance(arguments) => conformance::run(&arguments),
        Chore::ConformanceDriver { url } => conformance::drive(&url),
        Chore::Servers(arguments) => servers::run(&arguments),
        Chore::Login(arguments) => login::run(&arguments),
        Chore::Editors(arguments) => editors::run(&arguments),
        Chore::Hosting(arguments) => hosting::run(&arguments),
        Chore::Rest(arguments) => rest::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
