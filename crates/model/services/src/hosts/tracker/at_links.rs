//! Hosts whose packets come in at the ports of a link only: an ordinary switch joins the two ports,
//! and forwards LLDP, so that discovery takes it for a cable.
//!
//! Packets of other hosts cross links too, and such a host may be new: then it is known at its own
//! port a moment later. So the event waits for [`AT_LINK_AFTER`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_api::{Event, HostId, SwitchPort, Topology};

use super::HostTracker;

/// How long packets of an unknown host must come in at a link before that is reported.
pub const AT_LINK_AFTER: Duration = Duration::from_secs(5);

/// Time without such a packet after which a host is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Maximum number of such hosts. Further ones are looked at when there is space.
const MAX_AT_LINKS: usize = 256;

/// Unknown hosts at links.
#[derive(Debug, Default)]
pub(super) struct HostsAtLinks {
    hosts: BTreeMap<HostId, Unknown>,
    /// Ports of links that were reported.
    reported: BTreeSet<SwitchPort>,
}

#[derive(Clone, Copy, Debug)]
struct Unknown {
    first: Duration,
    last: Duration,
}

impl HostTracker {
    /// Handles a packet of a host that came in at a port with a link.
    pub(in crate::hosts) fn handle_at_link(
        &mut self,
        host: HostId,
        at: SwitchPort,
        topology: &Topology,
        now: Duration,
    ) {
        // With too many hosts, some are known nowhere.
        let is_complete =
            self.entries.len() < self.settings.max_hosts && self.full_reported.is_empty();
        let is_known = self.entries.contains_key(&host) || self.believed.contains_key(&host);
        let Some(link) = topology.link(at).filter(|_| topology.segment(at).is_none()) else {
            return;
        };
        let seen = &mut self.at_links;
        if is_known || !is_complete {
            seen.hosts.remove(&host);
            return;
        }
        if seen.reported.contains(&at) {
            return;
        }
        seen.hosts.retain(|_, unknown| now < unknown.last + FORGOTTEN_AFTER);
        if seen.hosts.len() >= MAX_AT_LINKS && !seen.hosts.contains_key(&host) {
            return;
        }
        let unknown = seen.hosts.entry(host).or_insert(Unknown { first: now, last: now });
        unknown.last = now;
        if now >= unknown.first + AT_LINK_AFTER {
            let mut ports = [link.from, link.to];
            ports.sort_unstable();
            seen.reported.extend(ports);
            seen.hosts.clear();
            self.events.push(Event::HostAtLink { host, ports: ports.into() });
        }
    }

    /// Forgets links that are gone.
    pub(super) fn forget_links(&mut self, topology: &Topology) {
        self.at_links.reported.retain(|at| topology.is_trunk(*at));
    }
}
