//! Events of the network as lines of the log: alarms as warnings; links and the end of an alarm at
//! level info; all other events at debug. Fields have what an event is about, for programs: the
//! text has it too, so lines for people show only the name of the event.

use bellrock_api::{Event, Names, Network, Subscription, SubscriptionItem, Watch};
use tracing::{debug, info, warn};

/// Field of a log line with the name of an event. Only lines of events have it.
pub const EVENT_FIELD: &str = "event";

/// Logs an event with what it is about.
macro_rules! log_event {
    ($log:ident, $event:expr, $text:expr) => {{
        let subject = $event.subject();
        $log!(
            event = $event.name(),
            dpid = subject.dpid.map(tracing::field::display),
            port = subject.at.map(|at| at.port.0),
            other_dpid = subject.other.map(|other| tracing::field::display(other.dpid)),
            other_port = subject.other.map(|other| other.port.0),
            mac = subject.host.map(|host| tracing::field::display(host.mac)),
            vlan = subject.host.and_then(|host| host.vlan),
            ip = subject.ip.map(tracing::field::display),
            app = subject.app,
            node = subject.node,
            "{}",
            $text
        )
    }};
}

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
        let text = names.load().in_text(&event.to_string());
        match &event {
            // The workers log these events themselves.
            event if event.is_about_connection() => log_event!(debug, event, text),
            event if event.is_alarming() => log_event!(warn, event, text),
            Event::LinkUp(_)
            | Event::LinkDown { .. }
            | Event::PortUp { .. }
            | Event::SwitchStandsBy { .. }
            | Event::StormOver { .. }
            | Event::OutsideLoopOver { .. }
            | Event::Segment { .. }
            | Event::SegmentOver { .. }
            | Event::OwnFlowInstalled { .. }
            | Event::AnnouncementsTaken { .. } => log_event!(info, event, text),
            _ => log_event!(debug, event, text),
        }
    }
}
