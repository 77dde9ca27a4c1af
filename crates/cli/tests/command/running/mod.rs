//! Processes of the command under test, which end with the test.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time limit of every wait of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two checks of a wait.
pub(crate) const GRAIN: Duration = Duration::from_millis(10);

/// The command, without our settings in its environment.
pub(crate) fn bellrock(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellrock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLROCK_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Exit status, standard output and standard error.
pub(crate) fn output(command: &mut Command) -> (i32, String, String) {
    told(command.output().unwrap())
}

pub(crate) fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let Output { status, stdout, stderr } = output;
    (status.code().expect("it exits by itself"), text(stdout), text(stderr))
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{what}: it does not happen");
        thread::sleep(GRAIN);
    }
}

/// A free port of the loopback.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// A directory for a test, removed at the end.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.file(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process, killed at the end of the test if it still runs.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the process", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running controller with the learning switch.
pub(crate) struct Controller {
    process: Running,
    pub(crate) control: String,
    pub(crate) address: SocketAddr,
}

impl Controller {
    /// Starts it on a free port.
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), place, arguments)
    }

    pub(crate) fn start_at(listen: SocketAddr, place: &Place, arguments: &[&str]) -> Self {
        let (control, listen) = (place.file("control.sock"), listen.to_string());
        let mut command = bellrock(&["run", "--listen", &listen, "--control", &control]);
        command.args(["--workers", "2", "--pin", "none", "--idle", "sleep"]).args(arguments);
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut process = Running(command.spawn().unwrap());
        until("a control socket", || {
            if let Some(status) = process.0.try_wait().unwrap() {
                let mut log = String::new();
                process.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
                panic!("the controller ended at once: {status}: {log}");
            }
            Path::new(&control).exists()
        });
        let mut controller = Controller { process, control, address: free_address() };
        let address = controller.ask("status")["listen"][0].as_str().unwrap().to_owned();
        controller.address = address.parse().unwrap();
        controller
    }

    pub(crate) fn ask(&self, question: &str) -> Value {
        let arguments = [question, "--json", "--control", &self.control];
        let (status, text, error) = output(&mut bellrock(&arguments));
        assert_eq!((status, error.as_str()), (0, ""), "{question}");
        serde_json::from_str(&text).unwrap()
    }

    /// A command that asks it.
    pub(crate) fn command(&self, question: &str) -> Command {
        bellrock(&[question, "--control", &self.control])
    }

    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// The lines of its log, as they come. `stop` returns none of them.
    pub(crate) fn log_lines(&mut self) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel();
        let log = BufReader::new(self.process.0.stderr.take().unwrap());
        thread::spawn(move || {
            log.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        lines
    }

    /// Ends it with SIGTERM, as service managers do. Returns its log.
    pub(crate) fn stop(mut self) -> String {
        self.process.signal("TERM");
        assert_eq!(self.process.ended().code(), Some(0), "exit status after SIGTERM");
        let mut log = String::new();
        self.process.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }
}
