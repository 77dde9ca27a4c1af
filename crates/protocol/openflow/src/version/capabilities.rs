//! What a version can do: the one table of the differences between versions, apart from the bytes
//! of their messages.
//!
//! Numbers of messages, multipart types and errors have tables of their own:
//! [`MessageKind::wire`](crate::MessageKind::wire),
//! [`MultipartKind::wire`](crate::MultipartKind::wire),
//! [`ErrorCode::exists_in`](crate::ErrorCode::exists_in).

use crate::{Field, Version};

impl Version {
    /// Returns whether this is 1.`minor` or later.
    #[inline]
    const fn since(self, minor: u8) -> bool {
        self.minor() >= minor
    }
}

/// Requests.
impl Version {
    /// Groups (1.3.5 §5.6).
    #[must_use]
    #[inline]
    pub const fn has_groups(self) -> bool {
        self.since(1)
    }

    /// Meters (1.3.5 §5.7).
    #[must_use]
    #[inline]
    pub const fn has_meters(self) -> bool {
        self.since(3)
    }

    /// Requests and notices name the table of a flow (1.3.5 §5.1, §7.3.4.1). A switch of 1.0 may
    /// have several tables, but chooses the table of a flow itself (1.0 §3.4, §5.3.3).
    #[must_use]
    #[inline]
    pub const fn names_tables(self) -> bool {
        self.since(1)
    }

    /// Requests select flows by a mask of the cookie (1.3.5 §6.4).
    #[must_use]
    #[inline]
    pub const fn selects_by_cookie(self) -> bool {
        self.since(1)
    }

    /// Matches are lists of fields, OXM (1.3.5 §7.2.3.2), with the rules of 1.3.5 §5.3. Before, a
    /// match has twelve fixed fields (1.0 §3.4, §5.2.3): of one VLAN tag, of the low 8 bits of an
    /// ARP operation, and with ports 0 for fragments.
    #[must_use]
    #[inline]
    pub const fn has_oxm(self) -> bool {
        self.since(2)
    }

    /// Returns whether a match can have this field (1.0 §5.2.3; 1.3.5 §7.2.3.7).
    #[must_use]
    pub const fn can_match(self, field: Field) -> bool {
        self.minor() >= field.since()
    }

    /// An action pushes a VLAN tag (1.3.5 §5.12). Before, setting the VLAN id tags an untagged
    /// packet, and replaces the id of a tagged one (1.0 §3.3).
    #[must_use]
    #[inline]
    pub const fn pushes_vlan_tags(self) -> bool {
        self.since(1)
    }

    /// An action sets the queue of later outputs (1.3.5 §5.12). Before, one action names port and
    /// queue (`OFPAT_ENQUEUE`, 1.0 §3.3).
    #[must_use]
    #[inline]
    pub const fn has_set_queue(self) -> bool {
        self.since(1)
    }

    /// A packet_out of the controller's own has the ingress port `CONTROLLER` (1.3.5 §7.3.7).
    /// Before, it has none (1.0 §5.3.6).
    #[must_use]
    #[inline]
    pub const fn sends_from_controller_port(self) -> bool {
        self.since(1)
    }

    /// Requests for queues mean all ports by `ANY` (1.3.5 §7.3.5.8, §7.3.6). Before, requests for
    /// statistics mean them by `ALL` (1.0 §5.3.5), and requests for configurations name one port
    /// (1.0 §5.3.4).
    #[must_use]
    #[inline]
    pub const fn has_any_port(self) -> bool {
        self.since(2)
    }

    /// Roles and generation ids (1.3.5 §6.3.4). Before, some switches have the roles of
    /// [`RoleExtension`](crate::RoleExtension).
    #[must_use]
    #[inline]
    pub const fn has_roles(self) -> bool {
        self.since(2)
    }

    /// Each controller chooses the notices that it gets (1.3.5 §6.3.5, §7.3.10).
    #[must_use]
    #[inline]
    pub const fn has_async_config(self) -> bool {
        self.since(3)
    }
}

/// Rules of a switch.
impl Version {
    /// A table has a table-miss entry, and packets that match no flow are dropped without it (1.3.5
    /// §5.4). Before, they go to the controller (1.0 §3.4).
    #[must_use]
    #[inline]
    pub const fn has_table_miss_entries(self) -> bool {
        self.since(3)
    }

