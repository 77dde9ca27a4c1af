//! A network to build and test on: software OpenFlow switches, hosts and links.
//!
//! # What it is
//! A switch here is what the specification says: flow tables, groups, meters, buffers and counters behind an
//! OpenFlow connection, 1.0 and 1.3. Switches, hosts and links make a network on a clock that is given from
//! outside.
//!
//! # What it is not
//! It decides nothing: what flows do is the controller's business. It holds no dispatch of apps; a controller
//! in the same process is a worker (crate `worker`), fed with bytes and time.

pub mod backoff;
pub mod check;
pub mod datapath;
pub mod host;
pub mod lab;
pub mod live;
pub mod network;
pub mod packet;
pub mod switch;
pub mod topology;
