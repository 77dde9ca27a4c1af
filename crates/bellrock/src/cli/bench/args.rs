//! The command line of `bellrock bench`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use super::super::config::values;
use super::suite::{ReportArgs, SuiteArgs};
use super::targets::TargetsArgs;

/// Measure a controller: play switches, and verify every answer
///
/// Any controller that speaks OpenFlow 1.0 or 1.3 and has a learning switch will do. A flow set-up is
/// counted only if the answer is complete and right: buffer_id, match, output port, and for packets
/// that are not buffered the frame that comes back. What is wrong, missing or too much is counted
/// apart.
///
/// Without flags it is cbench's load: 16 switches with 1,000 MACs each, one destination, 1.0,
/// throughput.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(in crate::cli) struct Bench {
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
  bellrock bench responder &                what this machine's TCP allows: bench it like a controller

Exit status: 0 when all was well and all answers right, 1 when not, 2 when the command line is wrong.";

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    Responder(ResponderArgs),
    Suite(Box<SuiteArgs>),
    Report(ReportArgs),
    Targets(Box<TargetsArgs>),
}

/// Answer the load with the least work that passes its verification
///
/// It has one thread, learns nothing, and patches answers that stand ready: what it reaches is what
/// the kernel's TCP allows on this machine. It is no controller: it knows only the load's hosts.
#[derive(Debug, Args)]
pub(super) struct ResponderArgs {
    /// Where it listens
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6653")]
    pub(super) listen: String,

    /// How it waits for packets
    #[arg(long, value_name = "HOW", default_value = "sleep")]
    pub(super) idle: IdleArg,

    /// The core that it stays on
    #[arg(long, value_name = "CORE")]
    pub(super) core: Option<usize>,

    /// Answer echo requests and nothing else: a bare loop, to compare idle switches with
    #[arg(long)]
    pub(super) echo_only: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum IdleArg {
    /// It sleeps until one comes
    Sleep,
    /// It asks again and again: less delay, a whole core
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
    /// --rate packet_ins per second and switch; latency counts from when one was due
    Rate,
    /// Each switch connects, is known, disconnects, and connects again
    Connect,
    /// All switches connect at once, until the last is known; once a run
    Storm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum OrderArg {
    /// One after the other
    InOrder,
    /// Each as likely as any other
    Random,
    /// The k-th 1/k times as often as the first
    Zipf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum DestinationsArg {
    /// All to one host: its table entry never leaves the cache
    One,
    /// To each of the hosts that also send, as likely as to any other
    Uniform,
    /// To the k-th of them 1/k times as often as to the first
    Zipf,
}

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    /// The controller
    #[arg(long, short, value_name = "HOST:PORT", default_value = "127.0.0.1:6653")]
    pub(super) connect: String,

    /// What is measured
    #[arg(long, short, value_name = "MODE", default_value = "throughput")]
    pub(super) mode: ModeArg,

    /// Packet_ins in flight per switch, for --mode window
    #[arg(long, value_name = "N")]
    pub(super) in_flight: Option<u32>,

    /// Packet_ins per second and switch, for --mode rate
    #[arg(long, value_name = "N")]
    pub(super) rate: Option<f64>,

    /// Switches, up to 10,000
    #[arg(long, short, value_name = "N", default_value_t = 16)]
    pub(super) switches: u32,

    /// The version of OpenFlow that the switches speak
    #[arg(long, value_name = "VERSION", default_value = "1.0",
          value_parser = PossibleValuesParser::new(["1.0", "1.3"]))]
    pub(super) of: String,

    /// The switches do not buffer packets: each has to come back by a packet_out
    #[arg(long)]
    pub(super) unbuffered: bool,

    /// The switches send echo requests in place of packet_ins, as idle ones do
    #[arg(long, conflicts_with = "unbuffered")]
    pub(super) echoes: bool,

    /// Hosts of each switch, up to 10,000,000
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) macs: u32,

    /// In which order they send
    #[arg(long, value_name = "ORDER", default_value = "in-order")]
    pub(super) order: OrderArg,

    /// Where they send to
    #[arg(long, value_name = "WHICH", default_value = "one")]
    pub(super) dst: DestinationsArg,

    /// Where random choices start; the same makes the same packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Datapath id of the first switch, for several generators at one controller
    #[arg(long, value_name = "DPID", default_value_t = 1)]
    pub(super) first_dpid: u32,

    /// Threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) threads: usize,

    /// Cores that its threads stay on, in turn
    #[arg(long, value_name = "CORE,CORE", value_delimiter = ',')]
    pub(super) cores: Vec<usize>,

    /// Runs; the result is their median [default: 3]
    #[arg(long, value_name = "N")]
    pub(super) runs: Option<u32>,

    /// Seconds that each run measures
    #[arg(long, short, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub(super) duration: Duration,

    /// Seconds of load before each measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(super) warm_up: Duration,

    /// Switches that connect per second before the test; 0 for as fast as they can
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) ramp: u32,

    /// Seconds after which an answer counts as missing
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(super) answer_timeout: Duration,

    /// Seconds that the controller may take to learn all destinations
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(super) learn_timeout: Duration,

    /// Seconds that a switch may take until the controller knows it
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(super) connect_timeout: Duration,

    /// Measure the CPU time and memory of this process, the controller
    #[arg(long, value_name = "PID", conflicts_with = "controller")]
    pub(super) pid: Option<u32>,

    /// Start this controller, measure it, and end it
    ///
    /// The command is run by a shell that it takes the place of. A script has to `exec` the
    /// controller, since only the process itself is measured.
    #[arg(long, value_name = "COMMAND")]
    pub(super) controller: Option<String>,

    /// The core that this controller stays on
    #[arg(long, value_name = "CORE", requires = "controller")]
    pub(super) controller_core: Option<usize>,

    /// Compare with the canned responder, in so many pairs of runs in turn; 9 are enough
    ///
    /// The other one is started beside the controller, on the same core. The one whose turn it is not
    /// is stopped by a signal, if this command has started it: one of --pid goes on. --runs is then the
    /// runs of each half of a pair, 1 unless it is given.
    #[arg(long, value_name = "N", conflicts_with = "cbench")]
    pub(super) pairs: Option<u32>,

    /// Compare with this controller in place of the responder, under the same load; 9 pairs, unless
    /// --pairs says how many
    ///
    /// In the command {port} is the port on which it has to listen, {address} the same with 127.0.0.1:
    /// before it, {workers} the number of its threads, 1. A script has to `exec` it. Two are built in and
    /// need no command: ovs-testcontroller and os-ken; `scripts/tools install peers` installs them.
    #[arg(long, value_name = "NAME=COMMAND", conflicts_with = "cbench")]
    pub(super) peer: Option<String>,

    /// Estimate energy from this thermal design power where it cannot be measured
    #[arg(long, value_name = "WATTS")]
    pub(super) tdp_watts: Option<f64>,

    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "cbench")]
    pub(super) json: bool,

    /// Be cbench: its switches answer features, description, barriers and echoes only; print its
    /// last line instead of a table
    #[arg(long)]
    pub(super) cbench: bool,
}

/// Longest time that a measurement accepts.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// Reads a time, in seconds if it has no unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    values::time(text, Duration::ZERO..=MAX_TIME).map_err(|expected| format!("give {expected}"))
}
