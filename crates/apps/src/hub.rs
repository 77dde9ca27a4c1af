//! The smallest app: a hub.

use bellrock_api::{App, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict};

/// Sends each packet out of all ports but the one that it came in by. It learns nothing and
/// installs nothing, so every packet of the network comes to the controller: an example, and the
/// least work per packet to measure with.
pub struct Hub;

impl App for Hub {
    type Handler = Hub;

    fn name(&self) -> &'static str {
        "hub"
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Hub {
        Hub
    }
}

impl Handler for Hub {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}
