//! UDP: sending and receiving single datagrams, and sending streams.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::timers::HostTimer;
use super::wire::{self, Ipv4};
use super::{EmulatedHost, HostError};
use crate::datapath::Effects;

/// Maximum bytes of data in a datagram, so that it fits a frame of the usual size.
pub(super) const MAX_DATA_BYTES: usize = 1472;
/// Maximum number of datagrams that wait at a port; more are counted, and their data dropped.
const MAX_INBOX: usize = 64;
/// Maximum number of streams of a host at a time.
const MAX_STREAMS: usize = 65_536;

/// A received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Address of the sender.
    pub from: Ipv4Addr,
    /// Port of the sender.
    pub from_port: u16,
    /// Time of arrival.
    pub at: Duration,
    /// Its data.
    pub data: Vec<u8>,
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Datagrams whose data was dropped because too many waited.
    pub unread: u64,
}

/// A listening port.
#[derive(Default)]
pub(super) struct UdpPort {
    counters: UdpCounters,
    /// Whether to keep the data for reading.
    keeps_data: bool,
    waiting: VecDeque<Datagram>,
}

/// Datagrams at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// Destination address.
    pub to: Ipv4Addr,
    /// Source port.
    pub from_port: u16,
    /// Destination port.
    pub to_port: u16,
    /// Bytes of data in each datagram; at most 1,472.
    pub data_len: usize,
    /// Time between two datagrams.
    pub interval: Duration,
    /// Number of datagrams.
    pub count: u64,
}

/// A stream that is being sent.
pub(super) struct UdpStream {
    settings: StreamSettings,
    next: Duration,
}

impl EmulatedHost {
    /// Listens at a port, and keeps each datagram until it is [read](Self::udp_receive).
    pub fn udp_listen(&mut self, port: u16) {
        self.inboxes.entry(port).or_default().keeps_data = true;
    }

    /// Listens at a port, and only counts datagrams.
    pub fn udp_sink(&mut self, port: u16) {
        self.inboxes.entry(port).or_default().keeps_data = false;
    }

    /// Removes and returns the oldest datagram of a port.
    pub fn udp_receive(&mut self, port: u16) -> Option<Datagram> {
        self.inboxes.get_mut(&port)?.waiting.pop_front()
    }

    /// The counters of a port; `None` if it does not listen.
    #[must_use]
    pub fn udp_counters(&self, port: u16) -> Option<UdpCounters> {
        self.inboxes.get(&port).map(|inbox| inbox.counters)
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// `to` is this host, or the data is too long.
    pub fn udp_send(
        &mut self,
        to: Ipv4Addr,
        (from_port, to_port): (u16, u16),
        data: &[u8],
        now: Duration,
        out: &mut Effects,
    ) -> Result<(), HostError> {
        self.check_udp(to, data.len())?;
        self.send(to, now, out, |route, frame| route.udp(from_port, to_port, data, frame));
        Ok(())
    }

    /// Starts a stream of datagrams.
    ///
    /// # Errors
    /// The destination is this host, the data is too long, or there are too many streams.
    pub fn udp_stream(
        &mut self,
        settings: StreamSettings,
        now: Duration,
        out: &mut Effects,
    ) -> Result<(), HostError> {
        self.check_udp(settings.to, settings.data_len)?;
        if self.streams.len() == MAX_STREAMS {
            return Err(HostError::TooManyStreams);
        }
        let id = self.last_stream;
        self.last_stream = self.last_stream.wrapping_add(1);
        self.streams.insert(id, UdpStream { settings, next: now });
        self.continue_stream(id, now, out);
        Ok(())
    }

    fn check_udp(&self, to: Ipv4Addr, len: usize) -> Result<(), HostError> {
        if to == self.ip {
            return Err(HostError::ToItself);
        }
        if len > MAX_DATA_BYTES { Err(HostError::TooLong(len)) } else { Ok(()) }
    }

    pub(super) fn continue_stream(&mut self, id: u32, now: Duration, out: &mut Effects) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let StreamSettings { to, from_port, to_port, data_len, interval, .. } = stream.settings;
        let Some(remaining) = stream.settings.count.checked_sub(1) else {
            self.streams.remove(&id);
            return;
        };
        stream.settings.count = remaining;
        // At least a nanosecond: a host that sends everything at one time would never finish.
        stream.next += interval.max(Duration::from_nanos(1));
        self.timers.set(HostTimer::Stream(id), None, Some(stream.next));
        let data = &[0; MAX_DATA_BYTES][..data_len];
        self.send(to, now, out, |route, frame| route.udp(from_port, to_port, data, frame));
    }

    pub(super) fn receive_udp(
        &mut self,
        ip: &Ipv4<'_>,
        packet: &[u8],
        now: Duration,
        out: &mut Effects,
    ) -> bool {
        let Some((from_port, port, data)) = ip.udp() else { return false };
        let Some(inbox) = self.inboxes.get_mut(&port) else {
            if ip.dst == self.ip {
                // The start of the packet is sent back in the ICMP message (RFC 792).
                let quoted = &packet[..packet.len().min(28)];
                let code = wire::PORT_UNREACHABLE;
                self.send(ip.src, now, out, |route, frame| {
                    route.icmp(wire::UNREACHABLE, code, [0; 4], quoted, frame);
                });
            }
            return true;
        };
        inbox.counters.datagrams += 1;
        inbox.counters.bytes += data.len() as u64;
        if inbox.keeps_data && inbox.waiting.len() < MAX_INBOX {
            let data = data.to_vec();
            inbox.waiting.push_back(Datagram { from: ip.src, from_port, at: now, data });
        } else if inbox.keeps_data {
            inbox.counters.unread += 1;
        }
        true
    }
}
