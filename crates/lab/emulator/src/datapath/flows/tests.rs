//! The rules of flow tables, one test each, and the classifier against a scan of all flows.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{
    Action, ErrorCode, Field, FlowFlags, FlowMod, FlowRemovedReason, FlowStatsRequest, MacAddr,
    Match, Port, Version,
};
use proptest::prelude::*;

use super::classifier::Classifier;
use super::{FlowEntry, FlowTables, Removed};
use crate::datapath::FlowProgram;
use crate::packet::KeyPattern;

const V1_0: Version = Version::V1_0;
const V1_3: Version = Version::V1_3;

/// Two tables for four flows each, and the flows removed from them.
struct Bed {
    tables: FlowTables,
    gone: Vec<Removed>,
    now: Duration,
}

impl Bed {
    fn new() -> Self {
        Bed { tables: FlowTables::new(2, 4), gone: Vec::new(), now: Duration::ZERO }
    }

    fn ask(&mut self, version: Version, request: &FlowMod<'_>) -> Result<(), ErrorCode> {
        self.ask_to(version, request, &Arc::default())
    }

    fn ask_to(
        &mut self,
        version: Version,
        request: &FlowMod<'_>,
        program: &Arc<FlowProgram>,
    ) -> Result<(), ErrorCode> {
        let matching = request.matching.to_match();
        self.tables.check(version, request, &matching)?;
        let gone = &mut self.gone;
        self.tables.flow_mod(version, request, &matching, program, self.now, gone)
    }

    /// Table number and cookie of every flow.
    fn cookies(&self) -> Vec<(u8, u64)> {
        let tables = self.tables.iter();
        tables.flat_map(|(n, table)| table.flows().map(move |(_, flow)| (n, flow.cookie))).collect()
    }

    fn only(&self) -> &FlowEntry {
        let (_, flow) = self.tables.table(0).unwrap().flows().next().unwrap();
        assert_eq!(self.cookies().len(), 1);
        flow
    }

    /// Counts a packet of 100 bytes for the only flow.
    fn hit(&mut self) {
        let now = self.now;
        let table = self.tables.table_mut(0).unwrap();
        let id = table.flows().next().unwrap().0;
        table.count(id, 100, now);
    }
}

fn tcp(port: u16) -> Match {
    Match::any().eth_type(0x0800).ip_proto(6).tcp_dst(port)
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn sending_to(port: u32) -> Arc<FlowProgram> {
    let apply = Some([Action::output(Port(port))].into());
    Arc::new(FlowProgram { apply, ..FlowProgram::default() })
}

#[test]
fn an_equal_flow_takes_the_place_of_the_old_one_and_its_counters_where_1_3_says_so() {
    for (version, flags, packets) in [
        (V1_3, FlowFlags::empty(), 1),
        (V1_3, FlowFlags::RESET_COUNTS, 0),
        (V1_0, FlowFlags::empty(), 0),
    ] {
        let mut bed = Bed::new();
        let web = tcp(80);
        bed.ask(version, &FlowMod::add(&web).cookie(1)).unwrap();
        bed.hit();
        bed.now = s(5);
        bed.ask(version, &FlowMod::add(&web).cookie(2).flags(flags)).unwrap();
        let flow = bed.only();
        assert_eq!((flow.cookie, flow.packet_count, flow.created), (2, packets, s(5)));
        assert!(bed.gone.is_empty());
    }
}

#[test]
fn the_same_match_with_another_priority_is_another_flow() {
    let mut bed = Bed::new();
    let web = tcp(80);
    bed.ask(V1_3, &FlowMod::add(&web).priority(1).cookie(1)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&web).priority(2).cookie(2)).unwrap();
    assert_eq!(bed.cookies(), [(0, 1), (0, 2)]);
}

