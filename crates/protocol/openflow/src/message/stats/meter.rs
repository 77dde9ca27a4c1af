//! Meters: counters, configuration, and features of a switch (1.3.5 §7.3.5.12 to §7.3.5.14).

use super::flow::entry;
use super::group::PacketByteCount;
use crate::list::{Element, List};
use crate::message::{Band, MeterFlags};
use crate::reader::Reader;
use crate::wire::{U16, U32, U64, v13};
use crate::{DecodeError, EncodeError, Out, Version};

/// Counters of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MeterStats<'a> {
    /// The meter.
    pub meter: u32,
    /// Number of flows that use it.
    pub flow_count: u32,
    /// Packets that it processed.
    pub packet_in_count: u64,
    /// Bytes that it processed.
    pub byte_in_count: u64,
    /// How long it has existed, in whole seconds.
    pub duration_sec: u32,
    /// Additional nanoseconds.
    pub duration_nsec: u32,
    /// Counters of each of its bands.
    pub bands: List<'a, PacketByteCount>,
}

impl<'a> Element<'a> for MeterStats<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::MeterStats = reader.fixed("meter stats")?;
        let bands = entry(&start, reader, wire.length.get(), size_of::<v13::MeterStats>())?;
        Ok(MeterStats {
            meter: wire.meter_id.get(),
            flow_count: wire.flow_count.get(),
            packet_in_count: wire.packet_in_count.get(),
            byte_in_count: wire.byte_in_count.get(),
            duration_sec: wire.duration_sec.get(),
            duration_nsec: wire.duration_nsec.get(),
            bands: List::decode_within(version, bands)?,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        out.put(&v13::MeterStats {
            meter_id: U32::new(self.meter),
            flow_count: U32::new(self.flow_count),
            packet_in_count: U64::new(self.packet_in_count),
            byte_in_count: U64::new(self.byte_in_count),
            duration_sec: U32::new(self.duration_sec),
            duration_nsec: U32::new(self.duration_nsec),
            ..Default::default()
        })?;
        self.bands.encode(version, out)?;
        out.patch_length(start, 4, "meter stats")
    }
}

/// Configuration of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MeterConfig<'a> {
    /// Its flags.
    pub flags: MeterFlags,
    /// The meter.
    pub meter: u32,
    /// Its bands.
    pub bands: List<'a, Band<'a>>,
}

impl<'a> Element<'a> for MeterConfig<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::MeterConfig = reader.fixed("meter config")?;
        let bands = entry(&start, reader, wire.length.get(), size_of::<v13::MeterConfig>())?;
        Ok(MeterConfig {
            flags: MeterFlags::from_bits_retain(wire.flags.get()),
            meter: wire.meter_id.get(),
            bands: List::decode_within(version, bands)?,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        let (flags, meter_id) = (U16::new(self.flags.bits()), U32::new(self.meter));
        out.put(&v13::MeterConfig { length: U16::ZERO, flags, meter_id })?;
        self.bands.encode(version, out)?;
        out.patch_length(start, 0, "meter config")
    }
}

/// Meter features of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MeterFeatures {
    /// Maximum number of meters.
    pub max_meter: u32,
    /// One bit per supported band type.
    pub band_types: u32,
    /// Supported flags, see [`MeterFlags`].
    pub capabilities: u32,
    /// Maximum number of bands of a meter.
    pub max_bands: u8,
    /// Maximum colour value.
    pub max_color: u8,
}

impl MeterFeatures {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let wire: &v13::MeterFeatures = reader.fixed("meter features")?;
        Ok(MeterFeatures {
            max_meter: wire.max_meter.get(),
            band_types: wire.band_types.get(),
            capabilities: wire.capabilities.get(),
            max_bands: wire.max_bands,
            max_color: wire.max_color,
        })
    }

    pub(crate) fn encode(&self, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::MeterFeatures {
            max_meter: U32::new(self.max_meter),
            band_types: U32::new(self.band_types),
            capabilities: U32::new(self.capabilities),
            max_bands: self.max_bands,
            max_color: self.max_color,
            pad: [0; 2],
        })
    }
}
