//! A terminal for a process of a test: a pseudo-terminal of the kernel.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::running::{GRAIN, PATIENCE, Running};

/// Both ends of a terminal: the slave for the process, and the master for the test.
pub(crate) struct Pty {
    master: File,
    slave: OwnedFd,
    /// All output of the process, and the length that was examined.
    seen: String,
    looked: usize,
}

impl Pty {
    pub(crate) fn open(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&*name, flags, Mode::empty()).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
        Pty { master: master.into(), slave, seen: String::new(), looked: 0 }
    }

    /// Starts a process with this terminal as its standard streams.
    pub(crate) fn start(&self, mut command: Command) -> Running {
        let end = || self.slave.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        Running(command.spawn().unwrap())
    }

    /// Starts a process with this as its controlling terminal, so that keys cause signals.
    pub(crate) fn start_session(&self, command: Command) -> Running {
        let mut session = Command::new("setsid");
        session.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        self.start(session)
    }

    /// Waits until keys cause signals, which they do not while a line is edited.
    pub(crate) fn until_cooked(&self) {
        crate::running::until("signals", || {
            let modes = tcgetattr(&self.slave).unwrap().local_modes;
            modes.contains(rustix::termios::LocalModes::ISIG)
        });
    }

    /// The modes of the terminal: echo, line editing, signals. The speed is left out: it means
    /// nothing here, and the kernel changes it when other modes are set.
    pub(crate) fn modes(&self) -> String {
        let Termios { input_modes, output_modes, local_modes, .. } =
            tcgetattr(&self.slave).unwrap();
        format!("{input_modes:?} {output_modes:?} {local_modes:?}")
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the process has written this text, after the text of the previous wait.
    pub(crate) fn read_until(&mut self, text: &str) {
        let began = Instant::now();
        loop {
            self.read();
            if let Some(at) = self.seen[self.looked..].find(text) {
                self.looked += at + text.len();
                return;
            }
            assert!(began.elapsed() < PATIENCE, "no {text:?} in {:?}", self.tail());
            std::thread::sleep(GRAIN);
        }
    }

    /// The end of the output, for the message of a failed test.
    fn tail(&self) -> &str {
        let start = self.seen.len().saturating_sub(2000);
        self.seen.get(start..).unwrap_or(&self.seen)
    }

    /// Reads and returns all output so far.
    pub(crate) fn read(&mut self) -> &str {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = self.master.read(&mut bytes) {
            // A character that is cut in the middle does not matter to any test.
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        &self.seen
    }
}
