//! Meters (1.3.5 §5.7, §7.3.4.4). 1.0 has none.

use super::Body;
use crate::flags::flags;
use crate::list::{Element, List};
use crate::reader::Reader;
use crate::wire::{U16, U32, v13};
use crate::{Bytes, DecodeError, EncodeError, ErrorCode, Out, Reason, Version};

/// Special meter numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter;

impl Meter {
    /// The maximum number of a meter (`OFPM_MAX`).
    pub const MAX: u32 = 0xffff_0000;
    /// The meter of the slow path.
    pub const SLOWPATH: u32 = 0xffff_fffd;
    /// The meter of the connection to the controller.
    pub const CONTROLLER: u32 = 0xffff_fffe;
    /// All meters, in removals and requests.
    pub const ALL: u32 = 0xffff_ffff;
}

/// Command of a meter_mod (`ofp_meter_mod_command`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum MeterCommand {
    /// Add the meter.
    Add,
    /// Change the meter.
    Modify,
    /// Remove the meter, and the flows that use it.
    Delete,
}

flags! {
    /// Flags of a meter: units and statistics (`ofp_meter_flags`).
    MeterFlags: u16 {
        KBPS = 1 << 0;
        PKTPS = 1 << 1;
        BURST = 1 << 2;
        STATS = 1 << 3;
    }
}

/// Action of a band on packets above its rate (`ofp_meter_band_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum BandType<'a> {
    /// Drop the packets.
    Drop,
    /// Raise the drop precedence of their DSCP by this number.
    DscpRemark(u8),
    /// An experimenter's band.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the id.
        data: Bytes<'a>,
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        kind: u16,
        /// The last four bytes of the band's head.
        argument: [u8; 4],
        /// The bytes after the head.
        data: Bytes<'a>,
    },
}

/// A band of a meter: a rate, and the action above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Band<'a> {
    /// Rate in kb/s or packets per second, by the meter's flags.
    pub rate: u32,
    /// Size of bursts, in kb or packets.
    pub burst_size: u32,
    /// The action above the rate.
    pub kind: BandType<'a>,
}

const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

impl<'a> Element<'a> for Band<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::MeterBand = reader.fixed("meter band")?;
        let length = usize::from(wire.length.get());
        let data_len = length
            .checked_sub(size_of::<v13::MeterBand>())
            .ok_or_else(|| start.bad_length("meter band length", length))?;
        let data = Bytes(reader.take(data_len, "meter band")?);
        let kind = match wire.kind.get() {
            DROP | DSCP_REMARK if data_len > 0 && !start.is_liberal() => {
                return Err(start.bad_length("meter band length", length));
            }
            DROP if data_len == 0 => BandType::Drop,
            DSCP_REMARK if data_len == 0 => BandType::DscpRemark(wire.argument[0]),
            EXPERIMENTER => {
                let experimenter = u32::from_be_bytes(wire.argument);
                BandType::Experimenter { experimenter, data }
            }
            kind => BandType::Unknown { kind, argument: wire.argument, data },
        };
        Ok(Band { rate: wire.rate.get(), burst_size: wire.burst_size.get(), kind })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        let (kind, argument, data) = match self.kind {
            BandType::Drop => (DROP, [0; 4], Bytes(&[])),
            BandType::DscpRemark(level) => (DSCP_REMARK, [level, 0, 0, 0], Bytes(&[])),
            BandType::Experimenter { experimenter, data } => {
                (EXPERIMENTER, experimenter.to_be_bytes(), data)
            }
            BandType::Unknown { kind, argument, data } => (kind, argument, data),
        };
        let start = out.len();
        out.put(&v13::MeterBand {
            kind: U16::new(kind),
            length: U16::ZERO,
            rate: U32::new(self.rate),
            burst_size: U32::new(self.burst_size),
            argument,
        })?;
        out.append(&data)?;
        out.patch_length(start, 2, "meter band")
    }
}

/// Adds, changes or removes a meter (1.3.5 §7.3.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MeterMod<'a> {
    /// The command.
    pub command: MeterCommand,
    /// Its flags.
    pub flags: MeterFlags,
    /// The meter.
    pub meter: u32,
    /// Its bands.
    pub bands: List<'a, Band<'a>>,
}

impl<'a> Body<'a> for MeterMod<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::MeterMod = reader.fixed("meter_mod")?;
        let command = match wire.command.get() {
            0 => MeterCommand::Add,
            1 => MeterCommand::Modify,
            2 => MeterCommand::Delete,
            other => {
                let reason = Reason::Value(other.into());
                let answer = ErrorCode::MeterModBadCommand;
                return Err(start.error("meter_mod.command", reason, answer));
            }
        };
        let bands = List::decode(version, *reader)?;
        reader.take_rest();
        let flags = MeterFlags::from_bits_retain(wire.flags.get());
        Ok(MeterMod { command, flags, meter: wire.meter_id.get(), bands })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::MeterMod {
            command: U16::new(self.command as u16),
            flags: U16::new(self.flags.bits()),
            meter_id: U32::new(self.meter),
        })?;
        self.bands.encode(version, out)
    }
}
