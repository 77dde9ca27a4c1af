//! Packets with arbitrary bytes: no panic, messages that decode in their version, every match with
//! its prerequisites (decoding checks them), and the same answers for a batch as one by one.

use crate::lab::{Lab, Packet, tagged, udp};
use bellrock_api::{MacAddr, Version};
use bellrock_apps::{LearningSettings, MatchKind};
use proptest::prelude::*;

/// Few hosts, so that they meet, and addresses of no host.
fn address() -> impl Strategy<Value = MacAddr> {
    prop_oneof![
        8 => (0u8..6).prop_map(|n| MacAddr([2, 0, 0, 0, 0, n])),
        1 => Just(MacAddr::BROADCAST),
        1 => Just(MacAddr::ZERO),
        1 => Just(MacAddr([1, 0x80, 0xc2, 0, 0, 0xe])),
    ]
}

/// The bytes behind the addresses: headers that a parser follows for a while, with changes.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let types: [[u8; 2]; 8] = [
        [8, 0],
        [8, 6],
        [0x86, 0xdd],
        [0x81, 0],
        [0x88, 0xa8],
        [0x88, 0xcc],
        [0x88, 0xe5],
        [0, 46],
    ];
    let ip_start = prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()];
    let protocol = prop::sample::select(vec![0u8, 1, 2, 6, 17, 43, 44, 51, 58, 60, 132, 255]);
    (
        prop::sample::select(types.to_vec()),
        ip_start,
        protocol,
        prop::collection::vec(any::<u8>(), 0..120),
    )
        .prop_map(|(eth_type, ip_start, protocol, mut rest)| {
            let len = rest.len() as u8;
            for (at, value) in [(0, ip_start), (2, 0), (3, len), (6, protocol), (9, protocol)] {
                if let Some(byte) = rest.get_mut(at) {
                    *byte = value;
                }
            }
            // The next header of IPv6 and the protocol of IPv4; lengths that are mostly right.
            if ip_start == 0x60 && rest.len() > 40 {
                rest[4] = 0;
                rest[5] = len - 40;
            }
            [eth_type.to_vec(), rest].concat()
        })
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let made = (address(), address(), payload(), prop::option::of(any::<u16>())).prop_map(
        |(src, dst, payload, tag)| {
            let frame = [dst.0.to_vec(), src.0.to_vec(), payload].concat();
            match tag {
                Some(tci) => tagged(frame, 0x8100, tci & 0xe001),
                None => frame,
            }
        },
    );
    let good = (address(), address()).prop_map(|(src, dst)| udp(src, dst));
    prop_oneof![6 => made, 3 => good, 1 => prop::collection::vec(any::<u8>(), 0..64)]
}

fn packet() -> impl Strategy<Value = Packet> {
    let port = prop_oneof![8 => 1u32..4, 1 => Just(0xffff_fffe), 1 => Just(0xffff_fffd)];
    (port, frame(), prop::option::of(0u32..9), 0u16..3).prop_map(|(port, data, buffer_id, cut)| {
        let mut packet = Packet::new(port, data);
        packet.buffer_id = buffer_id;
        packet.total_len += cut / 2 * 100;
        packet
    })
}

fn settings() -> impl Strategy<Value = LearningSettings> {
    let kinds = prop_oneof![Just(MatchKind::L2), Just(MatchKind::Exact)];
    (kinds, 1usize..12, 0u32..4).prop_map(|(matching, max_entries, max_macs_per_port)| {
        LearningSettings { matching, max_entries, max_macs_per_port, ..Default::default() }
    })
}

proptest! {
    #[test]
    fn a_batch_is_answered_as_its_packets_are_one_by_one(
        settings in settings(),
        batches in prop::collection::vec(prop::collection::vec(packet(), 1..64), 1..4),
        version in prop_oneof![Just(Version::V1_0), Just(Version::V1_3)],
    ) {
        let (mut one_by_one, mut together) = (Lab::new(version, settings), Lab::new(version, settings));
        for batch in &batches {
            let answers: Vec<String> =
                batch.iter().flat_map(|packet| one_by_one.packet_in(packet)).collect();
            prop_assert_eq!(together.batch(batch), answers);
            prop_assert_eq!(together.wait(1), one_by_one.wait(1));
        }
        prop_assert_eq!(together.hosts(), one_by_one.hosts());
        prop_assert_eq!(together.counters(), one_by_one.counters());
    }

    #[test]
    fn every_exact_match_can_be_said_in_both_versions(frames in prop::collection::vec(frame(), 1..40)) {
        let settings = LearningSettings { matching: MatchKind::Exact, ..Default::default() };
        for version in crate::lab::VERSIONS {
            let mut lab = Lab::new(version, settings);
            for (n, frame) in frames.iter().enumerate() {
                // Two ports in turn, so that hosts meet; flows removed by a move are fine.
                lab.packet_in(&Packet::new(1 + n as u32 % 2, frame.clone()));
            }
        }
    }
}
