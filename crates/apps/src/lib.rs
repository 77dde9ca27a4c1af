//! The apps that come with Bellrock.
//!
//! An app is written against `bellrock-api` and knows nothing of sockets, threads or configuration
//! files, so it runs the same in the controller, in the emulator and in a test. Each has a module of
//! its own that can be read in one sitting; [`Hub`] is the place to start.

mod backoff;
pub mod bandwidth;
mod counters;
pub mod global_learning;
pub mod hub;
pub mod learning;
pub mod provisioning;
pub mod quarantine;
pub mod routing;
mod storm;

pub use global_learning::GlobalLearning;
pub use hub::Hub;
pub use learning::{Learning, LearningSettings, MatchKind};
pub use routing::{Routing, RoutingMode, RoutingSettings};
