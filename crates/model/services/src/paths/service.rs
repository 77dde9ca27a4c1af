//! The task that publishes paths.

use std::sync::Arc;

use bellrock_api::{App, EarlierFlows, Needs, Network, Publisher, SwitchInfo, Watch};

use super::{PathTracker, Paths};

/// The paths, which only [`PathService`] publishes.
#[derive(Default)]
struct PathsPublisher(Publisher<Paths>);

/// Returns the paths that [`PathService`] publishes.
///
/// # Panics
/// In an app without [`Needs::PATHS`]: the service may not run.
#[must_use]
#[track_caller]
pub fn paths(network: &Network) -> Watch<Paths> {
    network.check_needs(Needs::PATHS);
    network.extension::<PathsPublisher>().0.watch().clone()
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

    fn needs(&self) -> Needs {
        Needs::TOPOLOGY
    }

    /// It has none: nothing need be looked for.
    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Keep
    }

    fn start(&self, network: &Network) {
        let (topology, published) = (network.topology().clone(), network.extension());
        network.supervise("follow the topology", move || {
            let (topology, published) =
                (topology.clone(), Arc::<PathsPublisher>::clone(&published));
            async move {
                let mut tracker = PathTracker::default();
                let mut current = topology.load();
                loop {
                    published.0.publish(tracker.update(&current));
                    // Only the latest topology is used.
                    current = topology.changed(current.version()).await;
                }
            }
        });
    }

    fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
}
