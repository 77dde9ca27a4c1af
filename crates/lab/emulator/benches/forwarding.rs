//! Throughput and memory of a network in a lab. `cargo bench -p bellrock-emulator`.
//!
//! Every switch has 1,000 flows over 3 tables, each with a mask. Each table has eight masks, and
//! the packet's flow has the mask of the lowest priority, so that no look-up ends early.
//!
//! - Datagrams per second on one core, from host to host over 3 switches: in continuing
//!   conversations, and with nothing in common with earlier packets.
//! - Memory of 1,000 such switches.
//!
//! Times are processor times, not wall-clock times; they depend on the machine.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{
    Action, App, Dpid, Field, FlowMod, Handler, Instruction, MacAddr, Match, Network, Port, Switch,
    SwitchInfo,
};
use bellrock_emulator::host::StreamSettings;
use bellrock_emulator::lab::Lab;
use bellrock_emulator::network::NetworkSettings;
use bellrock_emulator::topology::{HostIndex, NamedTopology, Node, TopologySpec, linear};
use bellrock_openflow::List;

/// Number of flows of each switch.
const FLOWS: u32 = 1000;
/// Number of masks of each table.
const MASKS: u32 = 8;
/// Target of datagrams per second on one core, end to end.
const TARGET_PER_SECOND: u64 = 300_000;
/// Maximum memory of 1,000 switches.
const TARGET_MIB: u64 = 2048;

const IPV4: u128 = 0x0800;
const ARP: u128 = 0x0806;
/// Destination port of datagrams.
const TO_PORT: u16 = 1;
/// First source port of datagrams.
const FROM_PORT: u16 = 1024;

/// Number of hosts at each end.
const HOSTS: u32 = 12;
/// Time in which each conversation sends one datagram.
const INTERVAL: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo passes `--test` only to check that the program runs.
    let short = std::env::args().any(|argument| argument == "--test");
    let datagrams = if short { 50_000 } else { 3_000_000 };
    println!(
        "{:<44} {:>14} {:>14}",
        "datagrams over 3 switches, end to end", "per second", "target"
    );
    for ports in [1, 64] {
        let rate = carry(datagrams, ports)?;
        let conversations = HOSTS * HOSTS * u32::from(ports);
        println!(
            "{:<44} {rate:>14} {TARGET_PER_SECOND:>14}",
            format!("  {conversations} conversations")
        );
    }
    let switches = if short { 10 } else { 1000 };
    let before = resident_kib()?;
    let lab = lab(linear(switches, 1))?;
    let mib = (resident_kib()? - before) / 1024;
    drop(lab);
    let what = format!("{switches} switches of {FLOWS} flows, MiB");
    println!("{what:<44} {mib:>14} {TARGET_MIB:>14}");
    Ok(())
}

/// Delivered datagrams per second of processor time, with `ports` conversations between each pair
/// of hosts.
fn carry(datagrams: u64, ports: u16) -> Result<u64, Box<dyn Error>> {
    let mut lab = lab(linear(3, HOSTS))?;
    let hosts: Vec<HostIndex> = (0..3 * HOSTS).map(HostIndex).collect();
    let (senders, receivers) = (&hosts[..HOSTS as usize], &hosts[2 * HOSTS as usize..]);
    let each = datagrams / u64::from(HOSTS * HOSTS * u32::from(ports));
    for to in receivers {
        lab.network_mut().with(*to, |host, _, _| host.udp_sink(TO_PORT));
    }
    let network = lab.network_mut();
    for (from, to) in senders.iter().flat_map(|from| receivers.iter().map(move |to| (from, to))) {
        for port in 0..ports {
            let stream = StreamSettings {
                to: network.host(*to).ip(),
                from_port: FROM_PORT + port,
                to_port: TO_PORT,
                data_len: 64,
                interval: INTERVAL,
                count: each,
            };
            network.udp_stream(*from, stream)?;
        }
    }
    let began = processor_time()?;
    lab.run_for(INTERVAL * u32::try_from(each)? + Duration::from_secs(1));
    let spent = processor_time()? - began;
    let arrived = |host: &HostIndex| {
        lab.network().host(*host).udp_counters(TO_PORT).map_or(0, |counters| counters.datagrams)
    };
    let arrived: u64 = receivers.iter().map(arrived).sum();
    let sent = each * u64::from(HOSTS * HOSTS * u32::from(ports));
    if arrived != sent {
        return Err(format!("{arrived} of {sent} datagrams have arrived").into());
    }
    Ok((arrived as f64 / spent.as_secs_f64()) as u64)
}

