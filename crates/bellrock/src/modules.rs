//! The names of the library, by subject. Each is public at [`crate`] or in a module of it.
//!
//! The names of most apps are in [`common`], which is the root of the crate and the prelude.

/// A link to a page of the book, in the sources that this crate is built from.
macro_rules! book {
    ($text:literal, $page:literal) => {
        concat!(
            "[",
            $text,
            "](file://",
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/book/src/",
            $page,
            ")"
        )
    };
}

/// What most apps name.
pub(crate) mod common {
    pub use bellrock_api::openflow::{GroupType, RequestBody};
    pub use bellrock_api::{
        Action, Actions, App, AppEvent, Batch, BucketEntry, Change, ChangeOutcome, Cookie, Dpid,
        EarlierFlows, Error, ErrorCode, ErrorMessage, Event, Field, Flow, FlowMod, FlowRemoved,
        FlowStats, FlowTemplate, Forwards, GroupEntry, Handler, HandlerError, HostEntry,
        Instruction, MacAddr, Match, MeterEntry, Needs, Network, PacketIn, Port, PortStatus,
        Publisher, ReplyBody, Result, Scope, Switch, SwitchInfo, SwitchPort, ToSwitch, Verdict,
        Version, Watch, Xid, either,
    };
    pub use bellrock_services::desired::{Desired, DesiredEntry, DesiredFlows};
    pub use bellrock_services::programming::{FlowProgramming, Plan};
    pub use bellrock_transactions::{
        Abort, Interrupt, TVar, Transaction, atomically, transaction, try_atomically,
    };

    pub use crate::per_switch::per_switch;
}

/// What an app is, and what it may do.
///
#[doc = book!("Write an app", "guide/write-an-app.md")]
pub mod app {
    pub use bellrock_api::{
        Allowance, AllowedWrites, App, AppEvent, AppId, BATCH_PACKETS, Batch, Counter,
        CounterValue, EarlierFlows, Forwards, Handler, HandlerError, HostEntry, MAX_SEEN, Needs,
        PacketFilter, Scope, SharedCounter, Switch, Term, Verdict, Xid,
    };

    pub use crate::per_switch::{PerSwitch, per_switch};
}

/// Flows, groups and meters: what they match and do, changes of them, and their confirmation.
///
/// `bellrock::services::desired` keeps them in the switches, `bellrock::services::programming`
/// changes several switches once.
///
#[doc = book!("Program flows", "guide/program-flows.md")]
pub mod flow {
    pub use bellrock_api::openflow::GroupType;
    pub use bellrock_api::{
        ALL_TABLES, Action, Actions, AsFlowMod, BucketEntry, CONFIRM_WITHIN, Change, ChangeOutcome,
        Cookie, Deviation, Field, Filling, Flow, FlowCommand, FlowFlags, FlowKey, FlowMod,
        FlowNormalizer, FlowRemoved, FlowRemovedReason, FlowStats, FlowTemplate, GroupEntry,
        ImpossibleBuckets, ImpossibleInstruction, ImpossibleReason, Instruction, InstructionPart,
        Match, MeterEntry, NoConfirmation, ParseInstructionsError, PriorityBand, ProgramFuture,
        Refusal, Reply, ReportedFlow, RequestError, RequestFuture, check_bucket,
        check_instructions, parse_actions, parse_instructions, time_for_changes,
    };
}

/// Switches, links and hosts, published values to wait for, and tasks.
///
#[doc = book!("The network", "guide/write-an-app.md#the-network")]
pub mod network {
    pub use bellrock_api::{
        ControllerRole, Description, Dpid, Either, Fingerprint, Host, HostId, Hosts, Link, MacAddr,
        Network, ParseDpidError, ParseFingerprintError, ParseSwitchPortError, Port, PortDesc,
        PortReason, PortStatus, Published, Publisher, Sleep, Snapshot, SwitchIdentity, SwitchInfo,
        SwitchPort, Switches, TaskHandle, Topology, Watch, WatchReader, either,
    };
}

/// Events of the network: those of the controller, and those that apps publish.
pub mod event {
    pub use bellrock_api::{
        AlarmState, AppEvent, ConnectionEnd, EVENTS_KEPT, EndReason, Event, EventRecord,
        EventSubject, Events, HostGone, LinkDown, MAX_APP_ALARM_SUBJECT_BYTES,
        MAX_APP_EVENT_NAME_BYTES, MAX_APP_EVENT_TEXT_BYTES, OPEN_ALARMS_KEPT, OPEN_APP_ALARMS_KEPT,
        StormSign, Subscription, SubscriptionItem, Suspicion,
    };

    pub use crate::event_log::EVENT_FIELD;
}

/// Messages of OpenFlow as bytes, for what the library has no method for: those of experimenters
/// above all.
pub mod encoded {
    pub use bellrock_services::encoded::{EncodedError, request, send};
}

/// Packets: their headers, and packets that are built.
///
#[doc = book!("Rewrite and answer packets", "guide/rewrite-and-answer.md")]
pub mod packet {
    pub use bellrock_api::packet::*;
    pub use bellrock_api::{PacketInReason, PacketInView};
}

/// Connections whose messages one owner reads and writes as they are, in place of apps.
///
#[doc = book!("Raw connections", "internals/raw-connections.md")]
pub mod raw {
    pub use bellrock_api::{
        MAX_OWNER_BYTES, MAX_OWNER_BYTES_OF_ALL, MAX_UNSENT_BYTES, RawConnection, RawEvent,
        RawOwner, RawSendError, RawUp,
    };
}

/// Roles of the controller at switches that have several controllers.
///
#[doc = book!("Roles", "internals/roles.md")]
pub mod role {
    pub use bellrock_api::{
        ControllerRole, GrantedRole, ParseRoleError, RoleError, RoleOrder, RoleOrderFuture,
    };
}

/// Names of switches, ports and hosts, as operators give them.
pub mod names {
    pub use bellrock_api::{MAX_NAME_CHARS, MAX_NAMES, NameError, NameKind, Names, name_in};
}

/// Variables that change together.
///
#[doc = book!("What handlers share", "guide/write-an-app.md#what-handlers-share")]
pub mod transaction {
    pub use bellrock_transactions::{
        Abort, Early, Interrupt, MAX_ATTEMPTS, TVar, Transaction, TransactionError, atomically,
        transaction, try_atomically, try_transaction,
    };
}

/// Settings of a controller in a program of its own, and handles that change them while it runs.
pub mod settings {
    pub use bellrock_engine::{EngineSettings, IdleMode, Limits, Pinning, StartError, WriteMode};

    #[cfg(feature = "control")]
    pub use crate::handles::NamesHandle;
    #[cfg(feature = "tls")]
    pub use crate::handles::TlsHandle;
    pub use crate::handles::{LimitsHandle, Liveness};
    #[cfg(feature = "control")]
    pub use bellrock_book::file::FileStoreError;
    #[cfg(feature = "control")]
    pub use bellrock_operator::{ReloadFn, StaticFileError, open_static_file};
}

/// TLS towards switches: certificates, and the datapath ids that they speak for (feature `tls`).
///
#[doc = book!("TLS", "guide/tls.md")]
#[cfg(feature = "tls")]
pub mod tls {
    pub use bellrock_engine::{
        Identities, IdentityMap, MAX_PINS, MAX_PINS_PER_KEY, Pin, Pins, PinsChanged, TlsFileError,
        TlsFiles, TlsServer, TlsSettings, UnnamedIdentity,
    };

    pub use crate::pin_file::{PinFileError, identities_with_file};
}
