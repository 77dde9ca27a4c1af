//! `bellrock reserve`, `release` and `reservations`: the reservations of the app `bandwidth`.

use std::time::Duration;

use bellrock_api::{Host, Network};
use bellrock_apps::bandwidth::{
    HostName, Kbps, NotOneHost, NotReserved, Request, Reservation, Reservations, State,
};
use bellrock_config::values;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::info;

use super::super::args::Ask;
use super::super::show::{printable, table};
use super::kept::How;
use super::wait_for;

/// Longest time that a request waits for a release. Clients wait only a little longer.
const MAX_WAIT_S: u64 = 5;

/// Reserve bandwidth from one host to another
///
/// Needs the app `bandwidth` in the chain. The rate is reserved on every line of a path, or on
/// none. A meter (OpenFlow 1.3) or a queue of the switches keeps packets to it.
#[derive(Debug, Args)]
pub(crate) struct Reserve {
    /// The host that sends: its Ethernet or Internet address, or SWITCH:PORT
    from: HostName,
    /// The host that receives
    to: HostName,
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
pub(crate) struct Release {
    /// The number of the reservation
    #[arg(value_parser = number)]
    id: u32,
    #[command(flatten)]
    ask: Ask,
}

fn wait(text: &str) -> Result<Duration, String> {
    let range = Duration::ZERO..=Duration::from_secs(MAX_WAIT_S);
    values::time(text, range).map_err(|expected| format!("give {expected}"))
}

fn number(text: &str) -> Result<u32, String> {
    let right = "give the number of a reservation; `bellrock reservations` lists them";
    text.parse().map_err(|_| right.to_owned())
}

impl Reserve {
    /// The controller to ask, and the words of the question.
    pub(crate) fn question(&self) -> (&Ask, Vec<String>) {
        let ends = [self.from.to_string(), self.to.to_string(), self.rate.to_string()];
        let queue = self.queue.clone().unwrap_or_else(|| NO_QUEUE.to_owned());
        let wait_ms = format!("{}ms", self.wait.as_millis());
        (&self.ask, ends.into_iter().chain([queue, wait_ms]).collect())
    }
}

impl Release {
    /// The controller to ask, and the words of the question.
    pub(crate) fn question(&self) -> (&Ask, Vec<String>) {
        (&self.ask, vec![self.id.to_string()])
    }
}

/// Stands for no queue.
const NO_QUEUE: &str = "-";

/// A reservation, as the JSON that `--json` prints.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    id: u32,
    from: String,
    to: String,
    rate_kbps: u64,
    queue: Option<String>,
    /// `pending`, `installed`, `unknown` or `lost`.
    state: String,
    /// Why the state is unknown, or why the reservation is lost.
    why: Option<String>,
    /// The output ports of the switches on the path.
    path: Vec<String>,
}

fn row(reservation: &Reservation) -> Row {
    let (state, why, path) = match &reservation.state {
        State::Pending => ("pending", None, Vec::new()),
        State::Installed(ports) => {
            ("installed", None, ports.iter().map(ToString::to_string).collect())
        }
        State::Unknown(why) => ("unknown", Some(why.clone()), Vec::new()),
        State::Lost(why) => ("lost", Some(why.clone()), Vec::new()),
    };
    Row {
        id: reservation.id,
        from: reservation.from.to_string(),
        to: reservation.to.to_string(),
        rate_kbps: reservation.rate.0,
        queue: reservation.queue.clone(),
        state: state.to_owned(),
        why,
        path,
    }
}

