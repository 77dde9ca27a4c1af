//! The ports by which a switch reaches other switches, learnt from their packets.

use bellrock_api::Port;

use super::place::{Attachment, SwitchNumber};
use crate::learning::frame::HostPlace;

/// Number of hosts of a switch that come by another port, without one in between by the known port,
/// which show that the switch is behind the other port. Fewer show that these hosts have moved.
const DOUBTS: u8 = 3;

/// No port.
const UNKNOWN: Port = Port(0);

/// The ports towards other switches, indexed by switch number.
#[derive(Clone, Debug, Default)]
pub(super) struct PortsToSwitches(Vec<PortToSwitch>);

#[derive(Clone, Copy, Debug)]
struct PortToSwitch {
    port: Port,
    doubts: u8,
}

impl PortsToSwitches {
    /// The port towards a switch.
    #[inline(always)]
    pub(super) fn to(&self, switch: SwitchNumber) -> Option<Port> {
        self.0.get(switch.index()).map(|entry| entry.port).filter(|port| *port != UNKNOWN)
    }

    /// The place of a host as seen by `own`, the switch of these ports; `None` if the port is
    /// unknown.
    #[inline(always)]
    pub(super) fn place_of(&self, host: Attachment, own: SwitchNumber) -> Option<HostPlace> {
        if host.switch() == own {
            return Some(host.place());
        }
        let place = HostPlace::at(self.to(host.switch())?)?;
        Some(if host.has_flows_elsewhere() { place.with_flows() } else { place })
    }

    /// Records that a packet of that switch has come by its port.
    pub(super) fn confirm(&mut self, to: SwitchNumber) {
        if let Some(entry) = self.0.get_mut(to.index()) {
            entry.doubts = 0;
        }
    }

    /// Records a packet by another port; returns true after enough of them.
    pub(super) fn record_doubt(&mut self, to: SwitchNumber) -> bool {
        self.0.get_mut(to.index()).is_none_or(|entry| {
            entry.doubts = entry.doubts.saturating_add(1);
            entry.doubts >= DOUBTS
        })
    }

    /// Sets the port towards a switch; returns its previous port, if that differs.
    pub(super) fn set(&mut self, to: SwitchNumber, port: Port) -> Option<Port> {
        if self.0.len() <= to.index() {
            self.0.resize(to.index() + 1, PortToSwitch { port: UNKNOWN, doubts: 0 });
        }
        let entry = self.0.get_mut(to.index())?;
        let before = std::mem::replace(entry, PortToSwitch { port, doubts: 0 }).port;
        Some(before).filter(|before| ![UNKNOWN, port].contains(before))
    }

    /// Returns whether there are switches behind a port.
    pub(super) fn has_switches_behind(&self, port: Port) -> bool {
        self.0.iter().any(|entry| entry.port == port)
    }

    /// Forgets a port that is down.
    pub(super) fn forget(&mut self, port: Port) {
        self.0.iter_mut().filter(|entry| entry.port == port).for_each(|way| way.port = UNKNOWN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_changed_after_doubts_that_nothing_confirms() {
        let (mut ports, to) = (PortsToSwitches::default(), SwitchNumber(5));
        assert_eq!((ports.to(to), ports.has_switches_behind(Port(2))), (None, false));
        assert_eq!((ports.set(to, Port(2)), ports.to(to)), (None, Some(Port(2))));
        assert!(ports.has_switches_behind(Port(2)) && ports.to(SwitchNumber(4)).is_none());
        assert!(!ports.record_doubt(to) && !ports.record_doubt(to));
        ports.confirm(to);
        assert!(!ports.record_doubt(to) && !ports.record_doubt(to) && ports.record_doubt(to));
        assert_eq!((ports.set(to, Port(3)), ports.set(to, Port(3))), (Some(Port(2)), None));
        assert!(!ports.record_doubt(to));
        ports.forget(Port(3));
        assert_eq!((ports.to(to), ports.has_switches_behind(Port(3))), (None, false));
    }
}
