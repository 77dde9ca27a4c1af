//! One port for everybody: what comes in anywhere goes to port 1, by a flow for each Ethernet
//! source. The flows are alike but for two values, so they are prepared.

use bellrock::prelude::*;

const PORT: Port = Port(1);

struct Uplink {
    /// `None` if the switch's version could not say what the flow is.
    flow: Option<FlowTemplate>,
}

/// The flow of one host. Which one it names here does not matter: each copy gets its own.
fn prepare(switch: &SwitchInfo) -> Uplink {
    let host = Match::any().in_port(Port(2)).eth_src(MacAddr::ZERO);
    let flow = FlowMod::add(&host).idle_timeout(60).actions(const { &[Action::output(PORT)] });
    Uplink { flow: FlowTemplate::new(switch.version, &flow).ok() }
}

impl Handler for Uplink {
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
    bellrock::run(per_switch("uplink", prepare))
}
