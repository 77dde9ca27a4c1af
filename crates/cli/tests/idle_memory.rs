//! The memory of an idle switch, without TLS and with it.
//!
//! The controller is the built command in its own process. The switches are the session's switch
//! ends on TCP or TLS. The test compares the resident memory that the kernel reports before and
//! after many switches connect. So it includes unused memory of the allocator and of the worker's
//! tables.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellrock_openflow::{
    Bytes, Capabilities, FixedStr, FromSwitch, List, MacAddr, MatchView, MultipartReply, Out,
    PacketInMessage, PacketInReason, Port, PortDesc, ReplyBody, RequestBody, ToSwitch, Version,
};
use bellrock_session::{SwitchDescription, Versions, switch};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Maximum memory of an idle switch without TLS that knows a host, and has flooded a frame of it.
const MAX_BYTES: u64 = 9 << 10;
/// Maximum memory of an idle switch with TLS.
const MAX_TLS_BYTES: u64 = 16 << 10;
/// Name of the controller in its certificate.
const CONTROLLER: &str = "controller";
/// Ports of each switch.
const PORTS: u32 = 48;
/// Switches connected before the measurement. The first ones pay for what all share.
const FIRST: u64 = 50;
/// Switches in the measurement.
const MEASURED: u64 = 1_000;
/// Limit of open files that all tests at once need in this process.
const OPEN_FILES: u64 = 8_192;
/// Time limit for the start, and for all switches to come up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two checks for input.
const PAUSE: Duration = Duration::from_millis(1);
/// Idle time before the measurement: several turns of every timer that runs each second.
const IDLE: Duration = Duration::from_secs(3);
/// Length of the frame that a host sends: an Ethernet frame of minimum length without its checksum.
const MIN_FRAME_BYTES: usize = 60;
/// Maximum number of bytes read or written at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// A controller with its own control socket, which ends with the test.
struct Controller {
    process: Child,
    control: PathBuf,
}

