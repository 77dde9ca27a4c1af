//! What happens in the network, as lines of the log: alarms as warnings; links, and the end of what was warned of,
//! at level info; all else at debug.

use bellrock_api::{Event, Heard, Network, Subscription};
use tracing::{debug, info, warn};

/// Has what happens in the network written into the log from now on.
pub(crate) fn log_events(network: &Network) {
    network.spawn("log of events", log(network.events().subscribe()));
}

async fn log(mut events: Subscription) {
    loop {
        let event = match events.next().await {
            Heard::Event(it) => it.event,
            Heard::Missed(n) => {
                warn!("{n} events of the network came too fast to be logged");
                continue;
            }
        };
        let name = event.name();
        match event {
            // The workers write these themselves.
            event if event.is_about_connection() => debug!(event = name, "{event}"),
            event if event.is_alarming() => warn!(event = name, "{event}"),
            Event::LinkUp(_)
            | Event::LinkDown { .. }
            | Event::StormOver { .. }
            | Event::OwnFlowInstalled { .. } => info!(event = name, "{event}"),
            event => debug!(event = name, "{event}"),
        }
    }
}
