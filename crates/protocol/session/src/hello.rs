//! Hello: agreement on a version (1.0 §5.5.1; 1.3.5 §6.3.1).

use std::fmt;

use bellrock_openflow::{
    Bytes, EncodeError, ErrorCode, ErrorMessage, HEADER_LEN, Header, Hello, MessageFrame, Out,
    ToSwitch, Version, Versions, frame,
};

use crate::close::{CloseReason, Stop};

/// Maximum length of the first message of a connection. A longer one is refused before it has
/// arrived, so garbage cannot delay this for 64 KiB.
pub const MAX_FIRST_MESSAGE_BYTES: u16 = 2048;

/// Maximum number of characters kept of the peer's text when it refuses the hello.
const MAX_REFUSAL_CHARS: usize = 128;

/// `OFPT_HELLO` and `OFPT_ERROR`, the same numbers in every version.
const HELLO: u8 = 0;
pub(crate) const ERROR: u8 = 1;

/// The versions in a peer's hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerVersions {
    /// The version byte of its header.
    pub header: u8,
    /// The first word of its bitmap, if any: one bit for each wire version below 32.
    pub bitmap: Option<u32>,
}

impl PeerVersions {
    fn of(header: Header, hello: &Hello<'_>) -> Self {
        let names = |wire: u8| hello.names(header.version, wire);
        let bitmap = names(0).map(|_| {
            (0..32).filter(|wire| names(*wire) == Some(true)).fold(0, |bits, wire| bits | 1 << wire)
        });
        PeerVersions { header: header.version, bitmap }
    }

    /// The version that both ends agree on. With a bitmap: the highest version in both. Without:
    /// the smaller of both headers' versions.
    ///
    /// If this end does not speak the smaller version, it tries its highest one below that. The
    /// specification asks for a refusal. But a peer without a bitmap often speaks all versions up
    /// to the one in its header, and then agrees on the same one with this end's bitmap. A peer
    /// that does not answers with an error, and the connection ends as after a refusal.
    ///
    /// This end's bitmap does not matter: an end without one speaks a single version, and both
    /// rules then agree.
    pub(crate) fn agree(self, ours: Versions) -> Option<Version> {
        match self.bitmap {
            Some(bits) => Versions::from_bitmap(bits)?.and(ours).map(Versions::highest),
            None => ours.highest_up_to(self.header),
        }
    }
}

impl fmt::Display for PeerVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bits) = self.bitmap else {
            return write!(f, "up to {}", Name(self.header));
        };
        let mut comma = "";
        for wire in (0..32).filter(|wire| bits >> wire & 1 != 0) {
            write!(f, "{comma}{}", Name(wire))?;
            comma = ", ";
        }
        if bits == 0 { f.write_str("none") } else { Ok(()) }
    }
}

/// Prints a wire version by its name.
struct Name(u8);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            wire @ 1..=6 => write!(f, "1.{}", wire - 1),
            wire => write!(f, "wire version {wire:#04x}"),
        }
    }
}

/// Returns the first message of a stream, or `None` while it is incomplete. It is a hello or an
/// error; anything else is another protocol.
pub(crate) fn first_message(stream: &[u8]) -> Result<Option<MessageFrame<'_>>, CloseReason> {
    let mut start = [0; HEADER_LEN];
    start.iter_mut().zip(stream).for_each(|(to, from)| *to = *from);
    let not_openflow = CloseReason::NotOpenFlow { start };
    if stream.get(1).is_some_and(|kind| !matches!(*kind, HELLO | ERROR)) {
        return Err(not_openflow);
    }
    if Header::read(stream).is_some_and(|header| header.length > MAX_FIRST_MESSAGE_BYTES) {
        return Err(not_openflow);
    }
    frame(stream).map_err(CloseReason::BadLength)
}

/// Agrees on a version with the peer's first message, or writes an error for the peer.
pub(crate) fn agree(
    message: MessageFrame<'_>,
    ours: Versions,
    out: &mut Out,
) -> Result<Version, Stop> {
    if let Some(refused) = refusal(message) {
        return Err(refused.into());
    }
    if message.header.kind != HELLO {
        let mut start = [0; HEADER_LEN];
        start.iter_mut().zip(message.bytes).for_each(|(to, from)| *to = *from);
        return Err(CloseReason::NotOpenFlow { start }.into());
    }
    let version = refusing_version(message.header.version, ours);
    let (header, hello) = match Hello::decode_any(message.bytes) {
        Ok(read) => read,
        Err(error) => {
            write_error(version, message, error.answer, out)?;
            return Err(CloseReason::BadHello(error).into());
        }
    };
    let theirs = PeerVersions::of(header, &hello);
    theirs.agree(ours).ok_or(()).or_else(|()| {
        let text = match ours == ours.highest().into() {
            true => format!("only OpenFlow {ours} is spoken here"),
            false => format!("OpenFlow {ours} are spoken here"),
        };
        let (code, data) = (ErrorCode::HelloIncompatible, Bytes(text.as_bytes()));
        let error = ToSwitch::Error(ErrorMessage::Standard { code, data });
        error.encode(version, header.xid, out)?;
        Err(CloseReason::NoCommonVersion { theirs, ours }.into())
    })
}

/// Whether a message refuses the hello, in any version: both ends may have none in common.
pub(crate) fn refusal(message: MessageFrame<'_>) -> Option<CloseReason> {
    let (Header { kind: ERROR, .. }, Some([0, 0, high, low])) =
        (message.header, message.bytes.get(HEADER_LEN..HEADER_LEN + 4))
    else {
        return None;
    };
    // Errors of hellos have the same numbers in all versions.
    let code = ErrorCode::from_wire(Versions::ALL.highest(), 0, u16::from_be_bytes([*high, *low]));
    let text = message.bytes.get(HEADER_LEN + 4..).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let text = text.trim_end_matches('\0').chars().take(MAX_REFUSAL_CHARS);
    let text = text.flat_map(char::escape_debug).collect::<String>().into_boxed_str();
    Some(CloseReason::HelloRefused { code, text })
}

/// Writes an error about `message`, with the beginning of it. Both ends use the same form.
pub(crate) fn write_error(
    version: Version,
    message: MessageFrame<'_>,
    code: ErrorCode,
    out: &mut Out,
) -> Result<(), EncodeError> {
    let data = message.bytes.get(..ErrorMessage::DATA_LEN).unwrap_or(message.bytes);
    let error = ErrorMessage::Standard { code: code.nearest(version), data: Bytes(data) };
    ToSwitch::Error(error).encode(version, message.header.xid, out)
}

/// Version of an error that refuses a hello: the highest of this end that the peer may understand.
fn refusing_version(theirs: u8, ours: Versions) -> Version {
    ours.highest_up_to(theirs).unwrap_or(ours.lowest())
}
