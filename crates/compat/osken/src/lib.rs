//! What os-ken does for each packet, for the messages and values that are usual.
//!
//! Everything here answers `None` or `False` for what is not usual, such as a field of an
//! experimenter, a subclass, or a number that is too large. Nothing has changed then, and the
//! caller, `bellrock.osken.fast`, calls os-ken's own function, which does it or raises its
//! exception. So exceptions and their texts are not repeated here.
//!
//! What is answered is os-ken's answer, byte for byte. Where os-ken differs from the specification,
//! so does this: crate `openflow` cannot be used for that, since it refuses what it should.
//!
//! # What it is not
//! A module of Python: `bellrock-python` exports [`OsKenCodec`] in `bellrock._native`. Connections,
//! threads and the rest of os-ken's engine are elsewhere: raw connections in `bellrock-python`, and
//! `python/bellrock/osken/`.

mod action;
mod codec;
mod frame;
mod match_10;
mod message;
mod oxm;
mod text;
mod value;

pub use codec::OsKenCodec;
