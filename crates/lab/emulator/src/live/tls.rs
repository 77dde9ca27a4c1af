//! The switch's end of TLS.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use bellrock_tls::{TlsFileError, controller_name, switch_config};
use mio::net::TcpStream;
use rustls::{ClientConfig, ClientConnection};

/// The certificate of emulated switches, and the authority of controllers. As Open vSwitch does,
/// all switches have the same certificate, and the name in the controller's does not matter.
#[derive(Clone, Debug)]
pub struct SwitchTls(Arc<ClientConfig>);

impl SwitchTls {
    /// Reads PEM files: the switches' certificate with those of its authorities, its key, and the
    /// authorities of controllers.
    ///
    /// # Errors
    /// A file cannot be read, or does not have what it should have.
    pub fn read(certificate: &Path, key: &Path, authorities: &Path) -> Result<Self, TlsFileError> {
        switch_config(certificate, key, authorities, None).map(|config| SwitchTls(Arc::new(config)))
    }
}

/// A TLS session over a TCP connection that does not block.
pub(super) struct SwitchSession(Box<ClientConnection>);

impl SwitchSession {
    pub(super) fn new(tls: &SwitchTls) -> io::Result<Self> {
        let session = ClientConnection::new(Arc::clone(&tls.0), controller_name());
        let session = session.map_err(io::Error::other)?;
        Ok(SwitchSession(Box::new(session)))
    }

    /// Continues the handshake. `true`: it is finished.
    pub(super) fn handshake(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        loop {
            if !self.flush(stream)? {
                return Ok(false);
            }
            if !self.0.is_handshaking() {
                return Ok(true);
            }
            match self.receive(stream) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads decrypted bytes, as many as there are at once; 0 at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none now.
    pub(super) fn read(&mut self, stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A close without close_notify is a close too: switches end like this.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            self.receive(stream)?;
        }
    }

    /// Reads from the kernel once, and decrypts.
    fn receive(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let received = self.0.read_tls(stream)?;
        if let Err(error) = self.0.process_new_packets() {
            // The alert explains it to the controller.
            let _ = self.flush(stream);
            return Err(io::Error::other(error));
        }
        self.flush(stream)?;
        Ok(received)
    }

    /// Encrypts bytes. Returns the number of those that were taken: none while earlier ones wait.
    pub(super) fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        if !self.flush(stream)? || bytes.is_empty() {
            return Ok(0);
        }
        let taken = self.0.writer().write(bytes)?;
        self.flush(stream)?;
        Ok(taken)
    }

    /// Gives what is encrypted to the kernel. `false`: it does not take all of it now.
    fn flush(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        while self.0.wants_write() {
            match self.0.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
