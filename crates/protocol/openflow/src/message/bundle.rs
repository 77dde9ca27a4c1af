//! Messages within messages: what a bundle takes (ONF extension 230 of 1.3; 1.4.1 §7.3.9.6).
//!
//! ```text
//! +--------+--------------+-------+---------+-------------+...+-------------+...
//! | header | bundle id    |  pad  |  flags  |   message   |pad|  properties
//! +--------+--------------+-------+---------+-------------+...+-------------+...
//! ```
//!
//! The message is a whole one, with a header. It is padded to eight bytes only if properties
//! follow.

use crate::flags::flags;
use crate::list::List;
use crate::property::Property;
use crate::reader::Reader;
use crate::wire::{self, U16, U32, v13};
use crate::{
    DecodeError, EncodeError, ErrorCode, Experimenter, Family, HEADER_LEN, Message, MessageKind,
    ONF, Out, Reason, ToSwitch, Version,
};

/// A message to a switch within another: the checked bytes that were read, or a message to write.
///
/// It has the version and the xid of the message around it, and is no message with one inside.
#[derive(Clone, Copy)]
pub struct EnclosedMessage<'a>(Repr<'a>);

#[derive(Clone, Copy)]
enum Repr<'a> {
    Wire(&'a [u8]),
    Body(&'a ToSwitch<'a>),
}

impl<'a> EnclosedMessage<'a> {
    /// Encloses this message.
    #[must_use]
    pub const fn of(body: &'a ToSwitch<'a>) -> Self {
        EnclosedMessage(Repr::Body(body))
    }

    /// Its content.
    #[must_use]
    pub fn body(&self) -> ToSwitch<'a> {
        match self.0 {
            // It was checked when it was read.
            Repr::Wire(bytes) => ToSwitch::decode(bytes)
                .map_or(ToSwitch::BarrierRequest, |Message { body, .. }| body),
            Repr::Body(body) => *body,
        }
    }

    /// Reads and checks a message that starts here. `version` and `xid` are those of the message
    /// around it.
    pub(crate) fn decode(
        version: Version,
        xid: u32,
        reader: &mut Reader<'a>,
    ) -> Result<Self, DecodeError> {
        let start = *reader;
        let header: &wire::Header = { start }.fixed("enclosed message")?;
        let bytes = reader.take(header.length.get().into(), "enclosed message")?;
        let error = |what, reason, answer| Err(start.error(what, reason, answer));
        if header.version != version.wire() {
            let reason = Reason::Version(header.version);
            return error("enclosed message version", reason, ErrorCode::RequestBadVersion);
        }
        if header.xid.get() != xid {
            let reason = Reason::Value(header.xid.get().into());
            return error("enclosed message xid", reason, ErrorCode::BundleMessageBadXid);
        }
        let at = start.offset();
        let Message { body, .. } = ToSwitch::decode(bytes)
            .map_err(|error| DecodeError { offset: at + error.offset, ..error })?;
        // One level: whatever walks through enclosed messages ends.
        if encloses(&body) {
            let reason = Reason::Unexpected(header.kind);
            return error("enclosed message type", reason, ErrorCode::BundleMessageUnsupported);
        }
        Ok(EnclosedMessage(Repr::Wire(bytes)))
    }

    /// Writes the message, in place: behind what `out` has of the message around it.
    pub(crate) fn encode(
        &self,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), EncodeError> {
        let body = self.body();
        if encloses(&body) {
            return Err(EncodeError::Unsupported { what: "a bundle in a bundle", version });
        }
        body.encode(version, xid, out)
    }
}

/// Returns whether a message may have another one inside.
fn encloses(body: &ToSwitch<'_>) -> bool {
    matches!(body, ToSwitch::Experimenter(message) if is_bundle_add(message))
}

fn is_bundle_add(message: &Experimenter<'_>) -> bool {
    (message.experimenter, message.kind) == (ONF, Some(ADD_MESSAGE))
}

