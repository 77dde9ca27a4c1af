//! Events of the network as lines of the log: alarms as warnings; links and the end of an alarm at
//! level info; all other events at debug.

use bellrock_api::{Event, Network, Subscription, SubscriptionItem};
use tracing::{debug, info, warn};

/// Writes the events of the network to the log from now on.
pub(crate) fn log_events(network: &Network) {
    network.spawn("log of events", log(network.events().subscribe()));
}

async fn log(mut events: Subscription) {
    loop {
        let event = match events.next().await {
            SubscriptionItem::Event(it) => it.event,
            SubscriptionItem::Missed(n) => {
                warn!("{n} events of the network came too fast to be logged");
                continue;
            }
        };
        let name = event.name();
        match &event {
            // The workers log these events themselves.
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
