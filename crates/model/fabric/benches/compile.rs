//! Measures how long a network takes from its file to the tables of a switch, and what a change
//! costs.
//!
//! `cargo bench -p bellrock-fabric --bench compile`. One core. Prints the best and the median of
//! all rounds, in milliseconds, and the numbers of flows and messages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench fails so")]

#[path = "../tests/fabric/networks.rs"]
mod networks;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellrock_fabric::check::{State, Wanted, check_plan};
use bellrock_fabric::compile::{Compiler, Fact, Facts, HostKey};
use bellrock_fabric::intent::SwitchId;
use bellrock_fabric::{Intent, check, compile, diff};
use networks::{access_and_trunks, intent, trunks, with_acls};

const ROUNDS: usize = 21;
/// Number of hosts that are learned.
const HOSTS: u64 = 20_000;

fn main() {
    println!("{:<54}{:>9}{:>9}  amount", "ms", "best", "median");
    for (name, text) in [
        ("24 ports x 10 VLANs", trunks(24, 10)),
        ("48 ports x 50 VLANs", trunks(48, 50)),
        ("48 ports x 50 VLANs, one access port", access_and_trunks(48, 50)),
        ("2 ports x 3,000 VLANs, 3 rules each", with_acls(2, 3000)),
    ] {
        measure_network(name, &text);
    }
    measure_change();
    measure_ports();
    measure_hosts();
}

fn measure_network(name: &str, text: &str) {
    println!("{name}: {} bytes", text.len());
    let facts = facts(48);
    let network = Arc::new(intent(text));
    let tables = compile(&network, SwitchId(0), &facts).unwrap();
    row("  read", "", || intent(text));
    let flows = format!("{} flows", tables.flows().count());
    row("  compile", &flows, || compile(&network, SwitchId(0), &facts).unwrap());
    row("  both", &flows, || compile(&Arc::new(intent(text)), SwitchId(0), &facts).unwrap());
    row("  compare with itself", "0 messages", || diff(&tables, &tables.clone()));
    row("  check", &flows, || check(&network, SwitchId(0), &facts, &tables).unwrap());
}

fn measure_change() {
    let facts = facts(48);
    let of = |text: &str| compile(&Arc::new(intent(text)), SwitchId(0), &facts).unwrap();
    let (old, new) = (of(&access_and_trunks(48, 50)), of(&trunks(48, 50)));
    let messages = format!("{} messages", diff(&old, &new).messages());
    row("48 x 50, a port from access to trunk: diff", &messages, || diff(&old, &new));
    let intents = [access_and_trunks(48, 50), trunks(48, 50)].map(|text| intent(&text));
    let [before, after] =
        intents.each_ref().map(|intent| Wanted::new(intent, SwitchId(0), &facts).unwrap());
    let (plan, state) = (diff(&old, &new), State::of(&old));
    row("48 x 50, a port from access to trunk: check each step", &messages, || {
        check_plan(&before, &after, &mut state.clone(), &plan).unwrap();
    });
    row("48 x 50, a port from access to trunk: all", &messages, || {
        diff(&old, &of(&trunks(48, 50)))
    });
}

fn measure_ports() {
    let compiler = compiler(&trunks(48, 50));
    let mut facts = facts(48);
    let messages = compiler.change(&mut facts.clone(), Fact::PortDown(1)).messages();
    row("48 x 50, a port down and up", &format!("{messages} messages each"), || {
        let down = compiler.change(&mut facts, Fact::PortDown(1));
        (down, compiler.change(&mut facts, Fact::PortUp(1)))
    });
}

fn measure_hosts() {
    let compiler = compiler(&trunks(48, 50));
    let mut facts = facts(48);
    let mut round = 0;
    row("48 x 50, hosts that are learned", &format!("{HOSTS} hosts"), || {
        round += 1;
        for number in 0..HOSTS {
            let vid = 100 + (number % 50) as u16;
            let mac = bellrock_api::MacAddr::from_u64(0x0200_0000_0000 | round << 32 | number);
            let fact = Fact::HostAt(HostKey { vid, mac }, 1 + (number % 48) as u32);
            black_box(compiler.change(&mut facts, fact));
        }
    });
}

fn compiler(text: &str) -> Compiler {
    let network: Arc<Intent> = Arc::new(intent(text));
    Compiler::new(network, SwitchId(0), Default::default()).unwrap()
}

fn facts(ports: u32) -> Facts {
    Facts::with_ports(1..=ports)
}

fn row<T>(name: &str, amount: &str, mut work: impl FnMut() -> T) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed()
        })
        .collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (best, median) = (ms(times[0]), ms(times[ROUNDS / 2]));
    println!("{name:<54}{best:>9.3}{median:>9.3}  {amount}");
}
