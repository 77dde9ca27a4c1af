//! The line of one switch to one controller: connecting, connected, or waiting to try again.

use std::io;
use std::time::Duration;

use bellrock_openflow::Version;

use super::wire::Wire;
use crate::switch::{ChannelId, Close, NoRoom};
use crate::topology::SwitchId;

/// How a switch stands with a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineState {
    /// It is connected, and they agreed on a version.
    Up(Version),
    /// It is about to connect, or to agree on a version.
    Connecting,
    /// It waits before it tries again.
    Away {
        /// Why the last connection, or the last try, was no good.
        reason: String,
    },
}

/// Why a connection is over.
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
    #[error("nothing answers there")]
    NoAnswer,
    #[error("the controller says no hello; is it OpenFlow that it speaks?")]
    NoHello,
    #[error("the controller answers no echo")]
    Silent,
    #[error("the switch was restarted")]
    Restarted,
}

/// One switch and one controller.
pub(super) struct Line {
    pub(super) switch: SwitchId,
    /// Which of the controllers.
    pub(super) controller: usize,
    pub(super) stage: Stage,
    /// Tries in a row that came to nothing.
    pub(super) failures: u32,
    /// Why the last connection, or the last try, was no good.
    pub(super) reason: String,
    /// It has a turn to come.
    pub(super) queued: bool,
}

/// Where a line stands. Times are real ones since the start.
pub(super) enum Stage {
    /// There is no connection until then.
    Waiting { until: Duration },
    /// TCP connects.
    Connecting { wire: Wire, since: Duration },
    /// TCP is connected; a version is agreed on if it is `greeted`.
    Open(Open),
}

/// A connection that stands.
pub(super) struct Open {
    pub(super) wire: Wire,
    pub(super) channel: ChannelId,
    pub(super) greeted: bool,
    /// When the controller said something last, or the connection came to stand.
    pub(super) heard: Duration,
    /// It was asked for an echo since.
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

    /// Whether it is between its first packet and an agreement.
    pub(super) fn is_connecting(&self) -> bool {
        match &self.stage {
            Stage::Waiting { .. } => false,
            Stage::Connecting { .. } => true,
            Stage::Open(open) => !open.greeted,
        }
    }
}
