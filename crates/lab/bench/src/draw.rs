//! Chooses the next packet: a pure function from a switch and a number to a packet.
//!
//! The generator keeps only whether a packet in flight is answered. When an answer comes, the
//! packet is computed again from its number. So memory does not grow with the load, and what was
//! sent cannot be confused with what should have been sent.

use std::ops::Range;

use crate::load::{Destinations, HostOrder, Load};
use crate::packet::{LoadPacket, MacNumber, UPLINK_PORT, host_port};

/// Mask of the numbers for which `remainder` is exact: the first 2^40.
const NUMBERS: u64 = (1 << 40) - 1;

/// The rule by which the packets of all switches of a test are drawn.
#[derive(Clone, Copy, Debug)]
pub struct TrafficPattern {
    macs: u32,
    order: HostOrder,
    destinations: Destinations,
    seed: u64,
    /// 2^64 divided by `macs`, rounded up. Multiplication by it replaces division by `macs`.
    reciprocal: u64,
    /// Natural logarithm of `macs + 1`, for Zipf.
    log_macs: f64,
}

impl TrafficPattern {
    /// Returns the pattern of a load.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        TrafficPattern {
            macs: load.macs,
            order: load.order,
            destinations: load.destinations,
            seed: load.seed,
            reciprocal: (u64::MAX / u64::from(load.macs)).wrapping_add(1),
            log_macs: f64::from(load.macs + 1).ln(),
        }
    }

    /// Returns the packet with this number of the switch with this datapath id.
    #[must_use]
    #[inline(always)]
    pub fn packet(&self, dpid: u32, number: u64) -> LoadPacket {
        let random = match (self.order, self.destinations) {
            (HostOrder::InOrder, Destinations::One) => 0,
            _ => mix(self.seed ^ u64::from(dpid) << 40 ^ number.wrapping_mul(GOLDEN)),
        };
        let (high, low) = ((random >> 32) as u32, random as u32);
        let from = match self.order {
            HostOrder::InOrder => self.remainder(number),
            HostOrder::Random => self.scale(high),
            HostOrder::Zipf => self.zipf(high),
        };
        let in_port = host_port(from);
        let (to, out_port) = match self.destinations {
            Destinations::One => (self.macs, UPLINK_PORT),
            Destinations::Uniform => self.elsewhere(self.scale(low), in_port),
            Destinations::Zipf => self.elsewhere(self.zipf(low), in_port),
        };
        let (src, dst) = (MacNumber::of(in_port, dpid, from), MacNumber::of(out_port, dpid, to));
        LoadPacket { number, in_port, out_port, src, dst }
    }

    /// Returns the packets with these numbers.
    #[inline(always)]
    pub fn packets(
        &self,
        dpid: u32,
        numbers: Range<u64>,
    ) -> impl Iterator<Item = LoadPacket> + use<> {
        let pattern = *self;
        numbers.map(move |number| pattern.packet(dpid, number))
    }

    /// Returns an iterator from packet `first` on that makes each packet from the one before. It is
    /// much faster than drawing each, but exists only for hosts in order with one destination.
    #[inline(always)]
    pub(crate) fn in_turn(&self, dpid: u32, first: u64) -> Option<InTurn> {
        let in_turn = (self.order, self.destinations) == (HostOrder::InOrder, Destinations::One);
        in_turn.then(|| InTurn {
            number: first,
            host: self.remainder(first),
            macs: self.macs,
            src: MacNumber::of(0, dpid, 0),
            dst: MacNumber::of(UPLINK_PORT, dpid, self.macs),
        })
    }

    /// Number of hosts that have to be known before the test, for [`TrafficPattern::learnt`].
    #[must_use]
    pub fn destinations(&self) -> u32 {
        match self.destinations {
            Destinations::One => 1,
            Destinations::Uniform | Destinations::Zipf => self.macs,
        }
    }

    /// Returns the port and the address of a host that has to be known before the test.
    #[must_use]
    pub fn learnt(&self, dpid: u32, index: u32) -> (u32, MacNumber) {
        let (port, host) = match self.destinations {
            Destinations::One => (UPLINK_PORT, self.macs),
            Destinations::Uniform | Destinations::Zipf => (host_port(index), index),
        };
        (port, MacNumber::of(port, dpid, host))
    }

    /// Returns `number` modulo `macs`, for the first 2^40 numbers; larger ones start again. (The
    /// error of the reciprocal is below `macs / 2^64`, so the quotient is right below
    /// `2^64 / macs`.)
    #[inline]
    fn remainder(&self, number: u64) -> u32 {
        let number = number & NUMBERS;
        let quotient = match self.macs {
            1 => number,
            _ => ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64,
        };
        (number - quotient * u64::from(self.macs)) as u32
    }

    /// Returns 0 to `macs - 1`, all equally likely.
    #[inline]
    fn scale(&self, random: u32) -> u32 {
        ((u64::from(random) * u64::from(self.macs)) >> 32) as u32
    }

    /// Returns 0 to `macs - 1`. Value k has the probability `ln((k + 2) / (k + 1)) / ln(macs + 1)`,
    /// which is about proportional to `1 / (k + 1.5)`.
    #[inline]
    fn zipf(&self, random: u32) -> u32 {
        let unit = f64::from(random) / (f64::from(u32::MAX) + 1.0);
        ((unit * self.log_macs).exp() as u32).clamp(1, self.macs) - 1
    }

    /// Returns the host drawn, or its neighbour if it is at the sender's port: a switch does not
    /// forward a packet to the port that it came from.
    #[inline]
    fn elsewhere(&self, host: u32, in_port: u32) -> (u32, u32) {
        let host = match host {
            host if host_port(host) != in_port => host,
            host if host + 1 < self.macs => host + 1,
            host => host - 1,
        };
        (host, host_port(host))
    }
}

