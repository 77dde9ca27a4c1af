//! The records of a TLS connection: hello messages in the clear, then encrypted ones.

use std::net::SocketAddr;

use super::super::StreamId;
use super::TlsProblem;
use super::keys::{RANDOM_BYTES, Random, RecordKeys, Secrets, Suite};

/// Length of the header of a record (RFC 8446 §5.1).
const HEADER_BYTES: usize = 5;

/// Maximum length of a record's body: 16 KiB, and what encryption may add (RFC 5246 §6.2.3).
const MAX_BODY_BYTES: usize = (16 << 10) + 2048;

/// Maximum number of bytes of one direction that wait for the hello of the other end.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Maximum length of a message of the handshake that is put together.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Types of records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Types of messages of the handshake.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const FINISHED: u8 = 20;
const KEY_UPDATE: u8 = 24;

/// The extension with the version (RFC 8446 §4.2.1), and 1.3.
const SUPPORTED_VERSIONS: u16 = 43;
const VERSION_13: [u8; 2] = [3, 4];

/// Begins the random number of a server that asks for another hello (RFC 8446 §4.1.3).
const RETRY: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// What both hellos and the log give: a suite, and keys.
pub(super) struct Session {
    suite: Suite,
    is_13: bool,
    /// Of the client, then of the server.
    halves: [SessionKeys; 2],
}

struct SessionKeys {
    now: RecordKeys,
    /// The secret behind the handshake of TLS 1.3.
    traffic: Vec<u8>,
}

impl Session {
    /// `None`: the log lacks a secret.
    pub(super) fn new(
        secrets: &Secrets,
        suite: Suite,
        client: &Random,
        server: &Random,
        is_13: bool,
    ) -> Option<Self> {
        let halves = if is_13 {
            let half = |handshake: &Option<Vec<u8>>, traffic: &Option<Vec<u8>>| {
                let now = suite.keys(handshake.as_deref()?)?;
                Some(SessionKeys { now, traffic: traffic.clone()? })
            };
            [
                half(&secrets.client_handshake, &secrets.client_traffic)?,
                half(&secrets.server_handshake, &secrets.server_traffic)?,
            ]
        } else {
            let keys = suite.keys_of_master(secrets.master.as_deref()?, client, server)?;
            keys.map(|now| SessionKeys { now, traffic: Vec::new() })
        };
        Some(Session { suite, is_13, halves })
    }
}

/// A connection. The end that spoke first is the client.
pub(super) struct TlsConnection {
    client: SocketAddr,
    client_random: Option<Random>,
    session: Option<Session>,
    /// Of the client, then of the server.
    halves: [Half; 2],
}

/// One direction.
#[derive(Default)]
struct Half {
    /// Bytes as received.
    carry: Vec<u8>,
    /// Unfinished messages of the handshake.
    handshake: Vec<u8>,
    /// TLS 1.2: from now on, records are encrypted.
    is_encrypted: bool,
    /// Length of what was decrypted.
    decrypted: u64,
    has_ended: bool,
}

impl TlsConnection {
    pub(super) fn new(first: SocketAddr) -> Self {
        TlsConnection {
            client: first,
            client_random: None,
            session: None,
            halves: [Half::default(), Half::default()],
        }
    }

    fn index(&self, from: SocketAddr) -> usize {
        usize::from(from != self.client)
    }

    pub(super) fn add(&mut self, stream: StreamId, bytes: &[u8]) {
        let index = self.index(stream.src);
        self.halves[index].carry.extend_from_slice(bytes);
    }

    /// Notes the end of a direction. Returns whether both have ended.
    pub(super) fn end(&mut self, from: SocketAddr) -> bool {
        let index = self.index(from);
        self.halves[index].has_ended = true;
        self.halves.iter().all(|half| half.has_ended)
    }

    pub(super) fn client(&self) -> SocketAddr {
        self.client
    }

