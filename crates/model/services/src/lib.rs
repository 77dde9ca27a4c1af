//! Services: what the controller knows of the network, and how it changes the network as a whole.
//!
//! # What it is
//! Services are apps and tasks that come with the controller. Other apps build on them. They find
//! the links between switches ([`discovery`]) and the hosts ([`hosts`]), compute paths ([`paths`]),
//! install flows with confirmation ([`programming`]), and keep the flows of each app in the
//! switches ([`desired`]). [`chain`] puts the services that the apps need before the apps.
//!
//! # What it is not
//! Services use `bellrock-api` only, like any app. They know no sockets, threads or clocks, and run
//! the same in the engine and in the emulator. They publish plain data of the API (`Topology`,
//! `Hosts`). An app reads it without knowing which service found it.
//!
//! # Layers
//! Each module uses modules to its left only:
//!
//! ```text
//! programming <- desired <- discovery <- hosts <- chain
//!                                paths <- chain
//! ```
//!
//! [`outdated_flows`] uses desired, and serves discovery and hosts.
//!
//! [`exchange`] is between discovery and hosts and the same services of other controllers.
//! [`encoded`] sends messages that are given as bytes.

pub mod chain;
pub mod desired;
pub mod discovery;
pub mod encoded;
pub mod exchange;
pub mod hosts;
pub mod outdated_flows;
pub mod outside_loops;
mod own_flows;
pub mod paths;
pub mod programming;
mod registry;
pub mod reserved;
#[cfg(test)]
mod testing;
pub mod wait;
