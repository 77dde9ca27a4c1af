//! A switch's description in the handshake.

use std::collections::HashMap;

use bellrock_openflow::{
    Capabilities, Desc, Features, Port, PortDesc, PortReason, PortStatus, Version, Versions,
};

/// Maximum number of ports that are kept of a switch; more are left out and counted. Some ten times
/// as many as large switches have: each port_status searches through them.
pub const MAX_PORTS: usize = 8192;

/// A switch's own description: features, texts and ports.
///
/// The controller's end receives it in the handshake ([`crate::ControllerSession::take_switch`]).
/// The switch's end is made from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchDescription {
    /// Datapath id.
    pub datapath_id: u64,
    /// 0 for a main connection (always in 1.0). The session treats all connections alike: the
    /// caller refuses auxiliary ones.
    pub auxiliary_id: u8,
    /// The agreed version. The switch's end sets it.
    pub version: Version,
    /// Maximum number of packets that it can buffer.
    pub n_buffers: u32,
    /// Number of flow tables.
    pub n_tables: u8,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// 1.0: one bit for each action type that it supports.
    pub actions: u32,
    /// Its maker. This and the following texts are empty if the switch sends none. Control
    /// characters are escaped.
    pub manufacturer: Box<str>,
    /// Its hardware.
    pub hardware: Box<str>,
    /// Its software.
    pub software: Box<str>,
    /// Its serial number.
    pub serial_number: Box<str>,
    /// Name that its operator gave it.
    pub datapath: Box<str>,
    /// Its ports, in the order in which it listed them.
    pub ports: Vec<PortDesc>,
    /// Why its ports are unknown, if it did not list them (1.3). They become known as they change.
    pub ports_missing: Option<MissingReply>,
}

/// Why the answer to a request is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingReply {
    /// The switch did not answer.
    #[error("it does not answer the question")]
    Silent,
    /// The switch refused the request.
    #[error("it refuses the question")]
    Refused,
    /// The answer cannot be decoded, or is too large.
    #[error("its answer cannot be read")]
    Unreadable,
}

impl SwitchDescription {
    /// A switch with one table and no buffers, texts or ports.
    #[must_use]
    pub fn new(datapath_id: u64) -> Self {
        SwitchDescription {
            datapath_id,
            auxiliary_id: 0,
            version: Versions::ALL.highest(),
            n_buffers: 0,
            n_tables: 1,
            capabilities: Capabilities::empty(),
            actions: 0,
            manufacturer: Box::default(),
            hardware: Box::default(),
            software: Box::default(),
            serial_number: Box::default(),
            datapath: Box::default(),
            ports: Vec::new(),
            ports_missing: None,
        }
    }

    /// Finds a port by its number.
    #[must_use]
    pub fn port(&self, port: Port) -> Option<&PortDesc> {
        self.ports.iter().find(|desc| desc.port == port)
    }

    /// Applies a change of a port. `false`: it is a new port beyond [`MAX_PORTS`], and left out.
    pub fn apply(&mut self, status: &PortStatus) -> bool {
        let number = status.desc.port;
        if status.reason == PortReason::Delete {
            self.ports.retain(|desc| desc.port != number);
            return true;
        }
        let room = self.ports.len() < MAX_PORTS;
        match self.ports.iter_mut().find(|desc| desc.port == number) {
            Some(desc) => *desc = status.desc,
            None if room => self.ports.push(status.desc),
            None => return false,
        }
        true
    }

    pub(crate) fn of(version: Version, features: &Features<'_>) -> Self {
        SwitchDescription {
            auxiliary_id: features.auxiliary_id,
            version,
            n_buffers: features.n_buffers,
            n_tables: features.n_tables,
            capabilities: features.capabilities,
            actions: if version.has_table_features() { 0 } else { features.actions },
            ports: distinct(features.ports.iter().take(MAX_PORTS)),
            ..SwitchDescription::new(features.datapath_id)
        }
    }

    /// Sets the texts from a description.
    pub fn describe(&mut self, desc: &Desc<'_>) {
        self.manufacturer = desc.manufacturer().to_string().into_boxed_str();
        self.hardware = desc.hardware().to_string().into_boxed_str();
        self.software = desc.software().to_string().into_boxed_str();
        self.serial_number = desc.serial_number().to_string().into_boxed_str();
        self.datapath = desc.datapath().to_string().into_boxed_str();
    }
}

/// The ports without repetitions of a number. Of several descriptions the last counts, as with
/// changes.
pub(crate) fn distinct(ports: impl Iterator<Item = PortDesc>) -> Vec<PortDesc> {
    let mut all: Vec<PortDesc> = Vec::new();
    let mut places = HashMap::new();
    for desc in ports {
        let place = *places.entry(desc.port).or_insert(all.len());
        match all.get_mut(place) {
            Some(known) => *known = desc,
            None => all.push(desc),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use bellrock_openflow::{FixedStr, MacAddr};

    use super::*;

    #[test]
    fn a_port_that_is_listed_twice_is_one_port() {
        let port = |number, name| PortDesc::new(Port(number), MacAddr::ZERO, FixedStr::new(name));
        let ports = distinct([port(2, "a"), port(1, "b"), port(2, "c")].into_iter());
        assert_eq!(ports, [port(2, "c"), port(1, "b")]);
    }
}
