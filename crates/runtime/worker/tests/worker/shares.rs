//! While a worker is overloaded, a switch whose bytes wait for too long gets only a share of its
//! packet-ins through, and its ports have fair shares of that.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use crate::lab::{Lab, SwitchId};
use bellrock_api::openflow::{FixedStr, FromSwitch};
use bellrock_api::{
    App, Dpid, Handler, MacAddr, Network, PacketIn, Port, PortDesc, PortReason, PortStatus, Result,
    Switch, SwitchInfo, Verdict, Version,
};
use bellrock_worker::{Drive, WorkerSettings};

/// Records the ingress ports of packets, and changes of ports.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<String>>>);

impl Record {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl App for Record {
    type Handler = Record;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Record {
        self.clone()
    }
}

impl Handler for Record {
    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.note(format!("{}", packet.in_port().0));
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, _: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        self.note(format!("status {}", status.desc.port.0));
        Ok(())
    }
}

/// Packets of the flooding port in a turn, and their length. The default turn has room for all.
const FLOOD: usize = 800;
const BYTES: usize = 64;

fn status(port: u32) -> FromSwitch<'static> {
    let desc = PortDesc::new(Port(port), MacAddr::from_u64(9), FixedStr::new("eth"));
    FromSwitch::PortStatus(PortStatus { reason: PortReason::Add, desc })
}

/// A flood from port 1, between a few packets from ports 2 and 3, and a change of a port behind
/// all.
fn flood(lab: &mut Lab, s: SwitchId) {
    for i in 0..FLOOD {
        lab.packet_in(s, 1, None, &[0; BYTES]);
        if i % 100 == 0 {
            lab.packet_in(s, 2 + i as u32 / 100 % 2, None, &[0; BYTES]);
        }
    }
    lab.send(s, &status(9));
}

/// Gives the switch one turn, of which packet-ins of a share of `bytes` may pass.
fn turn(lab: &mut Lab, s: SwitchId, bytes: usize) {
    let (key, now) = (lab.switches[s].key, lab.now);
    let (worker, wires) = &mut lab.workers[0];
    worker.set_turn_bytes(bytes);
    worker.read_share(key, now, wires);
}

fn count(seen: &[String], port: &str) -> usize {
    seen.iter().filter(|line| *line == port).count()
}

#[test]
fn the_flooding_port_is_cut_and_the_others_and_other_messages_are_not() {
    for version in Version::ALL {
        let record = Record::default();
        let mut lab = Lab::with_app(record.clone());
        let s = lab.up(version, 5);
        record.take();
        flood(&mut lab, s);
        turn(&mut lab, s, 32 * 1024);
        let seen = record.take();
        assert_eq!((count(&seen, "2"), count(&seen, "3")), (4, 4), "{version}: {seen:?}");
        assert_eq!(seen.last().unwrap(), "status 9", "{version}: in the same turn");
        let passed = count(&seen, "1");
        assert!((20..FLOOD / 2).contains(&passed), "{version}: {passed} of {FLOOD}");
        let dropped = (FLOOD - passed) as u64;
        assert_eq!(lab.workers[0].0.counters().packet_ins_shed.get(), dropped);
        assert_eq!(drops_by_port(&lab), [(1, dropped)]);
        assert_eq!(lab.shared.drops_of(Dpid(5)), dropped);
        assert_eq!(lab.shared.switch_counters()[0].1.ignored_packet_ins, dropped);
        // Once it has caught up, everything passes.
        flood(&mut lab, s);
        lab.run();
        assert_eq!(count(&record.take(), "1"), FLOOD, "{version}");
    }
}

#[test]
fn drops_are_an_alarm_that_names_switch_and_port_once_a_minute() {
    let record = Record::default();
    let mut lab = Lab::with_app(record);
    let s = lab.up(Version::V1_3, 5);
    let events = lab.shared.network().events().clone();
    let alarms = |events: &bellrock_api::Events| {
        let names_both = |text: String| text.contains("0000000000000005 floods, most from port 1");
        events.latest(100).iter().filter(|one| names_both(one.event.to_string())).count()
    };
    for _ in 0..3 {
        flood(&mut lab, s);
        turn(&mut lab, s, 4096);
    }
    assert_eq!(alarms(&events), 1);
    lab.now += Duration::from_secs(61);
    flood(&mut lab, s);
    turn(&mut lab, s, 4096);
    assert_eq!(alarms(&events), 2);
}

