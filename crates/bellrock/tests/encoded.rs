//! Messages as bytes that apps send to switches, and what desired state makes of them.
#![cfg(feature = "lab")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellrock::lab::{Lab, single};
use bellrock::openflow::{GroupCommand, GroupMod, List, Out};
use bellrock::prelude::*;
use bellrock::services::desired::AUDIT_EVERY;

/// Time until the switch has what the app wants.
const SETTLED: Duration = Duration::from_secs(5);

/// Long before the next audit.
const RESTORED: Duration = Duration::from_secs(3);

const GROUP: u32 = 7;

/// An app that wants one group in each switch.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Option<Network>>>);

struct Idle;

impl Handler for Idle {}

impl App for Keeper {
    type Handler = Idle;

    fn name(&self) -> &'static str {
        "keeper"
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn start(&self, network: &Network) {
        *self.0.lock().unwrap() = Some(network.clone());
    }

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Idle {
        let bucket = BucketEntry::of(&[Action::output(Port(1))]);
        let group = GroupEntry::new(GROUP, GroupType::All).bucket(bucket);
        network.desired().set_at(switch.dpid, 1, [DesiredEntry::Group(group)]);
        Idle
    }
}

fn delete_group() -> Vec<u8> {
    let (command, kind) = (GroupCommand::Delete, GroupType::All);
    let group = GroupMod { command, kind, group: GROUP, buckets: List::empty() };
    let mut out = Out::with_capacity(64);
    ToSwitch::GroupMod(group).encode(Version::V1_3, 7, &mut out).unwrap();
    out.as_slice().to_vec()
}

#[test]
fn a_removed_entry_that_an_app_keeps_is_put_back_at_once() {
    const { assert!(SETTLED.as_secs() + RESTORED.as_secs() < AUDIT_EVERY.as_secs()) };
    let keeper = Keeper::default();
    let mut lab = Lab::seeded(1).version(Version::V1_3).topology(single(2)).run(keeper.clone());
    lab.run_for(SETTLED);
    assert_eq!(lab.groups("s1").len(), 1, "{:?}", lab.groups("s1"));
    let network = keeper.0.lock().unwrap().clone().unwrap();
    let sent = bellrock::encoded::send(&network, Dpid(1), &delete_group()).unwrap();
    let confirmed = Arc::new(Mutex::new(None));
    let outcomes = Arc::clone(&confirmed);
    network.spawn("remove the group", async move {
        let all = sent.await;
        *outcomes.lock().unwrap() = Some(all);
    });
    lab.run_for(RESTORED);
    assert_eq!(*confirmed.lock().unwrap(), Some(vec![ChangeOutcome::Installed]));
    assert_eq!(lab.groups("s1").len(), 1, "the group is back: {:?}", lab.groups("s1"));
}