impl PartialEq for EnclosedMessage<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.body() == other.body()
    }
}

impl Eq for EnclosedMessage<'_> {}

impl std::fmt::Debug for EnclosedMessage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.body().fmt(f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for EnclosedMessage<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.body().serialize(serializer)
    }
}

flags! {
    /// How the messages of a bundle take effect (`ofp_bundle_flags`).
    BundleFlags: u16 {
        ATOMIC = 1 << 0;
        ORDERED = 1 << 1;
    }
}

/// Adds a message to a bundle (`ONF_ET_BUNDLE_ADD_MESSAGE`, type 2301 of [`ONF`], in an
/// [`Experimenter`] message of 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BundleAdd<'a> {
    /// The number of the bundle.
    pub bundle: u32,
    /// How the bundle takes effect: the same for all its messages.
    pub flags: BundleFlags,
    /// The message.
    pub message: EnclosedMessage<'a>,
    /// Properties of the message in the bundle.
    pub properties: List<'a, Property<'a>>,
}

/// `ONF_ET_BUNDLE_ADD_MESSAGE`.
const ADD_MESSAGE: u32 = 2301;

/// Offset of the data of an experimenter's message of 1.3.
const DATA_AT: usize = HEADER_LEN + 8;

impl<'a> BundleAdd<'a> {
    /// Reads an experimenter's message, which has this version and xid. `None`: it is another one.
    ///
    /// # Errors
    /// As [`ToSwitch::decode`]. The message inside has another version or xid, or is such a message
    /// itself.
    #[must_use]
    pub fn read(
        message: &Experimenter<'a>,
        version: Version,
        xid: u32,
    ) -> Option<Result<Self, DecodeError>> {
        is_bundle_add(message).then(|| {
            BundleAdd::decode(version, xid, &mut Reader::new(message.data.0))
                .map_err(|error| DecodeError { offset: DATA_AT + error.offset, ..error })
        })
    }

    /// Reads what is behind the header.
    fn decode(version: Version, xid: u32, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &v13::BundleAdd = reader.fixed("bundle add")?;
        let before = reader.len();
        let message = EnclosedMessage::decode(version, xid, reader)?;
        let length = before - reader.len();
        if !reader.is_empty() {
            reader.take(length.next_multiple_of(8) - length, "padding of the enclosed message")?;
        }
        let properties = List::decode(version, *reader)?;
        let flags = BundleFlags::from_bits_retain(wire.flags.get());
        Ok(BundleAdd { bundle: wire.bundle_id.get(), flags, message, properties })
    }

