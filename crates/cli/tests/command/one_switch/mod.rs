//! A controller, and an emulated network of one switch, which commands ask.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bellrock::apps::Learning;
use bellrock::{Controller, ControllerBuilder};
use bellrock_emulator::host::PingSettings;
use bellrock_emulator::live::{LiveNetwork, LiveSettings, ReconnectBackoff};
use bellrock_emulator::topology::tree;
use bellrock_session::Versions;
use serde_json::Value;

use crate::running::{PATIENCE, Place, bellrock, told};

/// A queue of each port.
pub(crate) const QUEUE: u32 = 7;

/// One switch with two hosts, and a control socket.
pub(crate) struct OneSwitch {
    place: Place,
    pub(crate) net: LiveNetwork,
}

impl OneSwitch {
    pub(crate) fn new(name: &str, address: SocketAddr, versions: Versions) -> Self {
        let mut settings = LiveSettings::new(address);
        settings.network.versions = versions;
        settings.network.queue = Some(QUEUE);
        settings.backoff =
            ReconnectBackoff { first: Duration::from_millis(50), ..settings.backoff };
        let net = LiveNetwork::new(&tree(1, 2).build().unwrap(), settings).unwrap();
        OneSwitch { place: Place::new(name), net }
    }

    pub(crate) fn controller(
        &self,
        controller: ControllerBuilder,
        address: SocketAddr,
    ) -> Controller {
        self.start(controller.app(Learning::default()).listen(address))
    }

    /// Starts a controller whose address and apps are chosen, with the control socket of the
    /// commands.
    pub(crate) fn start(&self, controller: ControllerBuilder) -> Controller {
        controller.control_socket_at(self.place.file("control.sock")).start().unwrap()
    }

    /// Runs the network until its switch is connected.
    pub(crate) fn connect(&mut self, controller: &Controller) {
        let up = |_: &LiveNetwork| controller.network().switches().len() == 1;
        assert!(self.net.run_until(PATIENCE, up).unwrap(), "the switch does not come up");
    }

    pub(crate) fn ping(&mut self) {
        let topology = self.net.network().topology();
        let [from, to] = ["h1", "h2"].map(|name| topology.host(name).unwrap());
        let settings =
            PingSettings { count: 3, interval: Duration::from_millis(10), ..Default::default() };
        let ping = self.net.network_mut().ping(from, to, settings).unwrap();
        let is_over = |net: &LiveNetwork| net.network().host(from).is_ping_over(ping);
        assert!(self.net.run_until(PATIENCE, is_over).unwrap());
        assert!(self.net.network_mut().end_ping(from, ping).unwrap().complete());
    }

    /// Runs a command while the network runs, because the switch must answer.
    fn ask(&mut self, command: &str, words: &[&str]) -> (i32, String, String) {
        let control = self.place.file("control.sock");
        let mut asking = bellrock(&[command]);
        asking.args(words).args(["--control", &control]);
        let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = asking.spawn().unwrap();
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "no answer");
            self.net.run_for(Duration::from_millis(5)).unwrap();
        }
        told(child.wait_with_output().unwrap())
    }

    pub(crate) fn text(&mut self, command: &str, words: &[&str]) -> String {
        let (status, text, error) = self.ask(command, words);
        assert_eq!((status, error.as_str()), (0, ""), "{command} {words:?}");
        text
    }

    pub(crate) fn json(&mut self, command: &str, words: &[&str]) -> Value {
        serde_json::from_str(&self.text(command, &[words, &["--json"]].concat())).unwrap()
    }

    pub(crate) fn error(&mut self, command: &str, words: &[&str]) -> String {
        let (status, text, error) = self.ask(command, words);
        assert_eq!((status, text.as_str()), (1, ""), "{command} {words:?}");
        error
    }
}
