//! [`NetworkFrame`] as it is sent. Tuples, not maps: a frame has up to 8,192 ports and links.

use std::net::IpAddr;
use std::time::Duration;

use bellrock_api::{Dpid, HostId, MacAddr, Port, SwitchPort};
use bellrock_services::exchange::{
    BUCKETS, Buckets, Digest, HostClaim, HostFact, HostFacts, LinkFact, NumberedFrame,
    PassedAnnouncement, PeerFrame, PortFact, SwitchFacts,
};
use serde::{Deserialize, Serialize};

use super::NetworkFrame;
use crate::remote::base64;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WireNetwork {
    Facts { stream: u64, number: u64, frame: WireFrame },
    Applied { stream: u64, count: u64 },
    Again,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WireFrame {
    Key {
        instance: u64,
        #[serde(with = "base64")]
        key: Vec<u8>,
    },
    Begin {
        switches: u32,
        hosts: u32,
    },
    Switch {
        sent_at: u64,
        term: u64,
        dpid: u64,
        ports: Vec<WirePort>,
        links: Vec<WireLink>,
    },
    Left(Vec<u64>),
    Hosts {
        sent_at: u64,
        present: Vec<WireHost>,
        gone: Vec<WireHostId>,
    },
    End,
    Announcement {
        instance: u64,
        from: WirePlace,
        to: WirePlace,
        nonce: u64,
        sent: u64,
    },
    ClaimedPlace {
        host: WireHostId,
        at: WirePlace,
        ip: Option<IpAddr>,
    },
    ClaimedAddress {
        ip: IpAddr,
        owner: WireHostId,
        by: WireHostId,
    },
    Moved(WireHost),
    Digest {
        switches: Box<[u64; BUCKETS]>,
        hosts: Box<[u64; BUCKETS]>,
    },
    Differs {
        switches: u32,
        hosts: u32,
    },
}

/// Port, when it came up in milliseconds, the same in nanoseconds of its own clock, and the bits
/// [`KNOWN`] and [`LOST`].
type WirePort = (u32, u64, u64, u8);
const KNOWN: u8 = 1;
const LOST: u8 = 2;

/// Sending port, receiving switch and port, rate, and time in milliseconds.
type WireLink = (u32, u64, u32, Option<u64>, u64);

/// Switch and port.
type WirePlace = (u64, u32);

/// Ethernet address and VLAN.
type WireHostId = (u64, Option<u16>);

/// Host, place, IP addresses, and time in nanoseconds.
type WireHost = (WireHostId, WirePlace, Vec<IpAddr>, u64);

fn place(SwitchPort { dpid, port }: SwitchPort) -> WirePlace {
    (dpid.0, port.0)
}

fn place_of((dpid, port): WirePlace) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

fn id(HostId { mac, vlan }: HostId) -> WireHostId {
    (mac.to_u64(), vlan)
}

fn id_of((mac, vlan): WireHostId) -> HostId {
    HostId::new(MacAddr::from_u64(mac), vlan)
}

/// Nanoseconds, of 584 years at most.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds. It shortens the frames of switches with many ports.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn host(HostFact { id: host, at, addresses, since }: HostFact) -> WireHost {
    (id(host), place(at), addresses, nanos(since))
}

fn host_of((host, at, addresses, since): WireHost) -> HostFact {
    HostFact { id: id_of(host), at: place_of(at), addresses, since: Duration::from_nanos(since) }
}

impl From<NetworkFrame> for WireNetwork {
    fn from(frame: NetworkFrame) -> Self {
        match frame {
            NetworkFrame::Facts(NumberedFrame { stream, number, frame }) => {
                WireNetwork::Facts { stream, number, frame: frame.into() }
            }
            NetworkFrame::Applied { stream, count } => WireNetwork::Applied { stream, count },
            NetworkFrame::Again => WireNetwork::Again,
        }
    }
}

impl From<WireNetwork> for NetworkFrame {
    fn from(wire: WireNetwork) -> Self {
        match wire {
            WireNetwork::Facts { stream, number, frame } => {
                NetworkFrame::Facts(NumberedFrame { stream, number, frame: frame.into() })
            }
            WireNetwork::Applied { stream, count } => NetworkFrame::Applied { stream, count },
            WireNetwork::Again => NetworkFrame::Again,
        }
    }
}

