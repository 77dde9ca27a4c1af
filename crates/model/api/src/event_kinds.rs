//! The names of events, and which of them are about connections.

use crate::{ConnectionEnd, Event};

/// Defines [`Event::name`] and [`Event::NAMES`].
macro_rules! event_names {
    ($($event:pat => $name:literal,)*) => {
        impl Event {
            /// The names of all events.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Name of the event, as in logs and `bellrock events`. It is `app_event` for all
            /// events of apps' own, so that none is taken for another.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $($event => $name,)*
                }
            }
        }
    };
}

event_names! {
    Event::App { .. } => "app_event",
    Event::SwitchUp { .. } => "switch_up",
    Event::SwitchDown { .. } => "switch_down",
    Event::ConnectionEnded { .. } => "connection_ended",
    Event::ConnectionsRefused { .. } => "connections_refused",
    Event::RemovalUnanswered { .. } => "removal_unanswered",
    Event::CertificateExpires { .. } => "certificate_expires",
    Event::SwitchStandsBy { .. } => "switch_stands_by",
    Event::PortDown { .. } => "port_down",
    Event::PortUp { .. } => "port_up",
    Event::LinkUp(_) => "link_up",
    Event::LinkDown { .. } => "link_down",
    Event::OneWay(_) => "one_way",
    Event::Miswired { .. } => "miswired",
    Event::Segment { .. } => "segment",
    Event::SegmentOver { .. } => "segment_over",
    Event::ForgedAnnouncement { .. } => "forged_announcement",
    Event::ReplayedAnnouncement { .. } => "replayed_announcement",
    Event::ReflectedAnnouncement { .. } => "reflected_announcement",
    Event::RelaySuspected { .. } => "relay_suspected",
    Event::HostSeen { .. } => "host_seen",
    Event::HostMoved { .. } => "host_moved",
    Event::HostMoveRefused { .. } => "host_move_refused",
    Event::AddressClaimRefused { .. } => "address_claim_refused",
    Event::HostGone { .. } => "host_gone",
    Event::TooManyHosts { .. } => "too_many_hosts",
    Event::ProbeAddressUsed { .. } => "probe_address_used",
    Event::ForeignFlows { .. } => "foreign_flows",
    Event::Reconciled { .. } => "reconciled",
    Event::WantedAltered { .. } => "wanted_altered",
    Event::WantedNotKept { .. } => "wanted_not_kept",
    Event::WantedKept { .. } => "wanted_kept",
    Event::TablesUntold { .. } => "tables_untold",
    Event::Storm { .. } => "storm",
    Event::StormOver { .. } => "storm_over",
    Event::OutsideLoop { .. } => "outside_loop",
    Event::OutsideLoopOver { .. } => "outside_loop_over",
    Event::HostAtLink { .. } => "host_at_link",
    Event::WantedRefused { .. } => "wanted_refused",
    Event::OwnFlowRefused { .. } => "own_flow_refused",
    Event::OwnFlowInstalled { .. } => "own_flow_installed",
    Event::AnnouncementsRefused { .. } => "announcements_refused",
    Event::AnnouncementsTaken { .. } => "announcements_taken",
    Event::MajorityLost => "majority_lost",
    Event::MajorityFound => "majority_found",
    Event::NodeLost { .. } => "node_lost",
    Event::NodeFound { .. } => "node_found",
    Event::SwitchTaken { .. } => "switch_taken",
    Event::SwitchUnclaimed { .. } => "switch_unclaimed",
    Event::SwitchClaimed { .. } => "switch_claimed",
    Event::ElectionAhead { .. } => "election_ahead",
    Event::StoreLost { .. } => "store_lost",
    Event::StoreFound => "store_found",
}

impl Event {
    /// Whether it reports that a switch's connection is up, has ended, or was refused.
    #[must_use]
    pub fn is_about_connection(&self) -> bool {
        matches!(
            self,
            Event::SwitchUp { .. }
                | Event::SwitchDown { .. }
                | Event::ConnectionEnded { .. }
                | Event::ConnectionsRefused { .. }
        )
    }

    /// Why a connection ended, if the event reports that.
    #[must_use]
    pub fn connection_end(&self) -> Option<&ConnectionEnd> {
        match self {
            Event::SwitchDown { why, .. }
            | Event::ConnectionEnded { why, .. }
            | Event::ConnectionsRefused { why, .. } => Some(why),
            _ => None,
        }
    }
}
