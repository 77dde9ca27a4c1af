//! `bellrock reserve` and `bellrock release`: arguments, orders and answers.

use std::time::Duration;

use bellrock_apps::bandwidth::{HostName, Kbps};
use bellrock_config::values;
use bellrock_query as query;
use clap::Args;

use super::host;
use crate::ask::{Ask, ask};
use crate::{Failure, declared};

/// Reserve bandwidth from one host to another
///
/// Needs the app `bandwidth` in the chain. The rate is reserved on every line of a path, or on
/// none. A meter (OpenFlow 1.3) or a queue of the switches keeps packets to it.
#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// The host that sends: its Ethernet or Internet address, its name, or SWITCH:PORT
    #[arg(value_parser = host::<HostName>)]
    from: String,
    /// The host that receives
    #[arg(value_parser = host::<HostName>)]
    to: String,
    /// The rate: a whole number with k, M or G for kbit/s, Mbit/s or Gbit/s
    rate: Kbps,
    /// Use this queue, which is set up in all switches, instead of a meter
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Time to wait until enough is released: up to 5 s
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = wait)]
    wait: Duration,
    #[command(flatten)]
    ask: Ask,
}

/// Release reserved bandwidth
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The number of the reservation
    #[arg(value_parser = number)]
    id: u32,
    #[command(flatten)]
    ask: Ask,
}

fn wait(text: &str) -> Result<Duration, String> {
    let range = Duration::ZERO..=Duration::from_millis(query::MAX_RESERVE_WAIT_MS);
    values::time(text, range).map_err(|expected| format!("give {expected}"))
}

fn number(text: &str) -> Result<u32, String> {
    let right = "give the number of a reservation; `bellrock reservations` lists them";
    text.parse().map_err(|_| right.to_owned())
}

/// Gives the order to reserve.
pub(crate) fn reserve(args: &ReserveArgs) -> Result<(), Failure> {
    let order = query::Reserve {
        from: args.from.clone(),
        to: args.to.clone(),
        rate_kbps: args.rate.0,
        queue: args.queue.clone(),
        // At most some seconds.
        wait_ms: args.wait.as_millis() as u64,
    };
    ask(&args.ask, order, |row| declared::row(&query::ReservationRow::LIST, row))
}

/// Gives the order to release.
pub(crate) fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let text = |row: &query::ReservationRow| format!("reservation {} is released\n", row.id);
    ask(&args.ask, query::Release { id: args.id }, text)
}
