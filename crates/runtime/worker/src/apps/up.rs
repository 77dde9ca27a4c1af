//! What happens when a switch comes up, once a second, and when it goes.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{FlowStats, List};
use bellrock_api::{OwnFlow, SwitchInfo};
use tracing::info;

use crate::apps::handlers::handlers;
use crate::apps::own_flows::RemovedOutside;
use crate::apps::sight::SightFlows;
use crate::apps::stage::{ConnectionStage, UpSwitch};
use crate::apps::table_miss::TABLE_MISS;
use crate::apps::{Apps, Worker};
use crate::connection::Connection;
use crate::counters::WorkerCounters;
use crate::settings::TICK;
use crate::transport::{ConnectionKey, Transport};

impl Worker {
    /// Brings a switch up: gives it to the apps. `earlier_flows` has the flows that apps may adopt,
    /// if the switch reported them.
    pub(super) fn up<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        earlier_flows: Option<List<'_, FlowStats<'_>>>,
        now: Duration,
        transport: &mut T,
    ) {
        // Before any app gets the switch: a task that an app starts then may send to it at once.
        // Such mail is processed after this.
        if let Some(id) = self.id(key) {
            self.shared.update(id, &info);
        }
        let apps = self.shared.apps();
        let handlers =
            handlers(apps, &self.user.chain, &info, (&self.counters, &mut self.user.calls));
        if self.log.allows(now, &self.counters) {
            info!(
                dpid = %info.dpid, version = %info.version, peer = %info.peer,
                ports = info.ports.len(), software = %info.description.software,
                worker = self.index, "switch up"
            );
        }
        self.publish_up(&info, now);
        let next_tick = now + TICK;
        let table_miss = OwnFlow::new(TABLE_MISS);
        let sight = SightFlows::of(&self.user.chain, info.dpid);
        let up = UpSwitch {
            info,
            handlers,
            next_tick,
            flows_request: None,
            table_miss,
            sight,
            removed_outside: RemovedOutside::default(),
            controller_meter: None,
            changed: false,
        };
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.stage = ConnectionStage::Up(up);
        self.send_own_flows(key, now);
        self.counters.switches_up.add(1);
        if let Some(flows) = earlier_flows {
            self.adopt(key, flows, Duration::ZERO, now, transport);
        }
        // The apps' first messages get the whole buffer, and so do answers to early packets.
        self.flush(key, transport);
        self.first_event(key, now);
        self.flush(key, transport);
        self.early_packets(key, now, transport);
        self.connections.set_timer(key);
    }

    /// Does what each session needs once a second.
    pub(super) fn tick_session<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        count_session(&self.counters, connection);
        self.give_up_requests(key, now, transport);
        self.count_unfinished(key);
    }

    /// Ends what belongs to a switch that was up.
    pub(super) fn end_switch(&mut self, mut up: UpSwitch, now: Duration) {
        self.counters.switches_down.add(1);
        let dpid = up.info.dpid;
        up.own_flows().for_each(|flow| flow.forget(&self.user.network, dpid));
        self.farewell(up, now);
    }
}

/// Adds the counters of a session since the last call.
pub(super) fn count_session(counters: &WorkerCounters, connection: &mut Connection<Apps>) {
    // By name: a new counter that is not exported does not compile.
    let bellrock_session::SessionCounters {
        early_others,
        unexpected,
        malformed,
        errors_suppressed,
        multipart_overflows,
        ports_left_out,
    } = connection.session.take_counters();
    connection.counts.messages_sent.add(connection.session.take_sent().into());
    connection.own.port_tally.publish(&connection.counts);
    counters.messages_early.add(early_others.into());
    counters.unexpected.add(unexpected.into());
    counters.malformed.add(malformed.into());
    counters.errors_suppressed.add(errors_suppressed.into());
    counters.multipart_overflows.add(multipart_overflows.into());
    counters.ports_left_out.add(ports_left_out.into());
}
