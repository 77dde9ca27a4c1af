//! How messages print.
