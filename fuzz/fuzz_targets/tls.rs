//! The channel over TLS accepts any bytes in any pieces, between records that are right.
//!
//! The first byte of the input decides the version of TLS. The others are steps of the switch and
//! of the controller: records in pieces, updates of keys, nonsense, reads, writes. As long as there
//! is no nonsense, each end must read what the other one has written.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bellrock_engine::FuzzedSession;
use libfuzzer_sys::fuzz_target;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use socket2::SockRef;

const NAME: &str = "controller";
/// Maximum number of bytes that an end writes at a time: some records.
const WRITE_BYTES: usize = 40_000;
/// Maximum number of updates of keys of a run. More without data between them are misbehaviour.
const MAX_KEY_UPDATES: u32 = 32;

struct Ends {
    clients: [Arc<ClientConfig>; 2],
    server: Arc<ServerConfig>,
    listener: TcpListener,
}

static ENDS: LazyLock<Ends> = LazyLock::new(|| {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let certificate: CertificateDer<'static> = own.cert.der().clone();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("it signs itself");
    let provider = Arc::new(ring::default_provider());
    let client = |version| {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(&[version]).expect("it is known");
        let mut config = builder.with_root_certificates(roots.clone()).with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        Arc::new(config)
    };
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair");
    Ends {
        clients: [client(&rustls::version::TLS12), client(&rustls::version::TLS13)],
        server: Arc::new(server),
        listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"),
    }
});

fuzz_target!(|input: &[u8]| {
    let Some((&how, steps)) = input.split_first() else { return };
    let mut run = Run::start(usize::from(how & 1));
    let mut steps = steps.iter().copied();
    while let (Some(step), Some(size)) = (steps.next(), steps.next()) {
        let bytes = usize::from(size) * usize::from(size) % WRITE_BYTES + 1;
        match step % 8 {
            0 => run.switch_writes(bytes),
            1 => run.switch_sends(bytes),
            2 => run.switch_sends(usize::MAX),
            3 => {
                let nonsense: Vec<u8> = steps.by_ref().take(usize::from(size)).collect();
                run.nonsense(&nonsense);
            }
            4 => run.controller_reads(bytes),
            5 => run.controller_writes(bytes),
            6 => run.switch_reads(),
            _ => run.switch_renews_keys(),
        }
    }
    run.finish();
});

struct Run {
    client: ClientConnection,
    socket: TcpStream,
    session: FuzzedSession,
    /// Encrypted bytes of the switch that are not sent.
    outgoing: Vec<u8>,
    /// Bytes that were written and not read, in each direction, as numbers of the next ones.
    up: [u64; 2],
    down: [u64; 2],
    /// Bytes of the controller that were not taken.
    waiting: usize,
    key_updates: u32,
    /// Nonsense was sent.
    is_broken: bool,
    /// The session has failed: the engine closes it, and does not use it again.
    has_failed: bool,
}

/// The byte at this place of a stream.
fn byte(place: u64) -> u8 {
    (place % 251) as u8
}

fn bytes(from: u64, number: usize) -> Vec<u8> {
    (from..from + number as u64).map(byte).collect()
}

impl Run {
    fn start(version: usize) -> Self {
        let name = ServerName::try_from(NAME).expect("a name");
        let mut client =
            ClientConnection::new(Arc::clone(&ENDS.clients[version]), name).expect("a client");
        let mut server =
            UnbufferedServerConnection::new(Arc::clone(&ENDS.server)).expect("a server");
        let mut incoming = Vec::new();
        while client.is_handshaking() || client.wants_write() {
            while client.wants_write() {
                client.write_tls(&mut incoming).expect("memory");
            }
            let mut answer = Vec::new();
            serve(&mut server, &mut incoming, &mut answer);
            let mut answer = answer.as_slice();
            while !answer.is_empty() {
                client.read_tls(&mut answer).expect("memory");
                client.process_new_packets().expect("an honest server");
            }
        }
        let socket = TcpStream::connect(ENDS.listener.local_addr().expect("it listens"));
        let socket = socket.expect("it listens");
        let (stream, _) = ENDS.listener.accept().expect("it has connected");
        for one in [&socket, &stream] {
            one.set_nonblocking(true).expect("a socket");
        }
        // Small, so that it is full now and then; and its port is free at once.
        let _ = SockRef::from(&stream).set_send_buffer_size(4096);
        let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
        let session = FuzzedSession::new(stream, server, incoming);
        let (up, down) = ([0; 2], [0; 2]);
        let outgoing = Vec::new();
        Run {
            client,
            socket,
            session,
            outgoing,
            up,
            down,
            waiting: 0,
            key_updates: 0,
            is_broken: false,
            has_failed: false,
        }
    }

