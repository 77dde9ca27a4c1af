//! Uneven load (Maestro's case): two workers, with all busy switches on one of them. Measures the
//! rate while they stay there, and after the overloaded worker has handed half of them over.
//!
//! `cargo bench -p bellrock-cli --bench hand_over`, with `-- --pairs N` for N pairs of
//! runs. It needs two cores, which the generator shares. So the app does some microseconds of work
//! for each packet, since the learning switch alone is faster than the generator's share of a core.
//! Every answer is verified. Runs without and with hand-over take turns.

use std::error::Error;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{ErrorMessage, PortStatus};
use bellrock_api::runtime::Chain;
use bellrock_api::{
    App, Handler, Network, PacketIn, Result, Switch, SwitchInfo, Verdict, Version, Xid,
};
use bellrock_apps::Learning;
use bellrock_bench::{Load, LoadMode, MeasuredProcess, TestStep, run};
use bellrock_engine::{Engine, EngineSettings, Monitor};
use bellrock_tables::Budget;

const SWITCHES: u32 = 16;

/// Steps of work for each packet. Each depends on the one before; all take some 10 microseconds.
const WORK_STEPS: u32 = 8000;

/// Time for all switches to move to one worker, and for that worker to notice its overload.
const WARM_UP: Duration = Duration::from_millis(1500);

/// Longer than the generator waits for its switches to come up.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// Default number of pairs of runs, and measured time of each run.
const PAIRS: usize = 5;
const MEASURED: Duration = Duration::from_secs(1);

/// The learning switch, with added work.
struct Costly(Learning);

struct CostlySwitch(<Learning as App>::Handler);

impl App for Costly {
    type Handler = CostlySwitch;

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> CostlySwitch {
        CostlySwitch(self.0.switch_up(network, switch))
    }
}

impl Handler for CostlySwitch {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        let mut state = 1_u64;
        for _ in 0..WORK_STEPS {
            state = black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (state >> 7));
        }
        self.0.packet_in(switch, packet)
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        self.0.port_status(switch, status)
    }

    fn error(&mut self, switch: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        self.0.error(switch, xid, error)
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.0.tick(switch)
    }
}

/// Results of a run.
struct Measured {
    rate: f64,
    /// Number of switches of each worker at the end.
    spread: Vec<usize>,
    handed_over: u64,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    // Cargo passes `--test` when it only checks that the program runs.
    let test = std::env::args().any(|argument| argument == "--test");
    let (pairs, warm_up, measured) = match test {
        true => (1, Duration::ZERO, MEASURED / 20),
        false => (asked_pairs()?, WARM_UP, MEASURED),
    };
    println!("{SWITCHES} switches, all on one of two workers; {WORK_STEPS} steps of work a packet");
    println!(
        "{:>5} {:>12} {:>12} {:>7}   after: switches of each worker",
        "pair", "before/s", "after/s", "ratio"
    );
    let mut ratios = Vec::new();
    for pair in 1..=pairs {
        let before = measure(false, warm_up, measured)?;
        let after = measure(true, warm_up, measured)?;
        let ratio = after.rate / before.rate;
        println!(
            "{pair:>5} {:>12.0} {:>12.0} {ratio:>7.2}   {:?}, {} handed over",
            before.rate, after.rate, after.spread, after.handed_over,
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "after the hand-over {:.2} times the rate before (median; {:.2} to {:.2})",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
    );
    Ok(())
}

/// The number after `--pairs` on the command line.
fn asked_pairs() -> std::result::Result<usize, Box<dyn Error>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--pairs").skip(1);
    let Some(number) = arguments.next() else { return Ok(PAIRS) };
    let number = number.parse().ok().filter(|pairs| *pairs > 0);
    number.ok_or_else(|| "--pairs needs a number, at least 1".into())
}

fn measure(
    hand_over: bool,
    warm_up: Duration,
    measured: Duration,
) -> std::result::Result<Measured, Box<dyn Error>> {
    let mut settings = EngineSettings {
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        workers: 2,
        ..EngineSettings::default()
    };
    settings.worker.hand_over = hand_over;
    let app = Costly(Learning::new(Default::default(), &Budget::unlimited()));
    let engine = Engine::start(&settings, Chain::of_app(app))?;
    let monitor = engine.monitor();
    let gather = std::thread::spawn({
        let monitor = monitor.clone();
        move || all_to_the_first(&monitor)
    });
    let load = Load {
        target: engine.addresses()[0],
        version: Version::V1_0,
        switches: SWITCHES,
        mode: LoadMode::Window(32),
        warm_up,
        duration: measured,
        runs: 1,
        answer_timeout: Duration::from_secs(10),
        ..Load::default()
    };
    let mut spread = Vec::new();
    let report = run(&load, &MeasuredProcess::default(), &mut |progress| {
        if progress.step == TestStep::Measuring {
            spread = spread_of(&monitor);
        }
    })?;
    let forced = gather.join().map_err(|_| "the switches could not be gathered")?;
    let handed_over: u64 = monitor
        .worker_counters()
        .into_iter()
        .flatten()
        .filter_map(|(name, n)| (name == "switches_handed_over").then_some(n))
        .sum();
    engine.stop();
    if let Some(failure) = report.failure {
        return Err(failure.into());
    }
    if !report.summary.tally.is_clean() {
        return Err(format!("not all answers were right: {:?}", report.summary.tally).into());
    }
    let handed_over = handed_over.saturating_sub(forced);
    Ok(Measured { rate: report.summary.rate.median, spread, handed_over })
}

/// Waits until all switches are up, and moves them to the first worker. Returns the number moved.
fn all_to_the_first(monitor: &Monitor) -> u64 {
    let deadline = Instant::now() + CONNECT_PATIENCE;
    while monitor.switches().len() < SWITCHES as usize && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let elsewhere: Vec<_> = monitor
        .switches()
        .iter()
        .map(|info| info.dpid)
        .filter(|dpid| monitor.worker_of(*dpid) != Some(0))
        .collect();
    elsewhere.iter().filter(|dpid| monitor.hand_over(**dpid, 0)).count() as u64
}

fn spread_of(monitor: &Monitor) -> Vec<usize> {
    let mut spread = vec![0; 2];
    for info in monitor.switches() {
        if let Some(its) = monitor.worker_of(info.dpid).and_then(|worker| spread.get_mut(worker)) {
            *its += 1;
        }
    }
    spread
}
