//! OpenFlow messages to a switch as they are, for who knows what they send: tools, experiments and
//! scripts of other controllers.

use std::fmt;
use std::str::FromStr;

use bellrock_api::{Dpid, Version};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};

use crate::{SwitchRef, text};

/// Maximum number of messages in an order.
pub const MAX_MESSAGES: usize = 10_000;

/// Maximum size of [`SwitchReply::text`], in bytes. The rest is left out.
pub const MAX_REPLY_TEXT_BYTES: usize = 64 * 1024;

/// Sends a request to a switch, and waits for its reply: a multipart request (1.0: statistics), or
/// a request for features, the configuration, queues, roles or asynchronous messages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AskSwitch {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
    /// The message, in the version of the switch. Its transaction id is replaced.
    #[serde(with = "text")]
    pub request: MessageBytes,
}

/// The reply of a switch to a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SwitchReply {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// OpenFlow version of its connection.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub version: Version,
    /// Number of the type of a multipart reply. `None`: it is another message.
    #[serde(default)]
    pub multipart: Option<u16>,
    /// The reply, in hexadecimal digits. Of a multipart reply: the bodies of all parts, one after
    /// the other. Else: the message.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub bytes: MessageBytes,
    /// The reply as `bellrock decode` prints it, up to 64 KiB.
    pub text: String,
}

/// Sends messages that change a switch, in order, and waits for their confirmation by a barrier.
///
/// They go out as they are: flows get neither the cookie nor the priority of an app. The controller
/// does not remember them. It sends none if one of them is a request, changes the controller's role
/// or what the switch reports, or gives a flow the cookie of an app.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SendMessages {
    /// The switch.
    #[serde(with = "text")]
    pub switch: SwitchRef,
    /// The messages, in the version of the switch. Their transaction ids are replaced. At most
    /// [`MAX_MESSAGES`].
    #[serde(with = "text::list")]
    pub messages: Vec<MessageBytes>,
}

/// What became of messages to a switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SentMessages {
    /// The switch.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub dpid: Dpid,
    /// Its name in the configuration.
    #[serde(default)]
    pub name: Option<String>,
    /// OpenFlow version of its connection.
    #[serde(with = "text")]
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub version: Version,
    /// An outcome for each message, in order.
    pub outcomes: Vec<MessageOutcome>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageOutcome {
    /// Whether the switch has carried it out.
    pub state: MessageState,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Whether a switch has carried out a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageState {
    /// It has.
    Confirmed,
    /// It refuses it.
    Refused,
    /// The message did not go out.
    NotSent,
    /// The switch did not confirm it in time, so that it may or may not have happened.
    Unconfirmed,
    /// A newer controller has sent a state that this release does not know.
    #[serde(other)]
    Unknown,
}

/// The bytes of an OpenFlow message. As text: hexadecimal digits, with blanks where one likes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageBytes(pub Vec<u8>);

/// A text that is no bytes in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseMessageError {
    /// A sign is no hexadecimal digit.
    #[error("{0:?} is no hexadecimal digit; write a barrier as 0414000800000000")]
    NoDigit(char),
    /// The number of digits is odd.
    #[error(
        "{0} hexadecimal digits are not whole bytes, which have two each; write a barrier as 0414000800000000"
    )]
    Odd(usize),
}

impl FromStr for MessageBytes {
    type Err = ParseMessageError;

    fn from_str(text: &str) -> Result<Self, ParseMessageError> {
        let is_wrong = |sign: &char| !sign.is_ascii_hexdigit() && !sign.is_ascii_whitespace();
        if let Some(sign) = text.chars().find(is_wrong) {
            return Err(ParseMessageError::NoDigit(sign));
        }
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = HEXLOWER_PERMISSIVE.decode(&digits);
        bytes.map(MessageBytes).map_err(|_| ParseMessageError::Odd(digits.len()))
    }
}

impl fmt::Display for MessageBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_with_blanks_and_in_any_case() {
        let bytes: MessageBytes = "04 14 00 0A\n".parse().unwrap();
        assert_eq!(bytes, MessageBytes(vec![4, 0x14, 0, 10]));
        assert_eq!(bytes.to_string(), "0414000a");
    }

    #[test]
    fn other_text_is_refused() {
        for (text, error) in [
            ("04 1", ParseMessageError::Odd(3)),
            ("0x04", ParseMessageError::NoDigit('x')),
            ("é", ParseMessageError::NoDigit('é')),
            ("04,14", ParseMessageError::NoDigit(',')),
        ] {
            assert_eq!(text.parse::<MessageBytes>(), Err(error));
        }
    }
}
