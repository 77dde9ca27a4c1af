//! The queues of ports. Each answer asks the switches for their counters (`OFPMP_QUEUE`, 1.3.5
//! §7.3.5.10; `OFPST_QUEUE`, 1.0 §5.3.5).

use std::sync::Arc;

use bellrock_api::openflow::{QueueStats, QueueStatsRequest, RequestBody};
use bellrock_api::{Names, Network, Port, ReplyBody, SwitchInfo};
use bellrock_query::{ListQueues, QueryError, QueueRow, Rows};

use super::ask::{ask_each, kept, of_switch};
use super::name_of;

/// Maximum number of switches that are named because they did not report their queues.
const MAX_SILENT_NAMED: usize = 5;

/// The queues of these switches, which are sorted by datapath id. All of them are asked, some at a
/// time.
///
/// # Errors
/// Only one switch was asked for, and it has no such port, or does not report its queues.
pub(super) fn list(
    network: &Network,
    names: &Names,
    mut switches: Vec<Arc<SwitchInfo>>,
    query: &ListQueues,
) -> Result<Rows<QueueRow>, QueryError> {
    if let Some(port) = query.port {
        switches.retain(|info| info.ports.iter().any(|desc| desc.port == port));
        if let (Some(switch), []) = (&query.switch, &switches[..]) {
            let why = format!("switch {switch} has no port {port}; `bellrock ports` lists those");
            return Err(QueryError::not_found("port", why));
        }
    }
    let ask = |info: &Arc<SwitchInfo>| {
        // 1.0 asks for all ports by another number.
        let all = if info.version.has_oxm() { Port::ANY } else { Port::ALL };
        let (port, queue) = (query.port.unwrap_or(all), QueueStatsRequest::ALL_QUEUES);
        network.request(info.dpid, RequestBody::Queue(QueueStatsRequest { port, queue }))
    };
    let asked = ask_each(&switches, "queues", ask, |info, reply| match reply {
        ReplyBody::Queue(queues) => {
            let mut rows: Vec<_> = queues.iter().map(|queue| row(names, info, &queue)).collect();
            rows.sort_by_key(|row| (row.port, row.queue));
            Some(rows)
        }
        _ => None,
    });
    let (mut rows, mut silent) = (Vec::new(), Vec::new());
    for (info, asked) in switches.iter().zip(asked) {
        match (asked, &query.switch) {
            (Ok(queues), _) => rows.extend(queues),
            (failed, Some(switch)) => rows = of_switch(switch, failed)?,
            (Err((_, why)), None) => {
                let name = name_of(names, info.dpid).unwrap_or_else(|| info.dpid.to_string());
                silent.push(format!("switch {name}: {why}"));
            }
        }
    }
    let others = silent.len().saturating_sub(MAX_SILENT_NAMED);
    silent.truncate(MAX_SILENT_NAMED);
    if others > 0 {
        silent.push(format!("and {others} others"));
    }
    let incomplete = (!silent.is_empty()).then(|| silent.join("; "));
    Ok(Rows { incomplete, ..Rows::of(rows, query.page) })
}

fn row(names: &Names, info: &SwitchInfo, queue: &QueueStats) -> QueueRow {
    let port = info.ports.iter().find(|desc| desc.port == queue.port);
    QueueRow {
        dpid: info.dpid,
        switch_name: name_of(names, info.dpid),
        port: queue.port,
        queue: queue.queue,
        rate_kbps: port.and_then(|desc| desc.rate_kbps()),
        tx_packets: kept(queue.tx_packets),
        tx_bytes: kept(queue.tx_bytes),
        tx_errors: kept(queue.tx_errors),
        age_seconds: info.version.reports_ages().then_some(queue.duration_sec.into()),
    }
}
