//! Several apps at once: each has its own priorities and flows, and an app that fails repeatedly is
//! disabled without harm to the others.

use std::time::Duration;

use crate::lab::{Lab, Notes, SwitchId, flow_removed, quietly};
use bellrock_api::openflow::{
    FlowCommand, FlowRemoved, FlowRemovedReason, FlowStatsRequest, FromSwitch, RequestBody,
};
use bellrock_api::runtime::DynApp;
use bellrock_api::{
    App, Cookie, Dpid, EarlierFlows, Error, Event, EventRecord, FlowMod, Handler, Match, Network,
    PacketIn, Port, PriorityBand, ReplyBody, Result, Switch, SwitchInfo, ToSwitch, Verdict,
    Version, Xid,
};
use bellrock_worker::{MAX_PANICS, PANIC_WINDOW, WorkerSettings};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Actions of a handler, by the first byte of a packet.
const INSTALL: u8 = 0;
const REMOVE: u8 = 1;
const ASK: u8 = 2;
const PANIC: u8 = 3;
const TOO_HIGH: u8 = 4;

/// An app that follows packets with its number in the second byte.
#[derive(Clone)]
struct Told {
    name: &'static str,
    number: u8,
    left: EarlierFlows,
    seen: Notes,
}

impl Told {
    fn new(name: &'static str, number: u8) -> Self {
        Told { name, number, left: EarlierFlows::Remove, seen: Notes::default() }
    }
}

impl App for Told {
    type Handler = Told;
    fn name(&self) -> &'static str {
        self.name
    }
    fn earlier_flows(&self) -> EarlierFlows {
        self.left
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Told {
        self.clone()
    }
}

impl Handler for Told {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let [what, whose] = packet.data() else { panic!("two bytes") };
        if *whose != self.number {
            return Ok(Verdict::Pass);
        }
        let any = Match::any().in_port(Port(1));
        match *what {
            INSTALL => drop(switch.install(&FlowMod::add(&any).priority(100))?),
            REMOVE => drop(switch.remove(&any, Port::ANY)?),
            ASK => {
                let flows = FlowStatsRequest::all(&any);
                switch.request(RequestBody::Flow(flows))?;
            }
            PANIC => panic!("on purpose"),
            TOO_HIGH => {
                let refused = switch.install(&FlowMod::add(&any).priority(4096)).unwrap_err();
                assert_eq!(refused, Error::Priority { priority: 4096 });
                self.seen.note(refused.to_string());
            }
            _ => unreachable!(),
        }
        Ok(Verdict::Consume)
    }

    fn flow_removed(&mut self, _: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        self.seen.note(format!("removed {:#x}", flow.priority));
        Ok(())
    }

    fn reply(&mut self, _: &mut Switch<'_>, _: Xid, reply: &ReplyBody<'_>) -> Result<()> {
        let ReplyBody::Flow(flows) = reply else { panic!("flows were asked for") };
        let priorities: Vec<_> = flows.iter().map(|flow| format!("{:#x}", flow.priority)).collect();
        self.seen.note(priorities.join(" "));
        Ok(())
    }

    fn unanswered(&mut self, _: &mut Switch<'_>, _: Xid) -> Result<()> {
        self.seen.note("unanswered");
        Ok(())
    }
}

fn chain(apps: &[Told]) -> Lab {
    let apps = apps.iter().map(|app| Box::new(app.clone()) as Box<dyn DynApp>).collect();
    Lab::new(1, WorkerSettings::default(), apps)
}

fn tell(lab: &mut Lab, switch: SwitchId, what: u8, whose: u8) {
    lab.packet_in(switch, 1, None, &[what, whose]);
    lab.run();
}

#[test]
fn the_first_app_s_flows_are_above_those_of_the_second_whoever_came_first() {
    for version in VERSIONS {
        let (first, second) = (Told::new("first", 1), Told::new("second", 2));
        let mut lab = chain(&[first, second]);
        let s = lab.up(version, 5);
        tell(&mut lab, s, INSTALL, 2);
        tell(&mut lab, s, INSTALL, 1);
        let [(_, below, low), (_, above, high)] = lab.flow_mods(s)[..] else {
            panic!("two flows");
        };
        assert!(Cookie::of_app("second").owns(below) && Cookie::of_app("first").owns(above));
        assert_eq!((high, low), (0xf064, 0xe064));
    }
}

