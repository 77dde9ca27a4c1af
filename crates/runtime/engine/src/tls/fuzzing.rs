//! The channel over TLS, for the fuzz target `tls` only.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use bellrock_api::{Fingerprint, SwitchIdentity};
use rustls::server::UnbufferedServerConnection;

use super::session::TlsSession;

/// An established session of a peer that has proved nothing.
#[derive(Debug)]
pub struct FuzzedSession(TlsSession);

impl FuzzedSession {
    /// `incoming` came behind the handshake. The stream must not block.
    #[must_use]
    pub fn new(stream: TcpStream, session: UnbufferedServerConnection, incoming: Vec<u8>) -> Self {
        let nobody = SwitchIdentity::new(Fingerprint([0; 32]), Fingerprint([0; 32]));
        let stream = mio::net::TcpStream::from_std(stream);
        let (session, nobody) = (Box::new(session), Arc::new(nobody));
        FuzzedSession(TlsSession::new(stream, session, nobody, incoming, Vec::new()))
    }

    /// Reads decrypted bytes.
    ///
    /// # Errors
    /// As of a socket that does not block.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map(|received| received.bytes)
    }

    /// Writes bytes. The next call must begin with those that were not taken.
    ///
    /// # Errors
    /// As of a socket that does not block.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Ends the writing side.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn finish_writing(&mut self) -> io::Result<()> {
        self.0.finish_writing()
    }
}
