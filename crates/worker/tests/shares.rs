//! While a worker is overloaded, a switch whose bytes wait for too long gets only a share of its
//! packet-ins through, and its ports have fair shares of that.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod lab;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bellrock_api::openflow::{FixedStr, FromSwitch};
use bellrock_api::{
    App, Dpid, Handler, MacAddr, Network, PacketIn, Port, PortDesc, PortReason, PortStatus, Result,
    Switch, SwitchInfo, Verdict, Version,
};
use bellrock_worker::WorkerSettings;
use lab::{Lab, SwitchId};

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

/// A flood from port 1, between a few packets from ports 2 and 3, and a change of a port behind all.
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
        let of_ports = lab.shared.drops_by_port(Dpid(5));
        assert_eq!(of_ports.into_iter().collect::<Vec<_>>(), [(Port(1), dropped)]);
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
    assert_eq!(lab.shared.drops_by_port(Dpid(5)).get(&Port(1)), Some(&dropped));
}
