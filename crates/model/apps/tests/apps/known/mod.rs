//! A lab in which all links and hosts are known.

use std::time::Duration;

use bellrock_emulator::lab::Lab;

/// By then discovery has probed all ports.
pub(crate) const SETTLED: Duration = Duration::from_secs(12);

/// Waits until all links are found, and all hosts: each sends a packet.
pub(crate) fn known(mut lab: Lab) -> Lab {
    lab.run_for(SETTLED);
    lab.announce_all();
    lab.run_for(Duration::from_secs(1));
    lab
}
