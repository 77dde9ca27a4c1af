//! In the steady state no packet causes an allocation: hits, floods, inserts, evictions, packets
//! with and without buffers, both kinds of match, both versions.
#![allow(clippy::unwrap_used, reason = "a failing test panics")]

#[path = "apps/lab/mod.rs"]
mod lab;

use std::time::Duration;

use bellrock_api::{Handler, MacAddr, Version};
use bellrock_apps::{LearningSettings, MatchKind};
use lab::{Lab, Packet, VERSIONS, batch, udp};

const HOSTS: u32 = 2_000;

fn host(n: u32) -> MacAddr {
    let [a, b, c, d] = n.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

/// A mix: known hosts talk to each other, strangers appear once, group packets, moves, dropped
/// packets; every third packet is buffered.
fn traffic() -> Vec<Packet> {
    (0..4 * HOSTS)
        .map(|n| {
            let (known, stranger) = (n % 100, 1_000_000 + n);
            let (src, dst) = match n % 8 {
                0 => (host(stranger), host(known)),
                1 => (host(known), MacAddr::BROADCAST),
                2 => (MacAddr::BROADCAST, host(known)),
                3 => (host(known), MacAddr([1, 0x80, 0xc2, 0, 0, 0xe])),
                4 => (host(known), host(stranger)),
                _ => (host(known), host((n * 7 + 1) % 100)),
            };
            // A few hosts move now and then.
            let moved = if known < 5 { n / 1_000 } else { 0 };
            let packet = Packet::new(1 + (known + moved) % 40, udp(src, dst));
            if n % 3 == 0 { packet.buffered(n) } else { packet }
        })
        .collect()
}

/// The bytes that the switch sends, read by read.
fn reads(packets: &[Packet], version: Version) -> Vec<Vec<u8>> {
    let read = |packets: &[Packet]| packets.iter().flat_map(|p| p.message(version)).collect();
    packets.chunks(40).map(read).collect()
}

fn run(lab: &mut Lab, reads: &[Vec<u8>]) {
    for stream in reads {
        let mut batch = batch(lab.info.version, stream);
        lab.with(|handler, switch| handler.packet_ins(switch, &mut batch));
        assert_eq!(batch.errors(), (0, None));
        lab.now += Duration::from_millis(100);
        lab.with(|handler, switch| handler.tick(switch)).unwrap();
        lab.out.clear();
    }
}

#[test]
fn no_packet_costs_an_allocation() {
    let packets = traffic();
    for version in VERSIONS {
        let reads = reads(&packets, version);
        for matching in [MatchKind::L2, MatchKind::Exact] {
            let settings =
                LearningSettings { matching, max_entries: 500, ..LearningSettings::default() };
            let mut lab = Lab::new(version, settings);
            run(&mut lab, &reads);
            let counted = allocation_counter::measure(|| run(&mut lab, &reads));
            assert_eq!(counted.count_total, 0, "{version} {matching:?}");
            for name in ["flow_mods", "packet_outs", "floods", "evicted", "moves", "bad_source"] {
                assert!(lab.counter(name) > 0, "the mix has none that counts as {name}");
            }
        }
    }
}
