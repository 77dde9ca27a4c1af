//! Pushing and popping tags.

use bellrock_openflow::Field::*;

use super::*;

#[test]
fn a_pushed_vlan_tag_is_outermost_and_takes_id_and_priority_of_the_one_before() {
    let mut packet = read(eth().vlan(5, 3).ip(&ip4().udp(1, 2, b"")));
    packet.push_vlan(0x88a8);
    let both = eth().tag(0x88a8, 0x6005).vlan(5, 3).ip(&ip4().udp(1, 2, b""));
    assert_eq!(packet.bytes(), &both[..]);
    packet.set_field(VlanVid, 0x1009);
    packet.set_field(VlanPcp, 1);
    let set = eth().tag(0x88a8, 0x2009).vlan(5, 3).ip(&ip4().udp(1, 2, b""));
    assert_eq!((packet.bytes(), packet.key()), (&set[..], read(set.clone()).key()));
    packet.pop_vlan();
    packet.pop_vlan();
    packet.pop_vlan();
    let bare = eth().ip(&ip4().udp(1, 2, b""));
    assert_eq!((packet.bytes(), packet.key()), (&bare[..], read(bare.clone()).key()));
    packet.push_vlan(0x8100);
    assert_eq!(packet.bytes(), &eth().vlan(0, 0).ip(&ip4().udp(1, 2, b""))[..]);
}

#[test]
fn in_1_0_setting_id_or_priority_adds_a_tag_where_there_is_none() {
    let mut packet = Packet::new(eth().payload(0x1234, b""), Port(1), Version::V1_0);
    packet.set_vlan_pcp(3);
    packet.set_vlan_vid(5);
    assert_eq!(packet.bytes(), &eth().vlan(5, 3).payload(0x1234, b"")[..]);
    let mut tagged = Packet::new(eth().vlan(9, 1).payload(0x1234, b""), Port(1), Version::V1_0);
    tagged.set_vlan_vid(5);
    assert_eq!(tagged.bytes(), &eth().vlan(5, 1).payload(0x1234, b"")[..]);
}

#[test]
fn a_pushed_label_takes_its_ttl_from_ip_and_the_rest_from_the_label_before() {
    let mut packet = read(eth().ip(&ip4().ttl(33).udp(1, 2, b"")));
    packet.push_mpls(0x8847);
    assert_eq!(packet.bytes()[12..18], [0x88, 0x47, 0, 0, 1, 33]);
    packet.set_field(MplsLabel, 0xabcde);
    packet.set_field(MplsTc, 5);
    assert_eq!(packet.bytes()[14..18], [0xab, 0xcd, 0xeb, 33]);
    packet.push_mpls(0x8848);
    assert_eq!(packet.bytes()[12..22], [0x88, 0x48, 0xab, 0xcd, 0xea, 33, 0xab, 0xcd, 0xeb, 33]);
    assert_eq!(packet.key().value(MplsBos), Some(0));
    packet.pop_mpls(0x8847);
    packet.pop_mpls(0x0800);
    assert_eq!(packet.bytes(), &eth().ip(&ip4().ttl(33).udp(1, 2, b""))[..]);
    assert_eq!(packet.key().value(UdpDst), Some(2));
}

#[test]
fn a_label_goes_before_vlan_tags() {
    let tagged = eth().vlan(5, 3).ip(&ip4().udp(1, 2, b""));
    let mut packet = read(tagged.clone());
    packet.push_mpls(0x8847);
    assert_eq!(packet.bytes()[12..22], [0x88, 0x47, 0, 0, 1, 64, 0x60, 5, 0x08, 0]);
    assert_eq!(packet.key().value(VlanVid), Some(0));
    packet.pop_mpls(0x8100);
    assert_eq!((packet.bytes(), packet.key()), (&tagged[..], read(tagged.clone()).key()));
}

#[test]
fn a_service_tag_carries_the_frame_with_its_addresses() {
    let frame = eth().vlan(5, 3).payload(0x1234, b"data");
    let mut packet = read(frame.clone());
    packet.push_pbb(0x88e7);
    packet.set_field(PbbIsid, 0x01_0203);
    packet.set_field(EthDst, 0x99);
    let head = [&[0, 0, 0, 0, 0, 0x99, 0, 0, 0, 0, 0, 0x0a, 0x88, 0xe7, 0x60, 1, 2, 3], &frame[..]];
    assert_eq!(packet.bytes(), &head.concat()[..]);
    assert_eq!(packet.key().value(VlanVid), Some(0));
    packet.push_vlan(0x88a8);
    assert_eq!(packet.key().value(PbbIsid), Some(0x01_0203));
    packet.pop_vlan();
    packet.pop_pbb();
    assert_eq!((packet.bytes(), packet.key()), (&frame[..], read(frame.clone()).key()));
}

#[test]
fn pop_without_a_tag_leaves_the_packet_unchanged() {
    let frame = eth().ip(&ip4().udp(1, 2, b""));
    let mut packet = read(frame.clone());
    packet.pop_vlan();
    packet.pop_mpls(0x0800);
    packet.pop_pbb();
    assert_eq!(packet.bytes(), &frame[..]);
}
