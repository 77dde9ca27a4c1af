//! What a switch has confirmed is read back soon, at a bounded rate.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::flows::Hand;
use bellrock_api::openflow::MultipartKind;
use bellrock_api::{Dpid, Flow, Match, Port, ToSwitch, Version};
use bellrock_emulator::check::MessageDirection;
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::ring;
use bellrock_services::desired::{AUDIT_EVERY, DesiredFlows, READ_BACK_PER_SECOND, VERIFY_AFTER};

const SECOND: Duration = Duration::from_secs(1);

fn lab(version: Version) -> (Lab, Hand) {
    let hand = Hand::default();
    let mut lab = Lab::seeded(1).version(version).topology(ring(3, 1)).run(hand.clone());
    lab.run_for(SECOND);
    (lab, hand)
}

fn flow(number: u32, port: u32) -> Flow {
    let to = Ipv4Addr::from(0x0a00_0000 + number);
    let matching = Match::any().eth_type(0x0800).ipv4_dst_prefix(to, 32);
    Flow::new(matching).priority(7).output(Port(port))
}

/// Runs for a second, and returns how often s1 was asked for its flows.
fn reads_in_a_second(lab: &mut Lab) -> usize {
    let since = lab.now();
    lab.run_for(SECOND);
    let messages = lab.messages("s1").filter(|message| message.at > since);
    let sent = messages.filter(|message| message.direction == MessageDirection::ToSwitch);
    let asks_for_flows = |bytes: &[u8]| match ToSwitch::decode(bytes).unwrap().body {
        ToSwitch::MultipartRequest(request) => request.body.kind() == MultipartKind::Flow,
        _ => false,
    };
    sent.filter(|message| asks_for_flows(&message.bytes)).count()
}

fn reads_in(lab: &mut Lab, seconds: u64) -> usize {
    (0..seconds).map(|_| reads_in_a_second(lab)).sum()
}

#[test]
fn a_confirmed_change_is_read_back_once_and_the_audits_follow() {
    for version in Version::ALL {
        let (mut lab, hand) = lab(version);
        let desired = hand.network().desired();
        // The tables are read before the first flow is sent.
        desired.set(2, [(Dpid(1), flow(2, 2))]);
        assert_eq!(reads_in(&mut lab, VERIFY_AFTER.as_secs() + 2), 2, "{version}: the first reads");
        desired.set(1, [(Dpid(1), flow(1, 2))]);
        assert_eq!(reads_in(&mut lab, VERIFY_AFTER.as_secs() - 1), 0, "{version}");
        assert_eq!(reads_in(&mut lab, 2), 1, "{version}: it is read back");
        assert_eq!(reads_in(&mut lab, AUDIT_EVERY.as_secs() - 2), 0, "{version}: once");
        assert_eq!(reads_in(&mut lab, 3), 1, "{version}: the audit");
        // A removal is read back too.
        desired.withdraw(1);
        assert_eq!(reads_in(&mut lab, VERIFY_AFTER.as_secs() + 2), 1, "{version}");
    }
}

/// With 3,000 flows a switch that is changed every second is read every 15 s, not every 10 s.
#[test]
fn a_large_table_that_is_changed_all_the_time_is_read_at_a_bounded_rate() {
    const FLOWS: u32 = 3_000;
    let (mut lab, hand) = lab(Version::V1_3);
    let desired = hand.network().desired();
    desired.set_each((1..=FLOWS).map(|number| (number, Some((Dpid(1), flow(number, 2))))));
    let all_are_there =
        |_: &Lab| desired.state().load().installed >= usize::try_from(FLOWS).unwrap();
    assert!(lab.run_until(SECOND * 20, all_are_there));
    lab.run_for(SECOND * 20);
    let mut reads = 0;
    for number in 0..60 {
        desired.set(1, [(Dpid(1), flow(1, 2 + number % 2))]);
        reads += reads_in_a_second(&mut lab);
    }
    let expected = 60 / (FLOWS as usize / READ_BACK_PER_SECOND);
    assert!((expected - 1..=expected + 1).contains(&reads), "{reads} reads in a minute");
}