#[test]
fn ports_share_the_limit_of_a_switch() {
    let record = Record::default();
    let mut settings = WorkerSettings::default();
    settings.limits.packet_ins_per_second = Some(50);
    let mut lab = Lab::new(1, settings, vec![Box::new(record.clone())]);
    let s = lab.up(Version::V1_0, 5);
    record.take();
    flood(&mut lab, s);
    lab.run();
    let seen = record.take();
    assert_eq!((count(&seen, "2"), count(&seen, "3"), count(&seen, "1")), (4, 4, 42), "{seen:?}");
    let dropped = FLOOD as u64 - 42;
    assert_eq!(lab.workers[0].0.counters().packet_ins_over_limit.get(), dropped);
    assert_eq!(drops_by_port(&lab), [(1, dropped)]);
}

/// Ports of the switch with drops, and their number.
fn drops_by_port(lab: &Lab) -> Vec<(u32, u64)> {
    let ports = lab.shared.packet_ins_by_port(Dpid(5)).into_iter();
    let dropped = ports.map(|(port, packets)| (port.0, packets.dropped));
    dropped.filter(|(_, dropped)| *dropped > 0).collect()
}

/// Ports of the switch from which packet-ins came, and their number.
fn packet_ins_by_port(lab: &Lab) -> Vec<(u32, u64)> {
    let ports = lab.shared.packet_ins_by_port(Dpid(5)).into_iter();
    ports.map(|(port, packets)| (port.0, packets.passed)).collect()
}

#[test]
fn packet_ins_are_counted_by_port_over_all_connections_of_a_switch() {
    for version in Version::ALL {
        let mut lab = Lab::with_app(Record::default());
        let s = lab.up(version, 5);
        for _ in 0..3 {
            for port in [7, 8] {
                lab.packet_in(s, port, None, &[0; BYTES]);
                lab.run();
            }
        }
        lab.packet_in(s, 8, None, &[0; BYTES]);
        lab.run();
        assert_eq!(packet_ins_by_port(&lab), [], "{version}: published once a second");
        lab.advance(Duration::from_secs(1));
        assert_eq!(packet_ins_by_port(&lab), [(7, 3), (8, 4)], "{version}");
        lab.packet_in(s, 7, None, &[0; BYTES]);
        flood(&mut lab, s);
        turn(&mut lab, s, 32 * 1024);
        let dropped = drops_by_port(&lab);
        assert!(dropped.len() == 1 && dropped[0].1 > 0, "{version}: {dropped:?}");
        lab.hang_up(s);
        lab.run();
        assert_eq!(drops_by_port(&lab), dropped, "{version}: the connection has ended");
        assert_eq!(lab.shared.drops_of(Dpid(5)), 0, "{version}");
        let before: u64 = packet_ins_by_port(&lab).iter().map(|(_, packets)| packets).sum();
        assert_eq!(before, lab.shared.switch_counters()[0].1.packet_ins, "{version}");
        let s = lab.up(version, 5);
        lab.packet_in(s, 7, None, &[0; BYTES]);
        lab.advance(Duration::from_secs(1));
        let after: u64 = packet_ins_by_port(&lab).iter().map(|(_, packets)| packets).sum();
        assert_eq!((after, drops_by_port(&lab)), (before + 1, dropped), "{version}");
    }
}

#[test]
fn a_batch_of_several_ports_is_counted_as_a_whole() {
    let mut lab = Lab::with_app(Record::default());
    let s = lab.up(Version::V1_3, 5);
    for _ in 0..200 {
        (0..30).for_each(|i| lab.packet_in(s, 1 + i % 3, None, &[0; BYTES]));
        lab.run();
    }
    lab.advance(Duration::from_secs(1));
    let ports = packet_ins_by_port(&lab);
    assert_eq!(ports.iter().map(|(_, packets)| packets).sum::<u64>(), 6000, "{ports:?}");
    // One packet of each batch is picked without chance, so the shares are always these.
    assert!(ports.iter().all(|(_, packets)| (1500..2500).contains(packets)), "{ports:?}");
}
