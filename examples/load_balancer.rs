//! A load balancer: one virtual address in front of several hosts, at one switch.
//! `cargo run -p bellrock --features lab --example load_balancer`

// ANCHOR: app
use std::collections::HashMap;
use std::net::Ipv4Addr;

use bellrock::etherparse::LaxNetSlice;
use bellrock::packet::arp_request;
use bellrock::prelude::*;

/// The virtual address, and its Ethernet address.
const VIP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 100);
const VIP_MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x64]);

const IPV4: u16 = 0x0800;

/// Seconds without a packet until a client may get another backend.
const IDLE_S: u16 = 60;

/// Maximum number of clients whose ports are remembered.
const MAX_CLIENTS: usize = 10_000;

struct LoadBalancer {
    backends: Vec<Ipv4Addr>,
    /// Whether switches with OpenFlow 1.3 choose the backends, by a group.
    groups: bool,
}

impl App for LoadBalancer {
    type Handler = Balancer;

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Balancer {
        let backends = self.backends.iter().map(|ip| Backend { ip: *ip, at: None });
        Balancer {
            network: network.clone(),
            backends: backends.collect(),
            groups: self.groups && switch.version.has_groups(),
            clients: HashMap::new(),
        }
    }
}

/// State of one switch.
struct Balancer {
    network: Network,
    backends: Vec<Backend>,
    groups: bool,
    /// The ports of clients that asked for the virtual address.
    clients: HashMap<Ipv4Addr, Port>,
}

struct Backend {
    ip: Ipv4Addr,
    /// Its Ethernet address and port, once it has answered.
    at: Option<(MacAddr, Port)>,
}
// ANCHOR_END: app

// ANCHOR: handler
impl Handler for Balancer {
    /// Once a second, asks for the backends that have not answered yet.
    fn tick(&mut self, switch: &mut Switch) -> Result {
        for backend in self.backends.iter().filter(|backend| backend.at.is_none()) {
            let question = arp_request(VIP_MAC, VIP, backend.ip);
            switch.send_packet(&question, &[Action::output(Port::FLOOD)])?;
        }
        Ok(())
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
        if let Some(arp) = packet.arp() {
            if switch.answer_arp(packet, VIP, VIP_MAC)? {
                self.learn_client(switch, arp.sender_ip, packet.in_port())?;
                return Ok(Verdict::Consume);
            }
            self.learn_backend(switch, arp.sender_ip, arp.sender_mac, packet.in_port())?;
            let is_ours = arp.target_ip == VIP;
            return Ok(if is_ours { Verdict::Consume } else { Verdict::Pass });
        }
        let Some(LaxNetSlice::Ipv4(ip)) = packet.headers()?.net else { return Ok(Verdict::Pass) };
        if ip.header().destination_addr() != VIP {
            return Ok(Verdict::Pass);
        }
        self.balance(switch, packet, ip.header().source_addr())?;
        Ok(Verdict::Consume)
    }
}
// ANCHOR_END: handler

// ANCHOR: rewrite
impl Balancer {
    /// Gives a backend to a client without flows, by a flow in each direction. The client's address
    /// decides which: its second packet may come before the flows are installed.
    fn balance(&mut self, switch: &mut Switch, packet: &PacketIn, client: Ipv4Addr) -> Result {
        let known: Vec<_> = self.backends.iter().filter(|backend| backend.at.is_some()).collect();
        let turn = u32::from(client).checked_rem(known.len() as u32);
        let Some(backend) = turn.map(|turn| known[turn as usize]) else {
            return Err(HandlerError::new("no backend has answered yet"));
        };
        install_way_back(switch, backend, client, packet.in_port(), IDLE_S)?;

        let actions = backend.rewritten_to_it();
        let flow = to_vip().ipv4_src(client);
        switch.install(&FlowMod::add(&flow).idle_timeout(IDLE_S).actions(&actions))?;
        switch.packet_out_with(packet, &actions)?;
        Ok(())
    }
}

fn to_vip() -> Match {
    Match::any().eth_type(IPV4).ipv4_dst(VIP)
}

impl Backend {
    /// Actions that send packets to this backend. None until it has answered.
    fn rewritten_to_it(&self) -> Actions {
        let Some((mac, port)) = self.at else { return Actions::new() };
        Actions::new().set_eth_dst(mac).set_ipv4_dst(self.ip).output(port)
    }
}

/// Installs the flow for packets of a backend to a client: they come from the virtual address.
fn install_way_back(
    switch: &mut Switch,
    backend: &Backend,
    client: Ipv4Addr,
    port: Port,
    idle_s: u16,
) -> Result {
    let from_backend = Match::any().eth_type(IPV4).ipv4_src(backend.ip).ipv4_dst(client);
    let as_vip = Actions::new().set_eth_src(VIP_MAC).set_ipv4_src(VIP).output(port);
    switch.install(&FlowMod::add(&from_backend).idle_timeout(idle_s).actions(&as_vip))?;
    Ok(())
}
// ANCHOR_END: rewrite

// ANCHOR: group
/// The number of the group that spreads clients over backends.
const GROUP: u32 = 100;

