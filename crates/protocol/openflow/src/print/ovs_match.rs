//! Prints a match as `ovs-ofctl` of Open vSwitch 3.1: `tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80`.
//!
//! Names and order are those of Open vSwitch (`match_format` in its `lib/match.c`). So flows of a
//! capture can be compared with `ovs-ofctl dump-flows`, and used in `ovs-ofctl add-flow`. Other
//! fields follow, with their names of the specification: those unknown to Open vSwitch, and those
//! without their prerequisites.

use std::fmt::{self, Display, Formatter};

use crate::{Field, Match};

/// `dl_type` of the protocols with a keyword.
const IPV4: u128 = 0x0800;
const ARP: u128 = 0x0806;
const RARP: u128 = 0x8035;
const IPV6: u128 = 0x86dd;
const MPLS: u128 = 0x8847;
const MPLS_MULTICAST: u128 = 0x8848;

/// `nw_proto` of the protocols with a keyword.
const ICMPV4: u128 = 1;
const TCP: u128 = 6;
const UDP: u128 = 17;
const ICMPV6: u128 = 58;
const SCTP: u128 = 132;

/// Bits of a VLAN tag: id, "there is a tag", priority.
const VLAN_ID: u16 = 0x0fff;
const VLAN_TAGGED: u16 = 0x1000;
const VLAN_PRIORITY: u16 = 0xe000;
const VLAN_PRIORITY_SHIFT: u32 = 13;

/// Position of the DSCP in the type of service, in bits.
const DSCP_SHIFT: u32 = 2;

/// A match in the format of Open vSwitch.
pub(crate) struct OvsMatch<'a> {
    pub(crate) matching: &'a Match,
    /// Whether it is from a message of 1.0, where "untagged" includes all bits of the tag.
    pub(crate) is_v10: bool,
}

impl Display for OvsMatch<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let matching = self.matching;
        let mut out = Writer { matching, f, comma: "", left: 0 };
        out.left = matching.fields().fold(0, |left, field| left | field.bit_of_all());
        out.protocol()?;
        out.field("reg0", Field::Reg0)?;
        out.field("tun_id", Field::TunnelId)?;
        out.field("metadata", Field::Metadata)?;
        out.field("in_port", Field::InPort)?;
        out.vlan(self.is_v10)?;
        out.field("dl_src", Field::EthSrc)?;
        out.field("dl_dst", Field::EthDst)?;
        out.field("dl_type", Field::EthType)?;
        out.network()?;
        out.transport()?;
        out.rest()
    }
}

/// Writes fields, separated by commas.
struct Writer<'a, 'f, 'b> {
    matching: &'a Match,
    f: &'f mut Formatter<'b>,
    comma: &'static str,
    /// Fields that are not printed yet, one bit each.
    left: u128,
}

