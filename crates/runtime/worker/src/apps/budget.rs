//! Budgets of packet-ins: the limit of a switch per second, and its share while its worker is
//! overloaded. Ports share them fairly.
//!
//! A switch without a limit whose worker keeps up has no budget, so its packets cost nothing more.
//! Only packet-ins are dropped. All other messages of the switch are processed, and come to their
//! turn sooner.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::openflow::{PacketInView, Version, frame};
use bellrock_api::{AppEvent, Dpid, Port, RateLimit, Repeats};
use tracing::warn;

use crate::apps::Worker;
use crate::connection::Drive;
use crate::port_counts::key_of;
use crate::transport::{ConnectionKey, Transport};

/// A switch whose bytes wait for too long gets the packet-ins of one in so many bytes of a usual
/// read through: few enough that the others wait no longer for it.
const SHARE_OF_TURN: usize = 4;

/// Minimum time between two reports about the same switch.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Maximum number of switches with reports of their own. Further ones share one.
const SWITCHES_REPORTED_APART: usize = 1024;

/// Why a packet-in is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropReason {
    /// The switch sends more than its limit a second.
    Limit,
    /// The worker is overloaded.
    Overload,
}

/// The budget of a switch's packet-ins.
#[derive(Debug, Default)]
pub(crate) struct PacketBudget {
    limit: Option<RateLimit>,
    /// Set in a turn that brought more than may pass.
    shares: Option<PortShares>,
    over_limit: u64,
}

/// What may pass in one turn, for each port.
#[derive(Debug)]
struct PortShares {
    reason: DropReason,
    ports: BTreeMap<Port, PortShare>,
}

#[derive(Debug, Default)]
struct PortShare {
    packets: u64,
    allowed: u64,
    dropped: u64,
}

impl PacketBudget {
    /// The budget of a switch with this limit a second, if there is one.
    pub(crate) fn of_limit(limit: Option<u32>) -> Option<Box<Self>> {
        let limit = limit.map(RateLimit::per_second);
        limit.is_some().then(|| Box::new(PacketBudget { limit, ..PacketBudget::default() }))
    }

    /// Begins a turn with these bytes. `share_bytes`: the packet-ins of about so many bytes may
    /// pass.
    fn begin(
        &mut self,
        version: Version,
        stream: &[u8],
        share_bytes: Option<usize>,
        now: Duration,
    ) {
        let mut ports = BTreeMap::<Port, PortShare>::new();
        let (mut rest, mut total) = (stream, 0);
        while let Some((port, remaining)) = next_message(version, rest) {
            if let Some(port) = port {
                ports.entry(key_of(&ports, port)).or_default().packets += 1;
                total += 1;
            }
            rest = remaining;
        }
        let tokens = self.limit.map(|limit| (limit.available(now), DropReason::Limit));
        let share = share_bytes.map(|bytes| {
            let of_bytes = total * bytes as u64 / stream.len().max(1) as u64;
            (of_bytes.max(1), DropReason::Overload)
        });
        let smallest = [tokens, share].into_iter().flatten().min_by_key(|(packets, _)| *packets);
        self.shares = smallest.filter(|(packets, _)| *packets < total).map(|(packets, reason)| {
            distribute(&mut ports, packets, now);
            PortShares { reason, ports }
        });
    }

    /// Whether this packet-in may pass.
    #[cold]
    #[inline(never)]
    pub(crate) fn pass(&mut self, version: Version, message: &[u8], now: Duration) -> bool {
        if let Some(shares) = &mut self.shares {
            let port = port_of(version, message).unwrap_or(Port::ANY);
            let port = key_of(&shares.ports, port);
            let share = shares.ports.entry(port).or_default();
            let Some(left) = share.allowed.checked_sub(1) else {
                share.dropped += 1;
                return false;
            };
            share.allowed = left;
        }
        let may_pass = self.limit.as_mut().is_none_or(|limit| limit.pass(now));
        self.over_limit += u64::from(!may_pass);
        may_pass
    }
}

/// Divides `packets` among the ports: what a port does not use is left to the others, so a port is
/// cut only to what every other port could have too (max-min fairness).
fn distribute(ports: &mut BTreeMap<Port, PortShare>, mut packets: u64, now: Duration) {
    // Among equal ports, another one is first each time.
    let turn = (now.as_micros() as u32).wrapping_mul(0x9e37_79b9);
    let mut order: Vec<(u64, u32, &mut PortShare)> = ports
        .iter_mut()
        .map(|(port, share)| (share.packets, port.0.wrapping_mul(0x85eb_ca6b) ^ turn, share))
        .collect();
    order.sort_unstable_by_key(|(packets, place, _)| (*packets, *place));
    let mut left = order.len() as u64;
    for (_, _, share) in order {
        share.allowed = share.packets.min(packets.div_ceil(left.max(1)));
        packets -= share.allowed;
        left -= 1;
    }
}

