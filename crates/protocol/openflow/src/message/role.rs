//! Roles of controllers (1.3.5 §6.3.4, §7.3.9), and the extensions about them.
//!
//! 1.0 has no roles. Open vSwitch offers them there in experimenter messages of its own
//! (`NXT_ROLE_REQUEST` and `NXT_ROLE_REPLY` of its `nicira-ext.h`), without generation ids. 1.3 has
//! roles, but a switch says nothing when another controller takes the role of master; the ONF's
//! extension 191 adds that message, `role_status`, which is part of 1.4 (§7.4.4 there).

use super::Body;
use crate::reader::Reader;
use crate::wire::{U32, U64, v13};
use crate::wire_enum::wire_enum;
use crate::{Bytes, DecodeError, EncodeError, Experimenter, Family, Out, ToSwitch, Version};

/// Experimenter id of Nicira, under which Open vSwitch has its extensions.
pub const NICIRA: u32 = 0x0000_2320;

/// Experimenter id of the Open Networking Foundation.
pub const ONF: u32 = 0x4f4e_4600;

wire_enum! {
    /// Role of a controller at a switch (`ofp_controller_role`, 1.3.5 §7.3.9).
    RoleKind: u32 {
        /// Requests the current role without a change.
        NoChange = 0,
        /// Full access, shared with other controllers.
        Equal = 1,
        /// Full access for one controller; a previous master becomes slave.
        Master = 2,
        /// Read-only access.
        Slave = 3,
    }
}

/// Requests or reports a role (1.3.5 §7.3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RoleMessage {
    /// The role.
    pub role: RoleKind,
    /// Generation of the election of a master. The switch refuses an older one than the last.
    pub generation_id: u64,
}

impl RoleMessage {
    /// The generation id that a switch reports before the first election (1.3.5 §7.3.9).
    pub const NO_GENERATION: u64 = u64::MAX;

    /// The generation id; `None` before the first election, and in OpenFlow 1.0.
    #[must_use]
    pub fn generation(&self) -> Option<u64> {
        Some(self.generation_id).filter(|id| *id != RoleMessage::NO_GENERATION)
    }
}

impl<'a> Body<'a> for RoleMessage {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &v13::Role = reader.fixed("role")?;
        let role = RoleKind::from_wire(wire.role.get());
        Ok(RoleMessage { role, generation_id: wire.generation_id.get() })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::Role {
            role: U32::new(self.role.wire()),
            pad: [0; 4],
            generation_id: U64::new(self.generation_id),
        })
    }
}

wire_enum! {
    /// Why a switch has changed the role of a controller (`ofp_controller_role_reason`, EXT-191).
    RoleReason: u8 {
        /// Another controller has requested to be master.
        MasterRequest = 0,
        /// The configuration of the switch has changed.
        Config = 1,
        /// Data of an experimenter has changed.
        Experimenter = 2,
    }
}

/// Reports that the switch has changed the role of a controller (`ofp_role_status`, EXT-191).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleStatus {
    /// The new role, with the generation id of the election.
    pub role: RoleMessage,
    /// Why it has changed.
    pub reason: RoleReason,
}

/// A message about roles that is an extension, in an [`Experimenter`] message.
///
/// | message | experimenter | type | body |
/// |---|---|---|---|
/// | `Request` | [`NICIRA`] | 10 (`NXT_ROLE_REQUEST`) | role: 0 equal, 1 master, 2 slave |
/// | `Reply` | [`NICIRA`] | 11 (`NXT_ROLE_REPLY`) | the same |
/// | `Status` (1.3) | [`ONF`] | 1911 (`ONFT_ROLE_STATUS`) | role, reason, generation id |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleExtension {
    /// Requests a role.
    Request(RoleKind),
    /// The controller's current role.
    Reply(RoleKind),
    /// The role has changed without a request of this controller.
    Status(RoleStatus),
}

const NXT_ROLE_REQUEST: u32 = 10;
const NXT_ROLE_REPLY: u32 = 11;
const ONFT_ROLE_STATUS: u32 = 1911;

impl RoleExtension {
    /// Reads an experimenter's message. `None`: it is another one, or malformed.
    #[must_use]
    pub fn read(message: &Experimenter<'_>) -> Option<Self> {
        let mut data = message.data.0;
        let kind = match message.kind {
            Some(kind) => kind,
            None => word(&mut data)?,
        };
        match (message.experimenter, kind) {
            (NICIRA, NXT_ROLE_REQUEST) => nicira(data).map(RoleExtension::Request),
            (NICIRA, NXT_ROLE_REPLY) => nicira(data).map(RoleExtension::Reply),
            (ONF, ONFT_ROLE_STATUS) => {
                let role = RoleKind::from_wire(word(&mut data)?);
                // Three bytes of padding. Properties may follow the generation id.
                let (reason, rest) = data.split_first_chunk::<4>()?;
                let generation_id = u64::from_be_bytes(*rest.first_chunk()?);
                let (role, reason) = (RoleMessage { role, generation_id }, reason[0]);
                let reason = RoleReason::from_wire(reason);
                Some(RoleExtension::Status(RoleStatus { role, reason }))
            }
            _ => None,
        }
    }

