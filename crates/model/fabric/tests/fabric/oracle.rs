//! The invariants on random networks: they hold for all that is compiled, and at each step between;
//! and what is changed at random and is not found, makes no difference to packets in the emulated
//! switch.

use std::sync::Arc;

use bellrock_api::{Change, Flow, FlowCommand, Instruction};
use bellrock_fabric::check::{Packet, State, Wanted, check_plan, check_state};
use bellrock_fabric::compile::{Compiler, Fact, Facts, HostKey};
use bellrock_fabric::diff::Step;
use bellrock_fabric::intent::SwitchId;
use bellrock_fabric::{check, compile, diff};
use bellrock_openflow::{Action, Field, MacAddr, Match, Port};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::intent;
use super::packets::{
    EmulatedSwitch, OTHER, PORTS, RandomNetwork, VLANS, all_up, host, installed,
    random_network_with_acls,
};

const FIRST: SwitchId = SwitchId(0);

/// Facts of some kind, in a row.
fn facts_of(list: &[(u32, u8, bool)]) -> Facts {
    let mut facts = all_up();
    list.iter().for_each(|it| {
        facts.set(fact(*it));
    });
    facts
}

fn fact((port, kind, is_on): (u32, u8, bool)) -> Fact {
    let key = HostKey { vid: VLANS[kind as usize % 3], mac: host(u32::from(kind)) };
    match (kind, is_on) {
        (0, true) => Fact::PortUp(port),
        (0, false) => Fact::PortDown(port),
        (1, true) => Fact::PortBanned(port),
        (1, false) => Fact::PortAllowed(port),
        (2, true) => Fact::Stray(host(9), port),
        (2, false) => Fact::StrayGone(host(9), port),
        (3, true) => Fact::VlanBanned(key.vid),
        (3, false) => Fact::VlanAllowed(key.vid),
        (_, true) => Fact::HostAt(key, port),
        (_, false) => Fact::HostGone(key),
    }
}

fn random_facts() -> impl Strategy<Value = Vec<(u32, u8, bool)>> {
    prop::collection::vec((1..=PORTS, 0..8_u8, any::<bool>()), 0..12)
}

/// The packets of a port that are sent, besides tags: destination, and Ethernet type.
const PACKETS: [(MacAddr, u16); 8] = [
    (MacAddr([2, 0, 0, 0, 9, 9]), OTHER),
    (MacAddr([2, 0, 0, 0, 9, 9]), 0x0800),
    (MacAddr::BROADCAST, OTHER),
    (MacAddr::BROADCAST, 0x0806),
    (MacAddr([0x01, 0x00, 0x5e, 1, 2, 3]), OTHER),
    (MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]), OTHER),
    (MacAddr([2, 0, 0, 0, 0, 4]), OTHER),
    (MacAddr([2, 0, 0, 0, 0, 5]), OTHER),
];

/// Calls `each` with packets of all ports: port, tag, source, destination, Ethernet type.
fn packets(mut each: impl FnMut(u32, Option<u16>, (MacAddr, MacAddr), u16)) {
    for port in 1..=PORTS {
        for tag in [None, Some(VLANS[0]), Some(VLANS[1]), Some(VLANS[2]), Some(999)] {
            for (dst, eth_type) in PACKETS {
                for source in [host(4), host(9), MacAddr([2, 0, 0, 0, 8, port as u8])] {
                    each(port, tag, (source, dst), eth_type);
                }
            }
        }
    }
}

/// Actions and the goto of a flow.
fn parts(flow: &Flow) -> (Vec<Action<'static>>, Option<u8>, Option<(u64, u64)>) {
    let actions = flow.applied().iter().map(|action| action.with_bytes(&[])).collect();
    let (mut goto, mut written) = (None, None);
    flow.with_flow_mod(FlowCommand::Add, |flow| {
        for instruction in flow.instructions.iter() {
            match instruction {
                Instruction::GotoTable(table) => goto = Some(table),
                Instruction::WriteMetadata { metadata, mask } => written = Some((metadata, mask)),
                _ => {}
            }
        }
    });
    (actions, goto, written)
}

