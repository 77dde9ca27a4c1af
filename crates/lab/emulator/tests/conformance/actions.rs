//! Matches, actions and instructions as text, in the form that the crate `openflow` prints.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock_openflow::{
    Action, Bytes, Field, Instruction, Instructions, List, MacAddr, Match, Port,
};

use super::frame::{Result, bytes_of_hex, mac, number};
use super::words::{group, keep, meter, port, split};

/// Short words for fields that other fields require, as in `ovs-ofctl`.
const SHORT: &[(&str, &[(Field, u128)])] = &[
    ("arp", &[(Field::EthType, 0x0806)]),
    ("ip", &[(Field::EthType, 0x0800)]),
    ("tcp", &[(Field::EthType, 0x0800), (Field::IpProto, 6)]),
    ("udp", &[(Field::EthType, 0x0800), (Field::IpProto, 17)]),
    ("sctp", &[(Field::EthType, 0x0800), (Field::IpProto, 132)]),
    ("icmp", &[(Field::EthType, 0x0800), (Field::IpProto, 1)]),
    ("ipv6", &[(Field::EthType, 0x86dd)]),
    ("tcp6", &[(Field::EthType, 0x86dd), (Field::IpProto, 6)]),
    ("udp6", &[(Field::EthType, 0x86dd), (Field::IpProto, 17)]),
    ("icmp6", &[(Field::EthType, 0x86dd), (Field::IpProto, 58)]),
    ("mpls", &[(Field::EthType, 0x8847)]),
];

/// A match of `field=value`, `field=value/mask` and short words.
pub(crate) fn matching(words: Vec<(&str, &str)>) -> Result<Match> {
    let mut matching = Match::any();
    for (key, value) in words {
        if let Some((_, fields)) = SHORT.iter().find(|(name, _)| *name == key && value.is_empty()) {
            fields.iter().for_each(|(field, value)| matching.set(*field, *value));
            continue;
        }
        let field = field(key)?;
        match value.split_once('/') {
            Some((value, mask)) => {
                matching.set_masked(field, field_value(field, value)?, field_mask(field, mask)?);
            }
            None => matching.set(field, field_value(field, value)?),
        }
    }
    Ok(matching)
}

fn field(name: &str) -> Result<Field> {
    let found = Field::ALL.iter().find(|field| field.name() == name);
    found.copied().ok_or_else(|| format!("`{name}` is no match field and no word of this message"))
}

fn field_value(field: Field, text: &str) -> Result<u128> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(address.to_bits().into());
    }
    match (field, field.bytes()) {
        (Field::InPort | Field::InPhyPort, _) => Ok(port(text)?.0.into()),
        (_, 16) => text
            .parse::<Ipv6Addr>()
            .map(Ipv6Addr::to_bits)
            .map_err(|_| format!("`{text}` for {field}")),
        (_, 6) => Ok(MacAddr(mac(text)?).to_u64().into()),
        _ => Ok(number(text)?.into()),
    }
}

fn field_mask(field: Field, text: &str) -> Result<u128> {
    match (field, text.parse::<u32>()) {
        (
            Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::ArpSpa
            | Field::ArpTpa
            | Field::Ipv6Src
            | Field::Ipv6Dst,
            Ok(bits),
        ) => Ok(field.max() & !field.max().checked_shr(bits).unwrap_or(0)),
        _ => field_value(field, text),
    }
}

/// Instructions; plain actions mean apply_actions.
pub(crate) fn instructions(text: &str) -> Result<Instructions<'static>> {
    let (mut list, mut apply) = (Vec::new(), Vec::new());
    for word in split(text, |c| c == ',' || c.is_whitespace()) {
        match instruction(word)? {
            Some(instruction) => {
                flush(&mut apply, &mut list);
                list.push(instruction);
            }
            None if word == "drop" => {}
            None => apply.push(action(word)?),
        }
    }
    flush(&mut apply, &mut list);
    Ok(Instructions::of(keep(list)))
}

fn flush(apply: &mut Vec<Action<'static>>, list: &mut Vec<Instruction<'static>>) {
    if !apply.is_empty() {
        list.push(Instruction::ApplyActions(List::of(keep(std::mem::take(apply)))));
    }
}

