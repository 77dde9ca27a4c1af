//! The command line of `bellrock emulate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use bellrock_config::values;
use bellrock_emulator::topology::LinkRate;
use bellrock_openflow::Version;
use clap::Args;

use crate::terminal::version_parser;

/// Port of a controller that is given without one.
pub(super) const DEFAULT_PORT: u16 = 6653;

/// Allowed values of `--wait`.
const WAIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

/// Allowed values of `--retry`.
const RETRY: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(600);

/// Emulate a network for any controller: switches, links and hosts, and a prompt
///
/// All of it runs in this process, without root. The switches connect to the controller over TCP.
/// Commands come from the prompt (`help` lists them), a pipe, or the command line after all flags.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EmulateArgs {
    /// The network: a name such as tree:2,3, or a file
    ///
    /// Names: single:HOSTS, linear:SWITCHES[,HOSTS], ring:SWITCHES[,HOSTS], tree:DEPTH,FANOUT,
    /// fat-tree:K, leaf-spine:LEAVES,SPINES,HOSTS, waxman:SWITCHES,SEED; each takes ,loop-free at
    /// its end. The manual describes the file.
    #[arg(long, short, value_name = "NAME|FILE", default_value = "tree:2,3")]
    pub(super) topology: String,

    /// The controller; several times for switches that connect to several
    ///
    /// A name or an address, with a port if it is not 6653.
    #[arg(long, short, value_name = "HOST[:PORT]", default_value = "127.0.0.1:6653")]
    pub(super) controller: Vec<String>,

    /// Connect by TLS, with this certificate in PEM; all switches have the same
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(super) tls_certificate: Option<PathBuf>,

    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,

    /// The authorities of controllers
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_ca: Option<PathBuf>,

    /// OpenFlow version of the switches [default: all]
    #[arg(long, value_name = "VERSION", value_parser = version_parser())]
    pub(super) version: Option<Version>,

    /// Time limit for the first connections
    ///
    /// If a switch is not connected by then, the command ends with status 1.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wait)]
    pub(super) wait: Duration,

    /// Maximum time between two tries of a switch to connect
    ///
    /// It begins with a second, or with this time if it is shorter, and doubles.
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = retry)]
    pub(super) retry: Duration,

    /// Bandwidth of links without one in the file, in bits per second
    #[arg(long, value_name = "BITS", default_value = "1G", value_parser = bandwidth)]
    pub(super) bandwidth: LinkRate,

    /// Refuse a network with a cycle
    ///
    /// There a packet that a controller floods, as learning switches do, would never stop.
    #[arg(long)]
    pub(super) loop_free: bool,

    /// Seed of random choices: lost frames, chosen pairs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,

    /// A command instead of the prompt, such as: ping h1 h9
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  bellrock emulate                                      four switches, nine hosts, and a prompt
  bellrock emulate --topology tree:3,3 pingall          whether all hosts reach each other
  bellrock emulate --topology office.topo ping h1 printer
  bellrock emulate --topology fat-tree:16,loop-free pingall --pairs 200
  printf 'link down s1 s2\\nping h1 h9\\n' | bellrock emulate --version 1.0
  bellrock emulate --controller 192.0.2.7:6633          a controller elsewhere

Exit status: 0 for success, 1 for a lost ping, a failed command or a switch that cannot connect, 2 for a
wrong command line or topology.";

fn bandwidth(text: &str) -> Result<LinkRate, String> {
    text.parse().map_err(str::to_owned)
}

fn wait(text: &str) -> Result<Duration, String> {
    values::time(text, WAIT).map_err(|expected| format!("give {expected}"))
}

fn retry(text: &str) -> Result<Duration, String> {
    values::time(text, RETRY).map_err(|expected| format!("give {expected}"))
}
