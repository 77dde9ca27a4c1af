//! Handles the messages of controllers, one at a time.

use std::time::Duration;

use bellrock_openflow::{
    Bytes, Capabilities, ErrorCode, ErrorMessage, FromSwitch, List, MessageKind, Port, PortDesc,
    PortFeatures, PortState, Queue, QueueConfig, RequestBody, ToSwitch, Version, frame,
};

use super::{ChannelClose, EmulatedSwitch, RequestContext, replies};
use crate::datapath::Effects;

/// All actions of 1.0 (`ofp_action_type`): output to enqueue.
const ACTIONS_1_0: u32 = (1 << 12) - 1;

impl EmulatedSwitch {
    /// Handles an agreed version: the switch describes itself in that version.
    pub(super) fn ready(&mut self, index: usize) -> Result<(), ChannelClose> {
        let version = self.channels[index].version();
        let mut others = self.channels.iter().enumerate().filter(|(other, _)| *other != index);
        let used = others.find(|(_, other)| other.session.is_ready());
        match used.map(|(_, other)| other.version()) {
            Some(used) if used != version => {
                // Both sent their hello before a version was agreed.
                let text = format!("another controller uses OpenFlow {used}");
                let (code, data) = (ErrorCode::HelloIncompatible, Bytes(text.as_bytes()));
                self.send(index, 0, &FromSwitch::Error(ErrorMessage::Standard { code, data }))?;
                return Err(ChannelClose::OtherVersion { used, requested: version });
            }
            None if self.datapath.rules() != version => {
                self.datapath.clear();
                self.datapath.set_rules(version);
            }
            _ => {}
        }
        let ports = self.datapath.ports().iter();
        let ports = ports.map(|port| described(version, port.desc)).collect();
        let session = &mut self.channels[index].session;
        session.set_config(self.datapath.config());
        let description = session.description_mut();
        description.ports = ports;
        let both = Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::QUEUE_STATS;
        description.capabilities = both;
        description.capabilities.set(Capabilities::GROUP_STATS, version.has_groups());
        // Later versions describe the fields and actions of each table.
        description.capabilities.set(Capabilities::ARP_MATCH_IP, !version.has_table_features());
        description.actions = if version.has_table_features() { 0 } else { ACTIONS_1_0 };
        Ok(())
    }

    /// Handles a set_config, which the session would accept without a check. Returns `None` if the
    /// next message is another one.
    pub(super) fn set_config(
        &mut self,
        index: usize,
        stream: &[u8],
    ) -> Result<Option<usize>, ChannelClose> {
        let channel = &self.channels[index];
        let version = channel.version();
        let Ok(Some(message)) = frame(stream) else { return Ok(None) };
        let is_it = message.header.version == version.wire()
            && MessageKind::from_wire(version, message.header.kind) == Some(MessageKind::SetConfig);
        if !is_it || !channel.session.is_ready() {
            return Ok(None);
        }
        let Ok(decoded) = ToSwitch::decode(message.bytes) else { return Ok(None) };
        let ToSwitch::SetConfig(wanted) = decoded.body else { return Ok(None) };
        let changed = if channel.is_slave() {
            Err(ErrorCode::RequestIsSlave)
        } else {
            self.datapath.set_config(version, &wanted)
        };
        match changed {
            Ok(()) => {
                let config = self.datapath.config();
                let channels = self.channels.iter_mut();
                channels.for_each(|channel| channel.session.set_config(config));
            }
            Err(code) => {
                let request = RequestContext { xid: decoded.xid, bytes: message.bytes };
                self.refuse(index, request, code)?;
            }
        }
        Ok(Some(message.bytes.len()))
    }

    /// Carries out a request, or answers with an error.
    pub(super) fn message(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        body: ToSwitch<'_>,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ChannelClose> {
        if self.channels[index].is_slave() && changes_state(&body) {
            return self.refuse(index, request, ErrorCode::RequestIsSlave);
        }
        let version = self.channels[index].version();
        let datapath = &mut self.datapath;
        let done = match body {
            ToSwitch::PacketOut(packet) => datapath.packet_out(version, &packet, now, effects),
            ToSwitch::FlowMod(flow) => datapath.flow_mod(version, &flow, now, effects),
            ToSwitch::GroupMod(group) => datapath.group_mod(version, &group, now, effects),
            ToSwitch::MeterMod(meter) => datapath.meter_mod(&meter, now, effects),
            ToSwitch::PortMod(port) => datapath.port_mod(version, &port, effects),
            ToSwitch::TableMod(table) => datapath.table_mod(&table),
            ToSwitch::MultipartRequest(asked) => {
                return self.multipart(index, request, &asked, now);
            }
            ToSwitch::QueueGetConfigRequest(port) => {
                return self.queue_config(index, request, port);
            }
            ToSwitch::RoleRequest(role) => return self.role_request(index, request, role),
            ToSwitch::GetAsyncRequest => {
                let wants = self.channels[index].wants;
                return self.send(index, request.xid, &FromSwitch::GetAsyncReply(wants));
            }
            ToSwitch::SetAsync(wants) => {
                self.channels[index].wants = wants;
                Ok(())
            }
            ToSwitch::Experimenter(message) => return self.experimenter(index, request, &message),
            // No answer is needed.
            ToSwitch::EchoReply(_) | ToSwitch::Error(_) => Ok(()),
            // The session has answered these.
            ToSwitch::Hello(_)
            | ToSwitch::EchoRequest(_)
            | ToSwitch::FeaturesRequest
            | ToSwitch::GetConfigRequest
            | ToSwitch::SetConfig(_)
            | ToSwitch::BarrierRequest => Ok(()),
        };
        match done {
            Ok(()) => Ok(()),
            Err(code) => self.refuse(index, request, code),
        }
    }

