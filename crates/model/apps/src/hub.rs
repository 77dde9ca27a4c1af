//! The smallest app: a hub.

use bellrock_api::{
    App, Forwards, Handler, Network, PacketIn, Result, Switch, SwitchInfo, Verdict,
};
use bellrock_services::reserved::{ReservedFrames, flood};

use crate::storm::StormGuard;

/// Sends each packet out of all ports except its ingress port and the ports that belong to another
/// app. It learns nothing and installs nothing, so every packet of the network comes to the
/// controller. It is an example, and a benchmark with minimum work per packet.
///
/// In a network with a loop it detects the storm, reports it, and slows it down.
pub struct Hub;

/// A hub at one switch.
pub struct HubSwitch {
    reserved_frames: ReservedFrames,
    storm: StormGuard,
}

crate::boxed::boxed!(Hub);

impl App for Hub {
    type Handler = HubSwitch;

    fn name(&self) -> &'static str {
        "hub"
    }

    fn forwards(&self) -> Forwards {
        Forwards::All
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        StormGuard::COUNTERS.into()
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> HubSwitch {
        HubSwitch {
            reserved_frames: ReservedFrames::new(network, info.dpid),
            storm: StormGuard::new(network),
        }
    }
}

impl Handler for HubSwitch {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        // Without data and without a buffer there is nothing to send.
        let is_empty = packet.data().is_empty() && packet.buffer_id().is_none();
        if is_empty {
            return Ok(Verdict::Consume);
        }
        if !self.reserved_frames.is_reserved_for(packet) && !self.storm.holds_back(switch, packet) {
            flood(&mut self.reserved_frames, switch, packet)?;
        } else if packet.buffer_id().is_some() {
            // Without actions: frees the packet's buffer in the switch.
            switch.packet_out_with(packet, &[])?;
        }
        Ok(Verdict::Consume)
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.storm.tick(switch.now());
        Ok(())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.storm.counters(report);
    }
}