impl Balancer {
    /// Remembers a backend that has answered or moved.
    fn learn_backend(
        &mut self,
        switch: &mut Switch,
        ip: Ipv4Addr,
        mac: MacAddr,
        port: Port,
    ) -> Result {
        let Some(backend) = self.backends.iter_mut().find(|backend| backend.ip == ip) else {
            return Ok(());
        };
        if backend.at.replace((mac, port)) == Some((mac, port)) || !self.groups {
            return Ok(());
        }
        for (client, port) in &self.clients {
            install_way_back(switch, backend, *client, *port, 0)?;
        }
        self.spread(switch.dpid());
        Ok(())
    }

    /// Remembers a client that asked for the virtual address. With a group, the controller does not
    /// see its packets, so the flows back from each backend are installed now.
    fn learn_client(&mut self, switch: &mut Switch, client: Ipv4Addr, port: Port) -> Result {
        if !self.groups || self.clients.len() == MAX_CLIENTS {
            return Ok(());
        }
        self.clients.insert(client, port);
        for backend in &self.backends {
            install_way_back(switch, backend, client, port, 0)?;
        }
        Ok(())
    }

    /// Lets the switch spread clients over all backends that have answered, with a bucket for each.
    fn spread(&self, dpid: Dpid) {
        let mut group = GroupEntry::new(GROUP, GroupType::Select);
        for backend in self.backends.iter().filter(|backend| backend.at.is_some()) {
            group = group.bucket(BucketEntry::of(&backend.rewritten_to_it()).weight(1));
        }
        // Removing a group removes its flow. Until it is back, clients use the controller.
        let changes = vec![
            Change::RemoveGroup(GROUP),
            Change::AddGroup(group),
            Change::Add(Flow::new(to_vip()).priority(1).group(GROUP)),
        ];
        let network = self.network.clone();
        self.network.spawn("spread clients", async move {
            for outcome in network.program(dpid, changes).await {
                if !outcome.is_installed() {
                    println!("switch {dpid}: the group is not as it should be: {outcome}");
                }
            }
        });
    }
}
// ANCHOR_END: group

// ANCHOR: main
/// Floods all other packets.
struct Hub;

impl Handler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

fn main() -> bellrock::Result {
    let backends = vec![Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
    bellrock::Controller::builder()
        .app(LoadBalancer { backends, groups: std::env::args().any(|word| word == "groups") })
        .app(per_switch("hub", |_| Hub))
        .run()
}
// ANCHOR_END: main

// ANCHOR: test
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock::lab::{FlowState, Lab, on_both_versions, single};
    use bellrock::packet::Arp;

    use super::*;

    /// Six hosts at one switch: h2 and h3 are backends.
    fn lab(version: Version, groups: bool) -> Lab {
        let backends = vec![Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
        let lab = Lab::seeded(7).topology(single(6)).version(version);
        let mut lab = lab.app(LoadBalancer { backends, groups }).run(per_switch("hub", |_| Hub));
        lab.run_for(Duration::from_secs(2));
        lab
    }

    on_both_versions!(clients_are_spread, a_group_spreads_clients, arp_is_answered);

    fn clients_are_spread(version: Version) {
        let mut lab = lab(version, false);
        for (client, backend) in [("h1", "h3"), ("h4", "h2"), ("h5", "h3"), ("h6", "h2")] {
            assert!(lab.ping_address(client, VIP), "{client}");
            let received = lab.udp_to_address(client, VIP, 10, Duration::from_millis(1));
            assert_eq!(received, [(backend.to_owned(), 10)].into(), "{client}");
        }
        assert_eq!(lab.tcp_to_address("h1", VIP, 100_000).state, FlowState::Done);
        assert!(lab.ping("h1", "h4"), "what is not for the virtual address goes by the hub");
        assert_eq!(lab.counter("handler_errors"), 0);
    }
    fn a_group_spreads_clients(version: Version) {
        let mut lab = lab(version, true);
        let mut by_backend = std::collections::BTreeMap::new();
        for client in ["h1", "h4", "h5", "h6"] {
            assert!(lab.ping_address(client, VIP), "{client}");
            by_backend.extend(lab.udp_to_address(client, VIP, 10, Duration::from_millis(1)));
        }
        assert_eq!(by_backend.into_keys().collect::<Vec<_>>(), ["h2", "h3"]);
        let group = lab.flows("s1").iter().any(|flow| flow.contains("group:100"));
        assert_eq!(group, version.has_groups(), "{:#?}", lab.flows("s1"));
    }

    fn arp_is_answered(version: Version) {
        let mut lab = lab(version, false);
        let (client, nobody) = (MacAddr([2, 0, 0, 0, 0, 9]), Ipv4Addr::UNSPECIFIED);
        lab.capture("h1");
        lab.send_frame("h1", &arp_request(client, nobody, VIP));
        lab.run_for(Duration::from_millis(10));
        let frames = lab.capture("h1");
        let replies: Vec<Arp> = frames.iter().filter_map(|frame| Arp::read(frame)).collect();
        let [reply] = &replies[..] else { panic!("one reply, not {replies:?}") };
        assert_eq!((reply.sender_ip, reply.sender_mac), (VIP, VIP_MAC));
        assert_eq!(reply.target_mac, client);
    }
}
// ANCHOR_END: test