impl Writer<'_, '_, '_> {
    fn has(&self, field: Field) -> bool {
        self.left & field.bit_of_all() != 0
    }

    fn is(&self, field: Field, value: u128) -> bool {
        self.matching.value(field) == Some(value) && !self.matching.is_masked(field)
    }

    fn done(&mut self, field: Field) {
        self.left &= !field.bit_of_all();
    }

    fn text(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        write!(self.f, "{}{text}", self.comma)?;
        self.comma = ",";
        Ok(())
    }

    /// Prints a field under this name, if the match has it and it is not printed yet.
    fn field(&mut self, name: &str, field: Field) -> fmt::Result {
        if !self.has(field) {
            return Ok(());
        }
        self.done(field);
        let matching = self.matching;
        self.text(format_args!("{name}={}", fmt::from_fn(|f| matching.format_field(field, f))))
    }

    /// Prints the keyword for Ethernet type and IP protocol, if Open vSwitch has one.
    fn protocol(&mut self) -> fmt::Result {
        let over_ip = [
            (ICMPV4, Some("icmp"), None),
            (TCP, Some("tcp"), Some("tcp6")),
            (UDP, Some("udp"), Some("udp6")),
            (SCTP, Some("sctp"), Some("sctp6")),
            (ICMPV6, None, Some("icmp6")),
        ];
        for (number, over_v4, over_v6) in over_ip {
            for (eth_type, word) in [(IPV4, over_v4), (IPV6, over_v6)] {
                if let Some(word) = word
                    && self.is(Field::EthType, eth_type)
                    && self.is(Field::IpProto, number)
                {
                    self.done(Field::EthType);
                    self.done(Field::IpProto);
                    return self.text(format_args!("{word}"));
                }
            }
        }
        let words = [
            (IPV4, "ip"),
            (IPV6, "ipv6"),
            (ARP, "arp"),
            (RARP, "rarp"),
            (MPLS, "mpls"),
            (MPLS_MULTICAST, "mplsm"),
        ];
        match words.into_iter().find(|(eth_type, _)| self.is(Field::EthType, *eth_type)) {
            Some((_, word)) => {
                self.done(Field::EthType);
                self.text(format_args!("{word}"))
            }
            None => Ok(()),
        }
    }

    /// Prints the VLAN: `dl_vlan` and `dl_vlan_pcp`, or the bits of the tag if neither expresses
    /// it.
    fn vlan(&mut self, is_v10: bool) -> fmt::Result {
        let part = |field: Field| match self.has(field) {
            true => {
                let value = self.matching.value(field).unwrap_or_default();
                (value as u16, self.matching.mask(field).unwrap_or(field.max()) as u16)
            }
            false => (0, 0),
        };
        let ((id, id_mask), (priority, priority_mask)) =
            (part(Field::VlanVid), part(Field::VlanPcp));
        self.done(Field::VlanVid);
        self.done(Field::VlanPcp);
        let tag = id | priority << VLAN_PRIORITY_SHIFT;
        let mut mask = id_mask | priority_mask << VLAN_PRIORITY_SHIFT;
        if is_v10 && id_mask != 0 && id == 0 {
            mask = u16::MAX;
        }
        let whole = |bits: u16| mask & bits == 0 || mask & bits == bits;
        let has = |bits: u16| mask & bits != 0;
        if mask == 0 {
            return Ok(());
        }
        if mask & tag & VLAN_TAGGED != 0
            && whole(VLAN_ID)
            && whole(VLAN_PRIORITY)
            && has(VLAN_ID | VLAN_PRIORITY)
        {
            if has(VLAN_ID) {
                self.text(format_args!("dl_vlan={}", tag & VLAN_ID))?;
            }
            if has(VLAN_PRIORITY) {
                self.text(format_args!("dl_vlan_pcp={priority}"))?;
            }
            return Ok(());
        }
        match mask {
            u16::MAX => self.text(format_args!("vlan_tci={tag:#06x}")),
            mask => self.text(format_args!("vlan_tci={tag:#06x}/{mask:#06x}")),
        }
    }

    /// Prints addresses and other fields of IP, ARP and MPLS.
    fn network(&mut self) -> fmt::Result {
        for (name, field) in [
            ("ipv6_src", Field::Ipv6Src),
            ("ipv6_dst", Field::Ipv6Dst),
            ("arp_spa", Field::ArpSpa),
            ("arp_tpa", Field::ArpTpa),
            ("nw_src", Field::Ipv4Src),
            ("nw_dst", Field::Ipv4Dst),
        ] {
            self.field(name, field)?;
            if field == Field::Ipv6Dst {
                self.flow_label()?;
            }
        }
        for (name, field) in [
            ("arp_op", Field::ArpOp),
            ("nw_proto", Field::IpProto),
            ("arp_sha", Field::ArpSha),
            ("arp_tha", Field::ArpTha),
        ] {
            self.field(name, field)?;
        }
        if self.has(Field::IpDscp) && !self.matching.is_masked(Field::IpDscp) {
            self.done(Field::IpDscp);
            let dscp = self.matching.value(Field::IpDscp).unwrap_or_default();
            self.text(format_args!("nw_tos={}", dscp << DSCP_SHIFT))?;
        }
        self.field("nw_ecn", Field::IpEcn)?;
        self.field("mpls_label", Field::MplsLabel)?;
        self.field("mpls_tc", Field::MplsTc)?;
        self.field("mpls_bos", Field::MplsBos)
    }

    /// Prints the flow label, always with five digits.
    fn flow_label(&mut self) -> fmt::Result {
        let field = Field::Ipv6Flabel;
        if !self.has(field) {
            return Ok(());
        }
        self.done(field);
        let value = self.matching.value(field).unwrap_or_default();
        match self.matching.mask(field).filter(|_| self.matching.is_masked(field)) {
            Some(mask) => self.text(format_args!("ipv6_label={value:#07x}/{mask:#07x}")),
            None => self.text(format_args!("ipv6_label={value:#07x}")),
        }
    }

    /// Prints ports of TCP, UDP and SCTP, types of ICMP, and neighbour discovery.
    fn transport(&mut self) -> fmt::Result {
        for (name, field) in [
            ("icmp_type", Field::Icmpv4Type),
            ("icmp_code", Field::Icmpv4Code),
            ("icmp_type", Field::Icmpv6Type),
            ("icmp_code", Field::Icmpv6Code),
            ("nd_target", Field::Ipv6NdTarget),
            ("nd_sll", Field::Ipv6NdSll),
            ("nd_tll", Field::Ipv6NdTll),
        ] {
            self.field(name, field)?;
        }
        // The keyword names the protocol, so the names of ports need not.
        for (protocol, source, destination) in [
            (TCP, Field::TcpSrc, Field::TcpDst),
            (UDP, Field::UdpSrc, Field::UdpDst),
            (SCTP, Field::SctpSrc, Field::SctpDst),
        ] {
            if self.is(Field::IpProto, protocol) {
                self.field("tp_src", source)?;
                self.field("tp_dst", destination)?;
            }
        }
        self.field("tcp_flags", Field::TcpFlags)
    }

    /// Prints fields without a name in Open vSwitch.
    fn rest(&mut self) -> fmt::Result {
        for field in self.matching.fields() {
            self.field(field.name(), field)?;
        }
        let mut reader = crate::reader::Reader::new(self.matching.unknown());
        while let Ok(tlv) = crate::oxm::Tlv::read(&mut reader) {
            let payload = crate::Bytes(tlv.payload);
            self.text(format_args!("oxm({:#010x})={payload}", tlv.header))?;
        }
        match self.matching.unread() {
            [] => Ok(()),
            unread => self.text(format_args!("unread={}", crate::Bytes(unread))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn print(matching: &Match) -> String {
        OvsMatch { matching, is_v10: false }.to_string()
    }

    #[test]
    fn protocols_have_words_and_ports_are_tp() {
        let web = Match::any()
            .in_port(crate::Port(1))
            .eth_type(0x0800)
            .ip_proto(6)
            .ipv4_dst_prefix(Ipv4Addr::new(10, 0, 0, 0), 8)
            .tcp_dst(80);
        assert_eq!(print(&web), "tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80");
        assert_eq!(print(&Match::any().eth_type(0x0800).ip_proto(47)), "ip,nw_proto=47");
        assert_eq!(print(&Match::any().eth_type(0x88cc)), "dl_type=0x88cc");
        assert_eq!(print(&Match::any()), "");
    }

    #[test]
    fn fields_without_prerequisites_or_without_a_name_there_are_not_lost() {
        assert_eq!(
            print(&Match::any().tcp_dst(80).vlan_pcp(3)),
            "vlan_tci=0x6000/0xe000,tcp_dst=80"
        );
        let phy = Match::any().in_port(crate::Port(1)).with(Field::InPhyPort, 2);
        assert_eq!(print(&phy), "in_port=1,in_phy_port=2");
        assert_eq!(print(&Match::any().untagged()), "vlan_tci=0x0000/0x1fff");
        let v10 = OvsMatch { matching: &Match::any().untagged(), is_v10: true }.to_string();
        assert_eq!(v10, "vlan_tci=0x0000");
    }
}
