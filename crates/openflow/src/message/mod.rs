//! Messages: their contents, in both directions.

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

/// Defines the messages of one direction. Each row: variant, its content, and how to read the
/// content from a [`Reader`] and write it to an [`Out`].
macro_rules! direction {
    ($(#[$doc:meta])* $name:ident $reading:ident { $($(#[$row:meta])* $variant:ident $(($type:ty))?: $decode:expr, $encode:expr;)* }) => {
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
                    $(Some(MessageKind::$variant) => ($decode)(version, reader)?,)*
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
                    what: kind.name(Version::V1_3),
                    version,
                })?;
                out.message(version.wire(), number, xid, |out| {
                    $(if let $name::$variant { .. } = self {
                        return ($encode)(self, version, out);
                    })*
                    Ok(())
                })
            }
        }
    };
}

/// Content that has its own methods to read and write: `content!(Direction, Variant, Type)`.
macro_rules! content {
    ($name:ident::$variant:ident($type:ident), decode) => {
        |version, reader: &mut Reader<'a>| $type::decode(version, reader).map($name::$variant)
    };
    ($name:ident::$variant:ident($type:ident), encode) => {
        |message: &$name<'_>, version, out: &mut Out| match message {
            $name::$variant(content) => content.encode(version, out),
            _ => Ok(()),
        }
    };
}

/// Content that is just bytes.
macro_rules! payload {
    ($name:ident::$variant:ident, decode) => {
        |_, reader: &mut Reader<'a>| {
            Ok::<_, DecodeError>($name::$variant(Bytes(reader.take_rest())))
        }
    };
    ($name:ident::$variant:ident, encode) => {
        |message: &$name<'_>, _, out: &mut Out| match message {
            $name::$variant(bytes) => out.append(bytes),
            _ => Ok(()),
        }
    };
}

/// No content.
macro_rules! empty {
    ($name:ident::$variant:ident, decode) => {
        |_, _: &mut Reader<'a>| Ok::<_, DecodeError>($name::$variant)
    };
    ($name:ident::$variant:ident, encode) => {
        |_: &$name<'_>, _, _: &mut Out| Ok(())
    };
}

