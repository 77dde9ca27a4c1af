//! Messages: their contents, in both directions.

mod body;
mod bundle;
mod excerpt;
mod flow;
mod group;
mod handshake;
mod meter;
mod multipart;
mod packet;
mod packet_view;
mod queue;
mod role;
mod stats;

pub(crate) use body::Body;
pub use bundle::{BundleAdd, BundleFlags, EnclosedMessage};
pub use excerpt::Excerpt;
pub use flow::{FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason};
pub use group::{Bucket, Group, GroupCommand, GroupMod, GroupType};
pub(crate) use handshake::bitmap_versions;
pub use handshake::{
    AsyncConfig, AsyncMasks, Capabilities, ConfigFlags, ErrorMessage, Experimenter, Features,
    Hello, HelloElement, SwitchConfig, TableMod,
};
pub use meter::{Band, BandType, Meter, MeterCommand, MeterFlags, MeterMod};
pub use multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
pub use packet::{PacketInMessage, PacketInReason, PacketOut};
pub use packet_view::PacketInView;
pub use queue::{Queue, QueueConfig, QueueProperty};
pub use role::{NICIRA, ONF, RoleExtension, RoleKind, RoleMessage, RoleReason, RoleStatus};
pub use stats::*;

use crate::header::Header;
use crate::reader::{Reader, Strictness};
use crate::{
    Bytes, DecodeError, EncodeError, ErrorCode, HEADER_LEN, MessageKind, Out, Port, PortMod,
    PortStatus, Reason, Version,
};

/// A message with the relevant fields of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Message<T> {
    /// The version of its header.
    pub version: Version,
    /// The transaction id.
    pub xid: u32,
    /// The content.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub body: T,
}

