//! The flows of nearly all packets, prepared: what a packet adds are addresses and ports.
//!
//! What is said here for plain packets, [`super::matching`] says for all; a test compares the two.

use bellrock_api::{
    Action, Cookie, EncodeError, Field, Filling, FlowMod, FlowTemplate, MacAddr, Match, PacketIn,
    Port, Version,
};
use etherparse::ip_number;

use super::frame::{ETH_TYPE_IPV4, Frame};
use super::{LearningSettings, MatchKind};

/// Templates of all flows, for one version.
#[expect(clippy::large_enum_variant, reason = "there are two in all, shared by all switches")]
pub(super) enum Prepared {
    /// Of [`MatchKind::L2`], for all packets.
    L2(ByTag),
    /// Of [`MatchKind::Exact`], for plain packets.
    Exact { tcp: ByTag, udp: ByTag },
}

/// One for packets without a VLAN tag and one for those with.
pub(super) struct ByTag([FlowTemplate; 2]);

impl ByTag {
    #[inline(always)]
    pub(super) fn of(&self, frame: &Frame<'_>) -> &FlowTemplate {
        let [untagged, tagged] = &self.0;
        if frame.vlan.is_none() { untagged } else { tagged }
    }
}

impl Prepared {
    pub(super) fn new(
        settings: &LearningSettings,
        cookie: Cookie,
        version: Version,
    ) -> Result<Self, EncodeError> {
        let template = |matching: &Match| {
            let flow = FlowMod::add(matching)
                .cookie(cookie.with(0))
                .priority(settings.priority)
                .idle_timeout(settings.idle_timeout_s)
                .hard_timeout(settings.hard_timeout_s)
                .actions(const { &[Action::output(Port(1))] });
            FlowTemplate::new(version, &flow)
        };
        // The values do not matter, but for what the other fields depend on.
        let link =
            Match::any().in_port(Port(1)).eth_src(MacAddr::ZERO).eth_dst(MacAddr::ZERO).untagged();
        if settings.matching == MatchKind::L2 {
            let tagged = link.clone().vlan_id(1);
            return Ok(Prepared::L2(ByTag([template(&link)?, template(&tagged)?])));
        }
        let exact = |protocol: u8, ports: [Field; 2]| {
            let network = |link: Match| {
                [Field::Ipv4Src, Field::Ipv4Dst, ports[0], ports[1]].into_iter().fold(
                    link.eth_type(ETH_TYPE_IPV4).ip_dscp(0).ip_proto(protocol),
                    |matching, field| matching.with(field, 0),
                )
            };
            let tagged = link.clone().vlan_id(1).vlan_pcp(0);
            Ok(ByTag([template(&network(link.clone()))?, template(&network(tagged))?]))
        };
        Ok(Prepared::Exact {
            tcp: exact(ip_number::TCP.0, [Field::TcpSrc, Field::TcpDst])?,
            udp: exact(ip_number::UDP.0, [Field::UdpSrc, Field::UdpDst])?,
        })
    }
}

/// Fills in where a packet comes from and goes to, and by which port; the packet goes through the
/// flow if the switch keeps it.
#[inline(always)]
pub(super) fn fill_link(
    flow: &mut Filling<'_>,
    packet: &PacketIn<'_>,
    frame: &Frame<'_>,
    port: Port,
) {
    if let Some(buffer_id) = packet.buffer_id() {
        flow.buffer_id(buffer_id);
    }
    flow.output(port);
    flow.in_port(packet.in_port());
    flow.set(Field::EthSrc, frame.src_bytes());
    flow.set(Field::EthDst, frame.dst_bytes());
    // The templates for packets without a tag say so already.
    if let Some(tag) = frame.vlan {
        flow.set(Field::VlanVid, &(Match::VLAN_PRESENT | tag.id).to_be_bytes());
    }
}

/// A packet of TCP or UDP over IPv4, without options, whole and in one piece: what the fields of
/// its flow are above the link.
pub(super) struct Plain<'p> {
    header: &'p [u8; IPV4_HEADER_LEN],
    payload: &'p [u8; PORTS_LEN],
}

const IPV4_HEADER_LEN: usize = 20;
const PORTS_LEN: usize = 4;
const TCP_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
const TCP: u8 = ip_number::TCP.0;
const UDP: u8 = ip_number::UDP.0;

