//! Replies and outcomes of messages.

use bellrock_query::{MessageOutcome, MessageState, SentMessages, SwitchReply};

use super::{printable, table};

/// The reply of a switch.
pub(crate) fn reply(reply: &SwitchReply) -> String {
    let lines = reply.text.lines().map(|line| printable(line) + "\n");
    lines.collect()
}

/// What became of each message.
pub(crate) fn outcomes(sent: &SentMessages) -> String {
    let row = |(index, outcome): (usize, &MessageOutcome)| {
        let state = match outcome.state {
            MessageState::Confirmed => "confirmed",
            MessageState::Refused => "refused",
            MessageState::NotSent => "not sent",
            MessageState::Unconfirmed => "unconfirmed",
            _ => "unknown",
        };
        let why = outcome.why.as_deref().map_or_else(|| "-".to_owned(), printable);
        vec![(index + 1).to_string(), state.to_owned(), why]
    };
    table(&["MESSAGE", "STATE", "WHY"], sent.outcomes.iter().enumerate().map(row))
}
