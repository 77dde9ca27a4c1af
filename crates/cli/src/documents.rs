//! Manual pages and shell completions, made from the command line's own definition.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::{Failure, print};

/// Print the completions of a shell
///
/// For bash: bellrock completions bash > /usr/share/bash-completion/completions/bellrock
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Write the manual pages into a directory
#[derive(Debug, Args)]
pub(crate) struct ManualPagesArgs {
    /// The directory, which is made if it does not exist
    directory: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bellrock", &mut text);
    print(&String::from_utf8_lossy(&text))
}

pub(crate) fn manual_pages(args: &ManualPagesArgs) -> Result<(), Failure> {
    let ManualPagesArgs { directory } = args;
    let failed = |error| Failure::Failed(format!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)
}
