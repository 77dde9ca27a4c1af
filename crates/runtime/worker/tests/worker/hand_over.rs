//! Hand-over of switches between workers: when, which ones, and that nothing is lost.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::lab::{Lab, SwitchId};
use bellrock_api::openflow::{Bytes, List, PacketOut, ToSwitch};
use bellrock_api::{
    Action, App, Dpid, Error, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo,
    Verdict, Version,
};
use bellrock_session::SwitchDescription;
use bellrock_worker::{Drive, Limits, WorkerQuery, WorkerSettings};

/// Numbers its answers, to reveal a new handler, and counts packets.
#[derive(Default)]
struct Numbering(u32);

impl App for Numbering {
    type Handler = Numbering;

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Numbering {
        Numbering::default()
    }
}

impl Handler for Numbering {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.0 += 1;
        switch.packet_out(packet, Port(self.0))?;
        Ok(Verdict::Consume)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("packets", self.0.into());
    }
}

fn lab(workers: usize, change: impl FnOnce(&mut WorkerSettings)) -> Lab {
    let mut settings = WorkerSettings::default();
    change(&mut settings);
    Lab::new(workers, settings, vec![Box::new(Numbering::default())])
}

fn up(lab: &mut Lab, worker: usize, dpid: u64) -> SwitchId {
    let id = lab.connect(worker, Version::V1_3, SwitchDescription::new(dpid));
    lab.run();
    lab.switches[id].received.clear();
    id
}

/// Sends a message to a switch as an app does. Its mark is the length of the frame.
fn post(lab: &Lab, dpid: u64, len: usize) -> std::result::Result<(), Error> {
    let (frame, actions) = (vec![0; len], [Action::output(Port(9))]);
    let packet = PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&frame),
    };
    lab.shared.network().send(Dpid(dpid), &ToSwitch::PacketOut(packet))
}

/// Lengths of the received frames, in order.
fn frames(lab: &mut Lab, id: SwitchId) -> Vec<usize> {
    let received = std::mem::take(&mut lab.switches[id].received);
    let len = |message: Vec<u8>| match ToSwitch::decode(&message).unwrap().body {
        ToSwitch::PacketOut(packet) => Some(packet.data.len()),
        _ => None,
    };
    received.into_iter().filter_map(len).collect()
}

/// Each switch sends this number of packets of 100 bytes in a window.
fn bring(lab: &mut Lab, packets: &[(SwitchId, usize)]) {
    for (id, count) in packets {
        for _ in 0..*count {
            lab.packet_in(*id, 1, None, &[0; 100]);
        }
    }
    lab.run();
}

const BUSY: u32 = 1000;

#[test]
fn a_worker_that_stays_overloaded_hands_half_of_its_load_to_the_idle_one() {
    let mut lab = lab(3, |_| {});
    let ids: Vec<_> = (1..=8).map(|dpid| up(&mut lab, 0, dpid)).collect();
    let load: Vec<_> = ids.iter().map(|id| (*id, 2)).collect();
    for _ in 0..5 {
        bring(&mut lab, &load);
        lab.window(&[BUSY, 450, 100]);
        assert_eq!(lab.counters("switches_handed_over"), [0, 0, 0], "a burst is no overload");
    }
    bring(&mut lab, &load);
    lab.window(&[BUSY, 450, 100]);
    // The limit is 450 thousandths, half of the difference; each switch causes 125.
    assert_eq!(lab.counters("switches_handed_over"), [3, 0, 0]);
    assert_eq!(lab.counters("switches_taken_over"), [0, 0, 3]);
    assert_eq!((lab.workers[0].0.connections(), lab.workers[2].0.connections()), (5, 3));
    // Each handler keeps its state: it has answered twelve packets.
    for id in ids {
        lab.switches[id].received.clear();
        bring(&mut lab, &[(id, 1)]);
        assert_eq!(
            lab.switches[id].take(),
            ["packet_out buffer=None data=100 Output { port: Port(13), max_len: 0 }"]
        );
    }
}

