//! Open vSwitch as a subject: an instance for the run, in user space, with dummy ports and a clock
//! that stands still.
//!
//! Database, daemon, sockets and captures are in one directory that is removed afterwards. Nothing
//! needs root, and the machine's own Open vSwitch is not touched. Each conversation gets a new
//! bridge. Open vSwitch connects to the controllers, as in the field: here they are listeners.
//!
//! Frames go in through the daemon's control socket, and come out in a capture file for each port.
//! The limit of datapath flows is zero, so each packet is looked up in the flow tables, and
//! counters are right at once.
//!
//! Two methods show that all effects of a step are there. The daemon's main loop serves ports,
//! connections and the control socket in turn: an answer from a connection and then one from the
//! control socket mean one round. After [`ROUNDS`] rounds nothing is left there. But another thread
//! removes flows, in their order. So the runner's own connection adds and deletes a flow in a table
//! that no conversation uses, and waits for its flow_removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bellrock_openflow::{
    FlowFlags, FlowMod, FromSwitch, Header, Hello, Match, Out, ToSwitch, Version, frame,
};

use super::frame::Result;
use super::script::Setup;
use super::subject::{Heard, Subject};

/// Maximum time of any operation.
const LIMIT: Duration = Duration::from_secs(60);
/// The daemons end by themselves after this many seconds, if the test is killed.
const LIFE_SECONDS: &str = "600";
const POLL: Duration = Duration::from_millis(5);
const ROUNDS: u32 = 3;
/// Xids of the echoes between steps; conversations use low ones.
const SYNC_XID: u32 = 0xffff_0000;
/// Debian installs daemons in directories that are not in every PATH.
const PATHS: &str = "/usr/sbin:/sbin";
/// When this flow has been removed, all flows removed before are gone.
const MARK_TABLE: u8 = 253;
const MARK_COOKIE: u64 = 0x6d61_726b;
/// Types of messages that remove flows: flow_mod, group_mod, meter_mod (the last two in 1.3 only).
const REMOVING: [u8; 3] = [14, 15, 29];
/// Steps of the clock: after each the daemon checks the flows.
const WARP_STEP_MS: u128 = 500;
/// Time after which the controllers send echo requests: otherwise Open vSwitch closes a connection
/// after twice five seconds.
const WARP_PART: Duration = Duration::from_secs(3);
const PCAP_HEAD: usize = 24;
const PCAP_RECORD_HEAD: usize = 16;

pub(crate) struct OpenVSwitch {
    directory: PathBuf,
    daemons: Vec<(Child, PathBuf)>,
    listeners: Vec<TcpListener>,
    /// Number of bridges so far; only the last one exists.
    bridges: u32,
    ports: BTreeMap<u32, Capture>,
    connections: Vec<Option<Connection>>,
    syncs: u32,
    /// Whether flows may have been removed since the last wait for their end.
    may_have_removed: bool,
    /// Effects while time passed.
    heard: Heard,
    /// The runner's own connection, besides those of the conversation.
    own: Option<Connection>,
}

/// The frames that a port sends.
struct Capture {
    interface: String,
    file: BufReader<File>,
    behind: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    /// The version as on the wire.
    version: u8,
    received: Vec<u8>,
}

/// Whether Open vSwitch is installed.
pub(crate) fn installed() -> bool {
    let found = |program| {
        Command::new(program)
            .env("PATH", path())
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    };
    ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"]
        .iter()
        .all(|program| found(program).is_ok_and(|status| status.success()))
}

fn path() -> String {
    format!("{}:{PATHS}", std::env::var("PATH").unwrap_or_default())
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> String + use<'_> {
    move |error| format!("{what}: {error}")
}

impl OpenVSwitch {
    pub(crate) fn start() -> Result<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("bellrock-conformance-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).map_err(failed("a directory for Open vSwitch"))?;
        let mut this = OpenVSwitch {
            directory,
            daemons: Vec::new(),
            listeners: Vec::new(),
            bridges: 0,
            ports: BTreeMap::new(),
            connections: Vec::new(),
            syncs: 0,
            may_have_removed: false,
            heard: Heard::default(),
            own: None,
        };
        let database = this.file("db.sock");
        this.run("ovsdb-tool", &["create", &this.file("conf.db"), &schema()?])?;
        this.daemon(
            "ovsdb-server",
            &[&this.file("conf.db"), &format!("--remote=punix:{database}")],
        )?;
        this.vsctl(&["--no-wait", "init"])?;
        let database = format!("unix:{database}");
        this.daemon(
            "ovs-vswitchd",
            &[&database, "--enable-dummy", "--disable-system", "--disable-system-route"],
        )?;
        // No datapath flows; VLAN tags are parsed as deep as possible.
        let limits = ["other_config:flow-limit=0", "other_config:vlan-limit=0"];
        this.vsctl(&[&["set", "Open_vSwitch", "."], limits.as_slice()].concat())?;
        this.control("time/stop", &[])?;
        Ok(this)
    }

