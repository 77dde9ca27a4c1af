//! The Ethernet addresses of Internet addresses (RFC 826).

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_openflow::MacAddr;

use crate::packet::EthernetFrame;

/// How long an address stays valid after it was last heard.
const BELIEVED: Duration = Duration::from_secs(60);
/// Time between two requests for the same address.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Requests without an answer before the waiting packets are dropped.
const MAX_REQUESTS: u32 = 3;
/// Maximum number of packets that wait for an address; more are dropped.
const MAX_WAITING: usize = 64;
/// Maximum number of addresses that a host asks for at a time; packets to more are dropped. A host
/// answers packets from any address, so the number must have a limit.
const MAX_ASKED: usize = 1024;
/// Maximum number of known addresses; a further one replaces the one heard longest ago.
const MAX_KNOWN: usize = 4096;

struct KnownNeighbour {
    mac: MacAddr,
    until: Duration,
}

struct AskedNeighbour {
    waiting: VecDeque<EthernetFrame>,
    requests: u32,
    repeat_at: Duration,
}

/// The addresses that a host knows, and those that it asks for.
#[derive(Default)]
pub(super) struct Neighbours {
    known: BTreeMap<Ipv4Addr, KnownNeighbour>,
    pending: BTreeMap<Ipv4Addr, AskedNeighbour>,
}

/// What to do about an address without an answer.
pub(super) enum Overdue {
    /// Ask again, and check again at this time.
    Ask(Duration),
    /// Drop the packets that waited for it.
    GiveUp(VecDeque<EthernetFrame>),
}

impl Neighbours {
    pub(super) fn mac(&self, ip: Ipv4Addr, now: Duration) -> Option<MacAddr> {
        self.known.get(&ip).filter(|known| known.until > now).map(|known| known.mac)
    }

    /// Keeps a frame until the address is known. Returns it as an error if too many wait. If this
    /// is the first waiting frame, a request must be sent now: returns the time of the next one.
    pub(super) fn wait(
        &mut self,
        ip: Ipv4Addr,
        frame: EthernetFrame,
        now: Duration,
    ) -> Result<Option<Duration>, EthernetFrame> {
        let repeat_at = now + ASK_AGAIN;
        let first = !self.pending.contains_key(&ip);
        if first && self.pending.len() == MAX_ASKED {
            return Err(frame);
        }
        let new = || AskedNeighbour { waiting: VecDeque::new(), requests: 1, repeat_at };
        let neighbour = self.pending.entry(ip).or_insert_with(new);
        if neighbour.waiting.len() == MAX_WAITING {
            return Err(frame);
        }
        neighbour.waiting.push_back(frame);
        Ok(first.then_some(repeat_at))
    }

    /// What to do now about an address.
    pub(super) fn overdue(&mut self, ip: Ipv4Addr, now: Duration) -> Option<Overdue> {
        let neighbour = self.pending.get_mut(&ip)?;
        if neighbour.requests < MAX_REQUESTS {
            neighbour.requests += 1;
            neighbour.repeat_at = now + ASK_AGAIN;
            return Some(Overdue::Ask(neighbour.repeat_at));
        }
        self.pending.remove(&ip).map(|neighbour| Overdue::GiveUp(neighbour.waiting))
    }

    /// Records an address that was heard; with `new` also an unknown one. Returns the frames that
    /// waited for it, and the time of the next request, which is no longer needed.
    pub(super) fn learn(
        &mut self,
        ip: Ipv4Addr,
        mac: MacAddr,
        new: bool,
        now: Duration,
    ) -> Option<(VecDeque<EthernetFrame>, Duration)> {
        let neighbour = self.pending.remove(&ip);
        let known = self.known.contains_key(&ip);
        if known || new || neighbour.is_some() {
            if !known && self.known.len() == MAX_KNOWN {
                let oldest = self.known.iter().min_by_key(|(_, known)| known.until);
                if let Some(oldest) = oldest.map(|(ip, _)| *ip) {
                    self.known.remove(&oldest);
                }
            }
            self.known.insert(ip, KnownNeighbour { mac, until: now + BELIEVED });
        }
        neighbour.map(|neighbour| (neighbour.waiting, neighbour.repeat_at))
    }

    pub(super) fn known(&self) -> impl Iterator<Item = (Ipv4Addr, MacAddr)> + '_ {
        self.known.iter().map(|(ip, known)| (*ip, known.mac))
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}