/// The ingress port of the message at the start of a stream, if it is a packet-in, and the rest.
fn next_message(version: Version, stream: &[u8]) -> Option<(Option<Port>, &[u8])> {
    if let Some((message, rest)) = PacketInView::split_common(version, stream) {
        return Some((port_of(version, message), rest));
    }
    let message = frame(stream).ok()??.bytes;
    Some((port_of(version, message), stream.get(message.len()..)?))
}

fn port_of(version: Version, message: &[u8]) -> Option<Port> {
    let common = PacketInView::split_common(version, message)
        .and_then(|(message, _)| PacketInView::common(version, message));
    common.or_else(|| PacketInView::of_any_form(message)).map(|packet| packet.in_port())
}

/// Limits the reports about drops.
pub(crate) fn drop_reports() -> Repeats<Option<Dpid>> {
    Repeats::new(REPORTED_EVERY, SWITCHES_REPORTED_APART)
}

impl Worker {
    /// A whole read, of which only a share of the packet-ins reaches the apps.
    pub(super) fn read_with_shares<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) -> bool {
        let bytes = std::mem::replace(&mut self.turn_bytes, self.settings.limits.bytes_per_turn);
        self.user.share_bytes = Some((bytes / SHARE_OF_TURN).max(1));
        let has_more = self.read(key, now, transport);
        (self.turn_bytes, self.user.share_bytes) = (bytes, None);
        has_more
    }

    /// Begins a turn of a switch with a budget.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_budget(&mut self, key: ConnectionKey, stream: &[u8], now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let version = connection.session.version();
        let budget = connection.own.budget.get_or_insert_default();
        budget.begin(version, stream, self.user.share_bytes, now);
    }

    /// Ends the turn: counts what was dropped.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_budget(&mut self, key: ConnectionKey, now: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(budget) = &mut connection.own.budget else { return };
        let shares = budget.shares.take();
        let over_limit = std::mem::take(&mut budget.over_limit);
        if budget.limit.is_none() {
            connection.own.budget = None;
        }
        self.counters.packet_ins_over_limit.add(over_limit);
        let mut dropped = over_limit;
        let reason = shares.as_ref().map(|shares| shares.reason);
        let ports = shares.into_iter().flat_map(|shares| shares.ports);
        let mut worst = None;
        for (port, share) in ports.filter(|(_, share)| share.dropped > 0) {
            connection.counts.add_dropped(port, share.dropped);
            dropped += share.dropped;
            worst = worst.max(Some((share.dropped, port)));
        }
        connection.counts.packet_ins_ignored.add(dropped);
        let of_shares = dropped - over_limit;
        match reason {
            Some(DropReason::Limit) => self.counters.packet_ins_over_limit.add(of_shares),
            Some(DropReason::Overload) => self.counters.packet_ins_shed.add(of_shares),
            None => {}
        }
        let dpid = connection.dpid();
        if let (Some(DropReason::Overload), Some(dpid), Some((_, port))) = (reason, dpid, worst) {
            self.report_drops(dpid, port, now);
        }
    }

    fn report_drops(&mut self, dpid: Dpid, port: Port, now: Duration) {
        let Some((key, _)) = self.user.drop_reports.note(Some(dpid), None, now) else { return };
        let what = match key {
            Some(dpid) => format!("switch {dpid} floods, most from port {port}"),
            None => "further switches flood".to_owned(),
        };
        let text = format!(
            "{what}: its worker is overloaded, and drops a part of its packet-ins. `bellrock ports` has \
             the drops of each port"
        );
        if self.log.allows(now, &self.counters) {
            warn!(worker = self.index, "{text}");
        }
        self.user.network.publish(AppEvent::new("packet_ins_dropped", &text).alarming());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(wanted: &[u64], packets: u64, at: Duration) -> Vec<u64> {
        let port = |(n, packets): (usize, &u64)| {
            (Port(n as u32 + 1), PortShare { packets: *packets, ..PortShare::default() })
        };
        let mut ports = wanted.iter().enumerate().map(port).collect();
        distribute(&mut ports, packets, at);
        ports.values().map(|share| share.allowed).collect()
    }

    #[test]
    fn a_port_is_cut_only_to_what_each_other_port_could_have_too() {
        let at = Duration::ZERO;
        assert_eq!(shared(&[3, 1000, 5], 108, at), [3, 100, 5]);
        assert_eq!(shared(&[1000, 1000], 100, at), [50, 50]);
        assert_eq!(shared(&[1000, 1], 1, at), [0, 1], "the modest port first");
        assert_eq!(shared(&[7, 8], 100, at), [7, 8]);
        assert_eq!(shared(&[7, 8], 0, at), [0, 0]);
        assert_eq!(shared(&[], 9, at), []);
    }

    #[test]
    fn ports_that_send_the_same_take_turns_when_there_is_not_one_for_each() {
        let mut got = [0; 8];
        for turn in 0..4000 {
            let allowed = shared(&[5; 8], 2, Duration::from_micros(137 * turn));
            assert_eq!(allowed.iter().sum::<u64>(), 2);
            got.iter_mut().zip(allowed).for_each(|(got, allowed)| *got += allowed);
        }
        assert!(got.iter().all(|got| (500..2000).contains(got)), "{got:?}");
    }
}
