//! The command `bellrock`, one module for each of its parts.

pub mod decode;

use std::process::ExitCode;

use clap::Parser;

/// An OpenFlow controller.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {}

/// Reads the command line, does what it says, and tells how it went.
#[must_use]
pub fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    ExitCode::SUCCESS
}
