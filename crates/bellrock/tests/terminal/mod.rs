//! A terminal for a process of the test: a pseudo-terminal of the kernel's.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::running::{GRAIN, PATIENCE, Running};

/// Both ends of a terminal. Its process has the slave, the test the master.
pub(crate) struct Pty {
    master: File,
    slave: OwnedFd,
    /// All that was written to the terminal, and how much of it was looked at.
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

    /// Starts a process with this as its controlling terminal, so that its keys make signals.
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

    /// Waits until keys make signals, which they do not while a line is edited.
    pub(crate) fn until_cooked(&self) {
        crate::running::until("signals", || {
            let modes = tcgetattr(&self.slave).unwrap().local_modes;
            modes.contains(rustix::termios::LocalModes::ISIG)
        });
    }

    /// How the terminal is set: echo, line editing, signals. Its speed, which means nothing here, the
    /// kernel writes out when the rest is set.
    pub(crate) fn modes(&self) -> String {
        let Termios { input_modes, output_modes, local_modes, .. } =
            tcgetattr(&self.slave).unwrap();
        format!("{input_modes:?} {output_modes:?} {local_modes:?}")
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the process has written this, behind what was waited for before.
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

    /// The end of what was written, for the message of a test that fails.
    fn tail(&self) -> &str {
        let start = self.seen.len().saturating_sub(2000);
        self.seen.get(start..).unwrap_or(&self.seen)
    }

    /// All that was written so far.
    pub(crate) fn read(&mut self) -> &str {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = self.master.read(&mut bytes) {
            // What is cut in the middle of a character is not looked for.
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        &self.seen
    }
}
