//! All code of apps runs behind a guard: wherever it panics, the worker and the other apps go on.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::lab::{Lab, Notes, quietly};
use bellrock_api::openflow::{FlowStatsRequest, RequestBody};
use bellrock_api::runtime::DynApp;
use bellrock_api::{
    App, Dpid, EarlierFlows, Handler, HostEntry, MacAddr, Network, Port, Switch, SwitchInfo,
    Verdict, Version,
};
use bellrock_worker::{AppCounter, MAX_PANICS, SeenHost, WorkerQuery, WorkerSettings};

/// The place where an app panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Nowhere,
    Hosts,
    Counters,
    Drop,
    /// With a payload that panics too when it is dropped.
    DropTwice,
    AppDrop,
    AppHosts,
    /// In methods that describe the app, after the start.
    Itself,
}

struct Fragile {
    name: &'static str,
    at: At,
    started: AtomicBool,
    seen: Notes,
}

struct FragileHandler {
    name: &'static str,
    at: At,
    seen: Notes,
}

/// Panics again when a panic's payload is dropped.
struct Again;
impl Drop for Again {
    fn drop(&mut self) {
        panic!("on purpose, once more");
    }
}

impl Fragile {
    fn new(name: &'static str, at: At) -> Self {
        Fragile { name, at, started: AtomicBool::new(false), seen: Notes::default() }
    }

    fn is_asked(&self) {
        assert!(self.at != At::Itself || !self.started.load(Ordering::Relaxed), "on purpose");
    }
}

impl App for Fragile {
    type Handler = FragileHandler;
    fn name(&self) -> &'static str {
        self.is_asked();
        self.name
    }
    fn wants_packet_ins(&self) -> bool {
        self.is_asked();
        true
    }
    fn earlier_flows(&self) -> EarlierFlows {
        self.is_asked();
        EarlierFlows::Remove
    }
    fn start(&self, _: &Network) {
        self.started.store(true, Ordering::Relaxed);
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> FragileHandler {
        FragileHandler { name: self.name, at: self.at, seen: self.seen.clone() }
    }
    fn hosts(&self, _: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
        let _ = report(Dpid(5), host(9));
        assert_ne!(self.at, At::AppHosts, "on purpose");
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert_ne!(self.at, At::AppDrop, "on purpose");
        self.seen.note(format!("{} is dropped", self.name));
    }
}

impl Handler for FragileHandler {
    fn packet_in(
        &mut self,
        _: &mut Switch<'_>,
        _: &bellrock_api::PacketIn<'_>,
    ) -> bellrock_api::Result<Verdict> {
        self.seen.note(format!("{} sees a packet", self.name));
        Ok(Verdict::Pass)
    }
    fn hosts(&self, report: &mut dyn FnMut(HostEntry) -> ControlFlow<()>) {
        let _ = report(host(1));
        assert_ne!(self.at, At::Hosts, "on purpose");
    }
    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("things", 1);
        assert_ne!(self.at, At::Counters, "on purpose");
    }
}

impl Drop for FragileHandler {
    fn drop(&mut self) {
        match self.at {
            At::Drop => panic!("on purpose"),
            At::DropTwice => std::panic::panic_any(Again),
            _ => self.seen.note(format!("a handler of {} is dropped", self.name)),
        }
    }
}

fn host(last: u8) -> HostEntry {
    let mac = MacAddr([2, 0, 0, 0, 0, last]);
    HostEntry { mac, vlan: None, port: Port(1), age: Duration::ZERO, flapping: false }
}

/// A fragile app before a sound one, and what the sound one has seen.
fn lab(at: At) -> (Lab, Notes) {
    let (fragile, sound) = (Fragile::new("fragile", at), Fragile::new("sound", At::Nowhere));
    let seen = sound.seen.clone();
    let apps: Vec<Box<dyn DynApp>> = vec![Box::new(fragile), Box::new(sound)];
    (Lab::new(1, WorkerSettings::default(), apps), seen)
}

fn hosts(lab: &mut Lab) -> Vec<SeenHost> {
    let (reply, answer) = sync_channel(1);
    lab.shared.query(|| WorkerQuery::Hosts(100, reply.clone()));
    quietly(|| lab.run());
    answer.try_recv().unwrap()
}

fn counters(lab: &mut Lab) -> Vec<AppCounter> {
    let (reply, answer) = sync_channel(1);
    lab.shared.query(|| WorkerQuery::AppCounters(reply.clone()));
    quietly(|| lab.run());
    answer.try_recv().unwrap()
}

/// Checks the number of panics of the fragile app. The sound one gets packets, and has hosts and
/// counters.
fn goes_on(lab: &mut Lab, seen: &Notes, panics: u64) {
    assert_eq!(lab.shared.app_states()[0].panics, panics);
    assert_eq!(lab.counters("handler_panics"), [panics]);
    let switch = quietly(|| lab.up(Version::V1_3, 77));
    seen.take();
    lab.packet_in(switch, 1, None, &[0; 60]);
    quietly(|| lab.run());
    assert_eq!(seen.take(), ["sound sees a packet"]);
    let is_sound = |app: &'static str| app == "sound";
    assert!(hosts(lab).iter().any(|(dpid, app, _)| dpid.0 == 77 && is_sound(app)));
    assert!(counters(lab).iter().any(|(app, name, _)| is_sound(app) && *name == "things"));
}

