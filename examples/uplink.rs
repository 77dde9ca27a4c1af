//! An uplink: packets from all other ports leave at port 1, by a flow for each Ethernet source. The
//! flows differ in two values only, so a template is prepared.

use bellrock::prelude::*;

const PORT: Port = Port(1);

#[derive(Default)]
struct Uplink {
    /// `None` if the switch's version cannot express the flow.
    flow: Option<FlowTemplate>,
}

impl Handler for Uplink {
    /// Prepares the flow of one host. The address does not matter here: each copy gets its own.
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let host = Match::any().in_port(Port(2)).eth_src(MacAddr::ZERO);
        let flow = FlowMod::add(&host).idle_timeout(60).actions(const { &[Action::output(PORT)] });
        self.flow = Some(switch.template(&flow)?);
        Ok(())
    }

    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let (Some(flow), Some(host)) = (&self.flow, packet.eth_src()) else {
            return Ok(Verdict::Pass);
        };
        if packet.in_port() != PORT {
            let mut flow = switch.install_for(packet, flow)?;
            flow.set(Field::EthSrc, &host.0);
            flow.finish()?;
        }
        switch.packet_out(packet, PORT)?;
        Ok(Verdict::Consume)
    }
}

fn main() -> bellrock::Result {
    bellrock::run(per_switch("uplink", |_| Uplink::default()))
}
