//! The command line of `bellrock bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::super::args::Run;
use super::suite::{ReportArgs, SuiteArgs};
use super::targets::TargetsArgs;
use bellrock_config::values;
use bellrock_openflow::Version;
use bellrock_sharing::CostlyTable;
use bellrock_tools::terminal::version_parser;

/// Measure a controller: emulate switches, and verify every answer
///
/// It works with any controller that is a learning switch. A flow set-up counts only if buffer_id,
/// match, output port and, for unbuffered packets, the returned frame are right.
///
/// The default is cbench's load: 16 switches, 1,000 MACs each, one destination, 1.0, throughput.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(super) command: Option<BenchCommand>,

    #[command(flatten)]
    pub(super) load: LoadArgs,
}

const EXAMPLES: &str = "\
Examples:
  bellrock bench --controller 'bellrock run --workers 1' --controller-core 0 --cores 1
  bellrock bench --mode latency --switches 1 --duration 10
  bellrock bench --mode window --in-flight 8 --of 1.3 --unbuffered
  bellrock bench --switches 64 --macs 100000 --order random --dst uniform --pid $(pidof controller)
  bellrock bench --controller 'bellrock run --workers 1' --controller-core 0 --cores 1 --pairs 9
  bellrock bench --controller 'bellrock run' --controller-core 0 --cores 1 --peer os-ken
  bellrock bench suite --quick --out bench  the studies' experiments, with plots
  bellrock bench responder &                the maximum of this machine's TCP; measure it like a controller

Exit status: 0 if all answers are right, 1 for a failure, 2 for a wrong command line.";

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    Responder(ResponderArgs),
    Suite(Box<SuiteArgs>),
    Report(ReportArgs),
    Targets(Box<TargetsArgs>),
    #[command(hide = true)]
    SharedTable(Box<SharedTableArgs>),
}

/// Run a controller whose switches share a table of this kind, for the suite and the targets
#[derive(Debug, Args)]
pub(super) struct SharedTableArgs {
    /// Table of global_learning
    #[arg(value_enum)]
    table: TableArg,

    #[command(flatten)]
    pub(super) run: Run,
}

