//! A switch is visible from before any app gets it until before any app gets its end.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::lab::{Lab, Notes};
use bellrock_api::{
    App, Change, ChangeOutcome, Flow, FlowMod, Handler, Match, Network, Port, Switch, SwitchInfo,
    ToSwitch, Version,
};
use bellrock_session::SwitchDescription;
use bellrock_worker::{SharedState, TaskWorker};

/// Starts a task for each new switch. The task runs during `App::switch_up`, as it may if tasks
/// have their own thread.
#[derive(Clone, Default)]
struct Eager {
    seen: Notes,
    shared: Arc<OnceLock<Weak<SharedState>>>,
    /// Plays the other thread.
    tasks: Arc<OnceLock<Mutex<TaskWorker>>>,
}

impl App for Eager {
    type Handler = Eager;

    fn name(&self) -> &'static str {
        "eager"
    }

    fn switch_up(&self, network: &Network, info: &SwitchInfo) -> Eager {
        let (its, seen, dpid) = (network.clone(), self.seen.clone(), info.dpid);
        network.spawn("eager", async move {
            seen.note(format!("known: {}", its.switch(dpid).is_some()));
            let any = Match::any();
            let sent = its.send(dpid, &ToSwitch::FlowMod(FlowMod::add(&any).priority(7)));
            seen.note(format!("sent: {}", sent.is_ok()));
            let flow = Flow::new(Match::any().in_port(Port(1))).priority(8);
            let outcomes = its.program(dpid, vec![Change::Add(flow)]).await;
            seen.note(format!("installed: {}", outcomes == [ChangeOutcome::Installed]));
        });
        self.tasks.get().unwrap().lock().unwrap().run();
        self.seen.note("made");
        self.clone()
    }
}

impl Handler for Eager {
    fn switch_up(&mut self, switch: &mut Switch<'_>) -> bellrock_api::Result<()> {
        switch.install(&FlowMod::add(&Match::any()).priority(1))?;
        Ok(())
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        let shared = self.shared.get().unwrap().upgrade().unwrap();
        let is_taken = shared.worker_of(info.dpid).is_some();
        let is_known = shared.network().switch(info.dpid).is_some();
        self.seen.note(format!("down, known: {is_known}, taken: {is_taken}"));
    }
}

fn lab() -> (Lab, Notes) {
    let app = Eager::default();
    let (seen, shared, tasks) = (app.seen.clone(), app.shared.clone(), app.tasks.clone());
    let lab = Lab::with_app(app);
    assert!(shared.set(Arc::downgrade(&lab.shared)).is_ok());
    assert!(tasks.set(Mutex::new(lab.shared.task_worker())).is_ok());
    (lab, seen)
}

#[test]
fn a_task_that_runs_while_its_app_hears_of_a_switch_can_send_to_it() {
    for version in Version::ALL {
        let (mut lab, seen) = lab();
        let switch = lab.connect(0, version, SwitchDescription::new(5));
        lab.run();
        assert_eq!(
            seen.take(),
            ["known: true", "sent: true", "made", "installed: true"],
            "{version}"
        );
        // Mail follows what the handler wrote first.
        let own = lab
            .flow_mods(switch)
            .into_iter()
            .filter(|(_, cookie, _)| bellrock_api::Cookie::of_app("eager").owns(*cookie));
        let lower: Vec<u16> = own.map(|(.., priority)| priority & 0xfff).collect();
        let adds: Vec<u16> =
            lower.into_iter().filter(|priority| [1, 7, 8].contains(priority)).collect();
        assert_eq!(adds, [1, 7, 8], "{version}");
    }
}

#[test]
fn a_datapath_id_is_free_when_the_apps_have_heard_that_its_switch_is_gone() {
    let (mut lab, seen) = lab();
    let switch = lab.up(Version::V1_3, 5);
    seen.take();
    lab.hang_up(switch);
    lab.run();
    assert_eq!(seen.take(), ["down, known: false, taken: true"]);
    assert_eq!(lab.shared.worker_of(bellrock_api::Dpid(5)), None);
    lab.up(Version::V1_3, 5);
    assert_eq!(seen.take(), ["known: true", "sent: true", "made", "installed: true"]);
}
