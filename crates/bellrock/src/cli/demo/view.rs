//! What the demo shows: plain data, taken from the network and the controller a few times a second.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::cli::amounts::{BitRate, Bytes, Clock, Short};

/// Samples that the curves go back.
const HISTORY: usize = 240;

/// Lines of news that are kept.
const NEWS: usize = 100;

/// All that is shown.
pub(super) struct View {
    pub(super) controller: SocketAddr,
    pub(super) topology: String,
    pub(super) elapsed: Duration,
    /// When it ends by itself, since the start.
    pub(super) end: Option<Duration>,
    pub(super) switches: Vec<SwitchView>,
    pub(super) hosts: Vec<HostView>,
    pub(super) rates: Rates,
    pub(super) totals: Totals,
    /// Packet-ins and frames per second, oldest first.
    pub(super) packet_in_curve: VecDeque<u64>,
    pub(super) frame_curve: VecDeque<u64>,
    /// What has happened, oldest first.
    pub(super) news: VecDeque<(Duration, String)>,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SwitchView {
    pub(super) name: String,
    /// The version that is spoken with the controller; None is no connection.
    pub(super) version: Option<String>,
    pub(super) flows: usize,
    pub(super) packet_ins_per_second: f64,
    pub(super) frames_per_second: f64,
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostView {
    pub(super) name: String,
    pub(super) ip: Ipv4Addr,
    /// The switch and port that it is plugged into.
    pub(super) place: String,
    pub(super) sent_bits_per_second: f64,
    pub(super) received_bits_per_second: f64,
    /// The round trip of its last ping that was answered.
    pub(super) round_trip: Option<Duration>,
}

/// Per second, over the last moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) packet_ins: f64,
    pub(super) frames: f64,
    /// What hosts received, in bits.
    pub(super) bits: f64,
}

/// Since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Switches that are connected.
    pub(super) connected: usize,
    /// Flows in all switches.
    pub(super) flows: usize,
    pub(super) packet_ins: u64,
    /// Frames that switches took in.
    pub(super) frames: u64,
    /// Bytes that hosts received.
    pub(super) bytes: u64,
    pub(super) pings: u64,
    pub(super) lost: u64,
    pub(super) streams: u64,
}

impl View {
    pub(super) fn new(controller: SocketAddr, topology: String, end: Option<Duration>) -> Self {
        View {
            controller,
            topology,
            elapsed: Duration::ZERO,
            end,
            switches: Vec::new(),
            hosts: Vec::new(),
            rates: Rates::default(),
            totals: Totals::default(),
            packet_in_curve: VecDeque::new(),
            frame_curve: VecDeque::new(),
            news: VecDeque::new(),
        }
    }

    /// Something has happened.
    pub(super) fn tell(&mut self, what: String) {
        if self.news.len() == NEWS {
            self.news.pop_front();
        }
        self.news.push_back((self.elapsed, what));
    }

    /// These rates are those of the last moment.
    pub(super) fn rate(&mut self, rates: Rates) {
        self.rates = rates;
        for (curve, rate) in
            [(&mut self.packet_in_curve, rates.packet_ins), (&mut self.frame_curve, rates.frames)]
        {
            if curve.len() == HISTORY {
                curve.pop_front();
            }
            curve.push_back(rate.round() as u64);
        }
    }

    /// One line of how it is.
    pub(super) fn line(&self) -> String {
        let Totals { connected, flows, pings, lost, .. } = self.totals;
        let Rates { packet_ins, frames, bits } = self.rates;
        let switches = self.switches.len();
        format!(
            "{}  switches {connected}/{switches}  flows {flows}  packet-ins {}/s  frames {}/s  \
             carried {}  pings {pings}, {lost} lost",
            Clock(self.elapsed),
            Short(packet_ins),
            Short(frames),
            BitRate(bits),
        )
    }

    /// What there was, in the end.
    pub(super) fn summary(&self) -> String {
        let Totals { flows, packet_ins, frames, bytes, pings, lost, streams, .. } = self.totals;
        let (switches, hosts) = (self.switches.len(), self.hosts.len());
        let alone = match frames {
            0 => 0.0,
            _ => 100.0 * (1.0 - packet_ins as f64 / frames as f64).max(0.0),
        };
        format!(
            "{switches} switches and {hosts} hosts ({}) under the learning switch for {}:\n\
             {pings} pings, {lost} of them lost; streams: {streams}; {} carried\n\
             {frames} frames through the switches, {packet_ins} of them asked about at the controller: \
             {alone:.2} % went by the {flows} flows that it installed\n\
             Next: `bellrock emulate` has a prompt for such a network, `bellrock run` is the controller \
             for real ones.\n",
            self.topology,
            Clock(self.elapsed),
            Bytes(bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_and_news_are_bounded() {
        let mut view = View::new("127.0.0.1:1".parse().unwrap(), "tree:2,3".into(), None);
        for _ in 0..10 * HISTORY {
            view.rate(Rates::default());
            view.tell(String::new());
        }
        assert_eq!((view.frame_curve.len(), view.news.len()), (HISTORY, NEWS));
    }
}
