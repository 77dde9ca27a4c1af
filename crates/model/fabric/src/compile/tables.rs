//! The result: flows, groups and meters of a switch, by owner.

use std::collections::BTreeMap;
use std::fmt;

use bellrock_api::{Flow, FlowCommand, GroupEntry, Instruction, MeterEntry};

use super::{Owner, TableIds};
use crate::intent::AclId;

/// A rule of an ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId {
    /// The ACL, in the intent that was compiled.
    pub acl: AclId,
    /// The rule's position in it.
    pub position: u32,
}

/// A flow that was compiled. Its priority is the switch's own, with all 16 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledFlow {
    /// The flow. Its number is the lower half of the cookie.
    pub flow: Flow,
    /// Its whole cookie.
    pub cookie: u64,
    /// The rule that it comes from, if it comes from one.
    pub rule: Option<RuleId>,
}

/// All that one owner has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Flows.
    pub flows: Vec<CompiledFlow>,
    /// Groups.
    pub groups: Vec<GroupEntry>,
    /// Meters.
    pub meters: Vec<MeterEntry>,
}

impl Entries {
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.groups.is_empty() && self.meters.is_empty()
    }

    pub(super) fn push(&mut self, cookie: u64, flow: Flow) {
        let flow = flow.number(cookie as u32);
        self.flows.push(CompiledFlow { flow, cookie, rule: None });
    }
}

/// The tables of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    ids: TableIds,
    owners: BTreeMap<Owner, Entries>,
}

impl Tables {
    pub(super) fn new(ids: TableIds) -> Self {
        Tables { ids, owners: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, owner: Owner, entries: Entries) {
        match entries.is_empty() {
            true => self.owners.remove(&owner),
            false => self.owners.insert(owner, entries),
        };
    }

    /// The numbers of its tables.
    #[must_use]
    pub fn ids(&self) -> TableIds {
        self.ids
    }

    /// All owners that have something, in order, with what they have.
    pub fn owners(&self) -> impl Iterator<Item = (Owner, &Entries)> {
        self.owners.iter().map(|(owner, entries)| (*owner, entries))
    }

    /// What an owner has.
    #[must_use]
    pub fn owned_by(&self, owner: Owner) -> Option<&Entries> {
        self.owners.get(&owner)
    }

    /// All flows, with their owners.
    pub fn flows(&self) -> impl Iterator<Item = (Owner, &CompiledFlow)> {
        self.owners().flat_map(|(owner, it)| it.flows.iter().map(move |flow| (owner, flow)))
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = &GroupEntry> {
        self.owners.values().flat_map(|entries| &entries.groups)
    }

    /// All meters.
    pub fn meters(&self) -> impl Iterator<Item = &MeterEntry> {
        self.owners.values().flat_map(|entries| &entries.meters)
    }
}

/// A line for each meter, group and flow, by table and then from the highest priority down:
/// `eth_src 4096 vlan_vid=0x1064 -> output:CONTROLLER:96 eth_dst`.
impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for meter in self.meters() {
            write!(f, "meter {} {}", meter.id, meter.flags)?;
            for band in &meter.bands {
                write!(f, " {band}")?;
            }
            writeln!(f)?;
        }
        for group in self.groups() {
            write!(f, "group {} {}", group.id, group.kind)?;
            for bucket in &group.buckets {
                f.write_str(" [")?;
                for (position, action) in bucket.actions.iter().enumerate() {
                    write!(f, "{}{action}", if position == 0 { "" } else { " " })?;
                }
                f.write_str("]")?;
            }
            writeln!(f)?;
        }
        let mut flows: Vec<&Flow> = self.flows().map(|(_, it)| &it.flow).collect();
        flows.sort_by_key(|flow| (flow.table, std::cmp::Reverse(flow.priority)));
        for flow in flows {
            self.flow_line(flow, f)?;
        }
        Ok(())
    }
}

impl Tables {
    fn flow_line(&self, flow: &Flow, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |id: u8| self.ids.table(id).map_or("?", super::Table::name);
        write!(f, "{} {} {}", name(flow.table), flow.priority, flow.matching)?;
        for (what, seconds) in [("idle", flow.idle_timeout), ("hard", flow.hard_timeout)] {
            if seconds != 0 {
                write!(f, " {what}={seconds}")?;
            }
        }
        f.write_str(" ->")?;
        flow.with_flow_mod(FlowCommand::Add, |flow| {
            if flow.instructions.iter().next().is_none() {
                f.write_str(" drop")?;
            }
            for instruction in flow.instructions.iter() {
                match instruction {
                    Instruction::ApplyActions(actions) => {
                        actions.iter().try_for_each(|action| write!(f, " {action}"))?;
                    }
                    Instruction::WriteMetadata { metadata, mask } => {
                        write!(f, " metadata:{metadata:#x}/{mask:#x}")?;
                    }
                    Instruction::Meter(meter) => write!(f, " meter:{meter}")?,
                    Instruction::GotoTable(id) => write!(f, " {}", name(id))?,
                    other => write!(f, " {other}")?,
                }
            }
            Ok(())
        })?;
        writeln!(f)
    }
}
