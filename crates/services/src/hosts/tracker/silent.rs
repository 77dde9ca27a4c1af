//! Hosts that answer no probe: uses the packet counts of their switches.

use std::time::Duration;

use bellrock_api::{HostGone, HostId, SwitchPort, Topology};

use super::{COUNTED_WITHIN, HostTracker, PendingProbe, ProbeReason};
use crate::hosts::counting::CountedHost;

impl HostTracker {
    /// Requests the packet count of a host from its switch.
    pub(super) fn count(&mut self, host: HostId) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        if !std::mem::replace(&mut entry.is_counted, true) {
            self.counts.push(CountedHost { host, at: entry.at });
        }
    }

    /// Requests the packet count, and leaves the host alone until the answer or [`COUNTED_WITHIN`].
    pub(super) fn count_for(&mut self, host: HostId, why: ProbeReason, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let until = now + COUNTED_WITHIN;
        entry.asked = Some(PendingProbe { why, until, again: None, packets: None });
        self.count(host);
        self.look_at(host);
    }

    /// Handles a switch's packet count of a host. `None` if the switch did not answer.
    pub(in crate::hosts) fn counted(
        &mut self,
        CountedHost { host, at }: CountedHost,
        packets: Option<u64>,
        topology: &Topology,
        now: Duration,
    ) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        entry.is_counted = false;
        // Flows that no packet has used prove nothing.
        let packets = packets.filter(|packets| *packets > 0 && entry.at == at);
        let Some(asked) = &mut entry.asked else { return };
        match asked.why {
            ProbeReason::Claim(_) => asked.packets = packets,
            ProbeReason::SilentClaim(to, before) => match packets {
                Some(packets) if packets > before => self.refuse_claim(host, to, now),
                _ => self.claim_over(host, to, topology, now),
            },
            ProbeReason::Silent => {
                // A lower count is a sign of life too: old flows are gone, and new ones have
                // counted.
                if packets.is_some() && packets != entry.packets {
                    (entry.packets, entry.seen, entry.asked) = (packets, now, None);
                    self.look_at(host);
                } else {
                    self.forget(host, HostGone::Aged);
                }
            }
            ProbeReason::Aged(_) | ProbeReason::Address(..) | ProbeReason::Returned => {}
        }
    }

    /// Accepts a claim: moves a host to the port that claims it, if that is an edge port.
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
