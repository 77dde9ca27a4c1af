//! Actions by name: `Action::set_eth_dst(address)`, as [`Match`](crate::Match) has
//! `eth_dst(address)`.
//!
//! The table is a macro, so that lists of actions and flows in the crate `api` have the same names
//! and documentation.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::action::CUSTOMER_TAG;
use crate::{Action, Field, MacAddr, Port};

/// Passes the table of typed actions to the macro `$apply`: documentation, name, arguments, action.
#[doc(hidden)]
#[macro_export]
macro_rules! typed_actions {
    ($apply:ident) => {
        $apply! {
            /// Sets the Ethernet destination (1.0 `SET_DL_DST`; 1.3 `SET_FIELD`).
            set_eth_dst(address: MacAddr) = Action::SetField(Field::EthDst, address.to_u64() as u128);
            /// Sets the Ethernet source (1.0 `SET_DL_SRC`; 1.3 `SET_FIELD`).
            set_eth_src(address: MacAddr) = Action::SetField(Field::EthSrc, address.to_u64() as u128);
            /// Sets the VLAN id of a packet that has a tag, 12 bits. Without one, 1.0
            /// (`SET_VLAN_VID`) adds it, and 1.3 refuses the flow: `tag` adds one in both.
            set_vlan_vid(id: u16) = Action::SetField(Field::VlanVid, vlan_vid(id));
            /// Sets the VLAN priority, 3 bits. 1.0 (`SET_VLAN_PCP`) adds a tag if there is none. In
            /// 1.3 the packet needs a tag.
            set_vlan_pcp(priority: u8) = Action::SetField(Field::VlanPcp, priority as u128);
            /// Adds an outermost VLAN tag; 0x8100 is a customer's, 0x88a8 a provider's (1.3). `tag`
            /// adds a customer's in both versions.
            push_vlan(eth_type: u16) = Action::PushVlan(eth_type);
            /// Removes the outermost VLAN tag (1.0 `STRIP_VLAN`).
            pop_vlan() = Action::PopVlan;
            /// Sets the IPv4 source (1.0 `SET_NW_SRC`; 1.3 `SET_FIELD`). The switch updates the
            /// checksums.
            set_ipv4_src(address: Ipv4Addr) = Action::SetField(Field::Ipv4Src, address.to_bits() as u128);
            /// Sets the IPv4 destination (1.0 `SET_NW_DST`; 1.3 `SET_FIELD`). The switch updates
            /// the checksums.
            set_ipv4_dst(address: Ipv4Addr) = Action::SetField(Field::Ipv4Dst, address.to_bits() as u128);
            /// Sets the IPv6 source (1.3). The switch updates the checksums.
            set_ipv6_src(address: Ipv6Addr) = Action::SetField(Field::Ipv6Src, address.to_bits());
            /// Sets the IPv6 destination (1.3). The switch updates the checksums.
            set_ipv6_dst(address: Ipv6Addr) = Action::SetField(Field::Ipv6Dst, address.to_bits());
            /// Sets the IPv6 flow label, 20 bits (1.3).
            set_ipv6_flabel(label: u32) = Action::SetField(Field::Ipv6Flabel, label as u128);
            /// Sets the DSCP of an IP packet, 6 bits (1.0 `SET_NW_TOS`; 1.3 `SET_FIELD`).
            set_ip_dscp(dscp: u8) = Action::SetField(Field::IpDscp, dscp as u128);
            /// Sets the ECN bits of an IP packet, 2 bits (1.3).
            set_ip_ecn(ecn: u8) = Action::SetField(Field::IpEcn, ecn as u128);
            /// Sets the TTL or hop limit of an IP packet (1.3).
            set_ip_ttl(ttl: u8) = Action::SetNwTtl(ttl);
            /// Decrements the TTL or hop limit of an IP packet. At 0 the switch does not forward it
            /// (1.3).
            dec_ttl() = Action::DecNwTtl;
            /// Sets the source port of a TCP packet (1.0 `SET_TP_SRC`; 1.3 `SET_FIELD`).
            set_tcp_src(port: u16) = Action::SetField(Field::TcpSrc, port as u128);
            /// Sets the destination port of a TCP packet (1.0 `SET_TP_DST`; 1.3 `SET_FIELD`).
            set_tcp_dst(port: u16) = Action::SetField(Field::TcpDst, port as u128);
            /// Sets the source port of a UDP packet (1.0 `SET_TP_SRC`; 1.3 `SET_FIELD`).
            set_udp_src(port: u16) = Action::SetField(Field::UdpSrc, port as u128);
            /// Sets the destination port of a UDP packet (1.0 `SET_TP_DST`; 1.3 `SET_FIELD`).
            set_udp_dst(port: u16) = Action::SetField(Field::UdpDst, port as u128);
            /// Sets the source port of an SCTP packet (1.3).
            set_sctp_src(port: u16) = Action::SetField(Field::SctpSrc, port as u128);
            /// Sets the destination port of an SCTP packet (1.3).
            set_sctp_dst(port: u16) = Action::SetField(Field::SctpDst, port as u128);
            /// Sets the operation of an ARP packet (1.3).
            set_arp_op(operation: u16) = Action::SetField(Field::ArpOp, operation as u128);
            /// Sets the sender's IPv4 address of an ARP packet (1.3).
            set_arp_spa(address: Ipv4Addr) = Action::SetField(Field::ArpSpa, address.to_bits() as u128);
            /// Sets the target's IPv4 address of an ARP packet (1.3).
            set_arp_tpa(address: Ipv4Addr) = Action::SetField(Field::ArpTpa, address.to_bits() as u128);
            /// Sets the sender's Ethernet address of an ARP packet (1.3).
            set_arp_sha(address: MacAddr) = Action::SetField(Field::ArpSha, address.to_u64() as u128);
            /// Sets the target's Ethernet address of an ARP packet (1.3).
            set_arp_tha(address: MacAddr) = Action::SetField(Field::ArpTha, address.to_u64() as u128);
            /// Adds an outermost MPLS label; 0x8847 is the Ethernet type of unicast (1.3).
            push_mpls(eth_type: u16) = Action::PushMpls(eth_type);
            /// Removes the outermost MPLS label. The remaining packet has this Ethernet type (1.3).
            pop_mpls(eth_type: u16) = Action::PopMpls(eth_type);
            /// Sets the outermost MPLS label, 20 bits (1.3).
            set_mpls_label(label: u32) = Action::SetField(Field::MplsLabel, label as u128);
            /// Sets the tunnel id of a logical port (1.3).
            set_tunnel_id(id: u64) = Action::SetField(Field::TunnelId, id as u128);
            /// Sends later outputs through this queue of their port (1.3; in 1.0 `enqueue`).
            set_queue(queue: u32) = Action::SetQueue(queue);
            /// Sends the packet through a queue of a port (1.0; in 1.3 `set_queue`, then `output`).
            enqueue(port: Port, queue: u32) = Action::Enqueue { port, queue };
        }
    };
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident ($($arg:ident: $type:ty),*) = $value:expr;)*) => {
        /// Typed actions. Writing a value that does not fit its field returns
        /// [`EncodeError::Range`](crate::EncodeError::Range). Writing an action that the version
        /// does not have returns [`EncodeError::Unsupported`](crate::EncodeError::Unsupported).
        ///
        /// ```
        /// use bellrock_openflow::{Action, MacAddr, Port};
        /// let backend = MacAddr([2, 0, 0, 0, 0, 7]);
        /// let actions = [Action::set_eth_dst(backend), Action::output(Port(3))];
        /// assert_eq!(actions[0].to_string(), "set_field:02:00:00:00:00:07->eth_dst");
        /// ```
        impl Action<'static> {
            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $name($($arg: $type),*) -> Self {
                    $value
                }
            )*

            /// Sends the packet to a group (1.3).
            #[must_use]
            pub const fn group(group: u32) -> Self {
                Action::Group(group)
            }

            /// Adds a customer's VLAN tag with this id, 12 bits, to a packet without a tag: the
            /// same in every version (1.0 `SET_VLAN_VID`; 1.3 `PUSH_VLAN`, then `SET_FIELD`).
            ///
            /// A packet that has a tag gets a second one in 1.3, and another id in 1.0: where it
            /// may have one, match `vlan_vid`, and use [`Action::set_vlan_vid`].
            ///
            /// ```
            /// use bellrock_openflow::{Action, Port};
            /// let [push, set] = Action::tag(7);
            /// let to_trunk = [push, set, Action::output(Port(24))];
            /// ```
            #[must_use]
            pub const fn tag(id: u16) -> [Self; 2] {
                [Action::PushVlan(CUSTOMER_TAG), Action::set_vlan_vid(id)]
            }

            /// Removes the VLAN tag of a packet that has one: the same in every version. In 1.3,
            /// the match of the flow names the tag (`vlan_vid`).
            #[must_use]
            pub const fn untag() -> Self {
                Action::PopVlan
            }
        }
    };
}

typed_actions!(constructors);

/// Converts a VLAN id to `vlan_vid`. An id that is too large stays too large for the field.
const fn vlan_vid(id: u16) -> u128 {
    const ID_BITS: u32 = 12;
    if id >> ID_BITS == 0 { (1 << ID_BITS) | id as u128 } else { (1 << 16) | id as u128 }
}