/// See [`TrafficPattern::in_turn`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTurn {
    number: u64,
    host: u32,
    macs: u32,
    /// The address of host 0 without a port.
    src: MacNumber,
    dst: MacNumber,
}

impl Iterator for InTurn {
    type Item = LoadPacket;

    #[inline(always)]
    fn next(&mut self) -> Option<LoadPacket> {
        let (number, host) = (self.number, self.host);
        let in_port = host_port(host);
        let src = self.src.moved(in_port, host);
        self.number = number + 1;
        let starts_again = host + 1 == self.macs || self.number & NUMBERS == 0;
        self.host = if starts_again { 0 } else { host + 1 };
        Some(LoadPacket { number, in_port, out_port: UPLINK_PORT, src, dst: self.dst })
    }
}

/// The odd number nearest to 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every
/// bit of `x`.
#[inline]
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn pattern(macs: u32, order: HostOrder, destinations: Destinations) -> TrafficPattern {
        TrafficPattern::new(&Load { macs, order, destinations, ..Load::default() })
    }

    #[test]
    fn every_packet_goes_from_a_host_to_one_that_is_learnt_at_another_port() {
        for macs in [1, 2, 3, 4, 5, 6, 1000] {
            for order in [HostOrder::InOrder, HostOrder::Random, HostOrder::Zipf] {
                for to in [Destinations::One, Destinations::Uniform, Destinations::Zipf] {
                    if macs == 1 && to != Destinations::One {
                        continue;
                    }
                    let pattern = pattern(macs, order, to);
                    let learnt: BTreeSet<_> =
                        (0..pattern.destinations()).map(|index| pattern.learnt(9, index)).collect();
                    for number in 0..5_000 {
                        let packet = pattern.packet(9, number);
                        assert!(learnt.contains(&(packet.out_port, packet.dst)), "{packet:?}");
                        assert_eq!(packet.src.port(), packet.in_port);
                        assert_ne!(packet.in_port, packet.out_port);
                        assert_eq!(packet, pattern.packet(9, number));
                    }
                }
            }
        }
    }

    fn sources(order: HostOrder, macs: u32, packets: u64) -> BTreeMap<MacNumber, u32> {
        let pattern = pattern(macs, order, Destinations::One);
        let mut seen = BTreeMap::new();
        for number in 0..packets {
            *seen.entry(pattern.packet(1, number).src).or_default() += 1;
        }
        seen
    }

    #[test]
    fn a_remainder_is_that_of_a_division() {
        for macs in [1, 2, 3, 7, 16, 1000, 9_999_991, 10_000_000] {
            let pattern = pattern(macs, HostOrder::InOrder, Destinations::One);
            for near in [0, 1 << 20, 1 << 32, (1 << 40) - 40_000_000] {
                for number in (near..near + 30_000_000).step_by(999_983).chain(near..near + 50) {
                    let right = (number % u64::from(macs)) as u32;
                    assert_eq!(pattern.remainder(number), right, "{number} % {macs}");
                }
                let multiple = near / u64::from(macs) * u64::from(macs) + u64::from(macs);
                assert_eq!(pattern.remainder(multiple), 0, "{multiple} % {macs}");
                assert_eq!(pattern.remainder(multiple - 1), macs - 1, "{multiple} - 1 % {macs}");
            }
        }
    }

    #[test]
    fn packets_in_turn_are_those_that_are_drawn_each() {
        for macs in [1, 2, 5, 1000, 10_000_000] {
            let pattern = pattern(macs, HostOrder::InOrder, Destinations::One);
            for first in [0, 3, 998, 9_999_990, (1 << 40) - 5] {
                let packets = pattern.in_turn(7, first).unwrap().take(1005);
                let drawn = pattern.packets(7, first..first + 1005);
                assert!(packets.eq(drawn), "{macs} {first}");
            }
            assert!(self::pattern(9, HostOrder::Random, Destinations::One).in_turn(7, 0).is_none());
        }
    }

    #[test]
    fn in_order_each_host_sends_equally_often() {
        let seen = sources(HostOrder::InOrder, 100, 1000);
        assert_eq!(seen.len(), 100);
        assert!(seen.values().all(|n| *n == 10));
    }

    #[test]
    fn at_random_all_hosts_send_about_equally_often() {
        let seen = sources(HostOrder::Random, 100, 100_000);
        assert_eq!(seen.len(), 100);
        assert!(seen.values().all(|n| (800..1200).contains(n)), "{seen:?}");
    }

    #[test]
    fn by_zipf_the_first_host_sends_much_more_often_than_the_hundredth() {
        let seen = sources(HostOrder::Zipf, 1000, 1_000_000);
        let count = |host: u32| {
            f64::from(*seen.get(&MacNumber::of(host_port(host), 1, host)).unwrap_or(&0))
        };
        let ratio = count(0) / count(99);
        // The expected ratio is ln(2) to ln(101/100).
        assert!((55.0..90.0).contains(&ratio), "{ratio}");
        assert!(seen.len() > 990, "{}", seen.len());
    }
}
