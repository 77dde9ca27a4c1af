//! Hosts that somebody looks for by an IPv4 address that no known host has, as after a restart of
//! the controller.
//!
//! All host ports are asked, from the address of probes: the answer comes to the controller
//! whatever flows there are.

use std::net::Ipv4Addr;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use bellrock_api::{
    Action, HostId, MacAddr, Network, Port, RateLimit, Switch, SwitchPort, Topology,
};

use super::probe::probe;

/// Maximum number of addresses that are asked for in a second. Each goes to all host ports.
pub const ASKED_PER_S: u32 = 16;

/// Maximum number of addresses that wait for the task. Further ones are not asked for.
const MAX_WAITING: usize = 64;

/// An address, and the VLAN of its host.
pub(super) type AskedAddress = (Ipv4Addr, Option<u16>);

/// The queue of the task.
struct AskedAddresses(Sender<AskedAddress>, Receiver<AskedAddress>);

impl Default for AskedAddresses {
    fn default() -> Self {
        let (sender, receiver) = async_channel::bounded(MAX_WAITING);
        AskedAddresses(sender, receiver)
    }
}

/// Asks at all host ports for the host with an address. If there is one, it is known a moment later
/// ([`Network::hosts`]). Does nothing if too many are asked for, or if host tracking does not run.
pub fn ask_for(network: &Network, ip: Ipv4Addr, vlan: Option<u16>) {
    let asked = network.extension::<AskedAddresses>();
    // The caller waits for a limited time.
    let _ = asked.0.try_send((ip, vlan));
}

/// Asks for addresses, in the task.
pub(super) struct Asker {
    pub(super) addresses: Receiver<AskedAddress>,
    limit: RateLimit,
}

impl Asker {
    pub(super) fn new(network: &Network) -> Self {
        let addresses = network.extension::<AskedAddresses>().1.clone();
        Asker { addresses, limit: RateLimit::per_second(ASKED_PER_S) }
    }

    /// Sends the question out of all host ports.
    pub(super) fn ask(
        &mut self,
        (ip, vlan): AskedAddress,
        network: &Network,
        topology: &Topology,
        now: Duration,
    ) {
        if !self.limit.pass(now) {
            return;
        }
        let frame = probe(HostId::new(MacAddr::BROADCAST, vlan), ip.into());
        for (dpid, ports) in &topology.switches {
            let Some(info) = network.reachable(*dpid) else { continue };
            let is_place = |port: &&Port| topology.is_host_place(SwitchPort::new(*dpid, **port));
            let actions: Vec<Action<'_>> =
                ports.iter().filter(is_place).map(|port| Action::output(*port)).collect();
            if !actions.is_empty() {
                // A question that is lost is one that nobody answers.
                let _ = network.send(*dpid, &Switch::own_packet(info.version, &frame, &actions));
            }
        }
    }
}
