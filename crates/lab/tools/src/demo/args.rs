//! The command line of `bellrock demo`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_config::values;
use bellrock_openflow::Version;
use clap::{Args, ValueEnum};

use crate::terminal::version_parser;

/// Allowed values of `--for`.
const FOR: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// The default networks of the apps.
const RING: &str = "ring:6";
const TREE: &str = "tree:2,3";

/// Show Bellrock at work: a controller and an emulated network, in this process
///
/// The emulated switches connect to the controller over TCP, and the hosts send traffic. Links are
/// cut and mended; the display shows the time to heal and the losses. No root, no other software.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// The app that the controller runs
    #[arg(long, value_name = "NAME", default_value = "routing")]
    pub(super) app: DemoApp,

    /// The network: a name such as fat-tree:4, or a file [default: ring:6, or tree:2,3 for
    /// learning]
    #[arg(long, short, value_name = "NAME|FILE")]
    topology: Option<String>,

    /// End after this time, with a summary [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) time: Option<Duration>,

    /// Cut links only by hand
    #[arg(long)]
    pub(super) no_cuts: bool,

    /// Serve the web page, REST and metrics at this address of the loopback, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDR:PORT")]
    pub(super) http: Option<SocketAddr>,

    /// OpenFlow version of the switches [default: all]
    #[arg(long, value_name = "VERSION", value_parser = version_parser())]
    pub(super) version: Option<Version>,

    /// Print lines instead of the display, on a terminal too
    #[arg(long)]
    pub(super) plain: bool,

    /// Seed of random choices: links to cut, and hosts that ping
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  bellrock demo                          a ring of six switches that heals
  bellrock demo --topology fat-tree:4    20 switches and 16 hosts
  bellrock demo --app learning           the learning switch, on a tree
  bellrock demo --http 127.0.0.1:8080    with the web page
  bellrock demo --for 30s --plain        lines, and a summary after 30 s";

/// The apps of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoApp {
    /// Shortest paths, around links that fail; the network may have cycles.
    Routing,
    /// A learning switch; the network must have no cycle, so that no link can be cut.
    Learning,
}

impl DemoApp {
    /// Its name in a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            DemoApp::Routing => "routing",
            DemoApp::Learning => "learning",
        }
    }
}

impl DemoArgs {
    pub(super) fn topology(&self) -> &str {
        self.topology.as_deref().unwrap_or(match self.app {
            DemoApp::Routing => RING,
            DemoApp::Learning => TREE,
        })
    }
}

fn time(text: &str) -> Result<Duration, String> {
    values::time(text, FOR).map_err(|expected| format!("give {expected}"))
}