/// A random change of a flow: what a wrong compiler might do.
fn mutated(flow: &Flow, kind: u8, port: u32, vid: u16) -> Vec<Change> {
    let (mut actions, mut goto, metadata) = parts(flow);
    let mut matching = flow.matching.clone();
    let mut priority = flow.priority;
    let mut changes = Vec::new();
    match kind {
        0 => return vec![Change::Remove(flow.clone())],
        1 => actions.push(Action::output(Port(port))),
        2 => actions.retain(|action| *action != Action::PopVlan),
        3 => drop(actions.pop()),
        4 => goto = goto.map(|next| if next < 5 { 5 } else { 13 }),
        5 => goto = None,
        6 => matching.set(Field::InPort, port.into()),
        7 => {
            matching = matching.vlan_id(vid);
            priority += 3;
        }
        8 => actions.insert(0, Action::PopVlan),
        9 => {
            // For a part of its packets it is another.
            matching = matching.eth_dst(MacAddr::BROADCAST);
            priority += 100;
        }
        _ => {
            changes.push(Change::Remove(flow.clone()));
            priority = priority.saturating_sub(4097);
        }
    }
    let new = Flow::new(matching).table(flow.table).priority(priority).actions(&actions);
    let new = match metadata {
        Some((metadata, mask)) => new.write_metadata(metadata, mask),
        None => new,
    };
    let new = match goto {
        Some(next) => new.goto_table(next),
        None => new,
    };
    changes.push(Change::Add(new));
    changes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn compiled_tables_hold_the_invariants(
        network in random_network_with_acls(),
        facts in random_facts(),
    ) {
        let (intent, facts) = (Arc::new(intent(&network.text())), facts_of(&facts));
        let tables = compile(&intent, FIRST, &facts).unwrap();
        if let Err(why) = check(&intent, FIRST, &facts, &tables) {
            prop_assert!(false, "{}\n{}\n{}", why, network.text(), tables);
        }
    }

    #[test]
    fn packets_go_as_in_the_emulated_switch(
        network in random_network_with_acls(),
        facts in random_facts(),
    ) {
        let (intent, facts) = (Arc::new(intent(&network.text())), facts_of(&facts));
        let tables = compile(&intent, FIRST, &facts).unwrap();
        let (mut switch, state) = (installed(&tables), State::of(&tables));
        let up = all_up();
        packets(|port, tag, (src, dst), eth_type| {
            let header = Match::any().eth_dst(dst).eth_src(src).eth_type(eth_type);
            let packet = Packet::new(port, tag, &header);
            let walks = state.walks(&packet, &up);
            let mut ways = walks.iter().map(|walk| {
                let mut left: Vec<_> = walk.outputs().collect();
                left.sort_unstable();
                left
            });
            let left = switch.receive(port, tag, (src, dst), eth_type);
            assert!(ways.any(|way| way == left), "{packet}: {left:?}\n{walks:?}\n{tables}");
        });
    }

    #[test]
    fn the_invariants_hold_at_each_step_of_a_changed_fact(
        network in random_network_with_acls(),
        facts in random_facts(),
    ) {
        let intent = Arc::new(intent(&network.text()));
        let compiler = Compiler::new(Arc::clone(&intent), FIRST, Default::default()).unwrap();
        let mut now = all_up();
        for next in facts {
            let before = now.clone();
            let tables = compiler.tables(&before);
            let plan = compiler.change(&mut now, fact(next));
            let (old, new) = (wanted(&intent, &before), wanted(&intent, &now));
            let mut state = State::of(&tables);
            if let Err(why) = check_plan(&old, &new, &mut state, &plan) {
                prop_assert!(false, "{}\n{}\n{}\n{}", why, network.text(), plan, tables);
            }
        }
    }
}

fn wanted<'n>(intent: &'n bellrock_fabric::Intent, facts: &'n Facts) -> Wanted<'n> {
    Wanted::new(intent, FIRST, facts).unwrap()
}

