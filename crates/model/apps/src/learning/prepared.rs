//! Templates for the flows of nearly all packets: a packet adds only addresses and ports.
//!
//! For plain packets this module gives the same flows as [`super::matching`], which handles all
//! packets; a test compares them.

use std::hint::cold_path;
use std::sync::{Arc, OnceLock};

use bellrock_api::openflow::ByVersion;
use bellrock_api::packet::{EthHeader, eth_type};
use bellrock_api::{
    Action, EncodeError, Field, Filling, FlowMod, FlowTemplate, MacAddr, Match, Network, PacketIn,
    Port, Result, Version,
};
use etherparse::ip_number;

use super::frame::FrameHeader;
use super::{LearningSettings, MatchKind};

/// Templates of all flows, for one version. All switches share them: they stay in the cache.
#[derive(Clone)]
pub(crate) enum Prepared {
    /// Of [`MatchKind::Exact`], for plain packets.
    Exact(Arc<ByProtocol>),
    /// Of [`MatchKind::L2`], for all packets.
    L2(Arc<ByTag>),
    /// The version cannot express the flows.
    Nothing,
}

/// The templates of each version, made when the first switch of that version connects.
#[derive(Default)]
pub(crate) struct PreparedByVersion(ByVersion<OnceLock<Prepared>>);

impl PreparedByVersion {
    pub(crate) fn of(
        &self,
        version: Version,
        settings: &LearningSettings,
        network: &Network,
    ) -> Prepared {
        let prepare = || Prepared::new(settings, network, version).unwrap_or(Prepared::Nothing);
        self.0[version].get_or_init(prepare).clone()
    }
}

/// The templates of each transport protocol.
pub(crate) struct ByProtocol {
    tcp: ByTag,
    udp: ByTag,
}

/// A template for packets without a VLAN tag and one for tagged packets.
pub(crate) struct ByTag {
    pub(super) untagged: FlowTemplate,
    tagged: FlowTemplate,
}

impl ByTag {
    #[inline(always)]
    pub(super) fn of(&self, frame: &FrameHeader) -> &FlowTemplate {
        if frame.vlan.is_none() { &self.untagged } else { &self.tagged }
    }
}

impl Prepared {
    pub(super) fn new(
        settings: &LearningSettings,
        network: &Network,
        version: Version,
    ) -> Result<Self> {
        let template = |matching: &Match| {
            let flow = FlowMod::add(matching)
                .priority(settings.priority)
                .idle_timeout(settings.idle_timeout_s)
                .hard_timeout(settings.hard_timeout_s)
                .actions(const { &[Action::output(Port(1))] });
            network.template(version, &flow)
        };
        // Only values that other fields depend on matter.
        let link =
            Match::any().in_port(Port(1)).eth_src(MacAddr::ZERO).eth_dst(MacAddr::ZERO).untagged();
        if settings.matching == MatchKind::L2 {
            let tagged = link.clone().vlan_id(1);
            let by_tag = ByTag { untagged: template(&link)?, tagged: template(&tagged)? };
            return Ok(Prepared::L2(Arc::new(by_tag)));
        }
        let exact = |protocol: u8, ports: [Field; 2]| -> Result<ByTag> {
            let network = |link: Match| {
                let link = link.eth_type(eth_type::IPV4).ip_proto(protocol);
                let link = if version.ranks_exact_flows_first() { link } else { link.ip_dscp(0) };
                [Field::Ipv4Src, Field::Ipv4Dst, ports[0], ports[1]]
                    .into_iter()
                    .fold(link, |matching, field| matching.with(field, 0))
            };
            let tagged = link.clone().vlan_id(1);
            let tagged = match version.ranks_exact_flows_first() {
                true => tagged,
                false => tagged.vlan_pcp(0),
            };
            Ok(ByTag {
                untagged: template(&network(link.clone()))?,
                tagged: template(&network(tagged))?,
            })
        };
        Ok(Prepared::Exact(Arc::new(ByProtocol {
            tcp: exact(ip_number::TCP.0, [Field::TcpSrc, Field::TcpDst])?,
            udp: exact(ip_number::UDP.0, [Field::UdpSrc, Field::UdpDst])?,
        })))
    }
}

/// Fills in a packet's addresses and output port. The flow has its ingress port from the start.
#[inline(always)]
pub(super) fn fill_link(
    flow: &mut Filling<'_>,
    packet: &PacketIn<'_>,
    frame: &FrameHeader,
    port: Port,
) -> Result<(), EncodeError> {
    if let Some(header) = packet.data().first_chunk() {
        flow.set_eth(header);
    }
    flow.output(port)?;
    // The templates for untagged packets already match this.
    if let Some(tag) = frame.vlan {
        flow.set(Field::VlanVid, &(Match::VLAN_PRESENT | tag.id).to_be_bytes());
    }
    Ok(())
}

