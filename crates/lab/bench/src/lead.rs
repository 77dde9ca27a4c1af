//! The thread that leads a test. It starts the other threads, sets their phases, measures the cost
//! of the test, and makes the report.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bellrock_openflow::HEADER_LEN;
use hdrhistogram::Histogram;

use crate::control::{Latencies, RunControl, RunPhase, ThreadMeasurement, ThreadReport};
use crate::driver::Driver;
use crate::error::BenchError;
use crate::load::{GeneratorCores, Load, LoadMode};
use crate::packet;
use crate::report::{
    EnergyReport, Fairness, LatencyReport, LittlesLaw, RateBound, Report, RunReport,
};
use crate::threads::{allow_files, check_cores, pin};
use crate::usage::{self, ProcessCpu, ProcessUse, ReadCounter};
use crate::verify::AnswerTally;

const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Maximum length of a storm, in connect timeouts: failed connections are made again.
const STORM_TIMEOUTS: u32 = 6;

/// What is measured beside the load.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeasuredProcess {
    /// Process id of the controller.
    pub pid: Option<u32>,
    /// Thermal design power of the machine in watts. It estimates energy that cannot be measured.
    pub tdp_watts: Option<f64>,
}

/// Step of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestStep {
    /// Switches connect.
    Connecting,
    /// The controller learns the destinations.
    Learning,
    /// The load is on, not measured yet.
    WarmingUp,
    /// The load is on and measured.
    Measuring,
    /// The last answers come.
    Draining,
}

/// Progress of a test.
#[derive(Clone, Copy, Debug)]
pub struct TestProgress {
    /// The current step.
    pub step: TestStep,
    /// The number of the run, from 1; 0 before the first.
    pub run: u32,
    /// Switches that are up.
    pub up: u64,
    /// Flow set-ups or connections so far.
    pub done: u64,
    /// Elapsed share of the step's time, 0 to 1; `None` if the step has no fixed time.
    pub share: Option<f64>,
}

/// Puts a load on a controller and returns the report. Calls `progress` several times per second.
///
/// # Errors
/// Any error before the first run. A later error ends the test; [`Report::failure`] then holds it,
/// next to the results until then.
pub fn run(
    load: &Load,
    watch: &MeasuredProcess,
    progress: &mut dyn FnMut(TestProgress),
) -> Result<Report, BenchError> {
    ConnectedTest::begin(load, watch, Box::new(progress))?.runs()
}

/// A test whose switches are connected and whose destinations are known. It can run several times;
/// in between, the generator is silent.
pub struct ConnectedTest<'p> {
    lead: Lead<'p>,
    /// Counts of the messages of [`ConnectedTest::settle`], until the next run adds them.
    settled: AnswerTally,
}

impl<'p> ConnectedTest<'p> {
    /// Connects the switches. Waits until the controller knows the destinations.
    pub fn begin(
        load: &Load,
        watch: &MeasuredProcess,
        progress: Box<dyn FnMut(TestProgress) + 'p>,
    ) -> Result<Self, BenchError> {
        load.check()?;
        if let GeneratorCores::List(cores) = &load.cores {
            check_cores(cores)?;
        }
        if let Some(pid) = watch.pid {
            ProcessCpu::read(pid).map_err(|error| BenchError::Process { pid, error })?;
        }
        allow_files(load.switches)?;
        let mut lead = Lead::start(load, watch, progress)?;
        lead.prepare()?;
        Ok(ConnectedTest { lead, settled: AnswerTally::default() })
    }

    /// Sends the load for `duration` without measuring. Wrong answers count with the next run.
    pub fn settle(&mut self, duration: Duration) -> Result<(), BenchError> {
        if duration.is_zero() {
            return Ok(());
        }
        let mut collected = Collected::default();
        self.lead.enter_all(RunPhase::Load, TestStep::WarmingUp, &mut collected);
        self.lead.let_run(duration, &mut collected);
        self.lead.drain(&mut collected);
        self.settled.add(&collected.tally);
        collected.failure.map_or(Ok(()), Err)
    }

    /// Runs the load as often as it asks for.
    pub fn runs(&mut self) -> Result<Report, BenchError> {
        let load = Arc::clone(&self.lead.load);
        let mut runs = Vec::new();
        let mut latency = Latencies::new()?.take();
        let mut failure = None;
        for number in 1..=load.runs {
            let tally = std::mem::take(&mut self.settled);
            let outcome = self.lead.one_run(number, tally)?;
            runs.extend(outcome.run);
            merge(&mut latency, &outcome.latency);
            failure = outcome.failure.map(|error| error.to_string());
            if failure.is_some() {
                break;
            }
        }
        Ok(Report::new(&load, runs, latency, failure))
    }
}

