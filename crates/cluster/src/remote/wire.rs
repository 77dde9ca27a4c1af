//! Outcomes and errors as they are sent.
//!
//! What an app can act on comes back as it was. Other errors become the one that is nearest: they
//! cannot happen to a message that was encoded for the switch's version.

use bellrock_api::openflow::{DecodeError, ErrorCode, Reason};
use bellrock_api::{ChangeOutcome, Dpid, Error, NoConfirmation, Refusal, RequestError};
use serde::{Deserialize, Serialize};

/// A [`ChangeOutcome`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireChange {
    /// It is installed.
    Installed,
    /// The switch refused it.
    Refused(WireRefusal),
    /// It was not sent.
    NotSent(WireError),
    /// It was not sent, because another change could not be.
    Withheld,
    /// The connection to the switch has ended.
    Disconnected,
    /// The switch did not confirm in time.
    TimedOut,
}

/// A [`Refusal`]: an error by its name, which is that of all versions, or by numbers without a
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireRefusal {
    /// The name of the error ([`ErrorCode::name`]).
    Named(String),
    /// Type and code.
    Unknown(u16, u16),
    /// Vendor, type and code.
    UnknownOfVendor(u32, u16, u16),
    /// Experimenter and type.
    Experimenter(u32, u16),
}

/// An [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireError {
    /// The switch is not connected.
    UnknownSwitch(u64),
    /// Too much waits for the switch.
    Full(u64),
    /// So many requests are unanswered.
    TooManyRequests(usize),
    /// The message expects no reply.
    NotARequest,
    /// The message changes the role of the controller.
    RoleChange,
}

/// A [`RequestError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireRequestError {
    /// It was not sent.
    NotSent(WireError),
    /// The switch refused it.
    Refused(WireRefusal),
    /// No answer came in time.
    Unanswered,
    /// The switch ignores it.
    Silent,
    /// The reply cannot be read, from this byte on.
    Unreadable(usize),
    /// The reply is too large.
    TooLarge,
    /// The connection has ended.
    Disconnected,
}

impl From<ChangeOutcome> for WireChange {
    fn from(outcome: ChangeOutcome) -> Self {
        match outcome {
            ChangeOutcome::Installed => WireChange::Installed,
            ChangeOutcome::Refused(refusal) => WireChange::Refused(refusal.into()),
            ChangeOutcome::NotSent(error) => WireChange::NotSent(error.into()),
            ChangeOutcome::Withheld => WireChange::Withheld,
            ChangeOutcome::Unknown(NoConfirmation::Disconnected) => WireChange::Disconnected,
            ChangeOutcome::Unknown(NoConfirmation::TimedOut) => WireChange::TimedOut,
        }
    }
}

impl From<WireChange> for ChangeOutcome {
    fn from(wire: WireChange) -> Self {
        match wire {
            WireChange::Installed => ChangeOutcome::Installed,
            WireChange::Refused(refusal) => ChangeOutcome::Refused(refusal.into()),
            WireChange::NotSent(error) => ChangeOutcome::NotSent(error.into()),
            WireChange::Withheld => ChangeOutcome::Withheld,
            WireChange::Disconnected => ChangeOutcome::Unknown(NoConfirmation::Disconnected),
            WireChange::TimedOut => ChangeOutcome::Unknown(NoConfirmation::TimedOut),
        }
    }
}

impl From<Refusal> for WireRefusal {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Experimenter { experimenter, kind } => {
                WireRefusal::Experimenter(experimenter, kind)
            }
            Refusal::Standard(error) => match (error.name(), error) {
                (Some(name), _) => WireRefusal::Named(name.to_owned()),
                (None, ErrorCode::Unknown { kind, code }) => WireRefusal::Unknown(kind, code),
                (None, ErrorCode::UnknownOfVendor { vendor, kind, code }) => {
                    WireRefusal::UnknownOfVendor(vendor, kind, code)
                }
                // Every other error has a name.
                (None, _) => WireRefusal::Unknown(u16::MAX, u16::MAX),
            },
        }
    }
}

impl From<WireRefusal> for Refusal {
    fn from(wire: WireRefusal) -> Self {
        match wire {
            WireRefusal::Named(name) => {
                let unknown = ErrorCode::Unknown { kind: u16::MAX, code: u16::MAX };
                Refusal::Standard(ErrorCode::from_name(&name).unwrap_or(unknown))
            }
            WireRefusal::Unknown(kind, code) => {
                Refusal::Standard(ErrorCode::Unknown { kind, code })
            }
            WireRefusal::UnknownOfVendor(vendor, kind, code) => {
                Refusal::Standard(ErrorCode::UnknownOfVendor { vendor, kind, code })
            }
            WireRefusal::Experimenter(experimenter, kind) => {
                Refusal::Experimenter { experimenter, kind }
            }
        }
    }
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        match error {
            // A node passes no request on, so it never says that of another one.
            Error::UnknownSwitch(dpid) | Error::NoMaster(dpid) => WireError::UnknownSwitch(dpid.0),
            Error::Full(dpid) => WireError::Full(dpid.0),
            Error::TooManyRequests { unanswered } => WireError::TooManyRequests(unanswered),
            Error::NotARequest => WireError::NotARequest,
            _ => WireError::RoleChange,
        }
    }
}

