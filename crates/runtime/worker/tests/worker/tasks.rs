//! Background tasks: their turns, their ends, and their waits.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::lab::{Lab, Notes};
use bellrock_api::{
    App, Dpid, FlowMod, Handler, Match, Network, PacketIn, Port, Result, Switch, SwitchInfo,
    ToSwitch, Verdict, Version,
};
use bellrock_transactions::{TVar, atomically, transaction};
use bellrock_worker::TaskState;

/// Notes when it is dropped.
struct Last(Notes, &'static str);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.note(format!("{} is dropped", self.1));
    }
}

/// An app that does nothing.
struct Quiet;

impl App for Quiet {
    type Handler = Quiet;

    fn name(&self) -> &'static str {
        "quiet"
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Quiet {
        Quiet
    }
}

impl Handler for Quiet {}

fn lab() -> (Lab, Network, Notes) {
    let lab = Lab::with_app(Quiet);
    let network = lab.shared.network();
    (lab, network, Notes::default())
}

/// Gives the other tasks their turns.
async fn give_way() {
    let mut gave = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn counter(lab: &Lab, name: &str) -> u64 {
    lab.shared.task_counters().iter().find(|(its, _)| *its == name).unwrap().1
}

#[test]
fn tasks_that_are_ready_take_turns() {
    let (mut lab, network, notes) = lab();
    for name in ["a", "b", "c"] {
        let notes = notes.clone();
        network.spawn(name, async move {
            for turn in 1..=2 {
                notes.note(format!("{name}{turn}"));
                give_way().await;
            }
        });
    }
    assert_eq!(notes.take(), Vec::<String>::new(), "nothing is run where it is started");
    lab.run();
    assert_eq!(notes.take(), ["a1", "b1", "c1", "a2", "b2", "c2"]);
    assert_eq!((counter(&lab, "tasks_started"), counter(&lab, "tasks_finished")), (3, 3));
    assert_eq!(counter(&lab, "task_polls"), 9);
    assert_eq!(lab.shared.tasks(), []);
}

#[test]
fn a_task_that_never_waits_starves_no_other_and_no_timer() {
    let (mut lab, network, notes) = lab();
    network.spawn("busy", async {
        loop {
            give_way().await;
        }
    });
    let (sleeper, noted) = (network.clone(), notes.clone());
    network.spawn("sleeper", async move {
        for turn in 1..=3 {
            sleeper.sleep(ms(100)).await;
            noted.note(format!("turn {turn} at {:?}", sleeper.now()));
        }
    });
    lab.run();
    lab.advance(ms(300));
    assert_eq!(notes.take(), ["turn 1 at 1.1s", "turn 2 at 1.2s", "turn 3 at 1.3s"]);
    // Mail and packets still have their turns: a switch comes up.
    lab.up(Version::V1_3, 5);
    assert!(network.switch(Dpid(5)).is_some());
}

#[test]
fn a_panic_ends_its_task_and_no_other() {
    let (mut lab, network, notes) = lab();
    let (other, noted) = (network.clone(), notes.clone());
    network.spawn("other", async move {
        other.sleep(ms(50)).await;
        noted.note("the other goes on");
    });
    let last = Last(notes.clone(), "what it owned");
    let bad = network.spawn("bad", async move {
        give_way().await;
        let _last = last;
        panic!("no {} here", "luck");
    });
    lab.run();
    lab.advance(ms(50));
    assert!(bad.is_over());
    assert_eq!(notes.take(), ["what it owned is dropped", "the other goes on"]);
    assert_eq!((counter(&lab, "tasks_panicked"), counter(&lab, "tasks_finished")), (1, 1));
    let tasks = lab.shared.tasks();
    assert_eq!(tasks.len(), 1);
    assert_eq!((tasks[0].name.as_str(), tasks[0].polls), ("bad", 2));
    assert_eq!(tasks[0].state, TaskState::Panicked("no luck here".into()));
}

#[test]
fn a_supervised_task_starts_again_until_it_panics_too_often() {
    let (mut lab, network, notes) = lab();
    let (noted, its, mut run) = (notes.clone(), network.clone(), 0);
    let task = network.supervise("shaky", move || {
        run += 1;
        let (run, last) = (run, Last(noted.clone(), "what it owned"));
        let (noted, its) = (noted.clone(), its.clone());
        async move {
            let _last = last;
            noted.note(format!("run {run} at {:?}", its.now()));
            give_way().await;
            assert!(run == 3, "run {run} is bad");
            its.sleep(ms(60_000)).await;
        }
    });
    lab.run();
    let dropped = "what it owned is dropped";
    assert_eq!(notes.take(), ["run 1 at 1s", dropped]);
    assert_eq!(lab.tasks.next_timer(), Some(ms(1_100)), "a tenth of a second later");
    lab.advance(ms(300));
    assert_eq!(notes.take(), ["run 2 at 1.1s", dropped, "run 3 at 1.3s"]);
    let states: Vec<_> = lab.shared.tasks().into_iter().map(|task| task.state).collect();
    let bad = |n| TaskState::Panicked(format!("run {n} is bad"));
    assert_eq!(states, [bad(1), bad(2), TaskState::Waiting]);
    assert!(!task.is_over());
    lab.advance(ms(60_000));
    assert_eq!(notes.take(), [dropped]);
    assert!(task.is_over(), "the third run came to its end");
    assert_eq!((counter(&lab, "tasks_panicked"), counter(&lab, "tasks_started_again")), (2, 2));

    let task = network.supervise("hopeless", || async { panic!("always") });
    lab.run();
    lab.advance(ms(60_000));
    assert!(task.is_over());
    assert_eq!((counter(&lab, "tasks_panicked"), counter(&lab, "tasks_started_again")), (12, 11));
    assert_eq!(lab.tasks.next_timer(), None);
}

#[test]
fn a_supervised_task_is_cancelled_in_its_pause_too() {
    let (mut lab, network, _) = lab();
    let task = network.supervise("hopeless", || async { panic!("always") });
    lab.run();
    task.cancel();
    lab.run();
    assert!(task.is_over());
    lab.advance(ms(1_000));
    assert_eq!((counter(&lab, "tasks_panicked"), counter(&lab, "tasks_cancelled")), (1, 1));
}

#[test]
fn a_panic_while_a_task_is_dropped_harms_nobody() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    let (mut lab, network, notes) = lab();
    let bad = Bad;
    network.spawn("bad", async move {
        let _bad = bad;
        std::future::pending::<()>().await;
    });
    let last = Last(notes.clone(), "the next");
    network.spawn("next", async move {
        let _last = last;
        std::future::pending::<()>().await;
    });
    lab.run();
    lab.tasks.stop();
    assert_eq!(notes.take(), ["the next is dropped"]);
    assert_eq!(counter(&lab, "tasks_panicked"), 1);
}

