//! How often something may happen.
//!
//! - [`RateLimit`] lets so many events pass.
//! - [`Repeats`] reports what happens again and again once in a while, with its number.
//! - [`Backoff`] is a pause after a failure, which doubles.
//!
//! They are values without a clock, a lock or heap memory for each event. The caller passes the
//! time: that of the controller's clock, or of a test.

mod backoff;
mod rate;
mod repeats;

pub use backoff::Backoff;
pub use rate::RateLimit;
pub use repeats::Repeats;
