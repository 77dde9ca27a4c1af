//! Errors in messages, and the OpenFlow errors that answer them.

mod vendor;

use std::fmt;

use crate::{Prerequisite, Version};

/// Why bytes are not a message: the field, its offset, the fault, and the error to answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}: {reason}")]
pub struct DecodeError {
    /// The field or structure that could not be read.
    pub what: &'static str,
    /// Offset of its first byte in the message.
    pub offset: usize,
    /// The fault.
    pub reason: Reason,
    /// The OpenFlow error that the specification names for this fault.
    pub answer: ErrorCode,
}

/// Fault of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Fewer bytes than the structure needs (both in bytes).
    Truncated {
        /// Bytes that the structure needs.
        need: usize,
        /// Bytes that are left.
        have: usize,
    },
    /// An invalid length field: shorter than its header, longer than the enclosing structure, or
    /// not a multiple of the required number.
    Length(usize),
    /// Bytes left over after the last structure.
    Trailing(usize),
    /// A value that the specification does not allow here.
    Value(u64),
    /// A message type that this end does not receive in this version.
    Unexpected(u8),
    /// A protocol version that is not supported here.
    Version(u8),
    /// A match field that occurs twice.
    Duplicate,
    /// A match field without the fields that it depends on.
    Prerequisite,
    /// A mask on a field that allows none, or a value with bits outside its mask.
    Mask,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::Truncated { need, have } => write!(f, "needs {need} bytes, has {have}"),
            Reason::Length(n) => write!(f, "length {n} is not possible here"),
            Reason::Trailing(n) => write!(f, "{n} bytes left over"),
            Reason::Value(v) => write!(f, "value {v} ({v:#x}) is not allowed"),
            Reason::Unexpected(t) => write!(f, "message type {t} is not received by this end"),
            Reason::Version(v) => write!(f, "version {v:#04x} is not spoken (1.0 and 1.3 are)"),
            Reason::Duplicate => f.write_str("the same field twice"),
            Reason::Prerequisite => f.write_str("a field that it depends on is missing"),
            Reason::Mask => f.write_str("mask not allowed, or value outside of its mask"),
        }
    }
}

/// Why a message could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer has not enough space. Nothing of the message was written.
    #[error("the send buffer is full")]
    Full,
    /// The version cannot express this.
    #[error("OpenFlow {version} cannot express {what}")]
    Unsupported {
        /// The thing that it cannot express.
        what: &'static str,
        /// The version.
        version: Version,
    },
    /// The message, or a list in it, is too long for its 16-bit length field.
    #[error("{what} is longer than 65,535 bytes")]
    TooLong {
        /// The structure that is too long.
        what: &'static str,
    },
    /// A match field without the fields that it depends on.
    #[error("{0}")]
    Prerequisite(Prerequisite),
    /// A value that does not fit its field.
    #[error("{what} is out of range")]
    Range {
        /// The field.
        what: &'static str,
    },
}

/// One row per error: variant, name in the specification, (type, code) in 1.0 and in 1.3.
macro_rules! errors {
    ($($variant:ident $name:literal $v10:expr, $v13:expr;)*) => {
        /// An OpenFlow error, by its meaning (1.0 §5.4.4; 1.3.5 §7.4.4).
        ///
        /// Its numbers differ between versions; [`ErrorCode::wire`] and [`ErrorCode::from_wire`]
        /// translate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is named as in the specification, see `name`")]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($variant,)*
            /// A type and code that the version does not name.
            Unknown { kind: u16, code: u16 },
            /// A type and code of a vendor without a name, in 1.0.
            UnknownOfVendor { vendor: u32, kind: u16, code: u16 },
        }

        type Row = (ErrorCode, &'static str, Option<(u16, u16)>, Option<(u16, u16)>);

        const TABLE: &[Row] = &[$((ErrorCode::$variant, $name, $v10, $v13),)*];
    };
}

const fn at(kind: u16, code: u16) -> Option<(u16, u16)> {
    Some((kind, code))
}
const NONE: Option<(u16, u16)> = None;

