//! Bellrock, an OpenFlow controller: the library for authors of apps.
//!
//! An app is a factory of handlers, one for each switch that connects ([`App`], [`Handler`]). This
//! crate offers what an app is written against, all of it from `bellrock-api`, in [`prelude`].
//!
//! # What it is not
//! The command `bellrock`, which operators run, is in here too, but behind the feature `cli`. An
//! app needs none of it, and without the feature none of what it depends on is compiled.

pub use bellrock_api::*;

#[cfg(feature = "cli")]
pub mod cli;

/// Everything that most apps name: `use bellrock::prelude::*`.
pub mod prelude {
    pub use bellrock_api::{
        Action, App, Batch, Cookie, Dpid, Error, ErrorCode, ErrorMessage, Field, FlowMod,
        FlowRemoved, Handler, HostEntry, Instruction, MacAddr, Match, Network, PacketIn, Port,
        PortStatus, ReplyBody, Result, Switch, SwitchInfo, Verdict, Version, Xid,
    };
}
