//! Commands that ask and order. Each module has the arguments of its command.

mod bandwidth;
pub(crate) mod clean;
pub(crate) mod cluster;
pub(crate) mod flows;
pub(crate) mod identities;
pub(crate) mod messages;
pub(crate) mod ports;
mod quarantine;
pub(crate) mod relays;
mod static_entries;

use std::fmt::Display;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;
use std::str::FromStr;

use bellrock_api::name_in;
use clap::Subcommand;

use crate::Failure;
use bandwidth::{ReleaseArgs, ReserveArgs};
use quarantine::QuarantineArgs;
use static_entries::StaticArgs;

/// Orders to apps. Lists that are no more than that are declared with their requests.
#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    Quarantine(QuarantineArgs),
    Static(StaticArgs),
    Reserve(ReserveArgs),
    Release(ReleaseArgs),
}

impl AppCommand {
    /// Gives the order, and prints the answer.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            AppCommand::Quarantine(args) => quarantine::run(args),
            AppCommand::Static(args) => static_entries::run(args),
            AppCommand::Reserve(args) => bandwidth::reserve(args),
            AppCommand::Release(args) => bandwidth::release(args),
        }
    }
}

/// Maximum size of a file that is sent to the controller, in bytes.
const MAX_FILE_BYTES: u64 = bellrock_control::MAX_REQUEST_BYTES;

/// Reads a file, or standard input if the path is `-`. Returns its name for errors, and its text.
/// `remedy`: what to do if it is too large.
fn read_text(path: &Path, remedy: &str) -> Result<(String, String), Failure> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let result = match is_stdin {
        true => stdin().take(MAX_FILE_BYTES + 1).read_to_string(&mut text),
        false => File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)),
    };
    result.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let limit = MAX_FILE_BYTES >> 20;
        return Err(Failure::Failed(format!("{name}: larger than {limit} MiB; {remedy}")));
    }
    Ok((name, text))
}

/// Checks the text of a host: a `T`, or a text that begins with a name. Only the controller knows
/// the names.
fn host<T: FromStr<Err: Display>>(text: &str) -> Result<String, String> {
    match text.parse::<T>() {
        Err(error) if name_in(text).is_none() => Err(error.to_string()),
        _ => Ok(text.to_owned()),
    }
}
