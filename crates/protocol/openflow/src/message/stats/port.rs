//! Counters of ports and queues (1.0 §5.3.5; 1.3.5 §7.3.5.6, §7.3.5.8).

use crate::list::Element;
use crate::reader::Reader;
use crate::wire::{U16, U32, U64, v10, v13};
use crate::{DecodeError, EncodeError, Family, Out, Port, Version};

/// Twelve counters of a port. All ones if the switch does not support a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[allow(missing_docs, reason = "the names are the specification's")]
pub struct PortCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_frame_err: u64,
    pub rx_over_err: u64,
    pub rx_crc_err: u64,
    pub collisions: u64,
}

/// A port with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PortStats {
    /// The port.
    pub port: Port,
    /// Its counters.
    pub counters: PortCounters,
    /// How long it has existed, in whole seconds (0 in 1.0, which does not report it).
    pub duration_sec: u32,
    /// Additional nanoseconds.
    pub duration_nsec: u32,
}

impl<'a> Element<'a> for PortStats {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let port = match version.family() {
            Family::Fixed => {
                Port::from_v10(reader.fixed::<v10::PortStats>("port stats")?.port_no.get())
            }
            Family::Oxm => Port(reader.fixed::<v13::NumberRequest>("port stats")?.number.get()),
        };
        let wire: &v13::PortCounters = reader.fixed("port stats")?;
        let (duration_sec, duration_nsec) = duration(version, reader)?;
        let counters = PortCounters {
            rx_packets: wire.rx_packets.get(),
            tx_packets: wire.tx_packets.get(),
            rx_bytes: wire.rx_bytes.get(),
            tx_bytes: wire.tx_bytes.get(),
            rx_dropped: wire.rx_dropped.get(),
            tx_dropped: wire.tx_dropped.get(),
            rx_errors: wire.rx_errors.get(),
            tx_errors: wire.tx_errors.get(),
            rx_frame_err: wire.rx_frame_err.get(),
            rx_over_err: wire.rx_over_err.get(),
            rx_crc_err: wire.rx_crc_err.get(),
            collisions: wire.collisions.get(),
        };
        Ok(PortStats { port, counters, duration_sec, duration_nsec })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match version.family() {
            Family::Fixed => {
                let port_no = U16::new(self.port.to_v10()?);
                out.put(&v10::PortStats { port_no, pad: [0; 6] })?;
            }
            Family::Oxm => {
                out.put(&v13::NumberRequest { number: U32::new(self.port.0), pad: [0; 4] })?;
            }
        }
        let counters = &self.counters;
        out.put(&v13::PortCounters {
            rx_packets: U64::new(counters.rx_packets),
            tx_packets: U64::new(counters.tx_packets),
            rx_bytes: U64::new(counters.rx_bytes),
            tx_bytes: U64::new(counters.tx_bytes),
            rx_dropped: U64::new(counters.rx_dropped),
            tx_dropped: U64::new(counters.tx_dropped),
            rx_errors: U64::new(counters.rx_errors),
            tx_errors: U64::new(counters.tx_errors),
            rx_frame_err: U64::new(counters.rx_frame_err),
            rx_over_err: U64::new(counters.rx_over_err),
            rx_crc_err: U64::new(counters.rx_crc_err),
            collisions: U64::new(counters.collisions),
        })?;
        put_duration(version, self.duration_sec, self.duration_nsec, out)
    }
}

/// Selects the queues to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QueueStatsRequest {
    /// The port; [`Port::ANY`] for all ([`Port::ALL`] in 1.0).
    pub port: Port,
    /// The queue; [`QueueStatsRequest::ALL_QUEUES`] for all.
    pub queue: u32,
}

impl QueueStatsRequest {
    /// `OFPQ_ALL`.
    pub const ALL_QUEUES: u32 = 0xffff_ffff;

    pub(crate) fn decode(version: Version, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match version.family() {
            Family::Fixed => {
                let wire: &v10::QueueStatsRequest = reader.fixed("queue stats")?;
                let port = Port::from_v10(wire.port_no.get());
                QueueStatsRequest { port, queue: wire.queue_id.get() }
            }
            Family::Oxm => {
                let wire: &v13::QueueStatsRequest = reader.fixed("queue stats")?;
                QueueStatsRequest { port: Port(wire.port_no.get()), queue: wire.queue_id.get() }
            }
        })
    }

    pub(crate) fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let queue_id = U32::new(self.queue);
        match version.family() {
            Family::Fixed => {
                let port_no = U16::new(self.port.to_v10()?);
                out.put(&v10::QueueStatsRequest { port_no, pad: [0; 2], queue_id })
            }
            Family::Oxm => {
                out.put(&v13::QueueStatsRequest { port_no: U32::new(self.port.0), queue_id })
            }
        }
    }
}

/// A queue with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QueueStats {
    /// The port.
    pub port: Port,
    /// The queue at the port.
    pub queue: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped because the queue was full.
    pub tx_errors: u64,
    /// How long it has existed, in whole seconds (0 in 1.0, which does not report it).
    pub duration_sec: u32,
    /// Additional nanoseconds.
    pub duration_nsec: u32,
}

impl<'a> Element<'a> for QueueStats {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let QueueStatsRequest { port, queue } = QueueStatsRequest::decode(version, reader)?;
        let wire: &v13::QueueCounters = reader.fixed("queue stats")?;
        let (duration_sec, duration_nsec) = duration(version, reader)?;
        Ok(QueueStats {
            port,
            queue,
            tx_bytes: wire.tx_bytes.get(),
            tx_packets: wire.tx_packets.get(),
            tx_errors: wire.tx_errors.get(),
            duration_sec,
            duration_nsec,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        QueueStatsRequest { port: self.port, queue: self.queue }.encode(version, out)?;
        out.put(&v13::QueueCounters {
            tx_bytes: U64::new(self.tx_bytes),
            tx_packets: U64::new(self.tx_packets),
            tx_errors: U64::new(self.tx_errors),
        })?;
        put_duration(version, self.duration_sec, self.duration_nsec, out)
    }
}

/// Reads seconds and nanoseconds, which only 1.3 reports.
fn duration(version: Version, reader: &mut Reader<'_>) -> Result<(u32, u32), DecodeError> {
    match version.family() {
        Family::Fixed => Ok((0, 0)),
        Family::Oxm => {
            let wire: &v13::Duration = reader.fixed("duration")?;
            Ok((wire.seconds.get(), wire.nanoseconds.get()))
        }
    }
}

fn put_duration(
    version: Version,
    seconds: u32,
    nanoseconds: u32,
    out: &mut Out,
) -> Result<(), EncodeError> {
    match version.family() {
        Family::Fixed if (seconds, nanoseconds) == (0, 0) => Ok(()),
        Family::Fixed => {
            Err(EncodeError::Unsupported { what: "the age of a port or queue", version })
        }
        Family::Oxm => out
            .put(&v13::Duration { seconds: U32::new(seconds), nanoseconds: U32::new(nanoseconds) }),
    }
}