#[test]
fn a_worker_that_is_overloaded_now_and_then_keeps_its_switches() {
    let mut lab = lab(2, |_| {});
    let ids: Vec<_> = (1..=4).map(|dpid| (up(&mut lab, 0, dpid), 1)).collect();
    for window in 0..100 {
        bring(&mut lab, &ids);
        lab.window(&[if window % 5 == 4 { 800 } else { BUSY }, 0]);
    }
    assert_eq!(lab.counters("switches_handed_over"), [0, 0]);
}

#[test]
fn nobody_hands_over_who_is_told_not_to_or_finds_nobody_idle() {
    for (on, other) in [(false, 0), (true, 600)] {
        let mut lab = lab(2, |settings| settings.hand_over = on);
        let ids: Vec<_> = (1..=4).map(|dpid| (up(&mut lab, 0, dpid), 1)).collect();
        for _ in 0..20 {
            bring(&mut lab, &ids);
            lab.window(&[BUSY, other]);
        }
        assert_eq!(lab.counters("switches_handed_over"), [0, 0]);
    }
}

#[test]
fn a_worker_with_as_many_switches_as_it_may_have_gets_none() {
    let limits = Limits { switches_per_worker: 3, ..Limits::default() };
    let mut lab = lab(2, |settings| settings.limits = limits);
    let mut ids: Vec<_> = (1..=8).map(|dpid| (up(&mut lab, 0, dpid), 1)).collect();
    ids.push((up(&mut lab, 1, 9), 0));
    ids.push((up(&mut lab, 1, 10), 0));
    for _ in 0..100 {
        bring(&mut lab, &ids);
        lab.window(&[BUSY, 0]);
    }
    assert_eq!(lab.counters("switches_handed_over"), [1, 0]);
}

#[test]
fn a_switch_that_was_handed_over_stays_for_a_while_even_if_the_load_turns_round() {
    let mut lab = lab(2, |_| {});
    let ids: Vec<_> = (1..=4).map(|dpid| (up(&mut lab, 0, dpid), 1)).collect();
    for _ in 0..6 {
        bring(&mut lab, &ids);
        lab.window(&[BUSY, 0]);
    }
    assert_eq!(lab.counters("switches_handed_over"), [2, 0]);
    for _ in 0..50 {
        bring(&mut lab, &ids);
        lab.window(&[0, BUSY]);
    }
    assert_eq!(lab.counters("switches_handed_over"), [2, 0]);
    lab.advance(Duration::from_secs(10));
    for _ in 0..6 {
        bring(&mut lab, &ids);
        lab.window(&[0, BUSY]);
    }
    assert_eq!(lab.counters("switches_handed_over"), [2, 1]);
}

#[test]
fn mail_to_a_switch_that_is_handed_over_arrives_in_the_order_in_which_it_was_sent() {
    let mut lab = lab(3, |_| {});
    let id = up(&mut lab, 0, 1);
    let mut sent = 0;
    for round in 0..300 {
        for _ in 0..round % 4 {
            sent += 1;
            post(&lab, 1, sent).unwrap();
        }
        assert!(lab.shared.hand_over(Dpid(1), round % 3));
        for _ in 0..round % 3 {
            sent += 1;
            post(&lab, 1, sent).unwrap();
        }
        // One worker processes its mail; the others have not yet.
        let (worker, wires) = &mut lab.workers[(round * 7) % 3];
        worker.mail(lab.now, wires);
        if round % 5 == 0 {
            lab.run();
        }
    }
    lab.run();
    let came = frames(&mut lab, id);
    assert!(came.iter().copied().eq(1..=sent), "{came:?} of {sent}");
    assert_eq!(lab.counters("mail_undeliverable"), [0, 0, 0]);
    assert!(lab.counters("switches_handed_over").iter().sum::<u64>() > 60);
}

#[test]
fn an_unfinished_message_goes_with_the_switch() {
    let mut lab = lab(2, |_| {});
    let id = up(&mut lab, 0, 1);
    let packet = crate::lab::packet_in(1, None, &[0; 200], &Version::V1_3);
    let mut out = bellrock_api::openflow::Out::with_capacity(1 << 12);
    bellrock_api::openflow::FromSwitch::PacketIn(packet)
        .encode(Version::V1_3, 7, &mut out)
        .unwrap();
    for (turn, part) in out.as_slice().chunks(11).enumerate() {
        lab.send_bytes(id, part);
        lab.run();
        assert!(lab.shared.hand_over(Dpid(1), (turn + 1) % 2));
        lab.run();
    }
    assert_eq!(frames(&mut lab, id), [200]);
}