/// The same networks each time: not each combination of fields is looked at, so that a seed may
/// come which finds one more.
fn seeded(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(35), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(seeded(150))]

    #[test]
    fn the_invariants_hold_at_each_step_of_a_changed_file(
        one in random_network_with_acls(),
        other in random_network_with_acls(),
        facts in random_facts(),
    ) {
        // Rules that force packets past the VLANs are in no order with the ways into VLANs.
        let is_forced = |it: &RandomNetwork| it.text().contains("force_port_vlan");
        prop_assume!(!is_forced(&one) && !is_forced(&other));
        let facts = facts_of(&facts);
        let (one, other) = (Arc::new(intent(&one.text())), Arc::new(intent(&other.text())));
        let (old, new) = (compile(&one, FIRST, &facts).unwrap(), compile(&other, FIRST, &facts).unwrap());
        let plan = diff(&old, &new);
        let mut state = State::of(&old);
        let changed = check_plan(&wanted(&one, &facts), &wanted(&other, &facts), &mut state, &plan);
        if let Err(why) = changed {
            prop_assert!(false, "{}\n{}\n{}\n{}", why, plan, old, new);
        }
        prop_assert!(check_state(&wanted(&other, &facts), &state).is_ok());
    }

    #[test]
    fn a_change_that_is_not_found_makes_no_difference(
        network in random_network_with_acls(),
        facts in random_facts(),
        at in any::<prop::sample::Index>(),
        kind in 0..11_u8,
        port in 1..=PORTS,
        vid in prop::sample::select(&VLANS[..]),
    ) {
        let (intent, facts) = (Arc::new(intent(&network.text())), facts_of(&facts));
        let tables = compile(&intent, FIRST, &facts).unwrap();
        let flows: Vec<&Flow> = tables.flows().map(|(_, it)| &it.flow).collect();
        let changes = mutated(flows[at.index(flows.len())], kind, port, vid);
        let mut state = State::of(&tables);
        changes.iter().for_each(|change| state.change(change));
        let mut changed: EmulatedSwitch = installed(&tables);
        if check_state(&wanted(&intent, &facts), &state).is_err()
            || !changes.iter().all(|change| changed.takes(change))
        {
            return Ok(());
        }
        let mut right = installed(&tables);
        let is_forced = network.text().contains("force_port_vlan");
        packets(|port, tag, (src, dst), eth_type| {
            // Mirrors may get any number of copies, and of ports that are down nothing comes.
            if !facts.is_up(port) {
                return;
            }
            let mut left = [&mut right, &mut changed].map(|switch| {
                let mut left = switch.receive(port, tag, (src, dst), eth_type);
                left.retain(|(port, _)| *port != RandomNetwork::MIRROR && facts.is_up(*port));
                left
            });
            let mut changed = std::mem::take(&mut left[1]);
            if is_forced {
                // Whether packets that a rule brings into a VLAN reach all its ports is not asked.
                let mut open = left[0].clone();
                changed.retain(|copy| {
                    let place = open.iter().position(|other| other == copy);
                    place.map(|place| open.remove(place)).is_none()
                });
                left[0].clear();
            }
            assert_eq!(
                left[0], changed, "port {port} {tag:?} {src} {dst} {eth_type:#x}: {changes:?}\n{tables}"
            );
        });
    }
}

#[test]
fn a_plan_in_a_wrong_order_is_found() {
    let text = |acl: &str| {
        format!(
            "acls: {{x: [{{actions: {{allow: 1}}}}]}}\nvlans: {{a: {{vid: 100{acl}}}}}\ndps: {{sw1: {{dp_id: 1, interfaces: {{1: {{native_vlan: a}}, 2: {{native_vlan: a}}}}}}}}\n"
        )
    };
    let facts = Facts::with_ports([1, 2]);
    let (one, other) = (Arc::new(intent(&text(""))), Arc::new(intent(&text(", acls_in: [x]"))));
    let (old, new) =
        (compile(&one, FIRST, &facts).unwrap(), compile(&other, FIRST, &facts).unwrap());
    let plan = diff(&old, &new);
    let (before, after) = (wanted(&one, &facts), wanted(&other, &facts));
    check_plan(&before, &after, &mut State::of(&old), &plan).unwrap();
    // The way into the VLAN first, and then the table that it goes to.
    let mut state = State::of(&old);
    let input = plan.steps().iter().rev().find(|step| matches!(step, Step::Change { .. })).unwrap();
    state.step(input);
    let why = check_state(&after, &state).unwrap_err();
    assert!(why.to_string().contains("table 3 (vlan_acl) has no flows"), "{why}");
}