    /// The version, as the program prints it.
    pub(crate) fn version(&self) -> Result<String> {
        Ok(self.run("ovs-vswitchd", &["--version"])?.lines().next().unwrap_or_default().to_owned())
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", path()).stdin(Stdio::null());
        for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVS_LOGDIR"] {
            command.env(variable, &self.directory);
        }
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = self.command(program).args(arguments).output().map_err(failed(program))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program} {arguments:?}: {error}"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn vsctl(&self, arguments: &[&str]) -> Result<String> {
        let database = format!("--db=unix:{}", self.file("db.sock"));
        let timeout = format!("--timeout={}", LIMIT.as_secs());
        self.run("ovs-vsctl", &[&[database.as_str(), timeout.as_str()], arguments].concat())
    }

    /// Starts a daemon, and returns when it listens.
    fn daemon(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let control = self.directory.join(format!("{name}.ctl"));
        let log = self.file(&format!("{name}.log"));
        let mut command = self.command("timeout");
        command.args(["--kill-after=5s", LIFE_SECONDS, name]).args(arguments);
        command.args([format!("--unixctl={}", control.display()), format!("--log-file={log}")]);
        command
            .args([&format!("--pidfile={}", self.file(&format!("{name}.pid"))), "-vconsole:off"]);
        let child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(failed(name))?;
        self.daemons.push((child, control.clone()));
        let since = Instant::now();
        while UnixStream::connect(&control).is_err() {
            if since.elapsed() > LIMIT {
                return Err(format!("{name} does not listen; its log is:\n{}", read(&log)));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Runs a command of the daemon, as `ovs-appctl` does.
    fn control(&self, method: &str, arguments: &[&str]) -> Result<String> {
        rpc(&self.directory.join("ovs-vswitchd.ctl"), method, arguments)
    }

    fn interface(&self, port: u32) -> Result<&str> {
        let capture = self.ports.get(&port).ok_or_else(|| format!("there is no port {port}"))?;
        Ok(&capture.interface)
    }

    /// The arguments for ovs-vsctl that delete the last bridge and make a new one.
    fn bridge(&self, setup: &Setup) -> Result<Vec<String>> {
        let (last, bridge) = (self.bridges - 1, self.bridges);
        let mut words: Vec<String> = format!("-- --if-exists del-br b{last} -- add-br b{bridge} -- set Bridge b{bridge} datapath_type=dummy fail_mode=secure protocols=OpenFlow10,OpenFlow13 other_config:datapath-id=0000000000000001")
            .split(' ').map(str::to_owned).collect();
        for port in 1..=setup.ports {
            let interface = format!("b{bridge}p{port}");
            let capture = self.file(&format!("{interface}.pcap"));
            words.extend(format!("-- add-port b{bridge} {interface} -- set Interface {interface} type=dummy ofport_request={port} options:tx_pcap={capture}").split(' ').map(str::to_owned));
        }
        let mut controllers = Vec::new();
        for (i, listener) in self.listeners.iter().take(setup.controllers + 1).enumerate() {
            let port = listener.local_addr().map_err(failed("a listener"))?.port();
            words.extend(format!("-- --id=@c{i} create Controller target=\"tcp:127.0.0.1:{port}\" connection_mode=out-of-band").split(' ').map(str::to_owned));
            controllers.push(format!("@c{i}"));
        }
        words.extend(
            format!("-- set Bridge b{bridge} controller=[{}]", controllers.join(","))
                .split(' ')
                .map(str::to_owned),
        );
        if let Some(capacity) = setup.capacity {
            words.extend(format!("-- --id=@full create Flow_Table flow_limit={capacity} overflow_policy=refuse -- set Bridge b{bridge} flow_tables:0=@full").split(' ').map(str::to_owned));
        }
        Ok(words)
    }

    /// Sends an echo request on each connection, and takes all messages up to the replies.
    fn sync(&mut self, heard: &mut Heard) -> Result<()> {
        self.syncs += 1;
        let xid = SYNC_XID | self.syncs & 0xffff;
        for (controller, place) in self.connections.iter_mut().enumerate() {
            let Some(connection) = place else { continue };
            let mut echo = vec![connection.version, 2, 0, 8];
            echo.extend(xid.to_be_bytes());
            // A closed connection is noticed when reading.
            let _ = connection.stream.write_all(&echo);
            if !connection.until(|message| xid_of(message) == xid, controller, heard)? {
                heard.closed.push(controller);
                *place = None;
            }
        }
        // After the connections the main loop serves the control socket.
        self.control("version", &[]).map(drop)
    }

    /// Waits until all removed flows are gone: a flow of our own is removed last.
    fn bury(&mut self) -> Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let any = Match::any();
        let add = FlowMod::add(&any)
            .table(MARK_TABLE)
            .cookie(MARK_COOKIE)
            .flags(FlowFlags::SEND_FLOW_REM);
        let delete = FlowMod::delete(&any).table(MARK_TABLE);
        let mut out = Out::with_capacity(256);
        for flow in [add, delete] {
            let written = ToSwitch::FlowMod(flow).encode(Version::V1_3, SYNC_XID, &mut out);
            written.map_err(|error| error.to_string())?;
        }
        own.stream.write_all(out.as_slice()).map_err(failed("a flow"))?;
        if own.until(is_mark, 0, &mut Heard::default())? {
            Ok(())
        } else {
            Err("Open vSwitch closed the runner's own connection".to_owned())
        }
    }

    /// Accepts Open vSwitch's connection to a controller, and sends a hello.
    fn connect(&self, controller: usize, version: Version) -> Result<Connection> {
        let mut stream = self.accept(controller)?;
        let mut hello = Out::with_capacity(64);
        Hello::write(version, 1, &mut hello).map_err(|error| error.to_string())?;
        stream.write_all(hello.as_slice()).map_err(failed("hello"))?;
        Ok(Connection { stream, version: version.wire(), received: Vec::new() })
    }

    fn accept(&self, controller: usize) -> Result<TcpStream> {
        let since = Instant::now();
        loop {
            match self.listeners[controller].accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(failed("a connection"))?;
                    stream.set_nodelay(true).map_err(failed("a connection"))?;
                    stream.set_read_timeout(Some(LIMIT)).map_err(failed("a connection"))?;
                    return Ok(stream);
                }
                Err(_) if since.elapsed() < LIMIT => std::thread::sleep(POLL),
                Err(error) => return Err(format!("Open vSwitch does not connect: {error}")),
            }
        }
    }
}

