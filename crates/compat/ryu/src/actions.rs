//! Actions and instructions between Ryu's form and that of the codec.

use bellrock_api::openflow::{
    Action, Bytes, Field, Instruction, Instructions, List, Match, Version,
};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::Failure;
use super::body::Object;
use super::matching::{number_of, text_of};
use super::numbers::{GROUPS, LENGTHS, MAX_LEN, METERS, QUEUES, TABLES, port_number, ports};

/// Number of bits of the type of service below the DSCP.
const ECN_BITS: u32 = 2;

/// The actions of a flow, in the order of its instructions.
#[derive(Debug, Default)]
pub(super) struct FlowActions {
    apply: Vec<Action<'static>>,
    /// All other instructions: what they are, and the actions to write.
    others: Vec<(Instruction<'static>, Vec<Action<'static>>)>,
}

impl FlowActions {
    /// Reads the actions of a flow. Those of 1.3 that are instructions come first, in order.
    pub(super) fn read(flow: Object<'_>) -> Result<Self, Failure> {
        let mut actions = FlowActions::default();
        let items = items(flow)?;
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}].", flow.place("actions"));
            let object = flow.inside(item, &path)?;
            match instruction(object)? {
                Some(Instruction::WriteActions(_)) => {
                    let written = read_all(object)?;
                    actions.others.push((Instruction::WriteActions(List::empty()), written));
                }
                Some(other) => actions.others.push((other, Vec::new())),
                None => actions.apply.push(action(object)?),
            }
        }
        Ok(actions)
    }

    /// Passes the instructions to `then`.
    pub(super) fn with<T>(&self, then: impl FnOnce(Instructions<'_>) -> T) -> T {
        let others = self.others.iter();
        // Ryu leaves out an instruction without actions.
        let mut instructions: Vec<Instruction<'_>> = others
            .filter_map(|(instruction, written)| match instruction {
                Instruction::WriteActions(_) if written.is_empty() => None,
                Instruction::WriteActions(_) => Some(Instruction::WriteActions(List::of(written))),
                other => Some(*other),
            })
            .collect();
        if !self.apply.is_empty() {
            instructions.push(Instruction::ApplyActions(List::of(&self.apply)));
        }
        then(Instructions::of(&instructions))
    }
}

/// Reads the list `actions` of an object.
pub(super) fn read_all(object: Object<'_>) -> Result<Vec<Action<'static>>, Failure> {
    let read = |(index, item): (usize, &Value)| {
        let path = format!("{}[{index}].", object.place("actions"));
        action(object.inside(item, &path)?)
    };
    items(object)?.iter().enumerate().map(read).collect()
}

/// The list `actions` of an object. `DROP` is no action of OpenFlow: scripts give it for none at
/// all, and Ryu, which does not know it, leaves it out.
fn items<'v>(object: Object<'v>) -> Result<&'v [Value], Failure> {
    let items = object.list("actions")?;
    let is_drop = |item: &Value| item.get("type").and_then(Value::as_str) == Some("DROP");
    match (items.iter().position(is_drop), items) {
        (None, items) => Ok(items),
        (Some(_), [drop]) => {
            let place = format!("{}[0].", object.place("actions"));
            object.inside(drop, &place)?.only(&["type"])?;
            Ok(&[])
        }
        (Some(index), _) => {
            let place = format!("{}[{index}].type", object.place("actions"));
            let why = "\"DROP\" stands alone; leave out the others, or DROP";
            Err(Failure::wrong(&place, why))
        }
    }
}