#[test]
fn tasks_wake_up_at_their_time_and_in_its_order() {
    let (mut lab, network, notes) = lab();
    for after in [150, 50, 100, 50] {
        let (network, notes) = (network.clone(), notes.clone());
        network.clone().spawn(format!("after {after}"), async move {
            network.sleep(ms(after)).await;
            notes.note(format!("{after} at {:?}", network.now()));
        });
    }
    lab.run();
    assert_eq!(lab.tasks.next_timer(), Some(ms(1050)));
    lab.advance(ms(200));
    assert_eq!(notes.take(), ["50 at 1.05s", "50 at 1.05s", "100 at 1.1s", "150 at 1.15s"]);
    assert_eq!(lab.tasks.next_timer(), None);
}

#[test]
fn a_timeout_ends_what_takes_too_long() {
    let (mut lab, network, notes) = lab();
    let (its, noted, last) = (network.clone(), notes.clone(), Last(notes.clone(), "the slow one"));
    network.spawn("impatient", async move {
        let slow = async {
            let _last = last;
            its.sleep(ms(100)).await;
        };
        assert_eq!(its.timeout(ms(50), slow).await, None);
        noted.note(format!("too slow at {:?}", its.now()));
        let quick = async {
            its.sleep(ms(50)).await;
            7
        };
        assert_eq!(its.timeout(ms(100), quick).await, Some(7));
        noted.note(format!("quick at {:?}", its.now()));
    });
    lab.run();
    lab.advance(ms(100));
    assert_eq!(notes.take(), ["the slow one is dropped", "too slow at 1.05s", "quick at 1.1s"]);
    // The abandoned wait has left no timer.
    assert_eq!(lab.tasks.next_timer(), None);
}

