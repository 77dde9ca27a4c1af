//! Messages that switches refuse, and messages that cannot be decoded, are logged by default: with
//! the name of the app, and a limited number of lines a second.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lab::{Lab, Notes, SwitchId, flow_removed};
use bellrock_api::openflow::{Bytes, FromSwitch, Out};
use bellrock_api::{
    App, Change, ChangeOutcome, Cookie, Dpid, Error, ErrorCode, ErrorMessage, Flow, FlowMod,
    FlowRemovedReason, Handler, Match, Network, Port, Result, Switch, SwitchInfo, ToSwitch,
    Version,
};
use bellrock_worker::{FAULT_LINES_PER_SECOND, WorkerSettings};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

const SWITCH: Dpid = Dpid(5);
const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Name of an app that reports refusals itself.
const REPORTS: &str = "reports";

/// Beginning of the names of apps that see the packets of their flow.
const SEES: &str = "sees";

/// Name of another such app.
const SEES_TOO: &str = "sees too";

/// Keeps the log lines at level warn and above.
#[derive(Clone, Default)]
struct Log(Notes);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                write!(self.0, "{field}={value:?} ").unwrap();
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.note(line.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// An app that installs one flow when a switch comes up, and keeps its handle to the network.
#[derive(Clone)]
struct Installer {
    name: &'static str,
    matching: Match,
    network: Arc<Mutex<Option<Network>>>,
    failed: Notes,
}

impl Installer {
    fn new(name: &'static str, matching: Match) -> Self {
        Installer { name, matching, network: Arc::default(), failed: Notes::default() }
    }
}

impl App for Installer {
    type Handler = Installer;
    fn name(&self) -> &'static str {
        self.name
    }
    fn reports_refusals(&self) -> bool {
        self.name == REPORTS
    }
    fn sees(&self) -> Option<Vec<Match>> {
        self.name.starts_with(SEES).then(|| vec![self.matching.clone()])
    }
    fn start(&self, network: &Network) {
        *self.network.lock().unwrap() = Some(network.clone());
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Installer {
        self.clone()
    }
}

impl Handler for Installer {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        if let Err(error) = switch.install(&FlowMod::add(&self.matching)) {
            self.failed.note(error.to_string());
            assert!(switch.template(&FlowMod::add(&self.matching)).is_err());
            assert!(switch.remove(&self.matching, Port::ANY).is_err());
        }
        Ok(())
    }
}

fn two(version: Version, first: &Installer, second: &Installer) -> (Lab, SwitchId) {
    let apps: Vec<Box<dyn bellrock_api::runtime::DynApp>> =
        vec![Box::new(first.clone()), Box::new(second.clone())];
    let mut lab = Lab::new(1, WorkerSettings::default(), apps);
    let id = lab.connect(0, version, bellrock_session::SwitchDescription::new(SWITCH.0));
    lab.run();
    (lab, id)
}

/// The flow_mods with cookies of `app`, each with its xid.
fn sent(lab: &Lab, id: SwitchId, app: &str) -> Vec<(u32, Vec<u8>)> {
    sent_with(lab, id, Cookie::of_app(app))
}

fn sent_with(lab: &Lab, id: SwitchId, cookie: Cookie) -> Vec<(u32, Vec<u8>)> {
    let all = lab.switches[id].received.iter();
    let of = |bytes: &Vec<u8>| match ToSwitch::decode(bytes).unwrap() {
        message if let ToSwitch::FlowMod(flow) = message.body => (cookie.owns(flow.cookie)
            && !flow.command.is_delete())
        .then(|| (message.xid, bytes.clone())),
        _ => None,
    };
    all.filter_map(of).collect()
}

fn refuse(lab: &mut Lab, id: SwitchId, version: Version, (xid, bytes): &(u32, Vec<u8>)) {
    // As many bytes as switches send back.
    let data = Bytes(&bytes[..bytes.len().min(64)]);
    let error = ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data };
    let mut out = Out::with_capacity(1024);
    FromSwitch::Error(error).encode(version, *xid, &mut out).unwrap();
    lab.send_bytes(id, out.as_slice());
}

