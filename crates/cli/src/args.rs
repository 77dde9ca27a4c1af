//! The command line.
//!
//! clap's derive defines the arguments that commands share. The settings of `run` are in
//! `overrides`.

use std::path::PathBuf;

use bellrock_config::{Sources, apps};
use bellrock_openflow::Versions;
use bellrock_query::SwitchRef;
use clap::{Args, Parser, Subcommand};

use super::ask::Ask;
use super::bench::BenchArgs;
use super::declared::DeclaredList;
use super::doctor::DoctorArgs;
use super::documents::{CompletionsArgs, ManualPagesArgs};
use super::new::NewArgs;
use super::operate::AppCommand;
use super::operate::clean::CleanArgs;
use super::operate::cluster::ClusterArgs;
use super::operate::flows::FlowsArgs;
use super::operate::identities::IdentitiesArgs;
use super::operate::messages::{RequestArgs, SendArgs};
use super::operate::ports::Ports;
use super::operate::relays::RelaysArgs;
use super::overrides::Overrides;
use super::pki::PkiArgs;
use super::python::OskenArgs;
use super::token::TokenArgs;
use bellrock_tools::{DecodeArgs, DemoArgs, EmulateArgs, RecordArgs, ReplayArgs};

/// An OpenFlow controller
#[derive(Debug, Parser)]
#[command(name = "bellrock", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(long_about = format!(
    "An OpenFlow controller.\n\nBellrock speaks OpenFlow {} with switches, and runs apps that decide \
     what they do with packets. `bellrock run` is the controller; the others ask it, test it, or \
     decode.",
    Versions::ALL,
))]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  bellrock run                                  the learning switch, for switches on this machine
  ovs-vsctl set-controller br0 tcp:127.0.0.1    make Open vSwitch's bridge br0 one of them
  bellrock run --listen 0.0.0.0:6653 --app hub  a hub, for switches on any machine
  bellrock new my_app                           a project with an app of your own, in Python
  bellrock run --app ./my_app.py                run an app in Python
  bellrock config > bellrock.yaml               a file with all settings, to edit
  bellrock check bellrock.yaml                  check it
  bellrock run --config bellrock.yaml           run with it
  bellrock hosts                                the hosts and their ports
  bellrock flows a1                             the flows of the switch a1, and their apps
  bellrock ports a1                             the ports of the switch a1, and their counters
  bellrock events --follow                      what happens in the network, as it happens
  bellrock demo                                 a controller and a network, in this terminal
  bellrock emulate --topology tree:3,3          an emulated network, with a prompt

Exit status: 0 for success, 1 for a failure, 2 for a wrong command line or configuration, 3 if changes
that were only listed need a restart.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Run(Run),
    Check(Check),
    /// Print the default configuration, with the settings of all apps
    Config,
    New(NewArgs),
    Token(TokenArgs),
    /// Show the state of the running controller
    Status(Ask),
    /// List the switches that are up, and those that are missing
    ///
    /// Missing are switches with a name in the configuration that are not connected, and others
    /// that were lost. --json lists the connected ones only; `bellrock status --json` has the
    /// others too.
    Switches(Ask),
    /// List the hosts with their ports and addresses
    Hosts(HostsArgs),
    /// List the apps of the chain, in order, with their priorities and errors
    Apps(Ask),
    /// List the background tasks of the apps
    ///
    /// Ended tasks are not listed, except the latest that panicked. TIME is the total time of a
    /// task's turns; all tasks share one thread.
    Tasks(Ask),
    /// List the switches found by discovery, and their ports for hosts
    Topology(Ask),
    Ports(Ports),
    /// List the links between switches
    Links(Ask),
    Flows(FlowsArgs),
    Clean(CleanArgs),
    #[command(flatten)]
    Declared(DeclaredList),
    Events(EventsArgs),
    /// List the counters of the workers, of the tasks and of the apps
    ///
    /// Counters start at zero when the controller starts, and only grow. --json lists those of each
    /// worker.
    Counters(CountersArgs),
    /// List how long things take: turns of workers, confirmations, changes of paths
    ///
    /// Since the controller started. The quantiles are upper bounds.
    Latencies(Ask),
    #[command(flatten)]
    OfApp(AppCommand),
    Relays(RelaysArgs),
    Identities(IdentitiesArgs),
    Cluster(ClusterArgs),
    Pki(PkiArgs),
    Request(RequestArgs),
    Send(SendArgs),
    Reload(ReloadArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    ManualPages(ManualPagesArgs),
    Decode(DecodeArgs),
    Record(RecordArgs),
    Replay(ReplayArgs),
    OskenManager(OskenArgs),
    Bench(Box<BenchArgs>),
    Emulate(EmulateArgs),
    Demo(DemoArgs),
}

