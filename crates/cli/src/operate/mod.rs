//! The arguments of commands that ask and order.

pub(crate) mod bandwidth;
pub(crate) mod cluster;
pub(crate) mod flows;
pub(crate) mod identities;
pub(crate) mod messages;
pub(crate) mod ports;
pub(crate) mod quarantine;
pub(crate) mod relays;
pub(crate) mod static_entries;

use std::fmt::Display;
use std::str::FromStr;

use bellrock_api::name_in;

/// Checks the text of a host: a `T`, or a text that begins with a name. Only the controller knows
/// the names.
fn host<T: FromStr<Err: Display>>(text: &str) -> Result<String, String> {
    match text.parse::<T>() {
        Err(error) if name_in(text).is_none() => Err(error.to_string()),
        _ => Ok(text.to_owned()),
    }
}
