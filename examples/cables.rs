//! Two cables in each switch, port 1 to 2 and port 3 to 4. They carry packets even while the
//! controller is down: a restart changes no flow that is correct.

use bellrock::prelude::*;

const CABLES: [(u32, u32); 2] = [(1, 2), (3, 4)];

struct Cables;

/// The handler of a switch. It has no state.
struct Nothing;

impl Handler for Nothing {}

impl App for Cables {
    type Handler = Nothing;

    fn name(&self) -> &'static str {
        "cables"
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    /// Keeps the flows of the previous run.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Nothing {
        let desired = network.desired();
        for (number, (a, b)) in (1..).zip(CABLES) {
            let way = |from, to| Flow::new(Match::any().in_port(Port(from))).output(Port(to));
            desired.set_at(switch.dpid, number, [way(a, b), way(b, a)]);
        }
        desired.complete();
        Nothing
    }
}

fn main() -> bellrock::Result {
    bellrock::run(Cables)
}
