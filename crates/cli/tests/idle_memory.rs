//! The memory of an idle switch.
//!
//! The controller is the built command in its own process. The switches are the session's switch
//! ends on TCP. The test compares the resident memory that the kernel reports before and after many
//! switches connect. So it includes unused memory of the allocator and of the worker's tables.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use bellrock_openflow::{
    Capabilities, FixedStr, FromSwitch, List, MacAddr, MultipartReply, Out, Port, PortDesc,
    ReplyBody, RequestBody, ToSwitch, Version,
};
use bellrock_session::{SwitchDescription, Versions, switch};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Maximum memory of an idle switch.
const MAX_BYTES: u64 = 8 << 10;
/// Ports of each switch.
const PORTS: u32 = 48;
/// Switches connected before the measurement. The first ones pay for what all share.
const FIRST: u64 = 50;
/// Switches in the measurement.
const MEASURED: u64 = 1_000;
/// Limit of open files that two tests at once need in this process.
const OPEN_FILES: u64 = 4_096;
/// Time limit for the start, and for all switches to come up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two checks for input.
const PAUSE: Duration = Duration::from_millis(1);
/// Idle time before the measurement: several turns of every timer that runs each second.
const IDLE: Duration = Duration::from_secs(3);
/// Maximum number of bytes read or written at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// A controller with its own control socket, which ends with the test.
struct Controller {
    process: Child,
    control: PathBuf,
}

impl Controller {
    /// Starts it on a free port.
    fn start(name: &str) -> Result<Controller> {
        let file = format!("bellrock-idle-{name}-{}.sock", std::process::id());
        let control = std::env::temp_dir().join(file);
        let process = Command::new(env!("CARGO_BIN_EXE_bellrock"))
            .args(["run", "--listen", "127.0.0.1:0", "--log-level", "error", "--control"])
            .arg(&control)
            .spawn()?;
        Ok(Controller { process, control })
    }

    /// The output of `bellrock status`, or an error until the controller answers.
    fn status(&self) -> Result<serde_json::Value> {
        let answer = Command::new(env!("CARGO_BIN_EXE_bellrock"))
            .args(["status", "--json", "--control"])
            .arg(&self.control)
            .output()?;
        if !answer.status.success() {
            return Err(String::from_utf8_lossy(&answer.stderr).into());
        }
        Ok(serde_json::from_slice(&answer.stdout)?)
    }

    /// The address on which it listens. Waits until it does.
    fn address(&self) -> Result<SocketAddr> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.status() {
                Ok(status) => {
                    return Ok(status["listen"][0].as_str().ok_or("no address")?.parse()?);
                }
                Err(error) if Instant::now() >= end => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Its resident memory. `status` and `statm` may lag; `smaps_rollup` does not.
    fn resident_bytes(&self) -> Result<u64> {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.process.id()))?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).ok_or("no Rss")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Errors are ignored: if it has ended already, the test has failed for that reason.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.control);
    }
}

/// A switch with its connection.
struct Connected {
    stream: TcpStream,
    switch: switch::SwitchSession,
    unread: Vec<u8>,
}

impl Connected {
    fn open(to: SocketAddr, dpid: u64, version: Version, out: &mut Out) -> Result<Connected> {
        let switch = switch::SwitchSession::new(description(dpid), Versions::only(version), out)?;
        let stream = TcpStream::connect(to)?;
        stream.set_nonblocking(true)?;
        let mut connected = Connected { stream, switch, unread: Vec::new() };
        connected.write(out)?;
        Ok(connected)
    }

