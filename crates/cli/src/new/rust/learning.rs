//! A learning switch: it learns behind which port each host is, and installs flows to hosts it
//! knows.

use std::collections::HashMap;

use bellrock::prelude::*;

/// Seconds without a packet after which a flow ends.
const IDLE_TIMEOUT_S: u16 = 10;

/// What the app knows at one switch.
#[derive(Default)]
struct Learning {
    ports: HashMap<MacAddr, Port>,
}

impl Handler for Learning {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let (Some(from), Some(to)) = (packet.eth_src(), packet.eth_dst()) else {
            return Ok(Verdict::Consume);
        };
        self.ports.insert(from, packet.in_port());
        let Some(port) = self.ports.get(&to) else {
            switch.packet_out(packet, Port::FLOOD)?;
            return Ok(Verdict::Consume);
        };
        let to_host = Match::any().in_port(packet.in_port()).eth_dst(to);
        let actions = [Action::output(*port)];
        switch.install(&FlowMod::add(&to_host).idle_timeout(IDLE_TIMEOUT_S).actions(&actions))?;
        switch.packet_out(packet, *port)?;
        Ok(Verdict::Consume)
    }
}

fn app() -> impl App {
    per_switch("NAME", |_| Learning::default())
}

fn main() -> bellrock::Result {
    bellrock::Controller::builder().app(app()).control_socket().run()
}

#[cfg(test)]
mod tests {
    use bellrock::lab::{Lab, linear};

    use super::*;

    #[test]
    fn hosts_reach_each_other_and_packets_take_flows() {
        let mut lab = Lab::seeded(42).topology(linear(3, 1)).run(app());
        assert!(lab.ping_all().is_complete());
        assert!(lab.ping("h1", "h3"), "the second ping finds flows");
        assert!(lab.flows("s2").iter().any(|flow| flow.contains("idle")), "{:#?}", lab.flows("s2"));
        assert_eq!(lab.findings(), [] as [String; 0]);
    }
}
