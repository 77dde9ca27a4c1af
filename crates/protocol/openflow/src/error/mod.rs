//! Errors in messages, and the OpenFlow errors that answer them.

mod vendor;

use std::fmt;

use crate::version::by_minor;
use crate::{Prerequisite, Version, Versions};

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
            Reason::Version(v) => {
                write!(f, "version {v:#04x} is not spoken ({} are)", Versions::ALL)
            }
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

/// One row per error: variant, name in the specification, and (type, code) from or until a minor
/// version ([`by_minor`]).
macro_rules! errors {
    ($($variant:ident $name:literal { $($numbers:tt)* })*) => {
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

        const TABLE: &[Row] = &[$((ErrorCode::$variant, $name, by_minor!($($numbers)*)),)*];
    };
}

/// An error, its name, and its type and code in a minor version.
type Row = (ErrorCode, &'static str, fn(u8) -> Option<(u16, u16)>);

errors! {
    HelloIncompatible "OFPHFC_INCOMPATIBLE" { 0.. => (0, 0) }
    HelloPermission "OFPHFC_EPERM" { 0.. => (0, 1) }

    RequestBadVersion "OFPBRC_BAD_VERSION" { 0.. => (1, 0) }
    RequestBadType "OFPBRC_BAD_TYPE" { 0.. => (1, 1) }
    RequestBadMultipart "OFPBRC_BAD_MULTIPART" { 0.. => (1, 2) }
    RequestBadExperimenter "OFPBRC_BAD_EXPERIMENTER" { 0.. => (1, 3) }
    RequestBadExperimenterType "OFPBRC_BAD_EXP_TYPE" { 0.. => (1, 4) }
    RequestPermission "OFPBRC_EPERM" { 0.. => (1, 5) }
    RequestBadLength "OFPBRC_BAD_LEN" { 0.. => (1, 6) }
    RequestBufferEmpty "OFPBRC_BUFFER_EMPTY" { 0.. => (1, 7) }
    RequestBufferUnknown "OFPBRC_BUFFER_UNKNOWN" { 0.. => (1, 8) }
    RequestBadTable "OFPBRC_BAD_TABLE_ID" { 1.. => (1, 9) }
    RequestIsSlave "OFPBRC_IS_SLAVE" { 2.. => (1, 10) }
    RequestBadPort "OFPBRC_BAD_PORT" { 3.. => (1, 11) }
    RequestBadPacket "OFPBRC_BAD_PACKET" { 3.. => (1, 12) }
    RequestMultipartOverflow "OFPBRC_MULTIPART_BUFFER_OVERFLOW" { 3.. => (1, 13) }

    ActionBadType "OFPBAC_BAD_TYPE" { 0.. => (2, 0) }
    ActionBadLength "OFPBAC_BAD_LEN" { 0.. => (2, 1) }
    ActionBadExperimenter "OFPBAC_BAD_EXPERIMENTER" { 0.. => (2, 2) }
    ActionBadExperimenterType "OFPBAC_BAD_EXP_TYPE" { 0.. => (2, 3) }
    ActionBadOutPort "OFPBAC_BAD_OUT_PORT" { 0.. => (2, 4) }
    ActionBadArgument "OFPBAC_BAD_ARGUMENT" { 0.. => (2, 5) }
    ActionPermission "OFPBAC_EPERM" { 0.. => (2, 6) }
    ActionTooMany "OFPBAC_TOO_MANY" { 0.. => (2, 7) }
    ActionBadQueue "OFPBAC_BAD_QUEUE" { 0.. => (2, 8) }
    ActionBadOutGroup "OFPBAC_BAD_OUT_GROUP" { 1.. => (2, 9) }
    ActionMatchInconsistent "OFPBAC_MATCH_INCONSISTENT" { 1.. => (2, 10) }
    ActionUnsupportedOrder "OFPBAC_UNSUPPORTED_ORDER" { 1.. => (2, 11) }
    ActionBadTag "OFPBAC_BAD_TAG" { 1.. => (2, 12) }
    ActionBadSetType "OFPBAC_BAD_SET_TYPE" { 2.. => (2, 13) }
    ActionBadSetLength "OFPBAC_BAD_SET_LEN" { 2.. => (2, 14) }
    ActionBadSetArgument "OFPBAC_BAD_SET_ARGUMENT" { 2.. => (2, 15) }

    InstructionUnknown "OFPBIC_UNKNOWN_INST" { 1.. => (3, 0) }
    InstructionUnsupported "OFPBIC_UNSUP_INST" { 1.. => (3, 1) }
    InstructionBadTable "OFPBIC_BAD_TABLE_ID" { 1.. => (3, 2) }
    InstructionUnsupportedMetadata "OFPBIC_UNSUP_METADATA" { 1.. => (3, 3) }
    InstructionUnsupportedMetadataMask "OFPBIC_UNSUP_METADATA_MASK" { 1.. => (3, 4) }
    InstructionBadExperimenter "OFPBIC_BAD_EXPERIMENTER" { 2.. => (3, 5) }
    InstructionBadExperimenterType "OFPBIC_BAD_EXP_TYPE" { 2.. => (3, 6) }
    InstructionBadLength "OFPBIC_BAD_LEN" { 2.. => (3, 7) }
    InstructionPermission "OFPBIC_EPERM" { 2.. => (3, 8) }

    MatchBadType "OFPBMC_BAD_TYPE" { 1.. => (4, 0) }
    MatchBadLength "OFPBMC_BAD_LEN" { 1.. => (4, 1) }
    MatchBadTag "OFPBMC_BAD_TAG" { 1.. => (4, 2) }
    MatchBadLinkMask "OFPBMC_BAD_DL_ADDR_MASK" { 1.. => (4, 3) }
    MatchBadNetworkMask "OFPBMC_BAD_NW_ADDR_MASK" { 1.. => (4, 4) }
    MatchBadWildcards "OFPBMC_BAD_WILDCARDS" { 1.. => (4, 5) }
    MatchBadField "OFPBMC_BAD_FIELD" { 1.. => (4, 6) }
    MatchBadValue "OFPBMC_BAD_VALUE" { 2.. => (4, 7) }
    MatchBadMask "OFPBMC_BAD_MASK" { 2.. => (4, 8) }
    MatchBadPrerequisite "OFPBMC_BAD_PREREQ" { 2.. => (4, 9) }
    MatchDuplicateField "OFPBMC_DUP_FIELD" { 2.. => (4, 10) }
    MatchPermission "OFPBMC_EPERM" { 2.. => (4, 11) }

    FlowModUnknown "OFPFMFC_UNKNOWN" { 1.. => (5, 0) }
    FlowModTableFull "OFPFMFC_TABLE_FULL" { 0 => (3, 0), 1.. => (5, 1) }
    FlowModBadTable "OFPFMFC_BAD_TABLE_ID" { 1.. => (5, 2) }
    FlowModOverlap "OFPFMFC_OVERLAP" { 0 => (3, 1), 1.. => (5, 3) }
    FlowModPermission "OFPFMFC_EPERM" { 0 => (3, 2), 1.. => (5, 4) }
    FlowModBadTimeout "OFPFMFC_BAD_TIMEOUT" { 1.. => (5, 5) }
    FlowModBadCommand "OFPFMFC_BAD_COMMAND" { 0 => (3, 4), 1.. => (5, 6) }
    FlowModBadFlags "OFPFMFC_BAD_FLAGS" { 1.. => (5, 7) }
    FlowModBadEmergencyTimeout "OFPFMFC_BAD_EMERG_TIMEOUT" { 0 => (3, 3) }
    FlowModUnsupported "OFPFMFC_UNSUPPORTED" { 0 => (3, 5) }

    GroupModExists "OFPGMFC_GROUP_EXISTS" { 1.. => (6, 0) }
    GroupModInvalid "OFPGMFC_INVALID_GROUP" { 1.. => (6, 1) }
    GroupModWeightUnsupported "OFPGMFC_WEIGHT_UNSUPPORTED" { 1.. => (6, 2) }
    GroupModOutOfGroups "OFPGMFC_OUT_OF_GROUPS" { 1.. => (6, 3) }
    GroupModOutOfBuckets "OFPGMFC_OUT_OF_BUCKETS" { 1.. => (6, 4) }
    GroupModChainingUnsupported "OFPGMFC_CHAINING_UNSUPPORTED" { 1.. => (6, 5) }
    GroupModWatchUnsupported "OFPGMFC_WATCH_UNSUPPORTED" { 1.. => (6, 6) }
    GroupModLoop "OFPGMFC_LOOP" { 1.. => (6, 7) }
    GroupModUnknownGroup "OFPGMFC_UNKNOWN_GROUP" { 1.. => (6, 8) }
    GroupModChained "OFPGMFC_CHAINED_GROUP" { 2.. => (6, 9) }
    GroupModBadType "OFPGMFC_BAD_TYPE" { 2.. => (6, 10) }
    GroupModBadCommand "OFPGMFC_BAD_COMMAND" { 2.. => (6, 11) }
    GroupModBadBucket "OFPGMFC_BAD_BUCKET" { 2.. => (6, 12) }
    GroupModBadWatch "OFPGMFC_BAD_WATCH" { 2.. => (6, 13) }
    GroupModPermission "OFPGMFC_EPERM" { 2.. => (6, 14) }

    PortModBadPort "OFPPMFC_BAD_PORT" { 0 => (4, 0), 1.. => (7, 0) }
    PortModBadAddress "OFPPMFC_BAD_HW_ADDR" { 0 => (4, 1), 1.. => (7, 1) }
    PortModBadConfig "OFPPMFC_BAD_CONFIG" { 1.. => (7, 2) }
    PortModBadAdvertise "OFPPMFC_BAD_ADVERTISE" { 1.. => (7, 3) }
    PortModPermission "OFPPMFC_EPERM" { 1.. => (7, 4) }

    TableModBadTable "OFPTMFC_BAD_TABLE" { 1.. => (8, 0) }
    TableModBadConfig "OFPTMFC_BAD_CONFIG" { 1.. => (8, 1) }
    TableModPermission "OFPTMFC_EPERM" { 1.. => (8, 2) }

    QueueBadPort "OFPQOFC_BAD_PORT" { 0 => (5, 0), 1.. => (9, 0) }
    QueueBadQueue "OFPQOFC_BAD_QUEUE" { 0 => (5, 1), 1.. => (9, 1) }
    QueuePermission "OFPQOFC_EPERM" { 0 => (5, 2), 1.. => (9, 2) }

    SwitchConfigBadFlags "OFPSCFC_BAD_FLAGS" { 1.. => (10, 0) }
    SwitchConfigBadLength "OFPSCFC_BAD_LEN" { 1.. => (10, 1) }
    SwitchConfigPermission "OFPSCFC_EPERM" { 1.. => (10, 2) }

    RoleStale "OFPRRFC_STALE" { 2.. => (11, 0) }
    RoleUnsupported "OFPRRFC_UNSUP" { 2.. => (11, 1) }
    RoleBadRole "OFPRRFC_BAD_ROLE" { 2.. => (11, 2) }

    MeterModUnknown "OFPMMFC_UNKNOWN" { 3.. => (12, 0) }
    MeterModExists "OFPMMFC_METER_EXISTS" { 3.. => (12, 1) }
    MeterModInvalid "OFPMMFC_INVALID_METER" { 3.. => (12, 2) }
    MeterModUnknownMeter "OFPMMFC_UNKNOWN_METER" { 3.. => (12, 3) }
    MeterModBadCommand "OFPMMFC_BAD_COMMAND" { 3.. => (12, 4) }
    MeterModBadFlags "OFPMMFC_BAD_FLAGS" { 3.. => (12, 5) }
    MeterModBadRate "OFPMMFC_BAD_RATE" { 3.. => (12, 6) }
    MeterModBadBurst "OFPMMFC_BAD_BURST" { 3.. => (12, 7) }
    MeterModBadBand "OFPMMFC_BAD_BAND" { 3.. => (12, 8) }
    MeterModBadBandValue "OFPMMFC_BAD_BAND_VALUE" { 3.. => (12, 9) }
    MeterModOutOfMeters "OFPMMFC_OUT_OF_METERS" { 3.. => (12, 10) }
    MeterModOutOfBands "OFPMMFC_OUT_OF_BANDS" { 3.. => (12, 11) }

    TableFeaturesBadTable "OFPTFFC_BAD_TABLE" { 3.. => (13, 0) }
    TableFeaturesBadMetadata "OFPTFFC_BAD_METADATA" { 3.. => (13, 1) }
    TableFeaturesBadType "OFPTFFC_BAD_TYPE" { 3.. => (13, 2) }
    TableFeaturesBadLength "OFPTFFC_BAD_LEN" { 3.. => (13, 3) }
    TableFeaturesBadArgument "OFPTFFC_BAD_ARGUMENT" { 3.. => (13, 4) }
    TableFeaturesPermission "OFPTFFC_EPERM" { 3.. => (13, 5) }

    // Errors that only vendors number in these versions, see `vendor`.
    RequestNxmInvalid "NXBRC_NXM_INVALID" {}
    RequestNxmBadType "NXBRC_NXM_BAD_TYPE" {}
    RequestMustBeZero "NXBRC_MUST_BE_ZERO" {}
    RequestBadReason "NXBRC_BAD_REASON" {}
    RequestBadMonitorEvent "NXBRC_FM_BAD_EVENT" {}
    RequestUnencodableError "NXBRC_UNENCODABLE_ERROR" {}
    RequestMultipartRequestTimeout "OFPBRC_MULTIPART_REQUEST_TIMEOUT" {}
    RequestMultipartReplyTimeout "OFPBRC_MULTIPART_REPLY_TIMEOUT" {}

    ActionMustBeZero "NXBAC_MUST_BE_ZERO" {}
    ActionBadConjunction "NXBAC_BAD_CONJUNCTION" {}
    ActionBadHeaderType "NXBAC_BAD_HEADER_TYPE" {}
    ActionUnknownProperty "NXBAC_UNKNOWN_ED_PROP" {}
    ActionBadProperty "NXBAC_BAD_ED_PROP" {}
    ActionNoConnectionTracking "NXBAC_CT_DATAPATH_SUPPORT" {}
    ActionBadSetMask "OFPBAC_BAD_SET_MASK" {}
    InstructionDuplicate "OFPBIC_DUP_INST" {}
    MatchNoConnectionTracking "NXBMC_CT_DATAPATH_SUPPORT" {}

    FlowModHardware "NXFMFC_HARDWARE" {}
    FlowModNoSuchTable "NXFMFC_BAD_TABLE_ID" {}
    FlowModInvalidTlvField "NXFMFC_INVALID_TLV_FIELD" {}
    FlowModBadPriority "OFPFMFC_BAD_PRIORITY" {}
    GroupModUnknownBucket "OFPGMFC_UNKNOWN_BUCKET" {}
    GroupModBucketExists "OFPGMFC_BUCKET_EXISTS" {}
    TableFeaturesDuplicateTable "NXTFFC_DUP_TABLE" {}

    PropertyTooMany "OFPBPC_TOO_MANY" {}
    PropertyDuplicateType "OFPBPC_DUP_TYPE" {}
    PropertyBadExperimenter "OFPBPC_BAD_EXPERIMENTER" {}
    PropertyBadExperimenterType "OFPBPC_BAD_EXP_TYPE" {}
    PropertyBadExperimenterValue "OFPBPC_BAD_EXP_VALUE" {}
    PropertyPermission "OFPBPC_EPERM" {}

    AsyncConfigInvalid "OFPACFC_INVALID" {}
    AsyncConfigUnsupported "OFPACFC_UNSUPPORTED" {}
    AsyncConfigPermission "OFPACFC_EPERM" {}

    BundleUnknown "OFPBFC_UNKNOWN" {}
    BundlePermission "OFPBFC_EPERM" {}
    BundleBadId "OFPBFC_BAD_ID" {}
    BundleExists "OFPBFC_BUNDLE_EXIST" {}
    BundleClosed "OFPBFC_BUNDLE_CLOSED" {}
    BundleOutOfBundles "OFPBFC_OUT_OF_BUNDLES" {}
    BundleBadType "OFPBFC_BAD_TYPE" {}
    BundleBadFlags "OFPBFC_BAD_FLAGS" {}
    BundleMessageBadLength "OFPBFC_MSG_BAD_LEN" {}
    BundleMessageBadXid "OFPBFC_MSG_BAD_XID" {}
    BundleMessageUnsupported "OFPBFC_MSG_UNSUP" {}
    BundleMessageConflict "OFPBFC_MSG_CONFLICT" {}
    BundleTooManyMessages "OFPBFC_MSG_TOO_MANY" {}
    BundleMessageFailed "OFPBFC_MSG_FAILED" {}
    BundleTimeout "OFPBFC_TIMEOUT" {}
    BundleInProgress "OFPBFC_BUNDLE_IN_PROGRESS" {}

    MonitorExists "OFPMOFC_MONITOR_EXISTS" {}
    MonitorBadFlags "OFPMOFC_BAD_FLAGS" {}
    MonitorUnknown "OFPMOFC_UNKNOWN_MONITOR" {}

    TlvTableBadCommand "NXTTMFC_BAD_COMMAND" {}
    TlvTableBadOptionLength "NXTTMFC_BAD_OPT_LEN" {}
    TlvTableBadFieldIndex "NXTTMFC_BAD_FIELD_IDX" {}
    TlvTableFull "NXTTMFC_TABLE_FULL" {}
    TlvTableAlreadyMapped "NXTTMFC_ALREADY_MAPPED" {}
    TlvTableDuplicateEntry "NXTTMFC_DUP_ENTRY" {}
    TlvTableInvalidDeletion "NXTTMFC_INVALID_TLV_DEL" {}

    ResumeUnsupported "NXR_NOT_SUPPORTED" {}
    ResumeStale "NXR_STALE" {}
    StatisticsNotConfigured "NXST_NOT_CONFIGURED" {}
}

/// An error type, and its number in a minor version.
type KindRow = (&'static str, fn(u8) -> Option<u16>);

/// The error types, for codes without a name.
const KINDS: &[KindRow] = &[
    ("OFPET_HELLO_FAILED", by_minor!(0.. => 0)),
    ("OFPET_BAD_REQUEST", by_minor!(0.. => 1)),
    ("OFPET_BAD_ACTION", by_minor!(0.. => 2)),
    ("OFPET_BAD_INSTRUCTION", by_minor!(1.. => 3)),
    ("OFPET_BAD_MATCH", by_minor!(1.. => 4)),
    ("OFPET_FLOW_MOD_FAILED", by_minor!(0 => 3, 1.. => 5)),
    ("OFPET_GROUP_MOD_FAILED", by_minor!(1.. => 6)),
    ("OFPET_PORT_MOD_FAILED", by_minor!(0 => 4, 1.. => 7)),
    ("OFPET_TABLE_MOD_FAILED", by_minor!(1.. => 8)),
    ("OFPET_QUEUE_OP_FAILED", by_minor!(0 => 5, 1.. => 9)),
    ("OFPET_SWITCH_CONFIG_FAILED", by_minor!(1.. => 10)),
    ("OFPET_ROLE_REQUEST_FAILED", by_minor!(2.. => 11)),
    ("OFPET_METER_MOD_FAILED", by_minor!(3.. => 12)),
    ("OFPET_TABLE_FEATURES_FAILED", by_minor!(3.. => 13)),
];

impl ErrorCode {
    /// Returns the error for `kind` and `code` in `version`.
    #[must_use]
    pub fn from_wire(version: Version, kind: u16, code: u16) -> ErrorCode {
        TABLE
            .iter()
            .find(|row| row.2(version.minor()) == Some((kind, code)))
            .map_or(ErrorCode::Unknown { kind, code }, |row| row.0)
    }

    /// Returns type and code in `version`; `None` if its specification has no such error.
    #[must_use]
    pub fn wire(self, version: Version) -> Option<(u16, u16)> {
        match self {
            ErrorCode::Unknown { kind, code } => Some((kind, code)),
            known => {
                let row = TABLE.iter().find(|row| row.0 == known)?;
                row.2(version.minor())
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

    /// Returns the error with this name: the inverse of [`Self::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<ErrorCode> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns the name of an error type, such as `OFPET_BAD_REQUEST`.
    #[must_use]
    pub fn kind_name(version: Version, kind: u16) -> Option<&'static str> {
        KINDS.iter().find(|row| row.1(version.minor()) == Some(kind)).map(|row| row.0)
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
    fn every_error_is_found_by_its_name() {
        for row in TABLE {
            assert_eq!(row.0.name().and_then(ErrorCode::from_name), Some(row.0));
        }
        assert_eq!(ErrorCode::from_name("OFPBRC"), None);
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
