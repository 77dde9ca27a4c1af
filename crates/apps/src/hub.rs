//! The smallest app: a hub.

use bellrock_api::{App, Handler, Network, PacketIn, Result, Switch, SwitchInfo, Verdict};
use bellrock_services::reserved::{Fence, flood};

/// Sends each packet out of all ports but the one that it came in by, and those that belong to another app. It learns
/// nothing and installs nothing, so every packet of the network comes to the controller: an example, and the
/// least work per packet to measure with.
pub struct Hub;

/// A hub at one switch.
pub struct HubSwitch {
    fence: Fence,
}

impl App for Hub {
    type Handler = HubSwitch;

    fn name(&self) -> &'static str {
        "hub"
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> HubSwitch {
        HubSwitch { fence: Fence::new(network, info.dpid) }
    }
}

impl Handler for HubSwitch {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        if !self.fence.is_reserved_for(packet) {
            flood(&mut self.fence, switch, packet)?;
        } else if packet.buffer_id().is_some() {
            switch.packet_out_with(packet, &[])?;
        }
        Ok(Verdict::Consume)
    }
}
