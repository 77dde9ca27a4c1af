//! Hosts that an app has reason to believe in before the controller has heard them: those whose flows an earlier run
//! has left in the switches.
//!
//! Host tracking takes such a host to be at its port as soon as hosts can be there. Who speaks with its address
//! elsewhere is a claim then, and has to outlast the questions that any claim does.

use std::collections::BTreeMap;

use bellrock_api::{HostId, Network, SwitchPort, Watch};

/// Most hosts that are believed in. Further ones are known when they are heard.
const MAX_BELIEVED: usize = 1 << 16;

/// Hosts, and where they are believed to be.
pub type BelievedHosts = BTreeMap<HostId, SwitchPort>;

/// Has host tracking believe that hosts are at these ports, unless it knows better.
pub fn believe(network: &Network, hosts: impl IntoIterator<Item = (HostId, SwitchPort)>) {
    let more: Vec<_> = hosts.into_iter().collect();
    believed(network).update(|before| {
        let mut all = before.clone();
        let room = MAX_BELIEVED.saturating_sub(all.len());
        all.extend(more.into_iter().take(room));
        all
    });
}

pub(super) fn believed(network: &Network) -> Watch<BelievedHosts> {
    Watch::clone(&network.extension::<Watch<BelievedHosts>>())
}
