//! Messages of OpenFlow as bytes, for what the library has no method for: those of experimenters
//! above all.
//!
//! A message is whole, with its header, and of the version that the switch speaks. Its transaction
//! id is replaced. An app whose allowance is less than all may send none.
//!
//! What the controller or the library keeps track of is refused: roles, what switches report,
//! flows.

pub mod experimenter;

use bellrock_api::openflow::{
    Group, GroupCommand, GroupMod, Header, Message, Meter, MeterCommand, MeterMod, RequestBody,
    RequestKind, RoleKind, Strictness,
};
use bellrock_api::runtime::RawMessages;
use bellrock_api::{Dpid, Error, Network, ProgramFuture, RequestFuture, ToSwitch, Version};

use crate::desired::OperatorChange;

/// A message that is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodedError {
    /// No switch with this datapath id is up.
    #[error(transparent)]
    NoSwitch(Error),
    /// What is wrong with the message, and what would be right.
    #[error("{0}")]
    Wrong(String),
}

/// Sends a request, and returns a future for the reply: of any type that a switch answers, or of an
/// experimenter. A switch that does not know an experimenter's message refuses it; one that knows
/// it and answers nothing is [`RequestError::Silent`](bellrock_api::RequestError::Silent).
///
/// # Errors
/// [`EncodedError`]. Then nothing is sent.
pub fn request(
    network: &Network,
    dpid: Dpid,
    message: &[u8],
) -> Result<RequestFuture, EncodedError> {
    let (version, body) = read(network, dpid, message)?;
    check_request(&body, version).map_err(EncodedError::Wrong)?;
    Ok(network.send_request(dpid, &body))
}

/// Sends a message that no switch answers, with a barrier behind it, and returns a future for its
/// one outcome.
///
/// What it removes or changes is put back if an app keeps it
/// ([`Desired`](crate::desired::Desired)), as soon as the future is over or dropped.
///
/// # Errors
/// [`EncodedError`]. Then nothing is sent.
pub fn send(network: &Network, dpid: Dpid, message: &[u8]) -> Result<ProgramFuture, EncodedError> {
    let (version, body) = read(network, dpid, message)?;
    check_change(&body, version).map_err(EncodedError::Wrong)?;
    // Until the future is over or dropped. Then desired state reads the tables, as after an
    // operator's order.
    let change = may_change_tables(&body).then(|| OperatorChange::begin(network, dpid));
    Ok(network.send_messages(dpid, vec![message.into()]).holding(change))
}

fn read<'m>(
    network: &Network,
    dpid: Dpid,
    message: &'m [u8],
) -> Result<(Version, ToSwitch<'m>), EncodedError> {
    let info = network.reachable(dpid);
    let info = info.ok_or(EncodedError::NoSwitch(Error::UnknownSwitch(dpid)))?;
    let body = decode(message, info.version).map_err(EncodedError::Wrong)?;
    Ok((info.version, body))
}

/// Decodes a whole message for a switch that speaks `spoken`.
///
/// # Errors
/// What is wrong.
pub fn decode(bytes: &[u8], spoken: Version) -> Result<ToSwitch<'_>, String> {
    if let Some(Header { length, .. }) = Header::read(bytes)
        && usize::from(length) != bytes.len()
    {
        let given = bytes.len();
        return Err(format!("its header states a length of {length} bytes, and it has {given}"));
    }
    // The switch judges what the controller need not understand.
    let decoded = ToSwitch::decode_as(bytes, Strictness::Liberal);
    let Message { version, body, .. } =
        decoded.map_err(|error| format!("this is no message to a switch: {error}"))?;
    match version == spoken {
        true => Ok(body),
        false => {
            Err(format!("it is a message of OpenFlow {version}, and the switch speaks {spoken}"))
        }
    }
}