#[test]
fn a_full_table_refuses_a_new_flow_and_takes_an_equal_one() {
    let mut bed = Bed::new();
    let matches: Vec<_> = (1..=5).map(tcp).collect();
    for matching in &matches[..4] {
        bed.ask(V1_3, &FlowMod::add(matching)).unwrap();
    }
    assert_eq!(bed.ask(V1_3, &FlowMod::add(&matches[4])), Err(ErrorCode::FlowModTableFull));
    bed.ask(V1_3, &FlowMod::add(&matches[3])).unwrap();
    bed.ask(V1_3, &FlowMod::add(&matches[4]).table(1)).unwrap();
    bed.ask(V1_3, &FlowMod::delete(&matches[0])).unwrap();
    bed.ask(V1_3, &FlowMod::add(&matches[4])).unwrap();
    assert_eq!(bed.tables.table(0).unwrap().len(), 4);
}

#[test]
fn a_flow_that_overlaps_one_of_the_same_priority_is_refused_on_request_only() {
    let mut bed = Bed::new();
    let (web, from) = (tcp(80), Match::any().in_port(Port(1)));
    bed.ask(V1_3, &FlowMod::add(&web)).unwrap();
    let checked = FlowMod::add(&from).flags(FlowFlags::CHECK_OVERLAP);
    assert_eq!(bed.ask(V1_3, &checked), Err(ErrorCode::FlowModOverlap));
    // An equal flow matches the same packets: that is an overlap too.
    let equal = FlowMod::add(&web).flags(FlowFlags::CHECK_OVERLAP);
    assert_eq!(bed.ask(V1_3, &equal), Err(ErrorCode::FlowModOverlap));
    bed.ask(V1_3, &checked.priority(7)).unwrap();
    bed.ask(V1_3, &checked.table(1)).unwrap();
    let udp = Match::any().eth_type(0x0800).ip_proto(17);
    bed.ask(V1_3, &FlowMod::add(&udp).flags(FlowFlags::CHECK_OVERLAP)).unwrap();
    bed.ask(V1_3, &FlowMod { flags: FlowFlags::empty(), ..checked }).unwrap();
}

#[test]
fn modify_changes_instructions_and_leaves_all_else() {
    let mut bed = Bed::new();
    let (web, ip) = (tcp(80), Match::any().eth_type(0x0800));
    let added = FlowMod::add(&web).cookie(1).idle_timeout(10).flags(FlowFlags::SEND_FLOW_REM);
    bed.ask(V1_3, &added).unwrap();
    bed.hit();
    bed.now = s(3);
    bed.ask_to(V1_3, &FlowMod::modify(&ip).cookie(9).idle_timeout(99), &sending_to(2)).unwrap();
    let flow = bed.only();
    assert!(flow.program.outputs_to(Port(2)));
    assert_eq!((flow.cookie, flow.idle_timeout, flow.flags), (1, 10, FlowFlags::SEND_FLOW_REM));
    assert_eq!((flow.packet_count, flow.byte_count, flow.created), (1, 100, s(0)));
    let reset = FlowMod::modify(&ip).flags(FlowFlags::RESET_COUNTS);
    bed.ask(V1_3, &reset).unwrap();
    assert_eq!((bed.only().packet_count, bed.only().byte_count), (0, 0));
}

#[test]
fn modify_of_nothing_adds_a_flow_in_1_0_and_does_nothing_in_1_3() {
    for strict in [false, true] {
        let mut bed = Bed::new();
        let web = tcp(80);
        let modify = FlowMod::modify(&web).cookie(5);
        let modify = if strict { modify.strict() } else { modify };
        bed.ask(V1_3, &modify).unwrap();
        assert_eq!(bed.cookies(), []);
        bed.ask(V1_0, &modify).unwrap();
        assert_eq!(bed.cookies(), [(0, 5)]);
    }
}

#[test]
fn modify_in_1_0_changes_the_cookie_and_keeps_counters() {
    let mut bed = Bed::new();
    let web = tcp(80);
    bed.ask(V1_0, &FlowMod::add(&web).cookie(1)).unwrap();
    bed.hit();
    bed.ask(V1_0, &FlowMod::modify(&web).cookie(2)).unwrap();
    assert_eq!((bed.only().cookie, bed.only().packet_count), (2, 1));
}

