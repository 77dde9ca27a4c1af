//! The arguments of commands that ask and order.

pub(crate) mod bandwidth;
pub(crate) mod flows;
pub(crate) mod ports;
pub(crate) mod quarantine;