direction! {
    /// A message from a switch to a controller.
    FromSwitch Liberal {
        /// Supported versions.
        Hello(Hello<'a>): content!(FromSwitch::Hello(Hello), decode), content!(FromSwitch::Hello(Hello), encode);
        /// A fault in a message that it received.
        Error(ErrorMessage<'a>): content!(FromSwitch::Error(ErrorMessage), decode), content!(FromSwitch::Error(ErrorMessage), encode);
        /// Checks the connection.
        EchoRequest(Bytes<'a>): payload!(FromSwitch::EchoRequest, decode), payload!(FromSwitch::EchoRequest, encode);
        /// Answers an echo request.
        EchoReply(Bytes<'a>): payload!(FromSwitch::EchoReply, decode), payload!(FromSwitch::EchoReply, encode);
        /// An experimenter's message.
        Experimenter(Experimenter<'a>): content!(FromSwitch::Experimenter(Experimenter), decode), content!(FromSwitch::Experimenter(Experimenter), encode);
        /// Identity and capabilities of the switch.
        FeaturesReply(Features<'a>): content!(FromSwitch::FeaturesReply(Features), decode), content!(FromSwitch::FeaturesReply(Features), encode);
        /// Configuration of the switch.
        GetConfigReply(SwitchConfig): content!(FromSwitch::GetConfigReply(SwitchConfig), decode), content!(FromSwitch::GetConfigReply(SwitchConfig), encode);
        /// A packet for the controller.
        PacketIn(PacketInMessage<'a>): content!(FromSwitch::PacketIn(PacketInMessage), decode), content!(FromSwitch::PacketIn(PacketIn), encode);
        /// A flow was removed.
        FlowRemoved(FlowRemoved<'a>): content!(FromSwitch::FlowRemoved(FlowRemoved), decode), content!(FromSwitch::FlowRemoved(FlowRemoved), encode);
        /// A port was added, removed or changed.
        PortStatus(PortStatus): content!(FromSwitch::PortStatus(PortStatus), decode), content!(FromSwitch::PortStatus(PortStatus), encode);
        /// A reply to a multipart request, or a part of it.
        MultipartReply(MultipartReply<'a>): content!(FromSwitch::MultipartReply(MultipartReply), decode), content!(FromSwitch::MultipartReply(MultipartReply), encode);
        /// All messages before the barrier are processed.
        BarrierReply: empty!(FromSwitch::BarrierReply, decode), empty!(FromSwitch::BarrierReply, encode);
        /// The queues of a port.
        QueueGetConfigReply(QueueConfig<'a>): content!(FromSwitch::QueueGetConfigReply(QueueConfig), decode), content!(FromSwitch::QueueGetConfigReply(QueueConfig), encode);
        /// The controller's current role.
        RoleReply(RoleMessage): content!(FromSwitch::RoleReply(RoleMessage), decode), content!(FromSwitch::RoleReply(Role), encode);
        /// Which messages the switch sends by itself.
        GetAsyncReply(AsyncConfig): content!(FromSwitch::GetAsyncReply(AsyncConfig), decode), content!(FromSwitch::GetAsyncReply(AsyncConfig), encode);
    }
}

direction! {
    /// A message from a controller to a switch.
    ToSwitch Strict {
        /// Supported versions.
        Hello(Hello<'a>): content!(ToSwitch::Hello(Hello), decode), content!(ToSwitch::Hello(Hello), encode);
        /// A fault in a message that it received.
        Error(ErrorMessage<'a>): content!(ToSwitch::Error(ErrorMessage), decode), content!(ToSwitch::Error(ErrorMessage), encode);
        /// Checks the connection.
        EchoRequest(Bytes<'a>): payload!(ToSwitch::EchoRequest, decode), payload!(ToSwitch::EchoRequest, encode);
        /// Answers an echo request.
        EchoReply(Bytes<'a>): payload!(ToSwitch::EchoReply, decode), payload!(ToSwitch::EchoReply, encode);
        /// An experimenter's message.
        Experimenter(Experimenter<'a>): content!(ToSwitch::Experimenter(Experimenter), decode), content!(ToSwitch::Experimenter(Experimenter), encode);
        /// Requests identity and capabilities of the switch.
        FeaturesRequest: empty!(ToSwitch::FeaturesRequest, decode), empty!(ToSwitch::FeaturesRequest, encode);
        /// Requests the configuration of the switch.
        GetConfigRequest: empty!(ToSwitch::GetConfigRequest, decode), empty!(ToSwitch::GetConfigRequest, encode);
        /// Configures the switch.
        SetConfig(SwitchConfig): content!(ToSwitch::SetConfig(SwitchConfig), decode), content!(ToSwitch::SetConfig(SwitchConfig), encode);
        /// Sends a packet.
        PacketOut(PacketOut<'a>): content!(ToSwitch::PacketOut(PacketOut), decode), content!(ToSwitch::PacketOut(PacketOut), encode);
        /// Adds, changes or removes flows.
        FlowMod(FlowMod<'a>): content!(ToSwitch::FlowMod(FlowMod), decode), content!(ToSwitch::FlowMod(FlowMod), encode);
        /// Adds, changes or removes a group.
        GroupMod(GroupMod<'a>): content!(ToSwitch::GroupMod(GroupMod), decode), content!(ToSwitch::GroupMod(GroupMod), encode);
        /// Configures a port.
        PortMod(PortMod): content!(ToSwitch::PortMod(PortMod), decode), content!(ToSwitch::PortMod(PortMod), encode);
        /// Configures a table.
        TableMod(TableMod): content!(ToSwitch::TableMod(TableMod), decode), content!(ToSwitch::TableMod(TableMod), encode);
        /// Adds, changes or removes a meter.
        MeterMod(MeterMod<'a>): content!(ToSwitch::MeterMod(MeterMod), decode), content!(ToSwitch::MeterMod(MeterMod), encode);
        /// Requests statistics or descriptions.
        MultipartRequest(MultipartRequest<'a>): content!(ToSwitch::MultipartRequest(MultipartRequest), decode), content!(ToSwitch::MultipartRequest(MultipartRequest), encode);
        /// Requests a reply when all messages before are processed.
        BarrierRequest: empty!(ToSwitch::BarrierRequest, decode), empty!(ToSwitch::BarrierRequest, encode);
        /// Requests the queues of a port.
        QueueGetConfigRequest(Port): |version, reader: &mut Reader<'a>| queue::decode_request(version, reader).map(ToSwitch::QueueGetConfigRequest),
            |message: &ToSwitch<'_>, version, out: &mut Out| match message {
                ToSwitch::QueueGetConfigRequest(port) => queue::encode_request(*port, version, out),
                _ => Ok(()),
            };
        /// Requests a role.
        RoleRequest(RoleMessage): content!(ToSwitch::RoleRequest(RoleMessage), decode), content!(ToSwitch::RoleRequest(Role), encode);
        /// Requests which messages the switch sends by itself.
        GetAsyncRequest: empty!(ToSwitch::GetAsyncRequest, decode), empty!(ToSwitch::GetAsyncRequest, encode);
        /// Sets which messages the switch sends by itself.
        SetAsync(AsyncConfig): content!(ToSwitch::SetAsync(AsyncConfig), decode), content!(ToSwitch::SetAsync(AsyncConfig), encode);
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