#[test]
fn a_loose_request_covers_narrower_flows_and_a_strict_one_means_a_single_flow() {
    let net = |bits| {
        let address = Ipv4Addr::new(10, 1, 0, 0);
        Match::any().eth_type(0x0800).ipv4_dst_prefix(address, bits)
    };
    let (wide, narrow, ip) = (net(8), net(16), Match::any().eth_type(0x0800));
    let mut bed = Bed::new();
    bed.ask(V1_3, &FlowMod::add(&wide).cookie(8)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&narrow).cookie(16)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&ip).cookie(1).priority(5)).unwrap();
    bed.ask(V1_3, &FlowMod::delete(&ip).strict()).unwrap();
    assert_eq!(bed.cookies().len(), 3, "the priority differs");
    bed.ask(V1_3, &FlowMod::delete(&narrow).priority(1)).unwrap();
    assert_eq!(bed.cookies(), [(0, 8), (0, 1)], "the priority does not count");
    bed.ask(V1_3, &FlowMod::delete(&ip).priority(5).strict()).unwrap();
    assert_eq!(bed.cookies(), [(0, 8)]);
    bed.ask(V1_3, &FlowMod::delete(&ip)).unwrap();
    let gone: Vec<_> = bed.gone.iter().map(|gone| (gone.flow.cookie, gone.reason)).collect();
    let deleted = FlowRemovedReason::Delete;
    assert_eq!(gone, [(16, deleted), (1, deleted), (8, deleted)]);
}

#[test]
fn the_cookie_is_a_condition_in_the_bits_of_its_mask() {
    let mut bed = Bed::new();
    let (a, b, any) = (tcp(1), tcp(2), Match::any());
    bed.ask(V1_3, &FlowMod::add(&a).cookie_mask(0x1a, 0xff)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&b).cookie(0x2a)).unwrap();
    bed.ask(V1_3, &FlowMod::delete(&any).cookie_mask(0x0b, 0x0f)).unwrap();
    assert_eq!(bed.cookies().len(), 2);
    bed.ask_to(V1_3, &FlowMod::modify(&any).cookie_mask(0x10, 0xf0), &sending_to(3)).unwrap();
    let flows = bed.tables.table(0).unwrap().flows();
    let changed = flows.filter(|(_, flow)| flow.program.outputs_to(Port(3)));
    assert_eq!(changed.count(), 1);
    bed.ask(V1_3, &FlowMod::delete(&any).cookie_mask(0x20, 0xf0)).unwrap();
    assert_eq!(bed.cookies(), [(0, 0x1a)]);
}

#[test]
fn out_port_restricts_deletes_and_statistics() {
    let mut bed = Bed::new();
    let (a, b, any) = (tcp(1), tcp(2), Match::any());
    bed.ask_to(V1_3, &FlowMod::add(&a).cookie(1), &sending_to(1)).unwrap();
    bed.ask_to(V1_3, &FlowMod::add(&b).cookie(2), &sending_to(2)).unwrap();
    let asked = FlowStatsRequest { out_port: Port(2), ..FlowStatsRequest::all(&any) };
    let found: Vec<_> = bed.tables.select(&asked).map(|(_, flow)| flow.cookie).collect();
    assert_eq!(found, [2]);
    bed.ask(V1_3, &FlowMod::delete(&any).out_port(Port(1))).unwrap();
    assert_eq!(bed.cookies(), [(0, 2)]);
}