/// Reads what is an instruction in 1.3. `None`: it is an action.
fn instruction(object: Object<'_>) -> Result<Option<Instruction<'static>>, Failure> {
    if !object.version().has_oxm() {
        return Ok(None);
    }
    let (instruction, fields): (_, &[&str]) = match object.text("type")? {
        "GOTO_TABLE" => (Instruction::GotoTable(object.named("table_id", &TABLES)?), &["table_id"]),
        "METER" => (Instruction::Meter(object.named("meter_id", &METERS)?), &["meter_id"]),
        "CLEAR_ACTIONS" => (Instruction::ClearActions, &[]),
        "WRITE_ACTIONS" => (Instruction::WriteActions(List::empty()), &["actions"]),
        "WRITE_METADATA" => {
            let metadata = object.number("metadata")?;
            let mask = object.number_or("metadata_mask", u64::MAX)?;
            (Instruction::WriteMetadata { metadata, mask }, &["metadata", "metadata_mask"])
        }
        _ => return Ok(None),
    };
    object.only(&[&["type"], fields].concat())?;
    Ok(Some(instruction))
}

/// Reads an action.
fn action(object: Object<'_>) -> Result<Action<'static>, Failure> {
    let version = object.version();
    let name = object.text("type")?;
    let (action, fields): (_, &[&str]) = match (name, version.has_oxm()) {
        ("OUTPUT", _) => {
            let (port, max_len) =
                (object.port("port")?, object.named_or("max_len", &LENGTHS, MAX_LEN)?);
            (Action::Output { port, max_len }, &["port", "max_len"])
        }
        (_, true) => action_v13(object, name)?,
        (_, false) => action_v10(object, name)?,
    };
    object.only(&[&["type"], fields].concat())?;
    Ok(action)
}

/// An action, and the fields that it has.
type ActionAndFields = (Action<'static>, &'static [&'static str]);

fn action_v13(object: Object<'_>, name: &str) -> Result<ActionAndFields, Failure> {
    let ethertype = |action: fn(u16) -> Action<'static>| -> Result<ActionAndFields, Failure> {
        Ok((action(object.number("ethertype")?), &["ethertype"]))
    };
    Ok(match name {
        "COPY_TTL_OUT" => (Action::CopyTtlOut, &[]),
        "COPY_TTL_IN" => (Action::CopyTtlIn, &[]),
        "DEC_MPLS_TTL" => (Action::DecMplsTtl, &[]),
        "POP_VLAN" => (Action::PopVlan, &[]),
        "DEC_NW_TTL" => (Action::DecNwTtl, &[]),
        "POP_PBB" => (Action::PopPbb, &[]),
        "PUSH_VLAN" => ethertype(Action::PushVlan)?,
        "PUSH_MPLS" => ethertype(Action::PushMpls)?,
        "POP_MPLS" => ethertype(Action::PopMpls)?,
        "PUSH_PBB" => ethertype(Action::PushPbb)?,
        "SET_MPLS_TTL" => (Action::SetMplsTtl(object.number("mpls_ttl")?), &["mpls_ttl"]),
        "SET_NW_TTL" => (Action::SetNwTtl(object.number("nw_ttl")?), &["nw_ttl"]),
        "SET_QUEUE" => (Action::SetQueue(object.named("queue_id", &QUEUES)?), &["queue_id"]),
        "GROUP" => (Action::Group(object.named("group_id", &GROUPS)?), &["group_id"]),
        "SET_FIELD" => (set_field(object)?, &["field", "value"]),
        _ => {
            return Err(unknown(
                object,
                name,
                "OUTPUT, GROUP, SET_FIELD, PUSH_VLAN and GOTO_TABLE",
            ));
        }
    })
}

fn set_field(object: Object<'_>) -> Result<Action<'static>, Failure> {
    let name = object.text("field")?;
    let field: Field =
        name.parse().map_err(|error| Failure::wrong(&object.place("field"), error))?;
    let text = match object.value("value") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err(Failure::wrong(&object.place("value"), "give a text or a number")),
    };
    let value = number_of(field, &text);
    let value = value.map_err(|why| Failure::wrong(&object.place("value"), why))?;
    let present = u128::from(Match::VLAN_PRESENT);
    if field == Field::VlanVid && value & present == 0 {
        let why =
            format!("it lacks the bit 4096, which stands for a tag; give {}", value | present);
        return Err(Failure::wrong(&object.place("value"), why));
    }
    Ok(Action::SetField(field, value))
}

fn action_v10(object: Object<'_>, name: &str) -> Result<ActionAndFields, Failure> {
    let address = |field: Field, key: &'static str| -> Result<Action<'static>, Failure> {
        let value = field.value_of(object.text(key)?);
        let value = value.map_err(|error| Failure::wrong(&object.place(key), error))?;
        Ok(Action::SetField(field, value))
    };
    Ok(match name {
        "SET_VLAN_VID" => (Action::SetVlanVid(object.number("vlan_vid")?), &["vlan_vid"]),
        "SET_VLAN_PCP" => (Action::SetVlanPcp(object.number_or("vlan_pcp", 0)?), &["vlan_pcp"]),
        "STRIP_VLAN" => (Action::PopVlan, &[]),
        "SET_DL_SRC" => (address(Field::EthSrc, "dl_src")?, &["dl_src"]),
        "SET_DL_DST" => (address(Field::EthDst, "dl_dst")?, &["dl_dst"]),
        "SET_NW_SRC" => (address(Field::Ipv4Src, "nw_src")?, &["nw_src"]),
        "SET_NW_DST" => (address(Field::Ipv4Dst, "nw_dst")?, &["nw_dst"]),
        "SET_NW_TOS" => {
            let tos: u8 = object.number_or("nw_tos", 0)?;
            if tos.trailing_zeros() < ECN_BITS {
                let why = "give a multiple of 4: the DSCP, two bits higher";
                return Err(Failure::wrong(&object.place("nw_tos"), why));
            }
            (Action::SetField(Field::IpDscp, u128::from(tos >> ECN_BITS)), &["nw_tos"])
        }
        "SET_TP_SRC" => (Action::SetTpSrc(object.number_or("tp_src", 0)?), &["tp_src"]),
        "SET_TP_DST" => (Action::SetTpDst(object.number_or("tp_dst", 0)?), &["tp_dst"]),
        "ENQUEUE" => {
            let (port, queue) = (object.port("port")?, object.named("queue_id", &QUEUES)?);
            (Action::Enqueue { port, queue }, &["port", "queue_id"])
        }
        _ => {
            return Err(unknown(
                object,
                name,
                "OUTPUT, SET_VLAN_VID, STRIP_VLAN, SET_DL_DST and ENQUEUE",
            ));
        }
    })
}

fn unknown(object: Object<'_>, name: &str, examples: &str) -> Failure {
    let why =
        format!("there is no action {name:?} in this OpenFlow version; examples are {examples}");
    Failure::wrong(&object.place("type"), why)
}

/// Shows the instructions of a flow.
pub(super) fn show_all(version: Version, instructions: &Instructions<'_>) -> Value {
    let mut shown = Vec::<Value>::new();
    for instruction in instructions.iter() {
        let list = |actions: List<'_, Action<'_>>| -> Vec<Value> {
            actions.iter().map(|action| show(version, &action)).collect()
        };
        match instruction {
            Instruction::ApplyActions(actions) => shown.extend(list(actions)),
            Instruction::WriteActions(actions) if actions.is_empty() => {}
            Instruction::WriteActions(actions) => {
                shown.push(json!({"WRITE_ACTIONS": list(actions)}));
            }
            Instruction::ClearActions => shown.push("CLEAR_ACTIONS".into()),
            Instruction::GotoTable(table) => {
                shown.push(format!("GOTO_TABLE:{}", TABLES.text(table)).into());
            }
            Instruction::WriteMetadata { metadata, mask: 0 } => {
                shown.push(format!("WRITE_METADATA:{metadata:#x}").into());
            }
            Instruction::WriteMetadata { metadata, mask } => {
                shown.push(format!("WRITE_METADATA:{metadata:#x}/{mask:#x}").into());
            }
            Instruction::Meter(meter) => shown.push(format!("METER:{}", METERS.text(meter)).into()),
            Instruction::Experimenter { .. } | Instruction::Unknown { .. } => {
                shown.push("UNKNOWN".into());
            }
        }
    }
    Value::Array(shown)
}

/// Shows an action.
pub(super) fn show(version: Version, action: &Action<'_>) -> Value {
    let port = |port| ports(version).text(port_number(version, port));
    let text = match *action {
        Action::Output { port: to, .. } => format!("OUTPUT:{}", port(to)),
        Action::Enqueue { port: to, queue } => {
            format!("ENQUEUE:{}:{}", port(to), QUEUES.text(queue))
        }
        Action::PopVlan if !version.has_oxm() => "STRIP_VLAN".to_owned(),
        Action::SetField(field, value) if !version.has_oxm() => set_field_v10(field, value),
        Action::Experimenter { .. } if !version.has_oxm() => "VENDOR".to_owned(),
        Action::SetVlanVid(id) => format!("SET_VLAN_VID:{id}"),
        Action::SetVlanPcp(priority) => format!("SET_VLAN_PCP:{priority}"),
        Action::SetTpSrc(port) => format!("SET_TP_SRC:{port}"),
        Action::SetTpDst(port) => format!("SET_TP_DST:{port}"),
        Action::CopyTtlOut => "COPY_TTL_OUT".to_owned(),
        Action::CopyTtlIn => "COPY_TTL_IN".to_owned(),
        Action::SetMplsTtl(ttl) => format!("SET_MPLS_TTL:{ttl}"),
        Action::DecMplsTtl => "DEC_MPLS_TTL".to_owned(),
        Action::PushVlan(ethertype) => format!("PUSH_VLAN:{ethertype}"),
        Action::PopVlan => "POP_VLAN".to_owned(),
        Action::PushMpls(ethertype) => format!("PUSH_MPLS:{ethertype}"),
        Action::PopMpls(ethertype) => format!("POP_MPLS:{ethertype}"),
        Action::SetQueue(queue) => format!("SET_QUEUE:{}", QUEUES.text(queue)),
        Action::Group(group) => format!("GROUP:{}", GROUPS.text(group)),
        Action::SetNwTtl(ttl) => format!("SET_NW_TTL:{ttl}"),
        Action::DecNwTtl => "DEC_NW_TTL".to_owned(),
        Action::SetField(field, value) => {
            format!("SET_FIELD: {{{}:{}}}", field.name(), text_of(field, value))
        }
        Action::PushPbb(ethertype) => format!("PUSH_PBB:{ethertype}"),
        Action::PopPbb => "POP_PBB".to_owned(),
        Action::Experimenter { experimenter, data: Bytes(data) } => {
            let data = BASE64.encode(data);
            format!("EXPERIMENTER: {{experimenter:{experimenter}, data:{data}}}")
        }
        Action::SetUnknownField { .. } | Action::Unknown { .. } => "UNKNOWN".to_owned(),
    };
    text.into()
}

/// An action of 1.0 that sets a field.
fn set_field_v10(field: Field, value: u128) -> String {
    let name = match field {
        Field::EthSrc => "SET_DL_SRC",
        Field::EthDst => "SET_DL_DST",
        Field::Ipv4Src => "SET_NW_SRC",
        Field::Ipv4Dst => "SET_NW_DST",
        Field::IpDscp => return format!("SET_NW_TOS:{}", value << ECN_BITS),
        _ => return "UNKNOWN".to_owned(),
    };
    format!("{name}:{}", text_of(field, value))
}

#[cfg(test)]
mod tests {
    use super::super::body::Ignored;
    use super::*;

    fn shown(version: Version, actions: &Value) -> Result<Value, Failure> {
        let (ignored, body) = (Ignored::default(), json!({"actions": actions}));
        let body = body.as_object().unwrap();
        let read = FlowActions::read(Object::new(body, version, &ignored))?;
        Ok(read.with(|instructions| show_all(version, &instructions)))
    }

    #[test]
    fn actions_are_shown_in_ryu_s_form() {
        let actions = json!([
            {"type": "SET_FIELD", "field": "ipv4_dst", "value": "10.0.0.9"},
            {"type": "GOTO_TABLE", "table_id": 3},
            {"type": "WRITE_ACTIONS", "actions": []},
            {"type": "OUTPUT", "port": "CONTROLLER"},
        ]);
        // Applied actions are the last instruction.
        let expected =
            json!(["GOTO_TABLE:3", "SET_FIELD: {ipv4_dst:10.0.0.9}", "OUTPUT:CONTROLLER"]);
        assert_eq!(shown(Version::V1_3, &actions).unwrap(), expected);
        let actions = json!([{"type": "SET_NW_TOS", "nw_tos": 40}, {"type": "ENQUEUE", "port": 2, "queue_id": 3}]);
        let expected = json!(["SET_NW_TOS:40", "ENQUEUE:2:3"]);
        assert_eq!(shown(Version::V1_0, &actions).unwrap(), expected);
    }

    #[test]
    fn drop_alone_is_no_action_at_all() {
        for version in Version::ALL {
            let drop = json!({"type": "DROP"});
            assert_eq!(shown(version, &json!([drop])).unwrap(), json!([]));
            let both = json!([{"type": "OUTPUT", "port": 1}, drop]);
            let failure = shown(version, &both).unwrap_err();
            let text = "actions[1].type: \"DROP\" stands alone";
            assert!(failure.text.starts_with(text), "{}", failure.text);
            let slip = shown(version, &json!([{"type": "DROP", "typ": 1}])).unwrap_err();
            assert!(slip.text.contains("did you mean type?"), "{}", slip.text);
        }
    }

    #[test]
    fn a_wrong_action_is_refused_with_its_place() {
        for (version, action, text) in [
            (Version::V1_3, json!({"type": "FLY"}), "actions[0].type: there is no action \"FLY\""),
            (
                Version::V1_0,
                json!({"type": "GROUP", "group_id": 1}),
                "actions[0].type: there is no action",
            ),
            (Version::V1_3, json!({"port": 1}), "actions[0].type: give a text"),
            (Version::V1_3, json!({"type": "OUTPUT"}), "actions[0].port: it is missing"),
            (
                Version::V1_3,
                json!({"type": "OUTPUT", "port": 1, "prot": 2}),
                "actions[0].prot: there is no such field; did you mean port?",
            ),
            (
                Version::V1_3,
                json!({"type": "SET_FIELD", "field": "vlan_vid", "value": 5}),
                "actions[0].value: it lacks the bit 4096",
            ),
            (
                Version::V1_3,
                json!({"type": "SET_FIELD", "field": "dl_dst", "value": 5}),
                "actions[0].field: ",
            ),
            (
                Version::V1_0,
                json!({"type": "SET_NW_TOS", "nw_tos": 3}),
                "actions[0].nw_tos: give a multiple of 4",
            ),
            (Version::V1_3, json!(7), "actions[0]: it is no object"),
        ] {
            let failure = shown(version, &json!([action])).unwrap_err();
            assert_eq!(failure.status, 400);
            assert!(failure.text.starts_with(text), "{}", failure.text);
        }
    }
}