impl From<WireError> for Error {
    fn from(wire: WireError) -> Self {
        match wire {
            // The node that was asked is not its master any more. Here it is connected, as standby.
            WireError::UnknownSwitch(dpid) => Error::NoMaster(Dpid(dpid)),
            WireError::Full(dpid) => Error::Full(Dpid(dpid)),
            WireError::TooManyRequests(unanswered) => Error::TooManyRequests { unanswered },
            WireError::NotARequest => Error::NotARequest,
            WireError::RoleChange => Error::RoleChange,
        }
    }
}

impl From<RequestError> for WireRequestError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NotSent(error) => WireRequestError::NotSent(error.into()),
            RequestError::Refused(refusal) => WireRequestError::Refused(refusal.into()),
            RequestError::Silent => WireRequestError::Silent,
            RequestError::Unreadable(error) => WireRequestError::Unreadable(error.offset),
            RequestError::TooLarge => WireRequestError::TooLarge,
            RequestError::Disconnected | RequestError::StoodBy => WireRequestError::Disconnected,
            _ => WireRequestError::Unanswered,
        }
    }
}

impl From<WireRequestError> for RequestError {
    fn from(wire: WireRequestError) -> Self {
        match wire {
            WireRequestError::NotSent(error) => RequestError::NotSent(error.into()),
            WireRequestError::Refused(refusal) => RequestError::Refused(refusal.into()),
            WireRequestError::Unanswered => RequestError::Unanswered,
            WireRequestError::Silent => RequestError::Silent,
            WireRequestError::Unreadable(offset) => RequestError::Unreadable(DecodeError {
                what: "the reply, as the switch's master has read it,",
                offset,
                reason: Reason::Length(0),
                answer: ErrorCode::RequestBadLength,
            }),
            WireRequestError::TooLarge => RequestError::TooLarge,
            WireRequestError::Disconnected => RequestError::Disconnected,
        }
    }
}

/// Bytes as text, in base64.
pub(crate) mod base64 {
    use data_encoding::BASE64;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_come_back_as_they_were() {
        let refusals = [
            Refusal::Standard(ErrorCode::FlowModTableFull),
            // Of 1.0 alone, and of vendors alone.
            Refusal::Standard(ErrorCode::FlowModBadEmergencyTimeout),
            Refusal::Standard(ErrorCode::BundleMessageFailed),
            Refusal::Standard(ErrorCode::Unknown { kind: 77, code: 8 }),
            Refusal::Standard(ErrorCode::UnknownOfVendor { vendor: 7, kind: 77, code: 8 }),
            Refusal::Experimenter { experimenter: 0x4f4e_4600, kind: 3 },
        ];
        let errors = [
            Error::NoMaster(Dpid(u64::MAX)),
            Error::Full(Dpid(1)),
            Error::TooManyRequests { unanswered: 16 },
            Error::NotARequest,
            Error::RoleChange,
        ];
        let mut outcomes = vec![
            ChangeOutcome::Installed,
            ChangeOutcome::Withheld,
            ChangeOutcome::Unknown(NoConfirmation::Disconnected),
            ChangeOutcome::Unknown(NoConfirmation::TimedOut),
        ];
        outcomes.extend(refusals.map(ChangeOutcome::Refused));
        outcomes.extend(errors.map(ChangeOutcome::NotSent));
        for outcome in outcomes {
            let text = serde_json::to_string(&WireChange::from(outcome)).unwrap();
            let again: WireChange = serde_json::from_str(&text).unwrap();
            assert_eq!(ChangeOutcome::from(again), outcome, "{text}");
        }
        let mut failures = vec![
            RequestError::Unanswered,
            RequestError::Silent,
            RequestError::TooLarge,
            RequestError::Disconnected,
        ];
        failures.extend(refusals.map(RequestError::Refused));
        failures.extend(errors.map(RequestError::NotSent));
        for failure in failures {
            assert_eq!(RequestError::from(WireRequestError::from(failure)), failure);
        }
        let unreadable = RequestError::from(WireRequestError::Unreadable(17));
        assert!(unreadable.is_none() && unreadable.to_string().contains("at byte 17"));
    }
}