/// A lab whose switches have their flows. It keeps no hops and no messages.
fn lab(topology: NamedTopology) -> Result<Lab, Box<dyn Error>> {
    let app = Masked { topology: Arc::new(topology.build()?) };
    let lab = Lab::seeded(1).topology(topology).network(NetworkSettings::default());
    let mut lab = lab.try_run(app)?;
    lab.run_for(Duration::from_secs(1));
    let switches = lab.topology().switches();
    let flows =
        |name: &str| lab.switch(name).datapath().tables().iter().map(|(_, t)| t.len()).sum();
    let wrong =
        switches.iter().map(|s| flows(&s.name)).find(|flows: &usize| *flows != FLOWS as usize);
    match wrong {
        None => Ok(lab),
        Some(flows) => Err(format!("a switch has {flows} flows").into()),
    }
}

/// Installs the flows.
struct Masked {
    topology: Arc<TopologySpec>,
}

struct MaskedSwitch {
    /// The port that leads to each host.
    ways: Vec<(MacAddr, Port)>,
}

impl App for Masked {
    type Handler = MaskedSwitch;

    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn switch_up(&self, _: &Network, info: &SwitchInfo) -> MaskedSwitch {
        MaskedSwitch { ways: ways(&self.topology, info.dpid) }
    }
}

impl Handler for MaskedSwitch {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> bellrock_api::Result<()> {
        // One flow is for ARP; the last table has the rest.
        let per_table = FLOWS / 3;
        let arp = Match::any().with(Field::EthType, ARP);
        switch
            .install(&FlowMod::add(&arp).priority(1000).actions(&[Action::output(Port::FLOOD)]))?;
        // Table 0: destination networks, table 1: source networks. The last mask has the hosts'.
        for (table, field) in [(0, Field::Ipv4Dst), (1, Field::Ipv4Src)] {
            for number in 0..per_table {
                let (mask, value) = (number % MASKS, number / MASKS);
                let low_bits = 8 + mask;
                let first: u32 = if mask == MASKS - 1 { 0x0a00_0000 } else { 0x0a40_0000 };
                let (address, all) = (first + (value << low_bits), u32::MAX << low_bits);
                let matching = Match::any().with(Field::EthType, IPV4).with_masked(
                    field,
                    address.into(),
                    all.into(),
                );
                install(switch, table, mask, &matching, &[Instruction::GotoTable(table + 1)])?;
            }
        }
        // Table 2: stations, without their vendor; the existing hosts have the last mask.
        for number in 0..FLOWS - 1 - 2 * per_table {
            let (mask, value) = (number % MASKS, (number / MASKS) as usize);
            let all = 0xffff_ffff_ffff_u128 >> (mask + 1);
            let way = self.ways.get(value).filter(|_| mask == MASKS - 1);
            let (address, port) = match way {
                Some((mac, port)) => (u128::from(mac.to_u64()), *port),
                None => (0x0000_4000_0000 | u128::from(number), Port(1)),
            };
            let matching = Match::any().with_masked(Field::EthDst, address & all, all);
            let actions = [Action::output(port)];
            install(switch, 2, mask, &matching, &[Instruction::ApplyActions(List::of(&actions))])?;
        }
        Ok(())
    }
}

fn install(
    switch: &mut Switch<'_>,
    table: u8,
    mask: u32,
    matching: &Match,
    instructions: &[Instruction<'_>],
) -> bellrock_api::Result<()> {
    let priority = 100 - mask as u16;
    let flow = FlowMod::add(matching).table(table).priority(priority).instructions(instructions);
    switch.install(&flow)?;
    Ok(())
}

/// The port of a switch that leads to each host, the nearest host first.
fn ways(topology: &TopologySpec, dpid: Dpid) -> Vec<(MacAddr, Port)> {
    let Some(start) = topology.switch_by_dpid(dpid.0) else { return Vec::new() };
    let mut seen = BTreeMap::from([(Node::Switch(start), 0)]);
    let mut queue = VecDeque::from([start]);
    let mut ways = Vec::new();
    while let Some(at) = queue.pop_front() {
        for port in 1..=topology.last_port(at) {
            let Some(link) = topology.link_at(Node::Switch(at), port) else { continue };
            let ends = topology.links()[link.index()].ends.map(|end| end.node);
            let Some(next) = ends.into_iter().find(|node| *node != Node::Switch(at)) else {
                continue;
            };
            if seen.contains_key(&next) {
                continue;
            }
            // The first port of a path leads to all nodes behind it.
            let first = if at == start { port } else { seen[&Node::Switch(at)] };
            seen.insert(next, first);
            match next {
                Node::Switch(next) => queue.push_back(next),
                Node::Host(host) => ways.push((topology.hosts()[host.index()].mac, Port(first))),
            }
        }
        if ways.len() > FLOWS as usize {
            break;
        }
    }
    ways
}

/// Processor time of this thread.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().ok_or("no number")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Memory of this process, in KiB.
fn resident_kib() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
