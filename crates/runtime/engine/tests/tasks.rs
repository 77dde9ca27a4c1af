//! Background tasks in their own thread.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{Bytes, List, PacketOut, ToSwitch};
use bellrock_api::{
    Action, App, Dpid, Error, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo,
    Verdict, Version,
};
use bellrock_engine::{Engine, TaskState};
use bellrock_transactions::{TVar, atomically, transaction};
use peer::{Answer, Peer, frame, start, start_with, until};

/// Maximum time of a stop, whatever tasks do.
const STOP_BOUND: Duration = Duration::from_secs(40);

fn task_counter(engine: &Engine, name: &str) -> u64 {
    let counters = engine.monitor().task_counters();
    counters.iter().find(|(its, _)| *its == name).unwrap().1
}

fn send(network: &Network, to: u64, sequence: u64, len: usize) -> Result<(), Error> {
    let (frame, actions) = (frame(sequence, len), [Action::output(Port::FLOOD)]);
    let packet = PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&frame),
    };
    network.send(Dpid(to), &ToSwitch::PacketOut(packet))
}

/// Whether a packet is the first one of a [`Peer`], which another app answers.
fn is_mark(packet: &PacketIn<'_>) -> bool {
    packet.data()[14..22] == [0xff; 8]
}

/// Sends messages, and waits while the queue is full.
async fn send_all(network: &Network, to: u64, sequences: std::ops::Range<u64>) {
    for sequence in sequences {
        let len = 64 + (sequence as usize * 37) % 1400;
        while let Err(error) = send(network, to, sequence, len) {
            assert_eq!(error, Error::Full(Dpid(to)));
            network.sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Counts each packet in a variable; a task answers every third.
struct Third(TVar<u64>);

impl App for Third {
    type Handler = Third;

    fn start(&self, network: &Network) {
        let (its, packets) = (network.clone(), self.0.clone());
        network.spawn("every third", async move {
            for round in 0.. {
                transaction(|tx| {
                    let seen = tx.read(&packets)?;
                    tx.require(seen >= 3)?;
                    tx.write(&packets, seen - 3)
                })
                .await;
                send(&its, 1, round, 64).unwrap();
            }
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Third {
        Third(self.0.clone())
    }
}

impl Handler for Third {
    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        if is_mark(packet) {
            return Ok(Verdict::Pass);
        }
        atomically(|tx| tx.modify(&self.0, |packets| packets + 1))?;
        Ok(Verdict::Consume)
    }
}

#[test]
fn a_handler_wakes_a_task_and_the_task_commands_the_switch() {
    let engine = start_with(1, vec![Box::new(Third(TVar::new(0))), Box::new(Answer)], |_| {});
    let mut peer = Peer::up(&engine, Version::V1_3, 1);
    for round in 0..100 {
        for _ in 0..3 {
            peer.packet_in(0, 64);
        }
        assert_eq!(peer.sequence(), round);
    }
    let tasks = engine.monitor().tasks();
    assert_eq!((tasks[0].app, tasks[0].name.as_str()), ("Third", "every third"));
    // One poll may see the packets of several rounds.
    assert!(tasks[0].polls > 0);
}

#[test]
fn tasks_wake_up_by_themselves_never_early_and_share_their_thread() {
    let engine = start(1, |_| {});
    let network = engine.network();
    let early = Arc::new(AtomicBool::new(false));
    for n in 0..200 {
        let (its, early) = (network.clone(), Arc::clone(&early));
        network.spawn(format!("sleeper {n}"), async move {
            for _ in 0..5 {
                let until = its.now() + Duration::from_micros(n * 37);
                its.sleep_until(until).await;
                early.fetch_or(its.now() < until, Ordering::Relaxed);
            }
        });
    }
    until("all have slept", || task_counter(&engine, "tasks_finished") == 200);
    assert!(!early.load(Ordering::Relaxed));
    // No work is left: the thread sleeps, and a late task still runs.
    network.spawn("late", async {});
    until("a late one is run", || task_counter(&engine, "tasks_finished") == 201);
}

#[test]
fn a_task_that_computes_for_ever_delays_no_packet_and_no_stop() {
    let engine = start(1, |_| {});
    let mut peer = Peer::up(&engine, Version::V1_3, 1);
    let (go_on, computed) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (until_told, counts) = (Arc::clone(&go_on), Arc::clone(&computed));
    engine.network().spawn("endless", async move {
        while until_told.load(Ordering::Relaxed) {
            black_box(counts.fetch_add(1, Ordering::Relaxed));
        }
    });
    let is_running = |engine: &Engine| {
        engine.monitor().tasks().iter().any(|task| task.state == TaskState::Running)
    };
    until("it runs", || is_running(&engine));
    for sequence in 0..100 {
        peer.packet_in(sequence, 64);
        assert_eq!(peer.sequence(), sequence);
    }
    assert!(is_running(&engine));
    let began = Instant::now();
    engine.stop();
    assert!(began.elapsed() < STOP_BOUND, "it stopped after {:?}", began.elapsed());
    go_on.store(false, Ordering::Relaxed);
}

#[test]
fn a_panic_of_a_task_stops_neither_the_engine_nor_another_task() {
    let engine = start(1, |_| {});
    let network = engine.network();
    let its = network.clone();
    network.spawn("good", async move {
        loop {
            its.sleep(Duration::from_millis(1)).await;
        }
    });
    network.spawn("bad", async { panic!("on purpose") });
    until("it has panicked", || task_counter(&engine, "tasks_panicked") == 1);
    let polls = |engine: &Engine| {
        let tasks = engine.monitor().tasks();
        tasks.iter().find(|task| task.name == "good").unwrap().polls
    };
    let before = polls(&engine);
    until("the other goes on", || polls(&engine) > before + 3);
    assert!(!engine.has_failed());
    let mut peer = Peer::up(&engine, Version::V1_0, 1);
    peer.packet_in(7, 64);
    assert_eq!(peer.sequence(), 7);
    let tasks = engine.monitor().tasks();
    let bad = tasks.iter().find(|task| task.name == "bad").unwrap();
    assert_eq!(bad.state, TaskState::Panicked("on purpose".into()));
}

#[test]
fn a_stop_drops_what_tasks_own() {
    struct Last(Arc<AtomicBool>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let engine = start(1, |_| {});
    let network = engine.network();
    let dropped = Arc::new(AtomicBool::new(false));
    let last = Last(Arc::clone(&dropped));
    let its = network.clone();
    network.spawn("waits", async move {
        let _last = last;
        its.sleep(Duration::from_secs(1000)).await;
    });
    engine.stop();
    assert!(dropped.load(Ordering::Relaxed));
    assert!(network.spawn("too late", async {}).is_over());
}

/// Its handler sends each packet to another switch, maybe of another worker.
struct Across;

/// Destination of switch 1's packets.
const OTHER: u64 = 2;

impl App for Across {
    type Handler = Passing;

    fn switch_up(&self, network: &Network, _: &SwitchInfo) -> Passing {
        Passing(network.clone())
    }
}

struct Passing(Network);

impl Handler for Passing {
    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        if is_mark(packet) {
            return Ok(Verdict::Pass);
        }
        let actions = [Action::output(Port::FLOOD)];
        let message = ToSwitch::PacketOut(PacketOut {
            buffer_id: None,
            in_port: Port::CONTROLLER,
            actions: List::of(&actions),
            data: Bytes(packet.data()),
        });
        // Never full: all senders together fill neither the mailbox nor the backlog.
        self.0.send(Dpid(OTHER), &message)?;
        Ok(Verdict::Consume)
    }
}

/// Tasks, threads and handlers of other switches all send to one switch, which moves between
/// workers meanwhile.
#[test]
fn commands_of_all_senders_arrive_whole_and_in_the_order_of_each() {
    const TASKS: u64 = 4;
    const THREADS: u64 = 2;
    const EACH: u64 = 1_000;
    let engine = start_with(3, vec![Box::new(Across), Box::new(Answer)], |settings| {
        settings.worker.hand_over = false;
    });
    let mut one = Peer::up(&engine, Version::V1_3, 1);
    let mut two = Peer::up(&engine, Version::V1_0, OTHER);
    let network = engine.network();
    for task in 0..TASKS {
        let its = network.clone();
        network.spawn(format!("sender {task}"), async move {
            send_all(&its, OTHER, task * EACH..(task + 1) * EACH).await;
        });
    }
    let senders = TASKS + THREADS + 1;
    let (over, monitor) = (AtomicBool::new(false), engine.monitor());
    std::thread::scope(|scope| {
        for thread in TASKS..TASKS + THREADS {
            let network = network.clone();
            scope.spawn(move || {
                for sequence in thread * EACH..(thread + 1) * EACH {
                    while let Err(error) = send(&network, OTHER, sequence, 100) {
                        assert_eq!(error, Error::Full(Dpid(OTHER)));
                        std::thread::yield_now();
                    }
                }
            });
        }
        let handlers = scope.spawn(move || {
            for sequence in (senders - 1) * EACH..senders * EACH {
                one.packet_in(sequence, 200);
            }
            one
        });
        let moved = scope.spawn(|| {
            let mut moved = 0;
            while !over.load(Ordering::Relaxed) {
                moved += u64::from(monitor.hand_over(Dpid(OTHER), moved as usize % 3));
                std::thread::sleep(Duration::from_millis(2));
            }
            moved
        });
        let mut next: Vec<u64> = (0..senders).map(|sender| sender * EACH).collect();
        for _ in 0..senders * EACH {
            let sequence = two.sequence();
            let sender = (sequence / EACH) as usize;
            assert_eq!(sequence, next[sender], "of sender {sender}");
            next[sender] += 1;
        }
        over.store(true, Ordering::Relaxed);
        assert!(moved.join().unwrap() > 0);
        drop(handlers.join().unwrap());
    });
    assert_eq!(task_counter(&engine, "tasks_finished"), TASKS);
    assert!(peer::counter(&engine, "switches_taken_over") > 0);
}