/// Adds one histogram to another. Both have the same bounds, so no value is out of range.
fn merge(all: &mut Histogram<u64>, more: &Histogram<u64>) {
    let _ = all.add(more);
}

struct Lead<'p> {
    load: Arc<Load>,
    watch: MeasuredProcess,
    control: Arc<RunControl>,
    notes: Receiver<ThreadReport>,
    threads: Vec<JoinHandle<()>>,
    /// Number of threads that have not failed.
    live: usize,
    progress: Box<dyn FnMut(TestProgress) + 'p>,
    step: TestStep,
    run: u32,
}

/// What the threads report at the end of a run.
#[derive(Default)]
struct Collected {
    /// Number of threads that have completed the phase.
    ready: usize,
    measured: Vec<ThreadMeasurement>,
    tally: AnswerTally,
    failure: Option<BenchError>,
}

/// Result of one run, and the failure that made it the last.
struct RunResult {
    run: Option<RunReport>,
    latency: Histogram<u64>,
    failure: Option<BenchError>,
}

/// Readings before a measurement.
struct ReadingsBefore {
    at: Instant,
    controller: Option<ProcessCpu>,
    energy: Option<usage::EnergyCounters>,
}

/// Readings after a measurement.
struct ReadingsAfter {
    seconds: f64,
    controller: Option<ProcessUse>,
    joules: Option<f64>,
}