impl Subject for OpenVSwitch {
    fn name(&self) -> &'static str {
        "Open vSwitch"
    }

    fn begin(&mut self, setup: &Setup) -> Result<()> {
        self.bridges += 1;
        while self.listeners.len() <= setup.controllers {
            let listener = TcpListener::bind("127.0.0.1:0").map_err(failed("a listener"))?;
            listener.set_nonblocking(true).map_err(failed("a listener"))?;
            self.listeners.push(listener);
        }
        let words = self.bridge(setup)?;
        self.vsctl(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        // Only now: the last bridge would connect again.
        self.connections.clear();
        self.own = None;
        self.ports.clear();
        for port in 1..=setup.ports {
            let interface = format!("b{}p{port}", self.bridges);
            let path = self.file(&format!("{interface}.pcap"));
            let mut file = BufReader::new(File::open(&path).map_err(failed(&path))?);
            file.read_exact(&mut [0; PCAP_HEAD]).map_err(failed(&path))?;
            self.ports.insert(port, Capture { interface, file, behind: Vec::new() });
        }
        for controller in 0..setup.controllers {
            let connection = self.connect(controller, setup.version)?;
            self.connections.push(Some(connection));
        }
        self.own = Some(self.connect(setup.controllers, Version::V1_3)?);
        let mut heard = Heard::default();
        self.sync(&mut heard)?;
        let hellos = heard.messages.iter().filter(|(_, message)| message[1] == 0).count();
        if hellos != setup.controllers || hellos != heard.messages.len() {
            return Err(format!("more or less than hellos: {heard:?}"));
        }
        Ok(())
    }

    fn send(&mut self, controller: usize, bytes: &[u8]) -> Result<()> {
        self.may_have_removed |= bytes.get(1).is_some_and(|kind| REMOVING.contains(kind));
        match self.connections.get_mut(controller).and_then(Option::as_mut) {
            Some(connection) => connection.stream.write_all(bytes).map_err(failed("send")),
            None => Err(format!("controller {} is not connected", controller + 1)),
        }
    }

    fn frame(&mut self, port: u32, frame: &[u8]) -> Result<()> {
        let hex = super::frame::hex_of_bytes(frame);
        self.control("netdev-dummy/receive", &[self.interface(port)?, &hex]).map(drop)
    }

    fn wait(&mut self, time: Duration) -> Result<()> {
        let mut left = time;
        while !left.is_zero() {
            let part = left.min(WARP_PART);
            left -= part;
            let (all, step) = (part.as_millis(), part.as_millis().min(WARP_STEP_MS));
            self.control("time/warp", &[&all.to_string(), &step.to_string()])?;
            // Flows expire after the daemon has checked them once more.
            self.control("revalidator/wait", &[])?;
            self.control("revalidator/wait", &[])?;
            self.bury()?;
            let mut heard = std::mem::take(&mut self.heard);
            self.sync(&mut heard)?;
            self.heard = heard;
        }
        Ok(())
    }

    fn link(&mut self, port: u32, up: bool) -> Result<()> {
        let state = if up { "up" } else { "down" };
        self.control("netdev-dummy/set-admin-state", &[self.interface(port)?, state]).map(drop)
    }

    fn heard(&mut self) -> Result<Heard> {
        if std::mem::take(&mut self.may_have_removed) {
            // The daemon reads its connections in turn. Without this it may read the runner's own
            // flow before the removal.
            let mut heard = std::mem::take(&mut self.heard);
            self.sync(&mut heard)?;
            self.heard = heard;
            self.bury()?;
        }
        let mut heard = std::mem::take(&mut self.heard);
        for _ in 0..ROUNDS {
            self.sync(&mut heard)?;
        }
        for (port, capture) in &mut self.ports {
            heard.frames.extend(capture.frames()?.into_iter().map(|frame| (*port, frame)));
        }
        Ok(heard)
    }
}

