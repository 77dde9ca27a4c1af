//! A circuit between two ports, kept through failures.
//!
//! `cargo run -p bellrock --features lab --example circuit 1:1 3:1`

use std::iter::once;

use bellrock::prelude::*;
use bellrock::services::paths::{Path, paths};

// ANCHOR: app
/// The ends of the circuit. Packets that enter at one end leave at the other.
struct Circuit([SwitchPort; 2]);

impl App for Circuit {
    type Handler = Nothing;

    fn needs(&self) -> Needs {
        Needs::TOPOLOGY | Needs::PATHS
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn start(&self, network: &Network) {
        network.spawn("keep the circuit", keep(network.clone(), self.0));
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Nothing {
        Nothing
    }
}

struct Nothing;
impl Handler for Nothing {}

async fn keep(network: Network, [one, other]: [SwitchPort; 2]) {
    let (desired, watch) = (network.desired(), paths(&network));
    let mut now = watch.load();
    loop {
        for (intent, from, to) in [(1, one, other), (2, other, one)] {
            if let Some(path) = now.path(from.dpid, to.dpid, 0) {
                desired.set(intent, flows(&path, from, to));
            }
        }
        now = watch.changed(now.version()).await;
    }
}

/// The flows of a path, last switch first, so that packets never enter a path without an end.
fn flows(path: &Path, from: SwitchPort, to: SwitchPort) -> Vec<(Dpid, Flow)> {
    let ins = once(from.port).chain(path.hops.iter().map(|hop| hop.to.port));
    let outs = path.hops.iter().map(|hop| hop.from.port).chain(once(to.port));
    let flow = |(port, out)| Flow::new(Match::any().in_port(port)).output(out);
    let mut flows: Vec<_> = path.switches().zip(ins.zip(outs).map(flow)).collect();
    flows.reverse();
    flows
}
// ANCHOR_END: app

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ends: Vec<String> = std::env::args().skip(1).collect();
    let [one, other] = &ends[..] else {
        return Err("give the two ends of the circuit, each as DATAPATH-ID:PORT".into());
    };
    Ok(bellrock::run(Circuit([one.parse()?, other.parse()?]))?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock::lab::{Lab, ring};

    use super::*;

    #[test]
    fn two_ports_are_joined_whichever_link_fails() {
        let ends = [1, 3].map(|dpid| SwitchPort::new(Dpid(dpid), Port(1)));
        let mut lab = Lab::seeded(42).topology(ring(4, 1)).run(Circuit(ends));
        lab.run_for(Duration::from_secs(12));
        assert!(lab.ping("h1", "h3") && !lab.ping("h1", "h2"));
        for (a, b) in [("s1", "s2"), ("s1", "s4")] {
            lab.link_down(a, b);
            lab.run_for(Duration::from_secs(2));
            assert!(lab.ping("h1", "h3"), "around {a} - {b}");
            lab.link_up(a, b);
            lab.run_for(Duration::from_secs(12));
        }
    }
}
