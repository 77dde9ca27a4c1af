//! Background tasks in the lab: on its clock, in the same order in every run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bellrock_api::{
    Action, App, FlowMod, Handler, Match, Network, PacketIn, Port, Result, Switch, SwitchInfo,
    ToSwitch, Verdict,
};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::{linear, single, tree};
use bellrock_transactions::{TVar, atomically, transaction};
use bellrock_worker::TaskState;

const SECOND: Duration = Duration::from_secs(1);

/// Floods, counts packets, and runs tasks that act on all switches at odd times. One task uses
/// random numbers; some wait for each other and for packets.
#[derive(Clone, Default)]
struct Restless {
    packets: TVar<u32>,
    notes: Arc<Mutex<Vec<String>>>,
}

impl App for Restless {
    type Handler = Restless;

    fn start(&self, network: &Network) {
        let (its, mut lots) = (network.clone(), fastrand::Rng::with_seed(network.seed().unwrap()));
        network.spawn("draws lots", async move {
            loop {
                its.sleep(Duration::from_micros(lots.u64(1..50_000))).await;
                let switches = its.switches();
                let Some(info) = switches.iter().nth(lots.usize(0..switches.len().max(1))) else {
                    continue;
                };
                let matching = Match::any().in_port(Port(lots.u32(100..200)));
                let message = ToSwitch::FlowMod(FlowMod::add(&matching).priority(1));
                its.send(info.dpid, &message).unwrap();
            }
        });
        for task in 0..4 {
            let (its, app) = (network.clone(), self.clone());
            network.spawn(format!("waits for packets {task}"), async move {
                loop {
                    transaction(|tx| {
                        let packets = tx.read(&app.packets)?;
                        tx.require(packets > 0)?;
                        tx.write(&app.packets, packets - 1)
                    })
                    .await;
                    app.notes.lock().unwrap().push(format!("{task} at {:?}", its.now()));
                    its.sleep(Duration::from_millis(task + 1)).await;
                }
            });
        }
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Restless {
        self.clone()
    }
}

impl Handler for Restless {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        atomically(|tx| tx.modify(&self.packets, |packets| packets + 1))?;
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

#[test]
fn a_run_with_tasks_repeats_to_the_last_byte() {
    let run = |seed| {
        let app = Restless::default();
        let notes = Arc::clone(&app.notes);
        let mut lab = Lab::seeded(seed).topology(tree(2, 2)).workers(2).run(app);
        assert!(lab.ping_all().is_complete());
        lab.run_for(3 * SECOND);
        let notes = std::mem::take(&mut *notes.lock().unwrap());
        assert!(notes.len() > 10, "{notes:?}");
        (lab.digest(), notes)
    };
    let first = run(7);
    assert_eq!(run(7), first);
    assert_ne!(run(8).0, first.0);
}

/// Blocks and opens the path between two hosts, at its task's times.
struct Door;

impl App for Door {
    type Handler = Door;

    fn start(&self, network: &Network) {
        let its = network.clone();
        network.spawn("door", async move {
            let mut seen = its.switches();
            while seen.is_empty() {
                seen = its.watch_switches().changed(seen.version()).await;
            }
            let dpid = seen.iter().next().unwrap().dpid;
            its.sleep_until(10 * SECOND).await;
            let (all, flood) = (Match::any(), [Action::output(Port::FLOOD)]);
            let flow = FlowMod::add(&all).priority(1).actions(&flood);
            its.send(dpid, &ToSwitch::FlowMod(flow)).unwrap();
            its.sleep_until(20 * SECOND).await;
            its.send(dpid, &ToSwitch::FlowMod(FlowMod::delete(&all).strict().priority(1))).unwrap();
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Door {
        Door
    }
}

impl Handler for Door {}

#[test]
fn tasks_sleep_on_the_clock_of_the_lab() {
    let mut lab = Lab::seeded(1).topology(single(2)).run(Door);
    assert!(!lab.ping("h1", "h2"));
    assert!(lab.now() < 10 * SECOND, "it is {:?}", lab.now());
    assert_eq!(lab.tasks()[0].state, TaskState::Waiting);
    lab.run_until(10 * SECOND, |lab| lab.now() >= 11 * SECOND);
    assert!(lab.ping("h1", "h2"));
    lab.run_until(10 * SECOND, |lab| lab.now() >= 21 * SECOND);
    assert!(!lab.ping("h1", "h2"));
    assert_eq!(lab.tasks(), []);
    assert_eq!((lab.counter("tasks_finished"), lab.counter("tasks_panicked")), (1, 0));
    assert_eq!(lab.findings(), [] as [String; 0]);
}

#[test]
fn a_task_that_is_always_ready_does_not_stop_the_clock() {
    let mut lab = Lab::seeded(1).topology(linear(2, 1)).run(Restless::default());
    let network = lab.controller().unwrap();
    network.spawn(
        "always ready",
        poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Pending
        }),
    );
    let before = lab.now();
    lab.run_for(Duration::from_millis(1));
    assert_eq!(lab.now(), before + Duration::from_millis(1));
    assert!(lab.ping("h1", "h2"));
}

#[test]
fn a_controller_that_stops_ends_its_tasks_and_the_next_has_its_own() {
    let (first, second) = (Restless::default(), Restless::default());
    let old = Arc::clone(&first.notes);
    let mut lab = Lab::seeded(3).topology(single(2)).run(first);
    assert!(lab.ping("h1", "h2"));
    assert_eq!(lab.tasks().len(), 5);
    lab.stop_controller();
    assert_eq!((lab.tasks(), lab.counter("tasks_started")), (Vec::new(), 0));
    // The app is dropped, and with it everything that its tasks held.
    assert_eq!(Arc::strong_count(&old), 1);
    let noted = old.lock().unwrap().len();
    lab.start_controller(second);
    assert!(lab.run_until(60 * SECOND, Lab::is_all_up));
    assert!(lab.ping("h1", "h2"));
    assert_eq!(old.lock().unwrap().len(), noted);
    assert_eq!(lab.tasks().len(), 5);
}