impl From<PeerFrame> for WireFrame {
    fn from(frame: PeerFrame) -> Self {
        match frame {
            PeerFrame::Key { instance, key } => WireFrame::Key { instance, key },
            PeerFrame::Begin { switches, hosts } => {
                WireFrame::Begin { switches: switches.0, hosts: hosts.0 }
            }
            PeerFrame::Switch { sent_at, term, facts: SwitchFacts { dpid, ports, links } } => {
                let ports = ports.into_iter().map(|fact| {
                    let PortFact { port, since, came_up, is_known, is_lost } = fact;
                    let bits = (u8::from(is_known) * KNOWN) | (u8::from(is_lost) * LOST);
                    (port.0, millis(since), nanos(came_up), bits)
                });
                let links = links.into_iter().map(|LinkFact { port, to, rate_kbps, since }| {
                    (port.0, to.dpid.0, to.port.0, rate_kbps, millis(since))
                });
                let (ports, links) = (ports.collect(), links.collect());
                WireFrame::Switch { sent_at: nanos(sent_at), term, dpid: dpid.0, ports, links }
            }
            PeerFrame::Left(dpids) => WireFrame::Left(dpids.into_iter().map(|it| it.0).collect()),
            PeerFrame::Hosts { sent_at, facts: HostFacts { present, gone } } => WireFrame::Hosts {
                sent_at: nanos(sent_at),
                present: present.into_iter().map(host).collect(),
                gone: gone.into_iter().map(id).collect(),
            },
            PeerFrame::End => WireFrame::End,
            PeerFrame::Announcement(PassedAnnouncement { instance, from, to, nonce, sent }) => {
                let (from, to, sent) = (place(from), place(to), nanos(sent));
                WireFrame::Announcement { instance, from, to, nonce, sent }
            }
            PeerFrame::Claim(HostClaim::Place { host, at, ip }) => {
                WireFrame::ClaimedPlace { host: id(host), at: place(at), ip }
            }
            PeerFrame::Claim(HostClaim::Address { ip, owner, by }) => {
                WireFrame::ClaimedAddress { ip, owner: id(owner), by: id(by) }
            }
            PeerFrame::Moved(fact) => WireFrame::Moved(host(fact)),
            PeerFrame::Digest { switches, hosts } => {
                WireFrame::Digest { switches: switches.0, hosts: hosts.0 }
            }
            PeerFrame::Differs { switches, hosts } => {
                WireFrame::Differs { switches: switches.0, hosts: hosts.0 }
            }
        }
    }
}

