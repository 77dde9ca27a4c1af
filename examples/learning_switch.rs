//! A small learning switch with its tests.
//!
//! `cargo run -p bellrock --features lab --example learning_switch`

// ANCHOR: app
use std::collections::HashMap;

use bellrock::prelude::*;

/// Seconds after which a flow ends in any case.
const HARD_TIMEOUT_S: u16 = 10;

/// A small learning switch: it remembers the port of each address.
#[derive(Default)]
struct SmallSwitch {
    ports: HashMap<MacAddr, Port>,
}

impl Handler for SmallSwitch {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let (Some(from), Some(to)) = (packet.eth_src(), packet.eth_dst()) else {
            return Ok(Verdict::Consume);
        };
        let moved =
            self.ports.insert(from, packet.in_port()).is_some_and(|port| port != packet.in_port());
        if moved {
            switch.remove(&Match::any().eth_dst(from), Port::ANY)?;
        }
        let Some(port) = self.ports.get(&to) else {
            switch.packet_out(packet, Port::FLOOD)?;
            return Ok(Verdict::Consume);
        };
        let pair = Match::any().in_port(packet.in_port()).eth_src(from).eth_dst(to);
        let actions = [Action::output(*port)];
        switch.install(&FlowMod::add(&pair).hard_timeout(HARD_TIMEOUT_S).actions(&actions))?;
        switch.packet_out(packet, *port)?;
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        let gone = status.desc.port;
        if !status.desc.is_up() {
            self.ports.retain(|_, port| *port != gone);
            switch.remove(&Match::any(), gone)?;
        }
        Ok(())
    }
}
// ANCHOR_END: app

fn main() -> bellrock::Result {
    bellrock::run(per_switch("small_switch", |_| SmallSwitch::default()))
}

// ANCHOR: reach
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock::lab::{Faults, Lab, MessageDirection, tree};

    use super::*;

    /// Nine hosts at three of four switches.
    fn lab(seed: u64) -> Lab {
        let app = per_switch("small_switch", |_| SmallSwitch::default());
        Lab::seeded(seed).topology(tree(2, 3)).run(app)
    }

    #[test]
    fn hosts_reach_each_other_and_what_is_known_goes_over_flows() {
        let mut lab = lab(42);
        assert!(lab.ping("h1", "h9"));
        assert!(lab.ping_all().is_complete());
        assert_eq!(lab.findings(), [] as [String; 0], "loops, black holes, doubled packets");

        let asked = lab.message_count("s1", MessageDirection::FromSwitch);
        assert!(lab.ping("h1", "h9"));
        assert_eq!(
            lab.message_count("s1", MessageDirection::FromSwitch),
            asked,
            "the controller was asked again"
        );
        assert_eq!(lab.paths("h1", "h9"), [["h1", "s2", "s1", "s4", "h9"]]);
    }
    // ANCHOR_END: reach

    // ANCHOR: move
    #[test]
    fn a_host_that_moves_takes_its_flows_along() {
        let mut lab = lab(42);
        assert!(lab.ping("h1", "h2"));
        let to_h2 = |lab: &Lab| {
            let flows = lab.flows("s2");
            flows.iter().filter(|flow| flow.contains("dl_dst=00:00:00:00:00:02")).count()
        };
        assert_eq!(to_h2(&lab), 1, "{:#?}", lab.flows("s2"));

        // Its port at s2 loses its link, and s2 reports it.
        lab.move_host("h2", "s4");
        lab.run_for(Duration::from_millis(10));
        assert_eq!(to_h2(&lab), 0, "{:#?}", lab.flows("s2"));
        assert!(lab.ping("h1", "h2"), "it is flooded, and found");
        assert_eq!(lab.paths("h1", "h2").last().unwrap(), &["h1", "s2", "s1", "s4", "h2"]);
    }
    // ANCHOR_END: move

    // ANCHOR: faults
    #[test]
    fn after_any_faults_hosts_reach_each_other() {
        for seed in 0..50 {
            let mut lab = lab(seed);
            assert!(lab.ping_all().is_complete());
            let plan = lab.inject(&Faults::random(seed));
            let recovery = lab.recovery_time(Duration::from_secs(HARD_TIMEOUT_S.into()));
            lab.run_for(plan.lasts() + recovery);

            let pinged = lab.ping_all();
            assert!(pinged.is_complete(), "{plan}{pinged}");
            assert_eq!(lab.duplicates(), [], "{plan}");
        }
    }
    // ANCHOR_END: faults
}
