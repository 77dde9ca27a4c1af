//! Hand-over of switches over real sockets, under load: nothing is lost, and all stays in order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_api::openflow::{Bytes, List, PacketOut, ToSwitch};
use bellrock_api::{
    Action, App, Dpid, Error, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo,
    Verdict, Version,
};
use bellrock_engine::Engine;
use peer::{Background, Peer, counter, counters, frame, packet_in, start, start_with, until};

/// Hands switches over from worker to worker, until it is stopped.
fn round_and_round(
    engine: &Engine,
    dpids: impl Iterator<Item = u64> + Clone + Send + 'static,
    workers: usize,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (monitor, stop) = (engine.monitor(), Arc::clone(stop));
    std::thread::spawn(move || {
        for to in (0..workers).cycle() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            for dpid in dpids.clone() {
                assert!(monitor.hand_over(Dpid(dpid), to));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    })
}

#[test]
fn packets_and_messages_keep_their_order_while_their_switches_go_round() {
    const WORKERS: usize = 3;
    const SWITCHES: u64 = 4;
    const PACKETS: u64 = 4000;
    const MESSAGES: u64 = 2000;
    let engine = start(WORKERS, |_| {});
    let peers: Vec<_> = (1..=SWITCHES).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let mover = round_and_round(&engine, 1..=SWITCHES, WORKERS, &stop);
    let players = peers.into_iter().zip(1..).map(|(mut peer, dpid)| {
        let network = engine.network();
        let mut stream = peer.stream.try_clone().unwrap();
        let packets = std::thread::spawn(move || {
            for sequence in 0..PACKETS {
                // Cut anywhere: an incomplete message may have to move with its switch.
                let bytes = packet_in(Version::V1_3, sequence, 64 + (sequence as usize * 37) % 900);
                let (head, tail) = bytes.split_at(sequence as usize % bytes.len());
                stream.write_all(head).unwrap();
                stream.write_all(tail).unwrap();
            }
        });
        let messages = std::thread::spawn(move || {
            for sequence in 0..MESSAGES {
                let (frame, actions) = (frame(PACKETS + sequence, 64), [Action::output(Port(1))]);
                let message = ToSwitch::PacketOut(PacketOut {
                    buffer_id: None,
                    in_port: Port::CONTROLLER,
                    actions: List::of(&actions),
                    data: Bytes(&frame),
                });
                while let Err(error) = network.send(Dpid(dpid), &message) {
                    assert_eq!(error, Error::Full(Dpid(dpid)));
                    std::thread::yield_now();
                }
            }
        });
        std::thread::spawn(move || {
            let (mut packet, mut message) = (0, PACKETS);
            for _ in 0..PACKETS + MESSAGES {
                let sequence = peer.sequence();
                let next = if sequence < PACKETS { &mut packet } else { &mut message };
                assert_eq!(sequence, *next);
                *next += 1;
            }
            packets.join().unwrap();
            messages.join().unwrap();
            peer
        })
    });
    let players: Vec<_> = players.collect();
    let peers: Vec<_> = players.into_iter().map(|player| player.join().unwrap()).collect();
    // In any case, each switch moves some more.
    until("each was handed over often", || {
        counter(&engine, "switches_handed_over") > 100 * SWITCHES
    });
    stop.store(true, Ordering::Relaxed);
    mover.join().unwrap();
    until("all have arrived", || {
        counter(&engine, "switches_handed_over") == counter(&engine, "switches_taken_over")
    });
    assert_eq!(counter(&engine, "mail_undeliverable"), 0);
    assert_eq!(counter(&engine, "switches_down"), 0);
    assert_eq!(engine.monitor().status().connections as u64, SWITCHES);
    drop(peers);
    until("all are gone", || engine.monitor().status().connections == 0);
}

#[test]
fn queued_bytes_move_with_a_switch_that_reads_nothing() {
    let engine = start(2, |settings| settings.worker.limits.stalled = Duration::from_secs(60));
    let mut peer = Peer::connect_narrow(engine.addresses()[0], Version::V1_3, 1).come_up(&engine);
    // More than the kernel takes: the worker queues bytes, and finally stops reading.
    const PACKETS: u64 = 20_000;
    let mut stream = peer.stream.try_clone().unwrap();
    let packets = std::thread::spawn(move || {
        for sequence in 0..PACKETS {
            stream.write_all(&packet_in(Version::V1_3, sequence, 1400)).unwrap();
        }
    });
    until("the switch is paused", || counter(&engine, "pauses") > 0);
    let monitor = engine.monitor();
    for to in [1, 0, 1, 0, 1] {
        assert!(monitor.hand_over(Dpid(1), to));
        until("it is there", || monitor.worker_of(Dpid(1)) == Some(to));
    }
    for sequence in 0..PACKETS {
        assert_eq!(peer.sequence(), sequence);
    }
    packets.join().unwrap();
}

#[test]
fn a_stop_while_switches_go_round_closes_them_all() {
    for _ in 0..20 {
        let engine = start(3, |_| {});
        let peers: Vec<_> = (1..=3).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)).collect();
        let monitor = engine.monitor();
        for to in [1, 2, 0, 1, 2] {
            for dpid in 1..=3 {
                assert!(monitor.hand_over(Dpid(dpid), to));
            }
        }
        let stopping = std::thread::spawn(move || engine.stop());
        for mut peer in peers {
            peer.wait_closed();
        }
        stopping.join().unwrap();
        let sum = |name| -> u64 {
            let of = |counters: Vec<(&'static str, u64)>| {
                counters.iter().find(|(its, _)| *its == name).unwrap().1
            };
            monitor.worker_counters().into_iter().map(of).sum()
        };
        assert_eq!(sum("switches_down"), 3);
        assert_eq!(sum("switches_handed_over"), sum("switches_taken_over"));
    }
}

