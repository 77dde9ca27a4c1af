//! What os-ken does for each packet, for the messages and values that are usual.
//!
//! Everything here answers `None` or `False` for what is not usual, such as a field of an
//! experimenter, a subclass, or a number that is too large. Nothing has changed then, and the
//! caller, `bellrock.osken.fast`, calls os-ken's own function, which does it or raises its
//! exception. So exceptions and their texts are not repeated here.
//!
//! What is answered is os-ken's answer, byte for byte. Where os-ken differs from the specification,
//! so does this: crate `openflow` cannot be used for that, since it refuses what it should.

mod action;
mod codec;
mod frame;
mod match_10;
mod message;
mod oxm;
mod text;
mod value;

pub(crate) use codec::OsKenCodec;