    /// Processes all whole records, and passes on what is inside: whether the client sent it, and its
    /// place in the decrypted stream.
    pub(super) fn advance(
        &mut self,
        find: impl Fn(&Random, Suite, &Random, bool) -> Option<Session>,
        mut pass: impl FnMut(bool, u64, &[u8]),
    ) -> Result<(), TlsProblem> {
        // A hello of one direction may be what the other one waits for.
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for index in 0..self.halves.len() {
                while let Some((header, body)) = self.next_record(index)? {
                    goes_on = true;
                    self.record(index, header, &body, &find, &mut pass)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a whole record, if it can be processed now.
    #[expect(clippy::type_complexity, reason = "a header and a body")]
    fn next_record(
        &mut self,
        index: usize,
    ) -> Result<Option<([u8; HEADER_BYTES], Vec<u8>)>, TlsProblem> {
        let has_session = self.session.is_some();
        let half = &mut self.halves[index];
        let Some(&header) = half.carry.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [kind, major, _, high, low] = header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if !(CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&kind)
            || major != VERSION_13[0]
            || length > MAX_BODY_BYTES
        {
            return Err(TlsProblem::Handshake);
        }
        let is_encrypted = kind == APPLICATION_DATA || half.is_encrypted;
        if is_encrypted && !has_session {
            return match half.carry.len() > MAX_WAITING_BYTES {
                true => Err(TlsProblem::Handshake),
                false => Ok(None),
            };
        }
        let Some(body) = half.carry.get(HEADER_BYTES..HEADER_BYTES + length) else {
            return Ok(None);
        };
        let body = body.to_vec();
        half.carry.drain(..HEADER_BYTES + length);
        Ok(Some((header, body)))
    }

    fn record(
        &mut self,
        index: usize,
        header: [u8; HEADER_BYTES],
        body: &[u8],
        find: &impl Fn(&Random, Suite, &Random, bool) -> Option<Session>,
        pass: &mut impl FnMut(bool, u64, &[u8]),
    ) -> Result<(), TlsProblem> {
        let is_13 = self.session.as_ref().is_none_or(|session| session.is_13);
        let is_encrypted = header[0] == APPLICATION_DATA || self.halves[index].is_encrypted;
        if !is_encrypted {
            match header[0] {
                CHANGE_CIPHER_SPEC if !is_13 => self.halves[index].is_encrypted = true,
                HANDSHAKE => self.plain_handshake(index, body, find)?,
                _ => {}
            }
            return Ok(());
        }
        let Some(session) = &mut self.session else { return Err(TlsProblem::Handshake) };
        let keys = &mut session.halves[index].now;
        let opened = match is_13 {
            true => keys.open(&header, body),
            false => keys.open_12(&header, body).map(|plain| (header[0], plain)),
        };
        let (kind, plain) = opened.ok_or(TlsProblem::Record)?;
        match kind {
            HANDSHAKE if is_13 => self.handshake_13(index, &plain),
            APPLICATION_DATA => {
                let half = &mut self.halves[index];
                let offset = half.decrypted;
                half.decrypted += plain.len() as u64;
                pass(index == 0, offset, &plain);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles messages of the handshake in the clear: both hellos.
    fn plain_handshake(
        &mut self,
        index: usize,
        body: &[u8],
        find: &impl Fn(&Random, Suite, &Random, bool) -> Option<Session>,
    ) -> Result<(), TlsProblem> {
        self.halves[index].handshake.extend_from_slice(body);
        while let Some((kind, message)) = self.next_message(index)? {
            match kind {
                CLIENT_HELLO => {
                    let random = random_of(&message).ok_or(TlsProblem::Handshake)?;
                    self.client_random = Some(random);
                }
                SERVER_HELLO => {
                    let hello = ServerHello::of(&message).ok_or(TlsProblem::Handshake)?;
                    if hello.random.starts_with(&RETRY) {
                        continue;
                    }
                    let client = self.client_random.ok_or(TlsProblem::Handshake)?;
                    let suite = hello.suite.ok_or(TlsProblem::Unsupported)?;
                    let found = find(&client, suite, &hello.random, hello.is_13);
                    self.session = Some(found.ok_or(TlsProblem::NoKeys)?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles encrypted messages of the handshake of TLS 1.3: those that change keys.
    fn handshake_13(&mut self, index: usize, plain: &[u8]) -> Result<(), TlsProblem> {
        self.halves[index].handshake.extend_from_slice(plain);
        while let Some((kind, _)) = self.next_message(index)? {
            let Some(session) = &mut self.session else { return Err(TlsProblem::Handshake) };
            let suite = session.suite;
            let half = &mut session.halves[index];
            match kind {
                FINISHED => {}
                KEY_UPDATE => {
                    half.traffic = suite.next_secret(&half.traffic).ok_or(TlsProblem::Record)?;
                }
                _ => continue,
            }
            half.now = suite.keys(&half.traffic).ok_or(TlsProblem::Record)?;
        }
        Ok(())
    }

    /// Takes a whole message of the handshake (RFC 8446 §4).
    fn next_message(&mut self, index: usize) -> Result<Option<(u8, Vec<u8>)>, TlsProblem> {
        let bytes = &mut self.halves[index].handshake;
        let Some(&[kind, a, b, c]) = bytes.first_chunk::<4>() else { return Ok(None) };
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if length > MAX_MESSAGE_BYTES {
            return Err(TlsProblem::Handshake);
        }
        let Some(message) = bytes.get(4..4 + length) else { return Ok(None) };
        let message = message.to_vec();
        bytes.drain(..4 + length);
        Ok(Some((kind, message)))
    }
}

/// The random number of a hello: behind two bytes of a version.
fn random_of(hello: &[u8]) -> Option<Random> {
    hello.get(2..2 + RANDOM_BYTES)?.try_into().ok()
}

struct ServerHello {
    random: Random,
    /// `None`: it cannot be decrypted.
    suite: Option<Suite>,
    is_13: bool,
}

impl ServerHello {
    fn of(hello: &[u8]) -> Option<Self> {
        let random = random_of(hello)?;
        let (id_length, rest) = hello.get(2 + RANDOM_BYTES..)?.split_first()?;
        let rest = rest.get(usize::from(*id_length)..)?;
        let (suite, rest) = rest.split_first_chunk::<2>()?;
        // A byte for compression, and the length of all extensions.
        let mut extensions = rest.get(3..).unwrap_or_default();
        let mut is_13 = false;
        while let Some((kind, rest)) = extensions.split_first_chunk::<2>() {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (value, behind) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
            is_13 |= u16::from_be_bytes(*kind) == SUPPORTED_VERSIONS && value == VERSION_13;
            extensions = behind;
        }
        let is_12 = hello.starts_with(&[3, 3]);
        let suite = Suite::of(u16::from_be_bytes(*suite)).filter(|_| is_12);
        Some(ServerHello { random, suite, is_13 })
    }
}