    /// Writes the message.
    ///
    /// # Errors
    /// [`EncodeError::Full`]; [`EncodeError::Unsupported`] for `NoChange` in a request or reply,
    /// since Open vSwitch's extension has no such request, and for a status in 1.0.
    pub fn write(&self, version: Version, xid: u32, out: &mut Out) -> Result<(), EncodeError> {
        let unsupported = |what| EncodeError::Unsupported { what, version };
        let (mut bytes, mut len) = ([0; 20], 0);
        let mut put = |part: &[u8]| {
            let end = len + part.len();
            if let Some(place) = bytes.get_mut(len..end) {
                place.copy_from_slice(part);
            }
            len = end;
        };
        let (experimenter, kind) = match self {
            RoleExtension::Request(_) => (NICIRA, NXT_ROLE_REQUEST),
            RoleExtension::Reply(_) => (NICIRA, NXT_ROLE_REPLY),
            RoleExtension::Status(_) if version.family() == Family::Fixed => {
                return Err(unsupported("a role_status"));
            }
            RoleExtension::Status(_) => (ONF, ONFT_ROLE_STATUS),
        };
        // 1.0 has no field for the type.
        let field = (version.family() == Family::Oxm).then_some(kind);
        if field.is_none() {
            put(&kind.to_be_bytes());
        }
        match self {
            RoleExtension::Request(role) | RoleExtension::Reply(role) => {
                let number = match role {
                    RoleKind::NoChange => {
                        return Err(unsupported("a role request that changes no role"));
                    }
                    RoleKind::Equal => 0,
                    RoleKind::Master => 1,
                    RoleKind::Slave => 2,
                    RoleKind::Unknown(other) => *other,
                };
                put(&number.to_be_bytes());
            }
            RoleExtension::Status(RoleStatus { role, reason }) => {
                put(&role.role.wire().to_be_bytes());
                put(&[reason.wire(), 0, 0, 0]);
                put(&role.generation_id.to_be_bytes());
            }
        }
        let data = Bytes(bytes.get(..len).unwrap_or(&[]));
        // Both directions write it alike.
        ToSwitch::Experimenter(Experimenter { experimenter, kind: field, data })
            .encode(version, xid, out)
    }
}

/// Takes four bytes.
fn word(data: &mut &[u8]) -> Option<u32> {
    let (word, rest) = data.split_first_chunk()?;
    *data = rest;
    Some(u32::from_be_bytes(*word))
}

/// Reads the body of Open vSwitch's request or reply.
fn nicira(mut data: &[u8]) -> Option<RoleKind> {
    let role = word(&mut data)?;
    if !data.is_empty() {
        return None;
    }
    Some(match role {
        0 => RoleKind::Equal,
        1 => RoleKind::Master,
        2 => RoleKind::Slave,
        other => RoleKind::Unknown(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn hex(text: &str) -> Vec<u8> {
        let word = |word: &str| u8::from_str_radix(word, 16).unwrap_or_default();
        text.split_whitespace().map(word).collect()
    }

    /// The bytes are those in Open vSwitch's tests of `ofp-print`.
    #[test]
    fn extensions_have_the_bytes_of_open_vswitch() {
        let status = |role, reason, generation_id| {
            let role = RoleMessage { role, generation_id };
            RoleExtension::Status(RoleStatus { role, reason })
        };
        for (version, xid, text, message) in [
            (
                Version::V1_0,
                2,
                "01 04 00 14 00 00 00 02 00 00 23 20 00 00 00 0a 00 00 00 01",
                RoleExtension::Request(RoleKind::Master),
            ),
            (
                Version::V1_0,
                2,
                "01 04 00 14 00 00 00 02 00 00 23 20 00 00 00 0b 00 00 00 02",
                RoleExtension::Reply(RoleKind::Slave),
            ),
            (
                Version::V1_3,
                10,
                "04 04 00 20 00 00 00 0a 4f 4e 46 00 00 00 07 77 00 00 00 02 01 00 00 00 00 00 00 \
                 00 00 00 00 10",
                status(RoleKind::Master, RoleReason::Config, 16),
            ),
            (
                Version::V1_3,
                10,
                "04 04 00 20 00 00 00 0a 4f 4e 46 00 00 00 07 77 00 00 00 03 00 00 00 00 ff ff ff \
                 ff ff ff ff ff",
                status(RoleKind::Slave, RoleReason::MasterRequest, RoleMessage::NO_GENERATION),
            ),
        ] {
            let bytes = hex(text);
            let mut out = Out::with_capacity(64);
            assert_eq!(message.write(version, xid, &mut out), Ok(()));
            assert_eq!(out.as_slice(), bytes);
            let read = ToSwitch::decode(&bytes);
            let Ok(Message { body: ToSwitch::Experimenter(experimenter), .. }) = read else {
                unreachable!("{read:?}")
            };
            assert_eq!(RoleExtension::read(&experimenter), Some(message));
            // Any other length, type or experimenter is another message.
            let cut = experimenter.data.get(..experimenter.data.len() - 1).unwrap_or(&[]);
            let others = [
                Experimenter { data: Bytes(cut), ..experimenter },
                Experimenter { experimenter: 7, ..experimenter },
                Experimenter {
                    kind: experimenter.kind.map(|kind| kind + 1),
                    data: Bytes(&[9; 8]),
                    ..experimenter
                },
            ];
            assert_eq!(others.map(|other| RoleExtension::read(&other)), [None; 3]);
        }
    }

    #[test]
    fn a_message_that_the_extension_lacks_is_an_error() {
        let role = RoleMessage { role: RoleKind::Slave, generation_id: 1 };
        let status = RoleStatus { role, reason: RoleReason::MasterRequest };
        for message in [RoleExtension::Request(RoleKind::NoChange), RoleExtension::Status(status)] {
            let mut out = Out::with_capacity(64);
            let written = message.write(Version::V1_0, 1, &mut out);
            assert!(matches!(written, Err(EncodeError::Unsupported { .. })), "{message:?}");
            assert!(out.is_empty());
        }
    }
}
