//! Flows for packets that came together, without an object for each.

use std::ops::Range;

use bellrock::flow::FlowCommand;
use bellrock::{Action, Error, Field, Flow, MacAddr, Match, PacketIn, Port, Switch};
use pyo3::prelude::*;

use crate::argument::wrong_value;
use crate::frame_view::FrameView;
use crate::from_packet::some_fields;
use crate::packets::PyPacketIns;

/// Flows to install, and the packets that they are for.
pub(crate) struct FlowsForPackets<'p> {
    all: &'p PyPacketIns,
    /// Packets with a port, and the port.
    packets: Vec<(PacketIn<'p>, Port)>,
    /// Places of packets without a port.
    others: Vec<Range<usize>>,
    matches: Matches,
    /// What all flows share: everything except their matches and actions.
    settings: Flow,
}

/// What the flows match.
enum Matches {
    /// These fields, which every packet has: one flow is encoded, and filled in for each packet.
    Link { matching: Box<Match>, has_src: bool, has_dst: bool },
    /// One match for each packet with a port.
    Each(Vec<Match>),
}

impl<'p> FlowsForPackets<'p> {
    /// Reads the ports of packets, and makes the matches.
    ///
    /// # Errors
    /// `ValueError`: the ports are more or fewer than the packets, or a packet lacks a field.
    pub(crate) fn new(
        all: &'p PyPacketIns,
        ports: &Bound<'_, PyAny>,
        fields: &[Field],
        settings: Flow,
    ) -> PyResult<Self> {
        let count = all.packets().count();
        let wrong =
            || wrong_value(format_args!("give a port, or None, for each of {count} packets"));
        let (mut packets, mut others) = (Vec::with_capacity(count), Vec::new());
        let mut ports = ports.try_iter()?;
        for (place, packet) in all.packets() {
            match ports.next().ok_or_else(wrong)??.extract::<Option<u32>>()? {
                Some(port) => packets.push((packet, Port(port))),
                None => others.push(place.clone()),
            }
        }
        if ports.next().is_some() {
            return Err(wrong());
        }
        let has = |field| fields.contains(&field);
        let is_link =
            |field: &Field| matches!(field, Field::InPort | Field::EthSrc | Field::EthDst);
        let matches = if fields.iter().all(is_link) {
            let zero = |matching: Match, field: &Field| matching.with(*field, 0);
            let matching = fields.iter().fold(Match::any(), zero);
            // Of any switch: the port of each packet takes its place.
            let matching = if has(Field::InPort) { matching.in_port(Port(1)) } else { matching };
            Matches::Link {
                matching: Box::new(matching),
                has_src: has(Field::EthSrc),
                has_dst: has(Field::EthDst),
            }
        } else {
            let of_packet = |(packet, _): &(PacketIn<'_>, Port)| {
                some_fields(FrameView(packet.data()), packet.in_port().0, fields)
            };
            Matches::Each(packets.iter().map(of_packet).collect::<PyResult<_>>()?)
        };
        Ok(FlowsForPackets { all, packets, others, matches, settings })
    }

    /// Installs the flows, and sends the packets with them.
    ///
    /// # Errors
    /// What the version of the switch cannot express; a packet that neither the switch nor its
    /// message has as a whole.
    pub(crate) fn install(&self, switch: &mut Switch<'_>) -> Result<(), Error> {
        match &self.matches {
            Matches::Each(matches) => {
                for ((packet, port), matching) in self.packets.iter().zip(matches) {
                    let mut flow = self.settings.clone().actions(&[Action::output(*port)]);
                    flow.matching = matching.clone();
                    flow.with_flow_mod(FlowCommand::Add, |flow| {
                        switch.install(&flow.buffer_id(packet.buffer_id()))
                    })?;
                    send(switch, packet, *port)?;
                }
            }
            Matches::Link { matching, has_src, has_dst } => {
                let mut flow = self.settings.clone().actions(&[Action::output(Port(1))]);
                flow.matching = (**matching).clone();
                let template =
                    flow.with_flow_mod(FlowCommand::Add, |flow| switch.template(flow))?;
                let needs_port = matching.has(Field::InPort);
                for (packet, port) in &self.packets {
                    let frame = FrameView(packet.data());
                    let address = |at| frame.chunk(at).unwrap_or(MacAddr::ZERO.0);
                    let mut filling = match needs_port {
                        true => switch.install_for(packet, &template)?,
                        false => {
                            let mut filling = switch.install_from(&template)?;
                            packet.buffer_id().into_iter().for_each(|id| filling.buffer_id(id));
                            filling
                        }
                    };
                    if *has_dst {
                        filling.set(Field::EthDst, &address(0));
                    }
                    if *has_src {
                        filling.set(Field::EthSrc, &address(6));
                    }
                    filling.output(*port)?;
                    filling.finish()?;
                    send(switch, packet, *port)?;
                }
            }
        }
        Ok(())
    }

    /// The packets without a port.
    pub(crate) fn others(self) -> PyPacketIns {
        self.all.with(self.others)
    }
}

/// Sends a packet that the switch has not buffered: a buffered one goes with its flow.
fn send(switch: &mut Switch<'_>, packet: &PacketIn<'_>, port: Port) -> Result<(), Error> {
    match packet.buffer_id() {
        Some(_) => Ok(()),
        None => switch.packet_out_whole(packet, &[Action::output(port)]),
    }
}
