//! A patch panel: what comes in by port 1 goes out by port 2, and back, without the controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellrock::prelude::*;

/// Ports that are connected with each other.
const CABLE: (Port, Port) = (Port(1), Port(2));

/// What all switches have in common.
struct PatchPanel {
    /// Packets that no cable carried, at all switches.
    astray: Arc<AtomicU64>,
}

/// What is kept of one switch.
struct Panel {
    /// Packets that no cable carried, at this one.
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
