//! The arguments of commands that ask and order.

pub(crate) mod bandwidth;
pub(crate) mod clean;
pub(crate) mod cluster;
pub(crate) mod flows;
pub(crate) mod identities;
pub(crate) mod messages;
pub(crate) mod ports;
pub(crate) mod quarantine;
pub(crate) mod relays;
pub(crate) mod static_entries;

use std::fmt::Display;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;
use std::str::FromStr;

use bellrock_api::name_in;

use crate::Failure;

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