#[test]
fn timers_go_with_the_switch() {
    let mut lab = lab(2, |_| {});
    let id = up(&mut lab, 0, 1);
    assert!(lab.shared.hand_over(Dpid(1), 1));
    lab.run();
    assert_eq!(lab.switches[id].worker, 1);
    // It answers echoes and is kept. When silent, its present worker closes it.
    lab.advance(Duration::from_secs(60));
    assert!(!lab.is_closed(id));
    lab.switches[id].silent = true;
    lab.advance(Duration::from_secs(60));
    assert!(lab.is_closed(id));
    assert_eq!(lab.counters("dead_closes"), [0, 1]);
    assert_eq!(post(&lab, 1, 1), Err(Error::UnknownSwitch(Dpid(1))));
}

#[test]
fn a_claim_to_the_datapath_id_of_a_switch_finds_it_wherever_it_is() {
    let mut lab = lab(3, |_| {});
    let first = up(&mut lab, 0, 1);
    for round in 0..9 {
        let claimant = lab.connect(2, Version::V1_3, SwitchDescription::new(1));
        // The question and the hand-over meet at varying points.
        for step in 0..round {
            let (worker, wires) = &mut lab.workers[step % 3];
            worker.mail(lab.now, wires);
        }
        assert!(lab.shared.hand_over(Dpid(1), (round + 1) % 2));
        lab.run();
        assert!(lab.is_closed(claimant), "the first is alive");
        assert!(!lab.is_closed(first));
    }
    assert_eq!(lab.counters("duplicates_refused").iter().sum::<u64>(), 9);
    // A silent one is replaced.
    lab.switches[first].silent = true;
    let claimant = lab.connect(2, Version::V1_3, SwitchDescription::new(1));
    lab.run();
    assert!(lab.shared.hand_over(Dpid(1), 2));
    lab.advance(Duration::from_secs(5));
    assert!(lab.is_closed(first) && !lab.is_closed(claimant));
}

#[test]
fn a_switch_on_its_way_is_counted_once() {
    let mut lab = lab(2, |_| {});
    let id = up(&mut lab, 0, 1);
    bring(&mut lab, &[(id, 5)]);
    for round in 0..20 {
        assert!(lab.shared.hand_over(Dpid(1), (round + 1) % 2));
        let (reply, answers) = sync_channel(2);
        lab.shared.query(|| WorkerQuery::AppCounters(reply.clone()));
        assert!(lab.shared.hand_over(Dpid(1), round % 2));
        let (worker, wires) = &mut lab.workers[(round / 2) % 2];
        worker.mail(lab.now, wires);
        lab.run();
        let counted: Vec<_> = answers.try_iter().flatten().collect();
        assert_eq!(counted, [("Numbering", "packets", 5)]);
    }
}

#[test]
fn a_worker_that_has_stopped_is_handed_nothing() {
    let mut lab = lab(2, |_| {});
    let id = up(&mut lab, 0, 1);
    {
        let (worker, wires) = &mut lab.workers[1];
        worker.stop(lab.now, wires);
    }
    assert!(lab.shared.hand_over(Dpid(1), 1));
    post(&lab, 1, 1).unwrap();
    lab.run();
    assert_eq!(lab.counters("switches_handed_over"), [0, 0]);
    assert_eq!(frames(&mut lab, id), [1]);
    // A switch that was just handed over is closed by the stop, after its mail is sent.
    let mut lab = self::lab(2, |_| {});
    let id = up(&mut lab, 0, 1);
    assert!(lab.shared.hand_over(Dpid(1), 1));
    let (now, (worker, wires)) = (lab.now, &mut lab.workers[0]);
    worker.mail(now, wires);
    post(&lab, 1, 1).unwrap();
    let (worker, wires) = &mut lab.workers[1];
    worker.stop(now, wires);
    assert_eq!(worker.connections(), 0);
    lab.run();
    assert_eq!(frames(&mut lab, id), [1]);
    assert!(lab.is_closed(id));
    assert_eq!(lab.counters("switches_down"), [0, 1]);
}