#[test]
fn a_priority_beyond_the_band_is_an_error_that_says_what_is_right() {
    let app = Told::new("app", 1);
    let mut lab = chain(std::slice::from_ref(&app));
    let s = lab.up(Version::V1_3, 5);
    tell(&mut lab, s, TOO_HIGH, 1);
    let seen = app.seen.take();
    assert!(seen[0].contains("from 0 to 4095, not 4096"), "{seen:?}");
}

#[test]
fn an_app_is_told_the_priorities_of_its_own_flows_as_it_gave_them() {
    for version in VERSIONS {
        let (first, second) = (Told::new("first", 1), Told::new("second", 2));
        let mut lab = chain(&[first.clone(), second.clone()]);
        let s = lab.up(version, 5);
        let cookies = [Cookie::of_app("first"), Cookie::of_app("second")].map(|c| c.with(0));
        let flows = [(cookies[0], 0xf064, Port(2)), (cookies[1], 0xe007, Port(2)), (9, 9, Port(2))];
        lab.switches[s].flows = Some(crate::lab::told(version, &flows));
        tell(&mut lab, s, ASK, 1);
        tell(&mut lab, s, ASK, 2);
        assert_eq!(first.seen.take(), ["0x64 0xe007 0x9"]);
        assert_eq!(second.seen.take(), ["0xf064 0x7 0x9"]);
        let gone = flow_removed(cookies[1], 0xe007, FlowRemovedReason::IdleTimeout);
        lab.send(s, &FromSwitch::FlowRemoved(gone));
        lab.run();
        assert_eq!(
            (first.seen.take(), second.seen.take()),
            (vec!["removed 0xe007".into()], vec!["removed 0x7".into()])
        );
    }
}

#[test]
fn in_1_0_an_app_s_flows_are_removed_one_by_one_and_others_stay() {
    let (first, second) = (Told::new("first", 1), Told::new("second", 2));
    let mut lab = chain(&[first, second]);
    let s = lab.up(Version::V1_0, 5);
    let ours = Cookie::of_app("second");
    let flows = [
        (Cookie::of_app("first").with(0), 0xf064, Port(2)),
        (ours.with(7), 0xe001, Port(2)),
        (0xdead, 0xe001, Port(2)),
        (ours.with(8), 0x0005, Port(3)),
    ];
    lab.switches[s].flows = Some(crate::lab::told(Version::V1_0, &flows));
    tell(&mut lab, s, REMOVE, 2);
    let removed = lab.flow_mods(s);
    let strict = |(command, _, priority): &(FlowCommand, u64, u16)| (*command, *priority);
    let expected = [(FlowCommand::DeleteStrict, 0xe001), (FlowCommand::DeleteStrict, 0x0005)];
    assert!(removed.iter().map(strict).eq(expected), "{removed:x?}");
}

#[test]
fn in_1_0_an_app_hears_when_its_flows_could_not_be_removed() {
    let app = Told::new("app", 1);
    let mut lab = chain(std::slice::from_ref(&app));
    let s = lab.up(Version::V1_0, 5);
    lab.switches[s].flows = None;
    // More than the maximum number of unanswered requests of a handler.
    for _ in 0..100 {
        tell(&mut lab, s, REMOVE, 1);
    }
    assert_eq!(lab.counters("handler_errors"), [0]);
    for _ in 0..14 {
        lab.advance(Duration::from_secs(5));
        // Shows that it is alive.
        tell(&mut lab, s, INSTALL, 1);
    }
    assert_eq!(app.seen.take().iter().filter(|text| *text == "unanswered").count(), 100);
    // The operator is notified once a minute.
    assert_eq!(lab.counters("removals_unanswered"), [100]);
    let events = lab.shared.network().events().latest(usize::MAX);
    let reported = |it: &&EventRecord| matches!(it.event, Event::RemovalUnanswered { .. });
    let reported: Vec<_> = events.iter().filter(reported).collect();
    assert!(matches!(
        reported[..],
        [EventRecord { event: Event::RemovalUnanswered { app: "app", dpid: Dpid(5) }, .. }]
    ));
}

