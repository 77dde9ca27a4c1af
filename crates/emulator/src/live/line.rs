//! The connection of one switch to one controller: connecting, connected, or waiting.

use std::io;
use std::time::Duration;

use bellrock_openflow::Version;

use super::wire::Wire;
use crate::switch::{ChannelId, Close, NoRoom};
use crate::topology::SwitchId;

/// State of a switch's connection to a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineState {
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
pub(super) enum Broken {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error("the controller has closed the connection")]
    End,
    #[error("{0}")]
    Protocol(#[from] Close),
    #[error("{0}")]
    NoRoom(#[from] NoRoom),
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
pub(super) struct Line {
    pub(super) switch: SwitchId,
    /// Index of the controller.
    pub(super) controller: usize,
    pub(super) stage: Stage,
    /// Attempts in a row without an agreed version.
    pub(super) failures: u32,
    /// Why the last connection or attempt ended.
    pub(super) reason: String,
    /// Whether it is queued to be served.
    pub(super) queued: bool,
}

/// Stage of a line. Times are real times since the start.
pub(super) enum Stage {
    /// No connection until then.
    Waiting { until: Duration },
    /// TCP connects.
    Connecting { wire: Wire, since: Duration },
    /// TCP is connected. With `greeted`, a version is agreed on.
    Open(Open),
}

/// An open connection.
pub(super) struct Open {
    pub(super) wire: Wire,
    pub(super) channel: ChannelId,
    pub(super) greeted: bool,
    /// When the controller was last heard, or TCP connected.
    pub(super) heard: Duration,
    /// Whether an echo request was sent since.
    pub(super) asked: bool,
}

impl Line {
    pub(super) fn new(switch: SwitchId, controller: usize) -> Self {
        Line {
            switch,
            controller,
            stage: Stage::Waiting { until: Duration::ZERO },
            failures: 0,
            reason: String::new(),
            queued: false,
        }
    }

    pub(super) fn wire(&mut self) -> Option<&mut Wire> {
        match &mut self.stage {
            Stage::Waiting { .. } => None,
            Stage::Connecting { wire, .. } | Stage::Open(Open { wire, .. }) => Some(wire),
        }
    }

    /// Whether it is between the first packet and the agreement on a version.
    pub(super) fn is_connecting(&self) -> bool {
        match &self.stage {
            Stage::Waiting { .. } => false,
            Stage::Connecting { .. } => true,
            Stage::Open(open) => !open.greeted,
        }
    }
}
