//! The hub, on both versions.

use crate::lab::{A, B, Lab, Packet, VERSIONS, udp};
use bellrock_api::MacAddr;
use bellrock_apps::Hub;

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

#[test]
fn a_packet_without_data_and_buffer_is_not_sent_on() {
    for version in VERSIONS {
        let mut lab = Lab::with_app(version, &Hub);
        assert_eq!(lab.packet_in(&Packet::new(1, Vec::new())), [""; 0], "{version}");
        let sent = lab.packet_in(&Packet::new(1, Vec::new()).buffered(7));
        assert_eq!(sent, ["packet buffer 7 from 1 to FLOOD"], "{version}");
    }
}

#[test]
fn on_a_switch_without_flood_packets_go_to_all_ports_after_the_first() {
    for version in VERSIONS {
        let topology = bellrock_emulator::topology::linear(2, 1);
        let lab = bellrock_emulator::lab::Lab::seeded(3).version(version).topology(topology);
        let mut lab = lab.run(Hub);
        lab.refuse_flood("s2");
        // The refused packet is lost; later packets arrive.
        lab.ping_all();
        let errors = lab.counter("errors_received");
        assert!(errors > 0, "{version}");
        assert!(lab.ping_all().is_complete(), "{version}");
        assert_eq!(lab.counter("errors_received"), errors, "{version}: FLOOD is sent no more");
        let outputs = |switch: &str, port: &str| {
            let sent = lab.messages(switch).map(|message| message.to_string());
            sent.filter(|message| message.contains(port)).count()
        };
        assert!(outputs("s1", "actions=FLOOD") > 0 && outputs("s1", "actions=ALL") == 0);
        assert!(outputs("s2", "actions=ALL") > 0);
    }
}
