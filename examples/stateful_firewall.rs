//! A firewall that remembers connections, in front of a learning switch: hosts inside open TCP
//! connections, and nobody opens one to them.
//!
//! `cargo run -p bellrock --features apps,lab --example stateful_firewall 10.0.0.1`

// ANCHOR: app
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bellrock::etherparse::{LaxNetSlice, TransportSlice};
use bellrock::prelude::*;

const IPV4: u16 = 0x0800;
const TCP: u8 = 6;

/// Time for which a switch forwards a connection without the firewall.
const ALLOWED: Duration = Duration::from_secs(30);

/// Time after which a connection without packets is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// Maximum number of connections that a switch remembers.
const MAX_CONNECTIONS: usize = 65_536;

/// The hosts inside.
struct Firewall(Arc<[Ipv4Addr]>);

impl App for Firewall {
    type Handler = Connections;

    /// All TCP: no flow of an app behind carries a TCP packet past this app.
    fn sees(&self) -> Option<Vec<Match>> {
        Some(vec![Match::any().eth_type(IPV4).ip_proto(TCP)])
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Connections {
        Connections { inside: Arc::clone(&self.0), opened: HashMap::new() }
    }
}

/// The connections that hosts inside have opened through a switch.
struct Connections {
    inside: Arc<[Ipv4Addr]>,
    /// Time of the last packet, by the end inside and the end outside.
    opened: HashMap<[End; 2], Duration>,
}

/// Address and port.
type End = (Ipv4Addr, u16);

impl Handler for Connections {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
        let Some([from, to]) = tcp_ends(packet) else { return Ok(Verdict::Pass) };
        let connection = if self.inside.contains(&from.0) { [from, to] } else { [to, from] };
        let opens = self.inside.contains(&from.0) && self.opened.len() < MAX_CONNECTIONS;
        if !opens && !self.opened.contains_key(&connection) {
            // An empty list drops the packet.
            switch.packet_out_with(packet, &[])?;
            return Ok(Verdict::Consume);
        }
        self.opened.insert(connection, switch.now());
        // The apps behind know the way. Their flow for this direction may carry it past the
        // firewall.
        let allowed = Match::any().eth_type(IPV4).ip_proto(TCP);
        let allowed = allowed.ipv4_src(from.0).tcp_src(from.1).ipv4_dst(to.0).tcp_dst(to.1);
        switch.allow(&allowed, ALLOWED)?;
        Ok(Verdict::Pass)
    }

    fn tick(&mut self, switch: &mut Switch) -> Result<()> {
        self.opened.retain(|_, seen| *seen + FORGOTTEN > switch.now());
        Ok(())
    }
}

/// The two ends of a TCP packet: source and destination.
fn tcp_ends(packet: &PacketIn) -> Option<[End; 2]> {
    let headers = packet.headers().ok()?;
    let (Some(LaxNetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
        (&headers.net, &headers.transport)
    else {
        return None;
    };
    let ip = ip.header();
    Some([(ip.source_addr(), tcp.source_port()), (ip.destination_addr(), tcp.destination_port())])
}
// ANCHOR_END: app

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let inside = std::env::args().skip(1).map(|host| host.parse()).collect::<Result<_, _>>()?;
    let builder = bellrock::Controller::builder().app(Firewall(inside));
    Ok(builder.app(bellrock::apps::Learning::default()).run()?)
}

#[cfg(test)]
mod tests {
    use bellrock::apps::Learning;
    use bellrock::lab::{FlowState, Lab, linear};

    use super::*;

    fn lab(version: Version) -> Lab {
        let inside = Arc::new([Ipv4Addr::new(10, 0, 0, 1)]);
        Lab::seeded(7)
            .topology(linear(2, 1))
            .version(version)
            .app(Firewall(inside))
            .run(Learning::default())
    }

    fn tcp(lab: &mut Lab, from: &str, to: &str) -> bool {
        lab.tcp(from, to, 10_000).state == FlowState::Done
    }

    // ANCHOR: test
    #[test]
    fn flows_of_the_app_behind_carry_no_connection_past_the_firewall() {
        for version in Version::ALL {
            let mut lab = lab(version);
            assert!(!tcp(&mut lab, "h2", "h1"), "{version}: outside opens");
            assert!(tcp(&mut lab, "h1", "h2"), "{version}: inside opens");
            // Now the learning switch has flows between the two hosts, for all packets.
            assert!(lab.ping("h2", "h1"));
            assert!(!tcp(&mut lab, "h2", "h1"), "{version}: after a ping");
            assert!(tcp(&mut lab, "h1", "h2"), "{version}: inside again");
        }
    }
    // ANCHOR_END: test

    #[test]
    fn switches_forward_what_is_allowed_until_its_time_is_over() {
        for version in Version::ALL {
            let mut lab = lab(version);
            assert!(lab.ping("h1", "h2"));
            let before = lab.counter("packet_ins");
            assert_eq!(lab.tcp("h1", "h2", 1_000_000).state, FlowState::Done);
            let packet_ins = lab.counter("packet_ins") - before;
            // A million bytes are some 700 packets, and as many answers.
            assert!(packet_ins < 100, "{version}: {packet_ins}");
            assert!(lab.counter("flows_raised") >= 4, "both directions at both switches");
            assert!(lab.flows("s1").iter().any(|flow| flow.contains("tp_dst=5001")));
            lab.run_for(2 * ALLOWED);
            let flows = lab.flows("s1");
            assert!(!flows.iter().any(|flow| flow.contains("tp_dst=5001")), "{flows:?}");
        }
    }
}
