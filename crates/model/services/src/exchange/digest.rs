//! Digests: whether a controller knows what another one has reported.
//!
//! A frame may be lost in a fault that nobody thought of, and what is reported once is never said
//! again. So each controller sends a digest of its own links and hosts to the others, every
//! [`DIGEST_EVERY`]. It is a frame of the stream, so the receiver compares it with what the frames
//! before it say: nothing that is on its way makes a difference. Where a bucket differs twice in a
//! row, the receiver asks for what belongs to that bucket, and nothing else.

use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{Dpid, HostId, SwitchPort};

use super::frame::SwitchFacts;

/// Time between two digests.
pub const DIGEST_EVERY: Duration = Duration::from_secs(2);

/// Number of parts of a digest: as much of a controller's switches or hosts is sent again for one
/// difference.
pub const BUCKETS: usize = 32;

/// Maximum number of digests after which a difference that stays is asked for again: some minutes.
/// Without it, a controller that has no room for all hosts would be sent them all the time.
const LONGEST_PAUSE: u32 = 64;

/// Some of the buckets: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets(pub u32);

/// What a controller has reported of its switches, or of its hosts, as one number a bucket. Times
/// are no part of it: each controller has its own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub Box<[u64; BUCKETS]>);

/// A hash that is the same on all machines and in all versions.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const START: Hash = Hash(0x6265_6c6c_726f_636b);

    /// Adds a number (the finalizer of SplitMix64).
    fn add(self, number: u64) -> Self {
        let mut hash = (self.0.rotate_left(17) ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Hash(hash ^ (hash >> 31))
    }

    fn bucket(self) -> usize {
        (self.0 % BUCKETS as u64) as usize
    }
}

fn of_dpid(dpid: Dpid) -> Hash {
    Hash::START.add(dpid.0)
}

fn of_host(id: HostId) -> Hash {
    Hash::START.add(id.mac.to_u64()).add(id.vlan.map_or(u64::MAX, u64::from))
}

fn of_address(ip: IpAddr) -> Hash {
    let (family, bits) = match ip {
        IpAddr::V4(ip) => (4, u128::from(ip.to_bits())),
        IpAddr::V6(ip) => (6, ip.to_bits()),
    };
    Hash::START.add(family).add(bits as u64).add((bits >> 64) as u64)
}

impl Buckets {
    /// All of them.
    pub const ALL: Buckets = Buckets(u32::MAX);
    /// None.
    pub const NONE: Buckets = Buckets(0);

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn has_switch(self, dpid: Dpid) -> bool {
        self.0 >> of_dpid(dpid).bucket() & 1 == 1
    }

    pub(crate) fn has_host(self, host: HostId) -> bool {
        self.0 >> of_host(host).bucket() & 1 == 1
    }
}

impl Digest {
    pub(crate) fn add_switch(&mut self, facts: &SwitchFacts) {
        let mut hash = of_dpid(facts.dpid);
        let bucket = hash.bucket();
        for fact in &facts.ports {
            let bits = u64::from(fact.is_known) | u64::from(fact.is_lost) << 1;
            hash = hash.add(fact.port.0.into()).add(bits);
        }
        for fact in &facts.links {
            hash = hash.add(fact.port.0.into()).add(fact.to.dpid.0).add(fact.to.port.0.into());
            hash = hash.add(fact.rate_kbps.map_or(u64::MAX, |rate| rate));
        }
        self.add(bucket, hash.add(facts.ports.len() as u64));
    }

    pub(crate) fn add_host(&mut self, id: HostId, at: SwitchPort, addresses: &[IpAddr]) {
        let mut hash = of_host(id);
        let bucket = hash.bucket();
        // A sum: their order does not count.
        let sum = addresses.iter().map(|ip| of_address(*ip).0).fold(0, u64::wrapping_add);
        hash = hash.add(at.dpid.0).add(at.port.0.into()).add(sum);
        self.add(bucket, hash);
    }

    fn add(&mut self, bucket: usize, hash: Hash) {
        // A sum: the order does not count.
        if let Some(sum) = self.0.get_mut(bucket) {
            *sum = sum.wrapping_add(hash.0);
        }
    }

    /// The buckets in which two digests differ.
    fn differing(&self, other: &Digest) -> Buckets {
        let differs = self.0.iter().zip(other.0.iter()).map(|(one, other)| u32::from(one != other));
        Buckets(differs.rev().fold(0, |bits, bit| bits << 1 | bit))
    }
}