#[test]
fn deletes_may_be_about_all_tables_and_nothing_else_may() {
    let mut bed = Bed::new();
    let any = Match::any();
    bed.ask(V1_3, &FlowMod::add(&any).cookie(1)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&any).cookie(2).table(1)).unwrap();
    let all = FlowMod::ALL_TABLES;
    for refused in [
        FlowMod::add(&any).table(all),
        FlowMod::modify(&any).table(all),
        FlowMod::add(&any).table(2),
        FlowMod::delete(&any).table(2),
    ] {
        assert_eq!(bed.ask(V1_3, &refused), Err(ErrorCode::FlowModBadTable));
    }
    bed.ask(V1_3, &FlowMod::delete(&any).table(1)).unwrap();
    assert_eq!(bed.cookies(), [(0, 1)]);
    bed.ask(V1_3, &FlowMod::delete(&any)).unwrap();
    assert_eq!(bed.cookies(), []);
    assert_eq!(bed.gone.iter().map(|gone| gone.table).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn flags_and_matches_that_a_version_does_not_have_are_refused_by_name() {
    let mut bed = Bed::new();
    let any = Match::any();
    let with = |flags| FlowMod::add(&any).flags(FlowFlags::from_bits_retain(flags));
    assert_eq!(bed.ask(V1_3, &with(1 << 5)), Err(ErrorCode::FlowModBadFlags));
    let emergency = FlowMod::add(&any).flags(FlowFlags::EMERG);
    assert_eq!(bed.ask(V1_0, &emergency), Err(ErrorCode::FlowModTableFull));
    let timed = emergency.idle_timeout(1);
    assert_eq!(bed.ask(V1_0, &timed), Err(ErrorCode::FlowModBadEmergencyTimeout));
    let masked = Match::any().with_masked(Field::EthType, 0x0800, 0xff00);
    assert_eq!(bed.ask(V1_3, &FlowMod::add(&masked)), Err(ErrorCode::MatchBadMask));
    let no_tag = Match::any().with(Field::VlanVid, 5);
    assert_eq!(bed.ask(V1_3, &FlowMod::add(&no_tag)), Err(ErrorCode::MatchBadValue));
}

#[test]
fn deleting_emergency_flows_leaves_the_others() {
    let mut bed = Bed::new();
    let any = Match::any();
    bed.ask(V1_0, &FlowMod::add(&any)).unwrap();
    bed.ask(V1_0, &FlowMod::delete(&any).flags(FlowFlags::EMERG)).unwrap();
    assert_eq!(bed.cookies().len(), 1);
}

#[test]
fn a_flow_goes_when_its_hard_timeout_ends_or_no_packet_came_for_its_idle_timeout() {
    let mut bed = Bed::new();
    let (a, b) = (tcp(1), tcp(2));
    bed.ask(V1_3, &FlowMod::add(&a).cookie(1).idle_timeout(2).hard_timeout(5)).unwrap();
    bed.now = s(1);
    bed.hit();
    bed.ask(V1_3, &FlowMod::add(&b).cookie(2).idle_timeout(3)).unwrap();
    assert_eq!(bed.tables.next_expiry(), Some(s(2)), "as it was before the packet");
    bed.tables.expire(s(2), &mut bed.gone);
    assert!(bed.gone.is_empty());
    assert_eq!(bed.tables.next_expiry(), Some(s(3)));
    bed.tables.expire(Duration::from_millis(2_999), &mut bed.gone);
    assert!(bed.gone.is_empty());
    bed.tables.expire(s(3), &mut bed.gone);
    let gone: Vec<_> = bed.gone.iter().map(|gone| (gone.flow.cookie, gone.reason)).collect();
    assert_eq!(gone, [(1, FlowRemovedReason::IdleTimeout)]);
    bed.tables.expire(s(4), &mut bed.gone);
    assert_eq!(bed.gone.len(), 2);
    assert_eq!(bed.tables.next_expiry(), None);
}

#[test]
fn a_hard_timeout_ends_however_many_packets_come() {
    let mut bed = Bed::new();
    let a = tcp(1);
    bed.ask(V1_3, &FlowMod::add(&a).idle_timeout(2).hard_timeout(3)).unwrap();
    for second in 1..3 {
        bed.now = s(second);
        bed.hit();
        bed.tables.expire(bed.now, &mut bed.gone);
    }
    bed.tables.expire(s(3), &mut bed.gone);
    assert_eq!(bed.gone[0].reason, FlowRemovedReason::HardTimeout);
}

#[test]
fn the_timeouts_of_a_flow_that_was_replaced_or_deleted_do_not_touch_the_next_one() {
    let mut bed = Bed::new();
    let a = tcp(1);
    bed.ask(V1_3, &FlowMod::add(&a).hard_timeout(1)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&a).cookie(2).hard_timeout(9)).unwrap();
    bed.tables.expire(s(8), &mut bed.gone);
    assert_eq!(bed.cookies(), [(0, 2)]);
    bed.ask(V1_3, &FlowMod::delete(&a)).unwrap();
    bed.ask(V1_3, &FlowMod::add(&a).cookie(3)).unwrap();
    bed.tables.expire(s(100), &mut bed.gone);
    assert_eq!(bed.cookies(), [(0, 3)]);
}

