//! The task that publishes paths.

use bellrock_api::{App, Network, SwitchInfo, Watch};

use super::{Paths, Tracker};

/// Returns the paths that [`PathService`] publishes. Without the service they stay empty.
#[must_use]
pub fn paths(network: &Network) -> Watch<Paths> {
    Watch::clone(&network.extension::<Watch<Paths>>())
}

/// The path service: keeps the paths of the network up to date with its topology.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathService;

impl App for PathService {
    type Handler = ();

    fn name(&self) -> &'static str {
        "paths"
    }

    fn wants_packet_ins(&self) -> bool {
        false
    }

    fn start(&self, network: &Network) {
        let (topology, published) = (network.topology().clone(), paths(network));
        network.supervise("follow the topology", move || {
            let (topology, published) = (topology.clone(), published.clone());
            async move {
                let mut tracker = Tracker::default();
                let mut seen = topology.load();
                loop {
                    published.publish(tracker.update(&seen));
                    // Only the latest topology is used.
                    seen = topology.changed(seen.version()).await;
                }
            }
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