/// How the digests of a peer compared so far with what is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comparison {
    /// Where the last one differed.
    last: Buckets,
    /// Number of digests to let pass before a difference is asked for again, and how many of them
    /// are left.
    pause: u32,
    left: u32,
}

impl Comparison {
    /// Compares what is known of a peer with its digest. Returns what to ask for.
    ///
    /// One difference may be right: a peer does not know yet that another one is master of a
    /// switch, or that a port is down.
    pub(crate) fn compare(&mut self, known: &Digest, reported: &Digest) -> Buckets {
        let differing = known.differing(reported);
        let twice = Buckets(differing.0 & self.last.0);
        self.last = differing;
        if differing.is_empty() {
            *self = Comparison::default();
        }
        if twice.is_empty() {
            return Buckets::NONE;
        }
        if self.left > 0 {
            self.left -= 1;
            return Buckets::NONE;
        }
        self.pause = (2 * self.pause + 1).min(LONGEST_PAUSE);
        self.left = self.pause;
        twice
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{MacAddr, Port};

    use super::*;
    use crate::exchange::{LinkFact, PortFact};

    const S: Duration = Duration::from_secs(1);

    fn at(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort::new(Dpid(dpid), Port(port))
    }

    fn facts(dpid: u64) -> SwitchFacts {
        let (port, came_up) = (Port(1), S);
        let port = PortFact { port, since: S, came_up, is_known: true, is_lost: false };
        let link = LinkFact { port: Port(1), to: at(9, 1), rate_kbps: None, since: S };
        SwitchFacts { dpid: Dpid(dpid), ports: vec![port], links: vec![link] }
    }

    fn digest(all: &[SwitchFacts]) -> Digest {
        let mut digest = Digest::default();
        all.iter().for_each(|facts| digest.add_switch(facts));
        digest
    }

    #[test]
    fn a_digest_has_all_that_is_reported_but_times() {
        let same = facts(1);
        let all = [facts(1), facts(2)];
        assert_eq!(digest(&all), digest(&[facts(2), facts(1)]), "in any order");
        let mut changed: Vec<SwitchFacts> = (0..8).map(|_| same.clone()).collect();
        changed[0].ports[0].is_known = false;
        changed[1].ports[0].is_lost = true;
        changed[2].ports[0].port = Port(2);
        changed[3].links[0].to = at(9, 2);
        changed[4].links[0].rate_kbps = Some(0);
        changed[5].links.clear();
        changed[6].ports.clear();
        changed[7].dpid = Dpid(3);
        for other in changed {
            let of_other = digest(std::slice::from_ref(&other));
            assert_ne!(of_other, digest(std::slice::from_ref(&same)), "{other:?}");
        }
        let mut later = same.clone();
        (later.ports[0].since, later.ports[0].came_up, later.links[0].since) = (S * 2, S, S * 3);
        assert_eq!(digest(&[later]), digest(&[same]));
        let host = |n, at, addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            let mut digest = Digest::default();
            digest.add_host(HostId::new(MacAddr::from_u64(n), None), at, &addresses);
            digest
        };
        let known = host(1, at(1, 1), &["10.0.0.1", "::1"]);
        assert_eq!(known, host(1, at(1, 1), &["::1", "10.0.0.1"]));
        for other in [
            host(2, at(1, 1), &["10.0.0.1", "::1"]),
            host(1, at(1, 2), &["10.0.0.1", "::1"]),
            host(1, at(1, 1), &["10.0.0.1"]),
            host(1, at(1, 1), &["10.0.0.1", "::2"]),
        ] {
            assert_ne!(known, other);
        }
    }

    #[test]
    fn a_difference_is_asked_for_when_it_stays_and_less_often_while_nothing_helps() {
        let (one, two) = (digest(&[facts(1)]), digest(&[facts(1), facts(2)]));
        let mut comparison = Comparison::default();
        assert_eq!(comparison.compare(&one, &two), Buckets::NONE);
        let asked = comparison.compare(&one, &two);
        assert!(asked.has_switch(Dpid(2)) && asked.0.count_ones() == 1, "{asked:?}");
        let more = (0..1000).filter(|_| !comparison.compare(&one, &two).is_empty()).count();
        assert!((10..30).contains(&more), "{more}");
        // It is gone, and another one comes.
        assert_eq!(comparison.compare(&two, &two), Buckets::NONE);
        assert_eq!(comparison.compare(&one, &two), Buckets::NONE);
        assert!(!comparison.compare(&one, &two).is_empty());
    }
}
