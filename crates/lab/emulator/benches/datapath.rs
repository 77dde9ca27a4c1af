//! Cost of a packet in one switch: 1,000 masked flows over 3 tables with eight masks each, and the
//! packet's flow has the mask of the lowest priority. `cargo bench -p bellrock-emulator --bench
//! datapath`.
//!
//! With arguments (`conversations|new N`) it sends N packets and prints nothing, for counting
//! instructions, as `valgrind --tool=callgrind` does. The difference of two runs, with N and 2 N
//! packets, excludes the setup.

use std::error::Error;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use bellrock_emulator::datapath::{Datapath, DatapathSettings, Effects};
use bellrock_emulator::packet::EthernetFrame;
use bellrock_emulator::packet::build::{Eth, IpFields};
use bellrock_openflow::{
    Action, ErrorCode, Field, FixedStr, FlowMod, Instruction, List, MacAddr, Match, Port, PortDesc,
    PortFeatures, Version,
};

/// Number of flow tables, and of flows in all of them together.
const TABLES: u8 = 3;
const FLOWS: u32 = 1_000;
/// Number of masks of each table.
const MASKS: u32 = 8;
/// Number of conversations, each between one pair of addresses and ports.
const CONVERSATIONS: u32 = 256;

const IPV4: u16 = 0x0800;
/// Offset of the source address in a frame.
const SOURCE_AT: usize = 26;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [kind, packets] = &arguments[..] {
        carry(&mut switch()?, packets.parse()?, kind == "new");
        return Ok(());
    }
    // Cargo passes `--test` only to check that the program runs.
    let short = std::env::args().any(|argument| argument == "--test");
    let packets = if short { 1_000 } else { 3_000_000 };
    println!("{:<40} {:>12}", "packets through one switch", "per second");
    for (name, new) in [("conversations that go on", false), ("each of a new source", true)] {
        let mut datapath = switch()?;
        carry(&mut datapath, packets / 10, new);
        let start = Instant::now();
        carry(&mut datapath, packets, new);
        let rate = f64::from(packets) / start.elapsed().as_secs_f64();
        println!("{name:<40} {rate:>12.0}");
    }
    Ok(())
}

/// Sends packets through the switch; all of them leave.
fn carry(datapath: &mut Datapath, packets: u32, new: bool) {
    let eth = Eth::new(MacAddr::from_u64(1), MacAddr::from_u64(2));
    let ip = IpFields::v4(Ipv4Addr::new(9, 0, 0, 1), Ipv4Addr::new(10, 1, 2, 3));
    let template = eth.ip(&ip.udp(1_000, 4_096, &[0; 18]));
    let mut effects = Effects::new();
    let now = Duration::from_secs(1);
    for packet in 0..packets {
        let mut frame: EthernetFrame = effects.copy(&template);
        let source = if new { packet } else { packet % CONVERSATIONS };
        frame[SOURCE_AT..][..4].copy_from_slice(&source.to_be_bytes());
        datapath.receive(1, frame, now, &mut effects);
        assert!(effects.frames.len() == 1, "it leaves by one port");
        while let Some((port, frame)) = effects.frames.pop() {
            black_box(port);
            effects.recycle(frame);
        }
    }
}

fn switch() -> Result<Datapath, Box<dyn Error>> {
    let refused = |error: ErrorCode| format!("the switch refused a flow: {error}");
    let settings = DatapathSettings {
        ports: (1..=4).map(port).collect(),
        queues: Vec::new(),
        tables: TABLES,
        table_capacity: FLOWS,
        buffers: 0,
        rules: Version::V1_3,
    };
    let mut datapath = Datapath::new(settings, Duration::ZERO);
    let mut effects = Effects::new();
    let leave = [Action::SetField(Field::EthDst, 3), Action::output(Port(2))];
    let leave = [Instruction::ApplyActions(List::of(&leave))];
    for table in 0..TABLES {
        let goto = [Instruction::GotoTable(table + 1)];
        let instructions = if table + 1 == TABLES { &leave } else { &goto };
        let ip = Match::any().eth_type(IPV4);
        for flow in 0..FLOWS / u32::from(TABLES) {
            let address = Ipv4Addr::from_bits(11 << 24 | flow << 10);
            let prefix = 32 - (flow % (MASKS - 1)) as u8;
            let other = ip.clone().ipv4_dst_prefix(address, prefix);
            let flow = FlowMod::add(&other).table(table).priority(9).instructions(instructions);
            datapath
                .flow_mod(Version::V1_3, &flow, Duration::ZERO, &mut effects)
                .map_err(refused)?;
        }
        let wanted = ip.ipv4_dst_prefix(Ipv4Addr::new(10, 0, 0, 0), 8);
        let wanted = wanted.ip_proto(17).with_masked(Field::Ipv4Src, 0, 1 << 31);
        let flow = FlowMod::add(&wanted).table(table).priority(5).instructions(instructions);
        datapath.flow_mod(Version::V1_3, &flow, Duration::ZERO, &mut effects).map_err(refused)?;
    }
    Ok(datapath)
}

fn port(number: u32) -> PortDesc {
    PortDesc {
        current: PortFeatures::RATE_1GB_FD,
        current_speed: 1_000_000,
        max_speed: 1_000_000,
        ..PortDesc::new(Port(number), MacAddr::from_u64(number.into()), FixedStr::new("port"))
    }
}
