//! The table-miss entry (1.3): the controller's own flow, which sends it the packets that match no
//! other flow.

use std::time::Duration;

use bellrock_api::openflow::{FlowCommand, FlowMod, Group, Out, frame};
use bellrock_api::{Cookie, Port, ToSwitch};

use crate::apps::Apps;
use crate::apps::own_flows::record_sent;
use crate::apps::stage::ConnectionStage;
use crate::connection::Connection;

/// Table of the entry.
const TABLE: u8 = 0;

/// Name of the flow for operators.
pub(crate) const TABLE_MISS: &str = "table-miss entry";

/// Whether messages of an operator remove the entry's place: all flows of its table, or the flow
/// with its match and priority. An operator's own flow may have taken that place before, silently.
pub(crate) fn is_removed_by(messages: &[u8]) -> bool {
    let mut rest = messages;
    while let Ok(Some(message)) = frame(rest) {
        if let Ok(decoded) = ToSwitch::decode(message.bytes)
            && let ToSwitch::FlowMod(flow) = decoded.body
            && removes(&flow)
        {
            return true;
        }
        rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
    }
    false
}

fn removes(flow: &FlowMod<'_>) -> bool {
    let is_selected = match flow.command {
        FlowCommand::Delete => true,
        FlowCommand::DeleteStrict => flow.priority == 0,
        _ => false,
    };
    let is_whole =
        flow.cookie_mask == 0 && flow.out_port == Port::ANY && flow.out_group == Group::ANY;
    is_selected
        && is_whole
        && matches!(flow.table, TABLE | FlowMod::ALL_TABLES)
        && flow.matching.to_match().is_any()
}

impl Connection<Apps> {
    /// Writes the entry: for the first time, or again with this barrier behind it.
    pub(super) fn write_table_miss(&mut self, out: &mut Out, barrier: Option<u32>, now: Duration) {
        let sent = self.session.table_miss(Cookie::CONTROLLER.with(0), out);
        if let (Ok(Some(xid)), ConnectionStage::Up(up)) = (sent, &mut self.stage) {
            record_sent(&mut up.table_miss, xid, barrier, now);
        }
    }
}