#[test]
fn a_cancelled_task_ends_where_it_waits() {
    let (mut lab, network, notes) = lab();
    let (its, last) = (network.clone(), Last(notes.clone(), "it"));
    let task = network.spawn("long", async move {
        let _last = last;
        its.sleep(ms(1000)).await;
    });
    lab.run();
    assert_eq!(lab.shared.tasks()[0].state, TaskState::Waiting);
    task.cancel();
    assert_eq!(notes.take(), Vec::<String>::new(), "it is dropped in the tasks' own turn");
    lab.run();
    assert!(task.is_over());
    assert_eq!(notes.take(), ["it is dropped"]);
    assert_eq!((lab.tasks.next_timer(), counter(&lab, "tasks_cancelled")), (None, 1));
    task.cancel();
    lab.run();
    assert_eq!(counter(&lab, "tasks_cancelled"), 1);
}

#[test]
fn a_stop_drops_tasks_in_the_order_in_which_they_were_started() {
    let (mut lab, network, notes) = lab();
    for name in ["first", "second", "third"] {
        let last = Last(notes.clone(), name);
        network.spawn(name, async move {
            let _last = last;
            std::future::pending::<()>().await;
        });
    }
    lab.run();
    lab.tasks.stop();
    assert_eq!(notes.take(), ["first is dropped", "second is dropped", "third is dropped"]);
    let late = network.spawn("late", async {});
    lab.run();
    assert!(late.is_over());
    assert_eq!((counter(&lab, "tasks_refused"), counter(&lab, "task_polls")), (1, 3));
}

#[test]
fn a_controller_that_is_gone_leaves_nothing_of_its_tasks() {
    let (lab, network, notes) = lab();
    let (its, last) = (network.clone(), Last(notes.clone(), "it"));
    network.spawn("holds the network", async move {
        let _last = last;
        its.sleep(ms(1000)).await;
    });
    drop(lab);
    assert_eq!(notes.take(), ["it is dropped"]);
}

#[test]
fn there_are_only_so_many_tasks() {
    let (mut lab, network, _) = lab();
    let most = 64 * 1024;
    let started = (0..most + 3).filter(|_| {
        let task = network.spawn("one of many", std::future::pending());
        !task.is_over()
    });
    assert_eq!(started.count(), most);
    assert_eq!(counter(&lab, "tasks_refused"), 3);
    lab.tasks.stop();
    assert_eq!(counter(&lab, "tasks_cancelled"), most as u64);
}

#[test]
fn a_task_sees_switches_come_and_go_and_a_snapshot_stays() {
    let (mut lab, network, notes) = lab();
    let (its, noted) = (network.clone(), notes.clone());
    network.spawn("watch", async move {
        let mut seen = its.switches();
        loop {
            seen = its.watch_switches().changed(seen.version()).await;
            noted.note(format!("{:?}", **seen));
        }
    });
    lab.run();
    let s = lab.up(Version::V1_3, 5);
    let before = network.switches();
    lab.up(Version::V1_0, 3);
    lab.hang_up(s);
    lab.run();
    let dpid = |n| format!("{:?}", Dpid(n));
    assert_eq!(
        notes.take(),
        [
            format!("{{{}}}", dpid(5)),
            format!("{{{}, {}}}", dpid(3), dpid(5)),
            format!("{{{}}}", dpid(3))
        ]
    );
    assert_eq!((before.len(), network.switches().len()), (1, 1));
    assert!(before.get(Dpid(5)).is_some() && network.switch(Dpid(5)).is_none());
}

