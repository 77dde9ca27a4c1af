//! Labs with the app `bandwidth`, and helpers for its tests.
#![allow(missing_docs, unreachable_pub, reason = "a test program has no interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::runtime::PromiseFuture;
use bellrock_api::{Cookie, Dpid, Port, SwitchPort, Version};
use bellrock_apps::Routing;
use bellrock_apps::bandwidth::{
    Bandwidth, BandwidthSettings, LinkDirection, NotReserved, Reservation, ReservationRequest,
    ReservationState, Reservations,
};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::{linear, ring};

use crate::known::known;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// Four switches in a ring with a host each; all ports report 10 Gbit/s.
pub fn lab(version: Version, settings: BandwidthSettings) -> (Lab, Reservations) {
    let reservations = Reservations::new(settings);
    let lab = Lab::seeded(7).topology(ring(4, 1)).version(version);
    let lab = known(lab.app(Bandwidth::new(&reservations)).run(Routing::default()));
    (lab, reservations)
}

pub fn request(from: &str, to: &str, rate: &str) -> ReservationRequest {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    ReservationRequest { from, to, rate: rate.parse().unwrap(), queue: None, wait: Duration::ZERO }
}

pub fn ask<T>(answer: &mut PromiseFuture<T>) -> Option<T> {
    match Pin::new(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer.unwrap()),
        Poll::Pending => None,
    }
}

/// Runs the lab until there is an answer.
pub fn wait<T>(lab: &mut Lab, mut answer: PromiseFuture<T>) -> T {
    let mut told = None;
    lab.run_until(PATIENCE, |_| {
        told = told.take().or_else(|| ask(&mut answer));
        told.is_some()
    });
    told.unwrap()
}

pub fn reserve(
    lab: &mut Lab,
    book: &Reservations,
    request: ReservationRequest,
) -> Result<Reservation, NotReserved> {
    let answer = book.reserve(request);
    wait(lab, answer)
}

/// The switches of a reservation.
pub fn switches(reservation: &Reservation) -> Vec<u64> {
    let ReservationState::Installed(ports) = &reservation.state else { panic!("{reservation:?}") };
    ports.iter().map(|port| port.dpid.0).collect()
}

/// Reserved rate of all lines of all switches.
pub fn reserved(book: &Reservations) -> Vec<(LinkDirection, u64)> {
    let ports = (1..=4).flat_map(|dpid| (1..=4).map(move |port| (Dpid(dpid), Port(port))));
    let lines = ports.flat_map(|(dpid, port)| {
        let at = SwitchPort::new(dpid, port);
        [LinkDirection::From(at), LinkDirection::To(at)]
    });
    let lines = lines.map(|line| (line, book.reserved(line).0));
    lines.filter(|(_, kbps)| *kbps > 0).collect()
}

pub fn flows_of(lab: &Lab, text: &str) -> usize {
    let all = ["s1", "s2", "s3", "s4"].map(|switch| lab.flows(switch));
    all.iter().flatten().filter(|flow| flow.contains(text)).count()
}

/// Four switches in a line: there is no other path.
pub fn line_lab() -> (Lab, Reservations) {
    let reservations = Reservations::new(BandwidthSettings::default());
    let lab = Lab::seeded(7).topology(linear(4, 1)).version(Version::V1_3);
    let lab = known(lab.app(Bandwidth::new(&reservations)).run(Routing::default()));
    (lab, reservations)
}

/// The match of the first reservation's flow in a switch, and its packet count.
pub fn flow_of_first(lab: &Lab, switch: &str) -> Option<(String, u64)> {
    let cookie = Cookie::of_app("bandwidth");
    let tables = lab.switch(switch).datapath().tables();
    let mut flows = tables.iter().flat_map(|(_, table)| table.flows().collect::<Vec<_>>());
    let (_, flow) = flows.find(|(_, flow)| cookie.owns(flow.cookie))?;
    Some((flow.matching().to_string(), flow.packet_count))
}
