//! How often something may happen.
//!
//! - [`RateLimit`] lets so many events pass.
//! - [`Repeats`] reports what happens again and again once in a while, with its number.
//! - [`Backoff`] is a pause after a failure, which doubles.
//! - [`Places`] are for connections of strangers: they decide who gives way to a newcomer.
//!
//! They are values without a clock or a lock, and all but [`Places`] take no heap memory for an
//! event. The caller passes the time: that of the controller's clock, or of a test.

mod backoff;
mod places;
mod rate;
mod repeats;

pub use backoff::Backoff;
pub use places::{NoPlace, PlaceLimits, Places, network_of};
pub use rate::RateLimit;
pub use repeats::Repeats;
