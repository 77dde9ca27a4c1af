//! Why an intent cannot be compiled for a switch.

use std::fmt;

use crate::Place;
use crate::intent::{SwitchId, Unsupported};

/// A reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file has keys whose effect is not built yet.
    #[error("{0}")]
    Unsupported(Unsupported),
    /// The intent has no such switch.
    #[error("the file has no switch number {}", .0.0)]
    NoSwitch(SwitchId),
    /// The switch has too few tables.
    #[error("{place}: the switch has {has} tables, but needs {needed}; leave out ACLs or egress")]
    TooFewTables {
        /// The switch.
        place: Place,
        /// Number of its tables.
        has: u8,
        /// Number of tables that the file needs.
        needed: u8,
    },
    /// The switch has no groups.
    #[error("{0}: the switch has no groups; leave out `group_table` and `failover`")]
    NoGroups(Place),
    /// The switch has no meters.
    #[error("{0}: the switch has no meters; leave out `meter`")]
    NoMeters(Place),
    /// Two `failover` have the same group, but not the same ports; or it is a flood's.
    #[error("{place}: group {group} has another use with other ports; give another `group_id`")]
    GroupTwice {
        /// The later use.
        place: Place,
        /// The group.
        group: u32,
    },
    /// Two meters that rules of the switch use have one number.
    #[error("{place}: another meter has `meter_id` {number} too; give another one")]
    MeterTwice {
        /// The later one.
        place: Place,
        /// The number.
        number: u32,
    },
    /// The metadata has no room for the number of a port.
    #[error("{place}: with `egress_pipeline` or `acls_out`, a port's number is at most {most}")]
    PortTooHigh {
        /// The port.
        place: Place,
        /// The maximum.
        most: u32,
    },
    /// The priorities do not suffice for the rules.
    #[error("{place}: at most {most} rules can be used together; here are {rules}")]
    TooManyRules {
        /// The first use of an ACL.
        place: Place,
        /// Number of rules.
        rules: usize,
        /// The maximum.
        most: usize,
    },
}

/// All reasons why an intent cannot be compiled for a switch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused(pub Vec<Refusal>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, refusal) in self.0.iter().enumerate() {
            write!(f, "{}{refusal}", if position == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused(vec![refusal])
    }
}
