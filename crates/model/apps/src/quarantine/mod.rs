//! Drops all packets of listed hosts at every switch, until they are taken off the list.
//!
//! [`BlockLists`] contains the hosts; any holder may change it at any time. A task for each switch
//! (`keep`) waits for changes, and sends the difference to the switch. A switch that connects gets
//! all drops in the first bytes sent to it; then its flows are read. Its old drops stay meanwhile,
//! so no packet slips through. Unneeded ones are removed once the flows are known. Drops that
//! another program removes are restored. [`BlockLists::gaps`] names the switches that have not
//! confirmed a drop.
//!
//! The app must come before the apps whose flows it overrides: its position in the chain gives its
//! drops the higher priority, so they also override flows installed long before.

mod keep;
mod list;
mod lists;
#[cfg(feature = "orders")]
mod orders;
mod stored;

use bellrock_api::{
    App, Batch, EarlierFlows, Forwards, Handler, Network, Result, Switch, SwitchInfo, TaskHandle,
};
use bellrock_services::desired::OperatorChanges;

use keep::{FIRST_ENTRIES, ReadPermits, drops, keep_drops};
pub use keep::{READS_AT_A_TIME, TRY_AGAIN_AFTER};
pub use list::{BadLine, BlockList, Blocked, MAX_BAD_LINES_REPORTED, MAX_BLOCKED, NotBlockable};
use lists::SwitchBlocks;
pub use lists::{BlockEntry, BlockGap, BlockLists, NotChanged};

/// The app.
#[derive(Debug, Default)]
pub struct Quarantine {
    lists: BlockLists,
    permits: ReadPermits,
}

impl Quarantine {
    /// Creates an app that blocks the hosts of these lists.
    #[must_use]
    pub fn new(lists: &BlockLists) -> Self {
        Quarantine { lists: lists.clone(), permits: ReadPermits::default() }
    }
}

crate::boxed::boxed!(Quarantine);

impl App for Quarantine {
    type Handler = QuarantineSwitch;

    fn name(&self) -> &'static str {
        "quarantine"
    }

    fn forwards(&self) -> Forwards {
        Forwards::Nothing
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    /// Listed hosts stay blocked while the controller is away, and while it restarts.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn start(&self, network: &Network) {
        self.lists.report_to(network);
        self.lists.start(network);
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> QuarantineSwitch {
        let (task_network, dpid_and_version) = (network.clone(), (info.dpid, info.version));
        let (lists, permits) = (self.lists.clone(), self.permits.clone());
        let orders = OperatorChanges::of(network).of_switch(info.dpid);
        lists.note(info.dpid, SwitchBlocks::of_new_connection(orders));
        let run = move || {
            keep_drops(task_network.clone(), dpid_and_version, lists.clone(), permits.clone())
        };
        let task = network.supervise(format!("drops of {}", info.dpid), run);
        QuarantineSwitch { lists: self.lists.clone(), task }
    }
}

/// The drops of one switch.
#[derive(Debug)]
pub struct QuarantineSwitch {
    lists: BlockLists,
    /// Keeps the drops equal to the lists.
    task: TaskHandle,
}

impl Handler for QuarantineSwitch {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        let version = switch.version();
        let all = self.lists.wanted().load().all();
        let supported = all.into_iter().filter(|blocked| blocked.is_known_to(version));
        // The task sends the rest.
        for blocked in supported.take(FIRST_ENTRIES) {
            for flow in drops(blocked) {
                let sent = switch.install(&flow);
                if sent.is_err() {
                    // The task sends what does not fit the buffer.
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Leaves packets to the next app.
    fn packet_ins(&mut self, _: &mut Switch<'_>, _: &mut Batch<'_>) {}

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.task.cancel();
        self.lists.note_down(info.dpid);
    }
}