#[test]
fn a_refused_message_is_logged_with_its_app_its_error_and_its_match() {
    for version in VERSIONS {
        let (log, any) = (Log::default(), Match::any);
        let _guard = tracing::subscriber::set_default(log.clone());
        let (first, second) =
            (Installer::new("first", any()), Installer::new("second", any().in_port(Port(7))));
        let (mut lab, id) = two(version, &first, &second);
        log.0.take();
        let flow = sent(&lab, id, "second").remove(0);
        refuse(&mut lab, id, version, &flow);
        lab.run();
        let lines = log.0.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [
            "the switch refused a message",
            "dpid=\"0000000000000005\"",
            "app=\"second\"",
            "error=OFPFMFC_TABLE_FULL",
            "OFPT_FLOW_MOD ADD priority=",
            "in_port=7",
        ] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
        // A change of a task: it belongs to the app too.
        let network = first.network.lock().unwrap().clone().unwrap();
        let change = Change::Add(Flow::new(any().in_port(Port(9))).output(Port(1)));
        let _programmed = network.program(SWITCH, vec![change]);
        lab.switches[id].ignored_barriers = Some(Vec::new());
        lab.run();
        let flow = sent(&lab, id, "first").pop().unwrap();
        refuse(&mut lab, id, version, &flow);
        lab.run();
        let lines = log.0.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("app=\"first\"") && lines[0].contains("in_port=9"), "{lines:?}");
    }
}

#[test]
fn an_app_that_reports_refusals_itself_has_no_lines() {
    for version in VERSIONS {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let (first, second) =
            (Installer::new(REPORTS, Match::any()), Installer::new("second", Match::any()));
        let (mut lab, id) = two(version, &first, &second);
        log.0.take();
        for app in [REPORTS, "second"] {
            let flow = sent(&lab, id, app).remove(0);
            refuse(&mut lab, id, version, &flow);
            lab.run();
        }
        let lines = log.0.take();
        assert!(lines.len() == 1 && lines[0].contains("app=\"second\""), "{lines:?}");
    }
}

#[test]
fn so_many_lines_a_second_are_written_and_the_rest_is_counted() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let app = Installer::new("only", Match::any());
    let (mut lab, id) = two(Version::V1_3, &app, &Installer::new("other", Match::any()));
    log.0.take();
    let flow = sent(&lab, id, "only").remove(0);
    lab.advance(Duration::from_secs(2));
    log.0.take();
    let all = u64::from(5 * FAULT_LINES_PER_SECOND);
    for _ in 0..all {
        refuse(&mut lab, id, Version::V1_3, &flow);
    }
    lab.run();
    let lines = log.0.take();
    assert_eq!(lines.len(), FAULT_LINES_PER_SECOND as usize, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("left_out=0")), "{lines:?}");
    let left_out = all - u64::from(FAULT_LINES_PER_SECOND);
    assert_eq!(lab.counters("log_lines_left_out"), [left_out]);
    lab.advance(Duration::from_secs(1));
    refuse(&mut lab, id, Version::V1_3, &flow);
    lab.run();
    let lines = log.0.take();
    assert!(lines.iter().any(|line| line.contains(&format!("left_out={left_out}"))), "{lines:?}");
}

