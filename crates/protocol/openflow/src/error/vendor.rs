//! Numbers that vendors give to errors for which a version has none.
//!
//! Open vSwitch reports many conditions that 1.0 has no error for, in a form of its own: a vendor
//! (Nicira), a type and a code. In 1.3 an error of an experimenter has its id and a type: of
//! Nicira, and of the ONF for errors of later versions. Both tables have the numbers of
//! Open vSwitch's `ofp-errors.h`; those of the ONF are also in its extensions of 1.3.

use super::ErrorCode;

/// Nicira, whose extensions Open vSwitch has.
const NX: u32 = 0x0000_2320;
/// The Open Networking Foundation.
const ONF: u32 = 0x4f4e_4600;

impl ErrorCode {
    /// Returns the error of a vendor in 1.0.
    pub(crate) fn from_vendor(vendor: u32, kind: u16, code: u16) -> ErrorCode {
        let find = || OF_NICIRA_1_0.iter().find(|row| (row.1, row.2) == (kind, code));
        let named = (vendor == NX).then(find).flatten();
        named.map_or(ErrorCode::UnknownOfVendor { vendor, kind, code }, |row| row.0)
    }

    /// Returns vendor, type and code in 1.0; `None` if no vendor has such an error.
    pub(crate) fn vendor_numbers(self) -> Option<(u32, u16, u16)> {
        if let ErrorCode::UnknownOfVendor { vendor, kind, code } = self {
            return Some((vendor, kind, code));
        }
        let (_, kind, code) = OF_NICIRA_1_0.iter().find(|row| row.0 == self)?;
        Some((NX, *kind, *code))
    }

    /// Returns the error of an experimenter in 1.3; `None` if it has no name.
    pub(crate) fn from_experimenter(experimenter: u32, kind: u16) -> Option<ErrorCode> {
        let mut rows = OF_EXPERIMENTERS_1_3.iter();
        rows.find(|row| (row.1, row.2) == (experimenter, kind)).map(|row| row.0)
    }

    /// Returns experimenter and type in 1.3; `None` if no experimenter has such an error.
    pub(crate) fn experimenter_numbers(self) -> Option<(u32, u16)> {
        let row = OF_EXPERIMENTERS_1_3.iter().find(|row| row.0 == self)?;
        Some((row.1, row.2))
    }
}