    /// Answers all input. Returns whether there was any.
    fn turn(&mut self, buffer: &mut [u8], out: &mut Out) -> Result<bool> {
        let read = match self.stream.read(buffer) {
            Ok(0) => return Err("the controller closed a connection".into()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        self.unread.extend_from_slice(buffer.get(..read).ok_or("read more than there was")?);
        let mut taken = 0;
        while let Some(rest) = self.unread.get(taken..)
            && let Some((bytes, event)) = self.switch.next(rest, out)?
        {
            taken += bytes;
            // It has no flows, and says so when it is asked.
            if let switch::SwitchSessionEvent::Message {
                xid,
                body: ToSwitch::MultipartRequest(request),
            } = event
                && let RequestBody::Flow(_) = request.body
            {
                let none = MultipartReply::of(ReplyBody::Flow(List::empty()));
                self.switch.send(xid, &FromSwitch::MultipartReply(none), out)?;
            }
        }
        self.unread.drain(..taken);
        self.write(out)?;
        Ok(true)
    }

    /// Writes to the connection, whose empty buffers always have space for these few bytes.
    fn write(&mut self, out: &mut Out) -> Result<()> {
        self.stream.write_all(out.as_slice())?;
        out.clear();
        Ok(())
    }
}

/// All switches of a test.
struct Switches<'c> {
    controller: &'c Controller,
    version: Version,
    address: SocketAddr,
    all: Vec<Connected>,
    buffer: Vec<u8>,
    out: Out,
}

impl<'c> Switches<'c> {
    fn of(controller: &'c Controller, version: Version) -> Result<Switches<'c>> {
        let (buffer, out) = (vec![0; BUFFER_BYTES], Out::with_capacity(BUFFER_BYTES));
        let address = controller.address()?;
        Ok(Switches { controller, version, address, all: Vec::new(), buffer, out })
    }

    /// Connects `more` switches, waits until they are up, and lets them be idle for a while.
    fn connect(&mut self, more: u64) -> Result<()> {
        let first = self.all.len() as u64 + 1;
        for dpid in first..first + more {
            self.all.push(Connected::open(self.address, dpid, self.version, &mut self.out)?);
            self.turn()?;
        }
        let end = Instant::now() + PATIENCE;
        while self.up()? < self.all.len() as u64 {
            if Instant::now() >= end {
                return Err(format!("{} of {} switches are up", self.up()?, self.all.len()).into());
            }
            while self.turn()? {}
        }
        let end = Instant::now() + IDLE;
        while Instant::now() < end {
            self.turn()?;
            std::thread::sleep(PAUSE);
        }
        assert_eq!(self.up()?, self.all.len() as u64, "switches that are still up");
        Ok(())
    }

    /// Number of switches of the controller.
    fn up(&self) -> Result<u64> {
        Ok(self.controller.status()?["switches"].as_u64().ok_or("no number of switches")?)
    }

    /// Serves each switch once. Returns whether any had input.
    fn turn(&mut self) -> Result<bool> {
        let mut moved = false;
        for connected in &mut self.all {
            moved |= connected.turn(&mut self.buffer, &mut self.out)?;
        }
        Ok(moved)
    }
}

/// A description as long as those of real switches.
fn description(dpid: u64) -> SwitchDescription {
    let port = |number: u32| {
        PortDesc::new(
            Port(number),
            MacAddr([2, 0, 0, (dpid >> 8) as u8, dpid as u8, number as u8]),
            FixedStr::new(&format!("ethernet{number}")),
        )
    };
    SwitchDescription {
        capabilities: Capabilities::empty(),
        manufacturer: "Nobody in particular".into(),
        hardware: "48 ports in one unit".into(),
        software: "A test of the controller's".into(),
        serial_number: format!("{dpid:016}").into(),
        datapath: format!("edge switch {dpid}").into(),
        ports: (1..=PORTS).map(port).collect(),
        ..SwitchDescription::new(dpid)
    }
}

fn idle_switch(version: Version) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Some(limit.maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES)));
    if limit.current < wanted {
        setrlimit(Resource::Nofile, Rlimit { current: wanted, ..limit })?;
    }
    let controller = Controller::start(&format!("{version:?}"))?;
    let mut switches = Switches::of(&controller, version)?;
    switches.connect(FIRST)?;
    let before = controller.resident_bytes()?;
    switches.connect(MEASURED)?;
    let after = controller.resident_bytes()?;
    let each = after.saturating_sub(before) / MEASURED;
    println!("OpenFlow {version}: {each} bytes for an idle switch of {PORTS} ports");
    // Less than the names and addresses of the ports would mean that nothing was measured.
    assert!(each > 1_000, "{each} bytes a switch, {before} before and {after} after");
    assert!(each <= MAX_BYTES, "{each} bytes a switch, {before} before and {after} after");
    Ok(())
}

#[test]
fn an_idle_switch_of_1_0_costs_at_most_8_kib() -> Result<()> {
    idle_switch(Version::V1_0)
}

#[test]
fn an_idle_switch_of_1_3_costs_at_most_8_kib() -> Result<()> {
    idle_switch(Version::V1_3)
}
