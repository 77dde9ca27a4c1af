//! Queries of a lab for the tests of discovery and host tracking.
#![allow(unreachable_pub, reason = "a test program has no interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails says so by panicking")]

use std::time::Duration;

use bellrock_api::{
    App, Dpid, Event, Handler, Hosts, MacAddr, Needs, Network, Port, Snapshot, SwitchInfo,
    SwitchPort, Topology, Version,
};
use bellrock_emulator::lab::{Lab, LabBuilder};
use bellrock_emulator::topology::{self, Node};

pub const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// An app that needs services and does nothing.
pub struct Reads(pub Needs);

pub struct Nothing;

impl Handler for Nothing {}

impl App for Reads {
    type Handler = Nothing;

    fn name(&self) -> &'static str {
        "reads"
    }

    fn needs(&self) -> Needs {
        self.0
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Nothing {
        Nothing
    }
}

/// Three switches in a ring with two hosts each. Links are at ports 1 and 2, hosts at 3 and 4.
pub fn triangle() -> topology::TopologySpec {
    let text = "
        switch s1\nswitch s2\nswitch s3
        host h1\nhost h2\nhost h3\nhost h4\nhost h5\nhost h6
        link s1:1 s2:2\nlink s2:1 s3:2\nlink s3:1 s1:2
        link s1:3 h1\nlink s1:4 h2\nlink s2:3 h3\nlink s2:4 h4\nlink s3:3 h5\nlink s3:4 h6";
    topology::TopologySpec::parse(text).unwrap()
}

pub fn builder(version: Version) -> LabBuilder {
    Lab::seeded(7).topology(triangle()).version(version)
}

pub fn at(dpid: u64, port: u32) -> SwitchPort {
    SwitchPort::new(Dpid(dpid), Port(port))
}

pub fn network(lab: &Lab) -> Network {
    lab.controller().unwrap()
}

pub fn links(lab: &Lab) -> Snapshot<Topology> {
    network(lab).topology().load()
}

pub fn hosts(lab: &Lab) -> Snapshot<Hosts> {
    network(lab).hosts().load()
}

/// Returns where the controller has located a host.
pub fn place(lab: &Lab, host: &str) -> Option<SwitchPort> {
    hosts(lab).get(mac(lab, host), None).map(|host| host.at)
}

pub fn mac(lab: &Lab, host: &str) -> MacAddr {
    let Some(Node::Host(id)) = lab.topology().node(host) else { panic!("no host {host}") };
    lab.network().host(id).mac()
}

/// Returns the names of the events so far.
pub fn events(lab: &Lab) -> Vec<&'static str> {
    all_events(lab).iter().map(Event::name).collect()
}

pub fn all_events(lab: &Lab) -> Vec<Event> {
    network(lab).events().latest(usize::MAX).into_iter().map(|it| it.event).collect()
}

/// Runs until the topology is settled.
pub fn settle(lab: &mut Lab) {
    let settled = |lab: &Lab| links(lab).settled;
    assert!(lab.run_until(Duration::from_secs(20), settled));
}

/// Returns the last announcement that a host captured.
pub fn announcement(lab: &mut Lab, host: &str) -> Vec<u8> {
    lab.capture(host);
    lab.run_for(Duration::from_secs(6));
    let frames = lab.capture(host);
    frames.into_iter().rfind(|frame| frame[12..14] == [0x88, 0xcc]).unwrap()
}

/// Two hosts relay to each other the frames that they receive.
pub fn relay(lab: &mut Lab, a: &str, b: &str, took: Duration, time: Duration) {
    let until = lab.now() + time;
    lab.capture(a);
    lab.capture(b);
    while lab.now() < until {
        lab.run_for(took);
        let (from_a, from_b) = (lab.capture(a), lab.capture(b));
        from_a.iter().for_each(|frame| lab.send_frame(b, frame));
        from_b.iter().for_each(|frame| lab.send_frame(a, frame));
    }
}
