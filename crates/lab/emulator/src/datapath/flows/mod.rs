//! Flow tables: which flow a packet matches, and how controllers change flows.
//!
//! [`FlowTable`] is one table. [`FlowTables`] are all tables of a switch, with the rules of a
//! flow_mod in both versions. What a flow does to a packet is its [`Program`](super::FlowProgram):
//! here it is stored, and asked for its outputs.

mod classifier;
mod flow;
mod table;
mod tables;
#[cfg(test)]
mod tests;

pub use flow::{FlowEntry, FlowIndex, Removed};
pub use table::{FlowTable, Selection};
pub use tables::FlowTables;
