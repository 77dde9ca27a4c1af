//! The limits for controllers that do not read.

use bellrock_openflow::{Bytes, FlowFlags, FlowStatsRequest};

use super::*;
use crate::switch::{CLOSE_BYTES, INPUT_BYTES, PAUSE_BYTES};

#[test]
fn a_controller_that_does_not_read_gets_no_more_packet_ins_and_they_are_counted() {
    let (mut lab, peer) = Lab::with(V1_0);
    let lazy = lab.join(V1_0);
    let sent = 2 * PAUSE_BYTES / 1_000;
    let mut heard = 0;
    for _ in 0..sent {
        lab.packet(1, &packet(1_000));
        heard += lab.take(peer).0.len();
    }
    assert_eq!(heard, sent, "one that reads gets them all");
    let waiting = lab.switch.output(lazy.id).len();
    assert!(waiting > PAUSE_BYTES && waiting < PAUSE_BYTES + 2_000);
    let counters = lab.switch.counters();
    assert!(counters.packet_ins_dropped > 0);
    assert_eq!(counters.packet_ins + counters.packet_ins_dropped, 2 * sent as u64);
    assert_eq!(lab.switch.overrun(), None);
    assert!(!lab.switch.wants_input(lazy.id));
    lab.take(lazy);
    lab.packet(1, &packet(60));
    assert_eq!(lab.take(lazy).kinds(), ["PacketIn"]);
}

#[test]
fn requests_wait_until_the_controller_reads_and_none_is_lost() {
    let (mut lab, peer) = Lab::with(V1_3);
    let echo = bytes(V1_3, 1, &ToSwitch::EchoRequest(Bytes(&[7; 60_000])));
    let count = 2 * PAUSE_BYTES / echo.len();
    for _ in 0..count {
        lab.give(peer, &echo).unwrap();
    }
    lab.give(peer, &bytes(V1_3, 2, &ToSwitch::BarrierRequest)).unwrap();
    assert!(lab.switch.output(peer.id).len() < PAUSE_BYTES + 2 * echo.len());
    let kinds = lab.take(peer).kinds();
    assert_eq!(kinds.len(), count + 1);
    assert_eq!(kinds.last().unwrap(), "BarrierReply");
}

#[test]
fn a_controller_that_goes_on_asking_and_does_not_read_is_closed() {
    let (mut lab, peer) = Lab::with(V1_3);
    let echo = bytes(V1_3, 1, &ToSwitch::EchoRequest(Bytes(&[7; 60_000])));
    let close = (0..100).find_map(|_| lab.give(peer, &echo).err()).unwrap();
    let ChannelClose::TooManyRequests { waiting } = close else { panic!("{close}") };
    assert!(waiting > INPUT_BYTES && waiting <= INPUT_BYTES + echo.len());
}

#[test]
fn a_reply_may_be_longer_than_what_may_wait() {
    let (mut lab, peer) = Lab::with(V1_3);
    let actions = [Action::output(Port(2)); 60];
    for n in 0..2_000_u64 {
        let matching = Match::any().eth_dst(bellrock_openflow::MacAddr::from_u64(n));
        lab.flow(peer, FlowMod::add(&matching).actions(&actions));
    }
    let any = Match::any();
    let asked =
        ToSwitch::MultipartRequest(multipart(RequestBody::Flow(FlowStatsRequest::all(&any))));
    lab.give(peer, &bytes(V1_3, 7, &asked)).unwrap();
    assert!(lab.switch.output(peer.id).len() > PAUSE_BYTES);
    assert!(lab.take(peer).0.len() > 8);
}

#[test]
fn a_connection_that_does_not_read_flow_removed_is_closed() {
    let (mut lab, peer) = Lab::with(V1_3);
    let lazy = lab.join(V1_3);
    let one = Match::any().in_port(Port(1));
    let told = FlowMod::add(&one).flags(FlowFlags::SEND_FLOW_REM);
    let round = [
        bytes(V1_3, 1, &ToSwitch::FlowMod(told)),
        bytes(V1_3, 1, &ToSwitch::FlowMod(FlowMod::delete(&one))),
    ]
    .concat()
    .repeat(2_000);
    let mut rounds = 0;
    while lab.switch.overrun().is_none() {
        lab.give(peer, &round).unwrap();
        lab.take(peer);
        rounds += 1;
        assert!(rounds < CLOSE_BYTES / 2_000 / 40);
    }
    let (id, close) = lab.switch.overrun().unwrap();
    assert_eq!(id, lazy.id);
    let ChannelClose::NotReading { waiting } = close else { panic!("{close}") };
    assert!(waiting > CLOSE_BYTES && waiting < CLOSE_BYTES + 1_000);
    lab.switch.disconnect(id);
    assert_eq!(lab.switch.overrun(), None);
}
