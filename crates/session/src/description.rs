//! What a switch says of itself in the handshake.

use bellrock_openflow::{
    Capabilities, Desc, Features, Port, PortDesc, PortReason, PortStatus, Version,
};

/// Ports of a switch that are kept; more are left out and counted. Some ten times what large
/// switches have; each port_status looks through them.
pub const MAX_PORTS: usize = 8192;

/// A switch, as it describes itself: features, description and ports.
///
/// The controller's end learns it in the handshake ([`crate::Controller::take_switch`]); the
/// switch's end is made of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchDescription {
    /// Datapath id.
    pub datapath_id: u64,
    /// 0 for a main connection (always so in 1.0). Others are not told apart here: the caller
    /// refuses them.
    pub auxiliary_id: u8,
    /// The version that is spoken. The switch's end sets it when it is agreed on.
    pub version: Version,
    /// Packets that it can buffer.
    pub n_buffers: u32,
    /// Flow tables.
    pub n_tables: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// 1.0: a bit for each action type that it knows.
    pub actions: u32,
    /// Its maker. This and the texts below are empty when the switch does not describe itself;
    /// control characters in them are escaped.
    pub manufacturer: Box<str>,
    /// Its hardware.
    pub hardware: Box<str>,
    /// Its software.
    pub software: Box<str>,
    /// Its serial number.
    pub serial_number: Box<str>,
    /// What its operator calls it.
    pub datapath: Box<str>,
    /// Its ports, in the order in which it named them.
    pub ports: Vec<PortDesc>,
    /// Why its ports are not known, where it did not describe them (1.3). Those that change become known then.
    pub ports_missing: Option<Missing>,
}

/// Why the answer to a question is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The switch did not answer.
    #[error("it does not answer the question")]
    Silent,
    /// The switch refused the question.
    #[error("it refuses the question")]
    Refused,
    /// The answer cannot be read, or is too large.
    #[error("its answer cannot be read")]
    Unreadable,
}

impl SwitchDescription {
    /// A switch with one table, without buffers, texts and ports.
    #[must_use]
    pub fn new(datapath_id: u64) -> Self {
        SwitchDescription {
            datapath_id,
            auxiliary_id: 0,
            version: Version::V1_3,
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

    /// The port with this number.
    #[must_use]
    pub fn port(&self, port: Port) -> Option<&PortDesc> {
        self.ports.iter().find(|desc| desc.port == port)
    }

    /// Brings the ports up to date. `false`: it is a new one beyond [`MAX_PORTS`], and left out.
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
            actions: if version == Version::V1_0 { features.actions } else { 0 },
            ports: features.ports.iter().take(MAX_PORTS).collect(),
            ..SwitchDescription::new(features.datapath_id)
        }
    }

    /// Takes over the texts of a description.
    pub fn describe(&mut self, desc: &Desc<'_>) {
        self.manufacturer = desc.manufacturer().to_string().into_boxed_str();
        self.hardware = desc.hardware().to_string().into_boxed_str();
        self.software = desc.software().to_string().into_boxed_str();
        self.serial_number = desc.serial_number().to_string().into_boxed_str();
        self.datapath = desc.datapath().to_string().into_boxed_str();
    }
}