fn instruction(word: &str) -> Result<Option<Instruction<'static>>> {
    if let Some(inner) = word.strip_prefix("write_actions(").and_then(|rest| rest.strip_suffix(')'))
    {
        return Ok(Some(Instruction::WriteActions(actions(inner)?)));
    }
    if let Some(inner) = word.strip_prefix("apply_actions(").and_then(|rest| rest.strip_suffix(')'))
    {
        return Ok(Some(Instruction::ApplyActions(actions(inner)?)));
    }
    if let Some(inner) = word.strip_prefix("instruction(").and_then(|rest| rest.strip_suffix(')')) {
        let (kind, body) = inner.split_once(',').unwrap_or((inner, "00000000"));
        let body = Bytes(keep(bytes_of_hex(body)?));
        return Ok(Some(Instruction::Unknown { kind: number(kind)? as u16, body }));
    }
    Ok(Some(match word.split_once(':').unwrap_or((word, "")) {
        ("goto_table", table) => Instruction::GotoTable(number(table)? as u8),
        ("meter", id) => Instruction::Meter(meter(id)?),
        ("clear_actions", _) => Instruction::ClearActions,
        ("experimenter_instruction", id) => {
            Instruction::Experimenter { experimenter: number(id)? as u32, data: Bytes(&[0; 4]) }
        }
        ("write_metadata", text) => {
            let (metadata, mask) = text.split_once('/').unwrap_or((text, "0xffffffffffffffff"));
            Instruction::WriteMetadata { metadata: number(metadata)?, mask: number(mask)? }
        }
        _ => return Ok(None),
    }))
}

/// Actions separated by commas; `drop` means none.
pub(crate) fn actions(text: &str) -> Result<List<'static, Action<'static>>> {
    let words = split(text, |c| c == ',' || c.is_whitespace());
    let list: Result<Vec<_>> =
        words.into_iter().filter(|word| *word != "drop").map(action).collect();
    Ok(List::of(keep(list?)))
}

fn action(word: &str) -> Result<Action<'static>> {
    if let Some(inner) = word.strip_prefix("action(").and_then(|rest| rest.strip_suffix(')')) {
        let (kind, body) = inner.split_once(',').unwrap_or((inner, "00000000"));
        return Ok(Action::Unknown {
            kind: number(kind)? as u16,
            body: Bytes(keep(bytes_of_hex(body)?)),
        });
    }
    let (name, argument) = word.split_once(':').unwrap_or((word, ""));
    let n = || number(argument);
    Ok(match name {
        "CONTROLLER" => Action::Output { port: Port::CONTROLLER, max_len: n()? as u16 },
        reserved if port(reserved).is_ok_and(|port| port >= Port::IN_PORT) => {
            Action::output(port(reserved)?)
        }
        "output" => Action::output(port(argument)?),
        "set_vlan_vid" => Action::SetVlanVid(n()? as u16),
        "set_vlan_pcp" => Action::SetVlanPcp(n()? as u8),
        "set_tp_src" => Action::SetTpSrc(n()? as u16),
        "set_tp_dst" => Action::SetTpDst(n()? as u16),
        "enqueue" => {
            let (to, queue) = argument.split_once(':').ok_or("enqueue:PORT:QUEUE")?;
            Action::Enqueue { port: port(to)?, queue: number(queue)? as u32 }
        }
        "copy_ttl_out" => Action::CopyTtlOut,
        "copy_ttl_in" => Action::CopyTtlIn,
        "set_mpls_ttl" => Action::SetMplsTtl(n()? as u8),
        "dec_mpls_ttl" => Action::DecMplsTtl,
        "push_vlan" => Action::PushVlan(n()? as u16),
        "pop_vlan" => Action::PopVlan,
        "push_mpls" => Action::PushMpls(n()? as u16),
        "pop_mpls" => Action::PopMpls(n()? as u16),
        "set_queue" => Action::SetQueue(n()? as u32),
        "group" => Action::Group(group(argument)?),
        "set_nw_ttl" => Action::SetNwTtl(n()? as u8),
        "dec_nw_ttl" => Action::DecNwTtl,
        "push_pbb" => Action::PushPbb(n()? as u16),
        "pop_pbb" => Action::PopPbb,
        "experimenter" => Action::Experimenter { experimenter: n()? as u32, data: Bytes(&[]) },
        "set_field" => {
            let (value, name) = argument.split_once("->").ok_or("set_field:VALUE->FIELD")?;
            let field = field(name)?;
            Action::SetField(field, field_value(field, value)?)
        }
        other => return Err(format!("`{other}` is no action")),
    })
}
