//! Number of unacknowledged bytes of a connection, from the kernel.

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, ioctl};

/// `SIOCOUTQ` of tcp(7), which is `TIOCOUTQ` under another name.
const OUT_QUEUE: rustix::ioctl::Opcode = libc::TIOCOUTQ as rustix::ioctl::Opcode;

/// Returns the number of bytes written to a TCP socket that its peer has not acknowledged, sent or
/// not.
///
/// # Errors
/// The system's, for instance if it is not a TCP socket.
pub(crate) fn unacknowledged_bytes(stream: &impl AsFd) -> io::Result<usize> {
    // SAFETY: the kernel writes one `int` for this operation code (tcp(7), ioctls), and nothing
    // else. The borrowed descriptor is open during the call.
    #[allow(unsafe_code)]
    let bytes: libc::c_int = unsafe { ioctl(stream, Getter::<OUT_QUEUE, libc::c_int>::new()) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}
