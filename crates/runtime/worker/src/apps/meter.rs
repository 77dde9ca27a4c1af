//! The meter towards the controller (1.3.5 §5.7.3, `OFPM_CONTROLLER`): the switch itself drops
//! packet-ins beyond a rate, before they reach the control network. It is off unless a setting
//! turns it on.

use std::time::Duration;

use bellrock_api::openflow::{
    Band, BandType, List, Meter, MeterCommand, MeterFlags, MeterMod, Out,
};
use bellrock_api::{OwnFlow, ToSwitch};
use bellrock_session::xid;

use crate::apps::Apps;
use crate::apps::own_flows::record_sent;
use crate::apps::stage::ConnectionStage;
use crate::connection::Connection;

/// Name of the meter for operators.
pub(super) const CONTROLLER_METER: &str = "meter towards the controller";

impl Connection<Apps> {
    /// Writes the meter, if the switch is to have one: for the first time, or again if it is due,
    /// with this barrier behind it. `rate`: maximum number of packets a second.
    pub(super) fn write_meter(
        &mut self,
        out: &mut Out,
        rate: Option<u32>,
        barrier: Option<u32>,
        now: Duration,
    ) {
        let ConnectionStage::Up(up) = &mut self.stage else { return };
        let is_sent = |meter: &&mut Box<OwnFlow>| barrier.is_none() || meter.is_due(now);
        let meter = up.controller_meter.as_mut().filter(is_sent);
        let (Some(meter), Some(rate)) = (meter, rate) else { return };
        let version = self.session.version();
        let bands = [Band { rate, burst_size: 0, kind: BandType::Drop }];
        // One of an earlier run may have another rate, and an entry that exists cannot be added.
        let delete = MeterMod {
            command: MeterCommand::Delete,
            flags: MeterFlags::PKTPS,
            meter: Meter::CONTROLLER,
            bands: List::empty(),
        };
        let add = MeterMod { command: MeterCommand::Add, bands: List::of(&bands), ..delete };
        let mut next = || self.session.next_xid(xid::SESSION);
        let (first, second) = (next(), next());
        if ToSwitch::MeterMod(delete).encode(version, first, out).is_ok()
            && ToSwitch::MeterMod(add).encode(version, second, out).is_ok()
        {
            record_sent(meter, second, barrier, now);
        }
    }
}
