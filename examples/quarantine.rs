//! Listed hosts are dropped at every switch.
//!
//! `cargo run -p bellrock --features lab --example quarantine 00:00:00:00:00:01`

use std::collections::BTreeSet;

use bellrock::prelude::*;

// ANCHOR: app
/// The list of hosts, for all switches. The `Publisher` of the list changes it.
struct Quarantine(Watch<BTreeSet<MacAddr>>);

impl App for Quarantine {
    type Handler = Drops;

    fn start(&self, network: &Network) {
        network.spawn("follow the list", follow(network.clone(), self.0.clone()));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Drops {
        Drops(self.0.clone())
    }
}

/// Installs the drops in a switch that comes up.
struct Drops(Watch<BTreeSet<MacAddr>>);

impl Handler for Drops {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        for drop in self.0.load().iter().flat_map(drops) {
            switch.install(&drop)?;
        }
        Ok(())
    }
}

/// Changes the flows in all connected switches when the list changes.
async fn follow(network: Network, list: Watch<BTreeSet<MacAddr>>) {
    let mut before = list.load();
    loop {
        let now = list.changed(before.version()).await;
        let come = now.difference(&before).flat_map(drops).map(Change::Add);
        let go = before.difference(&now).flat_map(drops).map(Change::Remove);
        let changes: Vec<Change> = come.chain(go).collect();
        for switch in network.switches().iter() {
            network.program(switch.dpid, changes.clone()).await;
        }
        before = now;
    }
}

fn drops(host: &MacAddr) -> [Flow; 2] {
    [Match::any().eth_src(*host), Match::any().eth_dst(*host)].map(Flow::new)
}
// ANCHOR_END: app

/// Blocks the hosts of the command line, in front of a hub.
fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let hosts = std::env::args().skip(1).map(|host| host.parse()).collect::<Result<_, _>>()?;
    let list = Publisher::new(hosts);
    let app = Quarantine(list.watch().clone());
    let hub = per_switch("hub", |_| Hub);
    Ok(bellrock::Controller::builder().app(app).app(hub).run()?)
}

struct Hub;

impl Handler for Hub {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock::lab::{Lab, tree};

    use super::*;

    #[test]
    fn a_listed_host_is_cut_off_everywhere_and_comes_back() {
        let list = Publisher::new(BTreeSet::new());
        let lab = Lab::seeded(42).topology(tree(2, 3)).app(Quarantine(list.watch().clone()));
        let hub = per_switch("hub", |_| Hub);
        let mut lab = lab.run(hub);
        assert!(lab.ping("h1", "h9"));
        list.publish([MacAddr([0, 0, 0, 0, 0, 1])].into());
        lab.run_for(Duration::from_millis(50));
        assert!(!lab.ping("h1", "h9") && !lab.ping("h9", "h1") && lab.ping("h2", "h9"));
        list.publish(BTreeSet::new());
        lab.run_for(Duration::from_millis(50));
        assert!(lab.ping("h1", "h9"));
    }
}