/// Errors of Nicira in 1.0, by type and code.
#[rustfmt::skip]
const OF_NICIRA_1_0: &[(ErrorCode, u16, u16)] = &[
    (ErrorCode::RequestBadTable, 1, 512),
    (ErrorCode::RequestBadPort, 1, 514),
    (ErrorCode::ActionBadOutGroup, 2, 9),
    (ErrorCode::ActionMatchInconsistent, 1, 522),
    (ErrorCode::ActionBadSetType, 1, 523),
    (ErrorCode::ActionBadSetLength, 1, 524),
    (ErrorCode::ActionBadSetArgument, 1, 525),
    (ErrorCode::InstructionUnsupported, 2, 257),
    (ErrorCode::MatchBadWildcards, 1, 262),
    (ErrorCode::MatchBadField, 0, 263),
    (ErrorCode::MatchBadValue, 1, 258),
    (ErrorCode::MatchBadMask, 1, 259),
    (ErrorCode::MatchBadPrerequisite, 1, 260),
    (ErrorCode::MatchDuplicateField, 1, 261),
    (ErrorCode::FlowModBadFlags, 3, 258),
    (ErrorCode::GroupModExists, 6, 0),
    (ErrorCode::GroupModInvalid, 6, 1),
    (ErrorCode::GroupModWeightUnsupported, 6, 2),
    (ErrorCode::GroupModOutOfGroups, 6, 3),
    (ErrorCode::GroupModOutOfBuckets, 6, 4),
    (ErrorCode::GroupModChainingUnsupported, 6, 5),
    (ErrorCode::GroupModWatchUnsupported, 6, 6),
    (ErrorCode::GroupModLoop, 6, 7),
    (ErrorCode::GroupModUnknownGroup, 6, 8),
    (ErrorCode::GroupModChained, 6, 9),
    (ErrorCode::GroupModBadType, 6, 10),
    (ErrorCode::GroupModBadCommand, 6, 11),
    (ErrorCode::GroupModBadBucket, 6, 12),
    (ErrorCode::GroupModBadWatch, 6, 13),
    (ErrorCode::GroupModPermission, 6, 14),
    (ErrorCode::RoleBadRole, 1, 513),
    (ErrorCode::TableFeaturesBadType, 13, 2),
    (ErrorCode::TableFeaturesBadLength, 13, 3),
    (ErrorCode::TableFeaturesBadArgument, 13, 4),
    (ErrorCode::RequestNxmInvalid, 1, 256),
    (ErrorCode::RequestNxmBadType, 1, 257),
    (ErrorCode::RequestMustBeZero, 1, 515),
    (ErrorCode::RequestBadReason, 1, 516),
    (ErrorCode::RequestBadMonitorEvent, 1, 520),
    (ErrorCode::RequestUnencodableError, 1, 521),
    (ErrorCode::ActionMustBeZero, 2, 256),
    (ErrorCode::ActionBadConjunction, 2, 526),
    (ErrorCode::ActionNoConnectionTracking, 1, 265),
    (ErrorCode::MatchNoConnectionTracking, 1, 264),
    (ErrorCode::FlowModHardware, 5, 256),
    (ErrorCode::FlowModNoSuchTable, 5, 257),
    (ErrorCode::FlowModInvalidTlvField, 1, 536),
    (ErrorCode::GroupModUnknownBucket, 6, 15),
    (ErrorCode::GroupModBucketExists, 6, 16),
    (ErrorCode::PropertyTooMany, 14, 3),
    (ErrorCode::PropertyDuplicateType, 14, 4),
    (ErrorCode::PropertyBadExperimenter, 14, 5),
    (ErrorCode::PropertyBadExperimenterType, 14, 6),
    (ErrorCode::PropertyBadExperimenterValue, 14, 7),
    (ErrorCode::PropertyPermission, 14, 8),
    (ErrorCode::MonitorExists, 1, 517),
    (ErrorCode::MonitorBadFlags, 1, 518),
    (ErrorCode::MonitorUnknown, 1, 519),
    (ErrorCode::TlvTableBadCommand, 1, 527),
    (ErrorCode::TlvTableBadOptionLength, 1, 528),
    (ErrorCode::TlvTableBadFieldIndex, 1, 529),
    (ErrorCode::TlvTableFull, 1, 530),
    (ErrorCode::TlvTableAlreadyMapped, 1, 531),
    (ErrorCode::TlvTableDuplicateEntry, 1, 532),
    (ErrorCode::TlvTableInvalidDeletion, 1, 537),
    (ErrorCode::ResumeUnsupported, 1, 533),
    (ErrorCode::ResumeStale, 1, 534),
    (ErrorCode::StatisticsNotConfigured, 1, 535),
];

