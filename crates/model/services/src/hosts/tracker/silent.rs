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
    pub(super) fn request_count(&mut self, host: HostId, reason: ProbeReason, now: Duration) {
        let Some(entry) = self.entries.get_mut(&host) else { return };
        let deadline = now + COUNTED_WITHIN;
        entry.probe = Some(PendingProbe { reason, deadline, repeat_at: None, packets: None });
        self.count(host);
        self.reschedule(host);
    }

    /// Handles a switch's packet count of a host. `None` if the switch did not answer.
    pub(in crate::hosts) fn handle_count(
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
        let Some(probe) = &mut entry.probe else { return };
        match probe.reason {
            ProbeReason::Claim(_) => probe.packets = packets,
            ProbeReason::SilentClaim(to, before) => match packets {
                Some(packets) if packets > before => self.refuse_claim(host, to, now),
                _ => self.accept_claim(host, to, topology, now),
            },
            ProbeReason::Silent => {
                // A lower count is a sign of life too: old flows are gone, and new ones have
                // counted.
                if packets.is_some() && packets != entry.packets {
                    (entry.packets, entry.last_seen, entry.probe) = (packets, now, None);
                    self.reschedule(host);
                } else {
                    self.remove(host, HostGone::Aged);
                }
            }
            ProbeReason::Aged(_) | ProbeReason::Address(..) | ProbeReason::Returned => {}
        }
    }

    /// Accepts a claim: moves a host to the port that claims it, if that is an edge port.
    pub(super) fn accept_claim(
        &mut self,
        host: HostId,
        to: SwitchPort,
        topology: &Topology,
        now: Duration,
    ) {
        if let Some(entry) = self.entries.get_mut(&host) {
            entry.probe = None;
        }
        if topology.is_host_place(to) {
            self.move_host(host, to, now);
        }
        self.reschedule(host);
        self.claim_decided(host);
    }
}