/// Counts packets in a variable.
struct Counting(TVar<u32>);

impl App for Counting {
    type Handler = Counting;

    fn name(&self) -> &'static str {
        "counting"
    }

    fn start(&self, network: &Network) {
        let (its, packets) = (network.clone(), self.0.clone());
        network.spawn("every three packets", async move {
            loop {
                transaction(|tx| {
                    let seen = tx.read(&packets)?;
                    tx.require(seen >= 3)?;
                    tx.write(&packets, seen - 3)
                })
                .await;
                let matching = Match::any().in_port(Port(9));
                let flow = FlowMod::add(&matching).priority(7);
                its.send(Dpid(5), &ToSwitch::FlowMod(flow)).unwrap();
            }
        });
    }

    fn switch_up(&self, network: &Network, _: &SwitchInfo) -> Counting {
        assert_eq!((network.app(), network.cookie()), ("counting", self.cookie()));
        Counting(self.0.clone())
    }
}

impl Counting {
    fn cookie(&self) -> bellrock_api::Cookie {
        bellrock_api::Cookie::of_app("counting")
    }
}

impl Handler for Counting {
    fn packet_in(&mut self, _: &mut Switch<'_>, _: &PacketIn<'_>) -> Result<Verdict> {
        atomically(|tx| tx.modify(&self.0, |packets| packets + 1))?;
        Ok(Verdict::Consume)
    }
}

#[test]
fn a_handler_wakes_a_task_that_waits_in_a_transaction() {
    let packets = TVar::new(0);
    let mut lab =
        Lab::new(1, Default::default(), vec![Box::new(Quiet), Box::new(Counting(packets.clone()))]);
    let s = lab.up(Version::V1_3, 5);
    for sent in 1..=7 {
        lab.packet_in(s, 1, None, &[0]);
        lab.run();
        assert_eq!(packets.load(), sent % 3);
    }
    let received: Vec<_> = lab.switches[s]
        .received
        .iter()
        .map(|bytes| {
            let ToSwitch::FlowMod(flow) = ToSwitch::decode(bytes).unwrap().body else { panic!() };
            (flow.cookie, flow.priority)
        })
        .collect();
    // By cookie and band: it is the second app of the chain.
    let cookie = bellrock_api::Cookie::of_app("counting").with(0);
    let band = bellrock_api::AppId::new(1, "counting").unwrap().band();
    assert_eq!(received, [(cookie, band.lift(7).unwrap()); 2]);
    let tasks = lab.shared.tasks();
    assert_eq!((tasks[0].app, tasks[0].name.as_str()), ("counting", "every three packets"));
}

#[test]
fn wake_ups_from_other_threads_are_not_lost() {
    const WAKES: usize = 20_000;
    let (mut lab, network, _) = lab();
    let (waker, done) = (Arc::new(Mutex::new(None::<Waker>)), Arc::new(AtomicBool::new(false)));
    let (left, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (set, got, count) = (Arc::clone(&waker), Arc::clone(&left), Arc::clone(&seen));
    network.spawn(
        "count",
        poll_fn(move |context| {
            *set.lock().unwrap() = Some(context.waker().clone());
            count.fetch_add(got.swap(0, Ordering::SeqCst), Ordering::SeqCst);
            if count.load(Ordering::SeqCst) == WAKES { Poll::Ready(()) } else { Poll::Pending }
        }),
    );
    lab.tasks.run();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..WAKES {
                left.fetch_add(1, Ordering::SeqCst);
                waker.lock().unwrap().as_ref().unwrap().wake_by_ref();
            }
            done.store(true, Ordering::SeqCst);
        });
        // A woken task is in the queue, or has its turn.
        while !done.load(Ordering::SeqCst) || lab.tasks.is_ready() {
            lab.tasks.run();
        }
    });
    assert_eq!(seen.load(Ordering::SeqCst), WAKES);
    assert_eq!(counter(&lab, "tasks_finished"), 1);
}
