//! A lab in which all is known that can be.

use std::time::Duration;

use bellrock_emulator::lab::Lab;

/// By then discovery has asked all ports.
pub(crate) const SETTLED: Duration = Duration::from_secs(12);

/// The lab when all links are found, and all hosts: each is when it first speaks.
pub(crate) fn known(mut lab: Lab) -> Lab {
    lab.run_for(SETTLED);
    lab.announce_all();
    lab.run_for(Duration::from_secs(1));
    lab
}
