//! A patch panel: packets from port 1 leave at port 2, and back, without the controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellrock::prelude::*;

/// The ports at the ends of the cable.
const CABLE: (Port, Port) = (Port(1), Port(2));

/// State of all switches.
struct PatchPanel {
    /// Packets of all switches that no cable carried.
    astray: Arc<AtomicU64>,
}

/// State of one switch.
struct Panel {
    /// Packets of this switch that no cable carried.
    astray_here: u64,
    astray: Arc<AtomicU64>,
}

impl App for PatchPanel {
    type Handler = Panel;

    fn name(&self) -> &'static str {
        "patch_panel"
    }

    fn switch_up(&self, _network: &Network, _switch: &SwitchInfo) -> Panel {
        Panel { astray_here: 0, astray: Arc::clone(&self.astray) }
    }
}

impl Handler for Panel {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        for (from, to) in [CABLE, (CABLE.1, CABLE.0)] {
            let packets = Match::any().in_port(from);
            let actions = [Action::output(to)];
            switch.install(&FlowMod::add(&packets).actions(&actions))?;
        }
        Ok(())
    }

    fn packet_in(&mut self, _switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.astray_here += 1;
        let all = self.astray.fetch_add(1, Ordering::Relaxed) + 1;
        println!("port {}: no cable ({all} packets so far)", packet.in_port());
        Ok(Verdict::Consume)
    }

    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        println!("switch {} refused message {}: {error:?}", switch.dpid(), xid.0);
        Ok(())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("astray", self.astray_here);
    }
}

fn main() -> bellrock::Result {
    bellrock::run(PatchPanel { astray: Arc::default() })
}