#[test]
fn nothing_is_reported_of_a_call_that_panics() {
    let (mut lab, seen) = lab(At::Hosts);
    lab.up(Version::V1_3, 5);
    assert_eq!(hosts(&mut lab), [(Dpid(5), "sound", host(1))]);
    goes_on(&mut lab, &seen, 1);
    let (mut lab, seen) = self::lab(At::Counters);
    lab.up(Version::V1_3, 5);
    assert_eq!(counters(&mut lab), [("sound", "things", 1)]);
    goes_on(&mut lab, &seen, 1);
}

#[test]
fn an_app_that_panics_whenever_it_is_asked_for_hosts_is_disabled_and_not_asked_again() {
    let (mut lab, seen) = lab(At::Hosts);
    lab.up(Version::V1_3, 5);
    for _ in 0..2 * MAX_PANICS {
        hosts(&mut lab);
    }
    assert!(lab.shared.app_states()[0].disabled && !lab.shared.app_states()[1].disabled);
    goes_on(&mut lab, &seen, MAX_PANICS as u64);
    assert!(
        counters(&mut lab).contains(&("fragile", "things", 1)),
        "it can still say what it counted"
    );
}

#[test]
fn a_handler_that_panics_when_it_is_dropped_takes_nobody_along() {
    for at in [At::Drop, At::DropTwice] {
        let (mut lab, seen) = lab(at);
        let switch = lab.up(Version::V1_3, 5);
        lab.hang_up(switch);
        quietly(|| lab.run());
        assert_eq!(seen.take(), ["a handler of sound is dropped"], "{at:?}");
        assert_eq!(lab.counters("switches_down"), [1]);
        goes_on(&mut lab, &seen, 1);
        // A worker that was not stopped.
        quietly(|| drop(lab));
        assert_eq!(seen.take(), ["a handler of sound is dropped", "sound is dropped"], "{at:?}");
    }
}

#[test]
fn apps_and_what_they_share_may_panic_when_they_are_dropped() {
    #[derive(Default)]
    struct Shared;
    impl Drop for Shared {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let (lab, seen) = lab(At::AppDrop);
    let _ = lab.shared.network().extension::<Shared>();
    quietly(|| drop(lab));
    assert_eq!(seen.take(), ["sound is dropped"]);
}

#[test]
fn an_app_is_asked_to_describe_itself_at_the_start_only() {
    let (mut lab, seen) = lab(At::Itself);
    for version in Version::ALL {
        let switch = lab.up(version, 5);
        lab.hang_up(switch);
        lab.run();
    }
    assert_eq!(lab.shared.app_states()[0].name, "fragile");
    goes_on(&mut lab, &seen, 0);
    assert_eq!(lab.shared.hosts_of_apps(1).len(), 1);
}

#[test]
fn hosts_of_apps_are_asked_for_beside_the_workers_up_to_a_bound() {
    let (lab, _) = lab(At::AppHosts);
    assert_eq!(quietly(|| lab.shared.hosts_of_apps(10)), [(Dpid(5), "sound", host(9))]);
    let (lab, _) = self::lab(At::Nowhere);
    let both = [(Dpid(5), "fragile", host(9)), (Dpid(5), "sound", host(9))];
    assert_eq!(lab.shared.hosts_of_apps(10), both);
    assert_eq!(lab.shared.hosts_of_apps(1), both[..1]);
}

#[test]
fn a_waker_of_an_app_may_panic() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("on purpose");
        }
    }
    let (mut lab, seen) = lab(At::Nowhere);
    let network = lab.shared.network();
    let waker = Waker::from(Arc::new(Bad));
    let mut context = Context::from_waker(&waker);
    let switches = network.watch_switches();
    let mut sleep = pin!(network.sleep(Duration::from_millis(100)));
    let mut changed = pin!(switches.changed(switches.load().version()));
    assert!(sleep.as_mut().poll(&mut context).is_pending());
    assert!(changed.as_mut().poll(&mut context).is_pending());
    quietly(|| lab.up(Version::V1_3, 5));
    let any = bellrock_api::Match::any();
    let flows = RequestBody::Flow(FlowStatsRequest::all(&any));
    let mut asked = pin!(network.request(Dpid(5), flows));
    assert!(asked.as_mut().poll(&mut context).is_pending());
    quietly(|| lab.advance(Duration::from_millis(200)));
    let mut quiet = Context::from_waker(Waker::noop());
    assert!(sleep.poll(&mut quiet).is_ready() && changed.poll(&mut quiet).is_ready());
    assert!(asked.poll(&mut quiet).is_ready());
    goes_on(&mut lab, &seen, 0);
}