/// A packet of TCP or UDP over IPv4, without options, whole and not fragmented: its flow's fields
/// above the link.
pub(super) struct Plain<'p> {
    /// Templates of its protocol.
    pub(super) by_tag: &'p ByTag,
    /// The IPv4 header and the ports.
    header: &'p [u8; IPV4_HEADER_LEN + PORTS_LEN],
}

const IPV4_HEADER_LEN: usize = 20;
const PORTS_LEN: usize = 4;
const TCP_HEADER_LEN: usize = 20;
const TCP_DATA_OFFSET_AT: usize = 12;
const UDP_HEADER_LEN: usize = 8;
const TCP: u8 = ip_number::TCP.0;
const UDP: u8 = ip_number::UDP.0;

impl<'p> Plain<'p> {
    /// Reads a packet without a tag, at least as long as all headers of TCP: shorter ones are rare,
    /// since Ethernet pads them. `None` for other packets.
    #[inline(always)]
    pub(super) fn untagged(
        packet: &PacketIn<'p>,
        templates: &'p ByProtocol,
    ) -> Option<(FrameHeader, Self)> {
        // After this check, the code below needs no further check of the length.
        if packet.data().len() < EthHeader::BYTES + IPV4_HEADER_LEN + TCP_HEADER_LEN {
            return None;
        }
        let frame = FrameHeader::read_untagged(packet)?;
        Some((frame, Self::read(packet, &frame, templates)?))
    }

    /// Reads a packet. `None` for packets that are not plain.
    #[inline(always)]
    pub(super) fn read(
        packet: &PacketIn<'p>,
        frame: &FrameHeader,
        templates: &'p ByProtocol,
    ) -> Option<Self> {
        const VERSION_4_WITHOUT_OPTIONS: u8 = 0x45;
        // In the bytes from the flags on: the bits set in a fragment, and the protocol.
        const FRAGMENT_AND_PROTOCOL: u32 = u32::from_le_bytes([0x3f, 0xff, 0, 0xff]);
        const WHOLE_TCP: u32 = u32::from_le_bytes([0, 0, 0, TCP]);
        const WHOLE_UDP: u32 = u32::from_le_bytes([0, 0, 0, UDP]);
        let network = packet.data().get(frame.header_len()..)?;
        let header: &[u8; IPV4_HEADER_LEN + UDP_HEADER_LEN] = network.first_chunk()?;
        let [version, _, l0, l1, _, _, flags @ .., _, _] = header.first_chunk::<12>()?;
        if frame.eth_type != eth_type::IPV4 || *version != VERSION_4_WITHOUT_OPTIONS {
            return None;
        }
        let len = usize::from(u16::from_be_bytes([*l0, *l1]));
        let (by_tag, transport_header_len) =
            match u32::from_le_bytes(*flags) & FRAGMENT_AND_PROTOCOL {
                WHOLE_TCP => {
                    let words = *network.get(IPV4_HEADER_LEN + TCP_DATA_OFFSET_AT)? >> 4;
                    let len = Some(usize::from(words) * 4).filter(|len| *len >= TCP_HEADER_LEN)?;
                    (&templates.tcp, len)
                }
                WHOLE_UDP => {
                    // UDP is rarer than TCP, so TCP is checked first.
                    cold_path();
                    (&templates.udp, UDP_HEADER_LEN)
                }
                _ => return None,
            };
        let is_whole = IPV4_HEADER_LEN + transport_header_len <= len && len <= network.len();
        if is_whole { Some(Plain { by_tag, header: header.first_chunk()? }) } else { None }
    }

