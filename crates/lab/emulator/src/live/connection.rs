//! The connection of one switch to one controller: connecting, connected, or waiting.

use std::io;
use std::time::Duration;

use bellrock_openflow::Version;

use super::wire::TcpWire;
use crate::switch::{ChannelClose, ChannelId, TooManyControllers};
use crate::topology::SwitchIndex;

/// State of a switch's connection to a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Connected, with this version.
    Up(Version),
    /// Connecting, or agreeing on a version.
    Connecting,
    /// Waiting before the next attempt.
    Away {
        /// Why the last connection or attempt ended.
        reason: String,
    },
}

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionLoss {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("the controller has closed the connection")]
    End,
    #[error("{0}")]
    Protocol(#[from] ChannelClose),
    #[error("{0}")]
    NoRoom(#[from] TooManyControllers),
    #[error("no answer from this address")]
    NoAnswer,
    #[error("the controller sent no hello; does it speak OpenFlow?")]
    NoHello,
    #[error("the controller did not answer an echo request")]
    Silent,
    #[error("the switch was restarted")]
    Restarted,
}

/// One switch and one controller.
pub(super) struct SwitchConnection {
    pub(super) switch: SwitchIndex,
    /// Index of the controller.
    pub(super) controller: usize,
    pub(super) stage: SwitchConnectionStage,
    /// Attempts in a row without an agreed version.
    pub(super) failures: u32,
    /// Why the last connection or attempt ended.
    pub(super) reason: String,
    /// Whether it is queued to be served.
    pub(super) queued: bool,
}

/// Stage of a line. Times are real times since the start.
pub(super) enum SwitchConnectionStage {
    /// No connection until then.
    Waiting { until: Duration },
    /// TCP connects.
    Connecting { wire: TcpWire, since: Duration },
    /// TCP is connected. With `greeted`, a version is agreed on.
    Open(OpenConnection),
}

/// An open connection.
pub(super) struct OpenConnection {
    pub(super) wire: TcpWire,
    pub(super) channel: ChannelId,
    pub(super) greeted: bool,
    /// When TCP connected.
    pub(super) since: Duration,
    /// When the controller was last heard, or TCP connected.
    pub(super) last_heard: Duration,
    /// Whether an echo request was sent since.
    pub(super) has_probed: bool,
}

impl SwitchConnection {
    pub(super) fn new(switch: SwitchIndex, controller: usize) -> Self {
        SwitchConnection {
            switch,
            controller,
            stage: SwitchConnectionStage::Waiting { until: Duration::ZERO },
            failures: 0,
            reason: String::new(),
            queued: false,
        }
    }

    pub(super) fn wire(&mut self) -> Option<&mut TcpWire> {
        match &mut self.stage {
            SwitchConnectionStage::Waiting { .. } => None,
            SwitchConnectionStage::Connecting { wire, .. }
            | SwitchConnectionStage::Open(OpenConnection { wire, .. }) => Some(wire),
        }
    }

    /// Whether it is between the first packet and the agreement on a version.
    pub(super) fn is_connecting(&self) -> bool {
        match &self.stage {
            SwitchConnectionStage::Waiting { .. } => false,
            SwitchConnectionStage::Connecting { .. } => true,
            SwitchConnectionStage::Open(open) => !open.greeted,
        }
    }
}