errors! {
    HelloIncompatible "OFPHFC_INCOMPATIBLE" at(0, 0), at(0, 0);
    HelloPermission "OFPHFC_EPERM" at(0, 1), at(0, 1);

    RequestBadVersion "OFPBRC_BAD_VERSION" at(1, 0), at(1, 0);
    RequestBadType "OFPBRC_BAD_TYPE" at(1, 1), at(1, 1);
    RequestBadMultipart "OFPBRC_BAD_MULTIPART" at(1, 2), at(1, 2);
    RequestBadExperimenter "OFPBRC_BAD_EXPERIMENTER" at(1, 3), at(1, 3);
    RequestBadExperimenterType "OFPBRC_BAD_EXP_TYPE" at(1, 4), at(1, 4);
    RequestPermission "OFPBRC_EPERM" at(1, 5), at(1, 5);
    RequestBadLength "OFPBRC_BAD_LEN" at(1, 6), at(1, 6);
    RequestBufferEmpty "OFPBRC_BUFFER_EMPTY" at(1, 7), at(1, 7);
    RequestBufferUnknown "OFPBRC_BUFFER_UNKNOWN" at(1, 8), at(1, 8);
    RequestBadTable "OFPBRC_BAD_TABLE_ID" NONE, at(1, 9);
    RequestIsSlave "OFPBRC_IS_SLAVE" NONE, at(1, 10);
    RequestBadPort "OFPBRC_BAD_PORT" NONE, at(1, 11);
    RequestBadPacket "OFPBRC_BAD_PACKET" NONE, at(1, 12);
    RequestMultipartOverflow "OFPBRC_MULTIPART_BUFFER_OVERFLOW" NONE, at(1, 13);

    ActionBadType "OFPBAC_BAD_TYPE" at(2, 0), at(2, 0);
    ActionBadLength "OFPBAC_BAD_LEN" at(2, 1), at(2, 1);
    ActionBadExperimenter "OFPBAC_BAD_EXPERIMENTER" at(2, 2), at(2, 2);
    ActionBadExperimenterType "OFPBAC_BAD_EXP_TYPE" at(2, 3), at(2, 3);
    ActionBadOutPort "OFPBAC_BAD_OUT_PORT" at(2, 4), at(2, 4);
    ActionBadArgument "OFPBAC_BAD_ARGUMENT" at(2, 5), at(2, 5);
    ActionPermission "OFPBAC_EPERM" at(2, 6), at(2, 6);
    ActionTooMany "OFPBAC_TOO_MANY" at(2, 7), at(2, 7);
    ActionBadQueue "OFPBAC_BAD_QUEUE" at(2, 8), at(2, 8);
    ActionBadOutGroup "OFPBAC_BAD_OUT_GROUP" NONE, at(2, 9);
    ActionMatchInconsistent "OFPBAC_MATCH_INCONSISTENT" NONE, at(2, 10);
    ActionUnsupportedOrder "OFPBAC_UNSUPPORTED_ORDER" NONE, at(2, 11);
    ActionBadTag "OFPBAC_BAD_TAG" NONE, at(2, 12);
    ActionBadSetType "OFPBAC_BAD_SET_TYPE" NONE, at(2, 13);
    ActionBadSetLength "OFPBAC_BAD_SET_LEN" NONE, at(2, 14);
    ActionBadSetArgument "OFPBAC_BAD_SET_ARGUMENT" NONE, at(2, 15);

    InstructionUnknown "OFPBIC_UNKNOWN_INST" NONE, at(3, 0);
    InstructionUnsupported "OFPBIC_UNSUP_INST" NONE, at(3, 1);
    InstructionBadTable "OFPBIC_BAD_TABLE_ID" NONE, at(3, 2);
    InstructionUnsupportedMetadata "OFPBIC_UNSUP_METADATA" NONE, at(3, 3);
    InstructionUnsupportedMetadataMask "OFPBIC_UNSUP_METADATA_MASK" NONE, at(3, 4);
    InstructionBadExperimenter "OFPBIC_BAD_EXPERIMENTER" NONE, at(3, 5);
    InstructionBadExperimenterType "OFPBIC_BAD_EXP_TYPE" NONE, at(3, 6);
    InstructionBadLength "OFPBIC_BAD_LEN" NONE, at(3, 7);
    InstructionPermission "OFPBIC_EPERM" NONE, at(3, 8);

    MatchBadType "OFPBMC_BAD_TYPE" NONE, at(4, 0);
    MatchBadLength "OFPBMC_BAD_LEN" NONE, at(4, 1);
    MatchBadTag "OFPBMC_BAD_TAG" NONE, at(4, 2);
    MatchBadLinkMask "OFPBMC_BAD_DL_ADDR_MASK" NONE, at(4, 3);
    MatchBadNetworkMask "OFPBMC_BAD_NW_ADDR_MASK" NONE, at(4, 4);
    MatchBadWildcards "OFPBMC_BAD_WILDCARDS" NONE, at(4, 5);
    MatchBadField "OFPBMC_BAD_FIELD" NONE, at(4, 6);
    MatchBadValue "OFPBMC_BAD_VALUE" NONE, at(4, 7);
    MatchBadMask "OFPBMC_BAD_MASK" NONE, at(4, 8);
    MatchBadPrerequisite "OFPBMC_BAD_PREREQ" NONE, at(4, 9);
    MatchDuplicateField "OFPBMC_DUP_FIELD" NONE, at(4, 10);
    MatchPermission "OFPBMC_EPERM" NONE, at(4, 11);

    FlowModUnknown "OFPFMFC_UNKNOWN" NONE, at(5, 0);
    FlowModTableFull "OFPFMFC_TABLE_FULL" at(3, 0), at(5, 1);
    FlowModBadTable "OFPFMFC_BAD_TABLE_ID" NONE, at(5, 2);
    FlowModOverlap "OFPFMFC_OVERLAP" at(3, 1), at(5, 3);
    FlowModPermission "OFPFMFC_EPERM" at(3, 2), at(5, 4);
    FlowModBadTimeout "OFPFMFC_BAD_TIMEOUT" NONE, at(5, 5);
    FlowModBadCommand "OFPFMFC_BAD_COMMAND" at(3, 4), at(5, 6);
    FlowModBadFlags "OFPFMFC_BAD_FLAGS" NONE, at(5, 7);
    FlowModBadEmergencyTimeout "OFPFMFC_BAD_EMERG_TIMEOUT" at(3, 3), NONE;
    FlowModUnsupported "OFPFMFC_UNSUPPORTED" at(3, 5), NONE;

    GroupModExists "OFPGMFC_GROUP_EXISTS" NONE, at(6, 0);
    GroupModInvalid "OFPGMFC_INVALID_GROUP" NONE, at(6, 1);
    GroupModWeightUnsupported "OFPGMFC_WEIGHT_UNSUPPORTED" NONE, at(6, 2);
    GroupModOutOfGroups "OFPGMFC_OUT_OF_GROUPS" NONE, at(6, 3);
    GroupModOutOfBuckets "OFPGMFC_OUT_OF_BUCKETS" NONE, at(6, 4);
    GroupModChainingUnsupported "OFPGMFC_CHAINING_UNSUPPORTED" NONE, at(6, 5);
    GroupModWatchUnsupported "OFPGMFC_WATCH_UNSUPPORTED" NONE, at(6, 6);
    GroupModLoop "OFPGMFC_LOOP" NONE, at(6, 7);
    GroupModUnknownGroup "OFPGMFC_UNKNOWN_GROUP" NONE, at(6, 8);
    GroupModChained "OFPGMFC_CHAINED_GROUP" NONE, at(6, 9);
    GroupModBadType "OFPGMFC_BAD_TYPE" NONE, at(6, 10);
    GroupModBadCommand "OFPGMFC_BAD_COMMAND" NONE, at(6, 11);
    GroupModBadBucket "OFPGMFC_BAD_BUCKET" NONE, at(6, 12);
    GroupModBadWatch "OFPGMFC_BAD_WATCH" NONE, at(6, 13);
    GroupModPermission "OFPGMFC_EPERM" NONE, at(6, 14);

    PortModBadPort "OFPPMFC_BAD_PORT" at(4, 0), at(7, 0);
    PortModBadAddress "OFPPMFC_BAD_HW_ADDR" at(4, 1), at(7, 1);
    PortModBadConfig "OFPPMFC_BAD_CONFIG" NONE, at(7, 2);
    PortModBadAdvertise "OFPPMFC_BAD_ADVERTISE" NONE, at(7, 3);
    PortModPermission "OFPPMFC_EPERM" NONE, at(7, 4);

    TableModBadTable "OFPTMFC_BAD_TABLE" NONE, at(8, 0);
    TableModBadConfig "OFPTMFC_BAD_CONFIG" NONE, at(8, 1);
    TableModPermission "OFPTMFC_EPERM" NONE, at(8, 2);

    QueueBadPort "OFPQOFC_BAD_PORT" at(5, 0), at(9, 0);
    QueueBadQueue "OFPQOFC_BAD_QUEUE" at(5, 1), at(9, 1);
    QueuePermission "OFPQOFC_EPERM" at(5, 2), at(9, 2);

    SwitchConfigBadFlags "OFPSCFC_BAD_FLAGS" NONE, at(10, 0);
    SwitchConfigBadLength "OFPSCFC_BAD_LEN" NONE, at(10, 1);
    SwitchConfigPermission "OFPSCFC_EPERM" NONE, at(10, 2);

    RoleStale "OFPRRFC_STALE" NONE, at(11, 0);
    RoleUnsupported "OFPRRFC_UNSUP" NONE, at(11, 1);
    RoleBadRole "OFPRRFC_BAD_ROLE" NONE, at(11, 2);

    MeterModUnknown "OFPMMFC_UNKNOWN" NONE, at(12, 0);
    MeterModExists "OFPMMFC_METER_EXISTS" NONE, at(12, 1);
    MeterModInvalid "OFPMMFC_INVALID_METER" NONE, at(12, 2);
    MeterModUnknownMeter "OFPMMFC_UNKNOWN_METER" NONE, at(12, 3);
    MeterModBadCommand "OFPMMFC_BAD_COMMAND" NONE, at(12, 4);
    MeterModBadFlags "OFPMMFC_BAD_FLAGS" NONE, at(12, 5);
    MeterModBadRate "OFPMMFC_BAD_RATE" NONE, at(12, 6);
    MeterModBadBurst "OFPMMFC_BAD_BURST" NONE, at(12, 7);
    MeterModBadBand "OFPMMFC_BAD_BAND" NONE, at(12, 8);
    MeterModBadBandValue "OFPMMFC_BAD_BAND_VALUE" NONE, at(12, 9);
    MeterModOutOfMeters "OFPMMFC_OUT_OF_METERS" NONE, at(12, 10);
    MeterModOutOfBands "OFPMMFC_OUT_OF_BANDS" NONE, at(12, 11);

    TableFeaturesBadTable "OFPTFFC_BAD_TABLE" NONE, at(13, 0);
    TableFeaturesBadMetadata "OFPTFFC_BAD_METADATA" NONE, at(13, 1);
    TableFeaturesBadType "OFPTFFC_BAD_TYPE" NONE, at(13, 2);
    TableFeaturesBadLength "OFPTFFC_BAD_LEN" NONE, at(13, 3);
    TableFeaturesBadArgument "OFPTFFC_BAD_ARGUMENT" NONE, at(13, 4);
    TableFeaturesPermission "OFPTFFC_EPERM" NONE, at(13, 5);

    // Errors that only vendors number in these versions, see `vendor`.
    RequestNxmInvalid "NXBRC_NXM_INVALID" NONE, NONE;
    RequestNxmBadType "NXBRC_NXM_BAD_TYPE" NONE, NONE;
    RequestMustBeZero "NXBRC_MUST_BE_ZERO" NONE, NONE;
    RequestBadReason "NXBRC_BAD_REASON" NONE, NONE;
    RequestBadMonitorEvent "NXBRC_FM_BAD_EVENT" NONE, NONE;
    RequestUnencodableError "NXBRC_UNENCODABLE_ERROR" NONE, NONE;
    RequestMultipartRequestTimeout "OFPBRC_MULTIPART_REQUEST_TIMEOUT" NONE, NONE;
    RequestMultipartReplyTimeout "OFPBRC_MULTIPART_REPLY_TIMEOUT" NONE, NONE;

    ActionMustBeZero "NXBAC_MUST_BE_ZERO" NONE, NONE;
    ActionBadConjunction "NXBAC_BAD_CONJUNCTION" NONE, NONE;
    ActionBadHeaderType "NXBAC_BAD_HEADER_TYPE" NONE, NONE;
    ActionUnknownProperty "NXBAC_UNKNOWN_ED_PROP" NONE, NONE;
    ActionBadProperty "NXBAC_BAD_ED_PROP" NONE, NONE;
    ActionNoConnectionTracking "NXBAC_CT_DATAPATH_SUPPORT" NONE, NONE;
    ActionBadSetMask "OFPBAC_BAD_SET_MASK" NONE, NONE;
    InstructionDuplicate "OFPBIC_DUP_INST" NONE, NONE;
    MatchNoConnectionTracking "NXBMC_CT_DATAPATH_SUPPORT" NONE, NONE;

    FlowModHardware "NXFMFC_HARDWARE" NONE, NONE;
    FlowModNoSuchTable "NXFMFC_BAD_TABLE_ID" NONE, NONE;
    FlowModInvalidTlvField "NXFMFC_INVALID_TLV_FIELD" NONE, NONE;
    FlowModBadPriority "OFPFMFC_BAD_PRIORITY" NONE, NONE;
    GroupModUnknownBucket "OFPGMFC_UNKNOWN_BUCKET" NONE, NONE;
    GroupModBucketExists "OFPGMFC_BUCKET_EXISTS" NONE, NONE;
    TableFeaturesDuplicateTable "NXTFFC_DUP_TABLE" NONE, NONE;

    PropertyTooMany "OFPBPC_TOO_MANY" NONE, NONE;
    PropertyDuplicateType "OFPBPC_DUP_TYPE" NONE, NONE;
    PropertyBadExperimenter "OFPBPC_BAD_EXPERIMENTER" NONE, NONE;
    PropertyBadExperimenterType "OFPBPC_BAD_EXP_TYPE" NONE, NONE;
    PropertyBadExperimenterValue "OFPBPC_BAD_EXP_VALUE" NONE, NONE;
    PropertyPermission "OFPBPC_EPERM" NONE, NONE;

    AsyncConfigInvalid "OFPACFC_INVALID" NONE, NONE;
    AsyncConfigUnsupported "OFPACFC_UNSUPPORTED" NONE, NONE;
    AsyncConfigPermission "OFPACFC_EPERM" NONE, NONE;

    BundleUnknown "OFPBFC_UNKNOWN" NONE, NONE;
    BundlePermission "OFPBFC_EPERM" NONE, NONE;
    BundleBadId "OFPBFC_BAD_ID" NONE, NONE;
    BundleExists "OFPBFC_BUNDLE_EXIST" NONE, NONE;
    BundleClosed "OFPBFC_BUNDLE_CLOSED" NONE, NONE;
    BundleOutOfBundles "OFPBFC_OUT_OF_BUNDLES" NONE, NONE;
    BundleBadType "OFPBFC_BAD_TYPE" NONE, NONE;
    BundleBadFlags "OFPBFC_BAD_FLAGS" NONE, NONE;
    BundleMessageBadLength "OFPBFC_MSG_BAD_LEN" NONE, NONE;
    BundleMessageBadXid "OFPBFC_MSG_BAD_XID" NONE, NONE;
    BundleMessageUnsupported "OFPBFC_MSG_UNSUP" NONE, NONE;
    BundleMessageConflict "OFPBFC_MSG_CONFLICT" NONE, NONE;
    BundleTooManyMessages "OFPBFC_MSG_TOO_MANY" NONE, NONE;
    BundleMessageFailed "OFPBFC_MSG_FAILED" NONE, NONE;
    BundleTimeout "OFPBFC_TIMEOUT" NONE, NONE;
    BundleInProgress "OFPBFC_BUNDLE_IN_PROGRESS" NONE, NONE;

    MonitorExists "OFPMOFC_MONITOR_EXISTS" NONE, NONE;
    MonitorBadFlags "OFPMOFC_BAD_FLAGS" NONE, NONE;
    MonitorUnknown "OFPMOFC_UNKNOWN_MONITOR" NONE, NONE;

    TlvTableBadCommand "NXTTMFC_BAD_COMMAND" NONE, NONE;
    TlvTableBadOptionLength "NXTTMFC_BAD_OPT_LEN" NONE, NONE;
    TlvTableBadFieldIndex "NXTTMFC_BAD_FIELD_IDX" NONE, NONE;
    TlvTableFull "NXTTMFC_TABLE_FULL" NONE, NONE;
    TlvTableAlreadyMapped "NXTTMFC_ALREADY_MAPPED" NONE, NONE;
    TlvTableDuplicateEntry "NXTTMFC_DUP_ENTRY" NONE, NONE;
    TlvTableInvalidDeletion "NXTTMFC_INVALID_TLV_DEL" NONE, NONE;

    ResumeUnsupported "NXR_NOT_SUPPORTED" NONE, NONE;
    ResumeStale "NXR_STALE" NONE, NONE;
    StatisticsNotConfigured "NXST_NOT_CONFIGURED" NONE, NONE;
}

