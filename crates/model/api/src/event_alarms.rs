//! Which events are alarms, and which events end them.

use crate::Event;

impl Event {
    /// Whether an operator should look at it: an attack, a fault, or wrong cabling.
    #[must_use]
    pub fn is_alarming(&self) -> bool {
        if let Event::SwitchDown { why, .. } = self {
            return why.reason.is_loss();
        }
        if let Some(why) = self.connection_end() {
            return why.reason.is_alarming();
        }
        if let Event::LinkDown { why, .. } = self {
            return why.is_alarming();
        }
        if let Event::App { event, .. } = self {
            return event.is_alarming();
        }
        !matches!(
            self,
            Event::SwitchUp { .. }
                | Event::SwitchStandsBy { .. }
                | Event::PortUp { .. }
                | Event::LinkUp(_)
                | Event::Segment { is_loop: false, .. }
                | Event::SegmentOver { .. }
                | Event::HostSeen { .. }
                | Event::HostMoved { .. }
                | Event::HostGone { .. }
                | Event::Reconciled { .. }
                | Event::WantedAltered { by_order: true, .. }
                | Event::WantedKept { .. }
                | Event::StormOver { .. }
                | Event::OutsideLoopOver { .. }
                | Event::OwnFlowInstalled { .. }
                | Event::AnnouncementsTaken { .. }
                | Event::MajorityFound
                | Event::NodeFound { .. }
                | Event::SwitchTaken { .. }
                | Event::SwitchClaimed { .. }
                | Event::StoreFound
        )
    }

    /// Whether it is an alarm about something that lasts, and whose end is an event too
    /// ([`Self::ends`]).
    #[must_use]
    pub fn has_end(&self) -> bool {
        match self {
            Event::SwitchDown { .. } | Event::LinkDown { .. } => self.is_alarming(),
            Event::App { event, .. } => event.lasts(),
            Event::PortDown { .. }
            | Event::OneWay(_)
            | Event::Segment { is_loop: true, .. }
            | Event::Storm { .. }
            | Event::OutsideLoop { .. }
            | Event::WantedNotKept { .. }
            | Event::OwnFlowRefused { .. }
            | Event::AnnouncementsRefused { .. }
            | Event::MajorityLost
            | Event::SwitchUnclaimed { .. }
            | Event::NodeLost { .. }
            | Event::StoreLost { .. } => true,
            _ => false,
        }
    }

    /// Whether it ends an alarm.
    ///
    /// A link that was lost is back, or one of its ports has a new link: the cable was moved.
    #[must_use]
    pub fn ends(&self, alarm: &Event) -> bool {
        match (self, alarm) {
            (
                Event::SwitchUp { dpid, .. }
                | Event::SwitchStandsBy { dpid }
                | Event::SwitchTaken { dpid },
                Event::SwitchDown { dpid: lost, .. },
            ) => dpid == lost,
            (Event::LinkUp(up), Event::LinkDown { link, .. }) => {
                up.from == link.from || up.to == link.to
            }
            (Event::LinkUp(up), Event::OneWay(link)) => up.from == link.to,
            (Event::LinkDown { link, .. }, Event::OneWay(one_way)) => link.from == one_way.from,
            (Event::PortUp { at, .. }, Event::PortDown { at: down, .. }) => at == down,
            (Event::SegmentOver { ports }, Event::Segment { ports: other, .. }) => ports == other,
            (Event::StormOver { app, .. }, Event::Storm { app: other, .. }) => app == other,
            (Event::OutsideLoopOver { at, .. }, Event::OutsideLoop { ports, .. }) => {
                ports.contains(at)
            }
            (
                Event::WantedKept { app, dpid },
                Event::WantedNotKept { app: other, dpid: kept_not_by, .. },
            ) => (app, dpid) == (other, kept_not_by),
            (Event::SwitchClaimed { dpid }, Event::SwitchUnclaimed { dpid: other }) => {
                dpid == other
            }
            (
                Event::OwnFlowInstalled { dpid, flow },
                Event::OwnFlowRefused { dpid: refused_by, flow: refused, .. },
            ) => (dpid, flow) == (refused_by, refused),
            (
                Event::AnnouncementsTaken { dpid },
                Event::AnnouncementsRefused { dpid: refused_by, .. },
            ) => dpid == refused_by,
            (Event::MajorityFound, Event::MajorityLost)
            | (Event::StoreFound, Event::StoreLost { .. }) => true,
            (Event::NodeFound { node }, Event::NodeLost { node: lost }) => node == lost,
            (Event::App { app, event }, Event::App { app: other, event: alarm }) => {
                app == other && event.ends(alarm)
            }
            _ => false,
        }
    }

    /// Whether it is the same alarm again, with an end.
    #[must_use]
    pub fn repeats(&self, alarm: &Event) -> bool {
        match (self, alarm) {
            (Event::SwitchDown { dpid, .. }, Event::SwitchDown { dpid: other, .. }) => {
                dpid == other && self.has_end()
            }
            (Event::LinkDown { link, .. }, Event::LinkDown { link: other, .. }) => {
                link.from == other.from && self.has_end()
            }
            (Event::PortDown { at, .. }, Event::PortDown { at: other, .. }) => at == other,
            (Event::OneWay(link), Event::OneWay(other)) => link.from == other.from,
            (Event::Segment { ports, .. }, Event::Segment { ports: other, .. })
            | (Event::OutsideLoop { ports, .. }, Event::OutsideLoop { ports: other, .. }) => {
                ports == other
            }
            (Event::Storm { app, .. }, Event::Storm { app: other, .. }) => app == other,
            (
                Event::WantedNotKept { app, dpid, .. },
                Event::WantedNotKept { app: other_app, dpid: other, .. },
            ) => (app, dpid) == (other_app, other),
            (Event::SwitchUnclaimed { dpid }, Event::SwitchUnclaimed { dpid: other }) => {
                dpid == other
            }
            (
                Event::OwnFlowRefused { dpid, flow, .. },
                Event::OwnFlowRefused { dpid: other, flow: other_flow, .. },
            ) => (dpid, flow) == (other, other_flow),
            (
                Event::AnnouncementsRefused { dpid, .. },
                Event::AnnouncementsRefused { dpid: other, .. },
            ) => dpid == other,
            (Event::MajorityLost, Event::MajorityLost)
            | (Event::StoreLost { .. }, Event::StoreLost { .. }) => true,
            (Event::NodeLost { node }, Event::NodeLost { node: other }) => node == other,
            (Event::App { app, event }, Event::App { app: other, event: alarm }) => {
                app == other && event.repeats(alarm)
            }
            _ => false,
        }
    }
}