#[test]
fn a_message_that_cannot_be_read_is_logged_with_what_is_the_matter() {
    for version in VERSIONS {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let app = Installer::new("only", Match::any());
        let (mut lab, id) = two(version, &app, &Installer::new("other", Match::any()));
        log.0.take();
        // A port_status that ends inside the port.
        lab.send_bytes(id, &[version.wire(), 12, 0, 16, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
        lab.run();
        let lines = log.0.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in ["a message of the switch cannot be read", "error=port at byte 16: needs"] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
    }
}

#[test]
fn a_match_without_what_its_fields_depend_on_is_not_sent() {
    const NEEDS: &str = "tcp_dst needs eth_type 0x0800 or 0x86dd and ip_proto 6: \
                         add .eth_type(0x0800).ip_proto(6)";
    for version in VERSIONS {
        let matching = Match::any().tcp_dst(80);
        let wrong = Installer::new("wrong", matching.clone());
        let (mut lab, id) = two(version, &wrong, &Installer::new("other", Match::any()));
        assert_eq!(wrong.failed.take(), [NEEDS], "{version}");
        assert!(sent(&lab, id, "wrong").is_empty() && sent(&lab, id, "other").len() == 1);
        let network = wrong.network.lock().unwrap().clone().unwrap();
        let mut programmed =
            network.program(SWITCH, vec![Change::Add(Flow::new(matching).output(Port(1)))]);
        lab.run();
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        let poll = Future::poll(std::pin::Pin::new(&mut programmed), context);
        let std::task::Poll::Ready(outcomes) = poll else { panic!("it is known") };
        let [ChangeOutcome::NotSent(error @ Error::Encode(_))] = outcomes[..] else {
            panic!("{outcomes:?}")
        };
        assert_eq!(error.to_string(), NEEDS);
    }
}

/// A switch that is being taken down removes its flows one by one, and then closes the connection.
#[test]
fn removed_flows_of_the_controller_are_a_warning_only_if_the_switch_stays() {
    for stays in [true, false] {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let (sees, other) = (Match::any().in_port(Port(7)), Match::any());
        let (sees, other) = (Installer::new(SEES, sees), Installer::new("other", other));
        let (mut lab, id) = two(Version::V1_3, &sees, &other);
        log.0.take();
        lab.switches[id].received.clear();
        let sight = Cookie::of_app(SEES).of_sight();
        for cookie in [Cookie::CONTROLLER.with(0), sight.with(1)] {
            let removed = flow_removed(cookie, 0, FlowRemovedReason::Delete);
            lab.send(id, &FromSwitch::FlowRemoved(removed));
        }
        lab.run();
        let is_sight = |bytes: &&Vec<u8>| match ToSwitch::decode(bytes).unwrap().body {
            ToSwitch::FlowMod(flow) => sight.owns(flow.cookie),
            _ => false,
        };
        let restored = lab.switches[id].received.iter().filter(is_sight).count();
        assert_eq!(restored, 1, "it is restored at once");
        lab.advance(Duration::from_secs(1));
        if !stays {
            lab.hang_up(id);
        }
        lab.advance(Duration::from_secs(5));
        let lines = log.0.take();
        let of = |flow: &str| {
            let text = format!("the {flow} was removed from outside; it is restored");
            lines.iter().filter(|line| line.contains(&text)).count()
        };
        let found = (of("table-miss entry"), of("flow of what an app sees"));
        assert_eq!(found, if stays { (1, 1) } else { (0, 0) }, "{lines:?}");
    }
}

/// The barrier behind a flow that is sent again says nothing of another one that is not due yet.
#[test]
fn each_refused_flow_of_what_apps_see_is_sent_again_in_its_own_time() {
    let ms = Duration::from_millis;
    for version in VERSIONS {
        let any = Match::any;
        let first = Installer::new(SEES, any().in_port(Port(1)));
        let second = Installer::new(SEES_TOO, any().in_port(Port(2)));
        let (mut lab, id) = two(version, &first, &second);
        let [sight, sight_too] = [SEES, SEES_TOO].map(|app| Cookie::of_app(app).of_sight());
        let flow = sent_with(&lab, id, sight).remove(0);
        refuse(&mut lab, id, version, &flow);
        lab.run();
        lab.advance(ms(500));
        let flow = sent_with(&lab, id, sight_too).remove(0);
        refuse(&mut lab, id, version, &flow);
        lab.advance(ms(1000));
        let number = |lab: &Lab, cookie| sent_with(lab, id, cookie).len();
        assert_eq!((number(&lab, sight), number(&lab, sight_too)), (2, 1), "{version}");
        lab.advance(ms(1000));
        assert_eq!((number(&lab, sight), number(&lab, sight_too)), (2, 2), "{version}");
        lab.advance(ms(5000));
        assert_eq!((number(&lab, sight), number(&lab, sight_too)), (2, 2), "{version}");
    }
}
