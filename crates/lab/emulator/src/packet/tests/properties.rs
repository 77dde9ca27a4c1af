//! Any bytes: the key always agrees with the bytes, and nothing panics.

use bellrock_openflow::Field;
use proptest::prelude::*;

use super::*;

/// Frames that pass the first checks more often than random bytes.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let types = vec![0x0800_u16, 0x0806, 0x86dd, 0x8847, 0x88e7, 0x8100, 0x88a8, 0x0005, 0x1234];
    let random = (proptest::sample::select(types), proptest::collection::vec(any::<u8>(), 0..90));
    let random = random.prop_map(|(kind, bytes)| eth().payload(kind, &bytes).into_vec());
    let made = proptest::sample::select(vec![
        eth().ip(&ip4().udp(1, 2, b"some data")),
        eth().vlan(5, 6).ip(&ip4().tcp((1, 2), 3, 4, 5, b"some data")),
        eth().ip(&ip6().icmp(135, 0, &[1; 28])),
        eth().ip(&ip6().payload(0, &[44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 0])),
        eth().ip(&ip4().sctp(1, 2, b"some data")),
        eth().arp(1, (A, Ipv4Addr::LOCALHOST), (B, Ipv4Addr::LOCALHOST)),
        eth().payload(0x8847, &[0, 0, 0, 9, 0, 0, 1, 9, 0x45]),
        eth().payload(0x8847, &[0, 0, 1, 9]),
    ]);
    let broken = (made, any::<(prop::sample::Index, u8)>(), any::<prop::sample::Index>());
    let broken = broken.prop_map(|(frame, (at, byte), cut)| {
        let mut bytes = frame.into_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= byte;
        bytes.truncate(cut.index(bytes.len() * 4).max(1));
        bytes
    });
    prop_oneof![random, broken]
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Set(Field, u128),
    Push(u16),
    Pop(u16),
    Ttl(u8),
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (proptest::sample::select(Field::BASIC), any::<u128>()).prop_map(|(field, value)| {
            Edit::Set(field, value & field.max())
        }),
        1 => proptest::sample::select(vec![0x8100, 0x88a8, 0x8847, 0x88e7]).prop_map(Edit::Push),
        1 => proptest::sample::select(vec![0x8100, 0x8847, 0x0800, 0x88e7]).prop_map(Edit::Pop),
        1 => any::<u8>().prop_map(Edit::Ttl),
    ]
}

fn apply(packet: &mut Packet, edit: Edit) {
    match edit {
        Edit::Set(field, value) => packet.set_field(field, value),
        Edit::Push(eth_type @ (0x8100 | 0x88a8)) => packet.push_vlan(eth_type),
        Edit::Push(0x8847) => packet.push_mpls(0x8847),
        Edit::Push(eth_type) => packet.push_pbb(eth_type),
        Edit::Pop(0x8100) => packet.pop_vlan(),
        Edit::Pop(0x88e7) => packet.pop_pbb(),
        Edit::Pop(eth_type) => packet.pop_mpls(eth_type),
        Edit::Ttl(value) => {
            packet.set_nw_ttl(value);
            packet.set_mpls_ttl(value);
            packet.copy_ttl_in();
            packet.copy_ttl_out();
            let _ = packet.dec_nw_ttl();
            let _ = packet.dec_mpls_ttl();
        }
    }
}

proptest! {
    #[test]
    fn the_key_is_always_that_of_the_bytes(
        bytes in frames(),
        edits in proptest::collection::vec(edits(), 0..6),
    ) {
        let mut packet = read(EthernetFrame::from(bytes));
        for edit in edits {
            apply(&mut packet, edit);
            let mut again = packet.key().pipeline();
            let layout = super::super::parse::parse(packet.bytes(), Version::V1_3, &mut again);
            prop_assert_eq!(packet.key(), &again, "{:?}", edit);
            prop_assert_eq!(packet.layout, layout, "{:?}", edit);
        }
    }

    #[test]
    fn any_version_reads_any_bytes(bytes in frames()) {
        for rules in Version::ALL {
            let mut packet = Packet::new(EthernetFrame::from(&bytes[..]), Port(1), rules);
            packet.set_tp_src(1);
            packet.set_vlan_vid(1);
        }
    }
}
