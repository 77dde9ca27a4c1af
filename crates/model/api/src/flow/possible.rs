//! Which instructions and buckets are possible: what every switch of a version has to refuse is
//! found before it is sent (1.3.5 §5.6.1, §5.9, §7.2.4, §7.2.5).

use bellrock_openflow::{
    Action, ErrorCode, Group, GroupType, ImpossibleAction, KnownHeaders, Match, Meter, Port,
    Version,
};

use super::reported::rank;
use super::{BucketEntry, GroupEntry, InstructionPart};

/// The number that stands for all tables (`OFPTT_ALL`), so that no table has it.
pub const ALL_TABLES: u8 = 0xff;

/// An instruction that no switch can carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ImpossibleInstruction {
    /// Index of the part of the text, or of the action of the bucket.
    pub part: usize,
    /// What is wrong, and what would be possible.
    pub why: ImpossibleReason,
}

/// Why no switch can carry out an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpossibleReason {
    /// An action is impossible.
    #[error(transparent)]
    Action(#[from] ImpossibleAction),
    /// No packet of a flow can be sent to this port.
    #[error(
        "a flow cannot output to {0}; give a port of the switch, or one such as FLOOD or CONTROLLER"
    )]
    Port(Port),
    /// No group has this number.
    #[error("{0} is not a number of a group; give at most {max:#x}", max = Group::MAX)]
    Group(u32),
    /// The group would process its own packets without end.
    #[error("the group {0} would send packets to itself; give another group")]
    OwnGroup(u32),
    /// No meter has this number.
    #[error("{0} is not a number of a meter; give 1 to {max:#x}", max = Meter::MAX)]
    Meter(u32),
    /// The table is not behind that of the flow.
    #[error("packets go on in later tables only; give goto_table:{first} to goto_table:{last}", first = .table + 1, last = ALL_TABLES - 1)]
    Table {
        /// The table of the flow.
        table: u8,
    },
    /// No table is behind that of the flow.
    #[error("no table is behind table {0}; leave out goto_table")]
    LastTable(u8),
}

/// Checks what a flow with this match in this table is to do with packets. `version`: that of its
/// switch. Without it, only what is impossible in every version is an error.
///
/// # Errors
/// The first part that is impossible.
pub fn check_instructions(
    parts: &[InstructionPart],
    (matching, table): (&Match, u8),
    version: Option<Version>,
) -> Result<(), ImpossibleInstruction> {
    let of_match = KnownHeaders::of(matching);
    let applied =
        || parts.iter().enumerate().filter_map(|(index, part)| Some((index, part.applied()?)));
    let mut known = of_match;
    for (part, action) in applied() {
        let check = check_action(&action).and_then(|()| check_fit(&known, &action, version));
        check.map_err(|why| ImpossibleInstruction { part, why })?;
        known.apply(&action);
    }
    for (part, instruction) in parts.iter().enumerate() {
        let check = match instruction {
            InstructionPart::Apply(_)
            | InstructionPart::Experimenter { .. }
            | InstructionPart::Metadata(_) => Ok(()),
            InstructionPart::Write(actions) => check_set(actions, &[known, of_match], version),
            InstructionPart::Meter(meter) => match (1..=Meter::MAX).contains(meter) {
                true => Ok(()),
                false => Err(ImpossibleReason::Meter(*meter)),
            },
            InstructionPart::GotoTable(_) if table >= ALL_TABLES - 1 => {
                Err(ImpossibleReason::LastTable(table))
            }
            InstructionPart::GotoTable(next) => match *next > table && *next < ALL_TABLES {
                true => Ok(()),
                false => Err(ImpossibleReason::Table { table }),
            },
        };
        check.map_err(|why| ImpossibleInstruction { part, why })?;
    }
    Ok(())
}

/// Checks the actions of a bucket of this group. Buckets have no match, so whether an action fits
/// the packets is not known.
///
/// # Errors
/// The first action that is impossible.
pub fn check_bucket(group: u32, bucket: &BucketEntry) -> Result<(), ImpossibleInstruction> {
    for (part, action) in bucket.actions.iter().enumerate() {
        let other_group = match action {
            Action::Group(number) if *number == group => Err(ImpossibleReason::OwnGroup(group)),
            _ => Ok(()),
        };
        check_action(action).and(other_group).map_err(|why| ImpossibleInstruction { part, why })?;
    }
    Ok(())
}

