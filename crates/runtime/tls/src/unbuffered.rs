//! Sessions without buffers: their users keep the received and the encrypted bytes.

use std::io;

use rustls::unbuffered::{ConnectionState, EncodeError};

/// Maximum number of plain bytes of a record (RFC 8446 §5.1).
pub const RECORD_BYTES: usize = 16 << 10;

/// Maximum number of bytes that encryption adds to a record: its header, a nonce, the type inside
/// and the authentication tag (RFC 8446 §5.2; RFC 5246 §6.2.3.3).
pub const RECORD_OVERHEAD_BYTES: usize = 64;

/// Maximum number of received bytes that are not decrypted yet: an unfinished record, or what came
/// behind a handshake.
pub const MAX_CARRY_BYTES: usize = 64 << 10;

/// Takes messages of TLS itself out of a session, and adds them to `unsent`. `false`: the session
/// can do no more until bytes come or are sent.
///
/// # Errors
/// The session has failed.
pub fn go_on<Data>(state: ConnectionState<'_, '_, Data>, unsent: &mut Vec<u8>) -> io::Result<bool> {
    match state {
        ConnectionState::EncodeTlsData(mut message) => {
            let before = unsent.len();
            unsent.resize(before + RECORD_OVERHEAD_BYTES, 0);
            loop {
                match message.encode(unsent.get_mut(before..).unwrap_or_default()) {
                    Ok(bytes) => {
                        unsent.truncate(before + bytes);
                        return Ok(true);
                    }
                    Err(EncodeError::InsufficientSize(error)) => {
                        unsent.resize(before + error.required_size, 0);
                    }
                    Err(error) => return Err(io::Error::other(error)),
                }
            }
        }
        // It waits in `unsent`, in order.
        ConnectionState::TransmitTlsData(sent) => {
            sent.done();
            Ok(true)
        }
        _ => Ok(false),
    }
}