/// Names of the error types, by number, for codes without a name.
const KINDS_1_0: [&str; 6] = [
    "OFPET_HELLO_FAILED",
    "OFPET_BAD_REQUEST",
    "OFPET_BAD_ACTION",
    "OFPET_FLOW_MOD_FAILED",
    "OFPET_PORT_MOD_FAILED",
    "OFPET_QUEUE_OP_FAILED",
];
const KINDS_1_3: [&str; 14] = [
    "OFPET_HELLO_FAILED",
    "OFPET_BAD_REQUEST",
    "OFPET_BAD_ACTION",
    "OFPET_BAD_INSTRUCTION",
    "OFPET_BAD_MATCH",
    "OFPET_FLOW_MOD_FAILED",
    "OFPET_GROUP_MOD_FAILED",
    "OFPET_PORT_MOD_FAILED",
    "OFPET_TABLE_MOD_FAILED",
    "OFPET_QUEUE_OP_FAILED",
    "OFPET_SWITCH_CONFIG_FAILED",
    "OFPET_ROLE_REQUEST_FAILED",
    "OFPET_METER_MOD_FAILED",
    "OFPET_TABLE_FEATURES_FAILED",
];

impl ErrorCode {
    /// Returns the error for `kind` and `code` in `version`.
    #[must_use]
    pub fn from_wire(version: Version, kind: u16, code: u16) -> ErrorCode {
        TABLE
            .iter()
            .find(|row| Self::column(row, version) == Some((kind, code)))
            .map_or(ErrorCode::Unknown { kind, code }, |row| row.0)
    }