impl Controller {
    /// Starts it on a free port.
    fn start(name: &str, tls: Option<&Certificates>) -> Result<Controller> {
        let file = format!("bellrock-idle-{name}-{}.sock", std::process::id());
        let control = std::env::temp_dir().join(file);
        let mut command = Command::new(env!("CARGO_BIN_EXE_bellrock"));
        command.args(["run", "--log-level", "error", "--control"]).arg(&control);
        match tls {
            None => _ = command.args(["--listen", "127.0.0.1:0"]),
            Some(tls) => {
                // The certificate of all switches would be pinned to too few datapath ids.
                command.args(["--listen", "tls:127.0.0.1:0", "--tls-identity", "any"]);
                command.arg("--tls-certificate").arg(tls.file("controller-cert.pem"));
                command.arg("--tls-key").arg(tls.file("controller-key.pem"));
                command.arg("--tls-ca").arg(tls.file("ca-cert.pem"));
            }
        }
        Ok(Controller { process: command.spawn()?, control })
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
                    let address = ["listen", "listen_tls"].map(|key| status[key][0].as_str());
                    return Ok(address
                        .into_iter()
                        .flatten()
                        .next()
                        .ok_or("no address")?
                        .parse()?);
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

/// Certificates of a controller and of switches, in a directory that ends with the test.
struct Certificates {
    dir: PathBuf,
    switches: Arc<ClientConfig>,
}

impl Certificates {
    fn make(name: &str) -> Result<Certificates> {
        let dir = std::env::temp_dir().join(format!("bellrock-idle-{name}-{}", std::process::id()));
        for order in [&["init"][..], &["controller", CONTROLLER], &["switch", "all"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_bellrock"));
            let made = command.arg("pki").args(order).arg("--dir").arg(&dir).output()?;
            if !made.status.success() {
                return Err(String::from_utf8_lossy(&made.stderr).into());
            }
        }
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(dir.join("ca-cert.pem"))?)?;
        let chain = vec![CertificateDer::from_pem_file(dir.join("all-cert.pem"))?];
        let key = PrivateKeyDer::from_pem_file(dir.join("all-key.pem"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        Ok(Certificates { dir, switches: Arc::new(config) })
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::join(&self.dir, name)
    }

    /// Makes a session of a connection, whose handshake is finished.
    fn session(&self, mut stream: TcpStream) -> Result<Stream> {
        let name = ServerName::try_from(CONTROLLER)?;
        let mut session = ClientConnection::new(Arc::clone(&self.switches), name)?;
        while session.is_handshaking() {
            session.complete_io(&mut stream)?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, stream))))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A connection.
enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(session) => session.get_ref(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(session) => session.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.write_all(bytes),
            Stream::Tls(session) => session.write_all(bytes),
        }
    }
}

/// A switch with its connection.
struct Connected {
    stream: Stream,
    switch: switch::SwitchSession,
    unread: Vec<u8>,
}

impl Connected {
    fn open(
        (to, tls): (SocketAddr, Option<&Certificates>),
        dpid: u64,
        version: Version,
        out: &mut Out,
    ) -> Result<Connected> {
        let switch = switch::SwitchSession::new(description(dpid), Versions::only(version), out)?;
        let stream = TcpStream::connect(to)?;
        let stream = match tls {
            None => Stream::Plain(stream),
            Some(tls) => tls.session(stream)?,
        };
        stream.socket().set_nonblocking(true)?;
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

    /// Sends a packet_in with the broadcast of a host.
    fn send_broadcast(&mut self, out: &mut Out) -> Result<()> {
        let mut frame = [0; MIN_FRAME_BYTES];
        let (to, rest) = frame.split_at_mut(6);
        to.fill(0xff);
        rest.iter_mut().zip([2, 0, 0, 0, 0, 1]).for_each(|(byte, value)| *byte = value);
        let packet = PacketInMessage {
            buffer_id: None,
            total_len: frame.len() as u16,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: PacketInMessage::NO_COOKIE,
            matching: MatchView::port(Port(1)),
            data: Bytes(&frame),
        };
        self.switch.send(0, &FromSwitch::PacketIn(packet), out)?;
        self.write(out)
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
    tls: Option<&'c Certificates>,
    all: Vec<Connected>,
    buffer: Vec<u8>,
    out: Out,
}

impl<'c> Switches<'c> {
    fn of(
        controller: &'c Controller,
        version: Version,
        tls: Option<&'c Certificates>,
    ) -> Result<Switches<'c>> {
        let (buffer, out) = (vec![0; BUFFER_BYTES], Out::with_capacity(BUFFER_BYTES));
        let address = controller.address()?;
        Ok(Switches { controller, version, address, tls, all: Vec::new(), buffer, out })
    }

    /// Connects `more` switches, waits until they are up, and lets them be idle for a while.
    fn connect(&mut self, more: u64) -> Result<()> {
        let first = self.all.len() as u64 + 1;
        for dpid in first..first + more {
            let to = (self.address, self.tls);
            self.all.push(Connected::open(to, dpid, self.version, &mut self.out)?);
            self.turn()?;
        }
        let end = Instant::now() + PATIENCE;
        while self.up()? < self.all.len() as u64 {
            if Instant::now() >= end {
                return Err(format!("{} of {} switches are up", self.up()?, self.all.len()).into());
            }
            while self.turn()? {}
        }
        // A host of each sends a broadcast, as idle networks have them.
        let new = self.all.len().saturating_sub(more as usize);
        for connected in self.all.iter_mut().skip(new) {
            connected.send_broadcast(&mut self.out)?;
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

fn idle_switch(version: Version, has_tls: bool) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Some(limit.maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES)));
    if limit.current < wanted {
        setrlimit(Resource::Nofile, Rlimit { current: wanted, ..limit })?;
    }
    let name = format!("{version:?}-{has_tls}");
    let tls = has_tls.then(|| Certificates::make(&name)).transpose()?;
    let controller = Controller::start(&name, tls.as_ref())?;
    let mut switches = Switches::of(&controller, version, tls.as_ref())?;
    switches.connect(FIRST)?;
    let before = controller.resident_bytes()?;
    switches.connect(MEASURED)?;
    let after = controller.resident_bytes()?;
    let each = after.saturating_sub(before) / MEASURED;
    let kind = if has_tls { "with TLS" } else { "without TLS" };
    println!("OpenFlow {version}: {each} bytes for an idle switch of {PORTS} ports {kind}");
    // Less than the names and addresses of the ports would mean that nothing was measured.
    assert!(each > 1_000, "{each} bytes a switch, {before} before and {after} after");
    let maximum = if has_tls { MAX_TLS_BYTES } else { MAX_BYTES };
    assert!(each <= maximum, "{each} bytes a switch, {before} before and {after} after");
    Ok(())
}

#[test]
fn an_idle_switch_of_1_0_costs_at_most_9_kib() -> Result<()> {
    idle_switch(Version::V1_0, false)
}

#[test]
fn an_idle_switch_of_1_3_costs_at_most_9_kib() -> Result<()> {
    idle_switch(Version::V1_3, false)
}

#[test]
fn an_idle_switch_with_tls_costs_at_most_16_kib() -> Result<()> {
    idle_switch(Version::V1_3, true)
}
