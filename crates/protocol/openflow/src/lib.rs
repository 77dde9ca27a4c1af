//! OpenFlow 1.0 and 1.3.5: bytes to messages and back, in both directions.
//!
//! # What it is
//! - [`frame`] cuts a byte stream into messages by their header.
//! - [`FromSwitch::decode`] and [`ToSwitch::decode`] read one whole message into a borrowed,
//!   version-neutral view. They check everything: lists ([`List`]) and matches ([`MatchView`])
//!   iterate afterwards without errors.
//! - Messages from a switch are read liberally, messages to a switch strictly ([`Strictness`]). A
//!   flow that another program has installed exists, even if its match violates the specification.
//! - `encode` writes the same types into an [`Out`]. A view that was read encodes to the same
//!   bytes. Values built by hand have one canonical form, and `decode(encode(x)) == x`.
//! - A [`FlowModTemplate`] writes flow_mods that differ in a few values only, by the million.
//! - Everything prints ([`std::fmt::Display`]), similar to `ovs-ofctl ofp-print`. Matches and
//!   actions are read back from this form. With the feature `serde` everything serialises.
//!
//! # What it is not
//! It does no I/O, has no clock, keeps no state between messages, and logs nothing. The session
//! assembles multipart replies, matches replies to requests, and answers errors.
//!
//! # Versions
//! A value means the same in all versions. Encoding returns [`EncodeError::Unsupported`] with the
//! name of anything that a version cannot express, and never drops it silently. Tables list the
//! numbers of each version: [`MessageKind`] for messages, [`MultipartKind`] for multipart types,
//! [`ErrorCode`] for errors, [`Field`] for match fields, and the tables in `action` and
//! `instruction`. The structures themselves are in `wire::v10` and `wire::v13`, section by section.
//!
//! Users of this crate ask a [`Version`] for a capability, such as [`Version::has_groups`], and not
//! for its number. [`Versions`] is a set of versions.
//!
//! Padding is not kept: any value is read, and zeros are written.

mod action;
mod address;
mod band;
mod bytes;
mod error;
mod field;
mod flags;
mod header;
mod instruction;
mod kind;
mod list;
mod r#match;
mod match_v10;
mod match_view;
mod message;
mod out;
mod outputs;
mod oxm;
mod parse;
mod port;
mod possible;
mod prerequisite;
mod print;
mod property;
mod reader;
mod request;
mod template;
mod typed_action;
mod version;
mod wire;
mod wire_enum;
pub mod xid;

pub use action::Action;
pub use address::MacAddr;
pub use band::PriorityBand;
pub use bytes::{Bytes, FixedStr};
pub use error::{DecodeError, EncodeError, ErrorCode, Reason};
pub use field::Field;
pub use header::{HEADER_LEN, Header, MAX_MESSAGE_LEN, MessageFrame, frame};
pub use instruction::{Instruction, Instructions};
pub use kind::{MessageKind, MultipartKind};
pub use list::{Element, Iter, List};
pub use r#match::Match;
pub use match_view::MatchView;
pub use message::*;
pub use out::Out;
pub use outputs::map_outputs;
pub use parse::{ParseActionError, ParseMatchError};
pub use port::{
    ParsePortError, Port, PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState,
    PortStatus,
};
pub use possible::{ImpossibleAction, KnownHeaders, NeededHeader};
pub use prerequisite::Prerequisite;
pub use property::Property;
pub use reader::Strictness;
pub use request::RequestKind;
pub use template::{Filling, FlowModTemplate, MAX_TEMPLATE_LEN};
pub use version::{ByVersion, Family, ParseVersionError, Version, Versions};