/// Which hosts to list.
#[derive(Debug, Args)]
pub(super) struct HostsArgs {
    /// Only hosts at this switch: its datapath id or its name
    #[arg(long)]
    pub(super) switch: Option<SwitchRef>,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// List the events of the network: links, hosts, and possible attacks
///
/// The latest 4,096 are kept.
#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// Go on, and print each event as it happens; with --json a line each
    #[arg(long, short)]
    pub(super) follow: bool,
    /// Only events of this kind, such as link_down
    #[arg(long, conflicts_with = "follow")]
    pub(super) kind: Option<String>,
    /// Only alarms: events that an operator should look at
    #[arg(long, conflicts_with = "follow")]
    pub(super) alarms: bool,
    /// Only open alarms: what they report still lasts, such as a link that is down
    #[arg(long, conflicts_with = "follow")]
    pub(super) open: bool,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Make the running controller read its configuration again
///
/// Settings with (live) in `bellrock config` change while it runs, such as names, rates and
/// certificates. If anything is wrong, or needs a restart, nothing changes, and the command fails
/// with status 1. Files with other content than before are named, such as a renewed certificate.
#[derive(Debug, Args)]
pub(super) struct ReloadArgs {
    /// Only list what would change
    ///
    /// The exit status is 3 if something needs a restart.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// What of the counters to print.
#[derive(Debug, Args)]
pub(super) struct CountersArgs {
    /// Print what each counter counts instead of its value
    #[arg(long)]
    pub(super) meanings: bool,
    #[command(flatten)]
    pub(super) ask: Ask,
}

/// Run the controller until it gets SIGTERM or SIGINT
///
/// Each setting is a flag, an environment variable, or a key in a file (log_level for --log-level).
/// A flag overrides the environment, and the environment overrides the file.
///
/// The signal makes it send what it has accepted, close all connections and exit with status 0. A
/// second signal ends it at once. SIGHUP makes a service read its file again; at a terminal, or
/// without a file, it ends the controller.
#[derive(Debug, Args)]
#[command(after_long_help = apps_help())]
pub(super) struct Run {
    /// Read this configuration file
    ///
    /// A YAML or JSON file. Settings that it leaves out have their defaults; `bellrock config`
    /// prints all.
    #[arg(long, value_name = "FILE", env = "BELLROCK_CONFIG", hide_env_values = true)]
    pub(super) config: Option<PathBuf>,

    /// Read this file again when it changes, as `bellrock reload` does
    #[arg(long, requires = "config")]
    pub(super) watch_config: bool,

    /// Load files with apps in Python again when they change
    ///
    /// Switches stay connected: the old apps' tasks end and their flows are removed, and the new
    /// apps get each switch. A file with an error changes nothing, and the log has its line.
    #[arg(long)]
    pub(super) reload: bool,

    /// Run this app; several times for a chain
    ///
    /// Each packet goes to the first app, and on to the next as long as apps pass it on. Replaces
    /// the file's apps, but keeps their settings in the file. A name that ends in .py is the path
    /// of a file with apps in Python (--app ./my_app.py), for which python3 of PATH runs the
    /// controller: it needs the package bellrock. Default: learning.
    #[arg(
        long = "app",
        value_name = "NAME",
        env = "BELLROCK_APP",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub(super) apps: Vec<String>,

    #[command(flatten)]
    pub(super) settings: Overrides,
}

/// Check a configuration file, and do nothing else
///
/// Prints each error as FILE:LINE:COLUMN with what would be right, and exits with status 2.
/// Warnings are printed likewise, with status 0.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The file to check
    pub(super) file: PathBuf,

    /// Print what changes from this file to the checked one
    ///
    /// One line for each changed setting: (live) if a running controller can take the change,
    /// (restart) if it takes effect at the next start. Then the exit status is 3.
    #[arg(long, value_name = "FILE")]
    pub(super) diff: Option<PathBuf>,
}

impl Run {
    /// Where the settings come from.
    pub(super) fn sources(&self) -> Sources {
        Sources {
            file: self.config.clone(),
            overrides: self.settings.0.clone(),
            apps: self.apps.iter().filter(|name| !name.is_empty()).cloned().collect(),
            text: None,
            shared: None,
        }
    }
}

/// Environment variables that have our prefix and a name that is close to one of ours: each with
/// the name that was probably meant.
pub(super) fn misspelled_variables() -> Vec<(String, String)> {
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    bellrock_config::misspelled_variables(set, &["config", "app", "control", "peers", "python"])
}

/// The apps and their settings, for the end of the help.
fn apps_help() -> String {
    let mut text = String::from("Apps:\n");
    for app in apps::KNOWN {
        text.push_str(&format!("  {:10}{}\n", app.name, app.about));
    }
    text.push_str("  FILE.py   The apps in Python of this file.\n");
    for app in apps::KNOWN.iter().filter(|app| !app.settings.is_empty()) {
        text.push_str(&format!(
            "\nSettings of {}, in the file (apps: [{}: {{KEY: VALUE}}]):\n",
            app.name, app.name
        ));
        for setting in app.settings {
            let default = setting.show(&(app.choice)());
            let name = format!("{}: {}", setting.key, setting.value);
            text.push_str(&format!("  {name}\n          {} [default: {default}]\n", setting.about));
        }
    }
    text
}
