//! Data of a switch, from the messages of its session.

use std::net::SocketAddr;
use std::time::Duration;

use bellrock_api::openflow::{Desc, PortReason, PortStatus};
use bellrock_api::{Description, Dpid, SwitchInfo};
use bellrock_session::SwitchDescription;

/// Converts the result of the handshake for apps.
pub(super) fn info_of(
    mut switch: SwitchDescription,
    peer: SocketAddr,
    now: Duration,
) -> SwitchInfo {
    let mut ports = std::mem::take(&mut switch.ports);
    ports.shrink_to_fit();
    let mut info = SwitchInfo::new(Dpid(switch.datapath_id), switch.version, peer);
    info.n_buffers = switch.n_buffers;
    info.n_tables = switch.n_tables;
    info.capabilities = switch.capabilities;
    info.action_types = switch.actions;
    info.description = texts_of(switch);
    info.ports = ports;
    info.since = now;
    info
}

/// Converts the texts of a description for apps.
pub(crate) fn description_of(desc: &Desc<'_>) -> Description {
    let mut switch = SwitchDescription::new(0);
    switch.describe(desc);
    texts_of(switch)
}

/// What a switch writes where it has nothing to say, as Open vSwitch does.
const NOTHING: &str = "None";

fn texts_of(switch: SwitchDescription) -> Description {
    let text = |text: Box<str>| if &*text == NOTHING { Box::default() } else { text };
    Description {
        manufacturer: text(switch.manufacturer),
        hardware: text(switch.hardware),
        software: text(switch.software),
        serial_number: text(switch.serial_number),
        datapath: text(switch.datapath),
    }
}

/// Applies a change of a port. `false`: it is a new port, and the maximum number is reached.
pub(crate) fn apply(info: &mut SwitchInfo, status: &PortStatus) -> bool {
    let ports = &mut info.ports;
    let room = ports.len() < bellrock_session::MAX_PORTS;
    if status.reason == PortReason::Delete {
        ports.retain(|desc| desc.port != status.desc.port);
    } else if let Some(desc) = ports.iter_mut().find(|desc| desc.port == status.desc.port) {
        *desc = status.desc;
    } else if room {
        ports.push(status.desc);
    } else {
        return false;
    }
    true
}
