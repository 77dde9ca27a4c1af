//! Learning switches with one mistake each, which shows only when a switch comes back.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bellrock_api::{
    App, Dpid, ErrorMessage, Handler, Network, PacketIn, Port, PortStatus, Result, Switch,
    SwitchInfo, Verdict, Xid,
};
use bellrock_apps::Learning;
use bellrock_apps::learning::LearningSwitch;

/// The mistake made when a known switch connects again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The switch counts as set up: all its packets are ignored.
    TakenForSetUp,
    /// Its packets are also flooded, in case a flow leads to a wrong port.
    FloodedToo,
}

/// The learning switch with a mistake.
pub(crate) struct Mistaken {
    inner: Learning,
    mistake: Mistake,
    seen: Mutex<BTreeSet<Dpid>>,
}

impl Mistaken {
    pub(crate) fn new(inner: Learning, mistake: Mistake) -> Self {
        Mistaken { inner, mistake, seen: Mutex::default() }
    }
}

pub(crate) struct MistakenSwitch {
    inner: LearningSwitch,
    /// `None` for a switch that connects for the first time.
    mistake: Option<Mistake>,
}

impl App for Mistaken {
    type Handler = MistakenSwitch;

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> MistakenSwitch {
        let is_new = self.seen.lock().unwrap().insert(info.dpid);
        MistakenSwitch {
            inner: self.inner.switch_up(network, info),
            mistake: (!is_new).then_some(self.mistake),
        }
    }
}

impl Handler for MistakenSwitch {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        match self.mistake {
            None => self.inner.packet_in(switch, packet),
            Some(Mistake::TakenForSetUp) => Ok(Verdict::Consume),
            Some(Mistake::FloodedToo) => {
                switch.packet_out(packet, Port::FLOOD)?;
                self.inner.packet_in(switch, packet)
            }
        }
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        self.inner.port_status(switch, status)
    }

    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        self.inner.error(switch, xid, error)
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.inner.tick(switch)
    }
}
