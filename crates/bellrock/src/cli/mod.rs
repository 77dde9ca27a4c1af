//! The command `bellrock`, one module for each of its parts.

pub mod decode;
