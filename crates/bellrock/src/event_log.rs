//! Events of the network as lines of the log: alarms as warnings; links and the end of an alarm at
//! level info; all other events at debug.

use bellrock_api::{Event, Names, Network, Subscription, SubscriptionItem, Watch};
use tracing::{debug, info, warn};

/// Writes the events of the network to the log from now on.
pub(crate) fn log_events(network: &Network, names: Watch<Names>) {
    network.spawn("log of events", log(network.events().subscribe(), names));
}

/// The names of a controller that knows none.
#[cfg(not(feature = "control"))]
pub(crate) fn no_names() -> Watch<Names> {
    bellrock_api::Publisher::default().watch().clone()
}

async fn log(mut events: Subscription, names: Watch<Names>) {
    loop {
        let event = match events.next().await {
            SubscriptionItem::Event(it) => it.event,
            SubscriptionItem::Missed(n) => {
                warn!("{n} events of the network came too fast to be logged");
                continue;
            }
        };
        let (name, text) = (event.name(), names.load().in_text(&event.to_string()));
        match &event {
            // The workers log these events themselves.
            event if event.is_about_connection() => debug!(event = name, "{text}"),
            event if event.is_alarming() => warn!(event = name, "{text}"),
            Event::LinkUp(_)
            | Event::LinkDown { .. }
            | Event::PortUp { .. }
            | Event::SwitchStandsBy { .. }
            | Event::StormOver { .. }
            | Event::OutsideLoopOver { .. }
            | Event::Segment { .. }
            | Event::SegmentOver { .. }
            | Event::OwnFlowInstalled { .. }
            | Event::AnnouncementsTaken { .. } => info!(event = name, "{text}"),
            _ => debug!(event = name, "{text}"),
        }
    }
}