#[test]
fn flags_keep_packets_or_bytes_from_being_counted() {
    for (flags, packets, bytes) in [
        (FlowFlags::NO_PKT_COUNTS, 0, 100),
        (FlowFlags::NO_BYT_COUNTS, 1, 0),
        (FlowFlags::NO_PKT_COUNTS | FlowFlags::NO_BYT_COUNTS, 0, 0),
    ] {
        let mut bed = Bed::new();
        let a = tcp(1);
        bed.ask(V1_3, &FlowMod::add(&a).flags(flags)).unwrap();
        bed.hit();
        assert_eq!((bed.only().packet_count, bed.only().byte_count), (packets, bytes));
    }
}

/// A 1.0 match with every field of a TCP packet.
fn exact_tcp() -> Match {
    let mac = |n| MacAddr([0, 0, 0, 0, 0, n]);
    let link = Match::any().in_port(Port(1)).eth_src(mac(1)).eth_dst(mac(2)).untagged();
    let network = link.eth_type(0x0800).ip_dscp(0).ip_proto(6);
    let addresses = network.ipv4_src(Ipv4Addr::new(10, 0, 0, 1));
    addresses.ipv4_dst(Ipv4Addr::new(10, 0, 0, 2)).tcp_src(1).tcp_dst(2)
}

#[test]
fn in_1_0_a_match_without_wildcards_comes_before_every_priority() {
    let exact = exact_tcp();
    let wild = tcp(2);
    for (version, first) in [(V1_0, &exact), (V1_3, &wild)] {
        let mut bed = Bed::new();
        bed.ask(version, &FlowMod::add(&exact).priority(1)).unwrap();
        bed.ask(version, &FlowMod::add(&wild).priority(u16::MAX)).unwrap();
        let mut classifier = Classifier::default();
        for (id, flow) in bed.tables.table(0).unwrap().flows() {
            classifier.insert(&flow.pattern, flow.rank, id.0);
        }
        let found = classifier.lookup(KeyPattern::of(&exact).value()).unwrap();
        let mut flows = bed.tables.table(0).unwrap().flows();
        let (_, found) = flows.find(|(id, _)| id.0 == found).unwrap();
        assert_eq!(&found.matching(), first);
    }
}

#[test]
fn in_1_0_a_match_without_wildcards_has_the_highest_priority_whatever_was_sent() {
    let exact = exact_tcp();
    let mut bed = Bed::new();
    bed.ask(V1_0, &FlowMod::add(&exact).priority(1)).unwrap();
    bed.ask(V1_0, &FlowMod::add(&exact).priority(2)).unwrap();
    // As Open vSwitch reports it.
    assert_eq!(bed.only().priority, u16::MAX);
    bed.ask(V1_0, &FlowMod::delete(&exact).priority(3).strict()).unwrap();
    assert_eq!(bed.cookies(), []);
}

#[test]
fn flows_are_found_by_what_they_do() {
    let mut bed = Bed::new();
    let (a, b) = (tcp(1), tcp(2));
    bed.ask_to(V1_3, &FlowMod::add(&a).cookie(1), &sending_to(1)).unwrap();
    bed.ask_to(V1_3, &FlowMod::add(&b).cookie(2).table(1), &sending_to(2)).unwrap();
    let before = bed.tables.changes();
    let reason = FlowRemovedReason::GroupDelete;
    bed.tables.remove_where(reason, &mut bed.gone, |program| program.outputs_to(Port(2)));
    assert_eq!(bed.cookies(), [(0, 1)]);
    assert_eq!((bed.gone[0].table, bed.gone[0].reason), (1, reason));
    assert!(bed.tables.changes() > before);
}