/// Defines the messages of one direction. Each row: variant, which is also the kind, and its
/// content.
macro_rules! direction {
    // The name of a content that is there.
    (@name $name:ident $type:ty) => { $name };
    ($(#[$doc:meta])* $name:ident $reading:ident { $($(#[$row:meta])* $variant:ident $(($type:ty))?;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[cfg_attr(feature = "serde", serde(tag = "type", content = "body", rename_all = "snake_case"))]
        pub enum $name<'a> { $($(#[$row])* $variant $(($type))?,)* }

        impl<'a> $name<'a> {
            /// Reads one whole message, as strictly as its direction requires: [`FromSwitch`]
            /// liberally, [`ToSwitch`] strictly ([`Strictness`]).
            ///
            /// # Errors
            /// As [`Self::decode_as`].
            pub fn decode(message: &'a [u8]) -> Result<Message<$name<'a>>, DecodeError> {
                Self::decode_as(message, Strictness::$reading)
            }

            /// Reads one whole message and checks all of it.
            ///
            /// # Errors
            /// The faulty field, its offset, and the OpenFlow error to answer with. The fault is an
            /// unsupported version, a type that this end does not receive, an invalid length, a
            /// value that is not allowed, or bytes left over.
            pub fn decode_as(
                message: &'a [u8],
                reading: Strictness,
            ) -> Result<Message<$name<'a>>, DecodeError> {
                let (header, version, reader) = open(message)?;
                let kind = MessageKind::from_wire(version, header.kind);
                let reader = &mut reader.reading(reading);
                let body = match kind {
                    $(Some(MessageKind::$variant) => {
                        $name::$variant $((<$type>::decode(version, reader)?))?
                    })*
                    _ => {
                        return Err(DecodeError {
                            what: "header.type",
                            offset: 1,
                            reason: Reason::Unexpected(header.kind),
                            answer: ErrorCode::RequestBadType,
                        });
                    }
                };
                reader.finish("message")?;
                Ok(Message { version, xid: header.xid, body })
            }

            /// Returns the type of the message.
            #[must_use]
            pub const fn kind(&self) -> MessageKind {
                match self { $($name::$variant { .. } => MessageKind::$variant,)* }
            }

            /// Writes the message.
            ///
            /// # Errors
            /// [`EncodeError`]; then `out` contains nothing of the message.
            pub fn encode(&self, version: Version, xid: u32, out: &mut Out) -> Result<(), EncodeError> {
                let kind = self.kind();
                let number = kind.wire(version).ok_or(EncodeError::Unsupported {
                    what: kind.name(version),
                    version,
                })?;
                out.message(version.wire(), number, xid, |out| {
                    match self {
                        $($name::$variant $((direction!(@name content $type)))? => {
                            $(<$type>::encode(content, version, out)?;)?
                            Ok(())
                        })*
                    }
                })
            }
        }
    };
}

direction! {
    /// A message from a switch to a controller.
    FromSwitch Liberal {
        /// Supported versions.
        Hello(Hello<'a>);
        /// A fault in a message that it received.
        Error(ErrorMessage<'a>);
        /// Checks the connection.
        EchoRequest(Bytes<'a>);
        /// Answers an echo request.
        EchoReply(Bytes<'a>);
        /// An experimenter's message.
        Experimenter(Experimenter<'a>);
        /// Identity and capabilities of the switch.
        FeaturesReply(Features<'a>);
        /// Configuration of the switch.
        GetConfigReply(SwitchConfig);
        /// A packet for the controller.
        PacketIn(PacketInMessage<'a>);
        /// A flow was removed.
        FlowRemoved(FlowRemoved<'a>);
        /// A port was added, removed or changed.
        PortStatus(PortStatus);
        /// A reply to a multipart request, or a part of it.
        MultipartReply(MultipartReply<'a>);
        /// All messages before the barrier are processed.
        BarrierReply;
        /// The queues of a port.
        QueueGetConfigReply(QueueConfig<'a>);
        /// The controller's current role.
        RoleReply(RoleMessage);
        /// Which messages the switch sends by itself.
        GetAsyncReply(AsyncConfig);
    }
}

direction! {
    /// A message from a controller to a switch.
    ToSwitch Strict {
        /// Supported versions.
        Hello(Hello<'a>);
        /// A fault in a message that it received.
        Error(ErrorMessage<'a>);
        /// Checks the connection.
        EchoRequest(Bytes<'a>);
        /// Answers an echo request.
        EchoReply(Bytes<'a>);
        /// An experimenter's message.
        Experimenter(Experimenter<'a>);
        /// Requests identity and capabilities of the switch.
        FeaturesRequest;
        /// Requests the configuration of the switch.
        GetConfigRequest;
        /// Configures the switch.
        SetConfig(SwitchConfig);
        /// Sends a packet.
        PacketOut(PacketOut<'a>);
        /// Adds, changes or removes flows.
        FlowMod(FlowMod<'a>);
        /// Adds, changes or removes a group.
        GroupMod(GroupMod<'a>);
        /// Configures a port.
        PortMod(PortMod);
        /// Configures a table.
        TableMod(TableMod);
        /// Adds, changes or removes a meter.
        MeterMod(MeterMod<'a>);
        /// Requests statistics or descriptions.
        MultipartRequest(MultipartRequest<'a>);
        /// Requests a reply when all messages before are processed.
        BarrierRequest;
        /// Requests the queues of a port.
        QueueGetConfigRequest(Port);
        /// Requests a role.
        RoleRequest(RoleMessage);
        /// Requests which messages the switch sends by itself.
        GetAsyncRequest;
        /// Sets which messages the switch sends by itself.
        SetAsync(AsyncConfig);
    }
}

/// Reads the header of one whole message. Checks that its length is that of `message`, and its
/// version is supported.
fn open(message: &[u8]) -> Result<(Header, Version, Reader<'_>), DecodeError> {
    let mut reader = Reader::new(message);
    let header = Header::read(message).ok_or(DecodeError {
        what: "header",
        offset: 0,
        reason: Reason::Truncated { need: HEADER_LEN, have: message.len() },
        answer: ErrorCode::RequestBadLength,
    })?;
    if usize::from(header.length) != message.len() {
        return Err(DecodeError {
            what: "header.length",
            offset: 2,
            reason: Reason::Length(header.length.into()),
            answer: ErrorCode::RequestBadLength,
        });
    }
    let version = Version::from_wire(header.version).ok_or(DecodeError {
        what: "header.version",
        offset: 0,
        reason: Reason::Version(header.version),
        answer: ErrorCode::RequestBadVersion,
    })?;
    reader.take(HEADER_LEN, "header")?;
    Ok((header, version, reader))
}
