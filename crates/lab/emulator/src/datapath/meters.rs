//! Meters: rate limits by token buckets (1.3.5 §5.7, §7.3.4.4).

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_openflow::{
    Band, BandType, ErrorCode, Field, Meter, MeterCommand, MeterFlags, MeterMod, PacketByteCount,
};

use crate::packet::Packet;

/// Maximum number of meters of a switch.
pub const MAX_METERS: usize = 65_536;
/// Maximum number of bands of a meter.
pub const MAX_BANDS: usize = 16;

/// Nanoseconds in a second: levels count billionths of a token.
const NANOS: u128 = 1_000_000_000;
/// Bits in a kilobit.
const KILO: u128 = 1_000;

/// What a band does with packets above its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandEffect {
    /// Drops them.
    Drop,
    /// Raises the drop precedence of their DSCP by this number.
    DscpRemark(u8),
}

/// A band, with its token bucket.
///
/// A token is a bit or a packet, by the meter's flags. The bucket holds one burst, or one second's
/// tokens if the meter has no burst size. It starts full.
#[derive(Clone, Debug)]
pub struct BandEntry {
    /// Rate as the controller gave it: kb/s or packets a second.
    pub rate: u32,
    /// Burst size as the controller gave it: kb or packets.
    pub burst_size: u32,
    /// What the band does.
    pub effect: BandEffect,
    /// Packets above its rate, and their bytes.
    pub counter: PacketByteCount,
    /// Tokens a second.
    fill: u128,
    /// Billionths of a token: the level now, and the maximum.
    level: u128,
    size: u128,
}

impl BandEntry {
    fn new(band: &Band<'_>, flags: MeterFlags) -> Result<Self, ErrorCode> {
        let effect = match band.kind {
            BandType::Drop => BandEffect::Drop,
            BandType::DscpRemark(0) => return Err(ErrorCode::MeterModBadBandValue),
            BandType::DscpRemark(levels) => BandEffect::DscpRemark(levels),
            BandType::Experimenter { .. } | BandType::Unknown { .. } => {
                return Err(ErrorCode::MeterModBadBand);
            }
        };
        let unit = if flags.contains(MeterFlags::PKTPS) { 1 } else { KILO };
        let fill = u128::from(band.rate) * unit;
        let burst = if flags.contains(MeterFlags::BURST) {
            u128::from(band.burst_size) * unit
        } else {
            fill
        };
        Ok(BandEntry {
            rate: band.rate,
            burst_size: band.burst_size,
            effect,
            counter: PacketByteCount::default(),
            fill,
            level: burst * NANOS,
            size: burst * NANOS,
        })
    }

    /// Fills the bucket for the time that has passed, and takes `tokens` out. If there are too few,
    /// it takes none and returns true.
    fn exceeded(&mut self, elapsed: Duration, tokens: u128) -> bool {
        let filled = elapsed.as_nanos().saturating_mul(self.fill);
        self.level = self.level.saturating_add(filled).min(self.size);
        match self.level.checked_sub(tokens * NANOS) {
            Some(left) => {
                self.level = left;
                false
            }
            None => true,
        }
    }

    /// The band, as the controller gave it.
    #[must_use]
    pub fn band(&self) -> Band<'static> {
        let kind = match self.effect {
            BandEffect::Drop => BandType::Drop,
            BandEffect::DscpRemark(levels) => BandType::DscpRemark(levels),
        };
        Band { rate: self.rate, burst_size: self.burst_size, kind }
    }
}

/// A meter.
#[derive(Clone, Debug)]
pub struct DatapathMeter {
    /// Units and options.
    pub flags: MeterFlags,
    /// Its bands.
    pub bands: Vec<BandEntry>,
    /// Packets that reached it, and their bytes.
    pub counter: PacketByteCount,
    /// When it was added.
    pub created: Duration,
    filled: Duration,
}

