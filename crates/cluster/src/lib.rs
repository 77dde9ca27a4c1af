//! Several controllers as one.
//!
//! Every switch connects to every controller (a *node* of the cluster), and obeys one of them: its
//! master. etcd keeps, for each switch, the order in which nodes are its master.
//!
//! - [`mastership`] decides, without I/O, which switches this node is master of.
//! - [`remote`] carries messages to switches of which another node is master.
//! - [`network`] carries what each node knows of links and hosts to the others.
//! - [`link`] connects the nodes, and [`etcd`] is the client of the store.
//! - [`Cluster`] puts them together, in a thread of its own.
//! - [`SharedStores`] are entries that all nodes share, in a thread of their own.
//!
//! # What it is not
//! It decides nothing about flows: it orders roles, and carries what apps send. It writes no
//! consensus of its own: etcd has one.

mod boot_time;
pub mod etcd;
pub mod heartbeat;
mod known_commits;
pub mod link;
pub mod mastership;
pub mod network;
pub mod node;
mod peers;
pub mod record;
pub mod remote;
mod runtime;
mod stores;

pub use runtime::{
    Cluster, ClusterSettings, NodeStatus, OrderError, StartError, Status, SwitchStatus,
};
pub use stores::{SharedStore, SharedStores};
