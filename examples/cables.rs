//! Two cables in each switch, port 1 to 2 and port 3 to 4, that carry packets whether or not the
//! controller runs: a restart of it touches no flow that is as it should be.

use bellrock::prelude::*;

const CABLES: [(u32, u32); 2] = [(1, 2), (3, 4)];

struct Cables;

/// Nothing is kept of a switch.
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

    /// The flows of the last run are taken on.
    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Keep
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
