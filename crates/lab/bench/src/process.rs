//! A controller that the generator itself starts and ends, so that its process id is known.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;
use crate::threads::{check_cores, keep_on};

/// Time for a controller to end after SIGTERM, before it gets SIGKILL.
const END_WAIT: Duration = Duration::from_secs(5);

/// Interval of checks whether it listens or has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Maximum time of one check.
const LOOK_TIME: Duration = Duration::from_millis(50);

/// Controllers that were started and not waited for yet, so their process ids are valid. Signals
/// and waits both need the lock. Otherwise a signal might hit another process that got the id
/// meanwhile.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A controller that was started. Dropping it ends the process.
#[derive(Debug)]
pub struct ControllerProcess {
    child: Child,
}

impl ControllerProcess {
    /// Starts a command line with `sh`, on `cores` if any are given. Waits until something listens
    /// on `address`. The output of the command goes to standard error.
    ///
    /// The command's own process is measured. A script has to `exec` the controller; one that
    /// starts it and waits would be measured in its place.
    ///
    /// # Errors
    /// It cannot be started, it ends, or nothing listens in time. Nothing is left behind then.
    pub fn start(
        command_line: &str,
        cores: &[usize],
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<Self, BenchError> {
        check_cores(cores)?;
        if TcpStream::connect_timeout(&address, LOOK_TIME).is_ok() {
            return Err(BenchError::AlreadyListens(address));
        }
        let failed = |error| BenchError::StartController {
            command_line: command_line.to_owned(),
            why: error,
        };
        let child = spawn(command_line, cores)
            .map_err(|error| failed(format!("it cannot be started: {error}")))?;
        let mut controller = ControllerProcess { child };
        running().push(controller.pid());
        let start = Instant::now();
        while TcpStream::connect_timeout(&address, LOOK_TIME).is_err() {
            if let Some(status) = controller.ended() {
                return Err(failed(format!("it ended ({status}) before it listened")));
            }
            if start.elapsed() > timeout {
                return Err(failed(format!("nothing listens on {address} after {timeout:?}")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(controller)
    }

    /// Asks all running processes to end, without waiting. For a program that is ended by a signal
    /// and drops nothing.
    pub fn end_all() {
        let running = running();
        running.iter().for_each(|pid| end(*pid));
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns how the process ended, if it has. From then on, its id may belong to another
    /// process.
    fn ended(&mut self) -> Option<String> {
        let mut running = running();
        let how = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        running.retain(|pid| *pid != self.child.id());
        Some(how)
    }
}

/// Returns an address of this machine with a free port.
///
/// # Errors
/// No port is free.
pub fn free_address() -> Result<SocketAddr, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_err(BenchError::system("find a free port"))
}

fn end(pid: u32) {
    signal(pid, Signal::TERM);
    // A stopped process gets SIGTERM only after SIGCONT.
    signal(pid, Signal::CONT);
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to a process that this program started.
fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, signal));
}

/// Starts the process on a thread pinned to `cores`: a process inherits the cores of its thread.
fn spawn(command_line: &str, cores: &[usize]) -> io::Result<Child> {
    let mut command = Command::new("sh");
    // Standard output is for the report.
    command.arg("-c").arg(format!("exec {command_line} >&2")).stdin(Stdio::null());
    std::thread::scope(|scope| {
        let spawned = scope.spawn(|| {
            keep_on(cores).map_err(io::Error::other)?;
            command.spawn()
        });
        spawned.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    })
}

impl Drop for ControllerProcess {
    fn drop(&mut self) {
        let running = running();
        if running.contains(&self.pid()) {
            end(self.pid());
        }
        drop(running);
        let start = Instant::now();
        while self.ended().is_none() {
            if start.elapsed() > END_WAIT {
                // `kill` does not signal a process that was waited for.
                let _ = self.child.kill();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// A controller of this program that is stopped until this is dropped.
#[derive(Debug)]
pub(crate) struct PausedProcess(u32);

impl PausedProcess {
    /// Stops the process. If it has ended, there is no error here: the measurement will show it. A
    /// process that this program has not started is left alone.
    pub(crate) fn new(pid: u32) -> Self {
        let running = running();
        if running.contains(&pid) {
            signal(pid, Signal::STOP);
        }
        PausedProcess(pid)
    }
}

impl Drop for PausedProcess {
    fn drop(&mut self) {
        let running = running();
        if running.contains(&self.0) {
            signal(self.0, Signal::CONT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_ends_or_never_listens_is_told_of() {
        let start = |command, timeout| {
            let timeout = Duration::from_millis(timeout);
            ControllerProcess::start(command, &[], free_address().unwrap(), timeout)
                .unwrap_err()
                .to_string()
        };
        let ended = start("sh -c 'exit 3'", 10_000);
        assert!(ended.contains("it ended (exit status: 3) before it listened"), "{ended}");
        let silent = start("sleep 60", 100);
        assert!(silent.contains("nothing listens on 127.0.0.1:"), "{silent}");
    }

    #[test]
    fn an_address_that_is_taken_is_told_of() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let timeout = Duration::from_secs(1);
        let error = ControllerProcess::start("sleep 60", &[], address, timeout).unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
    }

    /// The state letter of a process, as in ps(1); `None` if there is no such process.
    fn state(pid: u32) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    fn wait_for(what: impl Fn() -> bool) {
        let start = Instant::now();
        while !what() {
            assert!(start.elapsed() < Duration::from_secs(30), "it takes too long");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn sleeper() -> ControllerProcess {
        let child = spawn("sleep 600", &[]).unwrap();
        running().push(child.id());
        ControllerProcess { child }
    }

    #[test]
    fn one_that_is_stopped_goes_on_and_ends() {
        let controller = sleeper();
        let pid = controller.pid();
        let stopped = PausedProcess::new(pid);
        wait_for(|| state(pid) == Some('T'));
        drop(stopped);
        wait_for(|| state(pid) != Some('T'));
        let _stopped = PausedProcess::new(pid);
        drop(controller);
        assert_eq!(state(pid), None, "it has ended though it was stopped");
    }

    #[test]
    fn an_id_that_was_given_back_gets_no_signal() {
        let mut controller = sleeper();
        let pid = controller.pid();
        controller.child.kill().unwrap();
        wait_for(|| controller_ended(pid));
        assert!(controller.ended().is_some());
        assert!(!running().contains(&pid), "nobody sends it a signal any more");
        assert_eq!(controller.ended(), controller.ended(), "it may be asked again");
        // This program's own process: not started by it.
        let _not_stopped = PausedProcess::new(std::process::id());
    }

    /// Whether the process is a zombie: ended, and not waited for.
    fn controller_ended(pid: u32) -> bool {
        state(pid) == Some('Z')
    }
}
