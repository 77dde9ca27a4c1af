//! Hosts that answer no probe: what the counters of their switches say of them.

use std::time::Duration;

use bellrock_api::{HostGone, HostId, SwitchPort, Topology};

use super::{Asked, COUNTED_WITHIN, Tracker, Why};
use crate::hosts::counting::Counted;

impl Tracker {
    /// Asks the switch of a host that does not answer how many packets from it it has counted.
    pub(super) fn count(&mut self, host: HostId) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if !std::mem::replace(&mut entry.is_counted, true) {
            self.counts.push(Counted { host, at: entry.at });
        }
    }

    /// The same, and nothing is done about the host until the switch has answered.
    pub(super) fn count_for(&mut self, host: HostId, why: Why, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let until = now + COUNTED_WITHIN;
        entry.asked = Some(Asked { why, until, again: None, packets: None });
        self.count(host);
        self.look_at(host);
    }

    /// A switch has reported how many packets from a host it has counted; `None` if it did not.
    pub(in crate::hosts) fn counted(
        &mut self,
        Counted { host, at }: Counted,
        packets: Option<u64>,
        topology: &Topology,
        now: Duration,
    ) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        entry.is_counted = false;
        // That it has flows which no packet has used says nothing.
        let packets = packets.filter(|packets| *packets > 0 && entry.at == at);
        let Some(asked) = &mut entry.asked else { return };
        match asked.why {
            Why::Claim(_) => asked.packets = packets,
            Why::SilentClaim(to, before) => match packets {
                Some(packets) if packets > before => self.refuse_claim(host, to, now),
                _ => self.claim_over(host, to, topology, now),
            },
            Why::Silent => {
                // Where flows went meanwhile there may be fewer: what is counted then is new.
                if packets.is_some() && packets != entry.packets {
                    (entry.packets, entry.seen, entry.asked) = (packets, now, None);
                    self.look_at(host);
                } else {
                    self.forget(host, HostGone::Aged);
                }
            }
            Why::Aged(_) | Why::Address(..) | Why::Returned => {}
        }
    }

    /// A host is where it was claimed to be, if hosts can be there.
    pub(super) fn claim_over(
        &mut self,
        host: HostId,
        to: SwitchPort,
        topology: &Topology,
        now: Duration,
    ) {
        if let Some(entry) = self.entries.get_mut(&host) {
            entry.asked = None;
        }
        if topology.is_edge(to) {
            self.moved(host, to, now);
        }
        self.look_at(host);
    }
}
