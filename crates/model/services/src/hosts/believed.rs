//! Hosts that an app assumes before the controller has received a packet from them, for example
//! because flows of an earlier run are still in the switches.
//!
//! Host tracking places such a host at its port as soon as hosts can be there. From then on, its
//! address at another port is a claim, and is checked like any claim.

use std::collections::BTreeMap;

use bellrock_api::{HostId, Network, Publisher, SwitchPort, Watch};

/// Maximum number of assumed hosts. Further hosts are learnt when they send.
const MAX_BELIEVED: usize = 1 << 16;

/// Assumed hosts, and the ports that they are at.
pub type BelievedHosts = BTreeMap<HostId, SwitchPort>;

/// Shared by all apps: [`believe`] only adds to it.
#[derive(Default)]
struct Believed(Publisher<BelievedHosts>);

/// Makes host tracking assume these hosts at these ports, unless it knows better.
pub fn believe(network: &Network, hosts: impl IntoIterator<Item = (HostId, SwitchPort)>) {
    let added: Vec<_> = hosts.into_iter().collect();
    network.extension::<Believed>().0.update(|before| {
        let mut all = before.clone();
        let room = MAX_BELIEVED.saturating_sub(all.len());
        all.extend(added.into_iter().take(room));
        all
    });
}

pub(super) fn believed(network: &Network) -> Watch<BelievedHosts> {
    network.extension::<Believed>().0.watch().clone()
}