    fn switch_renews_keys(&mut self) {
        if self.key_updates < MAX_KEY_UPDATES {
            self.key_updates += 1;
            let _ = self.client.refresh_traffic_keys();
        }
    }

    fn switch_writes(&mut self, number: usize) {
        let plain = bytes(self.up[0], number);
        let taken = self.client.writer().write(&plain).unwrap_or(0);
        self.up[0] += taken as u64;
        while self.client.wants_write() {
            self.client.write_tls(&mut self.outgoing).expect("memory");
        }
    }

    fn switch_sends(&mut self, number: usize) {
        let end = number.min(self.outgoing.len());
        if let Ok(sent) = self.socket.write(&self.outgoing[..end]) {
            self.outgoing.drain(..sent);
        }
    }

    fn nonsense(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() && self.socket.write(bytes).is_ok() {
            self.is_broken = true;
        }
    }

    fn controller_reads(&mut self, number: usize) {
        if self.has_failed {
            return;
        }
        let mut buffer = vec![0; number];
        match self.session.read(&mut buffer) {
            Ok(read) if !self.is_broken => {
                assert_eq!(buffer[..read], bytes(self.up[1], read));
                self.up[1] += read as u64;
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                assert!(self.is_broken, "{error}");
                self.has_failed = true;
            }
            _ => {}
        }
    }

    fn controller_writes(&mut self, number: usize) {
        if self.has_failed {
            return;
        }
        // As from a queue: what was not taken comes again, with more behind it.
        let number = number.max(self.waiting);
        match self.session.write(&bytes(self.down[0], number)) {
            Ok(taken) => {
                self.down[0] += taken as u64;
                self.waiting = number - taken;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.waiting = number,
            Err(error) => {
                assert!(self.is_broken, "{error}");
                self.has_failed = true;
            }
        }
    }

    fn switch_reads(&mut self) {
        while matches!(self.client.read_tls(&mut self.socket), Ok(1..)) {
            if let Err(error) = self.client.process_new_packets() {
                assert!(self.is_broken, "{error}");
                return;
            }
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = self.client.reader().read(&mut buffer) {
                assert_eq!(buffer[..read], bytes(self.down[1], read));
                self.down[1] += read as u64;
            }
        }
        while self.client.wants_write() {
            self.client.write_tls(&mut self.outgoing).expect("memory");
        }
    }

    /// What is under way arrives, if there was no nonsense.
    fn finish(&mut self) {
        const ROUNDS: usize = 64;
        for _ in 0..ROUNDS {
            self.switch_sends(usize::MAX);
            self.controller_reads(1 << 16);
            self.switch_reads();
        }
        let _ = self.session.finish_writing();
        self.switch_reads();
    }
}

/// Processes what has come, and adds what the server sends.
fn serve(server: &mut UnbufferedServerConnection, incoming: &mut Vec<u8>, answer: &mut Vec<u8>) {
    loop {
        let UnbufferedStatus { discard, state } = server.process_tls_records(incoming);
        let goes_on = match state.expect("an honest client") {
            ConnectionState::EncodeTlsData(mut data) => {
                let mut room = vec![0; 64];
                let size = match data.encode(&mut room) {
                    Err(EncodeError::InsufficientSize(error)) => {
                        room.resize(error.required_size, 0);
                        data.encode(&mut room).expect("it fits")
                    }
                    other => other.expect("it fits"),
                };
                answer.extend_from_slice(&room[..size]);
                true
            }
            ConnectionState::TransmitTlsData(sent) => {
                sent.done();
                true
            }
            _ => false,
        };
        incoming.drain(..discard);
        if !goes_on {
            return;
        }
    }
}
