//! A switch with roles, an app that notes what it sees of it, and orders for roles.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::lab::{FakeRoles, Lab, Notes, SwitchId};
use bellrock_api::openflow::{
    Bytes, FlowStats, FromSwitch, RoleExtension, RoleKind, RoleMessage, RoleReason, RoleStatus,
};
use bellrock_api::runtime::RoleControl;
use bellrock_api::{
    App, ControllerRole, Cookie, Dpid, EarlierFlows, EndReason, ErrorCode, ErrorMessage, Event,
    GrantedRole, Handler, MacAddr, Network, PacketIn, Port, PortDesc, PortStatus, Result,
    RoleError, RoleOrder, RoleOrderFuture, Switch, SwitchInfo, Verdict, Version,
};
use bellrock_session::{FirstRole, SwitchDescription};
use bellrock_worker::WorkerSettings;

pub(crate) const BOTH: [Version; Version::ALL.len()] = Version::ALL;
pub(crate) const DPID: Dpid = Dpid(5);
/// Type of a flow_mod, and of a request for statistics in 1.0.
pub(crate) const FLOW_MOD: u8 = 14;
pub(crate) const STATS_REQUEST: u8 = 16;

/// Notes what it sees. Adopts every flow.
#[derive(Clone, Default)]
pub(crate) struct Watching(pub(crate) Notes);

impl App for Watching {
    type Handler = Watching;

    fn name(&self) -> &'static str {
        "watching"
    }

    fn earlier_flows(&self) -> EarlierFlows {
        EarlierFlows::Adopt
    }

    fn switch_up(&self, _: &Network, info: &SwitchInfo) -> Watching {
        self.0.note(format!("made as {}", info.role));
        self.clone()
    }
}

impl Handler for Watching {
    fn adopt(&mut self, _: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        self.0.note(format!("adopts {:x}", flow.cookie & !Cookie::MASK));
        Ok(true)
    }

    fn switch_up(&mut self, _: &mut Switch<'_>) -> Result<()> {
        self.0.note("up");
        Ok(())
    }

    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.0.note(format!("packet of {}", packet.data().len()));
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, _: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        self.0.note(format!("port {}", status.desc.port));
        Ok(())
    }

    fn tick(&mut self, _: &mut Switch<'_>) -> Result<()> {
        self.0.note("tick");
        Ok(())
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.note(format!("down as {}", info.role));
    }
}

pub(crate) fn settings(first_role: FirstRole) -> WorkerSettings {
    let mut settings = WorkerSettings::default();
    settings.session.first_role = first_role;
    settings
}

/// A connected switch with roles, and what the app has seen.
pub(crate) fn connected(version: Version, first_role: FirstRole) -> (Lab, SwitchId, Notes) {
    let notes = Notes::default();
    let mut lab = Lab::new(1, settings(first_role), vec![Box::new(Watching(notes.clone()))]);
    let mut description = SwitchDescription::new(DPID.0);
    description.ports = vec![port(1)];
    let id = lab.connect(0, version, description);
    lab.switches[id].roles = FakeRoles::equal();
    lab.run();
    (lab, id, notes)
}

pub(crate) fn port(number: u32) -> PortDesc {
    let name = bellrock_api::openflow::FixedStr::new("eth");
    PortDesc::new(Port(number), MacAddr::from_u64(number.into()), name)
}

pub(crate) fn order(lab: &Lab, order: RoleOrder) -> RoleOrderFuture {
    lab.shared.network().set_role(DPID, order)
}

/// Runs the lab; the order must have its outcome then.
pub(crate) fn outcome(lab: &mut Lab, ordered: RoleOrderFuture) -> Result<GrantedRole, RoleError> {
    lab.run();
    match poll(ordered) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("the order has no outcome"),
    }
}

pub(crate) fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

pub(crate) fn ordered(lab: &mut Lab, role: RoleOrder) -> Result<GrantedRole, RoleError> {
    let ordered = order(lab, role);
    outcome(lab, ordered)
}

