//! The arguments of `bellrock request` and `bellrock send`.

use bellrock_query::{AskSwitch, MessageBytes, SendMessages, SwitchRef};
use clap::Args;

use crate::ask::Ask;

/// Send an OpenFlow request to a switch as it is
///
/// For multipart requests, and for requests of features, configuration, queues, roles and
/// asynchronous messages. The transaction id is replaced.
/// Example, the groups of a 1.3 switch: bellrock request a1 04120010000000000007000000000000
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The switch: its datapath id in hexadecimal, or its name
    switch: SwitchRef,
    /// The message in hexadecimal digits, in the OpenFlow version of the switch
    message: MessageBytes,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

impl RequestArgs {
    pub(crate) fn query(&self) -> AskSwitch {
        AskSwitch { switch: self.switch.clone(), request: self.message.clone() }
    }
}

/// Send OpenFlow messages that change a switch, as they are
///
/// For experiments and repairs: flows get neither the cookie nor the priority of an app, and the
/// controller does not put them back. `bellrock static` keeps flows.
/// Example, remove all groups: bellrock send a1 040f00100000000000020000fffffffc
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The switch: its datapath id in hexadecimal, or its name
    switch: SwitchRef,
    /// The messages in hexadecimal digits, in the OpenFlow version of the switch
    #[arg(required = true)]
    messages: Vec<MessageBytes>,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

impl SendArgs {
    pub(crate) fn order(&self) -> SendMessages {
        SendMessages { switch: self.switch.clone(), messages: self.messages.clone() }
    }
}