impl Connection {
    /// Takes messages up to the awaited one; returns false if the connection closes before.
    fn until(
        &mut self,
        awaited: impl Fn(&[u8]) -> bool,
        controller: usize,
        heard: &mut Heard,
    ) -> Result<bool> {
        let mut buffer = [0; 1 << 16];
        loop {
            while let Some(message) = frame(&self.received).map_err(|error| error.to_string())? {
                let message: Vec<u8> = self.received.drain(..message.bytes.len()).collect();
                if awaited(&message) {
                    return Ok(true);
                }
                if !is_mark(&message) {
                    heard.messages.push((controller, message));
                }
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return Ok(false);
                }
                Err(error) => return Err(format!("Open vSwitch does not answer: {error}")),
            }
        }
    }
}

fn xid_of(message: &[u8]) -> u32 {
    Header::read(message).map_or(0, |header| header.xid)
}

/// Whether a message reports the removal of the runner's own flow.
fn is_mark(message: &[u8]) -> bool {
    let decoded = FromSwitch::decode(message).map(|message| message.body);
    matches!(decoded, Ok(FromSwitch::FlowRemoved(flow)) if flow.cookie == MARK_COOKIE)
}

impl Capture {
    fn frames(&mut self) -> Result<Vec<Vec<u8>>> {
        self.file.read_to_end(&mut self.behind).map_err(failed("a capture"))?;
        let mut frames = Vec::new();
        while let Some(head) = self.behind.get(..PCAP_RECORD_HEAD) {
            // In the byte order of the machine that wrote it.
            let length = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]) as usize;
            let Some(frame) = self.behind.get(PCAP_RECORD_HEAD..PCAP_RECORD_HEAD + length) else {
                break;
            };
            frames.push(frame.to_vec());
            self.behind.drain(..PCAP_RECORD_HEAD + length);
        }
        Ok(frames)
    }
}

impl Drop for OpenVSwitch {
    fn drop(&mut self) {
        for (child, control) in self.daemons.iter_mut().rev() {
            let asked = rpc(control, "exit", &[]);
            if asked.is_err() {
                // `timeout` forwards the signal; it is the process that we started.
                let _ = Command::new("kill").arg(child.id().to_string()).status();
            }
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// One request to a control socket of Open vSwitch: JSON-RPC.
fn rpc(socket: &Path, method: &str, arguments: &[&str]) -> Result<String> {
    let mut stream = UnixStream::connect(socket).map_err(failed(method))?;
    stream.set_read_timeout(Some(LIMIT)).map_err(failed(method))?;
    let request = serde_json::json!({ "id": 0, "method": method, "params": arguments });
    stream.write_all(request.to_string().as_bytes()).map_err(failed(method))?;
    let mut reply = serde_json::Deserializer::from_reader(stream).into_iter::<serde_json::Value>();
    match reply.next() {
        Some(Ok(reply)) if reply["error"].is_null() => {
            Ok(reply["result"].as_str().unwrap_or_default().to_owned())
        }
        Some(Ok(reply)) => Err(format!("{method} {arguments:?}: {}", reply["error"])),
        other => Err(format!("{method} {arguments:?}: {other:?}")),
    }
}

fn schema() -> Result<String> {
    let places = [
        "/usr/share/openvswitch/vswitch.ovsschema",
        "/usr/local/share/openvswitch/vswitch.ovsschema",
    ];
    let found = places.iter().find(|place| Path::new(place).exists());
    found
        .map(|place| (*place).to_owned())
        .ok_or_else(|| format!("no schema of Open vSwitch in {places:?}"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
