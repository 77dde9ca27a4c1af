//! Contents of multipart requests and replies.

mod flow;
mod group;
mod meter;
mod port;
mod switch;
mod table;

pub use flow::{Aggregate, FlowStats, FlowStatsRequest};
pub use group::{GroupDesc, GroupFeatures, GroupStats, PacketByteCount};
pub use meter::{MeterConfig, MeterFeatures, MeterStats};
pub use port::{PortCounters, PortStats, QueueStats, QueueStatsRequest};
pub use switch::{Desc, DescBuf};
pub use table::{
    ActionId, InstructionId, OxmId, TableDetails, TableFeatures, TableProperty, TableStats,
};
