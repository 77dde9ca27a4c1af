//! The hub, on both versions.

mod lab;

use bellrock_api::MacAddr;
use bellrock_apps::Hub;
use lab::{A, B, Lab, Packet, VERSIONS, udp};

#[test]
fn every_packet_is_flooded_and_nothing_else_is_sent() {
    for version in VERSIONS {
        let mut lab = Lab::with_app(version, &Hub);
        for (src, dst) in [(A, B), (B, A), (A, B), (A, MacAddr::BROADCAST)] {
            let packet = Packet::new(1, udp(src, dst));
            assert_eq!(lab.packet_in(&packet), ["packet 242 bytes from 1 to FLOOD"]);
            let sent = lab.packet_in(&packet.buffered(7));
            assert_eq!(sent, ["packet buffer 7 from 1 to FLOOD"]);
        }
    }
}
