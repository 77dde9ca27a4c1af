//! Message types and multipart types: their numbers in each version.

use crate::Version;

/// One row per kind: variant, and its number and name from or until a minor version: `3..` is "from
/// 1.3", `0..=3` "until 1.3".
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident: $number:ty;
     $($(#[$row:meta])* $variant:ident { $($minors:pat => $value:literal, $label:literal);+ })*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[allow(missing_docs, reason = "the names are the specification's")]
        pub enum $name { $($(#[$row])* $variant,)* }

        #[allow(unreachable_patterns, reason = "most rows are of all versions")]
        impl $name {
            /// All kinds.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Returns its number in `version`; `None` if the version does not have it.
            #[must_use]
            #[inline]
            pub const fn wire(self, version: Version) -> Option<$number> {
                match self {
                    $($name::$variant => match version.minor() {
                        $($minors => Some($value),)+
                        _ => None,
                    },)*
                }
            }

            /// Returns its name in the specification of `version`, or in the first that has it.
            #[must_use]
            pub const fn name(self, version: Version) -> &'static str {
                match self {
                    $($name::$variant => match version.minor() {
                        $($minors => $label,)+
                        _ => const { [$($label),+][0] },
                    },)*
                }
            }
        }
    };
}

kinds! {
    /// Type of a message (`ofp_type`; 1.0 §5.1, 1.3.5 §7.1).
    MessageKind: u8;
    Hello { 0.. => 0, "OFPT_HELLO" }
    Error { 0.. => 1, "OFPT_ERROR" }
    EchoRequest { 0.. => 2, "OFPT_ECHO_REQUEST" }
    EchoReply { 0.. => 3, "OFPT_ECHO_REPLY" }
    Experimenter { 0 => 4, "OFPT_VENDOR"; 1.. => 4, "OFPT_EXPERIMENTER" }
    FeaturesRequest { 0.. => 5, "OFPT_FEATURES_REQUEST" }
    FeaturesReply { 0.. => 6, "OFPT_FEATURES_REPLY" }
    GetConfigRequest { 0.. => 7, "OFPT_GET_CONFIG_REQUEST" }
    GetConfigReply { 0.. => 8, "OFPT_GET_CONFIG_REPLY" }
    SetConfig { 0.. => 9, "OFPT_SET_CONFIG" }
    PacketIn { 0.. => 10, "OFPT_PACKET_IN" }
    FlowRemoved { 0.. => 11, "OFPT_FLOW_REMOVED" }
    PortStatus { 0.. => 12, "OFPT_PORT_STATUS" }
    PacketOut { 0.. => 13, "OFPT_PACKET_OUT" }
    FlowMod { 0.. => 14, "OFPT_FLOW_MOD" }
    GroupMod { 1.. => 15, "OFPT_GROUP_MOD" }
    PortMod { 0 => 15, "OFPT_PORT_MOD"; 1.. => 16, "OFPT_PORT_MOD" }
    TableMod { 1.. => 17, "OFPT_TABLE_MOD" }
    MultipartRequest { 0 => 16, "OFPT_STATS_REQUEST"; 1.. => 18, "OFPT_MULTIPART_REQUEST" }
    MultipartReply { 0 => 17, "OFPT_STATS_REPLY"; 1.. => 19, "OFPT_MULTIPART_REPLY" }
    BarrierRequest { 0 => 18, "OFPT_BARRIER_REQUEST"; 1.. => 20, "OFPT_BARRIER_REQUEST" }
    BarrierReply { 0 => 19, "OFPT_BARRIER_REPLY"; 1.. => 21, "OFPT_BARRIER_REPLY" }
    QueueGetConfigRequest { 0 => 20, "OFPT_QUEUE_GET_CONFIG_REQUEST"; 1..=3 => 22, "OFPT_QUEUE_GET_CONFIG_REQUEST" }
    QueueGetConfigReply { 0 => 21, "OFPT_QUEUE_GET_CONFIG_REPLY"; 1..=3 => 23, "OFPT_QUEUE_GET_CONFIG_REPLY" }
    RoleRequest { 2.. => 24, "OFPT_ROLE_REQUEST" }
    RoleReply { 2.. => 25, "OFPT_ROLE_REPLY" }
    GetAsyncRequest { 3.. => 26, "OFPT_GET_ASYNC_REQUEST" }
    GetAsyncReply { 3.. => 27, "OFPT_GET_ASYNC_REPLY" }
    SetAsync { 3.. => 28, "OFPT_SET_ASYNC" }
    MeterMod { 3.. => 29, "OFPT_METER_MOD" }
}

kinds! {
    /// Type of a multipart (1.0: stats) request (`ofp_stats_types`, 1.0 §5.3.5;
    /// `ofp_multipart_type`, 1.3.5 §7.3.5).
    MultipartKind: u16;
    Desc { 0 => 0, "OFPST_DESC"; 1.. => 0, "OFPMP_DESC" }
    Flow { 0 => 1, "OFPST_FLOW"; 1.. => 1, "OFPMP_FLOW" }
    Aggregate { 0 => 2, "OFPST_AGGREGATE"; 1.. => 2, "OFPMP_AGGREGATE" }
    Table { 0 => 3, "OFPST_TABLE"; 1.. => 3, "OFPMP_TABLE" }
    PortStats { 0 => 4, "OFPST_PORT"; 1.. => 4, "OFPMP_PORT_STATS" }
    Queue { 0 => 5, "OFPST_QUEUE"; 1.. => 5, "OFPMP_QUEUE" }
    Group { 1.. => 6, "OFPMP_GROUP" }
    GroupDesc { 1.. => 7, "OFPMP_GROUP_DESC" }
    GroupFeatures { 2.. => 8, "OFPMP_GROUP_FEATURES" }
    Meter { 3.. => 9, "OFPMP_METER" }
    MeterConfig { 3.. => 10, "OFPMP_METER_CONFIG" }
    MeterFeatures { 3.. => 11, "OFPMP_METER_FEATURES" }
    TableFeatures { 3.. => 12, "OFPMP_TABLE_FEATURES" }
    /// Not in 1.0. Open vSwitch answers it there anyway, with ports of 1.0.
    PortDesc { 0 => 13, "OFPST_PORT_DESC"; 1.. => 13, "OFPMP_PORT_DESC" }
    Experimenter { 0 => 0xffff, "OFPST_VENDOR"; 1.. => 0xffff, "OFPMP_EXPERIMENTER" }
}

impl MessageKind {
    /// The inverse of [`Self::wire`].
    const BY_NUMBER: [[Option<MessageKind>; 1 << u8::BITS]; Version::ALL.len()] = {
        let mut tables = [[None; 1 << u8::BITS]; Version::ALL.len()];
        let mut place = 0;
        while place < tables.len() {
            let mut i = 0;
            while i < Self::ALL.len() {
                if let Some(number) = Self::ALL[i].wire(Version::ALL[place]) {
                    tables[place][number as usize] = Some(Self::ALL[i]);
                }
                i += 1;
            }
            place += 1;
        }
        tables
    };

    /// Returns the kind of `number` in `version`. It is one table lookup, because every message
    /// received needs it.
    #[must_use]
    #[inline]
    pub const fn from_wire(version: Version, number: u8) -> Option<MessageKind> {
        Self::BY_NUMBER[version as usize][number as usize]
    }
}

impl MultipartKind {
    /// Returns the kind of `number` in `version`.
    #[must_use]
    pub fn from_wire(version: Version, number: u16) -> Option<MultipartKind> {
        Self::ALL.iter().copied().find(|kind| kind.wire(version) == Some(number))
    }
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