impl From<WireFrame> for PeerFrame {
    fn from(wire: WireFrame) -> Self {
        let time = Duration::from_nanos;
        match wire {
            WireFrame::Key { instance, key } => PeerFrame::Key { instance, key },
            WireFrame::Begin { switches, hosts } => {
                PeerFrame::Begin { switches: Buckets(switches), hosts: Buckets(hosts) }
            }
            WireFrame::Switch { sent_at, term, dpid, ports, links } => {
                let ports = ports.into_iter().map(|(port, since, came_up, bits)| PortFact {
                    port: Port(port),
                    since: Duration::from_millis(since),
                    came_up: time(came_up),
                    is_known: bits & KNOWN != 0,
                    is_lost: bits & LOST != 0,
                });
                let links = links.into_iter().map(|(port, dpid, to, rate_kbps, since)| LinkFact {
                    port: Port(port),
                    to: place_of((dpid, to)),
                    rate_kbps,
                    since: Duration::from_millis(since),
                });
                let (ports, links) = (ports.collect(), links.collect());
                let facts = SwitchFacts { dpid: Dpid(dpid), ports, links };
                PeerFrame::Switch { sent_at: time(sent_at), term, facts }
            }
            WireFrame::Left(dpids) => PeerFrame::Left(dpids.into_iter().map(Dpid).collect()),
            WireFrame::Hosts { sent_at, present, gone } => {
                let present = present.into_iter().map(host_of).collect();
                let gone = gone.into_iter().map(id_of).collect();
                PeerFrame::Hosts { sent_at: time(sent_at), facts: HostFacts { present, gone } }
            }
            WireFrame::End => PeerFrame::End,
            WireFrame::Announcement { instance, from, to, nonce, sent } => {
                let (from, to, sent) = (place_of(from), place_of(to), time(sent));
                PeerFrame::Announcement(PassedAnnouncement { instance, from, to, nonce, sent })
            }
            WireFrame::ClaimedPlace { host, at, ip } => {
                PeerFrame::Claim(HostClaim::Place { host: id_of(host), at: place_of(at), ip })
            }
            WireFrame::ClaimedAddress { ip, owner, by } => {
                PeerFrame::Claim(HostClaim::Address { ip, owner: id_of(owner), by: id_of(by) })
            }
            WireFrame::Moved(fact) => PeerFrame::Moved(host_of(fact)),
            WireFrame::Digest { switches, hosts } => {
                PeerFrame::Digest { switches: Digest(switches), hosts: Digest(hosts) }
            }
            WireFrame::Differs { switches, hosts } => {
                PeerFrame::Differs { switches: Buckets(switches), hosts: Buckets(hosts) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bellrock_services::exchange::{HOSTS_PER_FRAME, MAX_PORTS_OF_SWITCH};

    use super::*;
    use crate::link::MAX_FRAME_BYTES;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort::new(Dpid(dpid), Port(port))
    }

    fn host_fact(n: u64, addresses: &[&str]) -> HostFact {
        HostFact {
            id: HostId::new(MacAddr::from_u64(n), n.is_multiple_of(2).then_some(4095)),
            at: at(u64::MAX, u32::MAX),
            addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
            since: SECOND,
        }
    }

    fn frames() -> Vec<PeerFrame> {
        let port = |n: u32| PortFact {
            port: Port(n),
            since: SECOND,
            came_up: SECOND * 2,
            is_known: n.is_multiple_of(2),
            is_lost: n.is_multiple_of(3),
        };
        let link = |n| LinkFact { port: Port(n), to: at(9, n), rate_kbps: Some(7), since: SECOND };
        let facts = SwitchFacts {
            dpid: Dpid(u64::MAX),
            ports: (0..6).map(port).collect(),
            links: (0..2).map(link).collect(),
        };
        let host = host_fact(1, &[]).id;
        let ip = "fe80::1".parse().unwrap();
        vec![
            PeerFrame::Key { instance: u64::MAX, key: (0..=255).collect() },
            PeerFrame::Begin { switches: Buckets::ALL, hosts: Buckets(1) },
            PeerFrame::Switch { sent_at: SECOND, term: u64::MAX, facts },
            PeerFrame::Left(vec![Dpid(1), Dpid(u64::MAX)]),
            PeerFrame::Hosts {
                sent_at: SECOND,
                facts: HostFacts {
                    present: vec![host_fact(1, &[]), host_fact(2, &["10.0.0.1", "fe80::1"])],
                    gone: vec![host],
                },
            },
            PeerFrame::End,
            PeerFrame::Announcement(PassedAnnouncement {
                instance: 7,
                from: at(1, 2),
                to: at(3, 4),
                nonce: u64::MAX,
                sent: Duration::from_nanos(1_234_567_891),
            }),
            PeerFrame::Claim(HostClaim::Place { host, at: at(1, 2), ip: Some(ip) }),
            PeerFrame::Claim(HostClaim::Address { ip, owner: host, by: host_fact(2, &[]).id }),
            PeerFrame::Moved(host_fact(3, &["10.0.0.3"])),
            PeerFrame::Digest {
                switches: Digest(Box::new([u64::MAX; BUCKETS])),
                hosts: Digest::default(),
            },
            PeerFrame::Differs { switches: Buckets::NONE, hosts: Buckets(7) },
        ]
    }

    fn bytes(frame: PeerFrame) -> Vec<u8> {
        let numbered = NumberedFrame { stream: 1, number: u64::MAX, frame };
        serde_json::to_vec(&WireNetwork::from(NetworkFrame::Facts(numbered))).unwrap()
    }

    #[test]
    fn each_frame_is_read_as_it_was_written() {
        for frame in frames() {
            let bytes = bytes(frame.clone());
            let read: WireNetwork = serde_json::from_slice(&bytes).unwrap();
            let numbered = NumberedFrame { stream: 1, number: u64::MAX, frame };
            assert_eq!(NetworkFrame::from(read), NetworkFrame::Facts(numbered));
            for end in 0..bytes.len() {
                assert!(serde_json::from_slice::<WireNetwork>(&bytes[..end]).is_err());
            }
        }
        for frame in [NetworkFrame::Again, NetworkFrame::Applied { stream: 3, count: u64::MAX }] {
            let expected = format!("{frame:?}");
            let bytes = serde_json::to_vec(&WireNetwork::from(frame)).unwrap();
            let read: WireNetwork = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(format!("{:?}", NetworkFrame::from(read)), expected);
        }
    }

    #[test]
    fn a_digest_takes_less_than_1500_bytes() {
        let full = || Digest(Box::new([u64::MAX; BUCKETS]));
        let length = bytes(PeerFrame::Digest { switches: full(), hosts: full() }).len();
        assert!(length < 1500, "{length}");
    }

    #[test]
    fn the_largest_frames_fit_into_a_message_of_a_link() {
        // Ten years, and the greatest rate that a switch can report.
        let since = SECOND * 315_360_000;
        let ports = (0..MAX_PORTS_OF_SWITCH as u32).map(|n| PortFact {
            port: Port(u32::MAX - n),
            since,
            came_up: since,
            is_known: true,
            is_lost: true,
        });
        let links = (0..MAX_PORTS_OF_SWITCH as u32).map(|n| LinkFact {
            port: Port(u32::MAX - n),
            to: at(u64::MAX, u32::MAX - n),
            rate_kbps: Some(u32::MAX.into()),
            since,
        });
        let (ports, links) = (ports.collect(), links.collect());
        let facts = SwitchFacts { dpid: Dpid(u64::MAX), ports, links };
        let switch = PeerFrame::Switch { sent_at: since, term: u64::MAX, facts };
        let addresses = ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"; 16];
        let host = HostFact { since, ..host_fact(u64::MAX - 1, &addresses) };
        let present = vec![host; HOSTS_PER_FRAME];
        let facts = HostFacts { present, gone: Vec::new() };
        let hosts = PeerFrame::Hosts { sent_at: since, facts };
        for frame in [switch, hosts] {
            let length = bytes(frame).len();
            assert!(length <= MAX_FRAME_BYTES, "{length}");
        }
    }
}
