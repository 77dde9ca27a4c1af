//! Tests of an app: networks of emulated switches and hosts on a virtual clock (feature `lab`, for
//! the dev-dependencies of an app).
//!
//! ```
//! use bellrock::lab::{Lab, tree};
//! use bellrock::prelude::*;
//!
//! struct Hub;
//!
//! impl Handler for Hub {
//!     fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
//!         switch.packet_out(packet, Port::FLOOD)?;
//!         Ok(Verdict::Consume)
//!     }
//! }
//!
//! let mut lab = Lab::seeded(42).topology(tree(2, 3)).run(per_switch("hub", |_| Hub));
//! assert!(lab.ping("h1", "h9"));
//! ```

pub use bellrock_emulator::check::{LoggedMessage, Matrix, MessageDirection};
pub use bellrock_emulator::host::{FlowReport, FlowState, HostCounters, PingStatistics};
pub use bellrock_emulator::lab::*;
pub use bellrock_emulator::network::NetworkSettings;
pub use bellrock_emulator::topology::{
    NamedTopology, TopologyError, TopologySpec, fat_tree, leaf_spine, linear, ring, single, tree,
    waxman,
};