impl DatapathMeter {
    /// Passes a packet through. Returns whether it goes on.
    ///
    /// Each band measures by itself. Of the bands whose rate is exceeded, the one with the highest
    /// rate acts (1.3.5 §5.7.1).
    pub(super) fn pass(&mut self, packet: &mut Packet, now: Duration) -> bool {
        let len = packet.bytes().len() as u64;
        self.counter.packet_count += 1;
        self.counter.byte_count += len;
        let packets = self.flags.contains(MeterFlags::PKTPS);
        let tokens = if packets { 1 } else { u128::from(len) * 8 };
        let elapsed = now.saturating_sub(self.filled);
        self.filled = self.filled.max(now);
        let mut acting: Option<&mut BandEntry> = None;
        for band in &mut self.bands {
            if band.exceeded(elapsed, tokens)
                && acting.as_ref().is_none_or(|acting| band.rate > acting.rate)
            {
                acting = Some(band);
            }
        }
        let Some(band) = acting else { return true };
        band.counter.packet_count += 1;
        band.counter.byte_count += len;
        match band.effect {
            BandEffect::Drop => false,
            BandEffect::DscpRemark(levels) => {
                let dscp = packet.key().value(Field::IpDscp);
                if let Some(dscp) = dscp.and_then(|dscp| remarked(dscp as u8, levels)) {
                    packet.set_field(Field::IpDscp, dscp.into());
                }
                true
            }
        }
    }
}

/// Raises the drop precedence of an assured forwarding DSCP, to at most 3 (RFC 2597 §6).
///
/// Other DSCPs have no drop precedence and stay; the specification says nothing about them.
fn remarked(dscp: u8, levels: u8) -> Option<u8> {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let assured = (1..=4).contains(&class) && precedence != 0 && dscp & 1 == 0;
    let raised = precedence.saturating_add(levels).min(3);
    assured.then_some(class << 3 | raised << 1)
}

/// The meters of a switch, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Meters(BTreeMap<u32, DatapathMeter>);

impl Meters {
    /// A meter.
    #[must_use]
    pub fn get(&self, meter: u32) -> Option<&DatapathMeter> {
        self.0.get(&meter)
    }

    pub(super) fn get_mut(&mut self, meter: u32) -> Option<&mut DatapathMeter> {
        self.0.get_mut(&meter)
    }

    /// All meters, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &DatapathMeter)> {
        self.0.iter().map(|(meter, entry)| (*meter, entry))
    }

    /// Adds or changes a meter, or removes meters. `removed` gets the removed numbers, in order.
    ///
    /// # Errors
    /// The errors of the specification (1.3.5 §7.4.4.13); nothing has changed then. The virtual
    /// meters for the slow path and the controller connection are optional, and refused.
    pub(super) fn modify(
        &mut self,
        request: &MeterMod<'_>,
        now: Duration,
        removed: &mut Vec<u32>,
    ) -> Result<(), ErrorCode> {
        match request.command {
            MeterCommand::Delete => {
                if request.meter == Meter::ALL {
                    removed.extend(self.0.keys());
                    self.0.clear();
                } else if self.0.remove(&request.meter).is_some() {
                    removed.push(request.meter);
                }
                return Ok(());
            }
            MeterCommand::Add if self.0.contains_key(&request.meter) => {
                return Err(ErrorCode::MeterModExists);
            }
            MeterCommand::Add if !(1..=Meter::MAX).contains(&request.meter) => {
                return Err(ErrorCode::MeterModInvalid);
            }
            MeterCommand::Add if self.0.len() >= MAX_METERS => {
                return Err(ErrorCode::MeterModOutOfMeters);
            }
            MeterCommand::Modify if !self.0.contains_key(&request.meter) => {
                return Err(ErrorCode::MeterModUnknownMeter);
            }
            MeterCommand::Add | MeterCommand::Modify => {}
        }
        let entry = compile(request, now)?;
        match self.0.get_mut(&request.meter) {
            // A change keeps the meter's age and counter, and resets its bands.
            Some(old) => {
                let (counter, created) = (old.counter, old.created);
                *old = DatapathMeter { counter, created, ..entry };
            }
            None => {
                self.0.insert(request.meter, entry);
            }
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn compile(request: &MeterMod<'_>, now: Duration) -> Result<DatapathMeter, ErrorCode> {
    let flags = request.flags;
    let both = MeterFlags::KBPS | MeterFlags::PKTPS;
    let all = both | MeterFlags::BURST | MeterFlags::STATS;
    if flags.contains(both) || !all.contains(flags) {
        return Err(ErrorCode::MeterModBadFlags);
    }
    if request.bands.len() > MAX_BANDS {
        return Err(ErrorCode::MeterModOutOfBands);
    }
    let bands: Result<_, _> =
        request.bands.iter().map(|band| BandEntry::new(&band, flags)).collect();
    let counter = PacketByteCount::default();
    Ok(DatapathMeter { flags, bands: bands?, counter, created: now, filled: now })
}