    /// Returns type and code in `version`; `None` if its specification has no such error.
    #[must_use]
    pub fn wire(self, version: Version) -> Option<(u16, u16)> {
        match self {
            ErrorCode::Unknown { kind, code } => Some((kind, code)),
            known => {
                TABLE.iter().find(|row| row.0 == known).and_then(|row| Self::column(row, version))
            }
        }
    }

    /// Returns whether `version` has this error. A switch answers with no error, or with another
    /// one, where its version has none for a mistake.
    #[must_use]
    pub fn exists_in(self, version: Version) -> bool {
        self.wire(version).is_some()
    }

    /// Returns the error itself if `version` has it, otherwise the nearest that it has.
    ///
    /// 1.0 has no errors of matches or instructions: they become bad requests.
    #[must_use]
    pub fn nearest(self, version: Version) -> ErrorCode {
        if self.exists_in(version) {
            return self;
        }
        match self {
            ErrorCode::MatchBadLength
            | ErrorCode::InstructionBadLength
            | ErrorCode::TableFeaturesBadLength
            | ErrorCode::SwitchConfigBadLength => ErrorCode::RequestBadLength,
            ErrorCode::ActionBadSetType | ErrorCode::ActionBadSetArgument => {
                ErrorCode::ActionBadArgument
            }
            ErrorCode::ActionBadSetLength => ErrorCode::ActionBadLength,
            // As Open vSwitch says it.
            ErrorCode::RequestIsSlave => ErrorCode::RequestPermission,
            _ => ErrorCode::RequestBadType,
        }
    }

