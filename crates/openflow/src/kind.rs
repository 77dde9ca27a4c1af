//! Message types and multipart types: their numbers in each version.

use crate::Version;

/// Size of the lookup table. All numbers but "experimenter" are below it.
const DENSE: usize = 32;

/// One row per kind: variant, number in 1.0 and in 1.3, names in 1.0 and in 1.3.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident: $number:ty;
     $($(#[$row:meta])* $variant:ident $v10:expr, $v13:expr, $name10:literal, $name13:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[allow(missing_docs, reason = "the names are the specification's")]
        pub enum $name { $($(#[$row])* $variant,)* }

        impl $name {
            /// All kinds.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The inverse of [`Self::wire`] for the numbers below [`DENSE`].
            const BY_NUMBER: [[Option<$name>; DENSE]; Version::ALL.len()] = {
                let mut tables = [[None; DENSE]; Version::ALL.len()];
                let mut place = 0;
                while place < tables.len() {
                    tables[place] = Self::by_number(Version::ALL[place]);
                    place += 1;
                }
                tables
            };

            const fn by_number(version: Version) -> [Option<$name>; DENSE] {
                let mut table = [None; DENSE];
                let mut i = 0;
                while i < Self::ALL.len() {
                    if let Some(number) = Self::ALL[i].wire(version) {
                        if (number as usize) < DENSE {
                            table[number as usize] = Some(Self::ALL[i]);
                        }
                    }
                    i += 1;
                }
                table
            }

            /// Returns the kind of `number` in `version`. It is one table lookup, because every
            /// message received needs it.
            #[must_use]
            #[inline]
            pub const fn from_wire(version: Version, number: $number) -> Option<$name> {
                if (number as usize) < DENSE {
                    return Self::BY_NUMBER[version as usize][number as usize];
                }
                // Only the last kind may have a number beyond the table.
                let last = Self::ALL[Self::ALL.len() - 1];
                match last.wire(version) {
                    Some(n) if n == number => Some(last),
                    _ => None,
                }
            }

            /// Returns its number in `version`; `None` if the version does not have it.
            #[must_use]
            #[inline]
            pub const fn wire(self, version: Version) -> Option<$number> {
                match (self, version) {
                    $(($name::$variant, Version::V1_0) => $v10,
                      ($name::$variant, Version::V1_3) => $v13,)*
                }
            }

            /// Returns its name in the specification of `version`.
            #[must_use]
            pub const fn name(self, version: Version) -> &'static str {
                match (self, version) {
                    $(($name::$variant, Version::V1_0) => $name10,
                      ($name::$variant, Version::V1_3) => $name13,)*
                }
            }
        }
    };
}

kinds! {
    /// Type of a message (`ofp_type`; 1.0 §5.1, 1.3.5 §7.1).
    MessageKind: u8;
    Hello Some(0), Some(0), "OFPT_HELLO", "OFPT_HELLO";
    Error Some(1), Some(1), "OFPT_ERROR", "OFPT_ERROR";
    EchoRequest Some(2), Some(2), "OFPT_ECHO_REQUEST", "OFPT_ECHO_REQUEST";
    EchoReply Some(3), Some(3), "OFPT_ECHO_REPLY", "OFPT_ECHO_REPLY";
    Experimenter Some(4), Some(4), "OFPT_VENDOR", "OFPT_EXPERIMENTER";
    FeaturesRequest Some(5), Some(5), "OFPT_FEATURES_REQUEST", "OFPT_FEATURES_REQUEST";
    FeaturesReply Some(6), Some(6), "OFPT_FEATURES_REPLY", "OFPT_FEATURES_REPLY";
    GetConfigRequest Some(7), Some(7), "OFPT_GET_CONFIG_REQUEST", "OFPT_GET_CONFIG_REQUEST";
    GetConfigReply Some(8), Some(8), "OFPT_GET_CONFIG_REPLY", "OFPT_GET_CONFIG_REPLY";
    SetConfig Some(9), Some(9), "OFPT_SET_CONFIG", "OFPT_SET_CONFIG";
    PacketIn Some(10), Some(10), "OFPT_PACKET_IN", "OFPT_PACKET_IN";
    FlowRemoved Some(11), Some(11), "OFPT_FLOW_REMOVED", "OFPT_FLOW_REMOVED";
    PortStatus Some(12), Some(12), "OFPT_PORT_STATUS", "OFPT_PORT_STATUS";
    PacketOut Some(13), Some(13), "OFPT_PACKET_OUT", "OFPT_PACKET_OUT";
    FlowMod Some(14), Some(14), "OFPT_FLOW_MOD", "OFPT_FLOW_MOD";
    GroupMod None, Some(15), "OFPT_GROUP_MOD", "OFPT_GROUP_MOD";
    PortMod Some(15), Some(16), "OFPT_PORT_MOD", "OFPT_PORT_MOD";
    TableMod None, Some(17), "OFPT_TABLE_MOD", "OFPT_TABLE_MOD";
    MultipartRequest Some(16), Some(18), "OFPT_STATS_REQUEST", "OFPT_MULTIPART_REQUEST";
    MultipartReply Some(17), Some(19), "OFPT_STATS_REPLY", "OFPT_MULTIPART_REPLY";
    BarrierRequest Some(18), Some(20), "OFPT_BARRIER_REQUEST", "OFPT_BARRIER_REQUEST";
    BarrierReply Some(19), Some(21), "OFPT_BARRIER_REPLY", "OFPT_BARRIER_REPLY";
    QueueGetConfigRequest Some(20), Some(22),
        "OFPT_QUEUE_GET_CONFIG_REQUEST", "OFPT_QUEUE_GET_CONFIG_REQUEST";
    QueueGetConfigReply Some(21), Some(23),
        "OFPT_QUEUE_GET_CONFIG_REPLY", "OFPT_QUEUE_GET_CONFIG_REPLY";
    RoleRequest None, Some(24), "OFPT_ROLE_REQUEST", "OFPT_ROLE_REQUEST";
    RoleReply None, Some(25), "OFPT_ROLE_REPLY", "OFPT_ROLE_REPLY";
    GetAsyncRequest None, Some(26), "OFPT_GET_ASYNC_REQUEST", "OFPT_GET_ASYNC_REQUEST";
    GetAsyncReply None, Some(27), "OFPT_GET_ASYNC_REPLY", "OFPT_GET_ASYNC_REPLY";
    SetAsync None, Some(28), "OFPT_SET_ASYNC", "OFPT_SET_ASYNC";
    MeterMod None, Some(29), "OFPT_METER_MOD", "OFPT_METER_MOD";
}

kinds! {
    /// Type of a multipart (1.0: stats) request (`ofp_stats_types`, 1.0 §5.3.5;
    /// `ofp_multipart_type`, 1.3.5 §7.3.5).
    MultipartKind: u16;
    Desc Some(0), Some(0), "OFPST_DESC", "OFPMP_DESC";
    Flow Some(1), Some(1), "OFPST_FLOW", "OFPMP_FLOW";
    Aggregate Some(2), Some(2), "OFPST_AGGREGATE", "OFPMP_AGGREGATE";
    Table Some(3), Some(3), "OFPST_TABLE", "OFPMP_TABLE";
    PortStats Some(4), Some(4), "OFPST_PORT", "OFPMP_PORT_STATS";
    Queue Some(5), Some(5), "OFPST_QUEUE", "OFPMP_QUEUE";
    Group None, Some(6), "OFPST_GROUP", "OFPMP_GROUP";
    GroupDesc None, Some(7), "OFPST_GROUP_DESC", "OFPMP_GROUP_DESC";
    GroupFeatures None, Some(8), "OFPST_GROUP_FEATURES", "OFPMP_GROUP_FEATURES";
    Meter None, Some(9), "OFPST_METER", "OFPMP_METER";
    MeterConfig None, Some(10), "OFPST_METER_CONFIG", "OFPMP_METER_CONFIG";
    MeterFeatures None, Some(11), "OFPST_METER_FEATURES", "OFPMP_METER_FEATURES";
    TableFeatures None, Some(12), "OFPST_TABLE_FEATURES", "OFPMP_TABLE_FEATURES";
    /// Not in 1.0. Open vSwitch answers it there anyway, with ports of 1.0.
    PortDesc Some(13), Some(13), "OFPST_PORT_DESC", "OFPMP_PORT_DESC";
    Experimenter Some(0xffff), Some(0xffff), "OFPST_VENDOR", "OFPMP_EXPERIMENTER";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_are_one_to_one() {
        for version in Version::ALL {
            for kind in MessageKind::ALL {
                if let Some(number) = kind.wire(version) {
                    assert_eq!(MessageKind::from_wire(version, number), Some(*kind));
                }
            }
            for kind in MultipartKind::ALL {
                if let Some(number) = kind.wire(version) {
                    assert_eq!(MultipartKind::from_wire(version, number), Some(*kind));
                }
            }
        }
        assert_eq!(MessageKind::from_wire(Version::V1_0, 22), None);
        assert_eq!(MessageKind::from_wire(Version::V1_3, 30), None);
        assert_eq!(MessageKind::from_wire(Version::V1_3, 255), None);
        assert_eq!(MultipartKind::from_wire(Version::V1_3, 14), None);
        assert_eq!(MultipartKind::from_wire(Version::V1_0, 0xfffe), None);
    }
}