/// Errors of experimenters in 1.3, by type.
#[rustfmt::skip]
const OF_EXPERIMENTERS_1_3: &[(ErrorCode, u32, u16)] = &[
    (ErrorCode::RequestNxmInvalid, NX, 2),
    (ErrorCode::RequestNxmBadType, NX, 3),
    (ErrorCode::RequestMustBeZero, NX, 4),
    (ErrorCode::RequestBadReason, NX, 5),
    (ErrorCode::RequestBadMonitorEvent, NX, 9),
    (ErrorCode::RequestUnencodableError, NX, 10),
    (ErrorCode::RequestMultipartRequestTimeout, ONF, 2_640),
    (ErrorCode::RequestMultipartReplyTimeout, ONF, 2_641),
    (ErrorCode::ActionMustBeZero, NX, 11),
    (ErrorCode::ActionBadConjunction, NX, 15),
    (ErrorCode::ActionBadHeaderType, NX, 39),
    (ErrorCode::ActionUnknownProperty, NX, 40),
    (ErrorCode::ActionBadProperty, NX, 41),
    (ErrorCode::ActionNoConnectionTracking, NX, 42),
    (ErrorCode::ActionBadSetMask, ONF, 4_250),
    (ErrorCode::InstructionDuplicate, ONF, 2_600),
    (ErrorCode::MatchNoConnectionTracking, NX, 43),
    (ErrorCode::FlowModHardware, NX, 12),
    (ErrorCode::FlowModNoSuchTable, NX, 13),
    (ErrorCode::FlowModInvalidTlvField, NX, 37),
    (ErrorCode::FlowModBadPriority, ONF, 2_360),
    (ErrorCode::TableFeaturesDuplicateTable, NX, 44),
    (ErrorCode::PropertyTooMany, ONF, 4_443),
    (ErrorCode::PropertyDuplicateType, ONF, 4_444),
    (ErrorCode::PropertyBadExperimenter, ONF, 4_445),
    (ErrorCode::PropertyBadExperimenterType, ONF, 4_446),
    (ErrorCode::PropertyBadExperimenterValue, ONF, 4_447),
    (ErrorCode::PropertyPermission, ONF, 4_448),
    (ErrorCode::AsyncConfigInvalid, ONF, 2_370),
    (ErrorCode::AsyncConfigUnsupported, ONF, 2_371),
    (ErrorCode::AsyncConfigPermission, ONF, 2_372),
    (ErrorCode::BundleUnknown, ONF, 2_300),
    (ErrorCode::BundlePermission, ONF, 2_301),
    (ErrorCode::BundleBadId, ONF, 2_302),
    (ErrorCode::BundleExists, ONF, 2_303),
    (ErrorCode::BundleClosed, ONF, 2_304),
    (ErrorCode::BundleOutOfBundles, ONF, 2_305),
    (ErrorCode::BundleBadType, ONF, 2_306),
    (ErrorCode::BundleBadFlags, ONF, 2_307),
    (ErrorCode::BundleMessageBadLength, ONF, 2_308),
    (ErrorCode::BundleMessageBadXid, ONF, 2_309),
    (ErrorCode::BundleMessageUnsupported, ONF, 2_310),
    (ErrorCode::BundleMessageConflict, ONF, 2_311),
    (ErrorCode::BundleTooManyMessages, ONF, 2_312),
    (ErrorCode::BundleMessageFailed, ONF, 2_313),
    (ErrorCode::BundleTimeout, ONF, 2_314),
    (ErrorCode::BundleInProgress, ONF, 2_315),
    (ErrorCode::MonitorExists, NX, 6),
    (ErrorCode::MonitorBadFlags, NX, 7),
    (ErrorCode::MonitorUnknown, NX, 8),
    (ErrorCode::TlvTableBadCommand, NX, 16),
    (ErrorCode::TlvTableBadOptionLength, NX, 17),
    (ErrorCode::TlvTableBadFieldIndex, NX, 18),
    (ErrorCode::TlvTableFull, NX, 19),
    (ErrorCode::TlvTableAlreadyMapped, NX, 20),
    (ErrorCode::TlvTableDuplicateEntry, NX, 21),
    (ErrorCode::TlvTableInvalidDeletion, NX, 38),
    (ErrorCode::ResumeUnsupported, NX, 34),
    (ErrorCode::ResumeStale, NX, 35),
    (ErrorCode::StatisticsNotConfigured, NX, 36),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn each_error_of_a_vendor_has_one_name_and_is_none_of_the_specification() {
        for &(error, kind, code) in OF_NICIRA_1_0 {
            assert_eq!(ErrorCode::from_vendor(NX, kind, code), error);
            assert_eq!(error.vendor_numbers(), Some((NX, kind, code)));
            assert!(error.name().is_some() && !error.exists_in(Version::V1_0), "{error}");
        }
        for &(error, experimenter, kind) in OF_EXPERIMENTERS_1_3 {
            assert_eq!(ErrorCode::from_experimenter(experimenter, kind), Some(error));
            assert_eq!(error.experimenter_numbers(), Some((experimenter, kind)));
            assert!(error.name().is_some() && !error.exists_in(Version::V1_3), "{error}");
        }
    }

    #[test]
    fn an_error_of_another_vendor_keeps_its_numbers() {
        let error = ErrorCode::from_vendor(0x1234, 1, 260);
        assert_eq!(error.to_string(), "type 1 code 260 of vendor 0x00001234");
        assert_eq!(error.vendor_numbers(), Some((0x1234, 1, 260)));
        assert_eq!(ErrorCode::from_experimenter(0x1234, 2600), None);
    }
}