#[test]
fn in_1_3_an_app_s_removal_names_its_cookies() {
    let (first, second) = (Told::new("first", 1), Told::new("second", 2));
    let mut lab = chain(&[first, second]);
    let s = lab.up(Version::V1_3, 5);
    tell(&mut lab, s, REMOVE, 1);
    let received = std::mem::take(&mut lab.switches[s].received);
    let ToSwitch::FlowMod(flow) = ToSwitch::decode(&received[0]).unwrap().body else { panic!() };
    assert_eq!((flow.command, flow.cookie_mask), (FlowCommand::Delete, Cookie::MASK));
    assert!(Cookie::of_app("first").owns(flow.cookie));
}

#[test]
fn the_flows_of_an_earlier_run_stay_for_an_app_that_takes_them_on() {
    for version in VERSIONS {
        let keeps = Told { left: EarlierFlows::Keep, ..Told::new("keeps", 1) };
        let mut lab = chain(&[keeps, Told::new("removes", 2)]);
        let s = lab.connect(0, version, bellrock_session::SwitchDescription::new(5));
        let (kept, old) = (Cookie::of_app("keeps"), Cookie::of_app("removes"));
        let flows = [(kept.with(1), 0xf001, Port(2)), (old.with(1), 0xe001, Port(2))];
        lab.switches[s].flows = Some(crate::lab::told(version, &flows));
        lab.run();
        let removed: Vec<_> =
            lab.flow_mods(s).into_iter().filter(|(command, ..)| command.is_delete()).collect();
        assert_eq!(removed.len(), 1, "{removed:x?}");
        match version {
            Version::V1_0 => assert_eq!(removed[0].2, 0xe001),
            Version::V1_3 => assert!(old.owns(removed[0].1)),
        }
    }
}

#[test]
fn an_app_that_panics_again_and_again_is_disabled_and_the_others_go_on() {
    let (bad, good) = (Told::new("bad", 1), Told::new("good", 2));
    let mut lab = chain(&[bad.clone(), good]);
    let switches = [lab.up(Version::V1_0, 5), lab.up(Version::V1_3, 6)];
    quietly(|| {
        // At all switches together.
        for i in 0..MAX_PANICS - 1 {
            tell(&mut lab, switches[i % 2], PANIC, 1);
        }
        assert!(!lab.shared.app_states()[0].disabled);
        tell(&mut lab, switches[0], INSTALL, 1);
        assert_eq!(lab.flow_mods(switches[0]).len(), 1, "it still works");
        tell(&mut lab, switches[0], PANIC, 1);
    });
    let states = lab.shared.app_states();
    assert_eq!((states[0].disabled, states[0].panics), (true, MAX_PANICS as u64));
    assert!(!states[1].disabled);
    assert_eq!(lab.counters("apps_disabled"), [1]);
    for s in switches {
        tell(&mut lab, s, INSTALL, 1);
        tell(&mut lab, s, INSTALL, 2);
        let flows = lab.flow_mods(s);
        assert!(flows.len() == 1 && Cookie::of_app("good").owns(flows[0].1), "{flows:x?}");
        assert!(!lab.is_closed(s));
    }
    // It gets no new switch.
    let s = lab.up(Version::V1_3, 7);
    tell(&mut lab, s, PANIC, 1);
    assert_eq!(lab.counters("handler_panics"), [MAX_PANICS as u64]);
}

#[test]
fn panics_that_are_far_apart_disable_nobody() {
    let mut lab = chain(&[Told::new("bad", 1)]);
    let s = lab.up(Version::V1_3, 5);
    quietly(|| {
        for _ in 0..2 * MAX_PANICS {
            tell(&mut lab, s, PANIC, 1);
            lab.advance(PANIC_WINDOW / (MAX_PANICS as u32 - 1) + Duration::from_secs(1));
        }
    });
    assert!(!lab.shared.app_states()[0].disabled);
}

#[test]
fn the_runtime_s_own_entry_is_below_all_bands() {
    let mut lab = chain(&[Told::new("app", 1)]);
    let s = lab.connect(0, Version::V1_3, bellrock_session::SwitchDescription::new(5));
    lab.run();
    let flows = lab.flow_mods(s);
    let (_, cookie, priority) = flows.last().unwrap();
    assert_eq!(*priority, 0);
    assert!(!Cookie::of_app("app").owns(*cookie), "it is no app's");
    assert_eq!(PriorityBand::of_place(14).unwrap().lift(0), Some(4096));
}