/// Checks what no request may do, whoever sends it: what the controller does itself, and what
/// changes the switch.
///
/// # Errors
/// Why it may not.
pub fn check_any_request(message: &ToSwitch<'_>) -> Result<(), String> {
    match message {
        ToSwitch::MultipartRequest(request) if request.more => {
            Err("it is only a part of a request; give the whole request in one message".to_owned())
        }
        ToSwitch::MultipartRequest(request) => match request.body {
            RequestBody::TableFeatures(tables) if !tables.is_empty() => {
                Err("it changes the tables of the switch; leave out the tables to ask".to_owned())
            }
            RequestBody::Experimenter { experimenter, data } => {
                experimenter::check_multipart(experimenter, &data)
            }
            _ => Ok(()),
        },
        ToSwitch::RoleRequest(role) if role.role != RoleKind::NoChange => {
            Err("the controller decides its role itself; to ask for it, send NOCHANGE".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether a message may change flows, groups or meters. An experimenter's may do anything.
pub fn may_change_tables(message: &ToSwitch<'_>) -> bool {
    matches!(
        message,
        ToSwitch::FlowMod(_)
            | ToSwitch::GroupMod(_)
            | ToSwitch::MeterMod(_)
            | ToSwitch::TableMod(_)
            | ToSwitch::Experimenter(_)
    )
}

/// Why an app may not send this request. An experimenter's message may be one: the app knows.
fn check_request(message: &ToSwitch<'_>, version: Version) -> Result<(), String> {
    check_any_request(message)?;
    match message {
        ToSwitch::Experimenter(message) => experimenter::check(message),
        message if RequestKind::of(message).is_none() => {
            let name = message.kind().name(version);
            Err(format!("a switch does not answer {name}: send it with `send`"))
        }
        _ => Ok(()),
    }
}

/// Why an app may not send this change. Operators may remove all groups and meters, and change the
/// controller's meter: they order by hand, and know whose they are.
fn check_change(message: &ToSwitch<'_>, version: Version) -> Result<(), String> {
    match message {
        ToSwitch::GroupMod(GroupMod { command: GroupCommand::Delete, group, .. })
            if *group == Group::ALL =>
        {
            Err("it removes the groups of all apps, and their flows; name one group".to_owned())
        }
        ToSwitch::MeterMod(MeterMod { command: MeterCommand::Delete, meter, .. })
            if *meter == Meter::ALL =>
        {
            Err("it removes the meters of all apps, and their flows; name one meter".to_owned())
        }
        ToSwitch::MeterMod(meter) if meter.meter == Meter::CONTROLLER => {
            Err("the controller sets this meter itself, by `limits.controller_meter`".to_owned())
        }
        ToSwitch::PacketOut(_)
        | ToSwitch::GroupMod(_)
        | ToSwitch::PortMod(_)
        | ToSwitch::TableMod(_)
        | ToSwitch::MeterMod(_) => Ok(()),
        ToSwitch::Experimenter(message) => experimenter::check(message),
        ToSwitch::FlowMod(_) => {
            Err("its flow would be of no app; install flows by the switch, or by a plan".to_owned())
        }
        ToSwitch::SetConfig(_) | ToSwitch::SetAsync(_) => {
            Err("the controller sets what switches report".to_owned())
        }
        message if RequestKind::of(message).is_some() => {
            let name = message.kind().name(version);
            Err(format!("a switch answers {name}: send it with `request`"))
        }
        _ => Err("the controller sends such messages itself".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use bellrock_api::openflow::{
        Bytes, Experimenter, FlowMod, GroupType, Hello, List, MeterFlags, MultipartRequest, NICIRA,
        Out, PacketOut, Port, RoleMessage,
    };

    use super::*;
    use bellrock_api::Match;

    fn encoded(message: &ToSwitch<'_>, version: Version) -> Vec<u8> {
        let mut out = Out::with_capacity(1024);
        message.encode(version, 7, &mut out).unwrap();
        out.as_slice().to_vec()
    }

    #[test]
    fn a_message_is_whole_and_of_the_version_of_the_switch() {
        let barrier = encoded(&ToSwitch::BarrierRequest, Version::V1_3);
        assert!(decode(&barrier, Version::V1_3).is_ok());
        for (bytes, spoken, why) in [
            (&barrier[..], Version::V1_0, "OpenFlow 1.3, and the switch speaks 1.0"),
            (&barrier[..4], Version::V1_3, "this is no message to a switch"),
            (&[&barrier[..], &[0]].concat(), Version::V1_3, "of 8 bytes, and it has 9"),
        ] {
            let error = decode(bytes, spoken).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_message_is_a_request_or_a_change_and_no_affair_of_the_controller() {
        let any = Match::any();
        let of = |kind| {
            ToSwitch::Experimenter(Experimenter { experimenter: NICIRA, kind, data: Bytes(&[]) })
        };
        let packet = PacketOut {
            buffer_id: None,
            in_port: Port::CONTROLLER,
            actions: List::empty(),
            data: Bytes(&[]),
        };
        let part = MultipartRequest { more: true, ..MultipartRequest::of(RequestBody::Desc) };
        let role = |role| ToSwitch::RoleRequest(RoleMessage { role, generation_id: 0 });
        let meter = |meter| {
            let (flags, bands) = (MeterFlags::empty(), List::empty());
            ToSwitch::MeterMod(MeterMod { command: MeterCommand::Delete, flags, meter, bands })
        };
        let group = |group| {
            let (command, kind) = (GroupCommand::Delete, GroupType::All);
            ToSwitch::GroupMod(GroupMod { command, kind, group, buckets: List::empty() })
        };
        let of_monitor =
            ToSwitch::MultipartRequest(MultipartRequest::of(RequestBody::Experimenter {
                experimenter: NICIRA,
                data: Bytes(&[0, 0, 0, 2]),
            }));
        let no_tables = MultipartRequest::of(RequestBody::TableFeatures(List::empty()));
        // A request with the features of table 0, without properties.
        let mut one_table = [0; 80];
        one_table[..10].copy_from_slice(&[4, 18, 0, 80, 0, 0, 0, 7, 0, 12]);
        one_table[16..18].copy_from_slice(&64_u16.to_be_bytes());
        for (message, as_request, as_change) in [
            (role(RoleKind::NoChange), "", "send it with `request`"),
            (role(RoleKind::Slave), "decides its role itself", "send it with `request`"),
            (ToSwitch::MultipartRequest(no_tables), "", "send it with `request`"),
            (
                decode(&one_table, Version::V1_3).unwrap(),
                "changes the tables of the switch",
                "with `request`",
            ),
            (of_monitor, "NXST_FLOW_MONITOR", "send it with `request`"),
            (meter(Meter::ALL), "send it with `send`", "of all apps"),
            (meter(Meter::CONTROLLER), "send it with `send`", "sets this meter itself"),
            (meter(7), "send it with `send`", ""),
            (group(Group::ALL), "send it with `send`", "of all apps"),
            (group(7), "send it with `send`", ""),
            (ToSwitch::GetConfigRequest, "", "OFPT_GET_CONFIG_REQUEST: send it with `request`"),
            (ToSwitch::MultipartRequest(part), "only a part", "send it with `request`"),
            (of(Some(29)), "", ""),
            (of(Some(16)), "NXT_SET_PACKET_IN_FORMAT", "NXT_SET_PACKET_IN_FORMAT"),
            (ToSwitch::PacketOut(packet), "OFPT_PACKET_OUT: send it with `send`", ""),
            (ToSwitch::FlowMod(FlowMod::delete(&any)), "send it with `send`", "of no app"),
            (ToSwitch::Hello(Hello::bare()), "send it with `send`", "sends such messages itself"),
        ] {
            for (checked, why) in [
                (check_request(&message, Version::V1_3), as_request),
                (check_change(&message, Version::V1_3), as_change),
            ] {
                match checked {
                    Ok(()) => assert_eq!(why, "", "{message:?}"),
                    Err(error) => assert!(!why.is_empty() && error.contains(why), "{error}"),
                }
            }
        }
    }
}
