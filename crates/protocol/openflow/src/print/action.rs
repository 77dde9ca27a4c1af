//! Actions, instructions and buckets.

use std::fmt::{self, Display, Formatter};

use super::{Hex, commas};
use crate::field::Value;
use crate::{Action, Bucket, Group, Instruction, Instructions, List, Meter, Port};

impl Display for Action<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Output { port: Port::CONTROLLER, max_len } => {
                write!(f, "CONTROLLER:{max_len}")
            }
            // As `ovs-ofctl` prints it: a reserved port is an action of its own.
            Action::Output { port, .. } if port >= Port::IN_PORT => write!(f, "{port}"),
            Action::Output { port, .. } => write!(f, "output:{port}"),
            Action::SetVlanVid(vid) => write!(f, "set_vlan_vid:{vid}"),
            Action::SetVlanPcp(pcp) => write!(f, "set_vlan_pcp:{pcp}"),
            Action::SetTpSrc(port) => write!(f, "set_tp_src:{port}"),
            Action::SetTpDst(port) => write!(f, "set_tp_dst:{port}"),
            Action::Enqueue { port, queue } => write!(f, "enqueue:{port}:{queue}"),
            Action::CopyTtlOut => f.write_str("copy_ttl_out"),
            Action::CopyTtlIn => f.write_str("copy_ttl_in"),
            Action::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl:{ttl}"),
            Action::DecMplsTtl => f.write_str("dec_mpls_ttl"),
            Action::PushVlan(eth_type) => write!(f, "push_vlan:{eth_type:#06x}"),
            Action::PopVlan => f.write_str("pop_vlan"),
            Action::PushMpls(eth_type) => write!(f, "push_mpls:{eth_type:#06x}"),
            Action::PopMpls(eth_type) => write!(f, "pop_mpls:{eth_type:#06x}"),
            Action::SetQueue(queue) => write!(f, "set_queue:{queue}"),
            Action::Group(group) => write!(f, "group:{}", GroupName(group)),
            Action::SetNwTtl(ttl) => write!(f, "set_nw_ttl:{ttl}"),
            Action::DecNwTtl => f.write_str("dec_nw_ttl"),
            Action::SetField(field, value) => {
                write!(f, "set_field:{}->{field}", Value { field, value })
            }
            Action::SetUnknownField { header, value } => {
                write!(f, "set_field:{}->oxm({header:#010x})", Hex(&value))
            }
            Action::PushPbb(eth_type) => write!(f, "push_pbb:{eth_type:#06x}"),
            Action::PopPbb => f.write_str("pop_pbb"),
            Action::Experimenter { experimenter, data } => {
                write!(f, "experimenter({experimenter:#010x},{})", Hex(&data))
            }
            Action::Unknown { kind, body } => write!(f, "action({kind},{})", Hex(&body)),
        }
    }
}

/// Prints actions, separated by commas; `drop` for none.
pub(super) struct ActionList<'a>(pub(super) List<'a, Action<'a>>);

impl Display for ActionList<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("drop") } else { actions(self.0, f) }
    }
}

fn actions(actions: List<'_, Action<'_>>, f: &mut Formatter<'_>) -> fmt::Result {
    commas(actions.iter(), f)?;
    unread(actions.iter().next().is_some(), actions.unread(), f)
}

/// Prints the unreadable bytes at the end of a list.
pub(super) fn unread(is_behind: bool, bytes: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    if bytes.is_empty() {
        return Ok(());
    }
    write!(f, "{}unread({})", if is_behind { "," } else { "" }, Hex(bytes))
}

/// Applied actions print without a name, other instructions with their name.
impl Display for Instruction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Instruction::GotoTable(table) => write!(f, "goto_table:{table}"),
            Instruction::WriteMetadata { metadata, mask: u64::MAX } => {
                write!(f, "write_metadata:{metadata:#x}")
            }
            Instruction::WriteMetadata { metadata, mask } => {
                write!(f, "write_metadata:{metadata:#x}/{mask:#x}")
            }
            Instruction::WriteActions(actions) => {
                f.write_str("write_actions(")?;
                self::actions(actions, f)?;
                f.write_str(")")
            }
            Instruction::ApplyActions(actions) if actions.is_empty() => {
                f.write_str("apply_actions()")
            }
            Instruction::ApplyActions(actions) => self::actions(actions, f),
            Instruction::ClearActions => f.write_str("clear_actions"),
            Instruction::Meter(meter) => write!(f, "meter:{}", MeterName(meter)),
            Instruction::Experimenter { experimenter, data } => {
                write!(f, "experimenter_instruction({experimenter:#010x},{})", Hex(&data))
            }
            Instruction::Unknown { kind, body } => {
                write!(f, "instruction({kind},{})", Hex(&body))
            }
        }
    }
}

/// Prints with commas between them; `drop` for none.
impl Display for Instructions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_any = self.iter().next().is_some();
        if !is_any && self.unread().is_empty() {
            return f.write_str("drop");
        }
        commas(self.iter(), f)?;
        match self.iter().next() {
            // 1.0 has one list of actions, which has printed its unreadable bytes.
            Some(Instruction::ApplyActions(_)) if self.is_apply() => Ok(()),
            _ => unread(is_any, self.unread(), f),
        }
    }
}

impl Display for Bucket<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("bucket=")?;
        if self.weight != 0 {
            write!(f, "weight:{},", self.weight)?;
        }
        if self.watch_port != Port::ANY {
            write!(f, "watch_port:{},", self.watch_port)?;
        }
        if self.watch_group != Group::ANY {
            write!(f, "watch_group:{},", GroupName(self.watch_group))?;
        }
        write!(f, "actions={}", ActionList(self.actions))
    }
}

/// Prints the number of a group, or its name if it is special.
pub(super) struct GroupName(pub(super) u32);

impl Display for GroupName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Group::ALL => f.write_str("ALL"),
            Group::ANY => f.write_str("ANY"),
            number => write!(f, "{number}"),
        }
    }
}

/// Prints the number of a meter, or its name if it is special.
pub(super) struct MeterName(pub(super) u32);

impl Display for MeterName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Meter::ALL => f.write_str("ALL"),
            Meter::CONTROLLER => f.write_str("CONTROLLER"),
            Meter::SLOWPATH => f.write_str("SLOWPATH"),
            number => write!(f, "{number}"),
        }
    }
}