impl SharedTableArgs {
    pub(super) fn table(&self) -> CostlyTable {
        match self.table {
            TableArg::Mutex => CostlyTable::Mutex,
            TableArg::Stm => CostlyTable::Transactions,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TableArg {
    /// Behind a mutex
    Mutex,
    /// In transactions
    Stm,
}

/// Answer the load with the minimum work that passes its verification
///
/// It has one thread, learns nothing and sends prepared answers, so it shows what this machine's
/// TCP allows. It is no controller: it knows only the hosts of the load.
#[derive(Debug, Args)]
pub(super) struct ResponderArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6653")]
    pub(super) listen: String,

    /// How it waits for packets
    #[arg(long, value_name = "HOW", default_value = "sleep")]
    pub(super) idle: IdleArg,

    /// Core of its thread
    #[arg(long, value_name = "CORE")]
    pub(super) core: Option<usize>,

    /// Answer only echo requests, for comparison with idle switches
    #[arg(long)]
    pub(super) echo_only: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum IdleArg {
    /// Sleep until one comes
    Sleep,
    /// Poll without a pause: less delay, but a whole core
    Spin,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ModeArg {
    /// As many packet_ins as the socket takes
    Throughput,
    /// One packet_in in flight per switch
    Latency,
    /// --in-flight packet_ins per switch, checked against Little's law
    Window,
    /// --rate packet_ins per second and switch; latency counts from the due time of each
    Rate,
    /// Each switch connects until the controller knows it, disconnects, and connects again
    Connect,
    /// All switches connect at once, until the controller knows the last; once per run
    Storm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum OrderArg {
    /// One after the other
    InOrder,
    /// All equally likely
    Random,
    /// The k-th with 1/k of the frequency of the first
    Zipf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum DestinationsArg {
    /// Always one host, whose table entry stays in the cache
    One,
    /// All sending hosts, equally likely
    Uniform,
    /// The k-th sending host with 1/k of the frequency of the first
    Zipf,
}

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// Address of the controller
    #[arg(long, short, value_name = "HOST:PORT", default_value = "127.0.0.1:6653")]
    pub(super) connect: String,

    /// Connect by TLS, with this certificate in PEM; all switches have the same
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub(super) tls_certificate: Option<PathBuf>,

    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,

    /// The authorities of controllers
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_ca: Option<PathBuf>,

    /// What to measure
    #[arg(long, short, value_name = "MODE", default_value = "throughput")]
    pub(super) mode: ModeArg,

    /// Packet_ins in flight per switch, for --mode window
    #[arg(long, value_name = "N")]
    pub(super) in_flight: Option<u32>,

    /// Packet_ins per second and switch, for --mode rate
    #[arg(long, value_name = "N")]
    pub(super) rate: Option<f64>,

    /// Number of switches, up to 10,000
    #[arg(long, short, value_name = "N", default_value_t = 16)]
    pub(super) switches: u32,

    /// OpenFlow version of the switches
    #[arg(long, value_name = "VERSION", default_value = "1.0",
          value_parser = version_parser())]
    pub(super) of: Version,

    /// Switches do not buffer packets: each must be returned in a packet_out
    #[arg(long)]
    pub(super) unbuffered: bool,

    /// Switches send echo requests instead of packet_ins, as idle ones do
    #[arg(long, conflicts_with = "unbuffered")]
    pub(super) echoes: bool,

    /// Number of hosts of each switch, up to 10,000,000
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) macs: u32,

    /// Order in which hosts send
    #[arg(long, value_name = "ORDER", default_value = "in-order")]
    pub(super) order: OrderArg,

    /// Destinations of hosts
    #[arg(long, value_name = "WHICH", default_value = "one")]
    pub(super) dst: DestinationsArg,

    /// Seed of random choices; the same seed makes the same packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Datapath id of the first switch, for several generators at one controller
    #[arg(long, value_name = "DPID", default_value_t = 1)]
    pub(super) first_dpid: u32,

    /// Number of threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) threads: usize,

    /// Cores of its threads, in turn
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    pub(super) cores: Vec<usize>,

    /// Number of runs; the result is their median [default: 3]
    #[arg(long, value_name = "N")]
    pub(super) runs: Option<u32>,

    /// Measured time of each run
    #[arg(long, short, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub(super) duration: Duration,

    /// Time of load before each measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(super) warm_up: Duration,

    /// Switches that connect per second before the test; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) ramp: u32,

    /// Time after which an answer counts as missing
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(super) answer_timeout: Duration,

    /// Time limit for the controller to learn all destinations
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(super) learn_timeout: Duration,

    /// Time limit until the controller knows a switch
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(super) connect_timeout: Duration,

    /// Process id of the controller, to measure its CPU time and memory
    #[arg(long, value_name = "PID", conflicts_with = "controller")]
    pub(super) pid: Option<u32>,

    /// Start this controller, measure it, and end it
    ///
    /// Only the process itself is measured: a script that starts the controller must `exec` it.
    #[arg(long, value_name = "COMMAND")]
    pub(super) controller: Option<String>,

    /// Core of this controller
    #[arg(long, value_name = "CORE", requires = "controller")]
    pub(super) controller_core: Option<usize>,

    /// Compare with the canned responder in N pairs of runs in turn; 9 are enough
    ///
    /// Both run on the same core, and the one whose turn it is not is stopped, except a process
    /// given by --pid. --runs is the number of runs of each half of a pair [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "cbench")]
    pub(super) pairs: Option<u32>,

    /// Compare with this controller instead of the responder, in 9 pairs unless --pairs is given
    ///
    /// In the command, {port} is its port, {address} is 127.0.0.1:PORT, and {workers} is 1. A
    /// script must `exec` it. Built in, without a command: ovs-testcontroller, os-ken
    /// (`scripts/tools install peers`).
    #[arg(long, value_name = "NAME=COMMAND", conflicts_with = "cbench")]
    pub(super) peer: Option<String>,

    /// Estimate energy from this thermal design power where it cannot be measured
    #[arg(long, value_name = "WATTS")]
    pub(super) tdp_watts: Option<f64>,

    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "cbench")]
    pub(super) json: bool,

    /// Behave like cbench: switches answer only features, description, barriers and echoes; print
    /// its last line instead of a table
    #[arg(long)]
    pub(super) cbench: bool,
}

/// Longest time that a measurement accepts.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// Reads a time, in seconds if it has no unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    values::time(text, Duration::ZERO..=MAX_TIME).map_err(|expected| format!("give {expected}"))
}