    /// Returns the name in the specification, such as `OFPBRC_BAD_LEN`, or in Open vSwitch.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        TABLE.iter().find(|row| row.0 == self).map(|row| row.1)
    }

    /// Returns the name of an error type, such as `OFPET_BAD_REQUEST`.
    #[must_use]
    pub fn kind_name(version: Version, kind: u16) -> Option<&'static str> {
        let names: &[&str] = match version {
            Version::V1_0 => &KINDS_1_0,
            Version::V1_3 => &KINDS_1_3,
        };
        names.get(usize::from(kind)).copied()
    }

    fn column(row: &Row, version: Version) -> Option<(u16, u16)> {
        match version {
            Version::V1_0 => row.2,
            Version::V1_3 => row.3,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self) {
            (Some(name), _) => f.write_str(name),
            (None, ErrorCode::Unknown { kind, code }) => write!(f, "type {kind} code {code}"),
            (None, ErrorCode::UnknownOfVendor { vendor, kind, code }) => {
                write!(f, "type {kind} code {code} of vendor {vendor:#010x}")
            }
            (None, _) => f.write_str("unnamed error"),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_a_version_has_one_name_and_one_number() {
        for version in Version::ALL {
            for row in TABLE {
                if let Some((kind, code)) = row.0.wire(version) {
                    assert_eq!(ErrorCode::from_wire(version, kind, code), row.0);
                    assert!(ErrorCode::kind_name(version, kind).is_some());
                }
            }
        }
    }

    #[test]
    fn the_nearest_error_can_always_be_said() {
        for version in Version::ALL {
            for row in TABLE {
                assert!(row.0.nearest(version).wire(version).is_some(), "{}", row.1);
            }
        }
    }
}
