//! `bellrock demo`: a controller and an emulated network in one process, with real connections.
//!
//! The controller runs one app, in its own threads. The network, its traffic, the
//! cuts of its links and the display share this thread.

mod args;
mod columns;
mod cuts;
mod screen;
mod show;
mod traffic;
mod view;

use std::io::{IsTerminal, stdin, stdout};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bellrock::Controller;
use bellrock::http::HttpSettings;
use bellrock::settings::Pinning;
use bellrock_apps::{Learning, LearningSettings, Routing, RoutingSettings};
use bellrock_emulator::live::{LiveNetwork, LiveSettings};
use bellrock_emulator::topology::{LinkRate, TopologySpec};
use bellrock_tables::Budget;

use self::args::DemoApp;
use self::screen::{Screen, ScreenCommand};
use self::show::Show;
use self::view::DemoView;
use crate::emulate;
use crate::terminal::Ending;
use crate::terminal::versions_of;
use crate::terminal::{Failure, print};
pub use args::DemoArgs;

/// Time between two drawings of the display.
const FRAME: Duration = Duration::from_millis(250);

/// Time between two lines of output, without the display.
const LINE: Duration = Duration::from_secs(1);

/// Bandwidth of links without one in the topology: so much that only cuts lose datagrams.
const BITS_PER_SECOND: u64 = 1_000_000_000;

/// Length of the queue of such a link, in frames.
const QUEUE_FRAMES: u32 = 1000;

/// Time limit for the switches to connect. They are in the same process.
const CONNECT: Duration = Duration::from_secs(10);

/// Memory limit of the controller's tables, in bytes: far more than the hosts of a demo need.
const TABLE_BYTES: usize = 64 << 20;

/// Runs the demo until its time is over or it is stopped, and prints a summary.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    // Learning switches flood, and a flooded packet in a cycle never stops.
    let loop_free = args.app == DemoApp::Learning;
    let mut topology = emulate::topology(args.topology(), loop_free)?;
    topology.limit_links(LinkRate::bits_per_second(BITS_PER_SECOND), QUEUE_FRAMES);
    if topology.hosts().len() < 2 {
        return Err(Failure::Wrong(format!(
            "{}: the demo needs at least two hosts; give a larger network, such as ring:6",
            args.topology()
        )));
    }
    emulate::raise_file_limit();
    let controller = controller(args.app, args.http)?;
    for address in controller.http_addresses() {
        eprintln!("bellrock: the web page is at http://{address}/");
    }
    let Some(address) = controller.addresses().first().copied() else {
        return Err(Failure::Failed("the controller listens nowhere".into()));
    };
    let live = network(args, &topology, address)?;
    let waker = live.waker();
    let ending = Ending::watch(move || waker.wake(), screen::give_back)?;
    let view = DemoView::new(address, args.app, args.topology().to_owned(), args.time);
    let show = Show::new(live, view, args.seed, args.app == DemoApp::Routing && !args.no_cuts);
    let mut demo = Demonstration { show, ending, end: args.time };
    let on_screen = !args.plain && stdout().is_terminal() && stdin().is_terminal();
    let shown = if on_screen { demo.on_screen(&controller) } else { demo.in_lines(&controller) };
    controller.stop();
    shown?;
    print(&demo.show.view.summary())
}

/// Starts a controller with this app, on a free port of the loopback.
fn controller(app: DemoApp, http: Option<SocketAddr>) -> Result<Controller, Failure> {
    let builder = Controller::builder().listen((Ipv4Addr::LOCALHOST, 0)).pin(Pinning::None);
    let builder = match app {
        DemoApp::Routing => builder.boxed_app(Routing::new(RoutingSettings::default()).boxed()),
        DemoApp::Learning => {
            let tables = Budget::new(TABLE_BYTES);
            builder.boxed_app(Learning::new(LearningSettings::default(), &tables).boxed())
        }
    };
    let builder = match http {
        Some(address) => {
            builder.http(HttpSettings { listen: vec![address], ..HttpSettings::default() })
        }
        None => builder,
    };
    builder.start().map_err(|error| Failure::Failed(error.to_string()))
}

fn network(
    args: &DemoArgs,
    topology: &TopologySpec,
    at: SocketAddr,
) -> Result<LiveNetwork, Failure> {
    let mut settings = LiveSettings::new(at);
    settings.network.seed = args.seed;
    settings.network.versions = versions_of(args.version);
    Ok(LiveNetwork::new(topology, settings)?)
}

/// A running demo.
struct Demonstration {
    show: Show,
    ending: Ending,
    end: Option<Duration>,
}

impl Demonstration {
    fn on_screen(&mut self, controller: &Controller) -> Result<(), Failure> {
        let mut screen = Screen::take()?;
        while !self.is_over(controller)? {
            self.show.run_for(FRAME, &self.ending)?;
            self.show.update();
            screen.draw(&self.show.view, self.show.is_cut())?;
            match screen.key()? {
                Some(ScreenCommand::Quit) => return Ok(()),
                Some(ScreenCommand::Link) => self.show.toggle_link(),
                None => {}
            }
        }
        Ok(())
    }

    fn in_lines(&mut self, controller: &Controller) -> Result<(), Failure> {
        let mut printed = 0;
        while !self.is_over(controller)? {
            let remaining = self.end.map_or(LINE, |end| end.saturating_sub(self.show.elapsed()));
            self.show.run_for(remaining.min(LINE), &self.ending)?;
            self.show.update();
            let news = self.show.view.news_since(printed);
            printed = self.show.view.news_count;
            print(&format!("{news}{}\n", self.show.view.line()))?;
        }
        Ok(())
    }

    fn is_over(&self, controller: &Controller) -> Result<bool, Failure> {
        if controller.has_failed() {
            return Err(Failure::Failed("the controller has failed".into()));
        }
        if self.show.elapsed() > CONNECT && !self.show.was_connected() {
            return Err(Failure::Failed(format!(
                "the switches have not connected to {} within {} s",
                self.show.view.controller,
                CONNECT.as_secs()
            )));
        }
        let over = self.end.is_some_and(|end| self.show.elapsed() >= end);
        Ok(over || self.ending.is_asked_for())
    }
}
