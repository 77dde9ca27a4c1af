//! Drops all packets of listed hosts at every switch, and lets them back.
//!
//! Who is listed, [`BlockLists`] says: whoever holds them changes them at any time. For each switch a task (`keep`)
//! waits for that and changes the switch's drops by the difference. A switch that comes up gets all drops
//! with the first bytes that are sent to it; then it tells what it has. Drops that it has from before
//! are not taken away meanwhile, so that nobody slips through: they stay what they are, and go once it is
//! known that nobody wants them. What somebody else removes is put back.
//!
//! The app has to stand before those whose flows it is to beat: its place in the chain gives its drops the higher
//! priority, so that they also stop what those apps have installed long before.

mod keep;
mod list;
mod lists;

use bellrock_api::openflow::FlowCommand;
use bellrock_api::{
    App, Batch, Forwards, Handler, LeftFlows, Network, Result, Switch, SwitchInfo, TaskHandle,
};

use keep::{FIRST_ENTRIES, Turns, drops, keep};
pub use keep::{READS_AT_A_TIME, TRY_AGAIN_AFTER};
pub use list::{BadLine, BlockList, Blocked, MAX_BAD_LINES_TOLD, MAX_BLOCKED, NotBlockable};
use lists::Gaps;
pub use lists::{BlockLists, Entry, NotChanged};

/// The app.
#[derive(Debug, Default)]
pub struct Quarantine {
    lists: BlockLists,
    turns: Turns,
}

impl Quarantine {
    /// Blocks who is in these lists.
    #[must_use]
    pub fn new(lists: &BlockLists) -> Self {
        Quarantine { lists: lists.clone(), turns: Turns::default() }
    }
}

impl App for Quarantine {
    type Handler = Drops;

    fn name(&self) -> &'static str {
        "quarantine"
    }

    fn forwards(&self) -> Forwards {
        Forwards::Nothing
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    /// Who is listed stays cut off while the controller is away, and while it comes back.
    fn left_flows(&self) -> LeftFlows {
        LeftFlows::Keep
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> Drops {
        let (its, at) = (network.clone(), (info.dpid, info.version));
        let (lists, turns) = (self.lists.clone(), self.turns.clone());
        let keeping = move || keep(its.clone(), at, lists.clone(), turns.clone());
        let task = network.supervise(format!("drops of {}", info.dpid), keeping);
        Drops { lists: self.lists.clone(), task }
    }
}

/// The drops of one switch.
#[derive(Debug)]
pub struct Drops {
    lists: BlockLists,
    /// Keeps them up to the lists.
    task: TaskHandle,
}

impl Handler for Drops {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let version = switch.version();
        let all = self.lists.wanted().load().all();
        let known = all.into_iter().filter(|blocked| blocked.is_known_to(version));
        // The task sends the others.
        for blocked in known.take(FIRST_ENTRIES) {
            for flow in drops(blocked) {
                let sent = flow.with_flow_mod(FlowCommand::Add, |flow| switch.install(flow));
                if sent.is_err() {
                    // What the buffer has no room for, the task sends.
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Packets are the next app's.
    fn packet_ins(&mut self, _: &mut Switch<'_>, _: &mut Batch<'_>) {}

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.task.cancel();
        self.lists.note_gaps(info.dpid, Gaps::new());
    }
}
