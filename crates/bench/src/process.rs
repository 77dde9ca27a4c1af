//! A controller that the generator starts itself, so that it knows its process, and that it ends
//! again.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;
use crate::threads::{check_cores, keep_on};

/// Time that a controller has to end after SIGTERM, before it gets SIGKILL.
const END_WAIT: Duration = Duration::from_secs(5);

/// Between two looks whether it listens, or has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The controllers that run, for a program that has to end at once.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A controller that was started. Dropping it ends it.
#[derive(Debug)]
pub struct Controller {
    child: Child,
}

impl Controller {
    /// Starts a command line by `sh`, on cores of its own if some are named, and waits until
    /// somebody listens on `address`. What it prints goes to standard error.
    ///
    /// The process that is measured is that of the command: one that starts the controller and
    /// waits for it (a script) measures nothing; such a script has to `exec` it.
    ///
    /// # Errors
    /// It cannot be started, it ends, or nobody listens in time. Nothing is left behind then.
    pub fn start(
        command_line: &str,
        cores: &[usize],
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<Self, BenchError> {
        check_cores(cores)?;
        if TcpStream::connect_timeout(&address, LOOK_EVERY).is_ok() {
            return Err(BenchError::AlreadyListens(address));
        }
        let failed = |error| BenchError::StartController {
            command_line: command_line.to_owned(),
            why: error,
        };
        let child = spawn(command_line, cores)
            .map_err(|error| failed(format!("it cannot be started: {error}")))?;
        let mut controller = Controller { child };
        running().push(controller.pid());
        let start = Instant::now();
        while TcpStream::connect_timeout(&address, LOOK_EVERY).is_err() {
            if let Ok(Some(status)) = controller.child.try_wait() {
                return Err(failed(format!("it ended ({status}) before it listened")));
            }
            if start.elapsed() > timeout {
                return Err(failed(format!("nobody listens on {address} after {timeout:?}")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(controller)
    }

    /// Tells all that run to end, without waiting for it: for a program that a signal ends, and that
    /// drops nothing.
    pub fn end_all() {
        for pid in running().drain(..) {
            signal(pid, Signal::TERM);
            // One that is stopped while it is not its turn would never get it.
            signal(pid, Signal::CONT);
        }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to a process of ours.
fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, signal));
}

/// A process inherits the cores of the thread that starts it, so there is one for that.
fn spawn(command_line: &str, cores: &[usize]) -> io::Result<Child> {
    let mut command = Command::new("sh");
    // Standard output is the report's.
    command.arg("-c").arg(format!("exec {command_line} >&2")).stdin(Stdio::null());
    std::thread::scope(|scope| {
        let spawned = scope.spawn(|| {
            keep_on(cores).map_err(io::Error::other)?;
            command.spawn()
        });
        spawned.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    })
}

impl Drop for Controller {
    fn drop(&mut self) {
        running().retain(|pid| *pid != self.pid());
        // If it has ended already, the signal finds nobody: its id is ours until it is waited for.
        signal(self.pid(), Signal::TERM);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > END_WAIT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// A process that is stopped until this is dropped.
#[derive(Debug)]
pub(crate) struct Stopped(Option<Pid>);

impl Stopped {
    /// Stops one of ours. One that has ended is no error here; it shows when it is measured.
    pub(crate) fn new(pid: u32) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::STOP));
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.map(|pid| kill_process(pid, Signal::CONT));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    fn free_address() -> SocketAddr {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
    }

    #[test]
    fn a_command_that_ends_or_never_listens_is_told_of() {
        let start = |command, timeout| {
            let timeout = Duration::from_millis(timeout);
            Controller::start(command, &[], free_address(), timeout).unwrap_err().to_string()
        };
        let ended = start("sh -c 'exit 3'", 10_000);
        assert!(ended.contains("it ended (exit status: 3) before it listened"), "{ended}");
        let silent = start("sleep 60", 100);
        assert!(silent.contains("nobody listens on 127.0.0.1:"), "{silent}");
    }

    #[test]
    fn an_address_that_is_taken_is_told_of() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let timeout = Duration::from_secs(1);
        let error = Controller::start("sleep 60", &[], address, timeout).unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
    }
}
