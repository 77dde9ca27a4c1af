//! Shortest paths in any network.
//!
//! `cargo run -p bellrock --features lab --example routing`

use bellrock::prelude::*;
use bellrock::services::paths::paths;

// ANCHOR: app
struct Routing;

impl App for Routing {
    type Handler = Router;

    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::HOSTS | Needs::PATHS
    }

    fn switch_up(&self, network: &Network, _: &SwitchInfo) -> Router {
        Router(network.clone())
    }
}

struct Router(Network);

impl Handler for Router {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let (Router(network), here) = (self, switch.dpid());
        let (paths, hosts) = (paths(network).load(), network.hosts().load());
        let Some(host) = packet.eth_dst().and_then(|to| hosts.get(to, None)) else {
            let others = paths.flood_ports(here).iter().filter(|port| **port != packet.in_port());
            let actions: Vec<_> = others.map(|port| Action::output(*port)).collect();
            switch.packet_out_with(packet, &actions)?;
            return Ok(Verdict::Consume);
        };
        let hops: Vec<_> = paths.walk(here, host.at.dpid, host.id.mac.to_u64()).collect();
        let ports = hops.iter().map(|hop| hop.from).chain([host.at]);
        for at in ports.rev() {
            let flow = Flow::new(Match::any().eth_dst(host.id.mac)).hard(10).output(at.port);
            network.install(at.dpid, &flow)?;
        }
        switch.packet_out(packet, hops.first().map_or(host.at.port, |hop| hop.from.port))?;
        Ok(Verdict::Consume)
    }
}
// ANCHOR_END: app

fn main() -> bellrock::Result {
    bellrock::run(Routing)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock::lab::{Lab, ring};

    use super::*;

    #[test]
    fn everybody_reaches_everybody_in_a_circle() {
        let mut lab = Lab::seeded(42).topology(ring(4, 1)).run(Routing);
        lab.run_for(Duration::from_secs(12));
        for host in ["h1", "h2", "h3", "h4"] {
            lab.announce(host);
        }
        lab.run_for(Duration::from_secs(1));
        assert!(lab.ping_all().is_complete());
        assert_eq!(lab.duplicates(), []);
    }
}