/// Buckets that the type of their group does not allow (1.3.5 §5.6.1, §7.3.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpossibleBuckets {
    /// An indirect group has one bucket.
    #[error("an indirect group has one bucket, and this one has {0}; give one, or another type")]
    Indirect(usize),
    /// Without a port or a group to watch, a bucket of a fast failover group is never live.
    #[error(
        "a bucket of a fast failover group is live as its port or group is; give watch_port or watch_group"
    )]
    Unwatched {
        /// Index of the bucket.
        bucket: usize,
    },
    /// The bucket watches its own group.
    #[error("the group would watch itself; give another group, or a watch_port")]
    WatchesItself {
        /// Index of the bucket.
        bucket: usize,
    },
    /// Only the buckets of a group that selects have weights.
    #[error("only buckets of a group of the type select have a weight; leave it out")]
    Weight {
        /// Index of the bucket.
        bucket: usize,
    },
}

impl GroupEntry {
    /// Checks the buckets against the type of the group.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_buckets(&self) -> Result<(), ImpossibleBuckets> {
        if self.kind == GroupType::Indirect && self.buckets.len() != 1 {
            return Err(ImpossibleBuckets::Indirect(self.buckets.len()));
        }
        for (index, bucket) in self.buckets.iter().enumerate() {
            let is_watching = bucket.watch_port != Port::ANY || bucket.watch_group != Group::ANY;
            if self.kind == GroupType::FastFailover && !is_watching {
                return Err(ImpossibleBuckets::Unwatched { bucket: index });
            }
            if bucket.watch_group == self.id {
                return Err(ImpossibleBuckets::WatchesItself { bucket: index });
            }
            if self.kind != GroupType::Select && bucket.weight != 0 {
                return Err(ImpossibleBuckets::Weight { bucket: index });
            }
        }
        Ok(())
    }
}

/// Checks an action by itself.
fn check_action(action: &Action<'_>) -> Result<(), ImpossibleReason> {
    action.check()?;
    match *action {
        Action::Output { port, .. } | Action::Enqueue { port, .. }
            if matches!(port, Port::TABLE | Port::ANY) =>
        {
            Err(ImpossibleReason::Port(port))
        }
        Action::Group(group) if group > Group::MAX => Err(ImpossibleReason::Group(group)),
        _ => Ok(()),
    }
}

/// Checks that an action fits the packets, if a switch of this version refuses one that does not.
/// Where the version is unknown, an action that 1.0 has too may be one that the switch takes.
fn check_fit(
    known: &KnownHeaders,
    action: &Action<'_>,
    version: Option<Version>,
) -> Result<(), ImpossibleReason> {
    let is_refused = match version {
        Some(version) => ErrorCode::ActionMatchInconsistent.exists_in(version),
        None => !matches!(action, Action::SetField(..) | Action::PopVlan),
    };
    if is_refused {
        known.check(action)?;
    }
    Ok(())
}