/// Reserves bandwidth. The answer is a list with only this reservation.
///
/// # Errors
/// Why nothing was reserved.
pub(crate) fn reserve(
    book: &Reservations,
    network: &Network,
    words: &[&str],
) -> Result<Value, String> {
    let [from, to, rate, options @ ..] = words else {
        return Err("give reserve FROM TO RATE [QUEUE|- [TIME]]".to_owned());
    };
    let queue = options.first().copied().filter(|queue| *queue != NO_QUEUE).map(str::to_owned);
    let wait = options.get(1).map_or(Ok(Duration::ZERO), |text| wait(text))?;
    let text = |error: &dyn ToString| error.to_string();
    let request = Request {
        from: from.parse().map_err(|error| text(&error))?,
        to: to.parse().map_err(|error| text(&error))?,
        rate: rate.parse().map_err(|error| text(&error))?,
        queue,
        wait,
    };
    let reserved = wait_for(book.reserve(request))?.map_err(|error| match &error {
        NotReserved::Host(NotOneHost::Unknown(name)) => {
            absent(network, *name).unwrap_or_else(|| error.to_string())
        }
        _ => error.to_string(),
    })?;
    let Reservation { id, from, to, rate, .. } = &reserved;
    info!("an operator reserved {rate} from {from} to {to}: reservation {id}");
    to_json(&[row(&reserved)])
}

/// Explains why this host is not found, if more is known than that it was not seen.
fn absent(network: &Network, name: HostName) -> Option<String> {
    let elsewhere = |is_named: &dyn Fn(&Host) -> bool, vlan: u16| {
        let hosts = network.hosts().load();
        let found: Vec<String> = hosts
            .iter()
            .filter(|host| is_named(host))
            .map(|host| {
                host.id.vlan.map_or_else(|| "no VLAN".to_owned(), |vlan| format!("VLAN {vlan}"))
            })
            .collect();
        let places = found.join(" and ");
        (!found.is_empty())
            .then(|| format!("no host {name} has been seen in VLAN {vlan}, but in {places}"))
    };
    match name {
        HostName::At(at) if network.switch(at.dpid).is_none() => Some(format!(
            "switch {} is not connected; `bellrock switches` lists those that are, with their datapath ids in \
             hexadecimal",
            at.dpid
        )),
        HostName::At(at) => network
            .topology()
            .load()
            .link(at)
            .map(|link| format!("{at} leads to the switch at {}, and not to a host", link.to)),
        HostName::Mac(mac, Some(vlan)) => elsewhere(&|host| host.id.mac == mac, vlan),
        HostName::Ip(ip, Some(vlan)) => elsewhere(&|host| host.addresses.contains(&ip), vlan),
        _ => None,
    }
}

/// Releases a reservation. The answer lists those that are left.
///
/// # Errors
/// Why it was not released, or only partly.
pub(crate) fn release(book: &Reservations, words: &[&str]) -> Result<Value, String> {
    let [id] = words else { return Err("give release ID".to_owned()) };
    let id = number(id)?;
    wait_for(book.release(id))?.map_err(|error| error.to_string())?;
    info!("an operator released reservation {id}");
    list(book, &[])
}

/// Lists all reservations.
///
/// # Errors
/// Only errors of JSON.
pub(crate) fn list(book: &Reservations, _: &[&str]) -> Result<Value, String> {
    to_json(&book.list().iter().map(row).collect::<Vec<_>>())
}

/// The state of each reservation, for the log.
pub(crate) fn kept(book: &Reservations) -> Vec<(String, How)> {
    let how = |reservation: &Reservation| {
        let Reservation { id, from, to, rate, .. } = reservation;
        let how = match &reservation.state {
            State::Pending | State::Unknown(_) => How::UnderWay,
            State::Installed(_) => How::Up,
            State::Lost(why) => How::Down(why.clone()),
        };
        (format!("reservation {id}, {rate} from {from} to {to},"), how)
    };
    book.list().iter().map(how).collect()
}

fn to_json(rows: &[Row]) -> Result<Value, String> {
    serde_json::to_value(rows).map_err(|error| error.to_string())
}

/// Formats reservations as text.
pub(crate) fn show(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "nothing is reserved\n".to_owned();
    }
    let row = |row: &Row| {
        let how = match &row.why {
            Some(why) => format!("{}: {why}", row.state),
            None => row.state.clone(),
        };
        vec![
            row.id.to_string(),
            printable(&row.from),
            printable(&row.to),
            Kbps(row.rate_kbps).to_string(),
            printable(row.queue.as_deref().unwrap_or("meter")),
            printable(&row.path.join(" ")),
            printable(&how),
        ]
    };
    table(&["ID", "FROM", "TO", "RATE", "BY", "PATH", "STATE"], rows.iter().map(row))
}