impl<'p> Plain<'p> {
    /// `None` for packets that are something else.
    #[inline(always)]
    pub(super) fn read(packet: &PacketIn<'p>, frame: &Frame<'p>) -> Option<Self> {
        const VERSION_4_WITHOUT_OPTIONS: u8 = 0x45;
        const FRAGMENT: u16 = 0x3fff;
        if frame.eth_type != ETH_TYPE_IPV4 {
            return None;
        }
        let network = packet.data().get(frame.header_len()..)?;
        let header: &[u8; IPV4_HEADER_LEN] = network.first_chunk()?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        if header[0] != VERSION_4_WITHOUT_OPTIONS || number(6) & FRAGMENT != 0 {
            return None;
        }
        let payload = network.get(IPV4_HEADER_LEN..usize::from(number(2)))?;
        let plain = match header[9] {
            TCP => {
                let tcp: &[u8; TCP_HEADER_LEN] = payload.first_chunk()?;
                let header_len = usize::from(tcp[12] >> 4) * 4;
                (TCP_HEADER_LEN..=payload.len()).contains(&header_len)
            }
            UDP => payload.len() >= UDP_HEADER_LEN,
            _ => false,
        };
        if plain { Some(Plain { header, payload: payload.first_chunk()? }) } else { None }
    }

    /// Whether it is TCP; if not, it is UDP.
    #[inline(always)]
    pub(super) fn is_tcp(&self) -> bool {
        self.header[9] == TCP
    }

    /// Fills in all fields above the link.
    #[inline(always)]
    pub(super) fn fill(&self, flow: &mut Filling<'_>, frame: &Frame<'_>) {
        if let Some(tag) = frame.vlan {
            flow.set(Field::VlanPcp, &[tag.pcp]);
        }
        let [_, tos, ..] = *self.header;
        flow.set(Field::IpDscp, &[tos >> 2]);
        if let ([.., from, to], _) = self.header.as_chunks::<4>() {
            flow.set(Field::Ipv4Src, from);
            flow.set(Field::Ipv4Dst, to);
        }
        if let ([from, to], _) = self.payload.as_chunks::<2>() {
            flow.set_ports(from, to);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use bellrock_api::openflow::{self, Bytes, FromSwitch, MatchView, Out, PacketInReason};
    use bellrock_api::{PacketInView, ToSwitch};
    use proptest::prelude::*;

    use super::super::matching;
    use super::*;

    /// A packet_in of 1.3.
    pub(in super::super) fn packet_in(port: Port, data: &[u8]) -> Vec<u8> {
        let packet = openflow::PacketIn {
            buffer_id: None,
            total_len: data.len() as u16,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: 0,
            matching: MatchView::port(port),
            data: Bytes(data),
        };
        let mut out = Out::with_capacity(4096);
        FromSwitch::PacketIn(packet).encode(Version::V1_3, 0, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    /// A packet of TCP or UDP over IPv4, with some of its bytes changed and perhaps cut.
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

    /// The flow_mod of a plain packet by its template; `None` for other packets.
    fn by_template(
        prepared: &Prepared,
        packet: &PacketIn<'_>,
        frame: &Frame<'_>,
    ) -> Option<Vec<u8>> {
        let Prepared::Exact { tcp, udp } = prepared else { panic!("exact templates") };
        let plain = Plain::read(packet, frame)?;
        let by_tag = if plain.is_tcp() { tcp } else { udp };
        let mut out = Out::with_capacity(4096);
        let mut flow = by_tag.of(frame).fill(7, &mut out).unwrap();
        fill_link(&mut flow, packet, frame, Port(9));
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
            .cookie(COOKIE.with(0))
            .priority(settings.priority)
            .idle_timeout(settings.idle_timeout_s)
            .buffer_id(packet.buffer_id())
            .actions(&actions);
        let mut out = Out::with_capacity(4096);
        ToSwitch::FlowMod(flow).encode(version, 7, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    const COOKIE: Cookie = Cookie::of_app("learning");

    proptest! {
        #[test]
        fn templates_say_what_the_fields_one_by_one_say(data in packets(), port in 1_u32..0xff00) {
            let message = packet_in(Port(port), &data);
            let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
            let settings =
                LearningSettings { matching: MatchKind::Exact, ..LearningSettings::default() };
            for version in [Version::V1_0, Version::V1_3] {
                let prepared = Prepared::new(&settings, COOKIE, version).unwrap();
                let Some(frame) = Frame::read(&packet) else { continue };
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
        let frame = Frame::read(&packet).unwrap();
        assert!(Plain::read(&packet, &frame).is_some_and(|plain| !plain.is_tcp()));
    }
}