pub(crate) const fn master(generation_id: u64) -> RoleOrder {
    RoleOrder::Master { generation_id }
}

pub(crate) const SLAVE: RoleOrder = RoleOrder::Slave { generation_id: None };

/// A granted role. 1.0 has no generation ids.
pub(crate) fn granted(
    version: Version,
    role: ControllerRole,
    generation: u64,
) -> Result<GrantedRole, RoleError> {
    let generation_id = (version == Version::V1_3).then_some(generation);
    Ok(GrantedRole { role, generation_id })
}

/// Role of the switch that is up.
pub(crate) fn up(lab: &Lab) -> Option<ControllerRole> {
    lab.shared.network().switch(DPID).map(|info| info.role)
}

/// Role of the switch that stands by.
pub(crate) fn standby(lab: &Lab) -> Option<ControllerRole> {
    lab.shared.network().standbys().load().get(DPID).map(|info| info.role)
}

/// The messages that the switch received, without requests for roles.
pub(crate) fn received(lab: &mut Lab, id: SwitchId) -> Vec<String> {
    let all = lab.switches[id].take();
    all.into_iter().filter(|text| text != "RoleRequest" && text != "Experimenter").collect()
}

/// The switch sends a role_status.
pub(crate) fn role_status(lab: &mut Lab, id: SwitchId, role: RoleKind) {
    let status = RoleStatus {
        role: RoleMessage { role, generation_id: 9 },
        reason: RoleReason::MasterRequest,
    };
    let mut out = bellrock_api::openflow::Out::with_capacity(64);
    RoleExtension::Status(status).write(Version::V1_3, 0, &mut out).unwrap();
    lab.send_bytes(id, out.as_slice());
    lab.run();
}

/// The switch refuses a flow_mod so.
pub(crate) fn refuse(lab: &mut Lab, id: SwitchId, code: ErrorCode) {
    refuse_message(lab, id, code, FLOW_MOD);
}

/// The same for a message of this type.
pub(crate) fn refuse_message(lab: &mut Lab, id: SwitchId, code: ErrorCode, kind: u8) {
    let quoted = [1, kind, 0, 8, 0, 0, 0, 1];
    lab.send(id, &FromSwitch::Error(ErrorMessage::Standard { code, data: Bytes(&quoted) }));
    lab.run();
}

/// The switch refuses the message with this xid, since the controller is slave.
pub(crate) fn refuse_slave(lab: &mut Lab, id: SwitchId, xid: u32) {
    let data = Bytes(&[4, FLOW_MOD, 0, 8, 0, 0, 0, 1]);
    let error = ErrorMessage::Standard { code: ErrorCode::RequestIsSlave, data };
    let mut out = bellrock_api::openflow::Out::with_capacity(64);
    FromSwitch::Error(error).encode(Version::V1_3, xid, &mut out).unwrap();
    lab.send_bytes(id, out.as_slice());
    lab.run();
}

/// The xid of the last message that the switch received.
pub(crate) fn last_xid(lab: &Lab, id: SwitchId) -> u32 {
    let message = lab.switches[id].received.last().unwrap();
    u32::from_be_bytes(message[4..8].try_into().unwrap())
}

/// The switch connects again, with roles and this newest generation id.
pub(crate) fn reconnects(
    lab: &mut Lab,
    old: SwitchId,
    version: Version,
    generation: Option<u64>,
) -> SwitchId {
    lab.hang_up(old);
    lab.run();
    let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
    lab.switches[id].roles = FakeRoles { generation, ..FakeRoles::equal() };
    lab.run();
    id
}

/// Why the switch went down, as published.
pub(crate) fn why_down(lab: &Lab) -> Vec<EndReason> {
    let events = lab.shared.network().events().latest(usize::MAX);
    let why = |event: &Event| match event {
        Event::SwitchDown { why, .. } => Some(why.reason),
        _ => None,
    };
    events.iter().filter_map(|happened| why(&happened.event)).collect()
}