    /// Writes the whole message, with the message inside in place.
    ///
    /// # Errors
    /// As [`ToSwitch::encode`]; [`EncodeError::Unsupported`] for 1.0, and for a message that has
    /// one inside.
    pub fn write(&self, version: Version, xid: u32, out: &mut Out) -> Result<(), EncodeError> {
        let unsupported = EncodeError::Unsupported { what: "bundles", version };
        if version.family() == Family::Fixed {
            return Err(unsupported);
        }
        let kind = MessageKind::Experimenter.wire(version).ok_or(unsupported)?;
        out.message(version.wire(), kind, xid, |out| {
            out.put(&[U32::new(ONF), U32::new(ADD_MESSAGE)])?;
            let (bundle_id, flags) = (U32::new(self.bundle), U16::new(self.flags.bits()));
            out.put(&v13::BundleAdd { bundle_id, pad: [0; 2], flags })?;
            let start = out.len();
            self.message.encode(version, xid, out)?;
            if !self.properties.is_empty() {
                out.pad8(start)?;
            }
            self.properties.encode(version, out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, FlowMod, Match};

    fn written(add: &BundleAdd<'_>) -> Vec<u8> {
        let mut out = Out::with_capacity(512);
        add.write(Version::V1_3, 7, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    /// Reads a whole message.
    fn read(bytes: &[u8]) -> Result<BundleAdd<'_>, DecodeError> {
        let Message { body: ToSwitch::Experimenter(message), version, xid } =
            ToSwitch::decode(bytes)?
        else {
            panic!("it is an experimenter's message");
        };
        BundleAdd::read(&message, version, xid).expect("it is one of a bundle")
    }

    #[test]
    fn a_message_with_one_inside_is_written_in_place_and_comes_back() {
        let matching = Match::any();
        let flow = ToSwitch::FlowMod(FlowMod::add(&matching));
        let echo = ToSwitch::EchoRequest(Bytes(b"abc"));
        let property = [Property { kind: 0xffff, content: Bytes(b"12345678") }];
        for body in [&flow, &echo] {
            for properties in [List::empty(), List::of(&property)] {
                let message = EnclosedMessage::of(body);
                let flags = BundleFlags::ATOMIC | BundleFlags::ORDERED;
                let add = BundleAdd { bundle: 3, flags, message, properties };
                let bytes = written(&add);
                assert_eq!(read(&bytes), Ok(add));
                assert_eq!(written(&read(&bytes).unwrap()), bytes);
                let mut alone = Out::with_capacity(512);
                body.encode(Version::V1_3, 7, &mut alone).unwrap();
                assert!(bytes[24..].starts_with(alone.as_slice()));
            }
        }
    }

    #[test]
    fn an_enclosed_message_that_is_no_message_is_an_error() {
        let body = ToSwitch::BarrierRequest;
        let message = EnclosedMessage::of(&body);
        let (bundle, flags) = (1, BundleFlags::default());
        let add = BundleAdd { bundle, flags, message, properties: List::empty() };
        let good = written(&add);
        let damaged = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            read(&bytes).unwrap_err()
        };
        let fault = |error: DecodeError| (error.what, error.offset, error.answer);
        assert_eq!(
            fault(damaged(24, 1)),
            ("enclosed message version", 24, ErrorCode::RequestBadVersion)
        );
        assert_eq!(
            fault(damaged(31, 8)),
            ("enclosed message xid", 24, ErrorCode::BundleMessageBadXid)
        );
        assert_eq!(fault(damaged(27, 9)), ("enclosed message", 24, ErrorCode::RequestBadLength));
        assert_eq!(fault(damaged(27, 0)), ("header", 24, ErrorCode::RequestBadLength));
        assert_eq!(fault(damaged(25, 99)), ("header.type", 25, ErrorCode::RequestBadType));
        // A bundle in a bundle, which could have another one, and so on.
        let inner = ToSwitch::decode(&good).unwrap().body;
        let nested = BundleAdd { message: EnclosedMessage::of(&inner), ..add };
        let mut out = Out::with_capacity(512);
        let refused = nested.write(Version::V1_3, 7, &mut out);
        assert!(matches!(refused, Err(EncodeError::Unsupported { .. })) && out.is_empty());
        let data = [&good[16..24], &good].concat();
        let outer = Experimenter { experimenter: ONF, kind: Some(ADD_MESSAGE), data: Bytes(&data) };
        let error = BundleAdd::read(&outer, Version::V1_3, 7).unwrap().unwrap_err();
        assert_eq!(error.answer, ErrorCode::BundleMessageUnsupported);
    }

    #[test]
    fn a_message_that_does_not_fit_leaves_nothing() {
        let body = ToSwitch::EchoRequest(Bytes(&[0; 64]));
        let message = EnclosedMessage::of(&body);
        let add =
            BundleAdd { bundle: 1, flags: BundleFlags::ATOMIC, message, properties: List::empty() };
        let length = written(&add).len();
        for room in 0..length {
            let mut out = Out::with_capacity(room);
            assert_eq!(add.write(Version::V1_3, 7, &mut out), Err(EncodeError::Full));
            assert!(out.is_empty(), "{room}");
        }
        let mut out = Out::with_capacity(length);
        let refused = add.write(Version::V1_0, 7, &mut out);
        assert!(matches!(refused, Err(EncodeError::Unsupported { .. })));
    }
}