    /// Answers with an error, which includes the start of the request.
    pub(super) fn refuse(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        code: ErrorCode,
    ) -> Result<(), ChannelClose> {
        self.counters.errors += 1;
        let code = code.nearest(self.channels[index].version());
        let len = request.bytes.len().min(ErrorMessage::DATA_LEN);
        let error = ErrorMessage::Standard { code, data: Bytes(&request.bytes[..len]) };
        self.send(index, request.xid, &FromSwitch::Error(error))
    }

    /// Writes a message for this controller.
    pub(super) fn send(
        &mut self,
        index: usize,
        xid: u32,
        message: &FromSwitch<'_>,
    ) -> Result<(), ChannelClose> {
        let version = self.channels[index].version();
        message.encode(version, xid, &mut self.scratch).map_err(replies::cannot_write)
    }

    /// Sends the queues of a port, or of all ports (1.0 §5.3.4; 1.3.5 §7.3.6). They have no rates:
    /// the link decides how fast packets leave.
    fn queue_config(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        requested: Port,
    ) -> Result<(), ChannelClose> {
        let all = requested == Port::ANY && self.channels[index].version().has_any_port();
        if !all && self.datapath.ports().get(requested.0).is_none() {
            return self.refuse(index, request, ErrorCode::QueueBadPort);
        }
        let ports = self.datapath.ports().iter();
        let ports = ports.filter(|port| all || port.desc.port == requested);
        let queues = ports.flat_map(|port| port.queues.iter().map(|queue| (port.desc.port, queue)));
        let queues: Vec<_> = queues
            .map(|(port, queue)| Queue { queue: queue.queue, port, properties: List::empty() })
            .collect();
        let config = QueueConfig { port: requested, queues: List::of(&queues) };
        self.send(index, request.xid, &FromSwitch::QueueGetConfigReply(config))
    }
}

/// Whether slaves may not send this request (1.3.5 §6.3.4).
fn changes_state(body: &ToSwitch<'_>) -> bool {
    match body {
        ToSwitch::PacketOut(_)
        | ToSwitch::FlowMod(_)
        | ToSwitch::GroupMod(_)
        | ToSwitch::MeterMod(_)
        | ToSwitch::PortMod(_)
        | ToSwitch::TableMod(_) => true,
        ToSwitch::MultipartRequest(request) => {
            matches!(request.body, RequestBody::TableFeatures(tables) if !tables.is_empty())
        }
        _ => false,
    }
}

/// Describes a port in a version. In 1.0 the bits of `LIVE` and `BLOCKED` have no meaning, and
/// there are only the rates 10 and 100 Mb/s, 1 and 10 Gb/s; with another rate, the port gives none.
pub(super) fn described(version: Version, desc: PortDesc) -> PortDesc {
    const NO_RATE_OF_V1_0: PortFeatures = PortFeatures::RATE_40GB_FD
        .union(PortFeatures::RATE_100GB_FD)
        .union(PortFeatures::RATE_1TB_FD)
        .union(PortFeatures::RATE_OTHER);
    if version.has_port_speeds() {
        return desc;
    }
    PortDesc {
        state: desc.state.difference(PortState::LIVE | PortState::BLOCKED),
        current: desc.current.difference(NO_RATE_OF_V1_0),
        advertised: desc.advertised.difference(NO_RATE_OF_V1_0),
        supported: desc.supported.difference(NO_RATE_OF_V1_0),
        ..desc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::{port_desc, set_rate};

    #[test]
    fn a_rate_that_a_version_has_no_name_for_is_not_told_in_it() {
        let told = |version, bits| {
            let mut desc = port_desc(1, 1);
            set_rate(&mut desc, bits);
            // 1.0 has no field for it.
            desc.current_speed = if version == Version::V1_0 { 0 } else { desc.current_speed };
            described(version, desc).rate_kbps()
        };
        assert_eq!(told(Version::V1_0, 100_000_000), Some(100_000));
        assert_eq!(told(Version::V1_0, 25_000_000), None);
        assert_eq!(told(Version::V1_0, 40_000_000_000), None);
        assert_eq!(told(Version::V1_3, 25_000_000), Some(25_000));
        assert_eq!(told(Version::V1_3, 40_000_000_000), Some(40_000_000));
    }
}
