//! Your own app before one that comes with Bellrock: every switch drops telnet, and all other
//! packets take the shortest path. It answers `bellrock status`, `tasks` and `counters`.

use bellrock::apps::Routing;
use bellrock::prelude::*;

const TELNET: u16 = 23;

struct Firewall;

impl Handler for Firewall {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let telnet = Match::any().eth_type(0x0800).ip_proto(6).tcp_dst(TELNET);
        // No action means drop. The first app has the highest priorities.
        switch.install(&FlowMod::add(&telnet))?;
        Ok(())
    }
}

fn main() -> bellrock::Result {
    bellrock::Controller::builder()
        // It sees no packet: its flows do everything.
        .app(per_switch("firewall", |_| Firewall).sees([]))
        .app(Routing::default())
        .listen(([127, 0, 0, 1], 6653))
        .control_socket()
        .run()
}
