//! The arguments of commands that ask and order.

pub(crate) mod bandwidth;
pub(crate) mod flows;
pub(crate) mod quarantine;
