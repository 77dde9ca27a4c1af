//! The places of circuits' hosts, now or when they last sent.
//!
//! A silent host keeps its place, and its circuit is kept. The flows that an earlier run has left
//! show where hosts were before the controller started.

use std::collections::BTreeMap;

use bellrock_api::{Field, HostId, Hosts, MacAddr, Match, Network, Port, SwitchPort};
use bellrock_services::desired::FoundFlows;
use bellrock_services::hosts::believe;

use super::circuit::{Circuit, Endpoint};

/// The hosts that are endpoints, each with its last place.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointHosts(BTreeMap<MacAddr, Option<HostPosition>>);

/// A host at a port, in a VLAN.
pub(super) type HostPosition = (SwitchPort, Option<u16>);

impl EndpointHosts {
    /// Keeps the places of the hosts of these circuits, and forgets others.
    pub(super) fn retain<'c>(&mut self, circuits: impl Iterator<Item = &'c Circuit>) {
        let endpoints = circuits.flat_map(|circuit| &circuit.endpoints);
        let host = |endpoint: &Endpoint| match endpoint {
            Endpoint::Host(mac) => Some((*mac, self.last_position(*mac))),
            Endpoint::Port(..) => None,
        };
        let hosts = endpoints.filter_map(host).collect();
        self.0 = hosts;
    }

    /// The present or last place of a host.
    pub(super) fn last_position(&self, mac: MacAddr) -> Option<HostPosition> {
        self.0.get(&mac).copied().flatten()
    }

    /// Updates the places of hosts.
    pub(super) fn update(&mut self, hosts: &Hosts) {
        for (mac, place) in &mut self.0 {
            let mut all = hosts.of_mac(*mac);
            if let (Some(host), None) = (all.next(), all.next()) {
                *place = Some((host.at, host.id.vlan));
            }
        }
    }

    /// Returns whether a flow may be the entrance of such a host to its circuit.
    pub(super) fn is_entrance(&self, matching: &Match) -> bool {
        entrance(matching).is_some_and(|(mac, _)| self.0.contains_key(&mac))
    }

    /// Recalls the places of hosts that have not sent yet, from the flows by which they entered
    /// their circuits. Host tracking probes these places before it accepts another place.
    pub(super) fn recall(&mut self, found: &FoundFlows, network: &Network) {
        let mut recalled = Vec::new();
        for (dpid, matches) in found {
            for (mac, (port, vlan)) in matches.iter().filter_map(entrance) {
                if let Some(place @ None) = self.0.get_mut(&mac) {
                    let at = SwitchPort::new(*dpid, port);
                    *place = Some((at, vlan));
                    recalled.push((HostId::new(mac, vlan), at));
                }
            }
        }
        if !recalled.is_empty() {
            believe(network, recalled);
        }
    }

    /// Recalls the places of hosts that have not sent yet, from those of the stored routes.
    pub(super) fn recall_stored(
        &mut self,
        stored: impl Iterator<Item = (MacAddr, HostPosition)>,
        network: &Network,
    ) {
        let mut recalled = Vec::new();
        for (mac, (at, vlan)) in stored {
            if let Some(known @ None) = self.0.get_mut(&mac) {
                *known = Some((at, vlan));
                recalled.push((HostId::new(mac, vlan), at));
            }
        }
        if !recalled.is_empty() {
            believe(network, recalled);
        }
    }
}

/// Source, ingress port and VLAN of a flow by which a host enters a circuit.
fn entrance(matching: &Match) -> Option<(MacAddr, (Port, Option<u16>))> {
    let value = |field| matching.value(field).filter(|_| !matching.is_masked(field));
    let mac = MacAddr::from_u64(value(Field::EthSrc)? as u64);
    let port = Port(value(Field::InPort)? as u32);
    let vlan = value(Field::VlanVid)? as u16 & !Match::VLAN_PRESENT;
    Some((mac, (port, (vlan != 0).then_some(vlan))))
}

#[cfg(test)]
mod tests {
    use bellrock_api::runtime::EmptyNetwork;
    use bellrock_api::{Dpid, Host};

    use super::*;

    #[test]
    fn a_host_is_where_it_was_until_it_is_elsewhere() {
        let circuit: Circuit = "blue 02:00:00:00:00:01 3:1".parse().unwrap();
        let mut places = EndpointHosts::default();
        places.retain([&circuit].into_iter());
        let (mac, other) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let at = |port| SwitchPort::new(Dpid(1), Port(port));
        let enters = |mac, port| Match::any().in_port(Port(port)).eth_src(mac);
        assert!(places.is_entrance(&enters(mac, 4).vlan_id(7)));
        for others in [enters(other, 4).untagged(), enters(mac, 4), Match::any().eth_src(mac)] {
            assert!(!places.is_entrance(&others), "{others}");
        }
        let network = EmptyNetwork::network();
        places.recall(&[(Dpid(1), vec![enters(mac, 4).vlan_id(7)])].into(), &network);
        assert_eq!(places.last_position(mac), Some((at(4), Some(7))));
        places.update(&Hosts::default());
        assert_eq!(places.last_position(mac), Some((at(4), Some(7))), "nobody was heard");
        let mut hosts = Hosts::default();
        let (addresses, since) = (Vec::new(), std::time::Duration::ZERO);
        hosts.insert(Host { id: HostId::new(mac, None), at: at(5), addresses, since });
        places.update(&hosts);
        places.recall(&[(Dpid(1), vec![enters(mac, 4).vlan_id(7)])].into(), &network);
        assert_eq!(
            (places.last_position(mac), places.last_position(other)),
            (Some((at(5), None)), None)
        );
        // A circuit with more hosts keeps the known places.
        let both: Circuit = "blue 02:00:00:00:00:01 02:00:00:00:00:02".parse().unwrap();
        places.retain([&both].into_iter());
        assert_eq!(places.last_position(mac), Some((at(5), None)));
        assert!(places.is_entrance(&enters(other, 4).untagged()));
    }
}