impl<'p> Lead<'p> {
    fn start(
        load: &Load,
        watch: &MeasuredProcess,
        progress: Box<dyn FnMut(TestProgress) + 'p>,
    ) -> Result<Self, BenchError> {
        let (sender, notes) = mpsc::channel();
        let count = load.threads.min(load.switches as usize);
        let mut lead = Lead {
            load: Arc::new(load.clone()),
            watch: *watch,
            control: Arc::new(RunControl::new()),
            notes,
            threads: Vec::new(),
            live: count,
            progress,
            step: TestStep::Connecting,
            run: 0,
        };
        for index in 0..count {
            let core = match &load.cores {
                GeneratorCores::Any => None,
                GeneratorCores::List(cores) => cores.get(index % cores.len().max(1)).copied(),
            };
            let (load, control) = (Arc::clone(&lead.load), Arc::clone(&lead.control));
            let notes = sender.clone();
            // Each thread allocates its own data, so that it is in the memory nearest to its core.
            let body = move || {
                let pinned = core.map_or(Ok(()), pin);
                let driver =
                    pinned.and_then(|()| Driver::new(load, control, notes.clone(), index, count));
                match driver {
                    Ok(driver) => driver.run(),
                    Err(error) => {
                        let tally = AnswerTally::default();
                        let _ = notes.send(ThreadReport::Failed { error, measured: None, tally });
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("generator-{index}"));
            let thread = thread.spawn(body).map_err(BenchError::system("start a thread"))?;
            lead.threads.push(thread);
        }
        Ok(lead)
    }

    /// Connects the switches. Waits until the controller knows the destinations.
    fn prepare(&mut self) -> Result<(), BenchError> {
        if self.load.mode.is_connecting() {
            return Ok(());
        }
        self.enter(RunPhase::Connect, TestStep::Connecting);
        self.all_ready(None, &mut Collected::default())?;
        self.enter(RunPhase::Learn, TestStep::Learning);
        self.all_ready(None, &mut Collected::default())
    }

    fn enter(&mut self, phase: RunPhase, step: TestStep) {
        self.step = step;
        self.control.enter(phase);
    }

    /// Enters a phase and waits until all threads are in it, so that no thread misses it.
    fn enter_all(&mut self, phase: RunPhase, step: TestStep, collected: &mut Collected) {
        self.enter(phase, step);
        let mut entered = 0;
        while entered < self.live && collected.failure.is_none() {
            let Some(note) = self.next_note(None, None) else { return };
            entered += usize::from(matches!(note, ThreadReport::Entered));
            self.take(note, collected);
        }
    }

    /// Waits until all threads have completed the phase.
    fn all_ready(
        &mut self,
        deadline: Option<Instant>,
        collected: &mut Collected,
    ) -> Result<(), BenchError> {
        while collected.ready < self.live {
            let Some(note) = self.next_note(deadline, None) else {
                let up = self.control.up.load(Ordering::Relaxed);
                return Err(BenchError::NeverAnswers {
                    what: "accept all switches again",
                    waited: self.load.connect_timeout * STORM_TIMEOUTS,
                    ready: up.min(self.load.switches.into()) as u32,
                    switches: self.load.switches,
                    hint: "see its log, or allow more time with --connect-timeout",
                });
            };
            self.take(note, collected);
            if let Some(error) = collected.failure.take() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the next note, or `None` at the deadline. Reports progress meanwhile.
    fn next_note(
        &mut self,
        deadline: Option<Instant>,
        from: Option<Instant>,
    ) -> Option<ThreadReport> {
        loop {
            let now = Instant::now();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let wait = left.unwrap_or(PROGRESS_EVERY).min(PROGRESS_EVERY);
            match self.notes.recv_timeout(wait) {
                Ok(note) => return Some(note),
                Err(RecvTimeoutError::Timeout) => {}
                // All threads have ended. This cannot happen without a note.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            let share = from.zip(deadline).map(|(from, deadline)| {
                from.elapsed().as_secs_f64() / (deadline - from).as_secs_f64()
            });
            (self.progress)(TestProgress {
                step: self.step,
                run: self.run,
                up: self.control.up.load(Ordering::Relaxed),
                done: self.control.done.load(Ordering::Relaxed),
                share,
            });
        }
    }

    /// Waits while the load runs for `duration`, or until a thread fails.
    fn let_run(&mut self, duration: Duration, collected: &mut Collected) {
        let from = Instant::now();
        let deadline = from + duration;
        while collected.failure.is_none() {
            match self.next_note(Some(deadline), Some(from)) {
                Some(note) => self.take(note, collected),
                None => return,
            }
        }
    }

    fn take(&mut self, note: ThreadReport, collected: &mut Collected) {
        match note {
            ThreadReport::Entered => {}
            ThreadReport::Ready => collected.ready += 1,
            ThreadReport::Measured(measured) => collected.measured.push(*measured),
            ThreadReport::Drained(tally) => collected.tally.add(&tally),
            ThreadReport::Failed { error, measured, tally } => {
                self.live -= 1;
                collected.measured.extend(measured.map(|measured| *measured));
                collected.tally.add(&tally);
                collected.failure.get_or_insert(error);
            }
        }
    }

    /// Does one run. `tally` counts the messages before it.
    fn one_run(&mut self, number: u32, tally: AnswerTally) -> Result<RunResult, BenchError> {
        self.run = number;
        let mut collected = Collected { tally, ..Collected::default() };
        let storm = self.load.mode == LoadMode::Storm;
        if !storm {
            self.enter_all(RunPhase::Load, TestStep::WarmingUp, &mut collected);
            self.let_run(self.load.warm_up, &mut collected);
        }
        let before = self.before();
        if collected.failure.is_none() {
            if storm {
                self.control.up.store(0, Ordering::Relaxed);
            }
            self.enter_all(RunPhase::Measure, TestStep::Measuring, &mut collected);
            if storm && collected.failure.is_none() {
                let deadline = Instant::now() + self.load.connect_timeout * STORM_TIMEOUTS;
                self.all_ready(Some(deadline), &mut collected)?;
            } else if !storm {
                self.let_run(self.load.duration, &mut collected);
            }
        }
        let after = self.after(&before);
        self.drain(&mut collected);
        self.outcome(collected, &after)
    }

    fn drain(&mut self, collected: &mut Collected) {
        self.enter(RunPhase::Drain, TestStep::Draining);
        let mut drained = 0;
        while drained < self.live {
            let Some(note) = self.next_note(None, None) else { return };
            drained += usize::from(matches!(note, ThreadReport::Drained(_)));
            self.take(note, collected);
        }
    }

    fn before(&self) -> ReadingsBefore {
        // The process existed at the start. If it has ended since, there are no figures of it.
        let controller = self.watch.pid.and_then(|pid| ProcessCpu::read(pid).ok());
        let energy = usage::EnergyCounters::read();
        ReadingsBefore { at: Instant::now(), controller, energy }
    }

    fn after(&self, before: &ReadingsBefore) -> ReadingsAfter {
        let elapsed = before.at.elapsed();
        let controller = self.watch.pid.zip(before.controller.as_ref());
        ReadingsAfter {
            seconds: elapsed.as_secs_f64(),
            controller: controller.and_then(|(pid, cpu)| ProcessUse::since(pid, cpu, elapsed).ok()),
            joules: before.energy.as_ref().and_then(usage::EnergyCounters::joules_since),
        }
    }

    fn outcome(
        &self,
        collected: Collected,
        after: &ReadingsAfter,
    ) -> Result<RunResult, BenchError> {
        let Collected { mut measured, tally, failure, .. } = collected;
        measured.sort_by_key(|one| one.thread);
        let mut latency = Latencies::new()?.take();
        let mut lateness = latency.clone();
        for one in &measured {
            merge(&mut latency, &one.latency);
            merge(&mut lateness, &one.lateness);
        }
        let complete = failure.is_none();
        let run = (!measured.is_empty()).then(|| {
            let run = self.run_of(&measured, after, &latency, &lateness);
            RunReport { complete, tally, ..run }
        });
        Ok(RunResult { run, latency, failure })
    }

    fn run_of(
        &self,
        measured: &[ThreadMeasurement],
        after: &ReadingsAfter,
        latency: &Histogram<u64>,
        lateness: &Histogram<u64>,
    ) -> RunReport {
        let seconds = |one: &ThreadMeasurement| one.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let rates = |one: &ThreadMeasurement| -> Vec<f64> {
            one.done.iter().map(|done| *done as f64 / seconds(one)).collect()
        };
        let by_thread: Vec<Vec<f64>> = measured.iter().map(rates).collect();
        // Thread `i` of `n` has every `n`-th switch.
        let most = by_thread.iter().map(Vec::len).max().unwrap_or(0);
        let nth = |nth| by_thread.iter().filter_map(move |rates| rates.get(nth).copied());
        let per_switch: Vec<f64> = (0..most).flat_map(nth).collect();
        let done: u64 = measured.iter().flat_map(|one| &one.done).sum();
        let rate: f64 = per_switch.iter().sum();
        let busy: Vec<f64> =
            measured.iter().map(|one| one.cpu.as_secs_f64() / seconds(one)).collect();
        let busiest = busy.iter().copied().fold(0.0, f64::max);
        let controller = after.controller.clone();
        let each = |seconds: fn(&ProcessUse) -> f64| {
            let used = controller.as_ref().filter(|_| done > 0);
            used.map(|used| seconds(used) * 1e9 / done as f64)
        };
        let sent_bytes = done
            * match self.load.echoes {
                true => HEADER_LEN,
                false => packet::packet_in_len(self.load.version),
            } as u64;
        let reads = ReadCounter {
            calls: measured.iter().map(|one| one.reads.calls).sum(),
            bytes: measured.iter().map(|one| one.reads.bytes).sum(),
        };
        let latency = LatencyReport::of(latency);
        RunReport {
            complete: true,
            seconds: measured.iter().map(seconds).fold(0.0, f64::max),
            done,
            rate,
            fairness: Fairness::of(&per_switch),
            per_switch,
            little: self.little(rate, latency.as_ref()),
            latency,
            lateness: LatencyReport::of(lateness),
            tally: AnswerTally::default(),
            failed_connections: measured.iter().map(|one| one.failed_connections).sum(),
            generator_cpu_s: measured.iter().map(|one| one.cpu.as_secs_f64()).sum(),
            generator_threads: busy,
            generator_bytes_per_read: reads.bytes as f64 / reads.calls.max(1) as f64,
            controller_cpu_ns: each(|used| used.cpu_s),
            controller_user_ns: each(|used| used.user_s),
            controller_system_ns: each(|used| used.system_s),
            controller_bytes_per_read: controller
                .as_ref()
                .and_then(|used| used.bytes_per_read(sent_bytes)),
            bound: RateBound::of(
                self.load.mode,
                busiest,
                controller.as_ref().map(|used| used.busiest_thread),
                match self.load.mode {
                    LoadMode::Rate(each) => rate / (each * f64::from(self.load.switches)),
                    _ => 1.0,
                },
            ),
            controller,
            energy: EnergyReport::of(after.joules, self.watch.tdp_watts, after.seconds, done),
        }
    }

    /// Checks Little's law in the modes with a fixed number of packet_ins in flight.
    fn little(&self, rate: f64, latency: Option<&LatencyReport>) -> Option<LittlesLaw> {
        match self.load.mode {
            LoadMode::Window(_) | LoadMode::Latency => Some(LittlesLaw {
                asked: f64::from(self.load.in_flight()) * f64::from(self.load.switches),
                measured: rate * latency?.mean / 1e9,
            }),
            _ => None,
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.control.enter(RunPhase::Close);
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it on standard error.
            let _ = thread.join();
        }
    }
}
