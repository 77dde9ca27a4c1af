//! The meter towards the controller (1.3.5 §5.7.3, `OFPM_CONTROLLER`): the switch itself drops
//! packet-ins beyond a rate, before they reach the control network. It is off unless a setting
//! turns it on.

use std::time::Duration;

use bellrock_api::OwnFlow;
use bellrock_api::openflow::{
    Band, BandType, List, Meter, MeterCommand, MeterFlags, MeterMod, RequestKind, ToSwitch,
};
use bellrock_session::xid;
use tracing::warn;

use crate::connection::ConnectionStage;
use crate::transport::{ConnectionKey, Transport};
use crate::worker::Worker;

/// Name of the meter for operators.
const CONTROLLER_METER: &str = "meter towards the controller";

impl Worker {
    /// Sends the meter to a switch that has just come up, if there is to be one. The send buffer is
    /// almost empty here.
    pub(crate) fn send_first_meter(&mut self, key: ConnectionKey, now: Duration) {
        if self.settings.limits.controller_meter.is_none() {
            return;
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        let version = connection.session.version();
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        if !version.has_meters() {
            if self.log.allows(now, &self.counters) {
                warn!(
                    dpid = %up.info.dpid, %version,
                    "`controller_meter` has no effect at this switch: its version has no meters; \
                     `packet_ins_per_second` limits its packet-ins at the controller"
                );
            }
            return;
        }
        up.controller_meter = Some(Box::new(OwnFlow::new(CONTROLLER_METER)));
        self.send_meter(key, now);
    }

    /// Sends the meter again after a refusal, when it is due.
    pub(crate) fn retry_meter<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
        let ConnectionStage::Up(up) = &connection.stage else { return };
        if up.controller_meter.as_ref().is_some_and(|meter| meter.is_due(now)) {
            self.flush(key, transport);
            self.send_meter(key, now);
        }
    }

    fn send_meter(&mut self, key: ConnectionKey, now: Duration) {
        let Some(packets) = self.settings.limits.controller_meter else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let version = connection.session.version();
        let rate = Band { rate: packets, burst_size: 0, kind: BandType::Drop };
        let bands = [rate];
        // One of an earlier run may have another rate, and an entry that exists cannot be added.
        let delete = MeterMod {
            command: MeterCommand::Delete,
            flags: MeterFlags::PKTPS,
            meter: Meter::CONTROLLER,
            bands: List::empty(),
        };
        let add = MeterMod { command: MeterCommand::Add, bands: List::of(&bands), ..delete };
        let mut next = || connection.session.next_xid(xid::SESSION);
        let (first, second, barrier) = (next(), next(), next());
        let is_written = ToSwitch::MeterMod(delete).encode(version, first, &mut self.out).is_ok()
            && ToSwitch::MeterMod(add).encode(version, second, &mut self.out).is_ok();
        let ConnectionStage::Up(up) = &mut connection.stage else { return };
        let Some(meter) = up.controller_meter.as_mut().filter(|_| is_written) else { return };
        meter.record_sent(second, now);
        if meter.is_refused()
            && ToSwitch::BarrierRequest.encode(version, barrier, &mut self.out).is_ok()
            && connection.session.request(barrier, RequestKind::Barrier, now).is_ok()
        {
            meter.record_barrier(barrier);
        }
    }
}
