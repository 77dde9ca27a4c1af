//! A network to build and test on: software OpenFlow switches, hosts and links.
//!
//! ```
//! use bellrock_apps::Learning;
//! use bellrock_emulator::lab::Lab;
//! use bellrock_emulator::topology::tree;
//!
//! // Seven switches, eight hosts and a controller with one app, on a virtual clock.
//! let mut lab = Lab::seeded(42).topology(tree(3, 2)).run(Learning::default());
//! assert!(lab.ping("h1", "h8"));
//! assert_eq!(lab.paths("h1", "h8"), [["h1", "s3", "s2", "s1", "s5", "s7", "h8"]]);
//!
//! // What breaks shows in the hosts' pings and in the flow tables.
//! lab.link_down("s1", "s5");
//! assert!(!lab.ping("h1", "h8") && lab.ping("h1", "h4"));
//! assert!(!lab.flows("s2").is_empty());
//! ```
//!
//! # What it is
//! A switch follows the specification: flow tables, groups, meters, buffers and counters behind an
//! OpenFlow connection, 1.0 and 1.3. Switches, hosts and links make a network, whose clock is given
//! from outside. There are two ways to run it. In [`lab`], workers with their apps advance together
//! with the network, and every run repeats from its seed. In [`live`], the switches connect to any
//! controller over TCP.
//!
//! # What it is not
//! It decides nothing: the controller decides what flows do. It does not dispatch events to apps: a
//! controller in the same process is a worker (crate `worker`), which gets bytes and time.
//!
//! # Where things are
//! Each module uses those to its left, and none to its right:
//!
//! ```text
//! packet <- datapath <- switch <- network <- check <- lab
//!           datapath <- host   <- network <- live
//!                     topology <- network
//! ```
//!
//! | Module | What it is |
//! |---|---|
//! | [`packet`] | frames: parses them into match fields, edits and builds them |
//! | [`datapath`] | the forwarding of one switch: ports, flow tables, groups, meters, buffers |
//! | [`switch`] | its OpenFlow end: channels to controllers, requests and notices |
//! | [`host`] | small stacks: ARP, ICMP, UDP, flows like TCP's |
//! | [`topology`] | the links between nodes: by name, from a file, by calls |
//! | [`network`] | all of these on a virtual clock, with links that delay, queue and lose frames |
//! | [`check`] | questions: reachability, loops, black holes, paths, flows, messages |
//! | [`lab`] | seeded runs: workers and apps over a network, and faults |
//! | [`live`] | over sockets, against any controller |

mod backoff;
pub mod check;
pub mod datapath;
pub mod host;
pub mod lab;
pub mod live;
pub mod network;
pub mod packet;
pub mod switch;
pub mod topology;