#[test]
fn a_flow_of_1_000_takes_less_than_a_kibibyte_of_its_own() {
    // Its allocations: the slot, the pattern, the entry in the classifier.
    let of_one =
        size_of::<Option<FlowEntry>>() + size_of::<KeyPattern>() + size_of::<FlowProgram>();
    assert!(of_one < 1024, "{of_one}");
}

fn a_match() -> impl Strategy<Value = Match> {
    let prefix = (0..4_u32, 28..=32_u8);
    let part = prop_oneof![
        3 => Just(Match::any()),
        2 => (1..4_u16).prop_map(tcp),
        2 => prefix.prop_map(|(host, bits)| {
            let address = Ipv4Addr::from_bits(0x0a00_0000 + host);
            Match::any().eth_type(0x0800).ipv4_dst_prefix(address, bits)
        }),
    ];
    let dst = (0..4_u64, prop_oneof![Just(0), Just(1), Just(3), Just(u64::MAX)]);
    (part, proptest::option::of(1..3_u32), dst).prop_map(|(part, port, (dst, mask))| {
        let part = port.into_iter().fold(part, |part, port| part.in_port(Port(port)));
        part.with_masked(Field::EthDst, dst.into(), mask.into())
    })
}

/// A packet's fields: every field that `a_match` may have.
fn a_packet() -> impl Strategy<Value = Match> {
    (1..3_u32, 0..4_u64, 0..4_u32, 1..4_u16).prop_map(|(port, dst, host, tcp_dst)| {
        let link = Match::any().in_port(Port(port)).with(Field::EthDst, dst.into());
        let network = link.eth_type(0x0800).ip_proto(6);
        network.ipv4_dst(Ipv4Addr::from_bits(0x0a00_0000 + host)).tcp_dst(tcp_dst)
    })
}

proptest! {
    #[test]
    fn the_classifier_finds_what_a_scan_of_all_flows_finds(
        added in prop::collection::vec((a_match(), 0..5_u32, prop::bool::ANY), 0..60),
        packets in prop::collection::vec(a_packet(), 1..20),
        asked in a_match(),
    ) {
        let mut classifier = Classifier::default();
        // The reference: pattern, rank and number of each flow.
        let mut all: Vec<(KeyPattern, u32, u32)> = Vec::new();
        for (number, (matching, rank, remove)) in (0..).zip(&added) {
            let pattern = KeyPattern::of(matching);
            if *remove && !all.is_empty() {
                let (pattern, rank, _) = all.swap_remove(number as usize * 7 % all.len());
                classifier.remove(&pattern, rank);
            }
            let known = all.iter().find(|flow| flow.0 == pattern && flow.1 == *rank);
            prop_assert_eq!(classifier.find(&pattern, *rank), known.map(|flow| flow.2));
            if known.is_none() {
                classifier.insert(&pattern, *rank, number);
                all.push((pattern, *rank, number));
            }
        }
        for packet in &packets {
            let packet = KeyPattern::of(packet);
            let matches = |flow: &&(KeyPattern, u32, u32)| flow.0.covers(&packet);
            let best = all.iter().filter(matches).map(|flow| flow.1).max();
            let found = classifier.lookup(packet.value());
            // If several have the highest rank, any of them is right.
            let found = found.map(|found| all.iter().find(|flow| flow.2 == found).unwrap());
            prop_assert_eq!(found.map(|flow| flow.1), best);
            prop_assert!(found.is_none_or(|flow| flow.0.covers(&packet)));
        }
        let asked = KeyPattern::of(&asked);
        let mut covered = Vec::new();
        classifier.covered(&asked, |flow| covered.push(flow));
        covered.sort_unstable();
        let mut expected: Vec<_> =
            all.iter().filter(|flow| asked.covers(&flow.0)).map(|flow| flow.2).collect();
        expected.sort_unstable();
        prop_assert_eq!(covered, expected);
        for rank in 0..5 {
            let overlaps = all.iter().any(|flow| flow.1 == rank && flow.0.overlaps(&asked));
            prop_assert_eq!(classifier.overlaps(&asked, rank), overlaps);
        }
    }
}