    /// A flow without wildcards is above all priorities (1.0 §3.4).
    #[must_use]
    #[inline]
    pub const fn ranks_exact_flows_first(self) -> bool {
        !self.since(1)
    }

    /// Returns the priority that a flow has in a switch. Where flows without wildcards are above
    /// all priorities, theirs has no meaning: it is the highest, whatever was sent, as Open vSwitch
    /// reports it. So two such flows with equal matches are one flow. `is_exact`: whether the match
    /// has no wildcards ([`crate::Match::is_exact`]).
    #[must_use]
    #[inline]
    pub fn priority_in_switch(self, sent: u16, is_exact: impl FnOnce() -> bool) -> u16 {
        if self.ranks_exact_flows_first() && is_exact() { u16::MAX } else { sent }
    }

    /// A request that modifies flows adds the flow if it finds none (1.0 §4.6).
    #[must_use]
    #[inline]
    pub const fn modify_adds(self) -> bool {
        !self.since(2)
    }

    /// A flow takes over the counters of the equal flow that it replaces, unless the request resets
    /// them (1.3.5 §6.4). Before, it starts at zero (1.0 §4.6).
    #[must_use]
    #[inline]
    pub const fn replacing_keeps_counters(self) -> bool {
        self.since(2)
    }

    /// Flows for an emergency, in which the switch has lost its controllers (1.0 §4.3, §5.3.3).
    #[must_use]
    #[inline]
    pub const fn has_emergency_flows(self) -> bool {
        !self.since(1)
    }

    /// A buffered packet passes all tables when its flow is added (1.3.5 §7.3.4.1). Before, the
    /// actions of the flow are applied to it (1.0 §5.3.3).
    #[must_use]
    #[inline]
    pub const fn buffered_packets_pass_tables(self) -> bool {
        self.since(1)
    }

    /// `FLOOD` and `ALL` mean all standard ports, `LOCAL` included (1.3.5 §4.1, §4.5). Before, they
    /// mean the physical ports (1.0 §3.3).
    #[must_use]
    #[inline]
    pub const fn floods_to_local(self) -> bool {
        self.since(2)
    }

    /// The spanning tree of IEEE 802.1D, and the flags of ports that belong to it (1.0 §4.5,
    /// §5.2.1).
    #[must_use]
    #[inline]
    pub const fn has_spanning_tree(self) -> bool {
        !self.since(1)
    }
}

/// What a switch reports.
impl Version {
    /// A multipart request lists the ports (1.3.5 §7.3.5.7). Before, the features do (1.0 §5.3.1).
    #[must_use]
    #[inline]
    pub const fn has_port_desc(self) -> bool {
        self.since(3)
    }

    /// Ports have a current and a maximum speed, rates above 10 Gb/s, and the states `LIVE` and
    /// `BLOCKED` (1.3.5 §7.2.1).
    #[must_use]
    #[inline]
    pub const fn has_port_speeds(self) -> bool {
        self.since(1)
    }

    /// A multipart request describes the tables (1.3.5 §7.3.5.5). Before, the features list the
    /// actions (1.0 §5.3.1), and the statistics of a table have its name, wildcards and size (1.0
    /// §5.3.5).
    #[must_use]
    #[inline]
    pub const fn has_table_features(self) -> bool {
        self.since(3)
    }

    /// A packet_in has the cookie of the flow that sent it (1.3.5 §7.4.1).
    #[must_use]
    #[inline]
    pub const fn packet_in_has_cookie(self) -> bool {
        self.since(3)
    }

    /// A flow_removed has the hard timeout of the flow (1.3.5 §7.4.2).
    #[must_use]
    #[inline]
    pub const fn flow_removed_has_hard_timeout(self) -> bool {
        self.since(2)
    }

    /// The statistics of a flow have its flags (1.3.5 §7.3.5.2).
    #[must_use]
    #[inline]
    pub const fn reports_flow_flags(self) -> bool {
        self.since(3)
    }

    /// The statistics of ports and queues have the time since these were added (1.3.5 §7.3.5.6,
    /// §7.3.5.8). Before, only those of flows have it.
    #[must_use]
    #[inline]
    pub const fn reports_ages(self) -> bool {
        self.since(3)
    }
}