/// Sleeps at each packet.
struct Slow;

impl App for Slow {
    type Handler = Slow;

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Slow {
        Slow
    }
}

impl Handler for Slow {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        std::thread::sleep(Duration::from_micros(200));
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

#[test]
fn an_overloaded_worker_hands_switches_to_an_idle_one_by_itself() {
    const SWITCHES: u64 = 4;
    for on in [false, true] {
        let engine = start_with(2, vec![Box::new(Slow)], |settings| settings.worker.hand_over = on);
        let peers: Vec<_> =
            (1..=SWITCHES).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)).collect();
        let monitor = engine.monitor();
        for dpid in 1..=SWITCHES {
            assert!(monitor.hand_over(Dpid(dpid), 0));
            until("it is there", || monitor.worker_of(Dpid(dpid)) == Some(0));
        }
        until("it is known there", || counter(&engine, "switches_taken_over") == 2);
        let stop = Arc::new(AtomicBool::new(false));
        let floods: Vec<_> = peers
            .into_iter()
            .map(|peer| {
                let mut stream = peer.stream.try_clone().unwrap();
                let (stop, background) = (Arc::clone(&stop), Background::run(peer));
                let flood = std::thread::spawn(move || {
                    for sequence in 0.. {
                        let bytes = packet_in(Version::V1_3, sequence, 64);
                        if stop.load(Ordering::Relaxed) || stream.write_all(&bytes).is_err() {
                            return;
                        }
                    }
                });
                (flood, background)
            })
            .collect();
        if on {
            until("some have gone", || counters(&engine, "switches_handed_over")[0] > 0);
        } else {
            std::thread::sleep(Duration::from_secs(2));
            assert_eq!(counters(&engine, "switches_handed_over")[0], 0);
        }
        stop.store(true, Ordering::Relaxed);
        engine.stop();
        for (flood, background) in floods {
            flood.join().unwrap();
            background.stop();
        }
    }
}