/// Checks the actions of an action set. They run in the order of the set, on packets of which one
/// of `known` holds: a switch may count the applied actions in or not.
fn check_set(
    actions: &[Action<'_>],
    known: &[KnownHeaders],
    version: Option<Version>,
) -> Result<(), ImpossibleReason> {
    actions.iter().try_for_each(check_action)?;
    let mut in_order: Vec<&Action<'_>> = actions.iter().collect();
    in_order.sort_by_key(|action| rank(action).0);
    let check = |known: &KnownHeaders| {
        let mut known = *known;
        in_order.iter().try_for_each(|action| {
            check_fit(&known, action, version)?;
            known.apply(action);
            Ok(())
        })
    };
    let mut results = known.iter().map(check);
    let first = results.next().unwrap_or(Ok(()));
    if first.is_ok() || results.any(|result| result.is_ok()) { Ok(()) } else { first }
}

#[cfg(test)]
mod tests {
    use super::super::parse_instructions;
    use super::*;
    use crate::{Flow, parse_actions};

    const V13: Option<Version> = Some(Version::V1_3);

    fn wrong(matching: &str, text: &str, version: Option<Version>) -> Option<(usize, String)> {
        let parts = parse_instructions(text).unwrap();
        let matching: Match = matching.parse().unwrap();
        let error = check_instructions(&parts, (&matching, 2), version).err()?;
        Some((error.part, error.to_string()))
    }

    #[test]
    fn the_impossible_part_is_named() {
        for (matching, text, part, why) in [
            ("any", "output:1,push_vlan:5", 1, "give 0x8100"),
            ("any", "output:1,goto_table:2", 1, "give goto_table:3 to goto_table:254"),
            ("any", "goto_table:255", 0, "later tables only"),
            ("any", "meter:0,output:1", 0, "give 1 to 0xffff0000"),
            ("any", "output:TABLE", 0, "cannot output to TABLE"),
            ("any", "group:0xffffff01", 0, "not a number of a group"),
            ("any", "output:1,dec_nw_ttl", 1, "add eth_type=0x0800"),
            ("any", "meter:1,set_field:10.0.0.7->ipv4_dst", 1, "add eth_type=0x0800"),
            ("any", "write_actions(output:1,dec_nw_ttl)", 0, "add eth_type=0x0800"),
            ("any", "output:1,write_actions(push_vlan:5)", 1, "give 0x8100"),
        ] {
            let (at, text) = wrong(matching, text, V13).unwrap_or_else(|| panic!("{text}"));
            assert!(at == part && text.contains(why), "{at} {text}");
        }
    }

    #[test]
    fn valid_flows_are_possible() {
        for (matching, text) in [
            ("any", "output:1,push_vlan:0x8100,set_field:0x1005->vlan_vid,output:2,goto_table:3"),
            // An action set has an order of its own.
            ("any", "write_actions(set_field:0x1005->vlan_vid,push_vlan:0x8100,output:1)"),
            ("any", "push_vlan:0x8100,write_actions(pop_vlan,output:1)"),
            ("vlan_vid=0x1005", "pop_vlan,write_actions(set_field:0x1006->vlan_vid)"),
            ("eth_type=0x86dd", "dec_nw_ttl,output:FLOOD"),
            ("any", "output:4294967040,meter:0xffff0000"),
            // Only the program knows what it does.
            ("any", "experimenter(0x2320,000efff807000000),pop_vlan,dec_nw_ttl,output:1"),
        ] {
            assert_eq!(wrong(matching, text, V13), None, "{matching} {text}");
        }
    }

    #[test]
    fn checks_of_one_version_are_skipped_for_a_switch_of_unknown_version() {
        let set = "set_field:10.0.0.7->ipv4_dst,output:1";
        assert!(wrong("any", set, V13).is_some());
        assert_eq!(wrong("any", set, Some(Version::V1_0)), None);
        assert_eq!(wrong("any", set, None), None);
        assert!(wrong("any", "dec_nw_ttl,output:1", None).is_some(), "1.0 does not have it");
    }

    #[test]
    fn buckets_fit_the_type_of_their_group() {
        let bucket = |text: &str| BucketEntry::of(&parse_actions(text).unwrap());
        let group = |kind| GroupEntry::new(7, kind);
        let check = |group: GroupEntry| group.check_buckets().map_err(|error| error.to_string());
        for wrong in [
            group(GroupType::Indirect),
            group(GroupType::Indirect).bucket(bucket("output:1")).bucket(bucket("output:2")),
            group(GroupType::FastFailover).bucket(bucket("output:1")),
            group(GroupType::FastFailover)
                .bucket(BucketEntry { watch_group: 7, ..bucket("output:1") }),
            group(GroupType::All).bucket(bucket("output:1").weight(1)),
        ] {
            assert!(check(wrong.clone()).is_err(), "{wrong:?}");
        }
        for right in [
            group(GroupType::Indirect).bucket(bucket("output:1")),
            group(GroupType::All),
            group(GroupType::FastFailover)
                .bucket(BucketEntry { watch_port: Port(1), ..bucket("output:1") }),
            group(GroupType::Select).bucket(bucket("output:1").weight(1)),
        ] {
            assert_eq!(check(right), Ok(()));
        }
        let own = check_bucket(7, &bucket("output:1,group:7")).unwrap_err();
        assert_eq!((own.part, own.why), (1, ImpossibleReason::OwnGroup(7)));
        assert!(check_bucket(7, &bucket("push_vlan:1")).is_err());
        assert_eq!(check_bucket(7, &bucket("group:8,dec_nw_ttl")), Ok(()));
    }

    #[test]
    fn parts_are_what_the_flow_does() {
        let text = "meter:3,dec_nw_ttl,write_actions(output:2),goto_table:3";
        let parts = parse_instructions(text).unwrap();
        let flow = Flow::new(Match::any());
        assert_eq!(flow.clone().with_parts(&parts), flow.instructions(text).unwrap());
    }
}
