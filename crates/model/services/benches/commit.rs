//! Measures the rate at which flows are committed over 32 emulated switches, each flow confirmed.
//!
//! The lab is one thread with everything: the task, the worker with its sessions, and the emulated
//! switches, which read each flow_mod and put the flow into a table. So it measures more than the
//! controller. Prints a line for each size and version: `commit 1.3 32000 flows: 210000/s`.
//!
//! `cargo bench -p bellrock-services --bench commit`
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that fails says so")]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bellrock_api::{
    App, Dpid, EarlierFlows, Flow, Handler, Match, Network, Port, SwitchInfo, Version,
};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::ring;
use bellrock_services::programming::{Committed, FlowProgramming, Plan};

const SWITCHES: u32 = 32;
const FLOWS_PER_SWITCH: [u32; 2] = [100, 1000];
const ROUNDS: u32 = 5;

#[derive(Clone, Default)]
struct Hand(Arc<Mutex<Option<Network>>>);

struct Idle;

impl Handler for Idle {}

impl App for Hand {
    type Handler = Idle;
    fn wants_packet_ins(&self) -> bool {
        false
    }
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }
    fn start(&self, network: &Network) {
        *self.0.lock().unwrap() = Some(network.clone());
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Idle {
        Idle
    }
}

/// A plan whose flows replace those of the round before.
fn plan(flows: u32, round: u32) -> Plan {
    let mut plan = Plan::independent();
    for switch in 1..=SWITCHES {
        for number in 0..flows {
            let host = Ipv4Addr::from_bits(0x0a00_0000 | number);
            let matching = Match::any().eth_type(0x0800).ipv4_dst(host);
            let flow = Flow::new(matching).priority(100).output(Port(1 + round % 2));
            plan = plan.add(Dpid(switch.into()), flow);
        }
    }
    plan
}

fn main() {
    for version in Version::ALL {
        for flows in FLOWS_PER_SWITCH {
            let hand = Hand::default();
            let lab = Lab::seeded(1).version(version).topology(ring(SWITCHES, 1));
            let mut lab = lab.control_delay(Duration::from_micros(50)).run(hand.clone());
            let network = hand.0.lock().unwrap().clone().unwrap();
            let mut times = Vec::new();
            for round in 0..ROUNDS {
                let plan = plan(flows, round);
                let changes = plan.len();
                let result = Arc::new(Mutex::new(None));
                let began = Instant::now();
                let (kept, handle) = (Arc::clone(&result), network.clone());
                network.spawn("commit", async move {
                    let committed = handle.commit(plan).await;
                    *kept.lock().unwrap() = Some(committed);
                });
                let is_done = |_: &Lab| result.lock().unwrap().is_some();
                assert!(lab.run_until(Duration::from_secs(60), is_done), "it does not end");
                times.push(began.elapsed());
                let committed = result.lock().unwrap().take().unwrap();
                assert_eq!(committed, Ok(Committed { changes }), "every flow is confirmed");
            }
            times.sort_unstable();
            let all = f64::from(SWITCHES * flows);
            let median = times[times.len() / 2].as_secs_f64();
            println!("commit {version} {all} flows: {:.0}/s", all / median);
        }
    }
}
