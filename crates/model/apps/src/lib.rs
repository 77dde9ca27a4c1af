//! Bellrock's own apps.
//!
//! An app knows no sockets, threads or configuration files: it runs the same in the controller, in
//! the emulator and in a test. Start with the shortest, [`Hub`].
//!
//! An app is one folder: the app, what it stores, and with the feature `orders` what operators
//! order from it and ask.

pub mod bandwidth;
mod boxed;
pub mod global_learning;
pub mod hub;
pub mod learning;
#[cfg(feature = "orders")]
pub mod orders;
pub mod provisioning;
pub mod quarantine;
pub mod routing;
pub mod static_entries;
mod storm;

pub use global_learning::GlobalLearning;
pub use hub::Hub;
pub use learning::{Learning, LearningSettings, MatchKind};
pub use routing::{Routing, RoutingMode, RoutingSettings};

/// Names of the apps that come with Bellrock, as in a configuration.
pub const NAMES: [&str; 8] = [
    "learning",
    "global_learning",
    "routing",
    "hub",
    "quarantine",
    "static",
    "provisioning",
    "bandwidth",
];