    /// Fills in all fields above the link. Templates of 1.0 omit some ([`super::matching`]).
    #[inline(always)]
    pub(super) fn fill(&self, flow: &mut Filling<'_>, frame: &FrameHeader) {
        if !flow.version().ranks_exact_flows_first() {
            if let Some(tag) = frame.vlan {
                flow.set(Field::VlanPcp, &[tag.pcp]);
            }
            let [_, tos, ..] = *self.header;
            flow.set(Field::IpDscp, &[tos >> 2]);
        }
        if let Some((header, ports)) = self.header.split_last_chunk()
            && let Some(addresses) = header.last_chunk()
        {
            flow.set_ipv4(addresses);
            flow.set_ports(ports);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use bellrock_api::openflow::{self, Bytes, FromSwitch, MatchView, Out, PacketInReason, xid};
    use bellrock_api::runtime::EmptyNetwork;
    use bellrock_api::{AppId, PacketInView, ToSwitch};
    use proptest::prelude::*;

    use super::super::matching;
    use super::*;

    /// A packet_in of 1.3.
    pub(crate) fn packet_in(port: Port, data: &[u8]) -> Vec<u8> {
        packet_in_of(Version::V1_3, port, data)
    }

    fn packet_in_of(version: Version, port: Port, data: &[u8]) -> Vec<u8> {
        let packet = openflow::PacketInMessage {
            buffer_id: None,
            total_len: data.len() as u16,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: if version.packet_in_has_cookie() {
                0
            } else {
                openflow::PacketInMessage::NO_COOKIE
            },
            matching: MatchView::port(port),
            data: Bytes(data),
        };
        let mut out = Out::with_capacity(4096);
        FromSwitch::PacketIn(packet).encode(version, 0, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    /// A packet of TCP or UDP over IPv4, with some bytes changed and perhaps cut.
    fn packets() -> impl Strategy<Value = Vec<u8>> {
        let changes = prop::collection::vec((12_usize..60, any::<u8>()), 0..4);
        (any::<bool>(), any::<bool>(), changes, 0_usize..70).prop_map(
            |(is_tcp, tagged, changes, cut)| {
                let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
                if tagged {
                    packet.extend([0x81, 0, 0x20, 7]);
                }
                let protocol = if is_tcp { 6 } else { 17 };
                packet.extend([8, 0, 0x45, 0xb8, 0, 46, 0, 1, 0, 0, 64, protocol, 0, 0]);
                packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0, 80, 0, 26, 0, 0]);
                packet.extend([0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                for (at, value) in changes {
                    packet[at] = value;
                }
                packet.truncate(packet.len().min(14 + cut));
                packet
            },
        )
    }

    fn app() -> AppId {
        AppId::new(0, "learning").unwrap()
    }

    fn network() -> Network {
        EmptyNetwork::network_of("learning", app())
    }

    /// The flow_mod of a plain packet from its template; `None` for other packets.
    fn by_template(
        prepared: &Prepared,
        packet: &PacketIn<'_>,
        frame: &FrameHeader,
    ) -> Option<Vec<u8>> {
        let Prepared::Exact(by_protocol) = prepared else { panic!("exact templates") };
        let plain = Plain::read(packet, frame, by_protocol)?;
        let mut out = Out::with_capacity(4096);
        let template = plain.by_tag.of(frame);
        let mut flow = template.fill_for(packet, 7, &mut out).unwrap();
        fill_link(&mut flow, packet, frame, Port(9)).unwrap();
        plain.fill(&mut flow, frame);
        flow.finish().unwrap();
        Some(out.as_slice().to_vec())
    }

    fn by_field(
        settings: &LearningSettings,
        matching: &Match,
        packet: &PacketIn<'_>,
        version: Version,
    ) -> Vec<u8> {
        let actions = [Action::output(Port(9))];
        let flow = FlowMod::add(matching)
            .priority(settings.priority)
            .idle_timeout(settings.idle_timeout_s)
            .buffer_id(packet.buffer_id())
            .actions(&actions);
        let mut out = Out::with_capacity(4096);
        let flow = ToSwitch::FlowMod(app().owned_flow_mod(version, &flow).unwrap());
        flow.encode(version, xid::xid(app().owner(), 7), &mut out).unwrap();
        out.as_slice().to_vec()
    }

    proptest! {
        #[test]
        fn templates_say_what_the_fields_one_by_one_say(data in packets(), port in 1_u32..0xff00) {
            let settings =
                LearningSettings { matching: MatchKind::Exact, ..LearningSettings::default() };
            for version in Version::ALL {
                let message = packet_in_of(version, Port(port), &data);
                let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
                let prepared = Prepared::new(&settings, &network(), version).unwrap();
                let Some(frame) = FrameHeader::read(&packet) else { continue };
                if let Some(short) = by_template(&prepared, &packet, &frame) {
                    let matching = matching::exact(&packet, &frame, version);
                    prop_assert_eq!(short, by_field(&settings, &matching, &packet, version));
                }
            }
        }
    }

    #[test]
    fn a_plain_packet_has_a_template() {
        let mut data = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0];
        data.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 5, 0, 6, 0, 8, 0, 0]);
        let message = packet_in(Port(1), &data);
        let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
        let frame = FrameHeader::read(&packet).unwrap();
        let settings =
            LearningSettings { matching: MatchKind::Exact, ..LearningSettings::default() };
        let prepared = Prepared::new(&settings, &network(), Version::V1_3).unwrap();
        let Prepared::Exact(templates) = prepared else { panic!("exact templates") };
        let plain = Plain::read(&packet, &frame, &templates).unwrap();
        assert!(std::ptr::eq(plain.by_tag, &templates.udp));
    }
}
