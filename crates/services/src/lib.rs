//! What the controller knows of the network, and how it changes it as a whole.
//!
//! # What it is
//! Services are apps and tasks that come with the controller and that other apps build upon. They
//! find out how switches are connected ([`discovery`]) and where hosts are ([`hosts`]), choose
//! paths ([`paths`]), install flows that are confirmed ([`programming`]), and keep what each app
//! wants in the switches ([`desired`]). [`chain`] puts those that an app needs before it.
//!
//! # What it is not
//! Services are written against `bellrock-api` like any app: they know no sockets, threads or
//! clocks, and run the same under the engine and in the emulator. What they publish is plain data
//! of the API (`Topology`, `Hosts`), so that an app can read it without knowing who found it out.
//!
//! # Layers
//! Each module uses those to its left, and none to its right:
//!
//! ```text
//! discovery <- hosts <- paths
//! programming <- desired
//! all of them <- chain
//! ```

pub mod chain;
mod counters;
pub mod desired;
pub mod discovery;
pub mod hosts;
mod own_flows;
pub mod paths;
pub mod programming;
mod registry;
pub mod reserved;
#[cfg(test)]
mod testing;
pub mod wait;
